"""A bound condition back as a predicate, for an engine that evaluates it on rows exactly as lakelog does.

Each literal has the type in which lakelog compares it, so the engine has nothing to convert. A comparison
that engines make in another way is left out. Then lakelog checks the rows itself.
"""

from __future__ import annotations

import pyarrow as pa

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
    OrCondition,
    TextTest,
    terms,
)
from lakelog.catalog.core.schema.literals import from_arrow
from lakelog.catalog.core.schema.predicate import Column, FilterLiteral, Predicate
from lakelog.catalog.core.schema.types import AtomicType

_ALIKE = frozenset(
    ("boolean", "byte", "short", "integer", "long", "float", "double", "decimal", "string", "varchar", "binary",
     "date", "timestamp", "timestamp_ntz")
)  # fmt: skip
"""The families of types that engines compare as lakelog does. Blanks behind a CHAR count or do not."""

_NULL = FilterLiteral(None, "integer")
_TRUE = Predicate("ALWAYS_TRUE")


def typed(bound_condition: Bound) -> Predicate | None:
    """Return the predicate that has the same results as `bound_condition`; None if an engine may differ."""
    if any(_kind(term) is None or term.transform is not None for term in terms(bound_condition)):
        return None
    return _typed(bound_condition)


def _typed(bound_condition: Bound) -> Predicate | None:
    match bound_condition:
        case AndCondition() | OrCondition():
            parts = [_typed(part) for part in bound_condition.parts]
            predicates = tuple(part for part in parts if part is not None)
            if len(predicates) < len(parts):
                return None
            return Predicate("AND" if isinstance(bound_condition, AndCondition) else "OR", predicates)
        case NotCondition():
            part = _typed(bound_condition.part)
            return None if part is None else Predicate("NOT", (part,))
        case IsTrue():
            part = _typed(bound_condition.part)
            return None if part is None else Predicate("<=>", (part, _TRUE))
        case ConstantCondition(result=None):
            return Predicate("=", (_NULL, _NULL))
        case ConstantCondition():
            return _TRUE if bound_condition.result else Predicate("ALWAYS_FALSE")
        case CompareCondition():
            return Predicate(
                bound_condition.op,
                (_column(bound_condition.term), _literal(bound_condition.term, bound_condition.value)),
            )
        case InCondition():
            return _in(bound_condition)
        case TextTest():
            kind = pa.binary() if isinstance(bound_condition.text, bytes) else pa.string()
            text = _literal(bound_condition.term, pa.scalar(bound_condition.text, kind))
            return Predicate(bound_condition.op, (_column(bound_condition.term), text))
        case IsNull():
            return Predicate("IS_NULL", (_column(bound_condition.term),))
        case KnownCondition():
            return _known(bound_condition.term, result=bound_condition.result)
        case _:
            return None


def _in(bound_condition: InCondition) -> Predicate:
    values: list[FilterLiteral] = [_literal(bound_condition.term, value) for value in bound_condition.values]
    if bound_condition.nan:
        values.append(_literal(bound_condition.term, pa.scalar(float("nan"), pa.float64())))
    if bound_condition.null:
        values.append(FilterLiteral(None, _kind(bound_condition.term)))
    if not values:  # no value of the list is one of the column's type
        return _known(bound_condition.term, result=False)
    return Predicate("IN", (_column(bound_condition.term), *values))


def _known(term: BoundTerm, *, result: bool) -> Predicate:
    """Return a condition that has this result for each value, and NULL for NULL."""
    # A value is equal to itself unless it is NULL, NaN too.
    column = _column(term)
    same = Predicate("=", (column, column))
    return same if result else Predicate("NOT", (same,))


def _column(term: BoundTerm) -> Column:
    return Column(term.path)


def _literal(term: BoundTerm, value: pa.Scalar) -> FilterLiteral:
    return FilterLiteral(from_arrow(pa.repeat(value, 1))[0], _kind(term))


def _kind(term: BoundTerm) -> str | None:
    """Return the name of the type in which a column is compared; None if engines may differ."""
    source = term.source
    if not isinstance(source, AtomicType) or source.family not in _ALIKE:
        return None
    return {"float": "double", "varchar": "string"}.get(source.family, source.name)
