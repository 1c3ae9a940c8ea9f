"""Files and rows for the adapter, as Arrow streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from lakelog.catalog.core.schema import schema_from_arrow, schema_to_spark
from lakelog.spark.requests.base import FreeJson
from lakelog.spark.requests.system import Streams

STREAM_BYTES = 4 * 1024 * 1024
"""A stream of rows ends when it has about this size in memory: a task of Spark's reads each."""

FILES_IN_PART = 50_000
"""So many planned files come to Spark's driver at a time, some 5 MB of Arrow."""

PLANNED_COLUMNS = (
    "path", "size", "rows", "footer", "names", "constants", "deleted", "deletes", "first_row", "version",
)  # fmt: skip
"""What the adapter learns of the files that it is to read, as far as there is any of it."""


def in_arrow(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> bytes:
    """Return the batches as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    stream: bytes = sink.getvalue().to_pybytes()
    return stream


def files_in_arrow(files: pa.Table, keys: Sequence[pa.Array] = ()) -> Iterator[bytes]:
    """Return planned files as Arrow streams, the columns key0, key1, … behind: one of at most `FILES_IN_PART` files
    each, so that neither side holds all of them encoded."""
    known = files.select([name for name in PLANNED_COLUMNS if name in files.column_names])
    for place, values in enumerate(keys):
        known = known.append_column(f"key{place}", values)
    for first in range(0, max(known.num_rows, 1), FILES_IN_PART):
        yield in_arrow(known.schema, known.slice(first, FILES_IN_PART).to_batches())


def schema_json(schema: pa.Schema) -> FreeJson:
    """Return the columns of `schema` as Spark's JSON of a struct."""
    return schema_to_spark(schema_from_arrow(schema), internal=False)


def in_streams(rows: pa.RecordBatchReader) -> tuple[Streams, bytes]:
    """Answer all of `rows`, as streams one after the other."""
    streams: list[bytes] = []
    waiting: list[pa.RecordBatch] = []
    waiting_bytes = 0
    for batch in rows:
        waiting.append(batch)
        waiting_bytes += batch.nbytes
        if waiting_bytes >= STREAM_BYTES:
            streams.append(in_arrow(rows.schema, waiting))
            waiting, waiting_bytes = [], 0
    if waiting:
        streams.append(in_arrow(rows.schema, waiting))
    return Streams(streams=tuple(len(stream) for stream in streams)), b"".join(streams)
