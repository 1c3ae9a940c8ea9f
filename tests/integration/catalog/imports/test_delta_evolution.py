"""Columns of a Delta table that go and come back, as files that were imported meanwhile have them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.catalog.imports.delta_logs import READER, DeltaLog, column, mapped

from lakelog.catalog import Catalog, SourceDiverged
from lakelog.log.errors import Unsupported

MODE = "delta.columnMapping.mode"
FEATURES = (*READER, "typeWidening")


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    return DeltaLog(tmp_path / "delta")


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path / "w")


def rows(catalog: Catalog, name: str = "t", **at: Any) -> list[dict[str, Any]]:
    table = catalog.load_table(name)
    return sorted((table.at(**at) if at else table).to_arrow().to_pylist(), key=repr)


def with_ids(**columns: list[int]) -> pa.Table:
    fields = [
        pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(id)})
        for id, name in enumerate(columns, 1)
    ]
    return pa.table(list(columns.values()), schema=pa.schema(fields))


@pytest.mark.parametrize(("mode", "copy"), [("name", False), ("id", False), ("name", True)])
def test_a_column_that_was_dropped_and_is_restored_has_its_values(
    mode: str, copy: bool, log: DeltaLog, catalog: Catalog
) -> None:
    a, b = mapped("a", "long", 1, "col-1"), mapped("b", "long", 2, "col-2")
    settings = {MODE: mode}
    old = log.write("0.parquet", with_ids(**{"col-1": [1, 2, 3], "col-2": [10, 20, 30]}))
    log.commit(0, log.protocol(*FEATURES), log.metadata(a, b, **settings), old)
    log.commit(1, log.metadata(a, **settings))
    catalog.import_table(log.folder, "whole", format="delta", copy=copy)
    catalog.import_table(log.folder, "t", format="delta", versions=1, copy=copy)
    catalog.load_table("t").delete("a = 2")
    less = {"add": {**old["add"], "deletionVector": log.vector([2])}}
    new = log.write("2.parquet", with_ids(**{"col-1": [4], "col-2": [40]}))
    log.commit(2, log.metadata(a, b, **settings), log.remove(old), less, new)
    for name in ("whole", "t"):
        catalog.import_table(log.folder, name, format="delta")
    assert rows(catalog) == [{"a": 1, "b": 10}, {"a": 4, "b": 40}]
    assert rows(catalog, "whole") == [{"a": 1, "b": 10}, {"a": 2, "b": 20}, {"a": 4, "b": 40}]
    # The row that was deleted here is all that is different from the source.
    assert rows(catalog, "t", ref="imported") == rows(catalog, "whole")
    assert catalog.import_table(log.folder, "t", format="delta").versions == 0
    # So it is where all of that is history.
    catalog.import_table(log.folder, "u", format="delta", versions=2, copy=copy)
    assert rows(catalog, "u", version=1) == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert rows(catalog, "u") == rows(catalog, "whole")


def test_rows_that_were_rewritten_here_lack_what_the_source_has_again(
    log: DeltaLog, catalog: Catalog
) -> None:
    a, b, settings = mapped("a", "long", 1, "a"), mapped("b", "long", 2, "b"), {MODE: "name"}
    old = [log.write(f"{number}.parquet", pa.table({"a": [number], "b": [10]})) for number in range(2)]
    log.commit(0, log.protocol(*FEATURES), log.metadata(a, b, **settings), *old)
    catalog.import_table(log.folder, "t", format="delta")
    log.commit(1, log.metadata(a, **settings))
    catalog.import_table(log.folder, "t", format="delta")
    catalog.load_table("t").compact()
    # A column that is new is no matter.
    log.commit(2, log.metadata(a, mapped("c", "long", 3, "c"), **settings))
    catalog.import_table(log.folder, "t", format="delta")
    assert rows(catalog) == [{"a": 0, "c": None}, {"a": 1, "c": None}]
    log.commit(3, log.metadata(a, b, **settings))
    with pytest.raises(SourceDiverged, match=r"rows of the files .*0.parquet, .*1.parquet were"):
        catalog.import_table(log.folder, "t", format="delta")


@pytest.mark.parametrize("partition", [[], ["a"]])
def test_a_column_that_was_widened_and_is_restored_has_its_values(
    partition: list[str], log: DeltaLog, catalog: Catalog
) -> None:
    remaining_column, values = column("b", "long"), {"a": "1"} if partition else {}
    narrow = log.metadata(column("a", "integer"), remaining_column, partition=partition)
    change = {"fromType": "integer", "toType": "long"}
    wide = log.metadata(
        column("a", "long", **{"delta.typeChanges": [change]}), remaining_column, partition=partition
    )
    shape = {"b": [7]} if partition else {"a": pa.array([1], pa.int32()), "b": [7]}
    log.commit(
        0, log.protocol(*FEATURES), narrow, log.write("0.parquet", pa.table(shape), partitionValues=values)
    )
    log.commit(1, wide)
    catalog.import_table(log.folder, "t", format="delta")
    log.commit(2, narrow)
    for name in ("t", "u"):
        catalog.import_table(log.folder, name, format="delta")
        assert [rows(catalog, name, version=version) for version in (1, 2, 3)] == [[{"a": 1, "b": 7}]] * 3
        assert catalog.load_table(name).scan(filter="a = 1").to_arrow().num_rows == 1


def test_dates_that_became_times_are_found_by_filters(log: DeltaLog, catalog: Catalog) -> None:
    """The days of a checkpoint of before are not microseconds."""
    fields = (column("day", "date"), column("id", "long"), column("at", "timestamp"))
    day = dt.date(2024, 2, 29)
    add = log.write("0.parquet", pa.table({"day": [day], "id": [1]}))
    del add["add"]["stats"]
    values = {"day": day}
    parsed = {"numRecords": 1, "minValues": values, "maxValues": values, "nullCount": {"day": 0}}
    log.commit(0, log.protocol(*FEATURES), log.metadata(*fields), add)
    log.checkpoint(
        f"{0:020d}.checkpoint.parquet",
        [log.protocol(*FEATURES), log.metadata(*fields), {"add": {**add["add"], "stats_parsed": parsed}}],
    )
    change = {"fromType": "date", "toType": "timestamp_ntz"}
    log.commit(
        1, log.metadata(column("day", "timestamp_ntz", **{"delta.typeChanges": [change]}), *fields[1:])
    )
    for versions in (1, 2):
        name = f"t{versions}"
        catalog.import_table(log.folder, name, format="delta", versions=versions)
        scan = catalog.load_table(name).scan(["id"], filter="day >= TIMESTAMP_NTZ '2024-02-29 00:00:00'")
        assert scan.to_arrow()["id"].to_pylist() == [1]


def test_a_column_that_older_files_had_has_their_values_at_a_later_import(
    log: DeltaLog, catalog: Catalog
) -> None:
    log.commit(
        0,
        log.protocol(),
        log.metadata(column("a", "long")),
        log.write("0.parquet", pa.table({"a": [1], "b": [5]})),
    )
    catalog.import_table(log.folder, "t", format="delta")
    rows_before = catalog.load_table("t").scan(row_ids=True).to_arrow().to_pylist()
    log.commit(1, log.metadata(column("a", "long"), column("b", "long")))
    finished_table = catalog.import_table(log.folder, "t", format="delta")
    assert (finished_table.added_files, finished_table.removed_files, finished_table.changed_files) == (
        0,
        0,
        0,
    )
    table = catalog.load_table("t")
    assert rows(catalog) == [{"a": 1, "b": 5}] and rows(catalog, version=1) == [{"a": 1}]
    # They are the rows that they were.
    assert table.scan(row_ids=True).to_arrow().drop(["b"]).to_pylist() == rows_before


def test_a_past_version_that_needs_more_than_the_newest_is_named(log: DeltaLog, catalog: Catalog) -> None:
    add = log.write("0.parquet", pa.table({"a": [1]}))
    log.commit(0, log.protocol(*FEATURES, "later"), log.metadata(column("a", "long")), add)
    log.commit(1, log.protocol(*FEATURES))
    with pytest.raises(
        Unsupported, match=r"version 0 .* needs the feature later: .*import at most 1 versions"
    ):
        catalog.import_table(log.folder, "t", format="delta")
    catalog.import_table(log.folder, "t", format="delta", versions=1)
    assert rows(catalog) == [{"a": 1}]
