"""Rows for the adapter, as Arrow streams one after the other: a task of Spark's reads each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.spark.asking import Answer, Params, in_arrow

if TYPE_CHECKING:
    import pyarrow as pa

STREAM_BYTES = 4 * 1024 * 1024
"""A stream ends when it has about this size in memory."""


def schema_json(schema: pa.Schema) -> Params:
    """Return the columns of `schema` as Spark's JSON of a struct."""
    from lakelog.catalog.schema import schema_from_arrow, schema_to_spark

    return schema_to_spark(schema_from_arrow(schema), internal=False)


def in_streams(rows: pa.RecordBatchReader) -> Answer:
    """Answer all of `rows`: `streams` are the lengths of the streams that the bytes consist of."""

    streams: list[bytes] = []
    waiting: list[pa.RecordBatch] = []
    waiting_bytes = 0
    for batch in rows:
        waiting.append(batch)
        waiting_bytes += batch.nbytes
        if waiting_bytes >= STREAM_BYTES:
            streams.append(in_arrow(rows.schema, waiting)[1])
            waiting, waiting_bytes = [], 0
    if waiting:
        streams.append(in_arrow(rows.schema, waiting)[1])
    return {"streams": [len(stream) for stream in streams]}, b"".join(streams)
