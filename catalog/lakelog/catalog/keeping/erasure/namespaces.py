"""The namespaces of a warehouse, dropped ones too: where tables are looked for, and whose commits may quote values.

A namespace that cannot be read is said, as what was moved there is not found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lakelog.catalog.core.logs import NameTree, TrackedLog
from lakelog.catalog.core.state import NAMESPACE, NamespaceState
from lakelog.catalog.keeping.erasure.clearing import cuts_of
from lakelog.catalog.keeping.erasure.erased_log import ErasedLog
from lakelog.catalog.keeping.erasure.model import ErasedTable, Lost
from lakelog.catalog.keeping.erasure.texts import versions_quoting
from lakelog.catalog.names import Identifier
from lakelog.log import View
from lakelog.log.errors import LakelogError


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


def namespaces_quoting(
    tree: NameTree, logs: Sequence[ErasedLog], values: Sequence[str]
) -> Iterator[tuple[ErasedTable, list[Lost]]]:
    """Yield the namespaces above these tables whose commits keep a statement that quotes a value, and what is lost by
    their expiry."""
    places = {""}
    for each in logs:
        link = each.head.state.link
        if link is not None:
            parts = link.namespace.split("/")
            places |= {"/".join(parts[:count]) for count in range(1, len(parts) + 1)}
    for place in sorted(places) if values else ():
        tracked = tree.logs.namespace(place)
        try:
            view = tracked.current()
        except LakelogError:
            continue
        if next(versions_quoting(tracked, values), None) is None:
            continue
        url = tree.logs.url(place)
        versions = view.version - max(view.state.expired, 1) + 1
        lost = [Lost(kind="versions", name=url, why="statements in them quote values")]
        lost += [
            Lost(kind="cut", name=cut, why=f"needs older versions of {url}")
            for _, cut in cuts_of(tree, place)
        ]
        yield ErasedTable(kind="namespace", name=url, location=url, versions=versions), lost
