"""Constraints of a table's rows: CHECK conditions, which every writer enforces, and keys, which only inform.

A key has column ids, so it follows a rename. A CHECK is a condition in SQL, which only Spark reads. Its
columns are stored by id too, and keep their name and type until the CHECK is dropped. For every row of the
table a CHECK is true or NULL, never false, as in SQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, assert_never

import msgspec

from lakelog.catalog.core.schema.expression import Expression
from lakelog.catalog.core.schema.predicate import Predicate
from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.schema.stored_types import ready
from lakelog.catalog.core.schema.types import ColumnPath, StructType, Type, children, is_collated, walk
from lakelog.catalog.errors import ConstraintExists, MultiplePrimaryKeys, NoSuchColumn, NoSuchConstraint
from lakelog.catalog.names import check_name
from lakelog.log.errors import InvalidInput, Unsupported
from lakelog.log.grammar import Int32

SQL_LIMIT_BYTES = 64 * 1024
LIMIT = 1000


class _Constraint(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind"
):  # fmt: skip
    """`columns` are ids. `rely` permits an optimiser to assume that the constraint holds."""

    name: str
    columns: tuple[Int32, ...]
    rely: bool = False


class CheckConstraint(_Constraint, frozen=True, tag="check"):
    """`sql` is the condition. `predicate` is the same condition in the form of `Predicate.to_json`, if it has
    such a form."""

    sql: str
    predicate: dict[str, Any] | None = None


class PrimaryKey(_Constraint, frozen=True, tag="primary-key"):
    pass


class UniqueConstraint(_Constraint, frozen=True, tag="unique"):
    pass


class ForeignKey(_Constraint, frozen=True, tag="foreign-key"):
    """`table` and `referenced` are names as the user wrote them. They are not looked up."""

    table: tuple[str, ...]
    referenced: tuple[str, ...]


Constraint: TypeAlias = CheckConstraint | PrimaryKey | UniqueConstraint | ForeignKey


class StatedConstraint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A requested constraint, with column names. The `columns` of a CHECK are the columns in its
    condition."""

    kind: Literal["check", "primary-key", "unique", "foreign-key"]
    name: str
    columns: tuple[ColumnPath, ...]
    rely: bool = False
    sql: str | None = None
    predicate: Expression | None = None
    table: tuple[str, ...] | None = None
    referenced: tuple[str, ...] | None = None


ready(StatedConstraint)


def stated_from(asked_constraint: StatedConstraint | Mapping[str, Any]) -> StatedConstraint:
    """Return `asked_constraint` as a struct. Raises InvalidInput for JSON that is not a constraint."""
    if isinstance(asked_constraint, StatedConstraint):
        return asked_constraint
    try:
        return msgspec.convert(dict(asked_constraint), StatedConstraint)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise InvalidInput(f"{asked_constraint!r} is not a constraint: {error}") from None


def find(constraints: Sequence[Constraint], name: str) -> Constraint | None:
    """Return the constraint of that name, in any case."""
    lower_name = name.lower()
    return next((constraint for constraint in constraints if constraint.name.lower() == lower_name), None)


def with_all(
    constraints: tuple[Constraint, ...],
    constraint: Sequence[StatedConstraint | Mapping[str, Any]],
    schema: Schema,
    *,
    case_sensitive: bool = False,
) -> tuple[Constraint, ...]:
    """Return `constraints` and the requested constraints on columns of `schema`.

    Raises ConstraintExists, MultiplePrimaryKeys, NoSuchColumn or InvalidInput.
    """
    for statement in constraint:
        constraints = _with(constraints, stated_from(statement), schema, case_sensitive)
    return constraints


def without(
    constraints: tuple[Constraint, ...], name: str, *, if_exists: bool = False
) -> tuple[Constraint, ...]:
    """Return the constraints without `name`. Raises NoSuchConstraint if there is none, unless `if_exists`."""
    dropped_constraint = find(constraints, name)
    if dropped_constraint is None:
        if if_exists:
            return constraints
        raise NoSuchConstraint(f"there is no constraint {name}; {_listed(constraints)}")
    return tuple(constraint for constraint in constraints if constraint is not dropped_constraint)


def _listed(constraints: Sequence[Constraint]) -> str:
    names = ", ".join(constraint.name for constraint in constraints[:20])
    return f"the table has {names}" if names else "the table has none"


def _with(
    constraints: tuple[Constraint, ...],
    asked_constraint: StatedConstraint,
    schema: Schema,
    case_sensitive: bool,
) -> tuple[Constraint, ...]:
    check_name(asked_constraint.name, "constraint")
    same_name = find(constraints, asked_constraint.name)
    if same_name is not None:
        raise ConstraintExists(
            f"there is a constraint {same_name.name} already: drop it first, or choose another name"
        )
    if len(constraints) >= LIMIT:
        raise InvalidInput(f"the table has {LIMIT} constraints already, which is the limit: drop one first")
    new_constraint = _bound(asked_constraint, schema, case_sensitive)
    primary_key = next((constraint for constraint in constraints if isinstance(constraint, PrimaryKey)), None)
    if isinstance(new_constraint, PrimaryKey) and primary_key is not None:
        raise MultiplePrimaryKeys(
            f"the table has the primary key {primary_key.name} already: drop it first, or use UNIQUE"
        )
    return (*constraints, new_constraint)


