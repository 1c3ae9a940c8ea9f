from __future__ import annotations

import errno
import io
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.catalog.core.files.data_file import ColumnStats, DataFile, files_to_arrow
from lakelog.catalog.core.files.statistics import (
    footer_statistics,
    lower_text,
    measured_columns,
    upper_bytes,
    upper_text,
)
from lakelog.catalog.core.parquet.read_ahead import TOGETHER_BYTES_MAX, in_order
from lakelog.catalog.core.parquet.reading import read_files
from lakelog.catalog.core.parquet.writing import write_files
from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.schema.arrow_types import schema_from_arrow, schema_to_arrow
from lakelog.catalog.core.schema.partitioning import (
    PartitionSpec,
    SortOrder,
    sort_order_from,
    spec_from_transforms,
)
from lakelog.catalog.core.schema.predicate import col
from lakelog.catalog.core.schema.schema import Schema
from lakelog.log import WriteRef
from lakelog.log.errors import FormatError, InvalidInput, StorageError, Unsupported
from lakelog.log.stores.memory_store import MemoryStore

PLAIN, UNSORTED = PartitionSpec(), SortOrder()
WRITE = WriteRef(id="w", version=7)
STEM = "data/00000000000000000007-w"


def written(
    data: dict[str, Any] | pa.Table,
    store: MemoryStore,
    *,
    partition_by: Any = (),
    sort_by: Any = (),
    **properties: str,
) -> tuple[Schema, PartitionSpec, list[DataFile]]:
    table = data if isinstance(data, pa.Table) else pa.table(data)
    schema = schema_from_arrow(table.schema)
    spec, order = spec_from_transforms(partition_by, schema), sort_order_from(sort_by, schema)
    values = {f"lakelog.write.{name.replace('_', '-')}": value for name, value in properties.items()}
    reader = table.cast(schema_to_arrow(schema)).to_reader()
    return schema, spec, write_files(store, "t", WRITE, reader, schema, spec, order, properties=values)


def read(
    store: MemoryStore, schema: Schema, spec: PartitionSpec, files: list[DataFile], **options: Any
) -> list[dict[str, Any]]:
    arrow, batches = read_files(store, "t", files_to_arrow(files, schema, [spec]), schema, [spec], **options)
    rows: list[dict[str, Any]] = pa.Table.from_batches(list(batches), arrow).to_pylist()
    return rows


def test_files_hold_physical_names_and_field_ids_of_every_level() -> None:
    store = MemoryStore()
    _, _, (file,) = written({"größe": [1], "s": [{"x y": [{"k": "v"}]}]}, store)
    footer = pq.ParquetFile(pa.BufferReader(store.get(f"t/{file.path}")))
    assert file.path == f"{STEM}-00000.parquet"
    assert [footer.schema.column(index).path for index in range(2)] == [
        "gr__e_1",
        "s_2.x_y_3.list.element.k_5",
    ]
    text = str(footer.schema)
    assert all(f"field_id={id} " in text for id in range(1, 6))


def test_each_partition_gets_its_files_and_rows_stay_together() -> None:
    store = MemoryStore()
    data = {"k": ["b", "a", None, "b", "a"], "n": [1, 2, 3, 4, 5]}
    schema, spec, files = written(data, store, partition_by=["k"])
    assert [(file.partition, file.rows) for file in files] == [
        ({1000: "a"}, 2),
        ({1000: "b"}, 2),
        ({1000: None}, 1),
    ]
    assert [file.path for file in files] == [f"{STEM}-0000{index}.parquet" for index in range(3)]
    assert sorted(row["n"] for row in read(store, schema, spec, files)) == [1, 2, 3, 4, 5]


def test_rows_are_sorted_within_files_with_nulls_where_they_are_wanted() -> None:
    store = MemoryStore()
    order = [{"column": ["a"], "direction": "desc", "nulls": "first"}, {"column": ["b"], "nulls": "last"}]
    data = {"a": [1, 2, None, 2, 2], "b": [1, None, 3, 7, 4]}
    schema, spec, files = written(data, store, sort_by=order)
    assert [(row["a"], row["b"]) for row in read(store, schema, spec, files)] == [
        (None, 3),
        (2, 4),
        (2, 7),
        (2, None),
        (1, 1),
    ]


def test_files_are_rolled_at_the_target_size() -> None:
    store = MemoryStore()
    data = {"n": pa.array(range(100_000), pa.int64())}
    schema, spec, files = written(
        data, store, target_file_size_bytes="100000", parquet_compression_codec="uncompressed"
    )
    assert len(files) == 3
    assert all(file.size_bytes < 125_000 for file in files)
    assert sum(file.rows for file in files) == 100_000
    assert [row["n"] for row in read(store, schema, spec, files)] == list(range(100_000))


