"""Checksums of data files that Spark writes, and what becomes of files that were altered since."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.conftest import Lake

from lakelog.catalog.core.files.data_file import DataFile, files_from_arrow
from lakelog.catalog.core.logs.cache import LogCache
from lakelog.catalog.core.logs.places import WarehouseStores
from lakelog.catalog.core.parquet.opening import footer_crc_of
from lakelog.catalog.keeping.maintenance.fsck import Severity
from lakelog.log import LogOptions

VERIFY = "parquet.page.verify-checksum.enabled"
TEXTS = "SELECT id, concat('text ', id % 50) AS s, id % 7 AS k FROM range(0, 2000, 1, 1)"


def files_of(lake: Lake, name: str = "t") -> list[DataFile]:
    logs = LogCache(WarehouseStores(lake.warehouse, {}), {}, LogOptions())
    tracked_table = logs.table(logs.location(lake.catalog.load_table(name).location))
    return files_from_arrow(tracked_table.current().state.files.table(tracked_table.log.read_blobs))


def assert_known(lake: Lake, expected: int, name: str = "t") -> None:
    """Every file's size and checksums in the log are those of its bytes, and the check finds nothing wrong."""
    place = Path(lake.catalog.load_table(name).location)
    files = files_of(lake, name)
    assert len(files) == expected
    for file in files:
        content = (place / file.path).read_bytes()
        known_size_bytes = (file.size_bytes, file.crc, file.footer_crc)
        assert known_size_bytes == (len(content), crc32(content), footer_crc_of(content))
    assert lake.catalog.fsck(name, deep=True).found == []


@contextlib.contextmanager
def setting(lake: Lake, key: str, value: str) -> Iterator[None]:
    lake.spark.conf.set(key, value)
    try:
        yield
    finally:
        lake.spark.conf.unset(key)


# Written


@pytest.mark.adapter
def test_every_kind_of_write_puts_the_checksums_of_its_files_into_the_log(lake: Lake) -> None:
    lake.sql("CREATE TABLE lake.t AS SELECT /*+ COALESCE(1) */ id, id % 3 AS k FROM range(100)")
    assert_known(lake, 1)
    lake.sql("INSERT INTO lake.t VALUES (1, 1)")
    assert_known(lake, 2)
    lake.sql("INSERT OVERWRITE lake.t SELECT /*+ COALESCE(1) */ id, id FROM range(9)")
    assert_known(lake, 1)
    lake.sql("CREATE OR REPLACE TABLE lake.t PARTITIONED BY (k) AS SELECT id, id % 3 AS k FROM range(100)")
    assert_known(lake, 3)
    lake.sql("INSERT OVERWRITE lake.t PARTITION (k = 1) VALUES (5)")
    assert_known(lake, 3)
    lake.spark.range(4).selectExpr("id", "id AS k").coalesce(1).writeTo(f"{lake.name}.t").append()
    assert_known(lake, 7)


def test_a_writer_that_rolls_on_reports_the_checksums_of_each_file(lake: Lake) -> None:
    lake.sql(
        "CREATE TABLE lake.t (id BIGINT) TBLPROPERTIES ('lakelog.write.target-file-size-bytes' = '20000')"
    )
    lake.sql("INSERT INTO lake.t SELECT id FROM range(0, 20000, 1, 1)")
    count = len(files_of(lake))
    assert count > 3
    assert_known(lake, count)


@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "gzip", "lz4_raw", "zstd"])
def test_files_of_every_codec_have_checksums(lake: Lake, codec: str) -> None:
    lake.sql(
        f"CREATE TABLE lake.t TBLPROPERTIES ('lakelog.write.parquet.compression-codec' = '{codec}') AS {TEXTS}"
    )
    assert_known(lake, 1)


def test_a_footer_that_is_larger_than_what_is_read_at_once_is_known_and_read(lake: Lake) -> None:
    # A footer has each name in its schema, and once more for each column of a row group.
    long = "c" * 250
    columns = ", ".join(f"id + {n} AS {long}_{n}" for n in range(220))
    lake.sql(f"CREATE TABLE lake.t AS SELECT {columns} FROM range(0, 2, 1, 1)")
    [file] = Path(lake.catalog.load_table("t").location).glob("data/*.parquet")
    assert int.from_bytes(file.read_bytes()[-8:-4], "little") > 64 * 1024
    assert_known(lake, 1)
    assert lake.sql(f"SELECT sum({long}_219) FROM lake.t") == [(219 + 220,)]
    flip(file, file.stat().st_size - 60_000)
    with pytest.raises(Exception, match="footer is not the one that was written"):
        lake.sql(f"SELECT sum({long}_219) FROM lake.t")


