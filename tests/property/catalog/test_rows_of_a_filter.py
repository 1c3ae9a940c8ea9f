"""The rows that a scan finds by a filter, and those that a delete, an overwrite and an update change by it, are those
of which it is true when it is looked at row by row; in files of one row and of many, partitioned or not."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.property.catalog import filter_model
from tests.property.catalog.filter_model import NAN, TYPES, VALUES, binds, holds
from tests.property.examples import examples

from lakelog.catalog import Catalog, Table
from lakelog.catalog.core.schema.arrow_types import schema_to_arrow
from lakelog.catalog.core.schema.partitioning import Transform
from lakelog.catalog.core.schema.predicate import Column, FilterLiteral, Predicate, TransformedColumn, literal
from lakelog.catalog.core.schema.spark_types import schema_from_spark

FAR = [-719_163, -1_000_000, 0, 19_782, 2_932_897, 4_000_000]
"""Days, of which Python's dates know two."""

DAY = 86_400_000_000
SHORT = ["", "a", "ab", "abcd", "b", "é"]
FIELDS = {"text": "string", "fixed": "char(4)", "real": "double", "n": "integer"}
NESTED: Mapping[str, list[Any]] = {
    "text": ["", "a", "a ", "ab"], "fixed": SHORT, "real": [NAN, -0.0, 0.0, 1.5], "n": [-1, 0, 5],
}  # fmt: skip
LAYOUTS: list[tuple[str, list[str], list[int]]] = [
    ("identity", ["fixed"], []), ("bucket", ["fixed"], [2]), ("truncate", ["fixed"], [1]), ("identity", ["text"], []),
    ("truncate", ["text"], [2]), ("truncate", ["price"], [50]), ("month", ["moment"], []), ("identity", ["flag"], []),
    ("year", ["far"], []), ("truncate", ["number"], [10]), ("bucket", ["data"], [2]), ("identity", ["st", "n"], []),
]  # fmt: skip
TEXT_TESTS = ("STARTS_WITH", "ENDS_WITH", "CONTAINS")
KEYS = {"k": "integer", "u": "integer"}


def fields(types: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": name, "type": type, "nullable": True, "metadata": {}}
        if isinstance(type, str)
        else {
            "name": name,
            "type": {"type": "struct", "fields": fields(type)},
            "nullable": True,
            "metadata": {},
        }
        for name, type in types.items()
    ]


COLUMNS = KEYS | TYPES | {"fixed": "char(4)", "far": "date", "st": FIELDS}
FLATTENED = (
    TYPES | {"fixed": "char(4)", "far": "date"} | {f"st.{name}": type for name, type in FIELDS.items()}
)


@st.composite
def made_rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    def value(choices: list[Any]) -> Any:
        return draw(st.none() | st.sampled_from(choices))

    return [
        {"k": k, "u": k % 3}
        | {name: value(VALUES[name]) for name in TYPES}
        | {"fixed": value(SHORT), "far": value(FAR)}
        | {"st": None if draw(st.integers(0, 4)) == 0 else {name: value(of) for name, of in NESTED.items()}}
        for k in range(draw(st.integers(1, 6)))
    ]