def test_statistics_come_from_the_footer_and_count_nans() -> None:
    _, _, (file,) = written(
        {"f": [1.0, float("nan"), None], "g": [0.0, 1.0, 2.0], "s": ["x" * 40] * 3}, MemoryStore()
    )
    assert file.stats[1] == ColumnStats(nulls=1, min=1.0, max=1.0, nans=1)
    assert file.stats[2] == ColumnStats(nulls=0, min=-0.0, max=2.0)
    assert file.stats[3] == ColumnStats(nulls=0, min="x" * 32, max="x" * 31 + "y")


def test_floats_with_nan_have_no_bounds_in_a_file_for_readers_to_whom_nan_is_the_largest_number(
    tmp_path: Path,
) -> None:
    """Even if NaN comes after the file was begun, and in nested columns; the log has their bounds."""
    nan, n = float("nan"), 3
    parts = [
        {"n": [1, 2, 3], "f": [1.0, 2.0, -0.0], "g": [5.0] * n, "s": [{"x": 1.0, "i": 1}] * n},
        {"n": [4, 5, 6], "f": [nan, None, 0.0], "g": [6.0] * n, "s": [{"x": nan, "i": 2}] * n},
        {"n": [7, 8, 9], "f": [7.0, 2.0, nan], "g": [nan] * n, "s": [{"x": None, "i": 1}] * n},
        {"n": [10, 11, 12], "f": [nan] * n, "g": [None] * n, "s": [{"x": 2.0, "i": 3}] * n},
    ]
    nested_struct = pa.struct([("x", pa.float64()), ("i", pa.int64())])
    types = {"n": pa.int64(), "f": pa.float64(), "g": pa.float32(), "s": nested_struct}
    rows = pa.concat_tables([pa.table(part, schema=pa.schema(types)) for part in parts])
    schema, store = schema_from_arrow(rows.schema), MemoryStore()
    batches = rows.cast(schema_to_arrow(schema)).combine_chunks().to_batches(n)
    reader = pa.RecordBatchReader.from_batches(schema_to_arrow(schema), batches)
    files = write_files(store, "t", WRITE, reader, schema, PLAIN, UNSORTED, properties={}, buffered_bytes=1)
    assert [file.rows for file in files] == [3, 3, 6]
    f, g = ([file.stats[id] for file in files] for id in (2, 3))
    assert f == [
        ColumnStats(nulls=0, min=-0.0, max=2.0),
        ColumnStats(nulls=1, min=-0.0, max=0.0, nans=1),
        ColumnStats(nulls=0, min=2.0, max=7.0, nans=4),
    ]
    assert (str(f[1].min), str(f[1].max)) == ("-0.0", "0.0")
    assert g[2] == ColumnStats(nulls=3, nans=3)
    paths = [tmp_path / Path(file.path).name for file in files]
    for file, path in zip(files, paths, strict=True):
        path.write_bytes(store.get(f"t/{file.path}"))
    footer = pq.ParquetFile(paths[1]).metadata.row_group(0)
    assert [footer.column(at).statistics is not None for at in range(5)] == [True, False, True, False, True]
    for condition, numbers in (
        ("f_2 > 3", [4, 7, 9, 10, 11, 12]),
        ("g_3 = 'nan'::FLOAT", [7, 8, 9]),
        ("s_4.x_5 > 3", [4, 5, 6]),
    ):
        query = f"SELECT n_1 FROM read_parquet({[str(path) for path in paths]}) WHERE {condition} ORDER BY 1"
        assert [row for (row,) in duckdb.sql(query).fetchall()] == numbers, condition


def test_bounds_of_floats_are_left_out_where_nans_were_not_counted() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"f_1": [1.0, float("nan")]}), sink)
    footer = pq.ParquetFile(pa.BufferReader(sink.getvalue())).metadata
    columns = measured_columns(schema_from_arrow(pa.schema([("f", pa.float64())])))
    assert footer_statistics(footer, columns, [0])[1] == ColumnStats(nulls=0)


def test_upper_bounds_are_never_below_what_they_bound() -> None:
    assert (lower_text("é" * 40), upper_text("é" * 40)) == ("é" * 32, "é" * 31 + "ê")
    assert upper_text("\ud7ff" * 33) == "\ud7ff" * 31 + "\ue000"
    assert upper_text("\U0010ffff" * 33) is None
    assert (upper_bytes(b"a" * 33), upper_bytes(b"\xff" * 33)) == (b"a" * 31 + b"b", None)


def test_a_failed_write_leaves_no_files() -> None:
    store = MemoryStore()

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": pa.array(range(50_000), pa.int64())}, schema_to_arrow(schema))
        raise InvalidInput("the source broke")

    schema = schema_from_arrow(pa.schema([("n", pa.int64())]))
    reader = pa.RecordBatchReader.from_batches(schema_to_arrow(schema), rows())
    with pytest.raises(Exception, match="the source broke"):
        write_files(
            store, "t", WRITE, reader, schema, PLAIN, UNSORTED,
            properties={"lakelog.write.target-file-size-bytes": "1024"},
        )  # fmt: skip
    assert not list(store.list_after(""))


