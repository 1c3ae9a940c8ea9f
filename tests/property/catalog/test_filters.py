"""Filters on rows and on files against a naive second implementation."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa
from hypothesis import HealthCheck, assume, given, settings
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

from lakelog.catalog.arrow_types import schema_to_arrow
from lakelog.catalog.binding import bind
from lakelog.catalog.data_file import ColumnStats, DataFile, files_to_arrow
from lakelog.catalog.file_set import FileSet
from lakelog.catalog.file_tables import joined
from lakelog.catalog.parquet_read import read_files
from lakelog.catalog.parquet_write import write_files
from lakelog.catalog.partitioning import PartitionSpec, SortOrder, spec_from_transforms, with_schema
from lakelog.catalog.planning import count_rows, plan
from lakelog.catalog.predicate import Predicate
from lakelog.catalog.pruning import match, may_match
from lakelog.catalog.rows import evaluate
from lakelog.catalog.schema import Schema
from lakelog.log import WriteRef
from lakelog.log.memory_store import MemoryStore

OLD = schema_of(TYPES)
relaxed = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])


few_columns = st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=2, unique=True)
"""So few that filters and partitions often meet in one."""


@st.composite
def specs(draw: st.DrawFn, names: Sequence[str]) -> list[PartitionSpec]:
    """One to three specs of a table, each an evolution of the one before."""
    known: list[PartitionSpec] = []
    for _ in range(draw(st.integers(1, 3))):
        columns = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
        fields = []
        for column in columns:
            text = draw(st.sampled_from(["identity", *TRANSFORMS.get(column, ())]))
            name, _, argument = text.partition("[")
            args = [int(argument.rstrip("]"))] if argument else []
            fields.append({"transform": name, "args": args, "column": [column]})
        spec = spec_from_transforms(fields, OLD, existing=known)
        known = [each for each in known if each.id != spec.id] + [spec]
    return known


@given(rows(), predicates())
@relaxed
def test_every_row_gets_the_result_of_sql(data: list[dict[str, Any]], predicate: Predicate) -> None:
    table = pa.Table.from_pylist(data, schema=schema_to_arrow(OLD))
    assert evaluate(bind(predicate, OLD), table).to_pylist() == [holds(predicate, row, TYPES) for row in data]


@given(rows(), predicates())
@relaxed
def test_a_filter_survives_json(data: list[dict[str, Any]], predicate: Predicate) -> None:
    again = Predicate.from_json(msgspec.json.encode(predicate.to_json()).decode())
    assert again == predicate


@given(rows(), few_columns.flatmap(lambda names: st.tuples(predicates(names), specs(names))), st.data())
@relaxed
def test_files_are_judged_without_a_guess(
    data: list[dict[str, Any]], case: tuple[Predicate, list[PartitionSpec]], choices: st.DataObject
) -> None:
    predicate, specs = case
    store, files = MemoryStore(), list[DataFile]()
    for index, spec in enumerate(specs):
        files += _written(store, f"w{index}", data[index :: len(specs)], OLD, spec)
    files = [_forgetful(file, choices) for file in files]
    _check(store, joined([files_to_arrow(files, OLD, specs)]), predicate, OLD, TYPES, specs)


@given(rows(), rows(), few_columns.flatmap(predicates))
@relaxed
def test_statistics_of_a_narrower_type_are_understood(
    old: list[dict[str, Any]], new: list[dict[str, Any]], predicate: Predicate
) -> None:
    types = {**TYPES, **WIDENED}
    schema, unpartitioned = schema_of(types), PartitionSpec()
    assume(binds(predicate, schema))
    store = MemoryStore()
    before = files_to_arrow(_written(store, "old", old, OLD, unpartitioned), OLD, ())
    widened = [_widened(row) for row in new]
    after = files_to_arrow(_written(store, "new", widened, schema, unpartitioned), schema, ())
    for tables in ([before, after], [after, before]):
        _check(store, joined(tables), predicate, schema, types, [unpartitioned])


def _widened(row: dict[str, Any]) -> dict[str, Any]:
    day = row["day"]
    return {**row, "day": None if day is None else dt.datetime(day.year, day.month, day.day)}


def _written(
    store: MemoryStore, write_id: str, data: list[dict[str, Any]], schema: Schema, spec: PartitionSpec
) -> list[DataFile]:
    reader = pa.Table.from_pylist(data, schema=schema_to_arrow(schema)).to_reader()
    return write_files(
        store, "t", WriteRef(id=write_id, version=0), reader, schema, spec, SortOrder(), properties={}
    )


def _forgetful(file: DataFile, choices: st.DataObject) -> DataFile:
    """Return the file with some of its statistics unknown, as other writers leave them."""
    kept: dict[int, ColumnStats] = {}
    for id, stats in file.stats.items():
        lost = choices.draw(st.sampled_from(["nothing", "nothing", "all", "nulls", "min", "max", "bounds"]))
        changes: dict[str, Any] = {
            "nothing": {}, "all": {}, "nulls": {"nulls": None}, "min": {"min": None}, "max": {"max": None},
            "bounds": {"min": None, "max": None},
        }[lost]  # fmt: skip
        if lost != "all":
            kept[id] = msgspec.structs.replace(stats, **changes)
    return msgspec.structs.replace(file, stats=kept)


def _check(
    store: MemoryStore,
    files: pa.Table,
    predicate: Predicate,
    schema: Schema,
    types: dict[str, str],
    specs: Sequence[PartitionSpec],
) -> None:
    current = [with_schema(spec, schema) for spec in specs]
    bound = bind(predicate, schema)
    may, result = may_match(files, bound, current).to_pylist(), match(files, bound, current)
    matching = 0
    for index, possible in enumerate(may):
        one = files.slice(index, 1)
        content = _read(store, one, schema, current)
        outcomes = [holds(predicate, row, types) for row in content]
        assert len(content) == one["rows"][0].as_py()
        assert possible or True not in outcomes
        assert not result.none[index].as_py() or True not in outcomes
        assert not result.all[index].as_py() or set(outcomes) == {True}
        matching += outcomes.count(True)
        filtered = read_files(store, "t", one, schema, current, predicate=bound)
        assert sum(batch.num_rows for batch in filtered[1]) == outcomes.count(True)
    everything = FileSet.empty().added(files, schema, current)
    planned = plan(everything, _no_fetch, bound, current)
    assert planned["path"].to_pylist() == files.filter(pa.array(may))["path"].to_pylist()
    assert count_rows(everything, _no_fetch, bound, current) in (None, matching)
    limited = plan(everything, _no_fetch, bound, current, limit=2)
    found = read_files(store, "t", limited, schema, current, predicate=bound)
    assert sum(batch.num_rows for batch in found[1]) >= min(2, matching)


def _read(
    store: MemoryStore, files: pa.Table, schema: Schema, specs: Sequence[PartitionSpec]
) -> list[dict[str, Any]]:
    arrow, batches = read_files(store, "t", files, schema, specs)
    rows: list[dict[str, Any]] = pa.Table.from_batches(list(batches), arrow).to_pylist()
    return rows


def _no_fetch(names: Sequence[str]) -> list[bytes]:
    raise AssertionError(f"nothing is stored, but {names} were asked for")
