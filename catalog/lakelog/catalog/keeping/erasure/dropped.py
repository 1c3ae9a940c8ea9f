"""Dropped tables that once had a name, whatever their name at the drop, and wherever they were moved.

The readable versions of the namespace's log say which tables ever had the name. A dropped table is on the
list of its last namespace, which may be a different or a dropped namespace.
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
from lakelog.catalog.keeping.erasure.namespaces import ErasureNamespace
from lakelog.catalog.names import Identifier
from lakelog.log.errors import NotFound


@dataclass(frozen=True, slots=True)
class DroppedTable:
    """A dropped table, by its name at the drop. `in_dropped`: its namespace was dropped too."""

    id: str
    location: str
    path: Identifier
    in_dropped: bool


def ever_named(namespaces: Sequence[ErasureNamespace], identifier: Identifier) -> set[str]:
    """Return the ids of all tables that had this name, at readable versions of the namespaces.

    Makes a GET request for each version of the namespaces that have this path.
    """
    return {
        id
        for namespace in namespaces
        if namespace.path == identifier[:-1]
        for id in _ever_named(namespace.tracked, identifier[-1])
    }


def dropped_tables(
    namespaces: Sequence[ErasureNamespace], identifier: Identifier, named: Collection[str]
) -> Iterator[DroppedTable]:
    """Yield the dropped tables of this name, or with an id in `named`, in the order of their ids."""
    result = []
    for namespace in namespaces:
        tables = [
            (drop.name, drop.entry) for drop in namespace.state.dropped_logs() if drop.space == RELATION
        ]
        if namespace.is_dropped:
            tables += namespace.state.logs(RELATION)
        for name, entry in tables:
            path = (*namespace.path, name)
            if path == identifier or entry.id in named:
                result.append(DroppedTable(entry.id, entry.location, path, namespace.is_dropped))
    yield from sorted(result, key=lambda table: table.id)


def _ever_named(tracked: TrackedLog[NamespaceState], name: str) -> set[str]:
    """Return the ids of all tables that had a name, at readable versions."""
    ids: set[str] = set()
    try:
        for commit in tracked.log.commits():
            for event in namespace_events(commit):
                match event:
                    case EntryLinked() | EntryUnlinked() if event.name == name:
                        ids.add(event.id)
                    case EntryRenamed() if name in (event.name, event.new_name):
                        ids.add(event.id)
                    case _:
                        continue
    except NotFound:
        return ids  # its versions expired during the read
    return ids
