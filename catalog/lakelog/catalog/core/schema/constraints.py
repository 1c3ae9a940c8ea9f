"""Constraints of a table's rows: CHECK conditions, which every writer enforces, and keys, which only inform.

A key knows its columns by id, so it follows a rename. A CHECK is a condition in SQL, which only Spark reads; the
columns in it are known by id too, and keep name and type until it is dropped. For every row of the table a CHECK is
true or NULL, never false, as in SQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, assert_never

import msgspec

from lakelog.catalog.core.schema.expression import Expression
from lakelog.catalog.core.schema.predicate import Predicate
from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.schema.stored_types import ready
from lakelog.catalog.core.schema.types import StructType, Type, children, is_collated, walk
from lakelog.catalog.errors import ConstraintExists, MultiplePrimaryKeys, NoSuchColumn, NoSuchConstraint
from lakelog.catalog.names import check_name
from lakelog.log.errors import InvalidInput, Unsupported
from lakelog.log.grammar import Int32

SQL_LIMIT_BYTES = 64 * 1024
LIMIT = 1000

Path: TypeAlias = tuple[str, ...]


class _Constraint(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind"
):  # fmt: skip
    """`columns` are ids. `rely` lets an optimiser assume that the constraint holds."""

    name: str
    columns: tuple[Int32, ...]
    rely: bool = False


class Check(_Constraint, frozen=True, tag="check"):
    """`sql` is the condition. `predicate` is the same in the form of `Predicate.to_json`, where it has one."""

    sql: str
    predicate: dict[str, Any] | None = None


class PrimaryKey(_Constraint, frozen=True, tag="primary-key"):
    pass


class Unique(_Constraint, frozen=True, tag="unique"):
    pass


class ForeignKey(_Constraint, frozen=True, tag="foreign-key"):
    """`table` and `referenced` are names as they were written: they are not looked up."""

    table: tuple[str, ...]
    referenced: tuple[str, ...]


Constraint: TypeAlias = Check | PrimaryKey | Unique | ForeignKey


class Stated(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A requested constraint, with the names of columns. Of a CHECK, `columns` are those in its condition."""

    kind: Literal["check", "primary-key", "unique", "foreign-key"]
    name: str
    columns: tuple[Path, ...]
    rely: bool = False
    sql: str | None = None
    predicate: Expression | None = None
    table: tuple[str, ...] | None = None
    referenced: tuple[str, ...] | None = None


ready(Stated)


def stated_from(asked: Stated | Mapping[str, Any]) -> Stated:
    """Return `asked` as a struct. InvalidInput for JSON that is not a constraint."""
    if isinstance(asked, Stated):
        return asked
    try:
        return msgspec.convert(dict(asked), Stated)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise InvalidInput(f"{asked!r} is not a constraint: {error}") from None


def find(constraints: Sequence[Constraint], name: str) -> Constraint | None:
    """Return the constraint of that name, in upper or lower case."""
    lowered = name.lower()
    return next((each for each in constraints if each.name.lower() == lowered), None)


def with_all(
    constraints: tuple[Constraint, ...],
    asked: Sequence[Stated | Mapping[str, Any]],
    schema: Schema,
    *,
    case_sensitive: bool = False,
) -> tuple[Constraint, ...]:
    """Return `constraints` and the requested one, on the columns of `schema`.

    ConstraintExists, MultiplePrimaryKeys, NoSuchColumn, InvalidInput.
    """
    for each in asked:
        constraints = _with(constraints, stated_from(each), schema, case_sensitive)
    return constraints


def without(
    constraints: tuple[Constraint, ...], name: str, *, if_exists: bool = False
) -> tuple[Constraint, ...]:
    """Return the others. NoSuchConstraint, unless `if_exists`."""
    found = find(constraints, name)
    if found is None:
        if if_exists:
            return constraints
        raise NoSuchConstraint(f"there is no constraint {name}; {_listed(constraints)}")
    return tuple(each for each in constraints if each is not found)


def _listed(constraints: Sequence[Constraint]) -> str:
    names = ", ".join(each.name for each in constraints[:20])
    return f"the table has {names}" if names else "the table has none"


def _with(
    constraints: tuple[Constraint, ...], asked: Stated, schema: Schema, case_sensitive: bool
) -> tuple[Constraint, ...]:
    check_name(asked.name, "constraint")
    found = find(constraints, asked.name)
    if found is not None:
        raise ConstraintExists(
            f"there is a constraint {found.name} already: drop it first, or choose another name"
        )
    if len(constraints) >= LIMIT:
        raise InvalidInput(f"the table has {LIMIT} constraints already, which is the limit: drop one first")
    new = _bound(asked, schema, case_sensitive)
    first = next((each for each in constraints if isinstance(each, PrimaryKey)), None)
    if isinstance(new, PrimaryKey) and first is not None:
        raise MultiplePrimaryKeys(
            f"the table has the primary key {first.name} already: drop it first, or use UNIQUE"
        )
    return (*constraints, new)


