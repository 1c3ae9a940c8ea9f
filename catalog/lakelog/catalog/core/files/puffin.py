"""Puffin files: Iceberg's container of blobs, for deletion vectors that do not fit in files' entries.

A blob of a vector is the 32-bit bitmap between a head and a checksum. So a log refers to the bitmap itself,
and Iceberg to the blob around it. Pure. Source: the Puffin specification of Apache Iceberg,
`deletion-vector-v1`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from lakelog.log.errors import FormatError, Unsupported

MAGIC = b"PFA1"
VECTOR_MAGIC = bytes.fromhex("D1D33964")
_ONE_BITMAP = struct.pack("<qi", 1, 0)
"""How many 32-bit bitmaps follow, and the high half of the first bitmap's positions, which are below 2^32."""
_UNCOMPRESSED = struct.pack("<i", 0)

HEAD_BYTES = 4 + len(VECTOR_MAGIC) + len(_ONE_BITMAP)
"""How far the bitmap is behind the start of its blob."""
AROUND_BYTES = HEAD_BYTES + 4
"""How much longer a blob is than its bitmap."""


class PuffinVector(NamedTuple):
    """A bitmap of `rows` positions in the data file at `file`, an absolute path or URL."""

    bitmap: bytes
    rows: int
    file: str


def puffin_of_vectors(vectors: Mapping[str, PuffinVector]) -> tuple[bytes, dict[str, int]]:
    """Return a puffin file of the vectors, in their order, and the offsets of its bitmaps, by their keys."""
    parts, blobs, offsets = [MAGIC], [], dict[str, int]()
    offset = len(MAGIC)
    for key, vector in vectors.items():
        blob = _blob(vector.bitmap)
        offsets[key] = offset + HEAD_BYTES
        blobs.append(
            {
                "type": "deletion-vector-v1",
                "fields": [],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": offset,
                "length": len(blob),
                "properties": {"referenced-data-file": vector.file, "cardinality": str(vector.rows)},
            }
        )
        parts.append(blob)
        offset += len(blob)
    footer = msgspec.json.encode({"blobs": blobs, "properties": {"created-by": "lakelog"}})
    parts += [MAGIC, footer, struct.pack("<i", len(footer)), _UNCOMPRESSED, MAGIC]
    return b"".join(parts), offsets


def bitmap_in(blob: bytes) -> bytes:
    """Return the bitmap of a blob of a vector.

    Raises FormatError for a damaged blob, Unsupported for positions of 2^32 on.
    """
    content, crc = blob[4:-4], blob[-4:]
    if len(blob) < AROUND_BYTES or blob[:4] != struct.pack(">i", len(content)):
        raise FormatError("a blob of deleted rows has another length than it says")
    if content[: len(VECTOR_MAGIC)] != VECTOR_MAGIC or crc != struct.pack(">I", zlib.crc32(content)):
        raise FormatError("a blob of deleted rows is damaged: its checksum is another one")
    count, first = struct.unpack("<qi", content[len(VECTOR_MAGIC) : len(VECTOR_MAGIC) + 12])
    if count == 0:
        return b""
    if (count, first) != (1, 0):
        raise Unsupported("a blob of deleted rows has positions of 2^32 or more, which lakelog does not read")
    return content[len(VECTOR_MAGIC) + 12 :]


def _blob(bitmap: bytes) -> bytes:
    content = VECTOR_MAGIC + _ONE_BITMAP + bitmap
    return struct.pack(">i", len(content)) + content + struct.pack(">I", zlib.crc32(content))
