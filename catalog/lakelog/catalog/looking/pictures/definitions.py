"""The definition of a table at each version: its columns, properties and the like, folded from commits.

Only the commits that changed it are read, and an older state to begin with. It must not know the drawing or comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.core.schema import (
    IDENTITY,
    CheckConstraint,
    Constraint,
    Field,
    Metadata,
    PartitionSpec,
    Schema,
    SortField,
    dotted,
    shown_names,
)
from lakelog.catalog.core.state import TableState, apply, table_events
from lakelog.catalog.looking.pictures.model import ColumnPicture, DefinitionPicture
from lakelog.log import Commit
from lakelog.log.errors import LakelogError
from lakelog.log.secrets import masked, masked_properties

READ_MAX = 500
"""At most so many changes of the definition are read, the newest: each takes a request."""

_WORDS = frozenset(
    {
        *(
            "create",
            "replace",
            "change schema",
            "change partitioning",
            "change sort order",
            "change clustering",
        ),
        *("set properties", "add constraint", "drop constraint", "rollback"),
    }
)
"""The operations that may change a definition."""

_EVENTS = frozenset(
    {
        *("table-created", "table-replaced", "schema-changed", "partitioning-changed", "sort-order-changed"),
        *("clustering-changed", "table-altered", "constraint-added", "constraint-dropped", "rolled-back"),
    }
)
"""The events that change a definition. Other events change files, names or tags, and are not folded here."""


def changes_definition(operations: Iterable[str]) -> bool:
    """Return whether a commit with these operations may change the definition."""
    return not _WORDS.isdisjoint(operations)


def metadata_at(head: TableHead, oldest: int, changed: Sequence[int]) -> dict[int, Metadata]:
    """Return the metadata of `oldest`, the oldest version to show, and of each version that changed it.

    `changed` has versions, the newest first. If some cannot be read, only the newest metadata is returned.
    """
    newest_alone = {head.version: head.metadata}
    versions = sorted({version for version in changed if oldest < version <= head.version})
    if len(versions) > READ_MAX:
        oldest, *versions = versions[-READ_MAX:]
    try:
        first = head.at_version(oldest) if oldest < head.version else head
        commits = head.logs.in_parallel(lambda version: _commit(head, version), versions)
    except (LakelogError, StopIteration):
        return newest_alone  # damage is reported where the log is read
    metadata_by_version = {oldest: first.metadata}
    state = TableState(metadata=first.metadata)
    for commit in commits:
        for stored_event, event in zip(commit.events, table_events(commit), strict=True):
            if stored_event.get("event") in _EVENTS:
                state = apply(state, event, commit.version, ())
        metadata_by_version[commit.version] = state.current
    return metadata_by_version


def _commit(head: TableHead, version: int) -> Commit:
    return next(head.tracked.log.commits(version, version))


def definitions_of(found_metadata: dict[int, Metadata]) -> tuple[DefinitionPicture, ...]:
    """Return the definitions, the oldest first, each with the version in which it begins."""
    definitions = [definition_of(metadata, version) for version, metadata in sorted(found_metadata.items())]
    distinct = definitions[:1]
    for before, after in pairwise(definitions):
        if not _is_same(before, after):
            distinct.append(after)
    return tuple(distinct)


def _is_same(picture: DefinitionPicture, other_picture: DefinitionPicture) -> bool:
    names = (name for name in DefinitionPicture.__struct_fields__ if name != "version")
    return all(getattr(picture, name) == getattr(other_picture, name) for name in names)


def definition_of(metadata: Metadata, version: int) -> DefinitionPicture:
    """Return a table's metadata as texts, without secrets."""
    schema = metadata.schema
    return DefinitionPicture(
        version=version,
        columns=tuple(map(_column, schema.fields)),
        properties=masked_properties(dict(sorted(metadata.properties.items()))),
        partitioning=partitioning_texts(metadata.spec, schema),
        sorting=tuple(_sorting(field, schema) for field in metadata.sort_order.fields),
        clustering=tuple(_path(schema, id) for id in metadata.clustering),
        constraints=tuple(_constraint(constraint, schema) for constraint in metadata.constraints),
        comment=None if metadata.comment is None else masked(metadata.comment),
        provider=metadata.provider,
    )


def partitioning_texts(spec: PartitionSpec, schema: Schema) -> tuple[str, ...]:
    """Return the partitioning of rows: a text for each field, such as `day of at`."""
    names = shown_names(spec, schema)
    return tuple(
        name if field.transform == IDENTITY else f"{field.transform} of {_path(schema, field.source_id)}"
        for name, field in zip(names, spec.fields, strict=True)
    )


def _column(field: Field) -> ColumnPicture:
    default = field.default.current if field.default is not None else None
    return ColumnPicture(
        id=field.id,
        name=field.name,
        type=str(field.type),
        nullable=field.nullable,
        comment=None if field.comment is None else masked(field.comment),
        default=None if default is None else masked(default),
    )


def _sorting(field: SortField, schema: Schema) -> str:
    column = _path(schema, field.source_id)
    column_text = column if field.transform == IDENTITY else f"{field.transform} of {column}"
    return f"{column_text} {field.direction}, nulls {field.nulls}"


def _constraint(constraint: Constraint, schema: Schema) -> str:
    if isinstance(constraint, CheckConstraint):
        return f"{constraint.name}: CHECK ({masked(constraint.sql)})"
    kind = str(constraint.__struct_config__.tag).replace("-", " ").upper()
    return f"{constraint.name}: {kind} ({', '.join(_path(schema, id) for id in constraint.columns)})"


def _path(schema: Schema, id: int) -> str:
    return dotted(schema.path_of(id)) if schema.has_id(id) else f"dropped column {id}"
