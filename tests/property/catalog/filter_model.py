"""A second, naive implementation of filters: one row at a time, in Python's exact numbers; and random filters."""

from __future__ import annotations

import base64
import datetime as dt
import math
import operator
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.schema.literals import value_type
from lakelog.catalog.core.schema.partitioning import Transform
from lakelog.catalog.core.schema.predicate import Column, FilterLiteral, Predicate, TransformedColumn, literal
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.transforms import apply_transform
from lakelog.catalog.core.schema.types import AtomicType, Field

NAN = float("nan")
UTC = dt.UTC

VALUES: Mapping[str, list[Any]] = {
    "flag": [True, False],
    "tiny": [-128, -127, -1, 0, 1, 3, 126, 127],
    "number": [-(2**31), -7, -1, 0, 1, 5, 6, 2**31 - 1],
    "big": [-(2**63), -1, 0, 1, 5, 2**53 + 1, 2**63 - 1],
    "single": [NAN, math.inf, -math.inf, -0.0, 0.0, 1.5, -2.25],
    "real": [NAN, math.inf, -math.inf, -0.0, 0.0, 1.5, 0.1, -2.25, 1e300],
    "price": [Decimal(text) for text in ("-999999.99", "-0.01", "0.00", "0.01", "1.50", "7.00", "999999.99")],
    "text": ["", "a", "ab", "abc", "b" * 40, "b" * 40 + "x", "b" * 32, "é", "\U0010ffff" * 33, "\ud7ff" * 33],
    "data": [b"", b"a", b"ab", b"\xff" * 33, b"b" * 40, b"b" * 32],
    "day": [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(2024, 3, 1), dt.date(1, 1, 1)],
    "moment": [
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        dt.datetime(1970, 1, 1, tzinfo=UTC),
        dt.datetime(2024, 2, 29, 12, 30, tzinfo=UTC),
        dt.datetime(2024, 2, 29, 12, 59, 59, 999999, UTC),
        dt.datetime(2024, 3, 1, tzinfo=UTC),
    ],
    "local": [
        dt.datetime(1969, 12, 31, 23),
        dt.datetime(1970, 1, 1),
        dt.datetime(2024, 2, 29),
        dt.datetime(9999, 12, 31, 23),
    ],
}  # fmt: skip

TYPES = {
    "flag": "boolean", "tiny": "byte", "number": "integer", "big": "long", "single": "float", "real": "double",
    "price": "decimal(8,2)", "text": "string", "data": "binary", "day": "date", "moment": "timestamp",
    "local": "timestamp_ntz",
}  # fmt: skip

WIDENED = {
    "tiny": "integer", "number": "long", "single": "double", "price": "decimal(20,4)", "day": "timestamp_ntz",
}  # fmt: skip

OTHER_LITERALS: Mapping[str, list[Any]] = {
    "tiny": [5.5, 1000, -1000, NAN, math.inf, Decimal("0.5")],
    "number": [5.5, 2**40, -(2**40), NAN, -math.inf, Decimal("5.00")],
    "big": [5.5, 2**70, Decimal("0.5"), float(2**53), float(2**63)],
    "single": [0.1, 1, Decimal("1.5"), 2**200],
    "real": [1, Decimal("0.1"), 10**400],
    "price": [1, 1.5, 0.1, -0.1, Decimal("1.505"), Decimal("1e9"), NAN],
    "text": ["b" * 32 + "a", "b", "c"],
    "data": [b"b", b"\xff" * 40],
    "day": [dt.datetime(2024, 2, 29, 12), "2024-02-29"],
    "moment": ["2024-02-29T12:30:00Z"],
    "local": [dt.date(2024, 2, 29), "2024-02-29"],
}

TRANSFORMS = {
    "tiny": ["bucket[4]", "truncate[10]"], "number": ["bucket[4]", "truncate[10]"], "big": ["bucket[3]", "truncate[4]"],
    "price": ["bucket[4]", "truncate[50]"], "text": ["bucket[4]", "truncate[2]", "truncate[40]"],
    "data": ["bucket[4]", "truncate[2]"], "day": ["year", "month", "day", "bucket[2]"],
    "moment": ["year", "month", "day", "hour", "bucket[4]"], "local": ["year", "month", "day", "hour"],
}  # fmt: skip


_OPERATORS = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def schema_of(types: Mapping[str, str]) -> Schema:
    fields = tuple(
        Field(id=index + 1, name=name, physical=f"{name}_{index + 1}", type=AtomicType(type))
        for index, (name, type) in enumerate(types.items())
    )
    return Schema(fields=fields, last_id=len(fields))


def rows(columns: Sequence[str] = tuple(VALUES)) -> st.SearchStrategy[list[dict[str, Any]]]:
    row = st.fixed_dictionaries({name: st.none() | st.sampled_from(VALUES[name]) for name in columns})
    return st.lists(row, min_size=1, max_size=12)


def predicates(columns: Sequence[str] = tuple(VALUES)) -> st.SearchStrategy[Predicate]:
    return st.recursive(
        st.sampled_from(columns).flatmap(_leaf),
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda pair: Predicate("AND", pair)),
            st.tuples(inner, inner).map(lambda pair: Predicate("OR", pair)),
            inner.map(lambda one: Predicate("NOT", (one,))),
        ),
        max_leaves=4,
    )