def test_many_row_groups_and_an_empty_result_are_no_exceptions(lake: Lake) -> None:
    hadoop = lake.spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("parquet.block.size", "20000")
    try:
        lake.sql(f"CREATE TABLE lake.t AS {TEXTS.replace('2000', '50000')}")
    finally:
        hadoop.unset("parquet.block.size")
    [file] = Path(lake.catalog.load_table("t").location).glob("data/*.parquet")
    assert pq.ParquetFile(file).num_row_groups > 1
    assert_known(lake, 1)
    lake.sql("CREATE TABLE lake.empty AS SELECT id FROM range(10) WHERE id > 10")
    assert_known(lake, 0, "empty")


def test_what_footers_say_of_all_types_agrees_with_the_log(lake: Lake) -> None:
    """The check compares a footer with the log's statistics only if it knows that the footer is whole."""
    lake.sql(
        """CREATE TABLE lake.t AS SELECT /*+ COALESCE(1) */ * FROM VALUES
        (true, 1Y, 2S, 3, 4L, 1.5F, -0.0D, 1.25BD, CAST('12345678901234567890.5' AS DECIMAL(38, 1)), repeat('ü', 90),
         X'FF00', DATE'1500-01-01', TIMESTAMP'2020-01-01 00:00:00.000001', TIMESTAMP_NTZ'1960-01-01 00:00:00',
         INTERVAL '3' MONTH, INTERVAL '1 02:03:04.5' DAY TO SECOND, named_struct('x', 1, 'y', array(1)),
         map('a', 1.5D)),
        (false, -1Y, -2S, -3, -4L, FLOAT('NaN'), 0.0D, -1.25BD, CAST(-1 AS DECIMAL(38, 1)), '', unhex(repeat('FF', 50)),
         DATE'9999-12-31', NULL, TIMESTAMP_NTZ'2020-01-01 00:00:00', INTERVAL '-3' MONTH, NULL, NULL, NULL)"""
    )
    assert_known(lake, 1)


# Altered


def flip(path: Path, at: int, bit: int = 1) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= bit
    path.write_bytes(content)


def middle_of(path: Path, column: int, *, dictionary: bool = False) -> int:
    """A byte in the middle of the first page of values, or of the dictionary, of a column's first chunk."""
    chunk = pq.read_metadata(path).row_group(0).column(column)
    start, end = chunk.data_page_offset, chunk.dictionary_page_offset + chunk.total_compressed_size
    return (chunk.dictionary_page_offset + start) // 2 if dictionary else (start + end) // 2


Alter = Callable[[Path], None]


def a_page(path: Path) -> None:
    flip(path, middle_of(path, 1))


def a_dictionary(path: Path) -> None:
    flip(path, middle_of(path, 1, dictionary=True))


def the_footer(path: Path) -> None:
    flip(path, path.stat().st_size - 40)


def the_footers_length(path: Path) -> None:
    flip(path, path.stat().st_size - 7)


def the_magic(path: Path) -> None:
    flip(path, path.stat().st_size - 1)


def the_first_magic(path: Path) -> None:
    flip(path, 0)


def the_end_cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def half_cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def the_end_grown(path: Path) -> None:
    path.write_bytes(path.read_bytes() * 2)


def another_file(path: Path) -> None:
    """A file of the same size and columns that is whole in itself."""
    size = path.stat().st_size
    pq.write_table(pq.read_table(path).slice(0, 5), path)
    content = path.read_bytes()
    path.write_bytes(b"PAR1" + bytes(size - len(content)) + content[4:])


QUERIES = (
    "SELECT count(*), sum(id), count(DISTINCT s) FROM lake.t",
    "SELECT sum(id) FROM lake.t WHERE s = 'text 7'",
    "SELECT id, s FROM lake.t WHERE s >= 'text 40' AND id > 100",
)


@pytest.fixture(params=["zstd", "uncompressed"])
def one_file(request: pytest.FixtureRequest, lake: Lake) -> tuple[Lake, Path]:
    lake.sql(
        f"CREATE TABLE lake.t TBLPROPERTIES ('lakelog.write.parquet.compression-codec' = '{request.param}') AS {TEXTS}"
    )
    [file] = Path(lake.catalog.load_table("t").location).glob("data/*.parquet")
    return lake, file


def assert_refused(lake: Lake, file: Path) -> None:
    for query in QUERIES:
        with pytest.raises(Exception, match=file.name):
            lake.sql(query)


