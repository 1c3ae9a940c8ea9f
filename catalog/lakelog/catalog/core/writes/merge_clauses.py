"""The clauses of a merge: their actions and rows, with conditions and values that are checked against the
table.

Rule: a clause is refused before a row is read. The match of rows is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from typing import Any, TypeAlias

import pyarrow as pa

from lakelog.catalog.core.parquet.plain_arrow import plain_type, recast
from lakelog.catalog.core.schema.generated import refuse_generated
from lakelog.catalog.core.schema.identity import identity_fields, refuse_given
from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.schema.types import AtomicType, Field
from lakelog.catalog.core.writes.sql.engine import SqlEngine
from lakelog.catalog.core.writes.sql.expressions import (
    SOURCE,
    TARGET,
    ExpressionScope,
    SqlExpression,
    column_expression,
    listed,
    parsed,
)
from lakelog.catalog.core.writes.store_assignment import stored, whole
from lakelog.log.errors import InvalidInput


class ClauseRows(Enum):
    """The rows of a clause: pairs of a table row and a source row, or rows of either side alone."""

    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    NOT_MATCHED_BY_SOURCE = "not matched by source"


class ClauseEffect(Enum):
    UPDATE = "update"
    INSERT = "insert"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """A clause as a user gives it. `values` are by columns of the table, each an SQL text or another Python
    value.

    Without `values`, the clause sets all columns of the source, except for `except_columns`.
    """

    rows: ClauseRows
    does: ClauseEffect
    condition: str | None = None
    values: Mapping[str, Any] | None = None
    except_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConstantValue:
    """A value that is the same for all rows."""

    value: Any

    def times(self, count: int) -> pa.Array:
        value = pa.array([self.value])
        return recast(value, plain_type(value.type, ("value",)), ("value",)).take(pa.repeat(0, count))

    def stored(self, field: Field, count: int) -> pa.Array:
        """Return `times` in the type of a column, if a number of Python's has no such type.

        Raises InvalidInput if a struct lacks a field.
        """
        values = self.times(count)
        if not isinstance(field.type, AtomicType):
            return whole(values, field)
        is_number = isinstance(self.value, float | Decimal) and not isinstance(self.value, bool)
        if is_number and isinstance(field.type, AtomicType) and field.type.family in _ROUNDED:
            return stored(values, field)
        return values


_ROUNDED = ("float", "double", "decimal")

Value: TypeAlias = SqlExpression | ConstantValue


@dataclass(frozen=True, slots=True)
class CheckedClause:
    """A checked clause. `number` is its place among the clauses for the same rows, from 1 on.

    `values` are by column names of the schema.
    """

    number: int
    rows: ClauseRows
    does: ClauseEffect
    condition: SqlExpression | None = None
    values: Mapping[str, Value] = field(default_factory=dict)

    @property
    def expressions(self) -> list[SqlExpression]:
        """The condition and the values, except for constants."""
        expressions = [value for value in self.values.values() if isinstance(value, SqlExpression)]
        return expressions if self.condition is None else [self.condition, *expressions]


@dataclass(frozen=True, slots=True)
class CheckedClauses:
    """All clauses of a merge, in their order."""

    all: Sequence[CheckedClause]

    def of(self, rows: ClauseRows) -> list[CheckedClause]:
        return [action for action in self.all if action.rows is rows]

    @property
    def writes(self) -> bool:
        """Return whether the merge writes new or changed rows."""
        return any(action.does is not ClauseEffect.DELETE for action in self.all)

    @property
    def matches_once(self) -> bool:
        """Return whether it is an error, as in Spark, if a row of the table matches several rows of the
        source."""
        actions = self.of(ClauseRows.MATCHED)
        return bool(actions) and not (
            len(actions) == 1 and actions[0].does is ClauseEffect.DELETE and actions[0].condition is None
        )


def check_order(clauses: Sequence[MergeClause]) -> None:
    """Raise InvalidInput for a merge without clauses, or with a clause that is never reached."""
    if not clauses:
        raise InvalidInput(
            "the merge has no clauses: say what happens to rows, as by when_matched_update_all()"
        )
    for rows in ClauseRows:
        same = [clause for clause in clauses if clause.rows is rows]
        if any(clause.condition is None for clause in same[:-1]):
            raise InvalidInput(
                f"only the last {rows.value} clause may be without a condition: those after it are never reached"
            )


def checked(
    engine: SqlEngine, clauses: Sequence[MergeClause], schema: Schema, source: pa.Schema
) -> CheckedClauses:
    """Return the checked clauses. Raises InvalidInput, NoSuchColumn or Unsupported for an error in a
    clause."""
    counts = dict.fromkeys(ClauseRows, 0)
    actions = []
    for clause in clauses:
        counts[clause.rows] += 1
        scope = ExpressionScope(
            target=None if clause.rows is ClauseRows.NOT_MATCHED else schema,
            source=None if clause.rows is ClauseRows.NOT_MATCHED_BY_SOURCE else source,
        )
        actions.append(
            CheckedClause(
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
    result = CheckedClauses(actions)
    if result.writes:
        refuse_generated(schema, "write these rows by MERGE in Spark")
    return result


def new_values(
    engine: SqlEngine | None, values: Mapping[str, Any], schema: Schema, scope: ExpressionScope
) -> dict[str, Value]:
    """Return values by names of the schema's columns. Without an engine, there must be no text among them."""
    result: dict[str, Value] = {}
    for name, value in values.items():
        field = schema.find((name,))
        if field.name in result:
            raise InvalidInput(f"the column {dotted((field.name,))} gets two values: give it one")
        result[field.name] = _value(engine, value, scope)
    return result


