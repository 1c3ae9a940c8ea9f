"""Makes the golden warehouse of a table with tags and branches, as `warehouse_v1` makes its own.

`python -m tests.format.catalog.refs_v1 FOLDER` writes it. What a release has written is never edited.
"""

from __future__ import annotations

from tests.format.catalog.rows_v1 import SCHEMA, data_file, positions
from tests.format.catalog.warehouse_v1 import build
from tests.format.writing import write_objects

from lakelog.catalog import Catalog, Table, col, engine
from lakelog.catalog.core.schema.spark_types import schema_from_spark


def fill(catalog: Catalog) -> None:
    table = engine.commit_stage(catalog, engine.stage(catalog, "create", "t", schema_from_spark(SCHEMA)))
    write = engine.begin_write(table)
    files = [data_file(write, number, 100 * number, 10) for number in range(2)]
    table = engine.commit_write(table, write, "append", files)
    table = table.create_branch("b").create_tag("first")
    branch = table.at(ref="b")
    branch = engine.commit_rows(
        branch,
        engine.begin_write(branch),
        "delete",
        deletes=[positions(files[0], [0, 9])],
        condition=col("id") >= 0,
    )
    branch = appended(branch, 3)
    table = branch.at(ref="main").alter([{"change": "rename-column", "name": ["name"], "new_name": "called"}])
    table = table.create_tag("second")
    table = table.fast_forward("main", "b")
    table = appended(table, 4)
    # An older version, and what it was of is gone then.
    table = table.create_branch("old", version=2).drop_tag("first")
    table.table_head.tracked.log.snapshot(table.table_head.view)
    with catalog.transaction() as tx:
        appended(tx.load_table("t", ref="old"), 5)
        appended(tx.load_table("t"), 6).create_tag("loaded")
    catalog.load_table("t").create_branch("b", replace=True)


def appended(table: Table, number: int) -> Table:
    write = engine.begin_write(table)
    return engine.commit_write(table, write, "append", [data_file(write, number, 100 * number, 10 + number)])


if __name__ == "__main__":
    write_objects(build(fill))
