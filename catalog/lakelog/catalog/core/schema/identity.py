"""Identity columns: their values are made for rows that do not give one, each once in the life of the column.

The definition is the column's; the last value that was taken stands in the table's state, by the column's id, and only
ever moves on. A write takes values beyond that, and its commit says which: `ValuesTaken`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from lakelog.catalog.core.schema.constraints import Check, Constraint
from lakelog.catalog.core.schema.partitioning import PartitionSpec, SortOrder
from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.schema.types import AtomicType, Field, Identity, same_shape
from lakelog.log.errors import InvalidInput, Unsupported

LONG = AtomicType("long")
LOWEST, HIGHEST = -(2**63), 2**63 - 1


class ValuesTaken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a write took of an identity column: its values from `first`, step by step, up to `last`, or some of them.

    `given`: some of its rows had a value of their own for that column.
    """

    column: int
    first: int
    last: int
    given: bool = False


class Definition(Protocol):
    """The parts of a table's definition in which an identity column must not be used."""

    @property
    def schema(self) -> Schema: ...
    @property
    def spec(self) -> PartitionSpec: ...
    @property
    def sort_order(self) -> SortOrder: ...
    @property
    def clustering(self) -> tuple[int, ...]: ...
    @property
    def constraints(self) -> tuple[Constraint, ...]: ...


def identity_fields(schema: Schema) -> list[tuple[Field, Identity]]:
    """Return the identity columns of a table, with how their values are made."""
    return [(field, field.identity) for field in schema.fields if field.identity is not None]


def next_values(schema: Schema, taken: Mapping[int, int]) -> dict[int, int]:
    """Return the next value of each identity column, by its id, where `taken` has the last ones that are taken.

    It may be beyond what a BIGINT holds: then the column is exhausted, see `check_range`.
    """
    return {
        field.id: taken[field.id] + identity.step if field.id in taken else identity.start
        for field, identity in identity_fields(schema)
    }


def is_beyond(identity: Identity, value: int, taken: int | None) -> bool:
    """Return whether `value` comes after the last one that is taken, in the direction of the column's values."""
    return taken is None or (value - taken > 0) == (identity.step > 0) and value != taken


def check_range(field: Field, last: int) -> None:
    """Raise InvalidInput where the values of a column do not reach up to `last`."""
    if not LOWEST <= last <= HIGHEST:
        raise InvalidInput(
            f"the identity column {dotted((field.name,))} is exhausted: {last} exceeds BIGINT. Add a new "
            "column, which begins anew"
        )


def check_steps(values: Sequence[ValuesTaken], schema: Schema) -> None:
    """Raise InvalidInput for values that a write cannot have taken."""
    known = {field.id: (field, identity) for field, identity in identity_fields(schema)}
    for each in values:
        if each.column not in known:
            raise InvalidInput(
                f"the write took values of column {each.column}, which is not an identity column"
            )
        field, identity = known[each.column]
        check_range(field, each.first)
        check_range(field, each.last)
        # The first may follow any earlier one; from there on all are steps.
        if (each.last - each.first) % identity.step or (each.last - each.first) // identity.step < 0:
            raise InvalidInput(
                f"the write took the values {each.first} to {each.last} of {dotted((field.name,))}, whose step is "
                f"{identity.step}"
            )
    if len({each.column for each in values}) < len(values):
        raise InvalidInput("the write took values of a column twice: name each column once")


def refuse_identity(schema: Schema, instead: str) -> None:
    """Raise Unsupported for files of other programs, where a column is an identity. `instead`: what to do."""
    for field, _ in identity_fields(schema):
        raise Unsupported(
            f"the column {dotted((field.name,))} is an identity column, whose values are made as rows are written: "
            f"{instead}"
        )


def refuse_given(schema: Schema, columns: Iterable[int]) -> None:
    """Raise InvalidInput for values that are given to these columns, by their ids, where their values are always made.

    For writes of rows, and for changes of some.
    """
    ids = set(columns)
    for field, identity in identity_fields(schema):
        if identity.always and field.id in ids:
            raise InvalidInput(given_to(field))


def given_to(field: Field) -> str:
    return (
        f"the column {dotted((field.name,))} is GENERATED ALWAYS AS IDENTITY, so its values cannot be given: "
        "leave the column out, or use DEFAULT"
    )


def check_identity(definition: Definition) -> None:
    """Raise InvalidInput where an identity column of a table's definition is not a valid one, or is used as none may
    be.

    Its values are made when a row is written: after the rows were spread over partitions and sorted, and after CHECKs
    and generated columns were computed from them.
    """
    used = {
        **{part.source_id: "partition the table" for part in definition.spec.fields},
        **{part.source_id: "order the rows" for part in definition.sort_order.fields},
        **{column: "cluster the rows" for column in definition.clustering},
        **{
            column: f"be in the constraint {each.name}"
            for each in definition.constraints
            if isinstance(each, Check)
            for column in each.columns
        },
    }
    sources = {
        name: field
        for field in definition.schema.fields
        for name in (field.generated.columns if field.generated else ())
    }
    for field, identity in identity_fields(definition.schema):
        name = dotted((field.name,))
        if field.type != LONG:
            raise InvalidInput(f"the identity column {name} is of type {field.type}: make it BIGINT")
        if identity.step == 0:
            raise InvalidInput(
                f"the values of the identity column {name} have the step 0: give another INCREMENT BY"
            )
        for number in (identity.start, identity.step):
            if not LOWEST <= number <= HIGHEST:
                raise InvalidInput(
                    f"the identity column {name} has the number {number}, which exceeds BIGINT"
                )
        if field.default is not None or field.generated is not None:
            raise InvalidInput(
                f"the column {name} is an identity column and cannot have a default or an expression"
            )
        if field.nullable:
            raise InvalidInput(f"the identity column {name} must stay NOT NULL: it has a value in every row")
        if field.id in used:
            raise InvalidInput(
                f"the identity column {name} cannot {used[field.id]}: its values are made later, when rows are "
                "written"
            )
        if field.name in sources:
            raise InvalidInput(
                f"{dotted((sources[field.name].name,))} cannot be generated from the identity column {name}, whose "
                "values are made later, when rows are written"
            )


def check_identity_kept(before: Schema, after: Schema) -> None:
    """Raise InvalidInput where changes of a table would change an identity column."""
    for field, identity in identity_fields(after):
        old = before.field_by_id(field.id)
        assert old.identity == identity, "no change is about it"
        if not same_shape(old.type, field.type):
            raise InvalidInput(
                f"cannot change the type of the identity column {dotted((field.name,))}: it stays BIGINT"
            )


def relaxed(schema: Schema) -> Schema:
    """Return the schema of rows that may lack values of identity columns, or have NULL for them."""

    if not identity_fields(schema):
        return schema

    def open_to_null(field: Field) -> Field:
        return msgspec.structs.replace(field, nullable=True) if field.identity is not None else field

    return Schema(fields=tuple(map(open_to_null, schema.fields)), last_id=schema.last_id)


def values_json(schema: Schema, taken: Mapping[int, int]) -> list[dict[str, Any]]:
    """Return the next values in the form that is sent to writers of rows in other processes."""
    return [{"column": column, "next": value} for column, value in next_values(schema, taken).items()]
