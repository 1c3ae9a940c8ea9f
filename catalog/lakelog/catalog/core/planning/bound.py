"""Filters bound to a schema: columns by id, values in the type that they are compared in. Pure values.

Every part has SQL's three results for a row: true, false and NULL. `rows` evaluates it on rows, `pruning` on files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from lakelog.catalog.core.schema import Transform, Type


@dataclass(frozen=True, slots=True)
class Term:
    """A column, or a transform of one. `path` are today's names; `type` is what values are compared in.

    `type` is double for floats too, and None for types without an order, which are only tested for NULL.
    """

    column_id: int
    path: tuple[str, ...]
    # Left out of the hash: the metadata of a struct's fields may hold values that cannot be hashed.
    source: Type = field(hash=False)
    type: pa.DataType | None
    transform: Transform | None = None


@dataclass(frozen=True, slots=True)
class Compare:
    """`op` is one of = < <= > >=. `value` is not NULL, but may be NaN: equal to itself and above all else."""

    op: str
    term: Term
    value: pa.Scalar


@dataclass(frozen=True, slots=True)
class In:
    """`values` has neither NULL nor NaN; `nan` and `null` say whether those are in the list too."""

    term: Term
    values: pa.Array
    nan: bool
    null: bool


@dataclass(frozen=True, slots=True)
class TextTest:
    """`op` is STARTS_WITH, ENDS_WITH or CONTAINS."""

    op: str
    term: Term
    text: str | bytes


@dataclass(frozen=True, slots=True)
class IsNull:
    term: Term


@dataclass(frozen=True, slots=True)
class Known:
    """`result` for every value of the term, NULL where it is NULL."""

    term: Term
    result: bool


@dataclass(frozen=True, slots=True)
class Constant:
    result: bool | None


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Bound


@dataclass(frozen=True, slots=True)
class IsTrue:
    """True where the part is, else false, never NULL."""

    part: Bound


@dataclass(frozen=True, slots=True)
class Unevaluable:
    """A condition that lakelog does not know: any result is possible."""

    text: str


Bound: TypeAlias = Compare | In | TextTest | IsNull | Known | Constant | And | Or | Not | IsTrue | Unevaluable


def leaves(bound: Bound) -> Iterator[Bound]:
    """Yield the parts that have no parts themselves."""
    match bound:
        case And() | Or():
            for part in bound.parts:
                yield from leaves(part)
        case Not() | IsTrue():
            yield from leaves(bound.part)
        case _:
            yield bound


def terms(bound: Bound) -> Iterator[Term]:
    """Yield the terms of all leaves, duplicates too."""
    for leaf in leaves(bound):
        if isinstance(leaf, Compare | In | TextTest | IsNull | Known):
            yield leaf.term


def unknown_parts(bound: Bound) -> list[str]:
    """Return what of `bound` cannot be evaluated."""
    return [leaf.text for leaf in leaves(bound) if isinstance(leaf, Unevaluable)]


def of_columns(bound: Bound, ids: Collection[int]) -> Bound:
    """Return what `bound` says of the columns with these ids: what it says of others may have any result."""
    match bound:
        case And():
            return And(tuple(of_columns(part, ids) for part in bound.parts))
        case Or():
            return Or(tuple(of_columns(part, ids) for part in bound.parts))
        case Not():
            return Not(of_columns(bound.part, ids))
        case IsTrue():
            return IsTrue(of_columns(bound.part, ids))
        case Constant() | Unevaluable():
            return bound
        case _:
            return bound if bound.term.column_id in ids else Unevaluable("")


def possible(bound: Bound) -> Bound:
    """Return a condition that can be evaluated, and is true at least wherever `bound` may be."""
    return _without_unknown(bound, True)


def _without_unknown(bound: Bound, instead: bool) -> Bound:
    match bound:
        case And():
            return And(tuple(_without_unknown(part, instead) for part in bound.parts))
        case Or():
            return Or(tuple(_without_unknown(part, instead) for part in bound.parts))
        case Not():
            return Not(_without_unknown(bound.part, not instead))
        case IsTrue():
            return IsTrue(_without_unknown(bound.part, instead))
        case Unevaluable():
            return Constant(instead)
        case _:
            return bound