def as_model(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row by the paths of its columns, as the model compares it: texts of CHAR(4) have four characters."""
    flat = {name: row[name] for name in TYPES}
    flat |= {f"st.{name}": None if row["st"] is None else row["st"][name] for name in FIELDS}
    flat |= {"fixed": row["fixed"], "far": None if row["far"] is None else Fraction(row["far"] * DAY)}
    for name in ("fixed", "st.fixed"):
        flat[name] = None if flat[name] is None else flat[name].ljust(4)
    return flat


def model_of(predicate: Predicate) -> Predicate:
    """Return the filter on the columns of `as_model`. Only beside a column of type CHAR, blanks do not count."""
    args = predicate.args
    is_fixed = Column(("fixed",)) in args and predicate.op not in TEXT_TESTS
    return Predicate(predicate.op, tuple(_model_of(arg, is_fixed) for arg in args))


def _model_of(operand: Any, is_fixed: bool) -> Any:
    match operand:
        case Predicate():
            return model_of(operand)
        case Column(path=path):
            return Column((".".join(path),))
        case TransformedColumn(column=Column(path=path)):
            return TransformedColumn(operand.transform, Column((".".join(path),)))
        case FilterLiteral(value=str() as value) if is_fixed:
            return FilterLiteral(value.rstrip(" ").ljust(4), operand.type)
    return operand


def leaves() -> st.SearchStrategy[Predicate]:
    def of_text(operand: Any, values: list[str]) -> st.SearchStrategy[Predicate]:
        value = st.sampled_from([*values, *(f"{value}  " for value in values)]).map(literal)
        compared_builds = st.builds(
            lambda op, right: Predicate(op, (operand, right)),
            st.sampled_from(["=", "<=>", "<>", "<", "<=", ">", ">=", *TEXT_TESTS]),
            value,
        )
        return compared_builds | st.lists(value | st.just(FilterLiteral(None)), min_size=1, max_size=3).map(
            lambda some: Predicate("IN", (operand, *some))
        )

    def of_numbers(column: Column, values: list[FilterLiteral]) -> st.SearchStrategy[Predicate]:
        ops = st.sampled_from(["=", "<=>", "<>", "<", "<=", ">", ">="])
        return st.builds(lambda op, right: Predicate(op, (column, right)), ops, st.sampled_from(values))

    fixed_column = Column(("fixed",))
    nested_texts = [
        of_text(Column(("st", "text")), NESTED["text"]),
        of_text(Column(("st", "fixed")), SHORT),
        of_numbers(Column(("st", "real")), [literal(each) for each in NESTED["real"]]),
        of_numbers(Column(("st", "n")), [literal(number) for number in (-1, 0, 5, 2.5)]),
        st.sampled_from(["IS_NULL", "IS_NOT_NULL"]).map(lambda op: Predicate(op, (Column(("st", "n")),))),
    ]
    return st.one_of(
        of_text(fixed_column, SHORT),
        of_text(TransformedColumn(Transform.parse("truncate[2]"), fixed_column), SHORT),
        of_numbers(Column(("far",)), [FilterLiteral(day, "date") for day in FAR]),
        *nested_texts,
        filter_model.predicates(),
    )


def conditions() -> st.SearchStrategy[Predicate]:
    return st.recursive(
        leaves(),
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda pair: Predicate("AND", pair)),
            st.tuples(inner, inner).map(lambda pair: Predicate("OR", pair)),
            inner.map(lambda one: Predicate("NOT", (one,))),
        ),
        max_leaves=3,
    )


def keys(table: Table) -> set[tuple[int, int]]:
    rows = table.scan(["k", "u"]).to_arrow()
    return set(zip(rows["k"].to_pylist(), rows["u"].to_pylist(), strict=True))


def built_table(rows: list[dict[str, Any]], layout: Any, mode: str, at_once: int) -> Table:
    by = [] if layout is None else [{"transform": layout[0], "column": layout[1], "args": layout[2]}]
    table = Catalog(f"memory://{uuid.uuid4().hex}").create_table(
        "t",
        schema_from_spark({"type": "struct", "fields": fields(COLUMNS)}),
        partition_by=by,
        properties={"lakelog.write.delete.mode": mode},
    )
    arrow = schema_to_arrow(table.schema)
    for start in range(0, len(rows), at_once):
        some_rows = rows[start : start + at_once]
        columns = [pa.array([row[name] for row in some_rows], arrow.field(name).type) for name in arrow.names]
        table = table.append(pa.table(columns, names=arrow.names))
    return table


@settings(max_examples=examples(12, full=1_000), phases=[Phase.explicit, Phase.generate])
@given(
    rows=made_rows(),
    some=st.lists(conditions(), min_size=6, max_size=6),
    layout=st.none() | st.sampled_from(LAYOUTS),
    mode=st.sampled_from(["merge-on-read", "copy-on-write"]),
    at_once=st.sampled_from([1, 2, 100]),
)
def test_a_filter_changes_the_rows_of_which_it_is_true(
    rows: list[dict[str, Any]], some: list[Predicate], layout: Any, mode: str, at_once: int
) -> None:
    table = built_table(rows, layout, mode, at_once)
    start, all_pairs = table.version, {(row["k"], row["u"]) for row in rows}
    new = pa.table({"k": pa.array([99], pa.int32()), "u": pa.array([7], pa.int32())})
    for number, predicate in enumerate(some):
        if not binds(predicate, table.schema):
            continue
        model = model_of(predicate)
        true = {(row["k"], row["u"]) for row in rows if holds(model, as_model(row), FLATTENED) is True}
        found_rows = table.scan(["k"], filter=predicate).to_arrow()["k"].to_pylist()
        assert sorted(found_rows) == sorted(k for k, _ in true), predicate
        match number % 3:
            case 0:
                table_after, expected = table.delete(predicate), all_pairs - true
            case 1:
                table_after, expected = table.overwrite(new, predicate), all_pairs - true | {(99, 7)}
            case _:
                table_after = table.update({"u": 9}, predicate)
                expected = all_pairs - true | {(k, 9) for k, _ in true}
        assert keys(table_after) == expected, predicate
        table = table_after if table_after.version == start else table_after.rollback_to_version(start)
        start = table.version
        assert keys(table) == all_pairs


@pytest.mark.parametrize("text", ["a", "a   "])
def test_texts_are_compared_beside_a_char_as_if_they_were_as_long(text: str) -> None:
    row = dict.fromkeys(COLUMNS) | {
        "k": 0,
        "u": 0,
        "fixed": "a",
        "st": dict.fromkeys(FIELDS) | {"fixed": "a"},
    }
    table = built_table([row], None, "merge-on-read", 1)
    equal = Predicate("=", (Column(("fixed",)), literal(text)))
    nested_predicate = Predicate("=", (Column(("st", "fixed")), literal(text)))
    assert table.scan(filter=equal).to_arrow().num_rows == 1
    assert table.scan(filter=nested_predicate).to_arrow().num_rows == (len(text) == 4)
