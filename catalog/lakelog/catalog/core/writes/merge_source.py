"""The source of a merge in DuckDB, and the comparison of its rows with columns of the table.

A stream is read once. The columns that the merge needs are kept in the engine's own table, each row with its
number. Rule: keys are compared by `=` as in Spark, and types with another comparison in DuckDB are refused.
The exclusion of files by keys must agree with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

import numpy as np
import pyarrow as pa

from lakelog.catalog.core.parquet.plain_arrow import PlainStream
from lakelog.catalog.core.schema.predicate import ALWAYS_FALSE, Column, FilterLiteral, Predicate, literal
from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.schema.types import AtomicType, Field
from lakelog.catalog.core.writes.sql.engine import SqlEngine, carried_type, into_engine
from lakelog.catalog.core.writes.sql.expressions import (
    SOURCE,
    TARGET,
    ExpressionScope,
    SqlExpression,
    column_expression,
    not_computable,
    parsed,
    source_column,
)
from lakelog.log.errors import InvalidInput, Unsupported

_KINDS = {
    **dict.fromkeys(("byte", "short", "integer", "long", "decimal"), "number"),
    **dict.fromkeys(("float", "double"), "floating-point number"),
    **dict.fromkeys(("string", "varchar"), "text"),
    **{each: each for each in ("boolean", "binary", "date", "timestamp", "timestamp_ntz", "time")},
}


def own_name(name: str, taken: Iterable[str]) -> str:
    """Return a name for a column of the engine's tables that no user column has."""
    names_in_use = {known_name.lower() for known_name in taken}
    while name in names_in_use:
        name = "_" + name
    return name


def check_names(schema: pa.Schema) -> None:
    """Raise InvalidInput if two columns of a source have the same name (case-insensitive)."""
    lower_names: set[str] = set()
    for name in schema.names:
        if name.lower() in lower_names:
            raise InvalidInput(
                f"the source has two columns named {dotted((name,))} (case-insensitive): leave one out"
            )
        lower_names.add(name.lower())


@dataclass(frozen=True, slots=True)
class MergeSource:
    """A loaded source. `columns` are the loaded columns, and `ordinal` is the name of the column of row
    numbers."""

    columns: pa.Schema
    ordinal: str
    rows: int


def load(engine: SqlEngine, source: PlainStream, needed: Iterable[str]) -> MergeSource:
    """Read the source into the engine's table `source`."""
    names = set(needed)
    places = [place for place, name in enumerate(source.schema.names) if name in names]
    reader = source.reader(places)
    ordinal = own_name("_ordinal", source.schema.names)
    table_schema = pa.schema(
        [
            *(field.with_type(carried_type(field.type)) for field in reader.schema),
            pa.field(ordinal, pa.int64()),
        ]
    )
    count = 0

    def numbered() -> Iterator[pa.RecordBatch]:
        nonlocal count
        for batch in reader:
            arrays = [
                into_engine(column, name)
                for column, name in zip(batch.columns, batch.schema.names, strict=True)
            ]
            ordinals = pa.array(np.arange(count, count + batch.num_rows, dtype=np.int64))
            count += batch.num_rows
            yield pa.RecordBatch.from_arrays([*arrays, ordinals], schema=table_schema)

    engine.keep(SOURCE, table_schema, numbered())
    return MergeSource(reader.schema, ordinal, count)


@dataclass(frozen=True, slots=True)
class MatchKey:
    """A column of the table that equals an expression of source rows in matching rows."""

    column: Field
    value: SqlExpression


@dataclass(frozen=True, slots=True)
class MatchCondition:
    """The condition on which a table row and a source row match. Among other things, `keys` have to be
    equal."""

    condition: SqlExpression
    keys: Sequence[MatchKey]


def matching(engine: SqlEngine, on: str | Sequence[str], schema: Schema, source: pa.Schema) -> MatchCondition:
    """Return the meaning of `on`: names of columns of both sides, or an expression with `target.` and
    `source.`."""
    if isinstance(on, str) and schema.get((on,)) is None:
        return _of_text(
            parsed(engine, on, ExpressionScope(target=schema, source=source), is_condition=True), schema
        )
    names = [on] if isinstance(on, str) else list(on) if isinstance(on, Iterable) else []
    if not all(isinstance(name, str) for name in names):
        raise InvalidInput(f"{names!r} are not columns to match rows by: give their names, or one expression")
    if not names:
        raise InvalidInput("the merge has no columns to match rows by: name at least one")
    keys = [_key(schema.find((name,)), source, name) for name in names]
    parts = [f"{column_expression(TARGET, key.column.name).sql} = {key.value.sql}" for key in keys]
    condition = SqlExpression(
        text=" AND ".join(parts),
        sql=" AND ".join(parts),
        target=frozenset(key.column.name for key in keys),
        source=frozenset(name for key in keys for name in key.value.source),
    )
    return MatchCondition(condition, keys)


