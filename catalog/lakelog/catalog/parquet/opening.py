"""Opening a Parquet file that the log knows: its size and its footer are what was written, or it is not opened.

Pages carry checksums where their writer made them; a footer has none. What stands in a footer decides which rows are
read and as what, and Arrow does not survive some that are broken. So a writer tells the log a CRC-32 of the footer.
"""

from __future__ import annotations

import os
import zlib
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from lakelog.log.errors import FormatError

TAIL_BYTES = 64 * 1024
"""So much of a file's end is read at once, which holds the footer of most files."""

MAGIC = b"PAR1"
_TRAILER_BYTES = 8  # the footer's length and the magic number


def open_parquet(
    source: BinaryIO, size_bytes: int | None, footer_crc: int | None, *, pre_buffer: bool = False
) -> pq.ParquetFile:
    """Open a data file of `size_bytes` with a footer of that CRC-32; None where that is not known.

    FormatError for another file than that; pa.ArrowInvalid and OSError without a number for what is no Parquet file.
    Reading it verifies the checksums of pages that have one.
    """
    footer = None
    if size_bytes is not None:
        found = source.seek(0, os.SEEK_END)
        if found != size_bytes:
            raise FormatError(f"it has {found:,} bytes, and was written with {size_bytes:,}")
        if footer_crc is not None:
            data = _footer(source, found)
            if zlib.crc32(data) != footer_crc:
                raise FormatError("its footer is not the one that was written")
            footer = pq.read_metadata(pa.BufferReader(data))
        source.seek(0)
    return pq.ParquetFile(
        source,
        metadata=footer,
        pre_buffer=pre_buffer,
        page_checksum_verification=True,
        # Times of the old kind are read as what they say, not as nanoseconds, which end in the year 2262.
        coerce_int96_timestamp_unit="us",
    )


def footer_crc_of(content: bytes) -> int:
    """Return the CRC-32 of a Parquet file's footer: of all bytes from where it begins to the end of the file."""
    return zlib.crc32(memoryview(content)[len(content) - _footer_bytes(content[-_TRAILER_BYTES:]) :])


def footer_crc_at(source: BinaryIO, size_bytes: int) -> int:
    """Return the CRC-32 of the footer of a Parquet file that is open. FormatError where it does not end as one."""
    return zlib.crc32(_footer(source, size_bytes))


def _footer(source: BinaryIO, size_bytes: int) -> bytes:
    tail = _last(source, size_bytes, TAIL_BYTES)
    length = _footer_bytes(tail[-_TRAILER_BYTES:])
    return tail[-length:] if length <= len(tail) else _last(source, size_bytes, length)


def _last(source: BinaryIO, size_bytes: int, count: int) -> bytes:
    source.seek(max(0, size_bytes - count))
    return source.read()


def _footer_bytes(trailer: bytes) -> int:
    """Return the length of a footer, with its trailer, from the last bytes of a file."""
    if len(trailer) < _TRAILER_BYTES or trailer[4:] != MAGIC:
        raise FormatError("it does not end as a Parquet file does")
    return int.from_bytes(trailer[:4], "little") + _TRAILER_BYTES
