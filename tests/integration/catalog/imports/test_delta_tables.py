"""A Delta table becomes a table, and catches up with what delta-rs does to it later."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.integration.catalog.imports.delta_logs import READER, DeltaLog, column

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
    finished_table = catalog.import_table(source, "t", format="delta")
    assert (finished_table.is_new, finished_table.versions, finished_table.snapshot, finished_table.rows) == (
        True,
        3,
        "2",
        13,
    )
    table = catalog.load_table("t")
    assert [by_id(table.at(version=number).to_arrow()) for number in (1, 2, 3)] == [
        of_delta(source, version) for version in (0, 1, 2)
    ]
    table.append(pa.table({"id": [100], "kind": ["k9"], "v": [0.5]}))
    table.refresh().delete("id = 13")
    names_before = sorted(path.name for path in source.rglob("*"))
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
    assert set(names_before) <= {path.name for path in source.rglob("*")}


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


@pytest.mark.parametrize("at_once", [True, False])
def test_a_row_that_comes_back_while_others_go_is_found_by_filters(tmp_path: Path, at_once: bool) -> None:
    log, catalog = DeltaLog(tmp_path / "delta"), Catalog(tmp_path / "w")
    file = log.write("a.parquet", pa.table({"id": pa.array(range(10), pa.int64())}))["add"]
    live = {
        "numRecords": 10,
        "minValues": {"id": 0},
        "maxValues": {"id": 8},
        "nullCount": {"id": 0},
        "tightBounds": True,
    }
    first = {"add": {**file, "stats": json.dumps(live), "deletionVector": log.vector([9])}}
    wide = json.dumps({"numRecords": 10, "tightBounds": False})
    then = {"add": {**file, "stats": wide, "deletionVector": log.vector([0, 1])}}
    log.commit(0, log.protocol(*READER), log.metadata(column("id", "long")), first)
    if not at_once:
        catalog.import_table(log.folder, "t", format="delta")
    log.commit(1, log.remove(first), then)
    catalog.import_table(log.folder, "t", format="delta")
    table = catalog.load_table("t")
    assert table.scan(filter="id > 8").to_arrow()["id"].to_pylist() == [9]
    assert sorted(table.to_arrow()["id"].to_pylist()) == [*range(2, 10)]
    assert sorted(table.at(version=1).to_arrow()["id"].to_pylist()) == [*range(9)]
