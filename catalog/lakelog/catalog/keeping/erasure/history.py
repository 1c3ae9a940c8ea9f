"""What a table was at the versions that can be read: its schemas, its files, and what its commits say.

All is from one walk over the commits. Those of transactions that were aborted, or are undecided, have no effect, but
their objects stay: what they would have added has bounds, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakelog.catalog.core.files import files_to_arrow, joined, with_version
from lakelog.catalog.core.logs import CommitFiles, TableHead, files_of_commits
from lakelog.catalog.core.schema import Schema
from lakelog.catalog.core.state import (
    FileChange,
    RolledBack,
    SchemaChanged,
    TableEvent,
    TableReplaced,
    table_events,
)
from lakelog.catalog.keeping.erasure.texts import has_quoting_statement
from lakelog.catalog.keeping.maintenance import first_readable
from lakelog.log import Commit
from lakelog.log.leftovers import last_base_from

TABLES_MAX = 64
"""A table of one entry takes as much memory as one of hundreds: those of so many commits that are alike become one."""


@dataclass(frozen=True, slots=True)
class History:
    """Of the versions that can be read, from `first` on: `schemas`, each with the version that it ended with, the
    present one last; `past`, the entries of files; `undone`, those of versions that have no effect; `quoting`: a
    statement quotes a value."""

    schemas: list[tuple[Schema, int | None]]
    past: list[pa.Table]
    undone: list[tuple[int, pa.Table]]
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
    without_effect = {*range(first + 1, head.version + 1)}
    for each in files_of_commits(tracked, first + 1, head.version):
        without_effect.discard(each.commit.version)
        quoting = quoting or has_quoting_statement(each.commit, values)
        for event in each.events:
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
    intents = list(intents_at(head, [*sorted(without_effect), head.version + 1]))
    return History(
        schemas=[*schemas, (head.whole.schema, None)],
        past=[each for each in (*past, *new) if each.num_rows],
        undone=[(intent.version, files) for intent in intents for files in files_of_intent(head, intent)],
        first=first,
        quoting=quoting or any(has_quoting_statement(each, values) for each in intents),
    )


def intents_at(head: TableHead, versions: Sequence[int]) -> Iterator[Commit]:
    """Yield those of the versions that are of transactions across logs."""
    log = head.tracked.log
    for version, data in zip(versions, log.replay.get_versions(versions), strict=True):
        entry = None if data is None else log.replay.entry(version, data)
        if isinstance(entry, Commit) and entry.intent is not None:
            yield entry


def files_of_intent(head: TableHead, intent: Commit) -> Iterator[pa.Table]:
    """Yield what a transaction across logs would add to a table, with its bounds."""
    blobs = head.tracked.log.replay.sidecars([intent])[intent.version] or []
    files = CommitFiles(intent, tuple(table_events(intent)), blobs)
    for event in files.events:
        if isinstance(event, FileChange):
            inline = files_to_arrow(with_version(event.added, intent.version), head.schema, ())
            yield inline if event.added_sidecar is None else files.added(event)


def _schema_after(event: TableEvent) -> Schema | None:
    """Return the schema that an event gives the table; None where it stays."""
    match event:
        case SchemaChanged() | TableReplaced():
            return event.schema
        case RolledBack():
            return None if event.metadata is None else event.metadata.schema
        case _:
            return None