def _bound(asked: Stated, schema: Schema, case_sensitive: bool) -> Constraint:
    if asked.kind == "check":
        return _check(asked, schema, case_sensitive)
    if not asked.columns:
        raise InvalidInput(f"the constraint {asked.name} names no columns: name at least one")
    found = [schema.find(path, case_sensitive) for path in asked.columns]
    for path, field in zip(asked.columns, found, strict=True):
        _refuse_collated(asked.name, path, field.type)
    columns = tuple(field.id for field in found)
    match asked.kind:
        case "primary-key":
            return PrimaryKey(name=asked.name, columns=columns, rely=asked.rely)
        case "unique":
            return Unique(name=asked.name, columns=columns, rely=asked.rely)
        case "foreign-key":
            if not asked.table or not asked.referenced or len(asked.referenced) != len(columns):
                raise InvalidInput(
                    f"the foreign key {asked.name} must reference a table, and as many columns of it as it has"
                )
            return ForeignKey(
                name=asked.name,
                columns=columns,
                rely=asked.rely,
                table=asked.table,
                referenced=asked.referenced,
            )
    assert_never(asked.kind)


def refuse_collated_keys(constraints: Sequence[Constraint], id: int, path: Path, type: Type) -> None:
    """Raise Unsupported where a key has the column `id`, and `type` cannot be in one."""
    for constraint in constraints:
        if not isinstance(constraint, Check) and id in constraint.columns:
            _refuse_collated(constraint.name, path, type)


def _refuse_collated(name: str, path: Path, type: Type) -> None:
    if is_collated(type):
        raise Unsupported(
            f"the key {name} cannot have the column {dotted(path)}, which is {type}: keys are compared by their bytes; "
            "use a column of type string"
        )


def _check(asked: Stated, schema: Schema, case_sensitive: bool) -> Check:
    if not asked.sql:
        raise InvalidInput(f"the constraint {asked.name} has no condition: give its SQL")
    if len(asked.sql.encode()) > SQL_LIMIT_BYTES:
        raise InvalidInput(
            f"the condition of the constraint {asked.name} is longer than {SQL_LIMIT_BYTES} bytes: shorten it"
        )
    if asked.predicate is not None:
        Predicate.from_json(asked.predicate)
    columns = dict.fromkeys(_meant(path, schema, case_sensitive) for path in asked.columns)
    return Check(
        name=asked.name,
        columns=tuple(columns),
        rely=asked.rely,
        sql=asked.sql,
        predicate=msgspec.json.decode(msgspec.json.encode(asked.predicate)),
    )


def _meant(path: Path, schema: Schema, case_sensitive: bool) -> int:
    """Return the id of the column or field that a name in a condition leads to: the last one along structs.

    What follows in an array or a map belongs to its element or value, and changes with the whole column.
    """
    if not path or schema.get(path[:1], case_sensitive) is None:
        known = ", ".join(dotted((name,)) for name in schema.names[:20])
        raise NoSuchColumn(
            f"the condition of a constraint names {dotted(path)}, and there is no column {dotted(path[:1])}; write "
            f"columns without the table's name: they are {known}"
        )
    found = schema.find(path[:1], case_sensitive)
    for length in range(2, len(path) + 1):
        inner = schema.get(path[:length], case_sensitive) if isinstance(found.type, StructType) else None
        if inner is None:
            break
        found = inner
    return found.id


def refuse_dependent(
    constraints: Sequence[Constraint],
    schema: Schema,
    path: Path,
    what: str,
    *,
    case_sensitive: bool,
    checks_only: bool,
) -> None:
    """Raise InvalidInput where a constraint needs the column at `path` as it is. `what` names the change."""
    if not constraints:
        return
    field = schema.find(path, case_sensitive)
    own = {field.id, *(part.id for _, part in walk(children(field.type)))}
    above = {schema.find(path[:length], case_sensitive).id for length in range(1, len(path))}
    for constraint in constraints:
        if checks_only and not isinstance(constraint, Check):
            continue
        # A condition that has a whole struct has its fields, too.
        if not (own | above).isdisjoint(constraint.columns):
            raise InvalidInput(
                f"cannot {what} {dotted(path)}: the constraint {constraint.name} needs it as it is; drop that first, "
                f"by ALTER TABLE … DROP CONSTRAINT {dotted((constraint.name,))}"
            )
