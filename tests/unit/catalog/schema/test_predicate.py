from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.planning.bound import (
    CompareCondition,
    ConstantCondition,
    KnownCondition,
    unknown_parts,
)
from lakelog.catalog.core.planning.row_filter import evaluate
from lakelog.catalog.core.schema.arrow_types import schema_to_arrow
from lakelog.catalog.core.schema.filters import as_predicate
from lakelog.catalog.core.schema.predicate import Column, Predicate, col, literal
from lakelog.catalog.core.schema.schema import assign_ids
from lakelog.catalog.core.schema.types import AtomicType, Field, ListType, StructType
from lakelog.catalog.errors import NoSuchColumn
from lakelog.log.errors import InvalidInput, Unsupported

SCHEMA = assign_ids([
    Field(name="a", type=AtomicType("integer")),
    Field(name="Text", type=AtomicType("string")),
    Field(name="s", type=StructType((Field(name="x", type=AtomicType("long")),))),
    Field(name="l", type=ListType(element=AtomicType("long"))),
    Field(name="p.q", type=AtomicType("long")),
    Field(name="c", type=AtomicType("char(4)")),
    Field(name="n", type=StructType((Field(name="c", type=AtomicType("char(4)")),))),
    Field(name="ts", type=AtomicType("timestamp")),
    Field(name="price", type=AtomicType("decimal(6,2)")),
    Field(name="ok", type=AtomicType("boolean")),
])  # fmt: skip


def matching(filter: Any, **column: list[Any]) -> list[bool | None]:
    ((name, values),) = column.items()
    arrow = schema_to_arrow(SCHEMA)
    table = pa.table({name: pa.array(values, arrow.field(name).type)})
    result: list[bool | None] = evaluate(bind(as_predicate(filter), SCHEMA), table).to_pylist()
    return result


def test_the_three_ways_to_write_a_filter_mean_the_same() -> None:
    predicate = (col("a") > 5) & ~col("Text").is_in(["x", "y"])
    assert as_predicate([("a", ">", 5), ("Text", "not in", ["x", "y"])]) == predicate
    assert as_predicate(predicate.to_json()) == predicate
    assert as_predicate([[("a", "==", 1)], [("a", "!=", 2)]]) == (col("a") == 1) | (col("a") != 2)
    assert as_predicate(("a", "<=", 1)) == (col("a") <= 1)


def test_a_filter_reads_like_sql() -> None:
    filter = ((col("a") >= 5) | col("s", "x").is_null()) & ~col("Text").is_in(["x", None])
    assert str(filter) == "((a >= 5 OR s.x IS NULL) AND NOT Text IN ('x', NULL))"


def test_sparks_json_is_understood() -> None:
    equal = '{"op":"=","args":[{"col":["a"]},{"lit":5,"type":"integer"}]}'
    text = '{"op":"AND","args":[' + equal + ',{"op":"ALWAYS_TRUE","args":[]}]}'
    assert matching(Predicate.from_json(text), a=[5, 6, None]) == [True, False, None]


def test_a_literal_on_the_left_is_turned_around() -> None:
    filter = {"op": "<", "args": [{"lit": 5, "type": "integer"}, {"col": ["a"]}]}
    assert matching(filter, a=[4, 5, 6]) == [False, False, True]


def test_a_transform_can_be_compared() -> None:
    filter = {
        "op": "=",
        "args": [{"transform": "truncate", "args": [10, {"col": ["a"]}]}, {"lit": -10, "type": "integer"}],
    }
    assert matching(filter, a=[-1, -10, -11, 5]) == [True, True, False, False]


def test_columns_are_found_in_any_case_and_structs_by_dots() -> None:
    assert matching(col("TEXT") == "x", Text=["x", "y"]) == [True, False]
    assert matching(col("s.x") == 1, s=[{"x": 1}, {"x": None}, None]) == [True, None, None]
    assert matching(col("s", "x").is_null(), s=[{"x": 1}, {"x": None}, None]) == [False, True, True]
    assert matching(col("p.q") == 1, **{"p.q": [1]}) == [True]
    with pytest.raises(NoSuchColumn):
        bind(col("text") == "x", SCHEMA, case_sensitive=True)


