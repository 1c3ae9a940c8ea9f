"""The forms of filters that users may give, and their conversion to a predicate.

A filter is a predicate, its JSON, text in Spark's SQL, an expression of pyarrow or Polars, or a tuple `("a",
">", 5)`. A list of filters holds if all of them hold. A list of such lists holds if any list holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, Union

import pyarrow.compute as pc

from lakelog.catalog.core.schema.expression import Expression
from lakelog.catalog.core.schema.filter_arrow import from_arrow_expression
from lakelog.catalog.core.schema.filter_polars import from_polars_expression, is_polars_expression
from lakelog.catalog.core.schema.filter_text import parse_filter
from lakelog.catalog.core.schema.predicate import (
    COMPARISONS,
    DEPTH_LIMIT,
    Predicate,
    col,
    of_limited_depth,
    too_deep,
)
from lakelog.log.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl


class ArrowExpression(Protocol):
    """An expression of `pyarrow.compute`, recognised by a method because pyarrow has no types."""

    def to_substrait(self, schema: Any, allow_arrow_extensions: bool = False) -> Any: ...


Filter: TypeAlias = Union[
    Predicate, Mapping[str, Any], Expression, str, ArrowExpression, "pl.Expr", Sequence[Any]
]
"""The forms of a filter that users may give. See `as_predicate`."""

_SPELLINGS = {"==": "=", "!=": "<>", "not in": "NOT IN", "in": "IN"}


def as_predicate(filter: Filter, depth: int = 0) -> Predicate:
    """Return a user's filter as a predicate.

    Raises InvalidInput if it is not a filter, if predicates lack a part of it, or if it is nested too deeply.
    """
    if depth > DEPTH_LIMIT:
        raise too_deep()
    if isinstance(filter, Predicate):
        return of_limited_depth(filter)
    if isinstance(filter, Mapping | Expression):
        return Predicate.from_json(filter)
    if isinstance(filter, tuple) and len(filter) == 3 and isinstance(filter[0], str):
        return _from_tuple(filter)
    if isinstance(filter, str):
        return of_limited_depth(parse_filter(filter))
    if isinstance(filter, pc.Expression):
        return of_limited_depth(from_arrow_expression(filter))
    if is_polars_expression(filter):
        return of_limited_depth(from_polars_expression(filter))
    if isinstance(filter, Sequence) and filter:
        if all(isinstance(part, list) for part in filter):
            return _combined("OR", [as_predicate(part, depth + 1) for part in filter])
        return _combined("AND", [as_predicate(part, depth + 1) for part in filter])
    raise InvalidInput(
        f"{filter!r} is not a filter: write one like \"a > 5\" or col('a') > 5, or tuples like [('a', '>', 5)]"
    )


def _from_tuple(written: tuple[Any, ...]) -> Predicate:
    name, op, value = written
    comparison = _SPELLINGS.get(str(op).lower(), str(op).upper())
    column = col(name)
    if comparison in ("IN", "NOT IN"):
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            raise InvalidInput(f"the filter {written!r} needs a list of values after {op}")
        return column.is_in(value) if comparison == "IN" else ~column.is_in(value)
    if comparison not in COMPARISONS:
        raise InvalidInput(
            f"the filter {written!r} has the unknown operation {op!r}: use one of =, ==, !=, <>, <, <=, >, >=, in, "
            "not in"
        )
    return column._compare(comparison, value)


def _combined(op: str, parts: Sequence[Predicate]) -> Predicate:
    return parts[0] if len(parts) == 1 else Predicate(op, tuple(parts))
