"""Lists of files as Arrow IPC streams, for sidecars and manifests: written, and read at a bounded cost.

Any client that may write a table's folder can make such a stream, with a valid hash. Rule: the expanded size
of a stream is known and within its limit before anything of it is decompressed. Its columns are flat, each
with its own name, and all its offsets and texts are valid. Pure. It must not know which columns a list of
files has.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.log.decoding import said
from lakelog.log.errors import FormatError

EXPANDED_BYTES_FREE = 64 * 1024 * 1024
EXPANDED_RATIO = 256
"""A stream may expand to this many times its size and the bytes above.

Otherwise it is written uncompressed.
"""

THREADS_FROM_BYTES = 1024 * 1024
"""A smaller stream is decoded by the calling thread: to hand it to other threads costs more than it saves."""

COLUMNS_MAX = 20_000
PATH_MAX = 2048
REQUIRED = ("path", "size", "rows", "spec", "write", "seq")

# Same as `FilePath` of the log's grammar, after the start of an absolute path or URL. This engine cannot look
# ahead.
_NO_PATH = r"(?:^|/)\.{1,2}(?:/|$)|[\x00-\x1f\x7f\\]|//|^/|/$|^$"

_OWN = r"^data/[0-9][0-9A-Za-z._-]*$"

_SCHEMA, _RECORD_BATCH = 1, 3  # of the union MessageHeader
_HEADER_TYPE, _HEADER = 1, 2  # fields of Message
_BUFFERS, _COMPRESSION = 2, 3  # fields of RecordBatch
_UINT32, _INT32, _UINT16 = struct.Struct("<I"), struct.Struct("<i"), struct.Struct("<H")
_BUFFER = struct.Struct("<qq")
_INT64 = struct.Struct("<q")


def encode_table(table: pa.Table) -> bytes:
    """Return `table` as an Arrow IPC stream in zstd."""
    blob = _written(table, "zstd")
    return blob if table.nbytes <= _expanded_max(blob) else _written(table, None)


def _written(table: pa.Table, compression: str | None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table.combine_chunks())
    blob: bytes = sink.getvalue().to_pybytes()
    return blob


def decode_table(blob: bytes) -> pa.Table:
    """Return the table that `encode_table` wrote.

    Raises FormatError if the bytes are broken, or would expand too far.
    """
    encoded_table = EncodedTable(blob)
    return encoded_table.columns(encoded_table.names)


class EncodedTable:
    """A table that `encode_table` wrote.

    Its columns are decoded on demand, so that other columns cost nothing. Raises FormatError if the bytes are
    broken, or would expand too far, in whichever column. Values are checked as they are decoded.
    """

    def __init__(self, blob: bytes) -> None:
        self._blob = blob
        with _as_broken():
            expanded_bytes = sum(_expanded_bytes(blob))
            if expanded_bytes > _expanded_max(blob):
                raise FormatError(
                    f"a list of files of {len(blob):,} bytes expands to {expanded_bytes:,} bytes, and the limit is "
                    f"{_expanded_max(blob):,}: find out which client wrote this object"
                )
            schema = pa.ipc.open_stream(pa.py_buffer(blob)).schema
            _check_columns(schema)
        self.names: list[str] = schema.names

    @property
    def size_bytes(self) -> int:
        return len(self._blob)

    def columns(self, names: Collection[str]) -> pa.Table:
        """Return these columns, all of which exist, in the order that they have in the table."""
        with _as_broken():
            places = [place for place, name in enumerate(self.names) if name in names]
            threads = len(self._blob) >= THREADS_FROM_BYTES
            options = pa.ipc.IpcReadOptions(included_fields=places, use_threads=threads)
            table = pa.ipc.open_stream(pa.py_buffer(self._blob), options=options).read_all()
            table.validate(full=True)
            return table


@contextmanager
def _as_broken() -> Iterator[None]:
    """Raise FormatError in place of Arrow's errors about broken bytes."""
    try:
        yield
    except (
        pa.ArrowException,
        OSError,
        ValueError,
        TypeError,
        LookupError,
        struct.error,
        MemoryError,
    ) as error:
        raise FormatError(
            f"a list of files cannot be read ({said(error)}): the object was truncated or altered"
        ) from None


def check_list(table: pa.Table, types: Mapping[str, pa.DataType]) -> None:
    """Raise FormatError for a known column of another type, a negative number, or a path that leads
    elsewhere.
    """
    for name in table.column_names:
        type = types.get(name)
        column = table[name]
        if type is None:
            continue
        if column.type != type or (name in REQUIRED and column.null_count):
            raise FormatError(f"a list of files has no {type} in its column {name}: another program wrote it")
        if pa.types.is_integer(type) and (pc.min(column).as_py() or 0) < 0:
            raise FormatError(
                f"a list of files has a negative number in its column {name}: another program wrote it"
            )
    if "path" in types and "path" in table.column_names:
        _check_paths(table["path"])


