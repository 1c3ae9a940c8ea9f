"""Versions of a source as events of a table: columns, partitionings, and entries of files with row ids.

Rule: ids are the source's. Physical names, which only files of lakelog have, are the table's own and stay.
This module must not know the format of a source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from lakelog.catalog.core.files import DataFile, DeletionVector, inline_bytes
from lakelog.catalog.core.logs import TrackedLog, write_vectors
from lakelog.catalog.core.schema import (
    AtomicType,
    Field,
    Metadata,
    PartitionSpec,
    Schema,
    Type,
    check_fields,
    children,
    dotted,
    is_text,
    is_widening,
    physical_name,
    refuse_names_of_spark,
    with_children,
    with_schema,
)
from lakelog.catalog.core.state import (
    TAG,
    ImportedSource,
    PartitioningChanged,
    RefSet,
    SchemaChanged,
    SourceImported,
    TableEvent,
    TableState,
)
from lakelog.catalog.formats.imports.source import ImportSource, SourceVersion
from lakelog.log import WriteRef
from lakelog.log.errors import Unsupported

if TYPE_CHECKING:
    from pyroaring import BitMap

_ROW_ID_LIMIT = 1 << 62
"""Row ids of a source from this id on are refused because they would leave no ids for other rows."""

IMPORTED = "imported"
"""The tag that has exactly the files and rows of the source at its last import."""


def columns_of(version: SourceVersion, known_schema: Schema | None) -> Schema:
    """Return the columns of a version as the table's, whose columns were `known_schema` before.

    Raises Unsupported for a type as which older files cannot be read. Raises ColumnExists or InvalidInput for
    names that lakelog does not accept.
    """
    check_fields(version.schema.fields)
    refuse_names_of_spark(set(version.schema.names) - set(() if known_schema is None else known_schema.names))
    older = {} if known_schema is None else {field.id: (path, field) for path, field in known_schema.walk()}
    fields = tuple(_column(field, older) for field in version.schema.fields)
    last_id = max(version.schema.last_id, 0 if known_schema is None else known_schema.last_id)
    return Schema(fields=fields, last_id=last_id)


def _column(field: Field, older: Mapping[int, tuple[tuple[str, ...], Field]]) -> Field:
    new_field = msgspec.structs.replace(
        field, physical=physical_name(field.name, field.id), type=_type(field.type, older)
    )
    if field.id not in older:
        # Existing rows have no value of a new column, except for its default.
        has_value = field.default is not None and field.default.exists is not None
        return msgspec.structs.replace(new_field, nullable=True) if older and not has_value else new_field
    path, old_field = older[field.id]
    # The source's later demands hold only for its own rows.
    new_field = msgspec.structs.replace(new_field, nullable=field.nullable or old_field.nullable)
    old_types = old_field.widened
    if isinstance(old_field.type, AtomicType) or isinstance(field.type, AtomicType):
        old, new = old_field.type, field.type
        if not isinstance(old, AtomicType) or not isinstance(new, AtomicType) or not is_widening(old, new):
            raise Unsupported(
                f"the source changed the type of the column {dotted(path)} from {old} to {new}, which lakelog cannot "
                "read older files as: import its newest version alone, with versions=1"
            )
        if old != new and not is_text(old):
            old_types = tuple(dict.fromkeys((*old_types, old.name)))
    return msgspec.structs.replace(new_field, physical=old_field.physical, widened=old_types)


def _type(type: Type, older: Mapping[int, tuple[tuple[str, ...], Field]]) -> Type:
    below = children(type)
    return with_children(type, tuple(_column(field, older) for field in below)) if below else type


def specs_of(version: SourceVersion, schema: Schema) -> list[PartitionSpec]:
    """Return all partitionings of a version, the partitioning of new files last."""
    specs = {spec.id: with_schema(spec, schema) for spec in (*version.specs, version.spec)}
    last = specs.pop(version.spec.id)
    return [*specs.values(), last]


def definition_events(version: SourceVersion, metadata: Metadata) -> list[TableEvent]:
    """Return the events that change the table's columns and partitionings to the version's."""
    events: list[TableEvent] = []
    schema = columns_of(version, metadata.schema)
    if schema != metadata.schema:
        events.append(SchemaChanged(schema=schema))
    specs_by_id = {spec.id: with_schema(spec, schema) for spec in metadata.specs}
    last = metadata.spec.id
    for spec in specs_of(version, schema):
        if specs_by_id.get(spec.id) != spec or (spec.id == version.spec.id and last != spec.id):
            events.append(PartitioningChanged(spec=spec))
            last = spec.id
    return events


def imported_event(
    source: ImportSource,
    version: SourceVersion,
    ref: str | None,
    *,
    copies: bool,
    gone: Mapping[str, int | None] | None = None,
) -> SourceImported:
    return SourceImported(
        source=ImportedSource(
            format=source.format,
            url=source.url,
            identity=source.identity,
            snapshot=version.id,
            time_us=version.time_us,
            operation=version.operation,
            ref=ref,
            metadata=source.metadata,
            copies=copies,
            gone=dict(gone or {}),
        )
    )


def tag_event(ref: str) -> RefSet:
    """Return the event that makes the tag, if the table has exactly the source's files."""
    return RefSet(operation="set tag or branch", name=IMPORTED, kind=TAG, id=ref, of="main")


