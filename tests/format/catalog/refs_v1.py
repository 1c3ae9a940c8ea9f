"""Makes the golden warehouse of a table with tags and branches, as `warehouse_v1` makes its own.

`python -m tests.format.catalog.refs_v1 FOLDER` writes it. What a release has written is never edited.
"""

from __future__ import annotations

from tests.format.catalog.rows_v1 import SCHEMA, data_file, positions
from tests.format.catalog.warehouse_v1 import build
from tests.format.writing import write_objects

from lakelog.catalog import Catalog, Table, col
from lakelog.catalog.core.schema.spark_types import schema_from_spark


def fill(catalog: Catalog) -> None:
    table = catalog.commit_stage(catalog.stage("create", "t", schema_from_spark(SCHEMA)))
    write = table.begin_write()
    files = [data_file(write, number, 100 * number, 10) for number in range(2)]
    table = table.commit_write(write, "append", files)
    table = table.create_branch("b").create_tag("first")
    branch = table.at(ref="b")
    branch = branch.commit_rows(
        branch.begin_write(), "delete", deletes=[positions(files[0], [0, 9])], condition=col("id") >= 0
    )
    branch = appended(branch, 3)
    table = branch.at(ref="main").alter([{"change": "rename-column", "name": ["name"], "new_name": "called"}])
    table = table.create_tag("second")
    table = table.fast_forward("main", "b")
    table = appended(table, 4)
    # An older version, and what it was of is gone then.
    table = table.create_branch("old", version=2).drop_tag("first")
    table.head.tracked.log.snapshot(table.head.view)
    with catalog.transaction() as tx:
        appended(tx.load_table("t", ref="old"), 5)
        appended(tx.load_table("t"), 6).create_tag("loaded")
    catalog.load_table("t").create_branch("b", replace=True)


def appended(table: Table, number: int) -> Table:
    write = table.begin_write()
    return table.commit_write(write, "append", [data_file(write, number, 100 * number, 10 + number)])


if __name__ == "__main__":
    write_objects(build(fill))
