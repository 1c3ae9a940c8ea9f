"""Filters bound to a schema: columns by id, values in the type that they are compared in.

Pure values. Every part has SQL's three results for a row: true, false and NULL. `rows` evaluates it on rows,
`pruning` on files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from lakelog.catalog.core.schema.partitioning import Transform
from lakelog.catalog.core.schema.types import Type


@dataclass(frozen=True, slots=True)
class BoundTerm:
    """A column, or a transform of a column.

    `path` are today's names; `type` is the type that values are compared in. `type` is double for floats too,
    and None for types without an order, which are only tested for NULL.
    """

    column_id: int
    path: tuple[str, ...]
    # Left out of the hash: the metadata of a struct's fields may hold values that cannot be hashed.
    source: Type = field(hash=False)
    type: pa.DataType | None
    transform: Transform | None = None


@dataclass(frozen=True, slots=True)
class CompareCondition:
    """`op` is one of = < <= > >=.

    `value` is not NULL, but may be NaN, which equals itself and is above all else.
    """

    op: str
    term: BoundTerm
    value: pa.Scalar


@dataclass(frozen=True, slots=True)
class InCondition:
    """`values` has neither NULL nor NaN; `nan` and `null` say whether those are in the list too."""

    term: BoundTerm
    values: pa.Array
    nan: bool
    null: bool


@dataclass(frozen=True, slots=True)
class TextTest:
    """`op` is STARTS_WITH, ENDS_WITH or CONTAINS."""

    op: str
    term: BoundTerm
    text: str | bytes


@dataclass(frozen=True, slots=True)
class IsNull:
    term: BoundTerm


@dataclass(frozen=True, slots=True)
class KnownCondition:
    """`result` for every value of the term, NULL if it is NULL."""

    term: BoundTerm
    result: bool


@dataclass(frozen=True, slots=True)
class ConstantCondition:
    """A condition whose result is the same for every row; None is NULL."""

    result: bool | None


@dataclass(frozen=True, slots=True)
class AndCondition:
    """All parts hold."""

    parts: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class OrCondition:
    """At least one part holds."""

    parts: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class NotCondition:
    """The part does not hold."""

    part: Bound


@dataclass(frozen=True, slots=True)
class IsTrue:
    """True if the part is true, else false, never NULL."""

    part: Bound


@dataclass(frozen=True, slots=True)
class OpaqueCondition:
    """A condition that lakelog does not know: any result is possible."""

    text: str


Bound: TypeAlias = (
    CompareCondition
    | InCondition
    | TextTest
    | IsNull
    | KnownCondition
    | ConstantCondition
    | AndCondition
    | OrCondition
    | NotCondition
    | IsTrue
    | OpaqueCondition
)


def leaves(bound_condition: Bound) -> Iterator[Bound]:
    """Yield the parts that have no parts themselves."""
    match bound_condition:
        case AndCondition() | OrCondition():
            for part in bound_condition.parts:
                yield from leaves(part)
        case NotCondition() | IsTrue():
            yield from leaves(bound_condition.part)
        case _:
            yield bound_condition


def terms(bound_condition: Bound) -> Iterator[BoundTerm]:
    """Yield the terms of all leaves, duplicates too."""
    for leaf in leaves(bound_condition):
        if isinstance(leaf, CompareCondition | InCondition | TextTest | IsNull | KnownCondition):
            yield leaf.term


def unknown_parts(bound_condition: Bound) -> list[str]:
    """Return the parts of `bound_condition` that cannot be evaluated."""
    return [leaf.text for leaf in leaves(bound_condition) if isinstance(leaf, OpaqueCondition)]


def of_columns(bound_condition: Bound, ids: Collection[int]) -> Bound:
    """Return `bound_condition` for the columns with these ids: parts about other columns may have any result."""
    match bound_condition:
        case AndCondition():
            return AndCondition(tuple(of_columns(part, ids) for part in bound_condition.parts))
        case OrCondition():
            return OrCondition(tuple(of_columns(part, ids) for part in bound_condition.parts))
        case NotCondition():
            return NotCondition(of_columns(bound_condition.part, ids))
        case IsTrue():
            return IsTrue(of_columns(bound_condition.part, ids))
        case ConstantCondition() | OpaqueCondition():
            return bound_condition
        case _:
            return bound_condition if bound_condition.term.column_id in ids else OpaqueCondition("")


def possible(bound_condition: Bound) -> Bound:
    """Return a condition that can be evaluated, and is true for every row for which `bound_condition` may be true."""
    return _without_unknown(bound_condition, True)


def _without_unknown(bound_condition: Bound, instead: bool) -> Bound:
    match bound_condition:
        case AndCondition():
            return AndCondition(tuple(_without_unknown(part, instead) for part in bound_condition.parts))
        case OrCondition():
            return OrCondition(tuple(_without_unknown(part, instead) for part in bound_condition.parts))
        case NotCondition():
            return NotCondition(_without_unknown(bound_condition.part, not instead))
        case IsTrue():
            return IsTrue(_without_unknown(bound_condition.part, instead))
        case OpaqueCondition():
            return ConstantCondition(instead)
        case _:
            return bound_condition
