"""Opening a Parquet file that the log knows: only with the size and the footer that were written.

Pages have checksums if their writer made them; a footer has none. A footer decides which rows are read and
with which types, and Arrow crashes on some damaged footers. So a writer puts a CRC-32 of the footer into the
log.
"""

from __future__ import annotations

import os
import zlib
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from lakelog.log.errors import FormatError

TAIL_BYTES = 64 * 1024
"""The size of the first read at a file's end, which has the footer of most files."""

WHOLE_BYTES_MAX = 256 * 1024
"""The limit up to which a file is read whole for its rows, which takes less time than to read parts of it."""

MAGIC = b"PAR1"
_TRAILER_BYTES = 8  # the footer's length and the magic number


def open_parquet(
    source: BinaryIO, size_bytes: int | None, footer_crc: int | None, *, for_rows: bool = False
) -> pq.ParquetFile:
    """Open a data file of `size_bytes` with a footer of that CRC-32; None if either is not known.

    `for_rows` says that all chosen columns are going to be read. Raises FormatError for a different file;
    pa.ArrowInvalid, or OSError without a number, if it is not a Parquet file. Reads verify the checksums of
    pages that have them.
    """
    footer, parquet_input = None, source
    if size_bytes is not None:
        file_bytes = source.seek(0, os.SEEK_END)
        if file_bytes != size_bytes:
            raise FormatError(f"it has {file_bytes:,} bytes, and was written with {size_bytes:,}")
        if for_rows and file_bytes <= WHOLE_BYTES_MAX:
            content = _last(source, file_bytes, file_bytes)
            if footer_crc is not None and footer_crc_of(content) != footer_crc:
                raise FormatError("its footer is not the one that was written")
            parquet_input, for_rows = pa.BufferReader(content), False
        elif footer_crc is not None:
            data = _footer(source, file_bytes)
            if zlib.crc32(data) != footer_crc:
                raise FormatError("its footer is not the one that was written")
            footer = pq.read_metadata(pa.BufferReader(data))
        source.seek(0)
    return pq.ParquetFile(
        parquet_input,
        metadata=footer,
        pre_buffer=for_rows,
        page_checksum_verification=True,
        # Times of the deprecated type are read with all of their range, as nanoseconds end in the year 2262.
        coerce_int96_timestamp_unit="us",
    )


def footer_crc_of(content: bytes) -> int:
    """Return the CRC-32 of a Parquet file's footer: of all bytes from its start to the end of the file."""
    return zlib.crc32(memoryview(content)[len(content) - _footer_bytes(content[-_TRAILER_BYTES:]) :])


def footer_crc_at(source: BinaryIO, size_bytes: int) -> int:
    """Return the CRC-32 of the footer of an open Parquet file.

    Raises FormatError if its end has no footer.
    """
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
        raise FormatError("it does not end like a Parquet file")
    return int.from_bytes(trailer[:4], "little") + _TRAILER_BYTES
