"""Deletion vectors of a Delta table as lakelog's: their places, and the meaning of their bytes.

A vector of Delta is a magic number and 64-bit Roaring bitmaps. The log has it in Base85 (Z85), or a file has
it between its size and its checksum. Rule: a vector that differs from the log's description is an error that
names its file.
"""

from __future__ import annotations

import base64
import struct
import zlib
from typing import TYPE_CHECKING

from lakelog.catalog.core.files import VECTOR_MAGIC, DeletionVector, inline_deletes
from lakelog.catalog.formats.imports.delta.actions import DeltaVector
from lakelog.catalog.formats.imports.delta.paths import file_url
from lakelog.log import OpenUrl
from lakelog.log.errors import FormatError, NotFound

if TYPE_CHECKING:
    from pyroaring import BitMap

_SIZE, _CHECKSUM = struct.Struct(">i"), struct.Struct(">I")
_UUID_LENGTH = 20

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_FROM_Z85 = str.maketrans(_Z85 + "".join(set(_B85) - set(_Z85)), _B85 + "\0" * len(set(_B85) - set(_Z85)))
"""Python's alphabet of Base85 differs. Characters that only Python's has must not pass."""


def read_deletes(vector: DeltaVector, file: str, rows: int, table: str, open_url: OpenUrl) -> DeletionVector:
    """Return the deleted rows of the data file at `file`, which has `rows`.

    Raises FormatError, and NotFound if the object is gone. Makes a ranged GET request if the log does not
    contain the vector.
    """
    from pyroaring import BitMap

    if vector.storage_type == "i":
        where = f"the log of {table}"
        content = _from_z85(vector.path_or_inline_dv, where, file)[: vector.size_in_bytes]
    else:
        where = _url(vector, table, file)
        content = _ranged(vector, where, file, open_url)
    if len(content) != vector.size_in_bytes:
        raise _broken(
            where, file, f"it has {len(content):,} bytes, and the log says {vector.size_in_bytes:,}"
        )
    positions: BitMap = BitMap(_positions(content, where, file))
    if len(positions) != vector.cardinality:
        raise _broken(
            where, file, f"it deletes {len(positions):,} rows, and the log says {vector.cardinality:,}"
        )
    if positions and positions.max() >= rows:
        raise _broken(where, file, f"it deletes the row at {positions.max():,}, and the file has {rows:,}")
    return inline_deletes(positions)


def _url(vector: DeltaVector, table: str, file: str) -> str:
    if vector.storage_type == "p":
        return file_url(vector.path_or_inline_dv, table)
    if vector.storage_type != "u" or len(vector.path_or_inline_dv) < _UUID_LENGTH:
        raise _broken(f"the log of {table}", file, f"it is stored as {vector.storage_type!r}")
    prefix, uuid_text = (
        vector.path_or_inline_dv[:-_UUID_LENGTH],
        vector.path_or_inline_dv[-_UUID_LENGTH:],
    )
    digits = _from_z85(uuid_text, f"the log of {table}", file).hex()
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    folder = f"{prefix}/" if prefix else ""
    return f"{table}/{folder}deletion_vector_{'-'.join(parts)}.bin"


def _ranged(vector: DeltaVector, url: str, file: str, open_url: OpenUrl) -> bytes:
    store, key = open_url(url)
    try:
        with store.open_input(key) as source:
            source.seek(vector.offset or 0)
            data = source.read(_SIZE.size + vector.size_in_bytes + _CHECKSUM.size)
    except NotFound:
        raise NotFound(
            f"the deletion vector {url} of the data file {file} is not there: the table's vacuum may have deleted it; "
            "import fewer versions"
        ) from None
    if len(data) != _SIZE.size + vector.size_in_bytes + _CHECKSUM.size:
        raise _broken(url, file, "its file is too short")
    size, content = _SIZE.unpack_from(data)[0], data[_SIZE.size : -_CHECKSUM.size]
    if size != vector.size_in_bytes:
        raise _broken(url, file, f"it has {size:,} bytes there, and the log says {vector.size_in_bytes:,}")
    if zlib.crc32(content) != _CHECKSUM.unpack(data[-_CHECKSUM.size :])[0]:
        raise _broken(url, file, "its checksum is another one")
    return content


def _positions(content: bytes, where: str, file: str) -> BitMap:
    from pyroaring import BitMap, BitMap64

    if content[: len(VECTOR_MAGIC)] != VECTOR_MAGIC:
        raise _broken(where, file, "it does not begin with the magic number of Delta's vectors")
    try:
        wide = BitMap64.deserialize(content[len(VECTOR_MAGIC) :])
    except (ValueError, IndexError):
        raise _broken(where, file, "it is not a Roaring bitmap") from None
    if wide and wide.max() >= 2**32:
        raise _broken(where, file, f"it deletes the row at {wide.max():,}, which no data file has")
    return BitMap(wide)


def _from_z85(text: str, where: str, file: str) -> bytes:
    try:
        return base64.b85decode(text.translate(_FROM_Z85).encode("latin-1"))
    except (ValueError, UnicodeEncodeError):
        raise _broken(where, file, "it is not Base85 (Z85)") from None


def _broken(where: str, file: str, why: str) -> FormatError:
    return FormatError(
        f"the deletion vector in {where} of the data file {file} cannot be read: {why}; it was truncated or altered"
    )