# Files


def with_rows(files: Iterable[DataFile]) -> Iterator[DataFile]:
    """Yield the files that have a live row. A table does not have the others."""
    return (file for file in files if file.rows)


def vector_of(deletes: DeletionVector | None) -> BitMap:
    """Return the rows that are deleted according to a source."""
    from pyroaring import BitMap

    if deletes is None:
        return BitMap()
    blob = inline_bytes(deletes)
    assert blob is not None, "a source gives vectors themselves"
    return BitMap.deserialize(blob)


def stored(tracked: TrackedLog[TableState], write: WriteRef, files: Sequence[DataFile]) -> list[DataFile]:
    """Return entries of a source as entries of a write, after storing their vectors.

    Makes at most 1 PUT request.
    """
    vectors = {file.path: vector_of(file.deletes) for file in files if file.deletes is not None}
    deletes = write_vectors(tracked.store, tracked.prefix, write, vectors) if vectors else {}
    return [msgspec.structs.replace(file, deletes=deletes.get(file.path)) for file in stored_by(write, files)]


def stored_by(write: WriteRef, files: Iterable[DataFile]) -> list[DataFile]:
    """Return entries as entries of a write, without the source's versions of rows."""
    return [msgspec.structs.replace(file, write_id=write.id, version=None) for file in files]


def numbered(files: Sequence[DataFile], next_row: int) -> list[DataFile]:
    """Return new files with row ids. A file keeps the source's ids if the table has given none of them yet."""
    own = sorted(
        (file for file in files if file.first_row is not None and file.first_row >= next_row),
        key=lambda file: file.first_row or 0,
    )
    first_rows: dict[str, int] = {}
    end = next_row
    for file in own:
        assert file.first_row is not None
        if end <= file.first_row < _ROW_ID_LIMIT:
            first_rows[file.path] = file.first_row
            end = file.first_row + file.physical_rows
    new_files = []
    for file in files:
        first_row = first_rows.get(file.path)
        if first_row is None:
            first_row, end = end, end + file.physical_rows
        new_files.append(msgspec.structs.replace(file, first_row=first_row))
    return new_files


def is_same_object(file: DataFile, other_file: DataFile) -> bool:
    """Return whether two entries of a path have the same bytes, as far as that is known."""
    return file.size_bytes == other_file.size_bytes and (
        file.footer_crc is None or other_file.footer_crc is None or file.footer_crc == other_file.footer_crc
    )
