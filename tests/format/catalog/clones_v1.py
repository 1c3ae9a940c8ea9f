"""Makes the golden warehouse of a table, its clone, and the clone of that, as `warehouse_v1` makes its own.

`python -m tests.format.catalog.clones_v1 FOLDER` writes it. What a release has written is never edited.
"""

from __future__ import annotations

import pyarrow as pa
from pyroaring import BitMap
from tests.format.catalog.warehouse_v1 import build
from tests.format.writing import write_objects

from lakelog.catalog import Catalog, Table, engine
from lakelog.catalog.core.files import inline_deletes
from lakelog.catalog.engine import DataFile
from lakelog.catalog.keeping.clones import materializing
from lakelog.log import wait_for_background

SCHEMA = pa.schema([("id", pa.int64())])


def added(table: Table, rows: int, *deleted: int) -> Table:
    write = engine.begin_write(table)
    file = DataFile(
        path=f"data/{write.version:020}-{write.id}-0.parquet",
        size_bytes=2000,
        rows=rows - len(deleted),
        write_id=write.id,
        deletes=inline_deletes(BitMap(deleted)) if deleted else None,
    )
    return engine.commit_write(table, write, "append", [file])


def fill(catalog: Catalog) -> None:
    added(added(catalog.create_table("a", SCHEMA), 3), 10, 4, 5)
    catalog.clone("a", "b")
    catalog.clone("b", "c")
    # There are no bytes behind these files.
    real, materializing._copy = materializing._copy, lambda *asked: None
    try:
        catalog.load_table("c").materialize()
    finally:
        materializing._copy = real
    added(catalog.load_table("b"), 1)
    catalog.expire("c", retain_last=1, dry_run=False)
    catalog.load_table("c").materialize()
    for name in ("a", "b", "c"):
        head = catalog.load_table(name).table_head
        head.tracked.log.snapshot(head.view)
    wait_for_background()


if __name__ == "__main__":
    write_objects(build(fill))
