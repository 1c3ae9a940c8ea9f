"""Delta tables that delta-rs has written: each of their versions has the rows that it reads."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from tests.integration.catalog.imports.delta_logs import (
    LOG,
    rows_of,
    rows_of_delta,
    source_of,
    versions_with_files,
)

from lakelog.catalog.formats.imports.source import ImportSource

DAYS = [dt.date(2024, 2, 29), dt.date(1969, 12, 31), None]


def people(*ids: int, name: str = "ada") -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": pa.array([f"{name} {id}" for id in ids]),
            "region": pa.array([f"r {id % 2}/é%" if id % 3 else None for id in ids]),
            "amount": pa.array([Decimal(id) / 4 for id in ids], pa.decimal128(20, 4)),
            "at": pa.array(
                [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999 - id % 1000) for id in ids],
                pa.timestamp("us", "UTC"),
            ),
            "inner": pa.array([{"x": id, "tags": [str(id)] * (id % 2)} for id in ids]),
        }
    )


@pytest.fixture
def life(tmp_path: Path) -> Path:
    """A table with each kind of commit, of which the log of the first ones is gone."""
    folder = tmp_path / "a table"
    deltalake.write_deltalake(folder, people(*range(20)), partition_by=["region"], description="of people")
    deltalake.write_deltalake(folder, people(*range(20, 40)), mode="append")
    table = deltalake.DeltaTable(folder)
    table.delete("id % 7 = 1")
    table.update(updates={"name": "'bob'"}, predicate="id > 30")
    table.create_checkpoint()
    more = people(50, 51).append_column("note", pa.array(["new", None]))
    deltalake.write_deltalake(folder, more, mode="append", schema_mode="merge")
    table = deltalake.DeltaTable(folder)
    table.merge(
        people(3, 4, 99, name="eve"), "t.id = s.id", source_alias="s", target_alias="t"
    ).when_matched_update({"name": "s.name"}).when_not_matched_insert(
        {"id": "s.id", "name": "s.name", "region": "s.region"}
    ).execute()
    table.optimize.compact()
    table.restore(4)
    last = people(61, 65).append_column("note", pa.nulls(2, pa.string()))
    deltalake.write_deltalake(folder, last, mode="overwrite", predicate="region = 'r 1/é%'")
    return folder


def test_every_version_has_the_rows_that_delta_reads(life: Path) -> None:
    found_versions_with_files = versions_with_files(source_of(life))
    assert [version.id for version, _ in found_versions_with_files] == [str(number) for number in range(9)]
    assert [version.operation for version, _ in found_versions_with_files][:3] == ["WRITE", "WRITE", "DELETE"]
    assert all(version.time_us > 1_700_000_000_000_000 for version, _ in found_versions_with_files)
    for version, files in found_versions_with_files:
        assert rows_of(life, files, version) == rows_of_delta(life, version), version.id


def test_the_newest_version_is_the_same_by_its_changes_and_by_itself(life: Path) -> None:
    source = source_of(life)
    version, files = versions_with_files(source)[-1]
    live = source.live({}, version.schema)
    assert (live.id, live.schema, live.spec) == (version.id, version.schema, version.spec)
    assert {file.path: file for file in live.added} == {file.path: file for file in files}


def test_older_versions_are_folded_into_the_first(life: Path) -> None:
    found_versions_with_files = versions_with_files(source_of(life), newest=3)
    assert [version.id for version, _ in found_versions_with_files] == ["6", "7", "8"]
    for version, files in found_versions_with_files:
        assert rows_of(life, files, version) == rows_of_delta(life, version)


def test_a_log_that_was_cleaned_up_begins_at_its_checkpoint(life: Path) -> None:
    for number in range(4):
        (life / LOG / f"{number:020d}.json").unlink()
    found_versions_with_files = versions_with_files(source_of(life))
    assert [version.id for version, _ in found_versions_with_files] == ["3", "4", "5", "6", "7", "8"]
    # What the commit itself said of its time is gone with it.
    assert (found_versions_with_files[0][0].operation, found_versions_with_files[0][0].time_us) == (
        None,
        None,
    )
    for version, files in found_versions_with_files[1:]:
        assert rows_of(life, files, version) == rows_of_delta(life, version)


def test_what_the_table_says_of_itself(life: Path) -> None:
    source: ImportSource = source_of(life)
    assert source.format == "delta" and source.url == str(life)
    assert source.identity == str(deltalake.DeltaTable(life).metadata().id)
    assert dict(source.properties) == {"comment": "of people"}


def test_columns_keep_their_ids_over_versions_and_later_imports(life: Path) -> None:
    source = source_of(life)
    versions_before = source_of(life).versions(100)
    first = next(versions_before)
    last = list(versions_before)[-1]
    # delta-rs has moved a column meanwhile, and added one.
    assert first.schema.names != last.schema.names[:6]
    assert {field.name: field.id for field in first.schema.fields}.items() < {
        field.name: field.id for field in last.schema.fields
    }.items()
    live = source.live({}, last.schema)
    assert live.schema == last.schema
    assert {file.spec_id for file in live.added} == {last.spec.id}


@pytest.mark.parametrize(
    "values",
    [
        pa.array([True, False, None]),
        pa.array([-128, 127, None], pa.int8()),
        pa.array([-(2**63), 2**63 - 1, None], pa.int64()),
        pa.array([1.5, -0.25, None], pa.float32()),
        pa.array([2.5e10, float("inf"), None], pa.float64()),
        pa.array([Decimal("12.30"), Decimal("0.05"), None], pa.decimal128(10, 2)),
        pa.array(["a=b/c%20d é", "x:y?#z", None]),
        pa.array(DAYS),
        pa.array([dt.datetime(2024, 2, 29, 1, 2, 3, 4), dt.datetime(1969, 12, 31), None], pa.timestamp("us")),
        pa.array(
            [dt.datetime(2024, 2, 29, 1, 2, 3, 4), dt.datetime(1969, 12, 31), None], pa.timestamp("us", "UTC")
        ),
    ],
    ids=lambda values: str(values.type),
)
def test_partitions_by_each_type_have_the_values_that_delta_reads(values: pa.Array, tmp_path: Path) -> None:
    rows = pa.table({"part": values, "id": pa.array([1, 2, 3], pa.int32())})
    deltalake.write_deltalake(tmp_path, rows, partition_by=["part"])
    live = source_of(tmp_path, "UTC").live({}, None)
    assert len(live.added) == 3
    assert rows_of(tmp_path, live.added, live) == rows_of_delta(tmp_path, live)
    assert rows_of(tmp_path, live.added, live) == sorted(map(repr, rows.to_pylist()))
