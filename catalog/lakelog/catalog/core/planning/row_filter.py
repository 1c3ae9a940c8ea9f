"""Filters on rows: exact, with SQL's three values and Spark's order of floats (NaN last, equal to itself)."""

from __future__ import annotations

import functools
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.planning.binding import is_nan
from lakelog.catalog.core.planning.bound import (
    AndCondition,
    Bound,
    BoundTerm,
    CompareCondition,
    ConstantCondition,
    InCondition,
    IsNull,
    IsTrue,
    KnownCondition,
    NotCondition,
    OpaqueCondition,
    OrCondition,
    TextTest,
)
from lakelog.catalog.core.schema.transforms import apply_transform
from lakelog.catalog.core.schema.types import AtomicType
from lakelog.log.errors import Unsupported

_COMPARE = {"=": pc.equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
_TEXT = {"STARTS_WITH": pc.starts_with, "ENDS_WITH": pc.ends_with, "CONTAINS": pc.match_substring}


def evaluate(bound_condition: Bound, rows: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
    """Return true, false or NULL for each row; the columns of `rows` have their logical names.

    Raises Unsupported for a condition that lakelog does not know.
    """
    match bound_condition:
        case AndCondition():
            return functools.reduce(pc.and_kleene, [evaluate(part, rows) for part in bound_condition.parts])
        case OrCondition():
            return functools.reduce(pc.or_kleene, [evaluate(part, rows) for part in bound_condition.parts])
        case NotCondition():
            return pc.invert(evaluate(bound_condition.part, rows))
        case IsTrue():
            return pc.fill_null(evaluate(bound_condition.part, rows), False)
        case ConstantCondition():
            return pa.array([bound_condition.result], pa.bool_()).take(pa.repeat(0, rows.num_rows))
        case KnownCondition():
            return _known(values_of(bound_condition.term, rows), bound_condition.result)
        case IsNull():
            return pc.is_null(values_of(bound_condition.term, rows))
        case CompareCondition():
            return compare(bound_condition.op, values_of(bound_condition.term, rows), bound_condition.value)
        case InCondition():
            return _is_in(values_of(bound_condition.term, rows), bound_condition)
        case TextTest():
            return _TEXT[bound_condition.op](values_of(bound_condition.term, rows), bound_condition.text)
        case OpaqueCondition():
            raise Unsupported(
                f"the condition {bound_condition.text} is not supported when rows are read: "
                "filter the result instead, or use "
                "comparisons, IN, NULL tests and text tests of columns"
            )
    assert_never(bound_condition)


def compare(op: str, values: pa.Array | pa.ChunkedArray, value: pa.Scalar) -> pa.Array | pa.ChunkedArray:
    """Return `values op value` as Spark does; NULL if a value is NULL."""
    if not pa.types.is_floating(values.type):
        return _COMPARE[op](values, value)
    nan = pc.is_nan(values)
    if is_nan(value):
        return {
            "=": nan,
            ">=": nan,
            "<": pc.invert(nan),
            "<=": _known(values, True),
            ">": _known(values, False),
        }[op]
    plain = _COMPARE[op](values, value)
    return pc.or_(plain, nan) if op in (">", ">=") else plain


def values_of(term: BoundTerm, rows: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
    """Return the values of `term`, in the type that they are compared in."""
    values = rows.column(term.path[0])
    for name in term.path[1:]:
        values = pc.struct_field(values, [name])
    if term.transform is not None:
        assert isinstance(term.source, AtomicType)
        values = apply_transform(term.transform, values, term.source)
    return values if term.type is None or values.type == term.type else values.cast(term.type)


def _known(values: pa.Array | pa.ChunkedArray, result: bool) -> pa.Array | pa.ChunkedArray:
    return pc.if_else(pc.is_valid(values), pa.scalar(result), pa.scalar(None, pa.bool_()))


def _is_in(values: pa.Array | pa.ChunkedArray, test: InCondition) -> pa.Array | pa.ChunkedArray:
    if pa.types.is_floating(values.type):
        # Arrow looks floats up by their bits: adding zero makes the two zeros equal.
        is_member = pc.is_in(pc.add(values, 0.0), value_set=pc.add(test.values, 0.0))
        if test.nan:
            is_member = pc.or_(is_member, pc.fill_null(pc.is_nan(values), False))
    else:
        is_member = pc.is_in(values, value_set=test.values)
    # A NULL in the list, or the value NULL itself, makes "not found" unknown.
    unknown = pc.invert(is_member) if test.null else pc.is_null(values)
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), is_member)
