"""A bound condition back as a predicate, for an engine that evaluates it on rows exactly as lakelog does.

Each literal has the type in which lakelog compares it, so the engine has nothing to convert. What engines compare in
another way is not said at all: then lakelog looks at the rows itself.
"""

from __future__ import annotations

import pyarrow as pa

from lakelog.catalog.core.planning.bound import (
    And,
    Bound,
    Compare,
    Constant,
    In,
    IsNull,
    IsTrue,
    Known,
    Not,
    Or,
    Term,
    TextTest,
    terms,
)
from lakelog.catalog.core.schema import AtomicType, Column, Literal, Predicate, from_arrow

_ALIKE = frozenset(
    ("boolean", "byte", "short", "integer", "long", "float", "double", "decimal", "string", "varchar", "binary",
     "date", "timestamp", "timestamp_ntz")
)  # fmt: skip
"""The families of types that engines compare as lakelog does. Blanks behind a CHAR count or do not."""

_NULL = Literal(None, "integer")
_TRUE = Predicate("ALWAYS_TRUE")


def typed(bound: Bound) -> Predicate | None:
    """Return the predicate that is true, false or NULL where `bound` is; None where an engine may differ."""
    if any(_kind(term) is None or term.transform is not None for term in terms(bound)):
        return None
    return _typed(bound)


def _typed(bound: Bound) -> Predicate | None:
    match bound:
        case And() | Or():
            parts = [_typed(part) for part in bound.parts]
            known = tuple(part for part in parts if part is not None)
            if len(known) < len(parts):
                return None
            return Predicate("AND" if isinstance(bound, And) else "OR", known)
        case Not():
            part = _typed(bound.part)
            return None if part is None else Predicate("NOT", (part,))
        case IsTrue():
            part = _typed(bound.part)
            return None if part is None else Predicate("<=>", (part, _TRUE))
        case Constant(result=None):
            return Predicate("=", (_NULL, _NULL))
        case Constant():
            return _TRUE if bound.result else Predicate("ALWAYS_FALSE")
        case Compare():
            return Predicate(bound.op, (_column(bound.term), _literal(bound.term, bound.value)))
        case In():
            return _in(bound)
        case TextTest():
            kind = pa.binary() if isinstance(bound.text, bytes) else pa.string()
            text = _literal(bound.term, pa.scalar(bound.text, kind))
            return Predicate(bound.op, (_column(bound.term), text))
        case IsNull():
            return Predicate("IS_NULL", (_column(bound.term),))
        case Known():
            # Equal to itself wherever it is not NULL, NaN too.
            column = _column(bound.term)
            same = Predicate("=", (column, column))
            return same if bound.result else Predicate("NOT", (same,))
        case _:
            return None


def _in(bound: In) -> Predicate:
    values: list[Literal] = [_literal(bound.term, value) for value in bound.values]
    if bound.nan:
        values.append(_literal(bound.term, pa.scalar(float("nan"), pa.float64())))
    if bound.null:
        values.append(Literal(None, _kind(bound.term)))
    return Predicate("IN", (_column(bound.term), *values)) if values else Predicate("ALWAYS_FALSE")


def _column(term: Term) -> Column:
    return Column(term.path)


def _literal(term: Term, value: pa.Scalar) -> Literal:
    return Literal(from_arrow(pa.repeat(value, 1))[0], _kind(term))


def _kind(term: Term) -> str | None:
    """Return the name of the type in which a column is compared; None where engines may differ."""
    source = term.source
    if not isinstance(source, AtomicType) or source.family not in _ALIKE:
        return None
    return {"float": "double", "varchar": "string"}.get(source.family, source.name)
