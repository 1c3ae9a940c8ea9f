"""Columns that were dropped before the oldest readable version, and whose values are still in live files.

No version says what they were called. Their names in files begin with their first names, so a condition is
read by these. For columns that it does not fit, only the names in files are known.
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
    Field,
    Predicate,
    Schema,
    StructType,
    paths_in,
    physical_name,
    type_from_arrow,
)
from lakelog.log.errors import LakelogError, NotFound


def may_be_lost(schemas: Iterable[Schema], last_id: int) -> bool:
    """Return whether a column id was given that none of the schemas has."""
    ids = {field.id for schema in schemas for _, field in schema.walk()}
    return any(id not in ids for id in range(1, last_id + 1))


@dataclass(frozen=True, slots=True)
class LostColumn:
    """A column, or a struct field, of files. `above` are its parent fields, by their names in files."""

    field: Field
    above: tuple[str, ...] = ()


def lost_columns(
    head: TableHead, schemas: Iterable[Schema], entries: Iterable[pa.Table]
) -> dict[str, LostColumn]:
    """Return the columns of files that none of the schemas has, by their names in files.

    Reads each file's footer.
    """
    physical_names = {field.physical for schema in schemas for _, field in schema.walk()}
    columns: dict[str, LostColumn] = {}
    met: set[str] = set()
    for files in entries:
        names = files[NAMES].to_pylist() if NAMES in files.column_names else [None] * files.num_rows
        for path, own_names in zip(files["path"].to_pylist(), names, strict=True):
            if path in met or own_names is not None:
                continue  # another writer's file, whose names are in the log
            met.add(path)
            for above, field in _all_of(_columns_of(head, path), ()):
                if (
                    field.name in physical_names
                    or field.name in columns
                    or (above and above[-1] not in physical_names)
                ):
                    continue
                column = _as_column(field)
                if column is not None:
                    columns[field.name] = LostColumn(column, above)
    return columns


def columns_of(schemas: Iterable[Schema]) -> dict[str, LostColumn]:
    """Return the columns of schemas, and their structs' fields, by their names in files."""
    columns: dict[str, LostColumn] = {}

    def note(fields: Iterable[Field], above: tuple[str, ...]) -> None:
        for field in fields:
            columns.setdefault(field.physical, LostColumn(field, above))
            if isinstance(field.type, StructType):
                note(field.type.fields, (*above, field.physical))

    for schema in schemas:
        note(schema.fields, ())
    return columns


def _all_of(fields: Iterable[pa.Field], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], pa.Field]]:
    """Yield columns and the fields in them, each with the names of its parents."""
    for field in fields:
        yield above, field
        type = field.type
        while pa.types.is_list(type) or pa.types.is_map(type):
            type = type.value_type if pa.types.is_list(type) else type.item_type
        # Users choose the names in a variant's parts.
        if pa.types.is_struct(type) and type.get_field_index("metadata") < 0:
            yield from _all_of((type.field(place) for place in range(type.num_fields)), (*above, field.name))


def _columns_of(head: TableHead, path: str) -> pa.Schema:
    table_log = head.tracked
    store, key = table_log.store, f"{table_log.prefix}/{path}" if table_log.prefix else path
    if is_elsewhere(path) and table_log.log.replay.open_url is not None:
        store, key = table_log.log.replay.open_url(path)
    try:
        with store.open_input(key) as source:
            return pq.read_schema(source)
    except (NotFound, pa.ArrowException):
        return pa.schema([])


def _as_column(field: pa.Field) -> Field | None:
    stem, _, id = field.name.rpartition("_")
    if not stem or not id.isdecimal():
        return None  # not a column of the table, but ids and versions of rows
    try:
        return Field(
            id=int(id), name=stem, physical=field.name, type=type_from_arrow(field.type, (field.name,))
        )
    except LakelogError:
        return None


def with_lost(predicate: Predicate, schema: Schema, columns: dict[str, LostColumn]) -> dict[str, Schema]:
    """Return the schema with each lost column that may be a column of the condition, by its name in files.

    The lost column replaces a column of the same name, or is added.
    """
    schemas = {}
    condition_paths = {tuple(part.lower() for part in path): path for path in paths_in(predicate)}
    for physical, column in columns.items():
        if not isinstance(column.field.type, AtomicType):
            continue
        for path in condition_paths.values():
            if physical_name(path[-1], column.field.id) != physical or len(path) != len(column.above) + 1:
                continue
            lost_field = msgspec.structs.replace(column.field, name=path[-1])
            fields = _with(schema.fields, column.above, lost_field)
            if fields is not None:
                schemas[physical] = Schema(fields=fields, last_id=schema.last_id)
    return schemas


def _with(fields: tuple[Field, ...], above: Sequence[str], lost: Field) -> tuple[Field, ...] | None:
    """Return the fields with another field below the parents of these names in files.

    None if they have no such struct.
    """
    if not above:
        return (*(field for field in fields if field.name.lower() != lost.name.lower()), lost)
    new_fields = []
    for field in fields:
        if field.physical == above[0]:
            if not isinstance(field.type, StructType):
                return None
            inner = _with(field.type.fields, above[1:], lost)
            if inner is None:
                return None
            field = msgspec.structs.replace(field, type=StructType(inner))
        new_fields.append(field)
    return tuple(new_fields) if tuple(new_fields) != fields else None


def names_in(predicate: Predicate) -> list[str]:
    """Return the columns that a condition names."""
    return [path[0] for path in paths_in(predicate)]
