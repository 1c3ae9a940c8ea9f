"""Makes the golden warehouse of a table with row ids and deleted rows, as `warehouse_v1` makes its own.

`python -m tests.format.catalog.rows_v1 FOLDER` writes it. What a release has written is never edited.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable

from pyroaring import BitMap
from tests.format.catalog.warehouse_v1 import build
from tests.format.writing import write_objects

from lakelog.catalog import Catalog, ColumnStats, col, engine
from lakelog.catalog.core.files.data_file import file_path
from lakelog.catalog.core.schema.spark_types import schema_from_spark
from lakelog.catalog.engine import DataFile
from lakelog.log import WriteRef

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "integer", "nullable": True, "metadata": {}},
        {"name": "name", "type": "string", "nullable": True, "metadata": {}},
    ],
}

SCATTERED = [number * number % 40_000 for number in range(2000)]
"""Positions whose vector is too large for a commit."""


def data_file(write: WriteRef, number: int, first: int, rows: int) -> DataFile:
    """A file that a commit may name; it is not read here."""
    return DataFile(
        path=file_path(write, f"{number:05}"),
        size_bytes=1000 + number,
        rows=rows,
        stats={1: ColumnStats(nulls=0, min=first, max=first + rows - 1), 2: ColumnStats(nulls=2)},
        crc=number,
        footer_crc=number + 1,
    )


def positions(file: DataFile, rows: Iterable[int]) -> dict[str, str]:
    return {"path": file.path, "positions": base64.b64encode(BitMap(rows).serialize()).decode()}


def fill(catalog: Catalog) -> None:
    table = engine.commit_stage(catalog, engine.stage(catalog, "create", "t", schema_from_spark(SCHEMA)))
    write = engine.begin_write(table)
    small, large, removed_data_file = (
        data_file(write, number, 100_000 * number, rows) for number, rows in enumerate((10, 40_000, 3))
    )
    table = engine.commit_write(table, write, "append", [small, large, removed_data_file])
    table = engine.commit_rows(
        table,
        engine.begin_write(table),
        "delete",
        deletes=[positions(small, [0, 9]), positions(large, SCATTERED), positions(removed_data_file, [0, 1])],
        condition=col("id") >= 0,
    )
    table = table.alter([{"change": "update-column-type", "name": ["id"], "type": "long"}])
    write = engine.begin_write(table)
    table = engine.commit_rows(
        table,
        write,
        "update",
        [data_file(write, 0, 4, 2)],
        deletes=[positions(small, [4, 5]), positions(removed_data_file, [2])],
        condition=col("id") < 10,
    )
    table.table_head.tracked.log.snapshot(table.table_head.view)
    write = engine.begin_write(table)
    table = engine.commit_rows(table, write, "compact", [data_file(write, 0, 0, 6)], removed=[small.path])
    table.rollback_to_version(3)


if __name__ == "__main__":
    write_objects(build(fill))
