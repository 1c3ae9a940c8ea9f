"""Deletion vectors: which rows of a data file are deleted, though they are still in it.

A vector is a 32-bit Roaring bitmap in its portable form, of the positions of rows in the file, from 0. Small
vectors stand in the file's entry. A commit's other vectors stand together in a puffin file. It is named like
a data file of the same write, so that abandoned puffin files are deleted like abandoned data files. A vector
is never changed: a delete of more rows gives the file another vector, which has the older positions too.
Pure: `logs.stored_vectors` reads and writes the objects.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from lakelog.catalog.core.files.puffin import PuffinVector, puffin_of_vectors
from lakelog.log import WriteRef
from lakelog.log.decoding import JSON_MAX, decoded
from lakelog.log.errors import FormatError, InvalidInput
from lakelog.log.grammar import FilePath, Number

if TYPE_CHECKING:
    # Loaded only for a vector: most tables have none.
    from pyroaring import BitMap

INLINE_MAX_BYTES = 512
POSITION_LIMIT = 2**32


class DeletionVector(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """How many rows of a file are deleted, and their positions: `inline` (Base64), or in `path` at `offset`.

    `size_bytes` and `crc` (a CRC-32) are of the vector itself. `path` is relative to the table's location, or
    absolute if it belongs to another table of the same warehouse. `object_size_bytes` is the size of the
    object at `path`.
    """

    rows: Number
    size_bytes: Number = msgspec.field(name="size")
    crc: Number
    inline: str | None = None
    path: FilePath | None = None
    offset: Number | None = None
    object_size_bytes: Number | None = msgspec.field(name="object", default=None)


_DELETES = msgspec.json.Decoder(DeletionVector)


def deletes_to_json(deletes: DeletionVector) -> str:
    """Return a reference to a vector as text, the same for the same reference."""
    return msgspec.json.encode(deletes).decode()


def deletes_from_json(text: str) -> DeletionVector:
    """Return the reference that `deletes_to_json` wrote. Raises FormatError for another text."""
    return decoded(_DELETES, text.encode(), "an entry of deleted rows", size_max=JSON_MAX)


class DeletedPositions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rows of a file, as an engine sends them.

    `positions` is a Roaring bitmap in its portable form, as Base64.
    """

    path: str
    positions: str


def positions_of(deletes: Sequence[DeletedPositions | Mapping[str, Any]]) -> dict[str, BitMap]:
    """Return the positions that an engine sends, by path, without files of which it names no row.

    Raises InvalidInput if a path is given twice.
    """
    items = [msgspec.convert(item, DeletedPositions, from_attributes=True) for item in deletes]
    if len({item.path for item in items}) < len(items):
        raise InvalidInput("the rows to delete name a file twice: name each file once")
    positions = {item.path: bitmap_of(item.positions) for item in items}
    return {path: bitmap for path, bitmap in positions.items() if bitmap}


def bitmap_of(encoded: str) -> BitMap:
    """Return the positions that an engine sends as Base64. Raises InvalidInput if they are not a bitmap."""
    from pyroaring import BitMap

    try:
        return BitMap.deserialize(base64.b64decode(encoded, validate=True))
    except (ValueError, IndexError, binascii.Error):
        raise InvalidInput(
            "the positions of deleted rows are not a Roaring bitmap: send its portable form as Base64"
        ) from None


def packed_vectors(
    write: WriteRef, vectors: Mapping[str, BitMap], location: Callable[[str], str]
) -> tuple[dict[str, DeletionVector], str | None, bytes]:
    """Return the references to `vectors`, by the same paths of files, and the object that they need.

    The object has the vectors that are not inline. It is its path, relative to the table's location, and its
    content, a puffin file; None and empty if all are inline. Its name depends on its content: a commit that
    is decided again on a newer state puts another object. `location` returns the absolute path or URL of a
    file.
    """
    bitmaps = {path: _packed(vectors[path]) for path in sorted(vectors)}
    apart = {
        path: PuffinVector(bitmap, len(vectors[path]), location(path))
        for path, bitmap in bitmaps.items()
        if len(bitmap) > INLINE_MAX_BYTES
    }
    content, offsets = puffin_of_vectors(apart) if apart else (b"", {})
    object_path = _path_of(write, content) if content else None
    deletes_by_path = {
        path: DeletionVector(
            rows=len(vectors[path]),
            size_bytes=len(bitmap),
            crc=zlib.crc32(bitmap),
            inline=None if path in offsets else base64.b64encode(bitmap).decode(),
            path=object_path if path in offsets else None,
            offset=offsets.get(path),
            object_size_bytes=len(content) if path in offsets else None,
        )
        for path, bitmap in bitmaps.items()
    }
    return deletes_by_path, object_path, content


def inline_deletes(vector: BitMap) -> DeletionVector:
    """Return a reference that has the vector itself, of any size: only for readers in this process.

    It must never be in a log.
    """
    blob = _packed(vector)
    return DeletionVector(
        rows=len(vector),
        size_bytes=len(blob),
        crc=zlib.crc32(blob),
        inline=base64.b64encode(blob).decode(),
    )


def _packed(vector: BitMap) -> bytes:
    copy = vector.copy()
    copy.run_optimize()
    return copy.serialize()


def _path_of(write: WriteRef, content: bytes) -> str:
    """Return the path of an object of vectors (see `data_file.file_path`)."""
    return f"data/{write.version:020d}-{write.id}-{hashlib.sha256(content).hexdigest()[:16]}.puffin"


def decoded_vector(deletes: DeletionVector, blob: bytes, physical_rows: int) -> BitMap:
    """Return the positions in `blob`, the vector of a file that has `physical_rows`, deleted rows included.

    Raises FormatError if it is not the vector that `deletes` refers to, or not a vector of this file.
    """
    from pyroaring import BitMap

    where = deletes.path or "the file's entry"
    if len(blob) != deletes.size_bytes or zlib.crc32(blob) != deletes.crc:
        raise FormatError(f"the vector of its deleted rows in {where} is not the one that was written")
    try:
        vector = BitMap.deserialize(blob)
    except (ValueError, IndexError):
        raise FormatError(f"the vector of its deleted rows in {where} is not a Roaring bitmap") from None
    if len(vector) != deletes.rows:
        raise FormatError(
            f"the vector in {where} deletes {len(vector):,} of its rows, and the log says {deletes.rows:,}"
        )
    if vector and vector.max() >= physical_rows:
        raise FormatError(
            f"the vector in {where} deletes the row at {vector.max():,} of a file of {physical_rows:,} rows"
        )
    return vector


def inline_bytes(deletes: DeletionVector) -> bytes | None:
    """Return the vector that stands in the reference itself; None if an object has it.

    Raises FormatError if it is not Base64.
    """
    if deletes.inline is None:
        return None
    try:
        return base64.b64decode(deletes.inline, validate=True)
    except (ValueError, binascii.Error):
        raise FormatError("the vector of its deleted rows is not Base64") from None
