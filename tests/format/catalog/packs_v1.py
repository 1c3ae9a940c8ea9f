"""Makes the golden warehouse of a table whose entries are in packs, as `warehouse_v1` makes its own.

`python -m tests.format.catalog.packs_v1 FOLDER` writes it. What a release has written is never edited.
"""

from __future__ import annotations

from unittest.mock import patch

import pyarrow as pa
from tests.format.catalog.warehouse_v1 import build as built
from tests.format.writing import write_objects

from lakelog.catalog import Catalog, ColumnStats, Table, col, engine
from lakelog.catalog.core.files import manifest_bounds, manifests
from lakelog.catalog.core.logs import commits
from lakelog.catalog.engine import DataFile

FILES = 30
SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.int32()), ("name", pa.string())])


def fill(catalog: Catalog) -> None:
    """Have files come and go: they are in a pack of a base, in another of a snapshot, in a manifest, and in commits."""
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", SCHEMA, partition_by=["day"])
    table = _added_table(table, range(FILES))
    catalog.expire(table="n.t", retain_last=1, dry_run=False)
    table = table.refresh()
    table = _added_table(table, range(FILES, FILES + 12))
    table.delete(col("day") == 1)
    table = catalog.load_table("n.t")
    table = _added_table(table, range(FILES + 12, FILES + 14))
    table.table_head.tracked.log.snapshot(table.table_head.view)
    _added_table(table, [FILES + 14])


def _added_table(table: Table, numbers: range | list[int]) -> Table:
    write = engine.begin_write(table)
    partition, spec = table.spec.fields[0].id, table.spec.id
    ids = {field.name: field.id for field in table.schema.fields}
    files = [
        DataFile(
            path=f"data/{write.version:020d}-{write.id}-{number}.parquet",
            size_bytes=1000 + number,
            rows=10,
            spec_id=spec,
            partition={partition: number % 5},
            stats={
                ids["id"]: ColumnStats(nulls=0, min=number * 10, max=number * 10 + 9),
                ids["name"]: ColumnStats(nulls=number % 2, min=f"name {number:03}", max=f"name {number:03}z"),
            },
            write_id=write.id,
        )
        for number in numbers
    ]
    return engine.commit_write(table, write, "append", files)


def build() -> dict[str, bytes]:
    """Return the objects of the warehouse, in which few files are many."""
    with (
        patch.object(manifest_bounds, "BOUNDED_FROM", 4),
        patch.object(manifests, "PACKED_FROM", 10),
        patch.object(manifests, "PACK_LEAF_ENTRIES", 6),
        patch.object(manifests, "ALWAYS_MERGED_BELOW", 4),
        patch.object(commits, "SIDECAR_FROM_FILES", 5),
    ):
        return built(fill)


if __name__ == "__main__":
    write_objects(build())
