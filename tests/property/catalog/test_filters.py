"""Filters on rows and on files against a naive second implementation."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.catalog.filter_model import (
    TRANSFORMS,
    TYPES,
    WIDENED,
    binds,
    holds,
    predicates,
    rows,
    schema_of,
)
from tests.property.examples import examples

from lakelog.catalog.core.files import manifest_bounds
from lakelog.catalog.core.files.data_file import (
    ColumnStats,
    DataFile,
    files_from_arrow,
    files_to_arrow,
    is_judged,
)
from lakelog.catalog.core.files.file_set import FileSet
from lakelog.catalog.core.files.file_tables import joined
from lakelog.catalog.core.files.manifest_bounds import bounds_of, bounds_table, decode_bounds, encode_bounds
from lakelog.catalog.core.logs.file_entries import with_vector
from lakelog.catalog.core.logs.stored_vectors import read_vector, write_vectors
from lakelog.catalog.core.parquet.reading import read_files, read_positions
from lakelog.catalog.core.parquet.writing import write_files
from lakelog.catalog.core.planning.aggregates import decided
from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.planning.bound import Bound
from lakelog.catalog.core.planning.pruning import match, may_match
from lakelog.catalog.core.planning.row_filter import evaluate
from lakelog.catalog.core.planning.scan_plan import choosing, plan_scan
from lakelog.catalog.core.schema.arrow_types import schema_to_arrow
from lakelog.catalog.core.schema.partitioning import (
    PartitionSpec,
    SortOrder,
    spec_from_transforms,
    with_schema,
)
from lakelog.catalog.core.schema.predicate import Predicate
from lakelog.catalog.core.schema.schema import Schema
from lakelog.log import WriteRef
from lakelog.log.stores.memory_store import MemoryStore

every_column = pytest.mark.parametrize("column", sorted(TYPES))
"""One column at a time with one more, so that filters, partitions and values often meet."""


a_few = settings(max_examples=examples(10, full=500))
"""Examples, because each is tried with several filters, and for each column anew."""


@pytest.fixture(scope="module", autouse=True)
def manifests_of_few_files() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_bounds, "BOUNDED_FROM", 1)
        yield


def beside_text(column: str) -> str:
    return "number" if column != "number" else "text"


@st.composite
def specs(draw: st.DrawFn, schema: Schema) -> list[PartitionSpec]:
    """One to three specs of a table, each an evolution of the one before."""
    known_specs: list[PartitionSpec] = []
    for _ in range(draw(st.integers(1, 3))):
        columns = draw(st.lists(st.sampled_from(schema.names), max_size=2, unique=True))
        fields = []
        for column in columns:
            text = draw(st.sampled_from(["identity", *TRANSFORMS.get(column, ())]))
            name, _, argument = text.partition("[")
            args = [int(argument.rstrip("]"))] if argument else []
            fields.append({"transform": name, "args": args, "column": [column]})
        spec = spec_from_transforms(fields, schema, existing=known_specs)
        known_specs = [each_spec for each_spec in known_specs if each_spec.id != spec.id] + [spec]
    return known_specs


@every_column
@given(data=st.data())
def test_every_row_gets_the_result_of_sql(column: str, data: st.DataObject) -> None:
    names = (column, beside_text(column))
    rows_, predicate = data.draw(rows(names)), data.draw(predicates(names))
    types = {name: TYPES[name] for name in names}
    schema = schema_of(types)
    table = pa.Table.from_pylist(rows_, schema=schema_to_arrow(schema))
    assert evaluate(bind(predicate, schema), table).to_pylist() == [
        holds(predicate, row, types) for row in rows_
    ]


@given(predicates())
def test_a_filter_survives_json(predicate: Predicate) -> None:
    again = Predicate.from_json(msgspec.json.encode(predicate.to_json()).decode())
    assert again == predicate


@every_column
@a_few
@given(data=st.data())
def test_files_are_judged_without_a_guess(column: str, data: st.DataObject) -> None:
    names = (column, beside_text(column))
    types = {name: TYPES[name] for name in names}
    schema = schema_of(types)
    rows_, specs_ = data.draw(rows(names)), data.draw(specs(schema))
    store, files = MemoryStore(), list[DataFile]()
    for index, spec in enumerate(specs_):
        files += _written_files(store, f"w{index}", rows_[index :: len(specs_)], schema, spec)
    files = [_partly_deleted(store, _forgetful(file, data), data) for file in files]
    table = joined([files_to_arrow(files, schema, specs_)])
    _check(store, table, data.draw(several(names)), schema, types, specs_)


@pytest.mark.parametrize("column", sorted(WIDENED))
@a_few
@given(data=st.data())
def test_statistics_of_a_narrower_type_are_understood(column: str, data: st.DataObject) -> None:
    names = (column, "text")
    types = {name: TYPES[name] for name in names}
    wider = {**types, column: WIDENED[column]}
    schema_before, schema_after = schema_of(types), schema_of(wider)
    filters = [predicate for predicate in data.draw(several(names)) if binds(predicate, schema_after)]
    store = MemoryStore()
    old = files_to_arrow(
        _written_files(store, "old", data.draw(rows(names)), schema_before, PartitionSpec()),
        schema_before,
        (),
    )
    widened = [_widened(row) for row in data.draw(rows(names))]
    new = files_to_arrow(
        _written_files(store, "new", widened, schema_after, PartitionSpec()), schema_after, ()
    )
    for tables in ([old, new], [new, old]):
        _check(store, joined(tables), filters, schema_after, wider, [PartitionSpec()])


def several(names: Sequence[str]) -> st.SearchStrategy[list[Predicate]]:
    return st.lists(predicates(names), min_size=4, max_size=4)


def _widened(row: dict[str, Any]) -> dict[str, Any]:
    day = row.get("day")
    return row if day is None else {**row, "day": dt.datetime(day.year, day.month, day.day)}


def _written_files(
    store: MemoryStore, write_id: str, data: list[dict[str, Any]], schema: Schema, spec: PartitionSpec
) -> list[DataFile]:
    reader = pa.Table.from_pylist(data, schema=schema_to_arrow(schema)).to_reader()
    return write_files(
        store, "t", WriteRef(id=write_id, version=0), reader, schema, spec, SortOrder(), properties={}
    )


def _forgetful(file: DataFile, choices: st.DataObject) -> DataFile:
    """Return the file with some of its statistics unknown, as other writers leave them."""
    kept_stats: dict[int, ColumnStats] = {}
    for id, stats in file.stats.items():
        lost_text = choices.draw(
            st.sampled_from(["nothing", "nothing", "all", "nulls", "min", "max", "bounds"])
        )
        changes: dict[str, Any] = {
            "nothing": {}, "all": {}, "nulls": {"nulls": None}, "min": {"min": None}, "max": {"max": None},
            "bounds": {"min": None, "max": None},
        }[lost_text]  # fmt: skip
        if lost_text != "all":
            kept_stats[id] = msgspec.structs.replace(stats, **changes)
    return msgspec.structs.replace(file, stats=kept_stats)


def _partly_deleted(store: MemoryStore, file: DataFile, choices: st.DataObject) -> DataFile:
    """Return the file with some of its rows deleted, maybe, but never all."""
    from pyroaring import BitMap

    removed_numbers = (
        choices.draw(st.sets(st.integers(0, file.rows - 1), max_size=file.rows - 1)) if file.rows else set()
    )
    if not removed_numbers:
        return file
    write = WriteRef(id=file.write_id, version=0)
    return with_vector(
        file, write_vectors(store, "t", write, {file.path: BitMap(removed_numbers)})[file.path]
    )


def _check(
    store: MemoryStore,
    files: pa.Table,
    predicates: Sequence[Predicate],
    schema: Schema,
    types: dict[str, str],
    specs: Sequence[PartitionSpec],
) -> None:
    current = [with_schema(spec, schema) for spec in specs]
    contents = [_read(store, files.slice(index, 1), schema, current) for index in range(files.num_rows)]
    assert [len(content) for content in contents] == files["rows"].to_pylist()
    for predicate in predicates:
        outcomes = [[holds(predicate, row, types) for row in content] for content in contents]
        _check_one(store, files, bind(predicate, schema), outcomes, schema, current)


def _check_one(
    store: MemoryStore,
    files: pa.Table,
    bound: Bound,
    outcomes: Sequence[Sequence[bool | None]],
    schema: Schema,
    specs: Sequence[PartitionSpec],
) -> None:
    may, result = may_match(files, bound, specs).to_pylist(), match(files, bound, specs)
    for index, of_file in enumerate(outcomes):
        assert may[index] or True not in of_file
        assert not result.none[index].as_py() or True not in of_file
        assert not result.all[index].as_py() or set(of_file) == {True}
    _check_together(files, bound, specs)
    matching_total = sum(list(of_file).count(True) for of_file in outcomes)
    everything = FileSet.empty().added(files, schema, specs)
    plan = plan_scan(everything, _no_fetch, bound, specs)
    assert plan["path"].to_pylist() == files.filter(pa.array(may))["path"].to_pylist()
    counted = decided([files], bound, specs)
    assert counted is None or sum(sum(chunk["rows"].to_pylist()) for chunk in counted) == matching_total
    limited_plan = plan_scan(everything, _no_fetch, bound, specs, limit=2)
    assert len(_read(store, plan, schema, specs, bound)) == matching_total
    found_positions = dict(read_positions(store, "t", plan, schema, bound))
    assert sum(map(len, found_positions.values())) == matching_total
    for path, positions in found_positions.items():
        # Without these rows, the file has none that match, and all others.
        first_file = files_from_arrow(files.filter(pc.equal(files["path"], path)))[0]
        old = read_vector(store, "t", first_file.deletes, first_file.physical_rows)
        assert not old & positions
        write = WriteRef(id="x", version=0)
        remaining_vector = with_vector(
            first_file, write_vectors(store, "t", write, {path: old | positions})[path]
        )
        files_after = files_to_arrow([remaining_vector], schema, specs)
        assert _read(store, files_after, schema, specs, bound) == []
        assert (
            len(_read(store, files_after, schema, specs))
            == remaining_vector.rows
            == first_file.rows - len(positions)
        )
    assert len(_read(store, limited_plan, schema, specs, bound)) >= min(2, matching_total)


def _check_together(files: pa.Table, bound: Bound, specs: Sequence[PartitionSpec]) -> None:
    """Whatever may be in a file may be in each manifest that it is in, also after the bounds were stored."""
    choice = choosing(bound, specs)
    if choice is None:
        return
    without_statistics = [name for name in files.column_names if is_judged(name, ())]
    for known_files in (files, files.select(["path", *without_statistics])):
        may, count = may_match(known_files, bound, specs).to_pylist(), known_files.num_rows
        groups = [
            (0, count),
            *((at, at + 2) for at in range(0, count, 2)),
            *((at, at + 1) for at in range(count)),
        ]
        bounds = [
            bounds_of(str(place), known_files.slice(*_part(group))) for place, group in enumerate(groups)
        ]
        stored = decode_bounds(encode_bounds([each for each in bounds if each is not None]))
        chosen_rows = choice.manifests(bounds_table(list(stored.values()))).to_pylist()
        for (first, end), needed in zip(groups, chosen_rows, strict=True):
            assert needed or True not in may[first:end]


def _part(group: tuple[int, int]) -> tuple[int, int]:
    return group[0], group[1] - group[0]


def _read(
    store: MemoryStore,
    files: pa.Table,
    schema: Schema,
    specs: Sequence[PartitionSpec],
    bound: Bound | None = None,
) -> list[dict[str, Any]]:
    arrow, batches = read_files(store, "t", files, schema, specs, predicate=bound)
    rows: list[dict[str, Any]] = pa.Table.from_batches(list(batches), arrow).to_pylist()
    return rows


def _no_fetch(names: Sequence[str]) -> list[bytes]:
    raise AssertionError(f"nothing is stored, but {names} were asked for")