def _check_paths(paths: pa.ChunkedArray) -> None:
    lengths_bytes = pc.binary_length(paths)
    # Before any copy is made of them: a character has at most four bytes.
    _check_none(paths, pc.greater(lengths_bytes, 4 * PATH_MAX))
    # Most are lakelog's own: a search for a single short pattern takes a third of the time.
    own = pc.match_substring_regex(paths, pattern=_OWN)
    paths = paths.filter(pc.invert(pc.and_(own, pc.less_equal(lengths_bytes, PATH_MAX))))
    if not len(paths):
        return
    places = pc.replace_substring_regex(paths, pattern="^(?:/|[a-z][a-z0-9]*://)", replacement="")
    _check_none(
        paths,
        pc.or_(
            pc.match_substring_regex(places, pattern=_NO_PATH), pc.greater(pc.utf8_length(paths), PATH_MAX)
        ),
    )


def _check_none(paths: pa.ChunkedArray, wrong: pa.ChunkedArray) -> None:
    """Raise FormatError with the first path that is wrong."""
    if (index := pc.index(wrong, True).as_py()) >= 0:
        path = str(paths[index])
        raise FormatError(
            f"a list of files has the path {path[:200]!r}, which is not one of a data file: find out which client "
            "wrote this object"
        )


def _expanded_max(blob: bytes) -> int:
    return EXPANDED_BYTES_FREE + EXPANDED_RATIO * len(blob)


def _check_columns(schema: pa.Schema) -> None:
    if len(schema) > COLUMNS_MAX or len(set(schema.names)) < len(schema):
        raise FormatError("a list of files has a column twice, or too many: another program wrote it")
    for field in schema:
        if not _is_plain(field.type):
            raise FormatError(
                f"a list of files has the column {field.name[:80]!r} of type {str(field.type)[:80]}: another program "
                "wrote it"
            )


@lru_cache(maxsize=1000)
def _is_plain(type: pa.DataType) -> bool:
    tests = (pa.types.is_primitive, pa.types.is_string, pa.types.is_binary, pa.types.is_decimal128)
    return any(test(type) for test in tests)


def _expanded_bytes(blob: bytes) -> Iterator[int]:
    """Yield the decompressed size of each part of a stream, without decompressing it."""
    messages = pa.ipc.MessageReader.open_stream(pa.py_buffer(blob))
    while True:
        try:
            message = messages.read_next_message()
        except StopIteration:
            return
        metadata, body = memoryview(message.metadata), message.body
        root = _UINT32.unpack_from(metadata, 0)[0]
        kind = _byte(metadata, _at(metadata, root, _HEADER_TYPE))
        if kind == _SCHEMA:
            continue
        if kind != _RECORD_BATCH:
            raise FormatError("a list of files has other parts than rows: another program wrote it")
        header = _at(metadata, root, _HEADER)
        batch = header + _UINT32.unpack_from(metadata, header)[0]
        yield from _buffers(metadata, batch, b"" if body is None else memoryview(body))


def _buffers(metadata: memoryview, batch: int, body: memoryview | bytes) -> Iterator[int]:
    place = _at(metadata, batch, _BUFFERS)
    if not place:
        return
    vector = place + _UINT32.unpack_from(metadata, place)[0]
    count = _UINT32.unpack_from(metadata, vector)[0]
    has_compression = bool(_at(metadata, batch, _COMPRESSION))
    for number in range(count):
        offset, length = _BUFFER.unpack_from(metadata, vector + 4 + number * _BUFFER.size)
        if not has_compression or not length:
            yield length
            continue
        # A compressed buffer begins with the size that it expands to; -1 stands for an uncompressed buffer.
        size = _INT64.unpack_from(body, offset)[0] if offset >= 0 else -2
        if size < -1 or length < 0:
            raise FormatError("a list of files has a part of a negative size: another program wrote it")
        yield length if size == -1 else size


def _at(data: memoryview, table: int, field: int) -> int:
    """Return the place of a field of a FlatBuffers table; 0 if it is left out.

    The table begins with the distance back to its fields' places.
    """
    fields = table - _INT32.unpack_from(data, table)[0]
    if fields < 0:
        raise FormatError("a list of files has a broken header: the object was truncated or altered")
    if 4 + 2 * field >= _UINT16.unpack_from(data, fields)[0]:
        return 0
    distance = _UINT16.unpack_from(data, fields + 4 + 2 * field)[0]
    return table + distance if distance else 0


def _byte(data: memoryview, place: int) -> int:
    return data[place] if place else 0
