"""Columns that were dropped before the oldest version that can be read, and whose values are still in live files.

No version says what they were called. Their names in files begin with their first name, so a condition is read by that;
of those that it does not fit, only the names in files are known.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lakelog.catalog.files import NAMES, is_elsewhere
from lakelog.catalog.logs import TableHead
from lakelog.catalog.schema import (
    AtomicType,
    Column,
    Field,
    Predicate,
    Schema,
    Transformed,
    physical_name,
    type_from_arrow,
)
from lakelog.log.errors import LakelogError, NotFound


def may_be_lost(schemas: Iterable[Schema], last_id: int) -> bool:
    """Return whether an id of a column was given that none of the schemas has."""
    known = {field.id for schema in schemas for _, field in schema.walk()}
    return any(id not in known for id in range(1, last_id + 1))


def lost_columns(head: TableHead, schemas: Iterable[Schema], entries: Iterable[pa.Table]) -> dict[str, Field]:
    """Return the columns of files that none of the schemas has, by their names in files. Reads each file's footer."""
    known = {field.physical for schema in schemas for field in schema.fields}
    found: dict[str, Field] = {}
    met: set[str] = set()
    for files in entries:
        names = files[NAMES].to_pylist() if NAMES in files.column_names else [None] * files.num_rows
        for path, own_names in zip(files["path"].to_pylist(), names, strict=True):
            if path in met or own_names is not None:
                continue  # another writer's, whose names the log says
            met.add(path)
            for field in _columns_of(head, path):
                if field.name not in known and field.name not in found:
                    column = _as_column(field)
                    if column is not None:
                        found[field.name] = column
    return found


def _columns_of(head: TableHead, path: str) -> pa.Schema:
    tracked = head.tracked
    store, key = tracked.store, f"{tracked.prefix}/{path}" if tracked.prefix else path
    if is_elsewhere(path) and tracked.log.replay.open_url is not None:
        store, key = tracked.log.replay.open_url(path)
    try:
        with store.open_input(key) as source:
            return pq.read_schema(source)
    except (NotFound, pa.ArrowException):
        return pa.schema([])


def _as_column(field: pa.Field) -> Field | None:
    stem, _, id = field.name.rpartition("_")
    if not stem or not id.isdecimal():
        return None  # not a column of the table: ids and versions of rows
    try:
        return Field(
            id=int(id), name=stem, physical=field.name, type=type_from_arrow(field.type, (field.name,))
        )
    except LakelogError:
        return None


def with_lost(predicate: Predicate, schema: Schema, columns: dict[str, Field]) -> dict[str, Schema]:
    """Return the schema with each of the columns in the place of the one of the same name, or beside the others, by the
    column's name in files: of those that may have been a column of the condition."""
    found = {}
    named = {name.lower(): name for name in names_in(predicate)}
    for physical, column in columns.items():
        if not isinstance(column.type, AtomicType):
            continue
        name = next((each for each in named.values() if physical_name(each, column.id) == physical), None)
        if name is None:
            continue
        fields = [field for field in schema.fields if field.name.lower() != name.lower()]
        fields.append(msgspec.structs.replace(column, name=name))
        found[physical] = Schema(fields=tuple(fields), last_id=schema.last_id)
    return found


def names_in(predicate: Predicate) -> list[str]:
    """Return the columns that a condition names."""
    found: list[str] = []
    for part in predicate.args:
        if isinstance(part, Predicate):
            found += names_in(part)
        elif isinstance(part, Column):
            found.append(part.path[0])
        elif isinstance(part, Transformed):
            found.append(part.column.path[0])
    return found
