"""The namespaces of a warehouse, including dropped namespaces, whose commits may quote values.

An unreadable namespace is reported because tables that were moved there are not found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lakelog.catalog.core.logs import NameTree, TrackedLog
from lakelog.catalog.core.state import NAMESPACE, NamespaceState
from lakelog.catalog.keeping.erasure.clearing import cuts_of
from lakelog.catalog.keeping.erasure.erased_log import ErasedLog
from lakelog.catalog.keeping.erasure.model import ErasedTable, Lost
from lakelog.catalog.keeping.erasure.proposed import proposals_quoting
from lakelog.catalog.keeping.erasure.texts import (
    defines_quoting,
    entries_quoting,
    former_entries_quote,
    versions_quoting,
)
from lakelog.catalog.names import Identifier
from lakelog.log import LogView
from lakelog.log.errors import LakelogError


@dataclass(frozen=True, slots=True)
class ErasureNamespace:
    """A namespace, by its present or last name."""

    path: Identifier
    tracked: TrackedLog[NamespaceState]
    view: LogView[NamespaceState]
    is_dropped: bool

    @property
    def state(self) -> NamespaceState:
        return self.view.state


def namespaces_of(tree: NameTree, say: Callable[[str], None]) -> Iterator[ErasureNamespace]:
    """Yield all readable namespaces of a warehouse, also dropped namespaces, and `say` the unreadable.

    Makes a GET request for each.
    """
    root = tree.find_namespace(())
    pending: list[tuple[Identifier, str, bool]] = [] if root is None else [((), root.tracked.location, False)]
    met: set[str] = set()
    while pending:
        path, location, is_dropped = pending.pop()
        if location in met:
            continue
        met.add(location)
        namespace_log = tree.logs.namespace(location)
        try:
            view = namespace_log.at_its_place() if is_dropped else namespace_log.current()
        except LakelogError as error:
            say(f"the namespace at {tree.logs.url(location)} cannot be read: {error}")
            continue
        if view.purged:
            continue
        yield ErasureNamespace(path, namespace_log, view, is_dropped)
        for name, entry in view.state.logs(NAMESPACE):
            pending.append(((*path, name), entry.location, is_dropped))
        for drop in view.state.dropped_logs():
            if drop.space == NAMESPACE:
                pending.append(((*path, drop.name), drop.entry.location, True))


def places_above(logs: Sequence[ErasedLog]) -> set[str]:
    """Return the locations of the tables' namespaces, and of the namespaces above them."""
    places = {""}
    for log in logs:
        link = log.head.state.link
        if link is not None:
            parts = link.namespace.split("/")
            places |= {"/".join(parts[:count]) for count in range(1, len(parts) + 1)}
    return places


def namespaces_quoting(
    tree: NameTree, logs: Sequence[ErasedLog], values: Sequence[str]
) -> Iterator[tuple[ErasedTable, list[Lost]]]:
    """Yield the namespaces above these tables whose commits quote a value, and the losses by their expiry.

    The quote is in a statement, or in a former view, function or property.
    """
    for place in sorted(places_above(logs)) if values else ():
        namespace_log = tree.logs.namespace(place)
        try:
            view = namespace_log.current()
        except LakelogError:
            continue
        # Values that present definitions quote are for their owner to change first.
        is_present = any(entries_quoting(view.state, values))
        quoting_versions = versions_quoting(
            namespace_log, values, also=None if is_present else defines_quoting
        )
        is_former = not is_present and former_entries_quote(namespace_log, values)
        if not (is_former or any(quoting_versions) or proposals_quoting(namespace_log, values)):
            continue
        url = tree.logs.url(place)
        versions = view.version - max(view.state.expired, 1) + 1
        losses = [Lost(kind="versions", name=url, why="statements or definitions in them quote values")]
        losses += [
            Lost(kind="cut", name=cut, why=f"needs older versions of {url}")
            for _, cut in cuts_of(tree, place)
        ]
        yield ErasedTable(kind="namespace", name=url, location=url, versions=versions), losses
