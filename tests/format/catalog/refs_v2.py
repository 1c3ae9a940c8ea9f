"""Makes the golden warehouse of a table whose branches and tags are of lines that are gone, beside `refs_v1`.

`python -m tests.format.catalog.refs_v2 FOLDER` writes it. What a release has written is never edited.
"""

from __future__ import annotations

from tests.format.catalog.refs_v1 import appended
from tests.format.catalog.rows_v1 import SCHEMA
from tests.format.catalog.warehouse_v1 import build
from tests.format.writing import write_objects

from lakelog.catalog import Catalog, engine
from lakelog.catalog.core.schema.spark_types import schema_from_spark


def fill(catalog: Catalog) -> None:
    table = engine.commit_stage(catalog, engine.stage(catalog, "create", "t", schema_from_spark(SCHEMA)))
    table = appended(table, 1).create_tag("of_main").create_branch("x")
    x = appended(table.at(ref="x"), 2)
    x = appended(x.create_tag("of_x").at(ref="x"), 3)
    table = x.at(ref="of_x").create_branch("y")
    table = table.drop_branch("x")
    table.table_head.tracked.log.snapshot(table.table_head.view)
    table = table.at(ref="of_x").create_tag("of_none").drop_tag("of_x")
    table.at(ref="of_none").create_branch("z")
    with catalog.transaction() as tx:
        tx.load_table("t", ref="of_main").create_branch("w")
        appended(tx.load_table("t"), 4)


if __name__ == "__main__":
    write_objects(build(fill))
