"""Statistics that Python computes anew: they say what is in the rows, and come by themselves if upkeep does."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, CommitConflict, engine
from lakelog.catalog.core.files import ColumnEstimates, TableEstimates
from lakelog.catalog.keeping.upkeep import automatic
from lakelog.catalog.keeping.upkeep.automatic import wait_for_upkeep
from lakelog.catalog.keeping.upkeep.clustering import ranked
from lakelog.catalog.keeping.upkeep.statistics import EXACT_MAX, DistinctCounter, refreshed
from lakelog.log import LogOptions

AUTO = {"lakelog.maintenance": "auto"}
SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "name": [f"n{id % 3}" for id in ids]}, schema=SCHEMA)


def computed_once(table: Any) -> Any:
    """Return the table with statistics of all columns, as an engine computes them."""
    columns = {field.id: ColumnEstimates(type=str(field.type), distinct=1) for field in table.schema.fields}
    return engine.commit_statistics(
        table,
        TableEstimates(
            version=table.version, rows=table.row_count, size_bytes=table.size_bytes, columns=columns
        ),
    )


def known_estimates(table: Any) -> dict[str, ColumnEstimates]:
    estimates = engine.estimates(table.refresh())
    return {table.schema.field_by_id(id).name: column for id, column in estimates.columns.items()}


def test_maintain_counts_anew_what_was_counted_once_and_is_a_tenth_older(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA).append(rows(*range(100)))
    assert catalog.maintain("t")[0].statistics == 0 and engine.estimates(table.refresh()) is None
    table = computed_once(table).append(rows(*range(100, 109)))
    assert catalog.maintain("t")[0].statistics == 0
    table = table.append(rows(109))
    assert catalog.maintain("t", dry_run=True)[0].statistics == 2
    assert catalog.maintain("t")[0].statistics == 2 and catalog.maintain("t")[0].statistics == 0
    estimates = engine.estimates(table.refresh())
    assert estimates is not None and (estimates.rows, estimates.added_since) == (110, 0)
    assert known_estimates(table)["id"] == ColumnEstimates(
        type="long", distinct=110, nulls=0, min=0, max=109, average_bytes=8, most_bytes=8
    )
    assert known_estimates(table)["name"] == ColumnEstimates(
        type="string", distinct=3, nulls=0, average_bytes=2, most_bytes=2
    )


def test_rows_that_are_deleted_do_not_count(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA, properties={"lakelog.write.delete.mode": "merge-on-read"})
    table = computed_once(table.append(rows(*range(10)))).append(rows(*range(10, 20)))
    table = table.delete("id >= 15 OR id = 0")
    catalog.maintain("t", actions=("statistics",))
    found_id = known_estimates(table)["id"]
    assert (found_id.distinct, found_id.min, found_id.max, engine.estimates(table.refresh()).rows) == (
        14,
        1,
        14,
        14,
    )


def test_each_type_is_counted_as_spark_counts_it(catalog: Catalog) -> None:
    data: dict[str, pa.Array] = {
        "flag": pa.array([True, False, None, True]),
        "byte": pa.array([1, -1, None, 1], pa.int8()),
        "real": pa.array([0.0, -0.0, math.nan, None]),
        "none": pa.array([None] * 4, pa.float32()),
        "nan": pa.array([math.nan, math.nan, None, None], pa.float32()),
        "infinite": pa.array([-math.inf, 1.0, 2.0, math.inf]),
        "money": pa.array([Decimal("1.50"), Decimal("-2.25"), None, Decimal("1.50")], pa.decimal128(9, 2)),
        "wide": pa.array([Decimal("1.5"), None, None, None], pa.decimal128(38, 1)),
        "text": pa.array(["é", "abc", None, ""]),
        "bytes": pa.array([b"\x00\x01", None, None, b""]),
        "day": pa.array([dt.date(2024, 1, 1), dt.date(1969, 12, 31), None, None]),
        "at": pa.array([dt.datetime(2024, 1, 1), None, None, None], pa.timestamp("us")),
        "instant": pa.array([dt.datetime(2024, 1, 1), None, None, None], pa.timestamp("us", "UTC")),
    }
    table = catalog.create_table("t", pa.table(data).schema)
    computed_once(table).append(pa.table(data))
    assert catalog.maintain("t")[0].error is None
    distincts = {
        name: (fact.distinct, fact.nulls, fact.min, fact.max, fact.average_bytes, fact.most_bytes)
        for name, fact in known_estimates(table).items()
    }
    assert distincts == {
        "flag": (2, 1, False, True, 1, 1),
        "byte": (2, 1, -1, 1, 1, 1),
        "real": (2, 1, 0.0, "NaN", 8, 8),
        "none": (0, 4, None, None, 4, 4),
        "nan": (1, 2, "NaN", "NaN", 4, 4),
        "infinite": (4, 0, "-Infinity", "Infinity", 8, 8),
        "money": (2, 1, "-2.25", "1.50", 8, 8),
        "wide": (1, 3, "1.5", "1.5", 16, 16),
        "text": (3, 1, None, None, 2, 3),
        "bytes": (2, 2, None, None, 1, 2),
        "day": (2, 2, -1, 19723, 4, 4),
        "at": (1, 3, 1704067200000000, 1704067200000000, 8, 8),
        "instant": (1, 3, 1704067200000000, 1704067200000000, 8, 8),
    }


@pytest.mark.parametrize("many", [0, 1, EXACT_MAX, EXACT_MAX + 1, 50_000, 1_000_000])
def test_distinct_values_are_exact_where_they_are_few_and_about_right_beyond(many: int) -> None:
    hashes = np.random.default_rng(many).integers(0, 2**32, 2 * many, np.uint32)
    real, counter = len(np.unique(hashes)), DistinctCounter()
    for some_hashes in (hashes[: many // 2], hashes[many // 2 :], hashes[:many]):
        counter.add(some_hashes)
    assert abs(counter.count - real) <= (0 if real <= EXACT_MAX else 0.05 * real)


def test_writers_count_anew_in_the_background_and_no_other_writer_does_it_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[Callable[[], None]] = []
    monkeypatch.setattr(automatic, "_begin_thread", begun.append)
    warehouse = f"memory://{uuid.uuid4().hex}"
    catalog, other_catalog = Catalog(warehouse), Catalog(warehouse)
    table = computed_once(catalog.create_table("t", SCHEMA, properties=AUTO).append(rows(*range(1000))))
    for id in range(5):
        table = table.append(rows(*range(id * 100, id * 100 + 100)))
    assert table.version == 8
    theirs = other_catalog.load_table("t")
    for id in range(8):
        theirs = theirs.append(rows(id))
    first, second = begun
    # Due since a version before the first one's turn: the second leaves that to it.
    second()
    assert "statistics-computed" not in operations(table)[:2] and known_estimates(table)["id"].distinct == 1
    first()
    assert known_estimates(table)["id"].distinct == 1000 and known_estimates(table)["name"].distinct == 3
    assert operations(table)[0] == "compute statistics"


def operations(table: Any) -> list[str]:
    return [entry.operation for entry in table.refresh().history()]


def test_streams_and_changes_do_not_notice_and_a_large_table_is_left_to_maintain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(automatic, "STEP_BYTES_MAX", 1)
    options = LogOptions()
    catalog = Catalog(f"memory://{uuid.uuid4().hex}", log_options=options)
    table = computed_once(catalog.create_table("t", SCHEMA, properties=AUTO).append(rows(1)))
    for id in range(7):
        table = table.append(rows(id))
    assert wait_for_upkeep() and known_estimates(table)["id"].distinct == 1
    changed_num_rows = table.refresh().changes(2, table.refresh().version).to_arrow().num_rows
    assert catalog.maintain("t")[0].statistics == 2
    table = table.refresh()
    assert table.changes(2, table.version).to_arrow().num_rows == changed_num_rows
    assert table.health().last_day.upkeep >= 1


def test_dates_and_times_beyond_those_of_python_are_counted(catalog: Catalog) -> None:
    far = {"day": (-719_163, 2_932_897), "at": (-62_135_596_800_000_001, 253_402_300_800_000_000)}
    data = pa.table(
        {
            "day": pa.array(far["day"], pa.int32()).cast(pa.date32()),
            "at": pa.array(far["at"], pa.int64()).cast(pa.timestamp("us")),
        }
    )
    table = computed_once(catalog.create_table("t", data.schema)).append(data)
    assert catalog.maintain("t")[0].statistics == 2
    assert {name: (fact.min, fact.max) for name, fact in known_estimates(table).items()} == far


def test_values_that_are_erased_while_they_are_counted_come_to_no_statistics(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA, cluster_by=["id"]).append(rows(1))
    before = computed_once(table).append(rows(7_345))
    plan, said = before.table_head.plan_bound(None), []

    def meanwhile(what: str) -> None:
        # The row is gone by then, and the commits that say so can still be read.
        if what.endswith("older versions expire"):
            with pytest.raises(CommitConflict, match="were erased while its statistics"):
                refreshed(before.table_head, plan, ("id",), lambda: None)
            with pytest.raises(CommitConflict, match="were erased meanwhile"):
                ranked(before.table_head)
            said.append(what)

    assert not catalog.forget("t", "id = 7345", dry_run=False, progress=meanwhile).left and said
    assert engine.estimates(table.refresh()) is None and table.refresh().metadata.ranks is None
