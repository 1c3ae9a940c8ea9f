"""Identity columns: rows without a value get one, which occurs only once in the life of the column.

The definition belongs to the column. The table's state has the last value that was taken, by column id, and
this value only moves on. A write takes values beyond it, and its commit records them as `ValuesTaken`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from lakelog.catalog.core.schema.constraints import CheckConstraint, Constraint
from lakelog.catalog.core.schema.partitioning import PartitionSpec, SortOrder
from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.schema.types import AtomicType, Field, Identity, same_shape
from lakelog.log.errors import InvalidInput, Unsupported

LONG = AtomicType("long")
LOWEST, HIGHEST = -(2**63), 2**63 - 1


class ValuesTaken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The values that a write took of an identity column: `first`, step by step, up to `last`, or some of
    these.

    With `given`, some of its rows had their own value for that column.
    """

    column: int
    first: int
    last: int
    given: bool = False


class IdentityUses(Protocol):
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
    """Return the identity columns of a table, with their rules for values."""
    return [(field, field.identity) for field in schema.fields if field.identity is not None]


def next_values(schema: Schema, taken: Mapping[int, int]) -> dict[int, int]:
    """Return the next value of each identity column, by column id. `taken` has the last taken values.

    If the value exceeds BIGINT, the column is exhausted. See `check_range`.
    """
    return {
        field.id: taken[field.id] + identity.step if field.id in taken else identity.start
        for field, identity in identity_fields(schema)
    }


def is_beyond(identity: Identity, value: int, taken: int | None) -> bool:
    """Return whether `value` follows the last taken value, in the direction of the column's step."""
    return taken is None or (value - taken > 0) == (identity.step > 0) and value != taken


def check_range(field: Field, last: int) -> None:
    """Raise InvalidInput if a column's values end before `last`."""
    if not LOWEST <= last <= HIGHEST:
        raise InvalidInput(
            f"the identity column {dotted((field.name,))} is exhausted: {last} exceeds BIGINT. Add a new "
            "column, which begins anew"
        )


def check_steps(values: Sequence[ValuesTaken], schema: Schema) -> None:
    """Raise InvalidInput for values that a write cannot have taken."""
    identities = {field.id: (field, identity) for field, identity in identity_fields(schema)}
    for entry in values:
        if entry.column not in identities:
            raise InvalidInput(
                f"the write took values of column {entry.column}, which is not an identity column"
            )
        field, identity = identities[entry.column]
        check_range(field, entry.first)
        check_range(field, entry.last)
        # The first value may follow any earlier value. All later values are steps from it.
        if (entry.last - entry.first) % identity.step or (entry.last - entry.first) // identity.step < 0:
            raise InvalidInput(
                f"the write took the values {entry.first} to {entry.last} of {dotted((field.name,))}, whose step is "
                f"{identity.step}"
            )
    if len({entry.column for entry in values}) < len(values):
        raise InvalidInput("the write took values of a column twice: name each column once")


def refuse_identity(schema: Schema, instead: str) -> None:
    """Raise Unsupported for files of other programs if a column is an identity column. `instead` says what to
    do."""
    for field, _ in identity_fields(schema):
        raise Unsupported(
            f"the column {dotted((field.name,))} is an identity column, whose values are made as rows are written: "
            f"{instead}"
        )


def refuse_given(schema: Schema, columns: Iterable[int]) -> None:
    """Raise InvalidInput if values are given to columns whose values are always generated. `columns` has
    their ids.

    It applies to inserted rows, and to updates of some columns.
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


def check_identity(definition: IdentityUses) -> None:
    """Raise InvalidInput if an identity column of a table's definition is invalid, or is used in a forbidden
    way.

    Its values are generated when a row is written. At that point the rows are already in partitions and
    sorted, and CHECKs and generated columns were computed from them.
    """
    uses = {
        **{part.source_id: "partition the table" for part in definition.spec.fields},
        **{part.source_id: "order the rows" for part in definition.sort_order.fields},
        **{column: "cluster the rows" for column in definition.clustering},
        **{
            column: f"be in the constraint {constraint.name}"
            for constraint in definition.constraints
            if isinstance(constraint, CheckConstraint)
            for column in constraint.columns
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
        if field.id in uses:
            raise InvalidInput(
                f"the identity column {name} cannot {uses[field.id]}: its values are made later, when rows are "
                "written"
            )
        if field.name in sources:
            raise InvalidInput(
                f"{dotted((sources[field.name].name,))} cannot be generated from the identity column {name}, whose "
                "values are made later, when rows are written"
            )


def check_identity_kept(schema_before: Schema, schema_after: Schema) -> None:
    """Raise InvalidInput if changes of a table would change an identity column."""
    for field, identity in identity_fields(schema_after):
        old = schema_before.field_by_id(field.id)
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
