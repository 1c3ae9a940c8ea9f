"""A data file is what its writer recorded in the log, or it is not opened."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.catalog.parquet.opening import TAIL_BYTES, footer_crc_of, open_parquet
from lakelog.log.errors import FormatError


def written(columns: int) -> bytes:
    sink = io.BytesIO()
    table = pa.table({f"a_column_with_a_name_of_some_length_{n}": [n] for n in range(columns)})
    pq.write_table(table, sink, store_schema=False, write_page_checksum=True)
    return sink.getvalue()


@pytest.mark.parametrize("columns", [1, 1000])
def test_a_file_opens_with_its_size_and_its_footer(columns: int) -> None:
    content = written(columns)
    assert (len(content) > 2 * TAIL_BYTES) == (columns > 1), (
        "the larger one has a footer that is read in two steps"
    )
    file = open_parquet(io.BytesIO(content), len(content), footer_crc_of(content))
    assert file.read().num_columns == columns
    assert open_parquet(io.BytesIO(content), None, None).read() == file.read()


@pytest.mark.parametrize("columns", [1, 1000])
def test_another_size_or_footer_is_refused(columns: int) -> None:
    content = written(columns)
    crc = footer_crc_of(content)
    with pytest.raises(FormatError, match="was written with"):
        open_parquet(io.BytesIO(content + b"x"), len(content), crc)
    footer = int.from_bytes(content[-8:-4], "little") + 8
    for at in (len(content) - footer, len(content) - footer // 2, len(content) - 9):
        altered = bytearray(content)
        altered[at] ^= 1
        with pytest.raises(FormatError, match="footer"):
            open_parquet(io.BytesIO(altered), len(content), crc)


def test_a_page_that_was_altered_is_refused_when_it_is_read() -> None:
    content = bytearray(written(1))
    footer = int.from_bytes(content[-8:-4], "little") + 8
    content[len(content) - footer - 1] ^= 1
    file = open_parquet(io.BytesIO(content), len(content), footer_crc_of(bytes(content)))
    with pytest.raises(OSError, match="CRC"):
        file.read()


def test_what_ends_otherwise_than_a_parquet_file_has_no_footer() -> None:
    for content in (b"", b"PAR1", b"x" * 100):
        with pytest.raises(FormatError, match="does not end"):
            footer_crc_of(content)
