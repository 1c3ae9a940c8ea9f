"""Every type of Arrow, by each giver, in each write: the same rows come back, or one line refuses it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.integration.catalog.tools import arrow_forms, arrow_givers
from tests.integration.catalog.tools.arrow_forms import Column, comparable

from lakelog.catalog import Catalog, Table
from lakelog.catalog.core.parquet.given_rows import stream_of
from lakelog.catalog.core.parquet.plain_arrow import with_parts
from lakelog.log.errors import InvalidInput

COLUMNS = list(arrow_forms.columns(2))
SAMPLED, TOGETHER = 60, 150
"""Columns of one table, in the short form and in the full one."""


def _seeded_table(table: Table) -> Table:
    return table.append(pa.table({"id": [0, 1, 99]}))


def append(catalog: Catalog, schema: pa.Schema, data: Any) -> Table:
    return catalog.create_table("t", schema).append(data)


def overwrite(catalog: Catalog, schema: pa.Schema, data: Any) -> Table:
    return _seeded_table(catalog.create_table("t", schema)).overwrite(data)


def overwrite_partitions(catalog: Catalog, schema: pa.Schema, data: Any) -> Table:
    by = [{"transform": "bucket", "args": [1], "column": ["id"]}]
    return _seeded_table(catalog.create_table("t", schema, partition_by=by)).overwrite_partitions(data)


def upsert(catalog: Catalog, schema: pa.Schema, data: Any) -> Table:
    return _seeded_table(catalog.create_table("t", schema)).upsert(data, on="id").delete("id = 99")


def merge(catalog: Catalog, schema: pa.Schema, data: Any) -> Table:
    merging = _seeded_table(catalog.create_table("t", schema)).merge(data, on="target.id = source.id")
    merging = merging.when_matched_update_all().when_not_matched_insert_all()
    return merging.when_not_matched_by_source_delete().execute()


def update(catalog: Catalog, schema: pa.Schema, data: Any) -> Table:
    """All columns of rows that are updated go to DuckDB and come back."""
    return catalog.create_table("t", schema).append(data).update({"id": "id + 0"}, "true")


OPERATIONS: dict[str, Callable[[Catalog, pa.Schema, Any], Table]] = {
    each.__name__: each for each in (append, overwrite, overwrite_partitions, upsert, merge, update)
}
FORMS: dict[str, Callable[[list[Column]], Any]] = {
    "table": arrow_forms.table_of,
    "slices": lambda given: arrow_forms.table_of([arrow_forms.sliced(column) for column in given]),
    "chunks": lambda given: arrow_forms.table_of(given, chunked=True),
    "reader": lambda given: arrow_forms.table_of(given).to_reader(max_chunksize=4),
    "batch": lambda given: arrow_forms.table_of(given).to_batches()[0],
}


def grouped(values: list[Any]) -> Iterator[list[Any]]:
    """Yield the values in groups, each for one table."""
    for at in range(0, len(values), TOGETHER):
        yield values[at : at + TOGETHER]


def assert_kept(table: Table, kept: dict[str, list[Any]]) -> None:
    rows = table.refresh().to_arrow().sort_by("id")
    for name, values in kept.items():
        assert comparable(rows[name].to_pylist()) == comparable(values), name


def check(operation: str, form: str, given: list[Column]) -> None:
    catalog = Catalog(f"memory://{random.randbytes(8).hex()}")
    table = OPERATIONS[operation](catalog, arrow_forms.stored_schema(given), FORMS[form](given))
    assert_kept(table, {column.name: column.kept for column in given})


@pytest.mark.parametrize(("operation", "form"), list(itertools.product(OPERATIONS, FORMS)))
def test_values_of_any_type_come_back(operation: str, form: str) -> None:
    sampled_columns = random.Random(f"{operation} {form}").sample(COLUMNS, SAMPLED)
    check(operation, form, sampled_columns)


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_values_of_every_type_come_back(operation: str) -> None:
    forms = itertools.cycle(FORMS)
    for given in grouped(random.Random(operation).sample(COLUMNS, len(COLUMNS))):
        check(operation, next(forms), given)


def storable(schema: pa.Schema) -> pa.Schema:
    """Return a schema whose columns of nothing are of texts."""

    def of(type: pa.DataType) -> pa.DataType:
        return pa.string() if pa.types.is_null(type) else with_parts(type, lambda field: of(field.type))

    return pa.schema([field.with_type(of(field.type)) for field in schema])


@pytest.fixture(scope="module", params=arrow_givers.GIVERS)
def given(request: pytest.FixtureRequest) -> arrow_givers.Given:
    return arrow_givers.GIVERS[request.param]()


def some_of(frame: Any, names: list[str]) -> Any:
    """Return some columns of a frame, with its id."""
    if isinstance(frame, pd.DataFrame):
        return frame[["id", *names]]
    if isinstance(frame, pl.DataFrame):
        return frame.select("id", *names)
    return frame.select(", ".join(f'"{name}"' for name in ("id", *names)))


def check_frame(given: arrow_givers.Given, operation: str, names: list[str]) -> None:
    catalog = Catalog(f"memory://{random.randbytes(8).hex()}")
    frame, kept = some_of(given[0], names), {name: given[1][name] for name in names}
    assert_kept(OPERATIONS[operation](catalog, storable(stream_of(frame).schema), frame), kept)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_some_columns_of_frames_come_back(given: arrow_givers.Given, operation: str) -> None:
    names = list(given[1])
    check_frame(given, operation, random.Random(operation).sample(names, min(SAMPLED, len(names))))


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_all_columns_of_frames_come_back(given: arrow_givers.Given, operation: str) -> None:
    for names in grouped(list(given[1])):
        check_frame(given, operation, names)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("what", arrow_forms.REFUSED)
def test_values_that_cannot_be_kept_are_refused_in_one_line(
    catalog: Catalog, operation: str, what: str
) -> None:
    values = arrow_forms.REFUSED[what]()
    data = pa.table({"id": pa.array(range(len(values)), pa.int64()), "v": values})
    with pytest.raises(InvalidInput, match=r"column v\b.* Arrow's type .*: ") as refused_error:
        OPERATIONS[operation](catalog, arrow_forms.stored_schema([]).append(pa.field("v", pa.string())), data)
    assert len(refused_error.value.message.splitlines()) == 1


def hidden() -> pa.Array:
    """Lists and maps of one value each, the first below a NULL struct, the second a NULL itself."""
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), pa.array([1, 2, 3]))
    nulls = pa.ListArray.from_arrays(lists.offsets, lists.values, mask=pa.array([False, True, False]))
    maps = pa.MapArray.from_arrays(lists.offsets, pa.array(["a", "b", "c"]), nulls)
    return pa.StructArray.from_arrays([nulls, maps], ["x", "y"], mask=pa.array([True, False, False]))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_values_below_nulls_are_not_written(catalog: Catalog, operation: str) -> None:
    data = pa.table({"id": [0, 1, 2], "v": hidden()})
    found = stream_of(data).reader().read_all()["v"].combine_chunks()
    assert len(found.field("x").values) == 1 and len(found.field("y").keys) == 2
    kept = [None, {"x": None, "y": [("b", None)]}, {"x": [3], "y": [("c", [3])]}]
    assert_kept(OPERATIONS[operation](catalog, data.schema, data), {"v": kept})


def test_rows_without_a_column_are_rows(catalog: Catalog) -> None:
    table = catalog.create_table("t", pa.schema([("v", pa.string())]))
    batch = pa.RecordBatch.from_struct_array(pa.array([{}, {}, {}], pa.struct([])))
    for each_batch in (batch, pa.Table.from_batches([batch]), pd.DataFrame(index=range(3))):
        table = table.append(each_batch)
    assert table.to_arrow()["v"].null_count == 9


FRAMES: dict[str, tuple[Callable[[], Any], str]] = {
    "Polars' Int128": (
        lambda: pl.DataFrame({"id": [1], "v": pl.Series([2**100], dtype=pl.Int128)}), "the column v .*Int128.*cast it"
    ),
    "a list of it": (
        lambda: pl.DataFrame({"id": [1], "v": pl.Series([[1]], dtype=pl.List(pl.Int128))}), "the column v .*Int128"
    ),
    "pandas' mixed objects": (lambda: pd.DataFrame({"id": [1, 2], "v": [1, "a"]}), "column v with type.*convert"),
    "sparse numbers": (lambda: pd.DataFrame({"id": [1], "v": pd.arrays.SparseArray([1])}), r"column v\b.*convert"),
    "complex numbers": (lambda: pd.DataFrame({"id": [1], "v": [1j]}), r"column v\b.*convert"),
    "periods": (
        lambda: pd.DataFrame({"id": [1], "v": pd.period_range("2024-01", periods=1, freq="M")}),
        "column v .*period.*cast it",
    ),
    "intervals of numbers": (
        lambda: pd.DataFrame({"id": [1], "v": pd.interval_range(0, 1)}), "column v .*interval.*cast it"
    ),
    "two columns of a name": (lambda: pd.DataFrame([[1, 2, 3]], columns=["id", "v", "v"]), "v.*convert the column"),
    "Polars' objects": (
        lambda: pl.DataFrame({"id": [1], "v": pl.Series([object()], dtype=pl.Object)}), "column v has .*Object.*convert"
    ),
    "a series of pandas": (lambda: pd.Series([1], name="v"), "a Series.*give a"),
    "a series of Polars": (lambda: pl.Series("v", [1]), "rows of a Series.*give a table"),
    "a column of pyarrow": (lambda: pa.chunked_array([[1]]), "rows of a ChunkedArray.*give a table"),
    "DuckDB's interval": (lambda: duckdb.sql("SELECT 1 AS id, INTERVAL 1 DAY AS v"), "column v .*interval.*cast it"),
    "DuckDB's union": (lambda: duckdb.sql("SELECT 1 AS id, union_value(k := 1) AS v"), "the column v .*union.*cast it"),
    "DuckDB's BIGNUM": (lambda: duckdb.sql("SELECT 1 AS id, 1::BIGNUM AS v"), "the column v .*opaque.*cast it"),
    "a HUGEINT of 39 digits": (
        lambda: duckdb.sql("SELECT 1 AS id, 170141183460469231731687303715884105727::HUGEINT AS v"),
        "column v .*decimal128.*convert it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("what", FRAMES)
def test_frames_that_cannot_be_kept_are_refused_in_one_line(
    catalog: Catalog, operation: str, what: str
) -> None:
    make, why = FRAMES[what]
    with pytest.raises(InvalidInput, match=why) as refused_error:
        OPERATIONS[operation](catalog, pa.schema([("id", pa.int64()), ("v", pa.decimal128(38, 0))]), make())
    assert len(refused_error.value.message.splitlines()) == 1


NAMED = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("ids", [[1, 2, 3], [1, 3, 5], [1, 2, 4], [3, 1, 2]])
def test_an_index_with_a_name_is_a_column_whatever_its_values_are(
    catalog: Catalog, operation: str, ids: list[int]
) -> None:
    frame = pd.DataFrame({"id": ids, "name": ["a", "b", "c"]}).set_index("id")
    rows = OPERATIONS[operation](catalog, NAMED, frame).to_arrow().to_pylist()
    wanted = dict(zip(ids, "abc", strict=True))
    assert {each["id"]: each["name"] for each in rows if each["id"] in ids} == wanted


def test_levels_of_an_index_are_columns_and_numbers_of_rows_are_not(catalog: Catalog) -> None:
    frame = pd.DataFrame({"id": [1, 2, 4], "name": ["a", "b", "c"]})
    both = frame.assign(v=1).set_index(["id", "name"])[[]]
    table = catalog.create_table("t", NAMED).append(both)
    for each in (frame[frame.id != 2], pd.concat([frame, frame]), frame.sort_values("name", ascending=False)):
        table = table.append(each)
    assert table.to_arrow().num_rows == 3 + 2 + 6 + 3 and table.to_arrow()["id"].null_count == 0


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (
            lambda: pd.DataFrame({"id": [1]}, index=["a"]),
            "the index of the data frame .* has no name.*rename_axis",
        ),
        (
            lambda: pd.DataFrame({"id": [1]}, index=[[1], [2]]),
            "level 0 of the data frame's index has no name",
        ),
        (
            lambda: pd.DataFrame({"id": [1]}, index=pd.Index([1], name="id")),
            "id as a column and in its index",
        ),
        (
            lambda: pa.Table.from_pandas(pd.DataFrame({"name": ["a"]}, index=pd.RangeIndex(1, 2, name="id"))),
            "its index id is not in it: make it of frame.reset_index",
        ),
    ],
)
def test_an_index_that_would_be_lost_is_refused(catalog: Catalog, frame: Callable[[], Any], why: str) -> None:
    table = catalog.create_table("t", NAMED)
    for write in (table.append, lambda data: table.upsert(data, on="id")):
        with pytest.raises(InvalidInput, match=why):
            write(frame())


def test_python_values_of_an_update_come_back(catalog: Catalog) -> None:
    atoms = [
        atom for atom in arrow_forms.atoms() if atom.kept[0] is not None and not isinstance(atom.kept[0], str)
    ]
    # A float of Python is a double, which a FLOAT does not take.
    atoms = [column for column in atoms if column.name in arrow_forms.ATOMS.keys() - {"float", "half float"}]
    table = catalog.create_table("t", arrow_forms.stored_schema(atoms)).append(arrow_forms.table_of(atoms))
    table_after = table.update({column.name: column.kept[0] for column in atoms}, "true")
    assert_kept(table_after, {column.name: [column.kept[0]] * arrow_forms.ROWS for column in atoms})
