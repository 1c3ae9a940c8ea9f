"""The walk down a path of names: each namespace's log, from the root's on, has the place of the next.

All callers that follow a path share this walker. The caller decides how a namespace is viewed: as this
process knows it, brought up to date, as of a cut, or read from its log alone. It must not know how callers
use the result, and writes nothing.

Anything read ahead of a walk is advice. A walk believes a name only by the state that its namespace has at
its head, and a log only if it has its link there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lakelog.catalog.core.logs.cache import LogCache
from lakelog.catalog.core.logs.places import likely_places
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.state.namespace_entries import (
    NamespaceEntry,
)
from lakelog.catalog.core.state.namespace_state import (
    NAMESPACE,
    RELATION,
    NamespaceState,
)
from lakelog.catalog.names import Identifier
from lakelog.log import LogView
from lakelog.log.errors import LakelogError, NotFound
from lakelog.log.keys import LogKeys


@dataclass(frozen=True, slots=True)
class PathLevel:
    """A namespace on the path, as it was viewed. `entry` is its entry in its parent; None for the root."""

    path: Identifier
    entry: NamespaceEntry | None
    tracked: TrackedLog[NamespaceState]
    view: LogView[NamespaceState]


Look = Callable[
    [Identifier, NamespaceEntry | None, TrackedLog[NamespaceState]], LogView[NamespaceState] | None
]
"""Returns the view of a namespace on a path, by its path, its parent's entry and its log; None to end there.
"""


def follow(logs: LogCache, namespace: Identifier, look: Look) -> Iterator[PathLevel]:
    """Yield the namespaces that a path leads through, the root first; `look` is called for each in its turn.

    The last is `namespace`, or the first that lacks the next name, or the namespace before `look` returned
    None.
    """
    entry: NamespaceEntry | None = None
    namespace_log = logs.namespace("")
    for depth in range(len(namespace) + 1):
        view = look(namespace[:depth], entry, namespace_log)
        if view is None:
            return
        yield PathLevel(namespace[:depth], entry, namespace_log, view)
        entry = view.state.entry(NAMESPACE, namespace[depth]) if depth < len(namespace) else None
        if entry is None:
            return
        namespace_log = logs.namespace(entry.location)


def known_path_to(logs: LogCache, location: str) -> Identifier | None:
    """Return the path of the namespace whose log is at a location; None if it is not known.

    Requests pages of names at most.
    """
    level: list[tuple[Identifier, str]] = [((), "")]
    seen_places: set[str] = set()
    while level:
        path, place = level.pop()
        if place == location:
            return path
        known_view = logs.namespace(place).known
        if known_view is not None and place not in seen_places:
            seen_places.add(place)
            children = known_view.state.logs(NAMESPACE)
            level.extend(((*path, name), entry.location) for name, entry in children)
    return None


def known_on_path(logs: LogCache, namespace: Identifier, table: str | None = None) -> list[TrackedLog[Any]]:
    """Return the logs that lead to a namespace, or to a table in it, as far as known.

    Requests pages of names at most.
    """
    levels = list(follow(logs, namespace, lambda path, entry, tracked: tracked.known))
    known_logs: list[TrackedLog[Any]] = [level.tracked for level in levels]
    if table is not None and len(levels) > len(namespace):
        entry = levels[-1].view.state.entry(RELATION, table)
        if entry is not None and logs.table(entry.location).known is not None:
            known_logs.append(logs.table(entry.location))
    return known_logs


def read_path(
    logs: LogCache,
    namespace: Identifier,
    table: str | None = None,
    *,
    is_read: Callable[[TrackedLog[Any]], bool] = lambda tracked: False,
) -> set[str]:
    """Read the logs that lead to a namespace, or to a table in it, unless `is_read` says they are read.

    Return the locations of the logs that are now known as they were at some moment after this call began.

    Known logs are refreshed in a single round. If the path goes on, each hint has the place of the next log,
    and mostly its name does. Hints that a name locates are read at once, and other hints in turn. The rest of
    each log is read at the same time as the next hint. So a path takes three rounds, or a round for each
    level and another.
    """
    try:
        known_logs = known_on_path(logs, namespace, table)
    except NotFound:
        # A namespace whose version has expired, with the page of the next name, is no longer known.
        known_logs = known_on_path(logs, namespace, table)
    old = [old_log for old_log in known_logs if not is_read(old_log)]
    ahead = _Ahead(logs, namespace, table, len(known_logs))
    if not known_logs:
        with suppress(NotFound):  # the walk finds out about the missing log
            ahead.load(0, logs.namespace(""))
    elif len(known_logs) == len(namespace) + (1 if table is None else 2):
        logs.refresh(old)
    else:
        deepest = known_logs[-1]
        logs.log_options.in_parallel(
            [lambda: logs.refresh(old), lambda: ahead.go_on(len(known_logs), deepest.known)]
        )
        ahead.go_on(len(known_logs), deepest.known)  # for names that were linked since
    return ahead.fresh.union(old_log.location for old_log in old)


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
        """Load the log at a depth of the path, and the logs below it."""
        if depth == self._known:
            self._read_likely_hints(depth, tracked)
        hints = self._hints
        hint = (lambda: hints[tracked.location]) if tracked.location in hints else None
        view = tracked.load(lambda hinted: self.go_on(depth + 1, hinted), hint)
        self.fresh.add(tracked.location)
        self.go_on(depth + 1, view)  # for names that the hint did not have

    def _read_likely_hints(self, depth: int, tracked: TrackedLog[Any]) -> None:
        """Read the hint of a namespace, and of namespaces that are likely to be below it."""
        likely = likely_places(self._logs.warehouse, tracked.location, self._namespace[depth:])
        if likely:
            places = [tracked.location, *likely]
            with suppress(LakelogError):  # perhaps a right is missing at a place that no name leads to
                hint_bytes = tracked.store.get_many([LogKeys(place).latest for place in places])
                self._hints = dict(zip(places, hint_bytes, strict=True))

    def go_on(self, depth: int, above: LogView[NamespaceState] | None) -> None:
        """Load the log at a depth, if the namespace above it, at some version, has its place."""
        # The walk meets any error of this log by itself, if it
        # comes there. A place that only a hint names may be wrong.
        with suppress(LakelogError):
            next_log = None if above is None else self._next(depth, above)
            if next_log is not None and next_log.known is None:
                self.load(depth, next_log)

    def _next(self, depth: int, above: LogView[NamespaceState]) -> TrackedLog[Any] | None:
        if depth <= len(self._namespace):
            entry = above.state.entry(NAMESPACE, self._namespace[depth - 1])
            return None if entry is None else self._logs.namespace(entry.location)
        if depth > len(self._namespace) + 1 or self._table is None:
            return None
        entry = above.state.entry(RELATION, self._table)
        return None if entry is None else self._logs.table(entry.location)