def test_an_unknown_column_is_named_with_those_that_there_are() -> None:
    with pytest.raises(NoSuchColumn, match=r"no column b; the columns are a, Text"):
        bind(col("b") == 1, SCHEMA)
    with pytest.raises(NoSuchColumn, match="no column `s.y`"):
        bind(col("s.y") == 1, SCHEMA)
    with pytest.raises(InvalidInput, match="only fields of structs"):
        bind(col("l", "element") == 1, SCHEMA)


def test_beside_a_double_numbers_are_compared_as_doubles() -> None:
    prices = [Decimal("0.09"), Decimal("0.10"), Decimal("0.11"), None]
    assert matching(col("price") == 0.1, price=prices) == [False, True, False, None]
    assert matching(col("price") > 0.1, price=prices) == [False, False, True, None]
    assert matching(col("price") >= 0.1, price=prices) == [False, True, True, None]
    assert matching(col("price").is_in([0.1, None]), price=prices) == [None, True, None, None]
    large = [2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, None]
    for value, found_flags in (
        (2.0**53, [False, True, True, False, None]),
        (2.0**53 + 2, [False, False, False, True, None]),
    ):
        assert matching(col("p.q") == value, **{"p.q": large}) == found_flags
        assert matching(col("p.q").is_in([value]), **{"p.q": large}) == found_flags
    assert matching(col("p.q") < 2.0**53, **{"p.q": large}) == [True, False, False, False, None]


def test_a_literal_that_the_type_cannot_hold_is_never_rounded() -> None:
    assert matching(col("a") < 5.5, a=[5, 6, None]) == [True, False, None]
    assert matching(col("a") == 5.5, a=[5, None]) == [False, None]
    assert matching(col("a") != 2**40, a=[5, None]) == [True, None]
    assert matching(col("a") < float("nan"), a=[5, None]) == [True, None]
    assert matching(col("price") <= Decimal("1.005"), price=[Decimal("1.00"), Decimal("1.01")]) == [
        True,
        False,
    ]
    bound_condition = bind(col("a") > 5.5, SCHEMA)
    assert isinstance(bound_condition, CompareCondition) and (
        bound_condition.op,
        bound_condition.value.as_py(),
    ) == (">=", 6)
    assert isinstance(bind(col("a") > 2**40, SCHEMA), KnownCondition)


def test_char_is_compared_as_padded() -> None:
    assert matching(col("c") == "ab", c=["ab  ", "abc "]) == [True, False]


def test_char_is_compared_with_its_blanks_where_the_literal_says_so() -> None:
    literal = {"lit": "ab", "type": "varchar(9)"}
    filter = {"op": "<>", "args": [{"col": ["c"]}, literal]}
    assert matching(filter, c=["ab  ", "abc "]) == [True, True]


def test_char_is_compared_with_its_blanks_within_a_struct_by_a_transform_and_between() -> None:
    assert matching(col("n.c") == "ab", n=[{"c": "ab  "}]) == [False]
    assert matching(col("n.c") == "ab  ", n=[{"c": "ab  "}]) == [True]
    truncated = {"transform": "truncate", "args": [2, {"col": ["c"]}]}
    for op, expected in (("=", True), ("<>", False), ("IN", True)):
        for type in ("string", "varchar(9)"):
            filter = {"op": op, "args": [truncated, {"lit": "ab", "type": type}]}
            assert matching(filter, c=["ab  "]) == [expected]
    assert matching("c BETWEEN 'a' AND 'ab'", c=["ab  ", "a   "]) == [False, True]
    assert matching("c >= 'a' AND c <= 'ab'", c=["ab  ", "a   "]) == [True, True]


