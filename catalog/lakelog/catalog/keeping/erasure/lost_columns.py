"""Columns that were dropped before the oldest version that can be read, and whose values are still in live files.

No version says what they were called. Their names in files begin with their first name, so a condition is read by that;
of those that it does not fit, only the names in files are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lakelog.catalog.core.files import NAMES, is_elsewhere
from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.core.schema import (
    AtomicType,
    Column,
    Field,
    Predicate,
    Schema,
    StructType,
    Transformed,
    physical_name,
    type_from_arrow,
)
from lakelog.log.errors import LakelogError, NotFound


def may_be_lost(schemas: Iterable[Schema], last_id: int) -> bool:
    """Return whether an id of a column was given that none of the schemas has."""
    known = {field.id for schema in schemas for _, field in schema.walk()}
    return any(id not in known for id in range(1, last_id + 1))


@dataclass(frozen=True, slots=True)
class LostColumn:
    """A column, or a field of a struct, of files. `above` are the fields that it is in, by their names in files."""

    field: Field
    above: tuple[str, ...] = ()


def lost_columns(
    head: TableHead, schemas: Iterable[Schema], entries: Iterable[pa.Table]
) -> dict[str, LostColumn]:
    """Return the columns of files that none of the schemas has, by their names in files. Reads each file's footer."""
    known = {field.physical for schema in schemas for _, field in schema.walk()}
    found: dict[str, LostColumn] = {}
    met: set[str] = set()
    for files in entries:
        names = files[NAMES].to_pylist() if NAMES in files.column_names else [None] * files.num_rows
        for path, own_names in zip(files["path"].to_pylist(), names, strict=True):
            if path in met or own_names is not None:
                continue  # another writer's, whose names the log says
            met.add(path)
            for above, field in _all_of(_columns_of(head, path), ()):
                if field.name in known or field.name in found or (above and above[-1] not in known):
                    continue
                column = _as_column(field)
                if column is not None:
                    found[field.name] = LostColumn(column, above)
    return found


def columns_of(schemas: Iterable[Schema]) -> dict[str, LostColumn]:
    """Return the columns of schemas, and the fields of their structs, by their names in files."""
    found: dict[str, LostColumn] = {}

    def note(fields: Iterable[Field], above: tuple[str, ...]) -> None:
        for field in fields:
            found.setdefault(field.physical, LostColumn(field, above))
            if isinstance(field.type, StructType):
                note(field.type.fields, (*above, field.physical))

    for schema in schemas:
        note(schema.fields, ())
    return found


def _all_of(fields: Iterable[pa.Field], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], pa.Field]]:
    """Yield columns and the fields in them, each with the names of those that it is in."""
    for field in fields:
        yield above, field
        type = field.type
        while pa.types.is_list(type) or pa.types.is_map(type):
            type = type.value_type if pa.types.is_list(type) else type.item_type
        # What a variant consists of has names of its users' making.
        if pa.types.is_struct(type) and type.get_field_index("metadata") < 0:
            yield from _all_of((type.field(place) for place in range(type.num_fields)), (*above, field.name))


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


def with_lost(predicate: Predicate, schema: Schema, columns: dict[str, LostColumn]) -> dict[str, Schema]:
    """Return the schema with each of the columns in the place of the one of the same name, or beside the others, by the
    column's name in files: of those that may have been a column of the condition."""
    found = {}
    named = {tuple(part.lower() for part in path): path for path in paths_in(predicate)}
    for physical, column in columns.items():
        if not isinstance(column.field.type, AtomicType):
            continue
        for path in named.values():
            if physical_name(path[-1], column.field.id) != physical or len(path) != len(column.above) + 1:
                continue
            lost = msgspec.structs.replace(column.field, name=path[-1])
            fields = _with(schema.fields, column.above, lost)
            if fields is not None:
                found[physical] = Schema(fields=fields, last_id=schema.last_id)
    return found


def _with(fields: tuple[Field, ...], above: Sequence[str], lost: Field) -> tuple[Field, ...] | None:
    """Return the fields with one more below those of these names in files; None where that is in no struct."""
    if not above:
        return (*(field for field in fields if field.name.lower() != lost.name.lower()), lost)
    changed = []
    for field in fields:
        if field.physical == above[0]:
            if not isinstance(field.type, StructType):
                return None
            inner = _with(field.type.fields, above[1:], lost)
            if inner is None:
                return None
            field = msgspec.structs.replace(field, type=StructType(inner))
        changed.append(field)
    return tuple(changed) if tuple(changed) != fields else None


def names_in(predicate: Predicate) -> list[str]:
    """Return the columns that a condition names."""
    return [path[0] for path in paths_in(predicate)]


def paths_in(predicate: Predicate) -> list[tuple[str, ...]]:
    """Return the columns, and fields of columns, that a condition names."""
    found: list[tuple[str, ...]] = []
    for part in predicate.args:
        if isinstance(part, Predicate):
            found += paths_in(part)
        elif isinstance(part, Column):
            found.append(tuple(part.path))
        elif isinstance(part, Transformed):
            found.append(tuple(part.column.path))
    return found
