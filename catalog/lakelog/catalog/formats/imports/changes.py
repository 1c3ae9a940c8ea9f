"""Versions of a source as events of a table: columns, partitionings, and entries of files with ids of rows.

Rule: ids are the source's; physical names, which only files of lakelog have, are the table's own and stay. It must not
know the format of a source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from lakelog.catalog.core.files import DataFile, Deletes, inline_bytes
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
    is_iceberg_promotion,
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
from lakelog.catalog.formats.imports.source import Source, SourceVersion
from lakelog.log import WriteRef
from lakelog.log.errors import Unsupported

if TYPE_CHECKING:
    from pyroaring import BitMap

_ROW_ID_LIMIT = 1 << 62
"""Ids of a source from here on are not believed: none would be left for other rows."""

IMPORTED = "imported"
"""The tag that has exactly the files and rows that the source had when it was imported last."""


def columns_of(version: SourceVersion, known: Schema | None) -> Schema:
    """Return the columns of a version as the table's, which had those of `known` before.

    Unsupported for a type that files of the older one cannot be read as; ColumnExists and InvalidInput for names that
    lakelog does not take.
    """
    check_fields(version.schema.fields)
    refuse_names_of_spark(set(version.schema.names) - set(() if known is None else known.names))
    older = {} if known is None else {field.id: (path, field) for path, field in known.walk()}
    fields = tuple(_column(field, older) for field in version.schema.fields)
    last_id = max(version.schema.last_id, 0 if known is None else known.last_id)
    return Schema(fields=fields, last_id=last_id)


def _column(field: Field, older: Mapping[int, tuple[tuple[str, ...], Field]]) -> Field:
    made = msgspec.structs.replace(
        field, physical=physical_name(field.name, field.id), type=_type(field.type, older)
    )
    if field.id not in older:
        # Rows that are here already have no value of a new column, except for its default.
        has_value = field.default is not None and field.default.exists is not None
        return msgspec.structs.replace(made, nullable=True) if older and not has_value else made
    path, before = older[field.id]
    # What the source has demanded since is known of its own rows only.
    made = msgspec.structs.replace(made, nullable=field.nullable or before.nullable)
    widened = before.widened
    if isinstance(before.type, AtomicType) or isinstance(field.type, AtomicType):
        old, new = before.type, field.type
        if not isinstance(old, AtomicType) or not isinstance(new, AtomicType) or not is_widening(old, new):
            raise Unsupported(
                f"the source changed the type of the column {dotted(path)} from {old} to {new}, which lakelog cannot "
                "read older files as: import its newest version alone, with versions=1"
            )
        if not is_iceberg_promotion(old, new):
            widened = tuple(dict.fromkeys((*widened, old.name)))
    return msgspec.structs.replace(made, physical=before.physical, widened=widened)


def _type(type: Type, older: Mapping[int, tuple[tuple[str, ...], Field]]) -> Type:
    below = children(type)
    return with_children(type, tuple(_column(field, older) for field in below)) if below else type


def specs_of(version: SourceVersion, schema: Schema) -> list[PartitionSpec]:
    """Return all partitionings of a version, that of new files last."""
    specs = {spec.id: with_schema(spec, schema) for spec in (*version.specs, version.spec)}
    last = specs.pop(version.spec.id)
    return [*specs.values(), last]


def definition_events(version: SourceVersion, metadata: Metadata) -> list[TableEvent]:
    """Return what changes columns and partitionings from those of the table to those of the version."""
    events: list[TableEvent] = []
    schema = columns_of(version, metadata.schema)
    if schema != metadata.schema:
        events.append(SchemaChanged(schema=schema))
    known = {spec.id: with_schema(spec, schema) for spec in metadata.specs}
    last = metadata.spec.id
    for spec in specs_of(version, schema):
        if known.get(spec.id) != spec or (spec.id == version.spec.id and last != spec.id):
            events.append(PartitioningChanged(spec=spec))
            last = spec.id
    return events


def imported_event(
    source: Source,
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
            gone=dict(gone) if gone else msgspec.UNSET,
        )
    )


def tag_event(ref: str) -> RefSet:
    """Return the event that makes the tag, where the table has exactly the source's files."""
    return RefSet(operation="set tag or branch", name=IMPORTED, kind=TAG, id=ref, of="main")


# Files


def with_rows(files: Iterable[DataFile]) -> Iterator[DataFile]:
    """Yield the files that have a live row: others are not in a table."""
    return (file for file in files if file.rows)


def vector_of(deletes: Deletes | None) -> BitMap:
    """Return the rows that a source says are deleted."""
    from pyroaring import BitMap

    if deletes is None:
        return BitMap()
    blob = inline_bytes(deletes)
    assert blob is not None, "a source gives vectors themselves"
    return BitMap.deserialize(blob)


def stored(tracked: TrackedLog[TableState], write: WriteRef, files: Sequence[DataFile]) -> list[DataFile]:
    """Return entries of a source as those of a write, once their vectors can be read. Costs at most one PUT."""
    vectors = {file.path: vector_of(file.deletes) for file in files if file.deletes is not None}
    deletes = write_vectors(tracked.store, tracked.prefix, write, vectors) if vectors else {}
    return [msgspec.structs.replace(file, deletes=deletes.get(file.path)) for file in stored_by(write, files)]


def stored_by(write: WriteRef, files: Iterable[DataFile]) -> list[DataFile]:
    """Return entries as those of a write, whatever their source says of row ids' versions."""
    return [msgspec.structs.replace(file, write_id=write.id, version=None) for file in files]


def numbered(files: Sequence[DataFile], next_row: int) -> list[DataFile]:
    """Return new files with ids for their rows: the source's own, where the table has given none of them yet."""
    own = sorted(
        (file for file in files if file.first_row is not None and file.first_row >= next_row),
        key=lambda file: file.first_row or 0,
    )
    kept: dict[str, int] = {}
    end = next_row
    for file in own:
        assert file.first_row is not None
        if end <= file.first_row < _ROW_ID_LIMIT:
            kept[file.path] = file.first_row
            end = file.first_row + file.physical_rows
    given = []
    for file in files:
        first_row = kept.get(file.path)
        if first_row is None:
            first_row, end = end, end + file.physical_rows
        given.append(msgspec.structs.replace(file, first_row=first_row))
    return given


def is_same_object(one: DataFile, other: DataFile) -> bool:
    """Return whether two entries of one path are of the same bytes, as far as it is known."""
    return one.size_bytes == other.size_bytes and (
        one.footer_crc is None or other.footer_crc is None or one.footer_crc == other.footer_crc
    )
