"""How rows are encoded: beside what is read and put, and with dictionaries only if they help."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.patience import PATIENCE_S

from lakelog.catalog.core.files import DataFile
from lakelog.catalog.core.parquet.beside import SideThread
from lakelog.catalog.core.parquet.dictionaries import ROWS_MIN, columns_without_dictionary
from lakelog.catalog.core.parquet.writing import write_files
from lakelog.catalog.core.schema import PartitionSpec, SortOrder, schema_from_arrow, schema_to_arrow
from lakelog.log import MemoryStore, WriteRef
from lakelog.log.errors import InvalidInput, StorageError

WRITE = WriteRef(id="w", version=7)
ARROW = pa.schema([("n", pa.int64())])
PART_ROWS = 1000


def write(store: MemoryStore, rows: Iterable[pa.RecordBatch]) -> list[DataFile]:
    """Write rows in parts of `PART_ROWS`, each of which makes a file."""
    schema = schema_from_arrow(ARROW)
    reader = pa.RecordBatchReader.from_batches(schema_to_arrow(schema), rows)
    properties = {"lakelog.write.target-file-size-bytes": str(PART_ROWS * 6)}
    return write_files(
        store, "t", WRITE, reader, schema, PartitionSpec(), SortOrder(), properties=properties,
        buffered_bytes=PART_ROWS * 8,
    )  # fmt: skip


def parts(count: int) -> Iterator[pa.RecordBatch]:
    """Yield rows that no codec makes smaller, each part with larger values than the one before."""
    schema, chance = schema_to_arrow(schema_from_arrow(ARROW)), np.random.default_rng(1)
    for part in range(count):
        values = chance.integers(part << 50, (part + 1) << 50, PART_ROWS)
        yield pa.record_batch([pa.array(values)], schema)


def test_rows_are_read_while_files_are_put_and_files_are_in_the_order_of_the_rows() -> None:
    went_on = threading.Event()

    class Slow(MemoryStore):
        def put(self, key: str, data: bytes) -> None:
            assert went_on.wait(PATIENCE_S), "the next rows are not read before this file is put"
            super().put(key, data)

    def rows() -> Iterator[pa.RecordBatch]:
        for number, part in enumerate(parts(4)):
            if number == 2:
                went_on.set()
            yield part

    files = write(Slow(), rows())
    assert [file.path for file in files] == [
        f"data/00000000000000000007-w-{number:05d}.parquet" for number in range(4)
    ]
    assert [int(file.stats[1].min) >> 50 for file in files] == list(range(4))


def test_an_error_in_the_background_ends_the_write_and_leaves_no_file() -> None:
    class Failing(MemoryStore):
        def put(self, key: str, data: bytes) -> None:
            if key.endswith("00001.parquet"):
                raise StorageError("full", location=key)
            super().put(key, data)

    store, taken_numbers = Failing(), list[int]()

    def rows() -> Iterator[pa.RecordBatch]:
        for number, part in enumerate(parts(1000)):
            taken_numbers.append(number)
            yield part

    with pytest.raises(StorageError, match="full"):
        write(store, rows())
    assert len(taken_numbers) < 1000
    assert not list(store.list_after(""))


def test_a_write_that_fails_waits_for_the_file_that_is_being_put_before_it_deletes_what_it_put() -> None:
    is_broken = threading.Event()

    class Slow(MemoryStore):
        def put(self, key: str, data: bytes) -> None:
            is_broken.wait(PATIENCE_S)
            super().put(key, data)

    def rows() -> Iterator[pa.RecordBatch]:
        yield from parts(2)
        is_broken.set()
        raise InvalidInput("the source broke")

    store = Slow()
    with pytest.raises(InvalidInput, match="the source broke"):
        write(store, rows())
    assert not list(store.list_after(""))


def test_a_small_write_needs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SideThread, "run", None)
    schema = schema_to_arrow(schema_from_arrow(ARROW))
    rows = pa.record_batch([pa.array(range(PART_ROWS - 1), pa.int64())], schema)
    assert [file.rows for file in write(MemoryStore(), [rows])] == [PART_ROWS - 1]


def test_an_error_of_work_beside_is_raised_once() -> None:
    def fail() -> None:
        raise InvalidInput("no")

    with SideThread("test") as nearby_thread:
        nearby_thread.run(fail)
        with pytest.raises(InvalidInput):
            nearby_thread.wait()
        nearby_thread.wait()


def test_columns_have_dictionaries_only_where_most_values_come_again() -> None:
    count = 2 * ROWS_MIN
    some = np.random.default_rng(1).integers(0, 1 << 40, count)
    rows = pa.table(
        {
            "different": some,
            "again": some % 1000,
            "often": some % (count // 4),
            "text": pa.array([f"some text and then {each}" for each in some]),
            "few_texts": pa.array([f"some text and then {each % 3000}" for each in some]),
            "many_long_texts": pa.array([f"{each % 20_000:080}" for each in some]),
            "nulls": pa.nulls(count, pa.int64()),
            "few": pa.array([each if at % 10 == 0 else None for at, each in enumerate(some.tolist())]),
            "price": pa.array(some).cast(pa.decimal128(19, 0)).cast(pa.decimal128(15, 0)),
            "flag": some % 2 == 0,
            "nested": pa.StructArray.from_arrays([pa.array(some)], ["n"]),
        }
    )
    plain = {"different", "text", "many_long_texts", "few", "price"}
    assert columns_without_dictionary(rows) == plain
    assert columns_without_dictionary(rows.slice(0, ROWS_MIN - 1)) is None

    schema, store = schema_from_arrow(rows.schema), MemoryStore()
    reader = rows.cast(schema_to_arrow(schema)).to_reader()
    (file,) = write_files(store, "t", WRITE, reader, schema, PartitionSpec(), SortOrder(), properties={})
    found_file = pq.ParquetFile(pa.BufferReader(store.get(f"t/{file.path}")))
    group = found_file.metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    without = {
        column.path_in_schema.rpartition("_")[0] for column in columns if not column.has_dictionary_page
    }
    assert without == plain | {"flag"}
    assert found_file.read().rename_columns(rows.schema.names).column("text").equals(rows["text"])
