"""Dropped tables that had a name, whatever they were called when they were dropped, and wherever they were moved.

The log of the namespace says which tables the name has ever led to, as far as its versions can be read. Dropped tables
are on the list of the namespace in which they were last, which may be another one, or a dropped one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from lakelog.catalog.core.logs import TrackedLog
from lakelog.catalog.core.state import (
    RELATION,
    EntryLinked,
    EntryRenamed,
    EntryUnlinked,
    NamespaceState,
    namespace_events,
)
from lakelog.catalog.keeping.erasure.namespaces import Namespace
from lakelog.catalog.names import Identifier
from lakelog.log.errors import NotFound


@dataclass(frozen=True, slots=True)
class DroppedTable:
    """A dropped table, by the name that it was dropped from. `in_dropped`: its namespace was dropped, too."""

    id: str
    location: str
    path: Identifier
    in_dropped: bool


def ever_named(namespaces: Sequence[Namespace], identifier: Identifier) -> set[str]:
    """Return the ids of all that this name has led to, at versions of the namespaces that can be read. Costs a GET for
    each version of those that have this path."""
    return {
        id
        for each in namespaces
        if each.path == identifier[:-1]
        for id in _ever_named(each.tracked, identifier[-1])
    }


def dropped_tables(
    namespaces: Sequence[Namespace], identifier: Identifier, named: Collection[str]
) -> Iterator[DroppedTable]:
    """Yield the dropped tables that have this name, or one of the ids that it has led to, by their ids."""
    found = []
    for each in namespaces:
        tables = [
            (id, dropped.name, dropped.location)
            for id, dropped in each.state.dropped.items()
            if dropped.space == RELATION
        ]
        if each.is_dropped:
            entries = each.state.entries.get(RELATION, {})
            tables += [(entry.id, name, entry.location) for name, entry in entries.items()]
        for id, name, location in tables:
            path = (*each.path, name)
            if path == identifier or id in named:
                found.append(DroppedTable(id, location, path, each.is_dropped))
    yield from sorted(found, key=lambda each: each.id)


def _ever_named(tracked: TrackedLog[NamespaceState], name: str) -> set[str]:
    """Return the ids of all that a name has led to, at versions that can be read."""
    found: set[str] = set()
    try:
        for commit in tracked.log.commits():
            for event in namespace_events(commit):
                match event:
                    case EntryLinked() | EntryUnlinked() if event.name == name:
                        found.add(event.id)
                    case EntryRenamed() if name in (event.name, event.new_name):
                        found.add(event.id)
                    case _:
                        continue
    except NotFound:
        return found  # its versions expire meanwhile
    return found