def damaged_texts(lake: Lake, *, deep: bool = False) -> list[str]:
    return [finding.where for finding in lake.catalog.fsck("t", deep=deep).of(Severity.DAMAGE)]


@pytest.mark.adapter
@pytest.mark.parametrize("alter", [a_page, a_dictionary])
@pytest.mark.parametrize("columnar", ["true", "false"])
def test_an_altered_page_is_an_error_that_names_the_file(
    one_file: tuple[Lake, Path], alter: Alter, columnar: str
) -> None:
    lake, file = one_file
    alter(file)
    with setting(lake, "spark.sql.parquet.enableVectorizedReader", columnar):
        assert_refused(lake, file)
    assert damaged_texts(lake) == [], "pages are read by the deep check alone"
    assert damaged_texts(lake, deep=True) == [str(file)]


@pytest.mark.parametrize("one_file", ["zstd"], indirect=True)
@pytest.mark.parametrize(
    "alter",
    [the_footer, the_footers_length, the_magic, the_end_cut, half_cut, the_end_grown, another_file],
)
def test_an_altered_end_is_an_error_that_names_the_file(one_file: tuple[Lake, Path], alter: Alter) -> None:
    lake, file = one_file
    alter(file)
    for query in (QUERIES[1], "SELECT count(*) FROM lake.t WHERE monotonically_increasing_id() >= 0"):
        with pytest.raises(Exception, match=file.name):
            lake.sql(query)
    assert damaged_texts(lake) == [str(file)]


def test_what_no_reader_looks_at_is_found_by_the_check(one_file: tuple[Lake, Path]) -> None:
    lake, file = one_file
    right = [lake.sorted(query) for query in QUERIES]
    the_first_magic(file)
    assert [lake.sorted(query) for query in QUERIES] == right
    assert damaged_texts(lake) == [str(file)]


def test_no_flipped_bit_changes_what_a_whole_table_holds(lake: Lake) -> None:
    lake.sql(
        "CREATE TABLE lake.t TBLPROPERTIES ('lakelog.write.parquet.compression-codec' = 'uncompressed') AS "
        "SELECT id, concat('text ', id % 5) AS s FROM range(0, 40, 1, 1)"
    )
    [file] = Path(lake.catalog.load_table("t").location).glob("data/*.parquet")
    right = lake.sorted("SELECT * FROM lake.t")
    silent, unseen = [], []
    for at in range(0, file.stat().st_size, 61):
        flip(file, at, 1 << at % 8)
        with contextlib.suppress(Exception):
            if lake.sorted("SELECT * FROM lake.t") != right:
                silent.append(at)
        if damaged_texts(lake, deep=True) != [str(file)]:
            unseen.append(at)
        flip(file, at, 1 << at % 8)
    assert silent == [] and unseen == []
    assert lake.sorted("SELECT * FROM lake.t") == right


def test_a_user_may_turn_the_comparison_of_pages_off(lake: Lake) -> None:
    lake.sql(
        "CREATE TABLE lake.t TBLPROPERTIES ('lakelog.write.parquet.compression-codec' = 'uncompressed') AS "
        "SELECT /*+ COALESCE(1) */ id FROM VALUES (1L), (2L), (3L) AS t(id)"
    )
    [file] = Path(lake.catalog.load_table("t").location).glob("data/*.parquet")
    chunk = pq.read_metadata(file).row_group(0).column(0)
    at = file.read_bytes().index((3).to_bytes(8, "little"))
    assert at < chunk.data_page_offset + chunk.total_compressed_size
    flip(file, at, 64)
    with pytest.raises(Exception, match=file.name):
        lake.sql("SELECT id FROM lake.t")
    with setting(lake, VERIFY, "false"):
        assert lake.sorted("SELECT id FROM lake.t") == [(1,), (2,), (67,)]
    with pytest.raises(Exception, match=file.name):
        lake.sql("SELECT id FROM lake.t")


def test_files_of_python_are_checked_too(lake: Lake) -> None:
    lake.catalog.create_table("t", pa.schema({"id": pa.int64()})).append(pa.table({"id": [1, 2, 3]}))
    assert lake.sorted("SELECT id FROM lake.t") == [(1,), (2,), (3,)]
    [file] = Path(lake.catalog.load_table("t").location).glob("data/*.parquet")
    the_footer(file)
    with pytest.raises(Exception, match="footer is not the one that was written"):
        lake.sql("SELECT id FROM lake.t")
