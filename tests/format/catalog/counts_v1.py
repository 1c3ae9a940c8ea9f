"""Makes the golden warehouse of a table whose commits say how many rows they have changed, as `warehouse_v1` makes its
own.

`python -m tests.format.catalog.counts_v1 FOLDER` writes it. What a release has written is never edited.
"""

from __future__ import annotations

from tests.format.catalog.rows_v1 import SCHEMA, data_file, positions
from tests.format.catalog.warehouse_v1 import build
from tests.format.writing import write_objects

from lakelog.catalog import Catalog, col, engine
from lakelog.catalog.core.schema.spark_types import schema_from_spark


def fill(catalog: Catalog) -> None:
    table = engine.commit_stage(catalog, engine.stage(catalog, "create", "t", schema_from_spark(SCHEMA)))
    write = engine.begin_write(table)
    first, second = data_file(write, 0, 0, 10), data_file(write, 1, 10, 5)
    table = engine.commit_write(table, write, "append", [first, second])
    write = engine.begin_write(table)
    copied_data_file = data_file(write, 0, 0, 10)
    table = engine.commit_rows(
        table, write, "update", [copied_data_file], removed=[first.path], condition=col("id") < 4, updated=4
    )
    write = engine.begin_write(table)
    table = engine.commit_rows(
        table,
        write,
        "merge",
        [data_file(write, 0, 0, 12)],
        removed=[copied_data_file.path],
        deletes=[positions(second, [0, 1])],
        condition=col("id") < 20,
        inserted=3,
        updated=2,
    )
    table = engine.commit_rows(table, engine.begin_write(table), "merge", deletes=[positions(second, [2])])


if __name__ == "__main__":
    write_objects(build(fill))