def _leaf(name: str) -> st.SearchStrategy[Predicate]:
    column = Column((name,))
    value = st.sampled_from([*VALUES[name], *OTHER_LITERALS.get(name, ())]).map(literal) | st.just(
        FilterLiteral(None)
    )
    ops = st.sampled_from(["=", "<=>", "<>", "<", "<=", ">", ">="])
    options: list[st.SearchStrategy[Predicate]] = [
        st.builds(lambda op, right: Predicate(op, (column, right)), ops, value),
        st.builds(lambda op, left: Predicate(op, (left, column)), ops, value),
        st.lists(value, max_size=4).map(lambda values: Predicate("IN", (column, *values))),
        st.sampled_from(["IS_NULL", "IS_NOT_NULL"]).map(lambda op: Predicate(op, (column,))),
    ]
    if name in ("text", "data"):
        tests = st.sampled_from(["STARTS_WITH", "ENDS_WITH", "CONTAINS"])
        options.append(st.builds(lambda op, right: Predicate(op, (column, right)), tests, value))
    if name in TRANSFORMS:
        options.append(st.sampled_from(TRANSFORMS[name]).flatmap(lambda text: _of_transform(name, text)))
    return st.one_of(options)


def _of_transform(name: str, text: str) -> st.SearchStrategy[Predicate]:
    transform = Transform.parse(text)
    kind = AtomicType(TYPES[name])
    values = [_transformed(transform, value, kind) for value in VALUES[name]]
    operand = TransformedColumn(transform, Column((name,)))
    value = st.sampled_from(values).map(lambda each: literal(each))
    ops = st.sampled_from(["=", "<=>", "<>", "<", ">="])
    return st.builds(lambda op, right: Predicate(op, (operand, right)), ops, value)


def binds(predicate: Predicate, schema: Schema) -> bool:
    """Return whether the filter fits the schema; a transform does not fit every widened type."""
    try:
        bind(predicate, schema)
    except Exception:
        return False
    return True


def holds(predicate: Any, row: Mapping[str, Any], types: Mapping[str, str]) -> bool | None:
    """Return SQL's result of `predicate` on one row."""
    op, args = predicate.op, predicate.args
    if op in ("AND", "OR"):
        is_one, other = (holds(part, row, types) for part in args)
        decisive = op == "OR"
        if is_one is decisive or other is decisive:
            return decisive
        return None if is_one is None or other is None else not decisive
    if op == "NOT":
        inner = holds(args[0], row, types)
        return None if inner is None else not inner
    if op in ("IS_NULL", "IS_NOT_NULL"):
        return bool((_value(args[0], row, types) is None) == (op == "IS_NULL"))
    left_value, *other_values = (_value(arg, row, types) for arg in args)
    if op == "IN":
        if not other_values:
            return False
        results = [_is_compared("=", left_value, each) for each in other_values]
        return True if True in results else None if None in results else False
    (right,) = other_values
    if op == "<=>":
        return (
            left_value is None and right is None
            if left_value is None or right is None
            else _is_compared("=", left_value, right)
        )
    if left_value is None or right is None:
        return None
    if op in ("STARTS_WITH", "ENDS_WITH", "CONTAINS"):
        found = {
            "STARTS_WITH": left_value.startswith,
            "ENDS_WITH": left_value.endswith,
            "CONTAINS": left_value.__contains__,
        }
        return bool(found[op](right))
    return _is_compared(op, left_value, right)


class Double(Fraction):
    """A number that makes doubles of those which it is compared with."""


def _nearest_double(value: Any) -> Any:
    try:
        return Fraction(float(value)) if isinstance(value, Fraction) else value
    except OverflowError:
        return value


def _value(operand: Any, row: Mapping[str, Any], types: Mapping[str, str]) -> Any:
    match operand:
        case Column():
            name = operand.path[0]
            return _number(row[name], types[name])
        case TransformedColumn():
            name = operand.column.path[0]
            kind = AtomicType(types[name])
            return _number(_transformed(operand.transform, row[name], kind), "integer")
        case FilterLiteral():
            return _literal(operand)
    raise AssertionError(operand)


def _transformed(transform: Transform, value: Any, kind: AtomicType) -> Any:
    return apply_transform(transform, pa.array([value], value_type(kind)), kind)[0].as_py()


def _literal(operand: FilterLiteral) -> Any:
    value: Any = operand.value
    type = operand.type
    if value is None or isinstance(value, bool):
        return value
    if type == "binary":
        return base64.b64decode(value)
    if type == "string":
        if value[:5] == "2024-":
            moment = dt.datetime.fromisoformat(value)
            return _number(moment, "timestamp")
        return value.encode("utf-8", "surrogatepass")
    if type == "decimal":
        return Fraction(value)
    if type == "double":
        return _number({"NaN": NAN, "Infinity": math.inf, "-Infinity": -math.inf}.get(value, value), "double")
    if type == "date":
        return Fraction(value) * 86_400_000_000
    return Fraction(value)


def _number(value: Any, type: str) -> Any:
    """Return a value as something that Python compares exactly; dates and times as microseconds."""
    match value:
        case None | bool() | bytes():
            return value
        case str():
            return value.encode("utf-8", "surrogatepass")
        case dt.datetime():
            epoch = dt.datetime(1970, 1, 1, tzinfo=value.tzinfo)
            return Fraction((value - epoch) // dt.timedelta(microseconds=1))
        case dt.date():
            return Fraction((value.toordinal() - dt.date(1970, 1, 1).toordinal()) * 86_400_000_000)
        case float() if not math.isfinite(value):
            return value
    return Double(value) if type in ("float", "double") else Fraction(value)


def _is_compared(op: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    if isinstance(left, Double) or isinstance(right, Double):
        left, right = _nearest_double(left), _nearest_double(right)
    first_pair, other_pair = _ranked(left), _ranked(right)
    return bool(_OPERATORS[op](first_pair, other_pair))


def _ranked(value: Any) -> tuple[int, Any]:
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)
