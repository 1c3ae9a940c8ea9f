"""Files and rows for the adapter, as Arrow streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from lakelog.catalog.engine import schema_from_arrow, schema_to_spark
from lakelog.spark.requests.base import FreeJson
from lakelog.spark.requests.system import StreamLengths

STREAM_BYTES = 4 * 1024 * 1024
"""A stream of rows ends when it has about this size in memory. A task of Spark reads each stream."""

FILES_IN_PART = 50_000
"""The most planned files that come to Spark's driver at a time, some 5 MB of Arrow."""

PLANNED_COLUMNS = (
    "path", "size", "rows", "footer", "names", "constants", "deleted", "deletes", "first_row", "version",
)  # fmt: skip
"""The columns of planned files that the adapter gets, if the files have them."""


def in_arrow(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> bytes:
    """Return the batches as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    stream: bytes = sink.getvalue().to_pybytes()
    return stream


def files_in_arrow(files: pa.Table, keys: Sequence[pa.Array] = ()) -> Iterator[bytes]:
    """Return planned files as Arrow streams, with the columns key0, key1, … at the end.

    A stream has at most `FILES_IN_PART` files, so that neither side holds all of them encoded.
    """
    planned_files = files.select([name for name in PLANNED_COLUMNS if name in files.column_names])
    for place, values in enumerate(keys):
        planned_files = planned_files.append_column(f"key{place}", values)
    for first in range(0, max(planned_files.num_rows, 1), FILES_IN_PART):
        yield in_arrow(planned_files.schema, planned_files.slice(first, FILES_IN_PART).to_batches())


def schema_json(schema: pa.Schema) -> FreeJson:
    """Return the columns of `schema` as Spark's JSON of a struct."""
    return schema_to_spark(schema_from_arrow(schema), internal=False)


def in_streams(rows: pa.RecordBatchReader) -> tuple[StreamLengths, bytes]:
    """Return all of `rows` as consecutive streams, with their lengths."""
    streams: list[bytes] = []
    pending_batches: list[pa.RecordBatch] = []
    pending_bytes = 0
    for batch in rows:
        pending_batches.append(batch)
        pending_bytes += batch.nbytes
        if pending_bytes >= STREAM_BYTES:
            streams.append(in_arrow(rows.schema, pending_batches))
            pending_batches, pending_bytes = [], 0
    if pending_batches:
        streams.append(in_arrow(rows.schema, pending_batches))
    return StreamLengths(streams=tuple(len(stream) for stream in streams)), b"".join(streams)