def kept(values: Mapping[str, Value], schema: Schema) -> dict[str, Value]:
    """Return the values of all columns after an update that sets some, in the order of the schema."""
    refuse_given(schema, [schema.find((name,)).id for name in values])
    return {
        field.name: values.get(field.name, column_expression(TARGET, field.name)) for field in schema.fields
    }


def _values(
    engine: SqlEngine, clause: MergeClause, schema: Schema, source: pa.Schema, scope: ExpressionScope
) -> dict[str, Value]:
    if clause.does is ClauseEffect.DELETE:
        return {}
    if clause.values is not None:
        if not clause.values:
            raise InvalidInput(f"the {clause.does.value} has no values: name the columns that it sets")
        values = new_values(engine, clause.values, schema, scope)
    else:
        values = _all(clause, schema, source)
    if not values and clause.does is ClauseEffect.INSERT:
        raise InvalidInput("the insert has no values: the source has no column of the table")
    return kept(values, schema) if clause.does is ClauseEffect.UPDATE else values


def _all(clause: MergeClause, schema: Schema, source: pa.Schema) -> dict[str, Value]:
    """Return each column of the source. An update leaves out columns whose values cannot be given."""
    left_out_names = {name.lower() for name in clause.except_columns}
    _check_known(clause.except_columns, [*source.names, *(field.name for field in schema.fields)])
    unknown = [
        name for name in source.names if schema.get((name,)) is None and name.lower() not in left_out_names
    ]
    if unknown:
        raise InvalidInput(
            f"the source has {listed(unknown)}, which the table does not have: name the columns in except_cols, or "
            "add them to the table first"
        )
    generated_ids = {field.id for field, identity in identity_fields(schema) if identity.always}
    names = {name.lower(): name for name in source.names if name.lower() not in left_out_names}
    return {
        field.name: column_expression(SOURCE, names[field.name.lower()])
        for field in schema.fields
        if field.name.lower() in names
        and not (clause.does is ClauseEffect.UPDATE and field.id in generated_ids)
    }


def _check_known(names: Iterable[str], known: Sequence[str]) -> None:
    unknown_names = [
        name for name in names if name.lower() not in {known_name.lower() for known_name in known}
    ]
    if unknown_names:
        raise InvalidInput(
            f"neither the source nor the table has the column {listed(unknown_names)} of except_cols"
        )


def _value(engine: SqlEngine | None, value: Any, scope: ExpressionScope) -> Value:
    if not isinstance(value, str):
        constant = ConstantValue(value)
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
    return ConstantValue(None) if expression.is_null else replace(expression, is_assigned=True)