def test_a_boolean_column_is_a_condition() -> None:
    filter = {"op": "NOT", "args": [{"col": ["ok"]}]}
    assert matching(filter, ok=[True, False, None]) == [False, True, None]


def test_null_is_neither_true_nor_false() -> None:
    assert matching(col("a") == None, a=[1, None]) == [None, None]  # noqa: E711
    assert matching(col("a").null_safe_equals(None), a=[1, None]) == [False, True]
    assert matching(col("a").is_in([1, None]), a=[1, 2, None]) == [True, None, None]
    assert matching(~col("a").is_in([]), a=[1, None]) == [True, True]
    assert bind(as_predicate({"op": "=", "args": [{"lit": None}, {"lit": 1}]}), SCHEMA) is not None


def test_a_time_needs_its_zone() -> None:
    moment = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    assert matching(col("ts") == moment, ts=[moment]) == [True]
    assert matching(col("ts") == "2024-01-01T01:00:00+01:00", ts=[moment]) == [True]
    with pytest.raises(InvalidInput, match="the column ts, which is a timestamp, with"):
        bind(col("ts") == dt.datetime(2024, 1, 1), SCHEMA)


@pytest.mark.parametrize(
    "filter",
    [
        col("a") == "x", col("Text") == 5, col("s") == 1, col("ok") == 1, col("a").starts_with("x"),
        Predicate("CONTAINS", (Column(("Text",)), literal(b"x"))),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(filter: Predicate) -> None:
    with pytest.raises(InvalidInput, match="cannot compare the column"):
        bind(filter, SCHEMA)


@pytest.mark.parametrize(
    "filter", ["a >", [], 5, [("a", "like", "x")], [("a", "in", "xy")], {"op": 5}, ["a"]]
)
def test_what_is_not_a_filter_is_refused(filter: Any) -> None:
    with pytest.raises(InvalidInput):
        bind(as_predicate(filter), SCHEMA)


def test_python_words_between_filters_are_refused() -> None:
    with pytest.raises(InvalidInput, match="combine filters with &"):
        bool(col("a") == 1 and col("a") == 2)
    with pytest.raises(InvalidInput, match="parentheses"):
        (col("a") == 1) & 5  # type: ignore[operator]


def test_an_unknown_condition_is_kept_by_name_and_refused_on_rows() -> None:
    bound_condition = bind(as_predicate({"op": "AND", "args": [
        {"op": "=", "args": [{"col": ["a"]}, {"lit": 1}]},
        {"op": "SOUNDS_LIKE", "args": [{"col": ["Text"]}, {"lit": "x"}]},
    ]}), SCHEMA)  # fmt: skip
    assert unknown_parts(bound_condition) == ["SOUNDS_LIKE(Text, 'x')"]
    with pytest.raises(Unsupported, match="SOUNDS_LIKE"):
        evaluate(bound_condition, pa.table({"a": [1], "Text": ["x"]}))
    with pytest.raises(NoSuchColumn):
        bind(as_predicate({"op": "SOUNDS_LIKE", "args": [{"col": ["b"]}]}), SCHEMA)
    assert unknown_parts(bind(col("a") == col("s.x"), SCHEMA)) == ["a = `s.x`"]


@pytest.mark.parametrize(
    ("column", "type"),
    [("Text", "string collate UTF8_LCASE"), ("s", {"type": "struct", "fields": []}), ("ts", "interval")],
)
def test_a_literal_of_a_type_without_our_order_may_match_anything(column: str, type: Any) -> None:
    filter = {"op": "=", "args": [{"col": [column]}, {"lit": "x", "type": type}]}
    assert unknown_parts(bind(as_predicate(filter), SCHEMA))


def test_constants_are_conditions() -> None:
    assert bind(as_predicate({"op": "ALWAYS_FALSE"}), SCHEMA) == ConstantCondition(False)
