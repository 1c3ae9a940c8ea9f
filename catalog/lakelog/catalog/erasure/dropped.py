"""Dropped tables that had a name, whatever they were called when they were dropped, and wherever they were moved.

The log of the namespace says which tables the name has ever led to, as far as its versions can be read. Dropped tables
are on the list of the namespace in which they were last, which may be another one, or a dropped one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from lakelog.catalog.logs import NameTree, TrackedLog
from lakelog.catalog.names import Identifier
from lakelog.catalog.state import (
    NAMESPACE,
    RELATION,
    EntryLinked,
    EntryRenamed,
    EntryUnlinked,
    NamespaceState,
    namespace_events,
)
from lakelog.log import View
from lakelog.log.errors import LakelogError, NotFound


@dataclass(frozen=True, slots=True)
class DroppedTable:
    """A dropped table, by the name that it was dropped from. `in_dropped`: its namespace was dropped, too."""

    id: str
    location: str
    path: Identifier
    in_dropped: bool


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace, by the name that it has or had."""

    path: Identifier
    tracked: TrackedLog[NamespaceState]
    view: View[NamespaceState]
    is_dropped: bool

    @property
    def state(self) -> NamespaceState:
        return self.view.state


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


def namespaces_of(tree: NameTree, say: Callable[[str], None]) -> Iterator[Namespace]:
    """Yield all namespaces of a warehouse that can be read, dropped ones too, and `say` which cannot. Costs a GET for
    each."""
    root = tree.find_namespace(())
    left: list[tuple[Identifier, str, bool]] = [] if root is None else [((), root.tracked.location, False)]
    met: set[str] = set()
    while left:
        path, location, is_dropped = left.pop()
        if location in met:
            continue
        met.add(location)
        tracked = tree.logs.namespace(location)
        try:
            view = tracked.at_its_place() if is_dropped else tracked.current()
        except LakelogError as error:
            say(f"the namespace at {tree.logs.url(location)} cannot be read: {error}")
            continue
        if view.purged:
            continue
        yield Namespace(path, tracked, view, is_dropped)
        for name, entry in view.state.entries.get(NAMESPACE, {}).items():
            left.append(((*path, name), entry.location, is_dropped))
        for each in view.state.dropped.values():
            if each.space == NAMESPACE:
                left.append(((*path, each.name), each.location, True))


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
