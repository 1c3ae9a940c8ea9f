"""The walk down a path of names, from the root namespace's log: each namespace's log says where the next one is.

One walker for all callers that follow a path. The caller decides how a namespace is viewed: as this process knows it,
brought up to date, as of a cut, or read from its log alone. It must not know what callers do with the result, and
writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lakelog.catalog.logs.cache import LogCache
from lakelog.catalog.logs.tracked_log import TrackedLog
from lakelog.catalog.names import Identifier
from lakelog.catalog.state import NAMESPACE, RELATION, Entry, NamespaceState
from lakelog.log import View


@dataclass(frozen=True, slots=True)
class Level:
    """A namespace on the path, as it was viewed. `entry` is its entry in its parent; None for the root."""

    path: Identifier
    entry: Entry | None
    tracked: TrackedLog[NamespaceState]
    view: View[NamespaceState]


Look = Callable[[Identifier, Entry | None, TrackedLog[NamespaceState]], View[NamespaceState] | None]
"""Returns a namespace that a path leads through, by its path, its parent's entry and its log; None to end there."""


def follow(logs: LogCache, namespace: Identifier, look: Look) -> Iterator[Level]:
    """Yield the namespaces that a path leads through, the root first; `look` is called for each in its turn.

    The last one is `namespace`, or the one that does not have the next name, or the one before `look` returned None.
    """
    entry: Entry | None = None
    tracked = logs.namespace("")
    for depth in range(len(namespace) + 1):
        view = look(namespace[:depth], entry, tracked)
        if view is None:
            return
        yield Level(namespace[:depth], entry, tracked, view)
        entry = view.state.entry(NAMESPACE, namespace[depth]) if depth < len(namespace) else None
        if entry is None:
            return
        tracked = logs.namespace(entry.location)


def known_path_to(logs: LogCache, location: str) -> Identifier | None:
    """Return the path of the namespace whose log is at a location; None where it is not known. No request."""
    level: list[tuple[Identifier, str]] = [((), "")]
    seen: set[str] = set()
    while level:
        path, here = level.pop()
        if here == location:
            return path
        known = logs.namespace(here).known
        if known is not None and here not in seen:
            seen.add(here)
            children = known.state.entries.get(NAMESPACE, {})
            level.extend(((*path, name), entry.location) for name, entry in children.items())
    return None


def known_on_path(logs: LogCache, namespace: Identifier, table: str | None = None) -> list[TrackedLog[Any]]:
    """Return the logs that lead to a namespace, or to a table in it, as far as known. No request."""
    levels = list(follow(logs, namespace, lambda path, entry, tracked: tracked.known))
    known: list[TrackedLog[Any]] = [level.tracked for level in levels]
    if table is not None and len(levels) > len(namespace):
        entry = levels[-1].view.state.entry(RELATION, table)
        if entry is not None and logs.table(entry.location).known is not None:
            known.append(logs.table(entry.location))
    return known
