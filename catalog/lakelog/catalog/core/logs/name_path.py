"""The walk down a path of names, from the root namespace's log: each namespace's log says where the next one is.

One walker for all callers that follow a path. The caller decides how a namespace is viewed: as this process knows it,
brought up to date, as of a cut, or read from its log alone. It must not know what callers do with the result, and
writes nothing.

What is read ahead of a walk is advice: a walk believes no name but by the state that its namespace has at its head, and
no log but one that has its link there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lakelog.catalog.core.logs.cache import LogCache
from lakelog.catalog.core.logs.places import likely_places
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.state import NAMESPACE, RELATION, Entry, NamespaceState
from lakelog.catalog.names import Identifier
from lakelog.log import View
from lakelog.log.errors import LakelogError, NotFound
from lakelog.log.keys import Keys


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
    """Return the path of the namespace whose log is at a location; None where it is not known. It requests pages
    of names at most."""
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
    """Return the logs that lead to a namespace, or to a table in it, as far as known. It requests pages of names at
    most."""
    levels = list(follow(logs, namespace, lambda path, entry, tracked: tracked.known))
    known: list[TrackedLog[Any]] = [level.tracked for level in levels]
    if table is not None and len(levels) > len(namespace):
        entry = levels[-1].view.state.entry(RELATION, table)
        if entry is not None and logs.table(entry.location).known is not None:
            known.append(logs.table(entry.location))
    return known


def read_path(
    logs: LogCache,
    namespace: Identifier,
    table: str | None = None,
    *,
    is_read: Callable[[TrackedLog[Any]], bool] = lambda tracked: False,
) -> set[str]:
    """Read the logs that lead to a namespace, or to a table in it, except those that `is_read` says are read already.
    Return the locations of those that are now known as they were at some moment after this call began.

    What is known is refreshed in one round. Where the path goes on, each hint says where the next log is, and
    mostly its name does: these hints are read at once, those of others one after another, and what follows each of them
    at the same time as the next. So a path takes three rounds, or one for each level and one more.
    """
    try:
        known = known_on_path(logs, namespace, table)
    except NotFound:
        # A namespace whose version has expired, with the page of the next name, is not known any more.
        known = known_on_path(logs, namespace, table)
    old = [tracked for tracked in known if not is_read(tracked)]
    ahead = _Ahead(logs, namespace, table, len(known))
    if not known:
        with suppress(NotFound):  # the walk finds out what that means
            ahead.load(0, logs.namespace(""))
    elif len(known) == len(namespace) + (1 if table is None else 2):
        logs.refresh(old)
    else:
        deepest = known[-1]
        logs.log_options.in_parallel(
            [lambda: logs.refresh(old), lambda: ahead.go_on(len(known), deepest.known)]
        )
        ahead.go_on(len(known), deepest.known)  # for what was linked since
    return ahead.fresh.union(tracked.location for tracked in old)


class _Ahead:
    """Logs of a path, read before it is certain that the path leads through them."""

    def __init__(self, logs: LogCache, namespace: Identifier, table: str | None, known: int) -> None:
        self._logs = logs
        self._namespace = namespace
        self._table = table
        self._known = known
        self._hints: dict[str, bytes | None] = {}
        self.fresh: set[str] = set()

    def load(self, depth: int, tracked: TrackedLog[Any]) -> None:
        """Load the log at a depth of the path, and those below it."""
        if depth == self._known:
            self._read_likely_hints(depth, tracked)
        read = self._hints
        hint = (lambda: read[tracked.location]) if tracked.location in read else None
        view = tracked.load(lambda hinted: self.go_on(depth + 1, hinted), hint)
        self.fresh.add(tracked.location)
        self.go_on(depth + 1, view)  # for what the hint did not have

    def _read_likely_hints(self, depth: int, tracked: TrackedLog[Any]) -> None:
        """Read the hint of a namespace, and of those that are likely to be below it."""
        likely = likely_places(self._logs.warehouse, tracked.location, self._namespace[depth:])
        if likely:
            places = [tracked.location, *likely]
            with suppress(LakelogError):  # perhaps a right is missing where no name leads
                found = tracked.store.get_many([Keys(place).latest for place in places])
                self._hints = dict(zip(places, found, strict=True))

    def go_on(self, depth: int, above: View[NamespaceState] | None) -> None:
        """Load the log at a depth, where the namespace above it, at some version, says where that is."""
        # What is wrong with it the walk meets by itself, if it comes there: also with a place that only a hint names.
        with suppress(LakelogError):
            tracked = None if above is None else self._next(depth, above)
            if tracked is not None and tracked.known is None:
                self.load(depth, tracked)

    def _next(self, depth: int, above: View[NamespaceState]) -> TrackedLog[Any] | None:
        if depth <= len(self._namespace):
            entry = above.state.entry(NAMESPACE, self._namespace[depth - 1])
            return None if entry is None else self._logs.namespace(entry.location)
        if depth > len(self._namespace) + 1 or self._table is None:
            return None
        entry = above.state.entry(RELATION, self._table)
        return None if entry is None else self._logs.table(entry.location)
