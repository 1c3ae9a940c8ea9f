"""Filters as an engine sends them: the JSON form of `predicate` as a struct, which refuses unknown
members."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from lakelog.catalog.core.schema.spark_types import SparkType
from lakelog.catalog.core.schema.stored_types import ready
from lakelog.catalog.core.schema.types import Scalar


class Expression(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A filter, or a part of a filter. It has the members of exactly one kind:

    - `op` with its `args`
    - `transform` with its `args`, which are numbers and a column
    - `col`, the path of a column
    - `lit`, a value, with its `type` in Spark's JSON
    - `opaque`, a text that only its engine understands
    """

    op: str | UnsetType = UNSET
    transform: str | UnsetType = UNSET
    args: tuple[Expression | Scalar, ...] | UnsetType = UNSET
    col: tuple[str, ...] | UnsetType = UNSET
    lit: Scalar | UnsetType = UNSET
    type: SparkType | UnsetType = UNSET
    opaque: str | UnsetType = UNSET

    def __post_init__(self) -> None:
        kinds = (self.op, self.transform, self.col, self.lit, self.opaque)
        if kinds.count(UNSET) != len(kinds) - 1:
            raise ValueError("a part of a filter has one of op, transform, col, lit and opaque")
        if self.args is not UNSET and self.op is UNSET and self.transform is UNSET:
            raise ValueError("only an op or a transform has args")
        if self.type is not UNSET and self.lit is UNSET:
            raise ValueError("only a lit has a type")


ready(Expression)
