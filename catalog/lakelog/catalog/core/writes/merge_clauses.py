"""The clauses of a merge: what each does to which rows, with conditions and values that are checked against the table.

Rule: a clause is refused before a row is read. Which rows match is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import pyarrow as pa

from lakelog.catalog.core.parquet import plain_type, recast
from lakelog.catalog.core.schema import Schema, dotted, identity_fields, refuse_generated, refuse_given
from lakelog.catalog.core.writes.sql.engine import SqlEngine
from lakelog.catalog.core.writes.sql.expressions import (
    SOURCE,
    TARGET,
    Scope,
    SqlExpression,
    column_expression,
    listed,
    parsed,
)
from lakelog.log.errors import InvalidInput


class Rows(Enum):
    """The rows that a clause is about: pairs of a row of the table and one of the source, or rows of one side alone."""

    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    NOT_MATCHED_BY_SOURCE = "not matched by source"


class Does(Enum):
    UPDATE = "update"
    INSERT = "insert"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause as a user gives it. `values` are by columns of the table, each a text in SQL or another value of
    Python's; None: all columns that the source has, except some."""

    rows: Rows
    does: Does
    condition: str | None = None
    values: Mapping[str, Any] | None = None
    except_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is the same for all rows."""

    value: Any

    def times(self, count: int) -> pa.Array:
        value = pa.array([self.value])
        return recast(value, plain_type(value.type, ("value",)), ("value",)).take(pa.repeat(0, count))


Value: TypeAlias = SqlExpression | Constant


@dataclass(frozen=True, slots=True)
class Action:
    """A clause that is checked. `number` is its place among those of the same rows, from 1 on; `values` are by names of
    the schema."""

    number: int
    rows: Rows
    does: Does
    condition: SqlExpression | None = None
    values: Mapping[str, Value] = field(default_factory=dict)

    @property
    def expressions(self) -> list[SqlExpression]:
        """The condition and the values, as far as they are computed."""
        found = [each for each in self.values.values() if isinstance(each, SqlExpression)]
        return found if self.condition is None else [self.condition, *found]


@dataclass(frozen=True, slots=True)
class Actions:
    """All clauses of a merge, in their order."""

    all: Sequence[Action]

    def of(self, rows: Rows) -> list[Action]:
        return [each for each in self.all if each.rows is rows]

    @property
    def writes(self) -> bool:
        """Whether rows are written that are not as they were."""
        return any(each.does is not Does.DELETE for each in self.all)

    @property
    def matches_once(self) -> bool:
        """Whether it is an error that a row of the table matches several rows of the source, as it is in Spark."""
        matched = self.of(Rows.MATCHED)
        return bool(matched) and not (
            len(matched) == 1 and matched[0].does is Does.DELETE and matched[0].condition is None
        )


def check_order(clauses: Sequence[Clause]) -> None:
    """Raise InvalidInput for a merge without clauses, and for one with a clause that is never reached."""
    if not clauses:
        raise InvalidInput(
            "the merge has no clauses: say what happens to rows, as by when_matched_update_all()"
        )
    for rows in Rows:
        same = [each for each in clauses if each.rows is rows]
        if any(each.condition is None for each in same[:-1]):
            raise InvalidInput(
                f"only the last {rows.value} clause may be without a condition: those after it are never reached"
            )


def checked(engine: SqlEngine, clauses: Sequence[Clause], schema: Schema, source: pa.Schema) -> Actions:
    """Return the clauses with what they name. InvalidInput, NoSuchColumn, Unsupported for what is wrong in one."""
    counts = dict.fromkeys(Rows, 0)
    actions = []
    for clause in clauses:
        counts[clause.rows] += 1
        scope = Scope(
            target=None if clause.rows is Rows.NOT_MATCHED else schema,
            source=None if clause.rows is Rows.NOT_MATCHED_BY_SOURCE else source,
        )
        actions.append(
            Action(
                number=counts[clause.rows],
                rows=clause.rows,
                does=clause.does,
                condition=(
                    None
                    if clause.condition is None
                    else parsed(engine, clause.condition, scope, is_condition=True)
                ),
                values=_values(engine, clause, schema, source, scope),
            )
        )
    found = Actions(actions)
    if found.writes:
        refuse_generated(schema, "write these rows by MERGE in Spark")
    return found


def new_values(
    engine: SqlEngine | None, values: Mapping[str, Any], schema: Schema, scope: Scope
) -> dict[str, Value]:
    """Return values by names of the schema's columns. Without an engine, none is a text."""
    found: dict[str, Value] = {}
    for name, value in values.items():
        field = schema.find((name,))
        if field.name in found:
            raise InvalidInput(f"the column {dotted((field.name,))} gets two values: give it one")
        found[field.name] = _value(engine, value, scope)
    return found


def kept(values: Mapping[str, Value], schema: Schema) -> dict[str, Value]:
    """Return the values of all columns after an update that sets some, in the order of the schema."""
    refuse_given(schema, [schema.find((name,)).id for name in values])
    return {
        field.name: values.get(field.name, column_expression(TARGET, field.name)) for field in schema.fields
    }


def _values(
    engine: SqlEngine, clause: Clause, schema: Schema, source: pa.Schema, scope: Scope
) -> dict[str, Value]:
    if clause.does is Does.DELETE:
        return {}
    if clause.values is not None:
        if not clause.values:
            raise InvalidInput(f"the {clause.does.value} has no values: name the columns that it sets")
        values = new_values(engine, clause.values, schema, scope)
    else:
        values = _all(clause, schema, source)
    if not values and clause.does is Does.INSERT:
        raise InvalidInput("the insert has no values: the source has no column of the table")
    return kept(values, schema) if clause.does is Does.UPDATE else values


def _all(clause: Clause, schema: Schema, source: pa.Schema) -> dict[str, Value]:
    """Return each column that the source has. An update keeps the values of columns that cannot be given any."""
    excepted = {name.lower() for name in clause.except_columns}
    _check_known(clause.except_columns, [*source.names, *(field.name for field in schema.fields)])
    unknown = [name for name in source.names if schema.get((name,)) is None and name.lower() not in excepted]
    if unknown:
        raise InvalidInput(
            f"the source has {listed(unknown)}, which the table does not have: name the columns in except_cols, or "
            "add them to the table first"
        )
    made = {field.id for field, identity in identity_fields(schema) if identity.always}
    names = {name.lower(): name for name in source.names if name.lower() not in excepted}
    return {
        field.name: column_expression(SOURCE, names[field.name.lower()])
        for field in schema.fields
        if field.name.lower() in names and not (clause.does is Does.UPDATE and field.id in made)
    }


def _check_known(names: Iterable[str], known: Sequence[str]) -> None:
    missing = [name for name in names if name.lower() not in {each.lower() for each in known}]
    if missing:
        raise InvalidInput(
            f"neither the source nor the table has the column {listed(missing)} of except_cols"
        )


def _value(engine: SqlEngine | None, value: Any, scope: Scope) -> Value:
    if not isinstance(value, str):
        constant = Constant(value)
        try:
            constant.times(0)
        except (pa.ArrowException, InvalidInput, OverflowError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"{value!r} cannot be a value of a row ({error}): give a text in DuckDB's SQL, or a value of Python's "
                "such as a number"
            ) from None
        return constant
    assert engine is not None, "texts are computed"
    expression = parsed(engine, value, scope)
    return Constant(None) if expression.is_null else expression
