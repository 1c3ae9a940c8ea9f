"""The history of a table at its readable versions: schemas, files, and the contents of its commits.

All of it comes from a single walk over the commits. Commits of transactions that were aborted, or are
undecided, have no effect. But their objects stay, so the files that they would have added have bounds too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa

from lakelog.catalog.core.files import BASE_SCHEMA, files_to_arrow, joined, with_version
from lakelog.catalog.core.logs import CommitFiles, TableHead, files_of_commits
from lakelog.catalog.core.schema import Metadata, PartitionSpec, Ranks, Schema, SortOrder
from lakelog.catalog.core.state import (
    ClusteringChanged,
    ConstraintAdded,
    FileChange,
    RolledBack,
    SchemaChanged,
    TableAltered,
    TableEvent,
    TableReplaced,
    table_events,
)
from lakelog.catalog.keeping.erasure.texts import definitions_quoting, has_quoting_statement
from lakelog.catalog.keeping.maintenance.reachable import first_readable
from lakelog.log import Commit
from lakelog.log.leftovers import last_base_from

_NOTHING = Metadata(
    schema=Schema(fields=(), last_id=0), specs=(PartitionSpec(),), sort_order=SortOrder(), properties={}
)

TABLES_MAX = 64
"""A table of a single entry takes as much memory as a table of hundreds. So many similar tables are joined.
"""


@dataclass(frozen=True, slots=True)
class ReadableHistory:
    """The history of the readable versions, from `first` on.

    `schemas` has each schema with the version that ended it, the present schema last. `past` has the entries
    of files, and `undone` the entries of versions without effect. `ranks` has former boundaries of
    clusterings. `quoting`: a statement or a former definition quotes a value.
    """

    schemas: list[tuple[Schema, int | None]]
    past: list[pa.Table]
    undone: list[tuple[int, pa.Table]]
    ranks: list[tuple[Schema, Ranks]]
    first: int
    quoting: bool


def history_of(head: TableHead, values: Sequence[str]) -> ReadableHistory:
    """Read all readable versions. Makes a GET request for each."""
    table_log, log = head.tracked, head.tracked.log
    base = last_base_from(log, head.view)
    first = min(first_readable(base), head.version)
    # If a base's commit still exists, the cleanup after the base was not completed.
    begin = log.entry_at(first)
    unclean = base is not None and isinstance(begin, Commit)
    has_quote = bool(values) and (
        unclean or isinstance(begin, Commit) and has_quoting_statement(begin, values)
    )
    start = log.view_at(first)
    past = [
        chunk
        for state in start.state.lines()
        for chunk in state.files.chunks(log.read_blobs)
        if chunk.num_rows
    ]
    new: list[pa.Table] = []
    schemas: list[tuple[Schema, int | None]] = []
    schema = start.state.current.schema
    former = _Former(values)
    for state in start.state.kept():
        former.note(state.current)
    without_effect = {*range(first + 1, head.version + 1)}
    for commit_files in files_of_commits(table_log, first + 1, head.version):
        without_effect.discard(commit_files.commit.version)
        has_quote = has_quote or has_quoting_statement(commit_files.commit, values)
        for event in commit_files.events:
            former.note_event(event, schema)
            if isinstance(event, FileChange):
                new_files = commit_files.added(event)
                if len(new) == TABLES_MAX or (new and new[0].schema != new_files.schema):
                    past.append(joined(new))
                    new = []
                new.append(new_files)
            new_schema = _schema_after(event)
            if new_schema is not None and new_schema != schema:
                schemas.append((schema, commit_files.commit.version))
                schema = new_schema
    schemas.append((head.whole.schema, None))
    intents = list(intents_at(head, [*sorted(without_effect), head.version + 1]))
    for intent in intents:
        has_quote = has_quote or has_quoting_statement(intent, values)
        for event in table_events(intent):
            former.note_event(event, schema_at(schemas, intent.version))
    if former.quotes:
        # Values that present definitions quote are for their owner to change first.
        has_quote = has_quote or not any(
            any(definitions_quoting(state.current, values)) for state in head.state.kept()
        )
    return ReadableHistory(
        schemas=schemas,
        past=[commit_files for commit_files in (*past, *new) if commit_files.num_rows],
        undone=[
            (intent.version, files)
            for intent in intents
            for files in files_of_intent(head, intent, schema_at(schemas, intent.version))
        ],
        ranks=former.ranks,
        first=first,
        quoting=has_quote,
    )


def schema_at(schemas: Sequence[tuple[Schema, int | None]], version: int) -> Schema:
    """Return the schema of a version, or the schema that it was prepared for, by `ReadableHistory.schemas`."""
    return next(schema for schema, until in schemas if until is None or version < until)


def intents_at(head: TableHead, versions: Sequence[int]) -> Iterator[Commit]:
    """Yield the commits of these versions that belong to transactions across logs."""
    log = head.tracked.log
    for version, data in zip(versions, log.replay.get_versions(versions), strict=True):
        entry = None if data is None else log.replay.entry(version, data)
        if isinstance(entry, Commit) and entry.intent is not None:
            yield entry


def files_of_intent(head: TableHead, intent: Commit, schema: Schema) -> Iterator[pa.Table]:
    """Yield the files that a transaction across logs, prepared for that schema, would add to a table.

    The files have their bounds, unless the transaction would change the schema. Then no column names say what
    the bounds belong to.
    """
    blobs = head.tracked.log.replay.sidecars([intent])[intent.version] or []
    files = CommitFiles(intent, tuple(table_events(intent)), blobs)
    is_other = any(_schema_after(event) is not None for event in files.events)
    for event in files.events:
        if isinstance(event, FileChange):
            inline = files_to_arrow(with_version(event.added, intent.version), schema, ())
            all_files = inline if event.added_sidecar is None else files.added(event)
            yield all_files.select(BASE_SCHEMA.names) if is_other else all_files


@dataclass(slots=True)
class _Former:
    """The contents of former definitions: whether a definition quotes a value, and boundaries of clusterings."""

    values: Sequence[str]
    quotes: bool = False
    ranks: list[tuple[Schema, Ranks]] = field(default_factory=list)

    def note(self, metadata: Metadata) -> None:
        self.quotes = self.quotes or any(definitions_quoting(metadata, self.values))
        if metadata.ranks is not None and (metadata.schema, metadata.ranks) not in self.ranks[-1:]:
            self.ranks.append((metadata.schema, metadata.ranks))

    def note_event(self, event: TableEvent, schema: Schema) -> None:
        """Record an event's definition, which may be a part with all other members empty."""
        metadata = getattr(event, "metadata", None)
        if isinstance(metadata, Metadata):
            self.note(metadata)
        match event:
            case SchemaChanged():
                self.note(msgspec.structs.replace(_NOTHING, schema=event.schema))
            case TableReplaced():
                members = {"schema": event.schema, "properties": event.properties, "comment": event.comment}
                self.note(msgspec.structs.replace(_NOTHING, **members))
            case TableAltered():
                self.note(msgspec.structs.replace(_NOTHING, properties=event.set))
            case ConstraintAdded():
                self.note(msgspec.structs.replace(_NOTHING, constraints=(event.constraint,)))
            case ClusteringChanged():
                self.note(msgspec.structs.replace(_NOTHING, schema=schema, ranks=event.ranks))
            case _:
                return


def _schema_after(event: TableEvent) -> Schema | None:
    """Return the schema that an event gives the table. None if the schema stays."""
    match event:
        case SchemaChanged() | TableReplaced():
            return event.schema
        case RolledBack():
            return None if event.metadata is None else event.metadata.schema
        case _:
            return None