def _bound(asked_constraint: StatedConstraint, schema: Schema, case_sensitive: bool) -> Constraint:
    if asked_constraint.kind == "check":
        return _check(asked_constraint, schema, case_sensitive)
    if not asked_constraint.columns:
        raise InvalidInput(f"the constraint {asked_constraint.name} names no columns: name at least one")
    fields = [schema.find(path, case_sensitive) for path in asked_constraint.columns]
    for path, field in zip(asked_constraint.columns, fields, strict=True):
        _refuse_collated(asked_constraint.name, path, field.type)
    columns = tuple(field.id for field in fields)
    match asked_constraint.kind:
        case "primary-key":
            return PrimaryKey(name=asked_constraint.name, columns=columns, rely=asked_constraint.rely)
        case "unique":
            return UniqueConstraint(name=asked_constraint.name, columns=columns, rely=asked_constraint.rely)
        case "foreign-key":
            if (
                not asked_constraint.table
                or not asked_constraint.referenced
                or len(asked_constraint.referenced) != len(columns)
            ):
                raise InvalidInput(
                    f"the foreign key {asked_constraint.name} must reference a table, "
                    "and as many columns of it as it has"
                )
            return ForeignKey(
                name=asked_constraint.name,
                columns=columns,
                rely=asked_constraint.rely,
                table=asked_constraint.table,
                referenced=asked_constraint.referenced,
            )
    assert_never(asked_constraint.kind)


def refuse_collated_keys(constraints: Sequence[Constraint], id: int, path: ColumnPath, type: Type) -> None:
    """Raise Unsupported if `id` is a column of a key, and `type` cannot be in a key."""
    for constraint in constraints:
        if not isinstance(constraint, CheckConstraint) and id in constraint.columns:
            _refuse_collated(constraint.name, path, type)


def _refuse_collated(name: str, path: ColumnPath, type: Type) -> None:
    if is_collated(type):
        raise Unsupported(
            f"the key {name} cannot have the column {dotted(path)}, which is {type}: keys are compared by their bytes; "
            "use a column of type string"
        )


def _check(asked_constraint: StatedConstraint, schema: Schema, case_sensitive: bool) -> CheckConstraint:
    if not asked_constraint.sql:
        raise InvalidInput(f"the constraint {asked_constraint.name} has no condition: give its SQL")
    if len(asked_constraint.sql.encode()) > SQL_LIMIT_BYTES:
        raise InvalidInput(
            f"the condition of the constraint {asked_constraint.name} is longer than {SQL_LIMIT_BYTES} bytes: "
            "shorten it"
        )
    if asked_constraint.predicate is not None:
        Predicate.from_json(asked_constraint.predicate)
    columns = dict.fromkeys(_meant(path, schema, case_sensitive) for path in asked_constraint.columns)
    return CheckConstraint(
        name=asked_constraint.name,
        columns=tuple(columns),
        rely=asked_constraint.rely,
        sql=asked_constraint.sql,
        predicate=msgspec.json.decode(msgspec.json.encode(asked_constraint.predicate)),
    )


def _meant(path: ColumnPath, schema: Schema, case_sensitive: bool) -> int:
    """Return the id of the column or struct field that a name in a condition leads to: the last field along
    structs.

    The parts of a name inside an array or a map belong to the element or value, and change with the whole
    column.
    """
    if not path or schema.get(path[:1], case_sensitive) is None:
        column_names = ", ".join(dotted((name,)) for name in schema.names[:20])
        raise NoSuchColumn(
            f"the condition of a constraint names {dotted(path)}, and there is no column {dotted(path[:1])}; write "
            f"columns without the table's name: they are {column_names}"
        )
    field = schema.find(path[:1], case_sensitive)
    for length in range(2, len(path) + 1):
        inner = schema.get(path[:length], case_sensitive) if isinstance(field.type, StructType) else None
        if inner is None:
            break
        field = inner
    return field.id


def refuse_dependent(
    constraints: Sequence[Constraint],
    schema: Schema,
    path: ColumnPath,
    what: str,
    *,
    case_sensitive: bool,
    checks_only: bool,
) -> None:
    """Raise InvalidInput if a constraint depends on the column at `path`. `what` names the change."""
    if not constraints:
        return
    field = schema.find(path, case_sensitive)
    own = {field.id, *(part.id for _, part in walk(children(field.type)))}
    above = {schema.find(path[:length], case_sensitive).id for length in range(1, len(path))}
    for constraint in constraints:
        if checks_only and not isinstance(constraint, CheckConstraint):
            continue
        # A condition on a whole struct depends on its fields, too.
        if not (own | above).isdisjoint(constraint.columns):
            raise InvalidInput(
                f"cannot {what} {dotted(path)}: the constraint {constraint.name} needs it as it is; drop that first, "
                f"by ALTER TABLE … DROP CONSTRAINT {dotted((constraint.name,))}"
            )
