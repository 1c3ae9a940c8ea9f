"""A Delta table becomes a table, and catches up with what delta-rs does to it later."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakelog.catalog import Catalog
from lakelog.cli.main import run
from lakelog.log.errors import InvalidInput, NotFound


def rows(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    kinds, values = [f"k{number % 3}" for number in numbers], [1.5] * len(numbers)
    return pa.table({"id": pa.array(numbers, pa.int64()), "kind": kinds, "v": values})


def of_delta(source: Path, version: int | None = None) -> list[dict]:
    return by_id(DeltaTable(source, version=version).to_pyarrow_table())


def by_id(table: pa.Table) -> list[dict]:
    return sorted(table.to_pylist(), key=lambda row: row["id"])


def test_versions_come_along_and_later_ones_are_caught_up_with(tmp_path: Path) -> None:
    source, catalog = tmp_path / "delta", Catalog(tmp_path / "w")
    write_deltalake(source, rows(0, 10), partition_by=["kind"])
    write_deltalake(source, rows(10, 14), mode="append")
    DeltaTable(source).delete("id = 4")
    done = catalog.import_table(source, "t", format="delta")
    assert (done.is_new, done.versions, done.snapshot, done.rows) == (True, 3, "2", 13)
    table = catalog.load_table("t")
    assert [by_id(table.at(version=each).to_arrow()) for each in (1, 2, 3)] == [
        of_delta(source, version) for version in (0, 1, 2)
    ]
    table.append(pa.table({"id": [100], "kind": ["k9"], "v": [0.5]}))
    table.refresh().delete("id = 13")
    before = sorted(path.name for path in source.rglob("*"))
    write_deltalake(source, rows(20, 23), mode="append")
    DeltaTable(source).delete("kind = 'k0'")
    theirs = of_delta(source)
    dry = catalog.import_table(source, "t", format="delta", dry_run=True)
    assert dry.version is None and catalog.load_table("t").row_count == 13
    again = catalog.import_table(source, "t", format="delta")
    assert (again.added_files, again.removed_files) == (dry.added_files, dry.removed_files)
    found = by_id(catalog.load_table("t").to_arrow())
    expected = [row for row in theirs if row["id"] != 13] + [{"id": 100, "kind": "k9", "v": 0.5}]
    assert found == expected
    assert catalog.import_table(source, "t", format="delta").versions == 0
    assert set(before) <= {path.name for path in source.rglob("*")}


def test_the_command_and_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, catalog = tmp_path / "delta", Catalog(tmp_path / "w")
    write_deltalake(source, rows(0, 5))
    catalog.create_namespace("shop")
    assert (
        run(["import", str(source), "shop.t", "--format", "delta", "--warehouse", str(tmp_path / "w")]) == 0
    )
    assert "5 rows" in capsys.readouterr().out and catalog.load_table("shop.t").row_count == 5
    with pytest.raises(NotFound):
        catalog.import_table(tmp_path / "nothing", "u", format="delta")
    with pytest.raises(InvalidInput, match="not a time zone"):
        catalog.import_table(source, "u", format="delta", time_zone="Nowhere/Else")
    with pytest.raises(InvalidInput, match="leave the time zone out"):
        catalog.import_table(source, "u", format="parquet", time_zone="UTC")
    with pytest.raises(NotFound, match="no Iceberg table"):
        catalog.import_table(source, "shop.t", format="iceberg")
    assert not catalog.table_exists("u")
