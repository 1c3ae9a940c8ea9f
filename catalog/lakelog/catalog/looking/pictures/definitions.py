"""What a table was at each version: its columns, properties and the like, folded from the commits that changed them.

Only these commits are read, and one older state to begin with. It must not know what draws or compares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.core.schema import (
    IDENTITY,
    Check,
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
from lakelog.catalog.looking.pictures.model import Column, Definition
from lakelog.log import Commit
from lakelog.log.errors import LakelogError
from lakelog.log.secrets import masked, masked_properties

READ_MAX = 500
"""So many changes of the definition are read, the newest: each takes a request."""

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
"""The events that do; all others change files, names or tags, and are not folded here."""


def changes_definition(operations: Iterable[str]) -> bool:
    """Return whether a commit with these operations may change what the table is."""
    return not _WORDS.isdisjoint(operations)


def metadata_at(head: TableHead, oldest: int, changed: Sequence[int]) -> dict[int, Metadata]:
    """Return the metadata from each version on that changed it, and of `oldest`, the oldest version to be shown.

    `changed` are versions, the newest first. Where older ones cannot be read, those after them are returned, down to
    the newest alone.
    """
    known = {head.version: head.metadata}
    versions = sorted({version for version in changed if oldest < version <= head.version})
    if len(versions) > READ_MAX:
        oldest, *versions = versions[-READ_MAX:]
    try:
        first = head.at_version(oldest) if oldest < head.version else head
        commits = head.logs.in_parallel(lambda version: _commit(head, version), versions)
    except (LakelogError, StopIteration):
        return known  # damage is reported where the log is read
    found = {oldest: first.metadata}
    state = TableState(metadata=first.metadata)
    for commit in commits:
        for stored, event in zip(commit.events, table_events(commit), strict=True):
            if stored.get("event") in _EVENTS:
                state = apply(state, event, commit.version, ())
        found[commit.version] = state.current
    return found


def _commit(head: TableHead, version: int) -> Commit:
    return next(head.tracked.log.commits(version, version))


def definitions_of(found: dict[int, Metadata]) -> tuple[Definition, ...]:
    """Return the definitions, the oldest first, each of the version that it begins with."""
    each = [definition_of(metadata, version) for version, metadata in sorted(found.items())]
    kept = each[:1]
    for before, after in pairwise(each):
        if not _is_same(before, after):
            kept.append(after)
    return tuple(kept)


def _is_same(one: Definition, other: Definition) -> bool:
    names = (name for name in Definition.__struct_fields__ if name != "version")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def definition_of(metadata: Metadata, version: int) -> Definition:
    """Return a table's metadata as texts, without secrets."""
    schema = metadata.schema
    return Definition(
        version=version,
        columns=tuple(map(_column, schema.fields)),
        properties=masked_properties(dict(sorted(metadata.properties.items()))),
        partitioning=partitioning_texts(metadata.spec, schema),
        sorting=tuple(_sorting(field, schema) for field in metadata.sort_order.fields),
        clustering=tuple(_path(schema, id) for id in metadata.clustering),
        constraints=tuple(_constraint(each, schema) for each in metadata.constraints),
        comment=None if metadata.comment is None else masked(metadata.comment),
        provider=metadata.provider,
    )


def partitioning_texts(spec: PartitionSpec, schema: Schema) -> tuple[str, ...]:
    """Return how rows are partitioned: a text for each field, such as `day of at`."""
    names = shown_names(spec, schema)
    return tuple(
        name if field.transform == IDENTITY else f"{field.transform} of {_path(schema, field.source_id)}"
        for name, field in zip(names, spec.fields, strict=True)
    )


def _column(field: Field) -> Column:
    default = field.default.current if field.default is not None else None
    return Column(
        id=field.id,
        name=field.name,
        type=str(field.type),
        nullable=field.nullable,
        comment=None if field.comment is None else masked(field.comment),
        default=None if default is None else masked(default),
    )


def _sorting(field: SortField, schema: Schema) -> str:
    column = _path(schema, field.source_id)
    of = column if field.transform == IDENTITY else f"{field.transform} of {column}"
    return f"{of} {field.direction}, nulls {field.nulls}"


def _constraint(constraint: Constraint, schema: Schema) -> str:
    if isinstance(constraint, Check):
        return f"{constraint.name}: CHECK ({masked(constraint.sql)})"
    what = str(constraint.__struct_config__.tag).replace("-", " ").upper()
    return f"{constraint.name}: {what} ({', '.join(_path(schema, id) for id in constraint.columns)})"


def _path(schema: Schema, id: int) -> str:
    return dotted(schema.path_of(id)) if schema.has_id(id) else f"dropped column {id}"
