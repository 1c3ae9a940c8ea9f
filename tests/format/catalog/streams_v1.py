"""Makes the golden warehouse of a table that streams have written to, as `warehouse_v1` makes its own.

`python -m tests.format.catalog.streams_v1 FOLDER` writes it. What a release has written is never edited.
"""

from __future__ import annotations

from tests.format.catalog.warehouse_v1 import SCHEMA, build
from tests.format.writing import write_objects

from lakelog.catalog import Catalog, StreamBatch, engine
from lakelog.catalog.core.schema.spark_types import schema_from_spark

POSITIONS = (
    '{"format":1,"table":"id000000000000000000000001","generation":1,"version":4,"index":0,"whole":true,'
    '"begun":4,"begun_whole":true}',
    '{"format":1,"table":"id000000000000000000000001","generation":1,"version":6,"index":2,"whole":false,'
    '"begun":4,"begun_whole":true}',
)
"""What checkpoints hold."""


def fill(catalog: Catalog) -> None:
    table = catalog.create_table("t", schema_from_spark(SCHEMA))
    for stream, number in (("3e7c5f4e-6d0f-4a53-9a8f-0f4b9f0a7c11", 0), ("a job", 7), ("a job", 8)):
        batch = StreamBatch(stream=stream, number=number)
        table = engine.commit_write(table, engine.begin_write(table), "append", (), batch=batch)
    table.table_head.tracked.log.snapshot(table.table_head.view)


if __name__ == "__main__":
    write_objects(build(fill))
