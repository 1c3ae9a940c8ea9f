"""What a table was at the versions that can be read: its schemas, its files, and what its commits say.

All is from one walk over the commits. Those of transactions that were aborted, or are undecided, have no effect, but
their objects stay: what they would have added has bounds, too.
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
from lakelog.catalog.keeping.maintenance import first_readable
from lakelog.log import Commit
from lakelog.log.leftovers import last_base_from

_NOTHING = Metadata(
    schema=Schema(fields=(), last_id=0), specs=(PartitionSpec(),), sort_order=SortOrder(), properties={}
)

TABLES_MAX = 64
"""A table of one entry takes as much memory as one of hundreds: those of so many commits that are alike become one."""


@dataclass(frozen=True, slots=True)
class History:
    """Of the versions that can be read, from `first` on: `schemas`, each with the version that it ended with, the
    present one last; `past`, the entries of files; `undone`, those of versions that have no effect; `ranks`, former
    boundaries of clusterings; `quoting`: a statement quotes a value, or a definition does that there is no more."""

    schemas: list[tuple[Schema, int | None]]
    past: list[pa.Table]
    undone: list[tuple[int, pa.Table]]
    ranks: list[tuple[Schema, Ranks]]
    first: int
    quoting: bool


def history_of(head: TableHead, values: Sequence[str]) -> History:
    """Read all versions that can be read. Costs a GET for each."""
    tracked, log = head.tracked, head.tracked.log
    base = last_base_from(log, head.view)
    first = min(first_readable(base), head.version)
    # A base whose commit is still there was not cleaned up after.
    begin = log.entry_at(first)
    unclean = base is not None and isinstance(begin, Commit)
    quoting = bool(values) and (unclean or isinstance(begin, Commit) and has_quoting_statement(begin, values))
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
    for each in files_of_commits(tracked, first + 1, head.version):
        without_effect.discard(each.commit.version)
        quoting = quoting or has_quoting_statement(each.commit, values)
        for event in each.events:
            former.note_event(event, schema)
            if isinstance(event, FileChange):
                added = each.added(event)
                if len(new) == TABLES_MAX or (new and new[0].schema != added.schema):
                    past.append(joined(new))
                    new = []
                new.append(added)
            after = _schema_after(event)
            if after is not None and after != schema:
                schemas.append((schema, each.commit.version))
                schema = after
    schemas.append((head.whole.schema, None))
    intents = list(intents_at(head, [*sorted(without_effect), head.version + 1]))
    for intent in intents:
        quoting = quoting or has_quoting_statement(intent, values)
        for event in table_events(intent):
            former.note_event(event, schema_at(schemas, intent.version))
    if former.quotes:
        # What the present ones quote is for their owner to change first.
        quoting = quoting or not any(
            any(definitions_quoting(state.current, values)) for state in head.state.kept()
        )
    return History(
        schemas=schemas,
        past=[each for each in (*past, *new) if each.num_rows],
        undone=[
            (intent.version, files)
            for intent in intents
            for files in files_of_intent(head, intent, schema_at(schemas, intent.version))
        ],
        ranks=former.ranks,
        first=first,
        quoting=quoting,
    )


def schema_at(schemas: Sequence[tuple[Schema, int | None]], version: int) -> Schema:
    """Return the schema that a version has, or was prepared for, by `History.schemas`."""
    return next(schema for schema, until in schemas if until is None or version < until)


def intents_at(head: TableHead, versions: Sequence[int]) -> Iterator[Commit]:
    """Yield those of the versions that are of transactions across logs."""
    log = head.tracked.log
    for version, data in zip(versions, log.replay.get_versions(versions), strict=True):
        entry = None if data is None else log.replay.entry(version, data)
        if isinstance(entry, Commit) and entry.intent is not None:
            yield entry


def files_of_intent(head: TableHead, intent: Commit, schema: Schema) -> Iterator[pa.Table]:
    """Yield what a transaction across logs, prepared for that schema, would add to a table: with its bounds, or without
    any where it would change the schema, so that no name of a column says what they are of."""
    blobs = head.tracked.log.replay.sidecars([intent])[intent.version] or []
    files = CommitFiles(intent, tuple(table_events(intent)), blobs)
    is_other = any(_schema_after(event) is not None for event in files.events)
    for event in files.events:
        if isinstance(event, FileChange):
            inline = files_to_arrow(with_version(event.added, intent.version), schema, ())
            added = inline if event.added_sidecar is None else files.added(event)
            yield added.select(BASE_SCHEMA.names) if is_other else added


@dataclass(slots=True)
class _Former:
    """What definitions at any of the versions had: whether one quotes a value, and boundaries of clusterings."""

    values: Sequence[str]
    quotes: bool = False
    ranks: list[tuple[Schema, Ranks]] = field(default_factory=list)

    def note(self, metadata: Metadata) -> None:
        self.quotes = self.quotes or any(definitions_quoting(metadata, self.values))
        if metadata.ranks is not None and (metadata.schema, metadata.ranks) not in self.ranks[-1:]:
            self.ranks.append((metadata.schema, metadata.ranks))

    def note_event(self, event: TableEvent, schema: Schema) -> None:
        """Note what an event says of a definition: all of it, or a part, so that all else is empty."""
        metadata = getattr(event, "metadata", None)
        if isinstance(metadata, Metadata):
            self.note(metadata)
        match event:
            case SchemaChanged():
                self.note(msgspec.structs.replace(_NOTHING, schema=event.schema))
            case TableReplaced():
                said = {"schema": event.schema, "properties": event.properties, "comment": event.comment}
                self.note(msgspec.structs.replace(_NOTHING, **said))
            case TableAltered():
                self.note(msgspec.structs.replace(_NOTHING, properties=event.set))
            case ConstraintAdded():
                self.note(msgspec.structs.replace(_NOTHING, constraints=(event.constraint,)))
            case ClusteringChanged():
                self.note(msgspec.structs.replace(_NOTHING, schema=schema, ranks=event.ranks))
            case _:
                return


def _schema_after(event: TableEvent) -> Schema | None:
    """Return the schema that an event gives the table; None where it stays."""
    match event:
        case SchemaChanged() | TableReplaced():
            return event.schema
        case RolledBack():
            return None if event.metadata is None else event.metadata.schema
        case _:
            return None
