"""A data file is what its writer recorded in the log, or it is not opened."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.catalog.core.parquet.opening import TAIL_BYTES, WHOLE_BYTES_MAX, footer_crc_of, open_parquet
from lakelog.log.errors import FormatError


def written_data(columns: int) -> bytes:
    sink = io.BytesIO()
    table = pa.table({f"a_column_with_a_name_of_some_length_{n}": [n] for n in range(columns)})
    pq.write_table(table, sink, store_schema=False, write_page_checksum=True)
    return sink.getvalue()


@pytest.mark.parametrize("for_rows", [False, True])
@pytest.mark.parametrize("columns", [1, 1000])
def test_a_file_opens_with_its_size_and_its_footer(columns: int, for_rows: bool) -> None:
    content = written_data(columns)
    assert (len(content) > 2 * TAIL_BYTES) == (columns > 1), (
        "the larger one has a footer that is read in two steps"
    )
    file = open_parquet(io.BytesIO(content), len(content), footer_crc_of(content), for_rows=for_rows)
    assert file.read().num_columns == columns
    assert open_parquet(io.BytesIO(content), None, None, for_rows=for_rows).read() == file.read()


@pytest.mark.parametrize("for_rows", [False, True])
@pytest.mark.parametrize("columns", [1, 1000])
def test_another_size_or_footer_is_refused(columns: int, for_rows: bool) -> None:
    content = written_data(columns)
    crc = footer_crc_of(content)
    with pytest.raises(FormatError, match="was written with"):
        open_parquet(io.BytesIO(content + b"x"), len(content), crc, for_rows=for_rows)
    footer = int.from_bytes(content[-8:-4], "little") + 8
    for at in (len(content) - footer, len(content) - footer // 2, len(content) - 9):
        altered = bytearray(content)
        altered[at] ^= 1
        with pytest.raises(FormatError, match="footer"):
            open_parquet(io.BytesIO(altered), len(content), crc, for_rows=for_rows)


@pytest.mark.parametrize("for_rows", [False, True])
def test_a_page_that_was_altered_is_refused_when_it_is_read(for_rows: bool) -> None:
    content = bytearray(written_data(1))
    footer = int.from_bytes(content[-8:-4], "little") + 8
    content[len(content) - footer - 1] ^= 1
    file = open_parquet(io.BytesIO(content), len(content), footer_crc_of(bytes(content)), for_rows=for_rows)
    with pytest.raises(OSError, match="CRC"):
        file.read()


def test_what_ends_otherwise_than_a_parquet_file_has_no_footer() -> None:
    for content in (b"", b"PAR1", b"x" * 100):
        with pytest.raises(FormatError, match="does not end"):
            footer_crc_of(content)


def test_a_small_file_of_which_rows_are_read_is_read_once_and_a_large_one_in_parts() -> None:
    class Watched(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            data = super().read(size)
            read.append(len(data))
            return data

    for content, once in ((written_data(1), True), (written_data(1000), False)):
        read: list[int] = []
        file = open_parquet(Watched(content), len(content), footer_crc_of(content), for_rows=True)
        file.read()
        assert (read == [len(content)]) == once == (len(content) <= WHOLE_BYTES_MAX)
