"""The source of a merge in DuckDB, and what is compared of it with columns of the table.

A stream is read once: what the merge needs of it is kept in the engine's own table, each row with its number. Rule:
keys are compared by `=` as in Spark, and types for which that would be another comparison are refused. What files the
keys rule out must agree with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

import numpy as np
import pyarrow as pa

from lakelog.catalog.core.parquet import PlainStream
from lakelog.catalog.core.schema import (
    ALWAYS_FALSE,
    AtomicType,
    Column,
    Field,
    Literal,
    Predicate,
    Schema,
    dotted,
    literal,
)
from lakelog.catalog.core.writes.sql.engine import SqlEngine, carried_type, into_engine
from lakelog.catalog.core.writes.sql.expressions import (
    SOURCE,
    TARGET,
    Scope,
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


def own_name(wanted: str, taken: Iterable[str]) -> str:
    """Return a name for a column of the engine's tables that no column of the user's has."""
    known = {name.lower() for name in taken}
    while wanted in known:
        wanted = "_" + wanted
    return wanted


def check_names(schema: pa.Schema) -> None:
    """Raise InvalidInput for two columns of a source that have one name (case-insensitive)."""
    seen: set[str] = set()
    for name in schema.names:
        if name.lower() in seen:
            raise InvalidInput(
                f"the source has two columns named {dotted((name,))} (case-insensitive): leave one out"
            )
        seen.add(name.lower())


@dataclass(frozen=True, slots=True)
class Source:
    """A source that is loaded. `columns` are those that are there, `ordinal` names the one with the rows' numbers."""

    columns: pa.Schema
    ordinal: str
    rows: int


def load(engine: SqlEngine, source: PlainStream, needed: Iterable[str]) -> Source:
    """Read the source into the engine's table `source`."""
    wanted = set(needed)
    places = [place for place, name in enumerate(source.schema.names) if name in wanted]
    reader = source.reader(places)
    ordinal = own_name("_ordinal", source.schema.names)
    stored = pa.schema(
        [*(each.with_type(carried_type(each.type)) for each in reader.schema), pa.field(ordinal, pa.int64())]
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
            yield pa.RecordBatch.from_arrays([*arrays, ordinals], schema=stored)

    engine.keep(SOURCE, stored, numbered())
    return Source(reader.schema, ordinal, count)


@dataclass(frozen=True, slots=True)
class Key:
    """A column of the table that is equal, in rows that match, to what an expression is for rows of the source."""

    column: Field
    value: SqlExpression


@dataclass(frozen=True, slots=True)
class Matching:
    """When a row of the table and one of the source match. `keys` have to be equal for it, among other things."""

    condition: SqlExpression
    keys: Sequence[Key]


def matching(engine: SqlEngine, on: str | Sequence[str], schema: Schema, source: pa.Schema) -> Matching:
    """Return what `on` says: names of columns that are in both, or an expression with `target.` and `source.`."""
    if isinstance(on, str) and schema.get((on,)) is None:
        return _of_text(parsed(engine, on, Scope(target=schema, source=source), is_condition=True), schema)
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
    return Matching(condition, keys)


def _of_text(condition: SqlExpression, schema: Schema) -> Matching:
    keys = []
    for pair in condition.equal:
        for one, other in (pair, pair[::-1]):
            if one.column is not None and one.column[0] == TARGET and other.source and not other.target:
                keys.append(Key(schema.find((one.column[1],), case_sensitive=True), other))
    return Matching(condition, keys)


def _key(field: Field, source: pa.Schema, name: str) -> Key:
    there = source_column(source, name)
    refused = not_computable(field.type)
    if refused is not None:
        raise Unsupported(
            f"rows cannot be matched by the column {dotted((field.name,))} of type {field.type}, as {refused} is not "
            "compared here as in Spark: match them by other columns, or run MERGE in Spark"
        )
    if _kind_of(field) is None:
        raise Unsupported(
            f"rows cannot be matched by the column {dotted((field.name,))} of type {field.type}: match them by columns "
            "of simple types, or run MERGE in Spark"
        )
    if not _is_alike(field, source.field(there).type):
        raise InvalidInput(
            f"rows cannot be matched by {dotted((field.name,))}, which is {field.type} in the table and "
            f"{source.field(there).type} in the source: cast the source's column"
        )
    return Key(field, column_expression(SOURCE, there))


def _is_alike(field: Field, found: pa.DataType) -> bool:
    """Return whether values of both types are compared as what they are, and not as what they become by a cast."""
    # NULL is equal to nothing.
    return pa.types.is_null(found) or _kind_of(field) == _kind(found)


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
    """What the keys of a source say of the rows of the table that match: conditions that all of these satisfy."""

    def __init__(self, engine: SqlEngine, keys: Sequence[Key], source: Source) -> None:
        self._engine = engine
        self._rows = source.rows
        self._keys = [key for key in keys if _is_alike(key.column, _type_of(engine, key.value, source))]

    def within(self) -> Predicate | None:
        """Return the range of each key; None where any row may match."""
        return self._all(lambda key: f"SELECT unnest([min({key.value.sql}), max({key.value.sql})])", _between)

    def among(self, rows_max: int) -> Predicate | None:
        """Return the values of each key; None where any row may match, or the source has too many rows."""
        if self._rows > rows_max:
            return None
        return self._all(lambda key: f"SELECT DISTINCT {key.value.sql}", _one_of)

    def _all(
        self, select: Callable[[Key], str], of: Callable[[Column, Sequence[Literal]], Predicate]
    ) -> Predicate | None:
        found = []
        for key in self._keys:
            column = self._engine.table(f"{select(key)} AS key FROM {SOURCE}").column(0)
            try:
                values = [literal(each) for each in column.drop_null().to_pylist()]
            except (ValueError, OverflowError):
                # Python has no dates and times after the year 9999.
                continue
            if not values:
                return ALWAYS_FALSE
            found.append(of(Column((key.column.name,)), values))
        return reduce(and_, found) if found else None


def _between(column: Column, values: Sequence[Literal]) -> Predicate:
    low, high = values
    return Predicate(">=", (column, low)) & Predicate("<=", (column, high))


def _one_of(column: Column, values: Sequence[Literal]) -> Predicate:
    return Predicate("IN", (column, *values))


def _type_of(engine: SqlEngine, value: SqlExpression, source: Source) -> pa.DataType:
    if value.column is not None:
        return source.columns.field(value.column[1]).type
    return engine.schema_of(f"SELECT {value.sql} AS key FROM {SOURCE}").field(0).type


def check_unique(engine: SqlEngine, keys: Sequence[Key]) -> None:
    """Raise InvalidInput where two rows of the source have the same keys."""
    sql = ", ".join(key.value.sql for key in keys)
    known = " AND ".join(f"{key.value.sql} IS NOT NULL" for key in keys)
    found = engine.table(f"SELECT {sql} FROM {SOURCE} WHERE {known} GROUP BY ALL HAVING count(*) > 1 LIMIT 1")
    if found.num_rows:
        values = [str(each[0]) for each in found.to_pydict().values()]
        raise InvalidInput(
            f"the source has several rows with the key ({', '.join(values)}): leave one of them"
        )