def test_only_the_columns_that_are_asked_for_are_returned_in_their_order() -> None:
    store = MemoryStore()
    schema, spec, files = written({"a": [1, 2], "b": ["x", "y"], "c": [3, 4]}, store)
    rows = read(store, schema, spec, files, columns=["c", "a"], predicate=bind(col("b") == "y", schema))
    assert [list(row.items()) for row in rows] == [[("c", 4), ("a", 2)]]
    arrow, _ = read_files(store, "t", files_to_arrow([], schema, ()), schema, (), columns=["c", "a"])
    assert arrow.names == ["c", "a"]


def test_a_column_of_a_later_schema_is_null_in_older_files() -> None:
    store = MemoryStore()
    schema, spec, files = written({"a": [1, 2]}, store)
    later = schema_from_arrow(pa.schema([("a", pa.int64()), ("b", pa.string())]))
    assert read(store, later, spec, files, columns=["b"]) == [{"b": None}, {"b": None}]
    assert read(store, later, spec, files, predicate=bind(col("b").is_null(), later))[0] == {
        "a": 1,
        "b": None,
    }


def test_row_groups_that_cannot_match_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    store, chosen = MemoryStore(), list[Any]()
    schema = schema_from_arrow(pa.schema([("n", pa.int64())]))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"n_1": pa.array(range(100), pa.int64())}), sink, row_group_size=10)
    data = sink.getvalue().to_pybytes()
    store.put("t/data/x", data)
    plain = pq.ParquetFile.iter_batches

    def watched(self: Any, *args: Any, **options: Any) -> Any:
        chosen.append(options["row_groups"])
        return plain(self, *args, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", watched)
    file = DataFile(path="data/x", size_bytes=len(data), rows=100)
    rows = read(store, schema, PLAIN, [file], predicate=bind((col("n") > 12) & (col("n") < 25), schema))
    assert len(rows) == 12
    assert chosen == [[1, 2]]


def test_a_broken_file_is_named() -> None:
    store = MemoryStore()
    schema, spec, files = written({"a": [1]}, store)
    store.put(f"t/{files[0].path}", b"PAR1 nothing")
    with pytest.raises(FormatError, match=f"{STEM}-00000.parquet .*truncated or altered"):
        read(store, schema, spec, files)


def test_a_read_of_a_file_can_be_retried_after_its_store_failed() -> None:
    class Failing(MemoryStore):
        def open_input(self, key: str) -> BinaryIO:
            return BrokenReader(super().open_input(key).read())

    class BrokenReader(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise ConnectionResetError(errno.ECONNRESET, "connection reset")

    store = Failing()
    schema, spec, files = written({"a": [1]}, store)
    with pytest.raises(StorageError, match="connection reset"):
        read(store, schema, spec, files)


def test_a_file_outside_of_the_table_is_refused() -> None:
    schema = schema_from_arrow(pa.schema([("n", pa.int64())]))
    with pytest.raises(Unsupported, match="s3://elsewhere"):
        read(MemoryStore(), schema, PLAIN, [DataFile(path="s3://elsewhere/x", size_bytes=1, rows=1)])


def test_sources_are_read_ahead_and_given_in_order() -> None:
    expected = [(source, item) for source in range(20) for item in range(source % 7)]
    assert (
        list(in_order(range(20), lambda source: iter([(source, item) for item in range(source % 7)]), 4))
        == expected
    )


@pytest.mark.parametrize("sizes", [(), [10] * 99])
def test_an_error_comes_in_its_place(sizes: list[int]) -> None:
    def items(source: int) -> Iterator[int]:
        yield source
        if source == 4:
            raise InvalidInput("four")

    taken_numbers: list[int] = []
    with pytest.raises(InvalidInput, match="four"):
        for item in in_order(range(99), items, 3, sizes=sizes):
            taken_numbers.append(item)
    assert taken_numbers == [0, 1, 2, 3, 4]


SMALL, HALF, WHOLE = 10, TOGETHER_BYTES_MAX // 2, TOGETHER_BYTES_MAX


@pytest.mark.parametrize(
    ("count", "size", "expected"),
    [(48, SMALL, 6), (48, HALF, 2), (48, WHOLE, 1), (48, None, 1), (15, SMALL, 1)],
)
def test_small_sources_are_read_together_where_there_are_many(
    count: int, size: int | None, expected: int
) -> None:
    read: list[int] = []

    def items(source: int) -> Iterator[int]:
        read.append(source)
        yield source

    order = in_order(range(count), items, 1, sizes=[size] * count)
    assert next(order) == 0
    assert read == list(range(expected)), "these are handed over together"
    assert [0, *order] == read == list(range(count))


def test_leaving_early_ends_the_threads() -> None:
    active_count_before = threading.active_count()
    reading = in_order(range(9), lambda source: iter(range(1000)), 3)
    assert next(reading) == 0
    reading.close()  # type: ignore[attr-defined]
    assert threading.active_count() == active_count_before