def _of_text(condition: SqlExpression, schema: Schema) -> MatchCondition:
    keys = []
    for pair in condition.equal:
        for side, other_side in (pair, pair[::-1]):
            if (
                side.column is not None
                and side.column[0] == TARGET
                and other_side.source
                and not other_side.target
            ):
                keys.append(MatchKey(schema.find((side.column[1],), case_sensitive=True), other_side))
    return MatchCondition(condition, keys)


def _key(field: Field, source: pa.Schema, name: str) -> MatchKey:
    source_name = source_column(source, name)
    family = not_computable(field.type)
    if family is not None:
        raise Unsupported(
            f"rows cannot be matched by the column {dotted((field.name,))} of type {field.type}, as {family} is not "
            "compared here as in Spark: match them by other columns, or run MERGE in Spark"
        )
    if _kind_of(field) is None:
        raise Unsupported(
            f"rows cannot be matched by the column {dotted((field.name,))} of type {field.type}: match them by columns "
            "of simple types, or run MERGE in Spark"
        )
    if not _is_alike(field, source.field(source_name).type):
        raise InvalidInput(
            f"rows cannot be matched by {dotted((field.name,))}, which is {field.type} in the table and "
            f"{source.field(source_name).type} in the source: cast the source's column"
        )
    return MatchKey(field, column_expression(SOURCE, source_name))


def _is_alike(field: Field, data_type: pa.DataType) -> bool:
    """Return whether values of both types are compared in their own form, and not after a cast."""
    # NULL is equal to nothing.
    return pa.types.is_null(data_type) or _kind_of(field) == _kind(data_type)


def _kind_of(field: Field) -> str | None:
    return _KINDS.get(field.type.family) if isinstance(field.type, AtomicType) else None


def _kind(type: pa.DataType) -> str | None:
    types = pa.types
    if types.is_integer(type) or types.is_decimal(type):
        return "number"
    if types.is_floating(type):
        return "floating-point number"
    if types.is_string(type):
        return "text"
    if types.is_timestamp(type):
        return "timestamp_ntz" if type.tz is None else "timestamp"
    if types.is_binary(type):
        return "binary"
    tests = {"boolean": types.is_boolean, "date": types.is_date, "time": types.is_time}
    return next((name for name, test in tests.items() if test(type)), None)


class KeysOfSource:
    """The restrictions that a source's keys put on matching rows of the table: conditions that all of them
    satisfy."""

    def __init__(self, engine: SqlEngine, keys: Sequence[MatchKey], source: MergeSource) -> None:
        self._engine = engine
        self._rows = source.rows
        self._keys = [key for key in keys if _is_alike(key.column, _type_of(engine, key.value, source))]

    def within(self) -> Predicate | None:
        """Return the range of each key, or None if any row may match."""
        return self._all(lambda key: f"SELECT unnest([min({key.value.sql}), max({key.value.sql})])", _between)

    def among(self, rows_max: int) -> Predicate | None:
        """Return the values of each key, or None if any row may match, or if the source has too many rows."""
        if self._rows > rows_max:
            return None
        return self._all(lambda key: f"SELECT DISTINCT {key.value.sql}", _one_of)

    def _all(
        self, select: Callable[[MatchKey], str], of: Callable[[Column, Sequence[FilterLiteral]], Predicate]
    ) -> Predicate | None:
        predicates = []
        for key in self._keys:
            column = self._engine.table(f"{select(key)} AS key FROM {SOURCE}").column(0)
            try:
                values = [literal(value) for value in column.drop_null().to_pylist()]
            except (ValueError, OverflowError):
                # Python has no dates and times after the year 9999.
                continue
            if not values:
                return ALWAYS_FALSE
            predicates.append(of(Column((key.column.name,)), values))
        return reduce(and_, predicates) if predicates else None


def _between(column: Column, values: Sequence[FilterLiteral]) -> Predicate:
    low, high = values
    return Predicate(">=", (column, low)) & Predicate("<=", (column, high))


def _one_of(column: Column, values: Sequence[FilterLiteral]) -> Predicate:
    return Predicate("IN", (column, *values))


def _type_of(engine: SqlEngine, value: SqlExpression, source: MergeSource) -> pa.DataType:
    if value.column is not None:
        return source.columns.field(value.column[1]).type
    return engine.schema_of(f"SELECT {value.sql} AS key FROM {SOURCE}").field(0).type


def check_unique(engine: SqlEngine, keys: Sequence[MatchKey]) -> None:
    """Raise InvalidInput if two rows of the source have the same keys."""
    sql = ", ".join(key.value.sql for key in keys)
    has_keys = " AND ".join(f"{key.value.sql} IS NOT NULL" for key in keys)
    duplicates = engine.table(
        f"SELECT {sql} FROM {SOURCE} WHERE {has_keys} GROUP BY ALL HAVING count(*) > 1 LIMIT 1"
    )
    if duplicates.num_rows:
        values = [str(column[0]) for column in duplicates.to_pydict().values()]
        raise InvalidInput(
            f"the source has several rows with the key ({', '.join(values)}): leave one of them"
        )
