"""A few rows as bytes, for another client to write: an Arrow stream in the shape of the table, uncompressed.

Any client may have written such bytes. So their schema has to be the table's own, in which no value stands
for many. The rows that are read are then no larger than the stored bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakelog.catalog.core.schema.arrow_types import schema_to_arrow
from lakelog.catalog.core.schema.identity import relaxed
from lakelog.catalog.core.schema.schema import Schema
from lakelog.log.errors import FormatError

_SCHEMA, _RECORD_BATCH = "schema", "record batch"
_HEADER, _COMPRESSION = 2, 3
"""Members of the tables `Message` and `RecordBatch` of Arrow's format."""


def encoded_rows(rows: pa.Table) -> bytes:
    """Return rows that have the shape of a table, as `conform` returns them, as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.combine_chunks())
    return bytes(sink.getvalue())


def decoded_rows(data: bytes, schema: Schema) -> pa.Table:
    """Return the rows. Raises FormatError if they are not in the shape of a table with this schema."""
    return _decoded(data, schema_to_arrow(relaxed(schema), physical=False))


def decoded_all(blobs: Sequence[bytes], schema: Schema) -> Iterator[pa.Table | None]:
    """Yield the rows of each blob, None for bytes that are not in the shape of a table with this schema.

    Any client can have written the bytes.
    """
    table_schema = schema_to_arrow(relaxed(schema), physical=False)
    for data in blobs:
        try:
            yield _decoded(data, table_schema)
        except Exception:
            yield None


def _decoded(data: bytes, expected: pa.Schema) -> pa.Table:
    try:
        messages = pa.ipc.MessageReader.open_stream(data)
        first = messages.read_next_message()
        if first.type != _SCHEMA:  # Arrow reads another message as if it were a schema
            raise FormatError("a proposal does not begin with a schema")
        schema = pa.ipc.read_schema(first)
        if not schema.equals(expected):
            raise FormatError("the rows of a proposal have other columns than the table")
        rows = pa.Table.from_batches(_batches(messages, schema), schema)
        rows.validate(full=True)
        return rows
    except (pa.ArrowException, OSError, StopIteration, struct.error, UnicodeError) as error:
        why = (str(error).splitlines() or ["there is no schema"])[0]
        raise FormatError(f"the rows of a proposal cannot be read: {why}") from error


def _batches(messages: pa.ipc.MessageReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    while True:
        try:
            message = messages.read_next_message()
        except StopIteration:
            return
        if message.type != _RECORD_BATCH:
            raise FormatError("a proposal has more than its schema and batches of rows")
        _check_not_compressed(message)
        yield pa.ipc.read_record_batch(message, schema)


def _check_not_compressed(message: pa.ipc.Message) -> None:
    metadata = message.metadata.to_pybytes()
    [root] = struct.unpack_from("<I", metadata)
    place = _member(metadata, root, _HEADER)
    if place is None:
        raise FormatError("a proposal has a batch without its header")
    [header] = struct.unpack_from("<I", metadata, place)
    if _member(metadata, place + header, _COMPRESSION) is not None:
        raise FormatError("the rows of a proposal are compressed")


def _member(data: bytes, table: int, member: int) -> int | None:
    """Return the place of a member of a FlatBuffers table, None if it is absent."""
    [back] = struct.unpack_from("<i", data, table)
    if not 0 <= table - back < len(data):
        raise FormatError("the rows of a proposal cannot be read")
    [size_bytes] = struct.unpack_from("<H", data, table - back)
    slot = 4 + 2 * member
    if slot + 2 > size_bytes:
        return None
    [offset] = struct.unpack_from("<H", data, table - back + slot)
    return table + offset if offset else None
