"""Imported tables in Spark: what plain Parquet of the same rows has, streams that go on over imports, and adoption."""

from __future__ import annotations

import datetime as dt
import shutil
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.spark.versions import read_changes

from lakelog.catalog import Catalog, col

ROWS = pa.table(
    {
        "id": pa.array(range(8), pa.int64()),
        "day": ["a", "b", "a", None, "b c", "a", "b", "ü/%"],
        "n": pa.array([1, None, -3, 4, 5, 6, 7, 8], pa.int32()),
        "x": [0.5, float("nan"), -0.0, None, 1e300, 2.5, float("-inf"), 0.0],
        "amount": pa.array([Decimal(f"{i}.25") if i % 3 else None for i in range(8)], pa.decimal128(9, 2)),
        "at": pa.array([dt.datetime(1969 + i, 1, 2, 3, 4, 5, 678901, dt.UTC) for i in range(8)]),
        "name": [None if i == 5 else f"name {i}" for i in range(8)],
        "tags": [[], None, ["x"], ["y", None], ["z"], [], [], ["x"]],
        "part": [{"a": i, "b": None if i % 2 else str(i)} for i in range(8)],
    }
)
QUERIES = (
    "SELECT id, day, n, CAST(x AS STRING), amount, at, name, tags, part FROM {} ORDER BY id",
    "SELECT day, count(*), sum(n), max(amount), min(at), count(name) FROM {} GROUP BY day ORDER BY day",
    "SELECT id FROM {} WHERE day = 'a' AND n > 1 OR name IS NULL OR day IS NULL OR x > 1 ORDER BY id",
    "SELECT id, part.b FROM {} WHERE at < TIMESTAMP '1974-01-01 00:00:00' AND part.a >= 1 "
    "OR amount IN (1.25, 7.25) OR array_contains(tags, 'x') ORDER BY id",
)


def iceberg(folder: Path) -> str:
    """Make an Iceberg table with a deletion vector, and a column that is called otherwise in its files."""
    renamed_columns = ROWS.rename_columns(["old" if name == "name" else name for name in ROWS.column_names])
    table = Catalog(folder).create_table("t", renamed_columns.schema)
    table = table.alter([{"change": "set-partitioning", "fields": ["day"]}]).append(renamed_columns)
    table = table.alter([{"change": "rename-column", "name": ["old"], "new_name": "name"}])
    return table.delete(col("id") == 2).export_iceberg().url


def delta(folder: Path) -> str:
    write_deltalake(folder, ROWS, partition_by=["day"])
    DeltaTable(folder).delete("id = 2")
    return str(folder)


@pytest.mark.adapter
def test_an_imported_table_has_what_plain_parquet_of_its_rows_has(lake, tmp_path):
    pq.write_table(ROWS.filter(pc.not_equal(ROWS["id"], 2)), tmp_path / "plain.parquet")
    sources = {"iceberg": iceberg(tmp_path / "ice"), "delta": delta(tmp_path / "delta")}
    for format, source in sources.items():
        lake.sql(f"CALL lake.system.import_table('{source}', '{format}', 'of_{format}')")
    for query in QUERIES:
        expected = lake.sql(query.format(f"parquet.`{tmp_path}/plain.parquet`"))
        for format in sources:
            assert lake.sql(query.format(f"lake.of_{format}")) == expected, (format, query)
    shutil.move(tmp_path / "delta/_delta_log", tmp_path / "kept")
    lake.sql("CALL lake.system.adopt_files('of_delta', dry_run => false)")
    lake.sql("UPDATE lake.of_delta SET n = 0 WHERE id = 4")
    assert lake.sql("SELECT sum(n) FROM lake.of_delta WHERE day IS NOT NULL") == [(22,)]
    assert lake.catalog.load_table("of_delta").table_head.state.adopted is not None


def test_streams_go_on_over_imports_with_the_changes_that_the_source_made(lake, streams, tmp_path):
    source = tmp_path / "delta"
    for start in (0, 3):
        write_deltalake(source, pa.table({"x": range(start, start + 3)}), mode="append")
    call = f"CALL lake.system.import_table('{source}', 'delta', 't')"
    lake.sql(call)
    changes = read_changes(lake.spark.readStream, f"{lake.name}.t")
    shown = changes.selectExpr("concat_ws(' ', _commit_version, _change_type, x)")
    assert sorted(sum(streams.batches(shown, "changes"), [])) == [f"2 insert {x}" for x in range(6)]
    assert sum(streams.batches(streams.table("t"), "rows"), []) == list(range(6))
    write_deltalake(source, pa.table({"x": [10, 11]}), mode="append")
    lake.sql(call)
    assert streams.batches(streams.table("t"), "rows") == [[10, 11]]
    DeltaTable(source).delete("x = 4")
    lake.sql(call)
    # The source has rewritten the file, so that its other rows are others too.
    assert streams.batches(shown, "changes") == [
        ["3 insert 10", "3 insert 11", "4 delete 3", "4 delete 4", "4 delete 5", "4 insert 3", "4 insert 5"]
    ]
    lake.sql("DELETE FROM lake.t WHERE x = 0")
    lake.sql(call)
    assert streams.batches(shown, "changes") == [["5 delete 0"]], "an import of nothing is no version"
