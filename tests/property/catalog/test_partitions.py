"""However a table was partitioned and becomes so, its rows, filters and partitions are those of a list of rows."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.property.examples import examples

from lakelog.catalog import Catalog, col, engine
from lakelog.catalog.core.planning.partitions import fields_of
from lakelog.catalog.core.schema.literals import from_arrow
from lakelog.catalog.core.schema.transforms import apply_transform
from lakelog.catalog.core.schema.types import AtomicType
from lakelog.catalog.table import Table
from lakelog.log import LakelogError, Unsupported

SCHEMA = pa.schema(
    [("id", pa.int64()), ("k", pa.string()), ("x", pa.float64()), ("at", pa.timestamp("us", "UTC"))]
)
DOMAINS: dict[str, list[Any]] = {
    "id": [-(2**63), -7, 0, 1, 2, 15, 2**63 - 1],
    "k": [None, "", "a", "ab", "abc", "b" * 40, "b" * 40 + "c"],
    "x": [None, 0.0, -1.5, 1.5, float("nan"), float("inf")],
    "at": [None, *(dt.datetime(2020, month, 28, 23, tzinfo=dt.UTC) for month in (1, 2, 12))],
}
TRANSFORMS: list[Any] = [
    "k", "x", "id",
    {"transform": "bucket", "args": [3], "column": ["id"]}, {"transform": "bucket", "args": [2], "column": ["k"]},
    {"transform": "truncate", "args": [2], "column": ["k"]}, {"transform": "truncate", "args": [10], "column": ["id"]},
    {"transform": "month", "column": ["at"]}, {"transform": "day", "column": ["at"]},
]  # fmt: skip

rows = st.lists(
    st.fixed_dictionaries({name: st.sampled_from(domain) for name, domain in DOMAINS.items()}), max_size=4
)
transforms = st.sampled_from(TRANSFORMS)
evolutions = st.one_of(
    st.builds(lambda field: {"change": "add-partition-field", "field": field}, transforms),
    st.builds(lambda field: {"change": "drop-partition-field", "field": field}, transforms),
    st.builds(
        lambda field, by: {"change": "replace-partition-field", "field": field, "by": by},
        transforms,
        transforms,
    ),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), rows),
        st.tuples(st.just("evolve"), evolutions),
        st.tuples(st.sampled_from(["overwrite", "replace"]), rows),
        st.tuples(st.sampled_from(["add", "drop", "truncate", "delete"]), rows),
        st.tuples(st.just("truncate-table"), st.just([])),
        st.tuples(st.just("rename"), rows.filter(lambda rows: len(rows) > 1)),
    ),
    max_size=8,
)


def key(table: Table, row: dict[str, Any]) -> tuple[Any, ...]:
    found = []
    for field in table.spec.fields:
        column = table.schema.field_by_id(field.source_id)
        assert isinstance(column.type, AtomicType)
        values = pa.array([row[column.name]], SCHEMA.field(column.name).type)
        found += from_arrow(apply_transform(field.transform, values, column.type))
    return tuple(found)


def values(table: Table, row: dict[str, Any]) -> dict[str, Any]:
    return dict(zip(fields_of(table.metadata), key(table, row), strict=True))


def shown_texts(rows: Sequence[dict[str, Any]]) -> list[str]:
    return sorted(str([row[name] for name in ("id", "k", "x")] + [str(row["at"])]) for row in rows)


def listed(table: Table) -> dict[tuple[Any, ...], int]:
    partitions = engine.partitions(table)
    names = list(fields_of(table.metadata))
    keys = zip(*(from_arrow(partitions[name].combine_chunks()) for name in names), strict=True)
    return dict(zip(keys, partitions["rows"].to_pylist(), strict=True))


class Model:
    """The rows of a table, and the partitions that it has without rows."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.rows: list[dict[str, Any]] = []
        self.empty: set[tuple[Any, ...]] = set()
        self.unsure: set[tuple[Any, ...]] = set()
        self.versions: dict[int, list[dict[str, Any]]] = {table.version: []}

    def take(self, kind: str, given: Any) -> None:
        table = self.table
        match kind:
            case "append":
                self.table = table.append(pa.Table.from_pylist(given, SCHEMA))
                self.rows = self.rows + given
            case "evolve":
                self.table = table.alter([given])
                # Which of them were of partitions that are still there is not distinguished here.
                self.empty = set()
            case "overwrite":
                touched_keys = {key(table, row) for row in given}
                self.table = table.overwrite_partitions(pa.Table.from_pylist(given, SCHEMA))
                self.rows = [row for row in self.rows if key(table, row) not in touched_keys] + given
                self.empty -= touched_keys
            case "replace":
                gone = [row["k"] for row in given[:2]]
                known = [k for k in gone if k is not None]
                condition = (
                    col("k").is_in(known) | col("k").is_null() if None in gone else col("k").is_in(known)
                )
                self.table = table.overwrite(pa.Table.from_pylist(given, SCHEMA), condition)
                self.rows = [row for row in self.rows if row["k"] not in gone] + given
                # By a filter, a partition without rows may go or stay.
                self.unsure |= self.empty
                self.empty = set()
            case "add":
                self.table = engine.add_partitions(table, [values(table, row) for row in given])
                self.empty |= {key(table, row) for row in given}
            case "drop" | "truncate":
                keys = {key(table, row) for row in given}
                change = engine.drop_partitions if kind == "drop" else engine.truncate_partitions
                self.table = change(table, [values(table, row) for row in given])
                self.rows = [row for row in self.rows if key(table, row) not in keys]
                self.empty = self.empty - keys if kind == "drop" else self.empty | keys
            case "delete":
                ids = {row["id"] for row in given}
                self.table = table.delete(col("id").is_in(sorted(ids)))
                assert any(row["id"] in ids for row in self.rows) is (self.table.version > table.version)
                self.rows = [row for row in self.rows if row["id"] not in ids]
            case "truncate-table":
                self.table = table.truncate()
                self.rows = []
            case "rename":
                self.rename(*given[:2])
        self.versions[self.table.version] = self.rows

    def rename(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        table, was_key, becomes = self.table, key(self.table, old), key(self.table, new)
        self.table = engine.rename_partition(table, values(table, old), values(table, new))
        names = [table.schema.path_of(field.source_id)[0] for field in table.spec.fields]
        changed = {n: new[n] for n, a, b in zip(names, was_key, becomes, strict=True) if a != b}
        self.rows = [{**row, **changed} if key(table, row) == was_key else row for row in self.rows]
        self.empty = {becomes if each == was_key else each for each in self.empty}


@settings(max_examples=examples(40, full=400))
@given(first=st.lists(transforms, max_size=2), taken=steps, data=st.data())
def test_a_table_of_many_partitionings_is_its_rows(
    first: list[Any], taken: list[Any], data: st.DataObject
) -> None:
    catalog = Catalog(f"memory://{uuid.uuid4()}")
    try:
        model = Model(catalog.create_table("t", SCHEMA, partition_by=first))
    except LakelogError:
        return
    for kind, given_ in taken:
        try:
            model.take(kind, given_)
            event(f"{kind} done")
        except LakelogError as error:
            assert kind not in ("overwrite", "replace") or not isinstance(error, Unsupported)
            assert error.kind != "nothing-to-do"
            event(f"{kind} refused: {type(error).__name__}")
    table = model.table
    assert shown_texts(table.to_arrow().to_pylist()) == shown_texts(model.rows)
    _check_filters(model, data)
    _check_partitions(model)
    again = Catalog(catalog.warehouse).load_table("t")
    for version, rows in model.versions.items():
        assert shown_texts(again.at(version=version).to_arrow().to_pylist()) == shown_texts(rows)


def _check_filters(model: Model, data: st.DataObject) -> None:
    for name in ("id", "k", "at"):
        value = data.draw(st.sampled_from(DOMAINS[name]))
        if value is None:
            wanted_rows, condition = [row for row in model.rows if row[name] is None], col(name).is_null()
        else:
            below = [row for row in model.rows if row[name] is not None and row[name] <= value]
            wanted_rows, condition = below, col(name) <= value
        assert shown_texts(model.table.scan(filter=condition).to_arrow().to_pylist()) == shown_texts(
            wanted_rows
        )


def _check_partitions(model: Model) -> None:
    table = model.table
    if not table.spec.fields:
        return
    try:
        found = listed(table)
    except Unsupported:
        assert len(table.specs) > 1
        return
    wanted: dict[tuple[Any, ...], int] = {}
    for row in model.rows:
        wanted[key(table, row)] = wanted.get(key(table, row), 0) + 1
    assert {each: count for each, count in found.items() if count} == wanted
    if len(table.specs) == 1:
        known = wanted.keys() | model.empty
        assert known <= found.keys() <= known | model.unsure
