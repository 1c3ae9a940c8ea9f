"""The logs that a maintenance operation covers: one table, or a namespace with all that is below it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from lakelog.catalog.core.logs.cache import LogCache
from lakelog.catalog.core.logs.name_tree import NameTree, no_such_namespace
from lakelog.catalog.core.logs.own_links import is_own, linked_elsewhere
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.state import NAMESPACE, RELATION, TABLE, Entry, Link, NamespaceState, TableState
from lakelog.catalog.errors import NoSuchTable
from lakelog.catalog.names import Identifier, quoted
from lakelog.log import View
from lakelog.log.errors import InvalidInput, LakelogError, NotFound, Unsupported

S = TypeVar("S")
Progress = Callable[[str], None]

NO_MAINTENANCE = (
    "maintenance deletes for good, so it cannot run in a transaction or on a catalog of the past: open the catalog "
    "without either"
)


def no_progress(message: str) -> None:
    """Ignore the progress."""


def in_turn(progress: Progress) -> Progress:
    """Return the same, for several threads."""
    lock = threading.Lock()

    def show(message: str) -> None:
        with lock:
            progress(message)

    return show


@dataclass(frozen=True, slots=True)
class Target(Generic[S]):
    """One log, with its newest view. `name` is for messages: quoted, or the place of a log without a name."""

    name: str
    path: Identifier | None
    tracked: TrackedLog[S]
    view: View[S]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A log that cannot be read, or was found by a name that is not its own: maintenance leaves it alone, reports it,
    and goes on."""

    kind: str
    name: str
    location: str
    error: str


@dataclass(slots=True)
class Scope:
    """Parents come before their children."""

    namespaces: list[Target[NamespaceState]] = field(default_factory=list)
    tables: list[Target[TableState]] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)

    @property
    def is_one_table(self) -> bool:
        """Whether the scope is a single table: then a failure is an error, and not one of many answers."""
        return not self.namespaces and len(self.tables) == 1


def chosen_scope(
    tree: NameTree,
    table: Identifier | None = None,
    namespace: Identifier | None = None,
    *,
    location: str | None = None,
    progress: Progress | None = None,
) -> Scope:
    """Return the scope of one of these; without any, the whole catalog. NoSuchTable, NoSuchNamespace, InvalidInput.

    Maintenance is of the catalog as it is, and of each log by itself: Unsupported for the past, or in a transaction.
    """
    if tree.logs.is_a_cut:
        raise Unsupported(NO_MAINTENANCE)
    if sum(given is not None for given in (table, namespace, location)) > 1:
        raise InvalidInput("a table, a namespace and a location exclude each other: give one of them")
    if table is not None:
        found = tree.table(table)
        return Scope(tables=[Target(quoted(table), table, found.tracked, found.view)])
    if location is not None:
        return _at(tree, location)
    return of_namespace(tree, namespace or (), progress or no_progress)


def _at(tree: NameTree, location: str) -> Scope:
    tracked = tree.logs.table(tree.logs.location(location))
    try:
        view = tracked.at_its_place()
    except NotFound as error:
        raise NoSuchTable(f"there is no table at {location}: check the path") from error
    if view.sealed:
        raise NoSuchTable(f"there is no table at {location}: it was dropped")
    if view.state.link is not None and not _is_named(tree.logs, view, view.state.link):
        raise InvalidInput(
            f"the table at {location} has its name in another warehouse than {tree.logs.warehouse}, whose saved cuts "
            "and clones may need its versions: open that warehouse"
        )
    return Scope(tables=[Target(tree.logs.url(tracked.location), None, tracked, view)])


def _is_named(logs: LogCache, view: View[TableState], link: Link) -> bool:
    """Return whether the name of a table is in this warehouse. Costs a GET."""
    try:
        parent = logs.namespace(link.namespace).current()
    except NotFound:
        return False
    entry = parent.state.entry(RELATION, link.name)
    return entry is not None and entry.id == view.log_id


def of_namespace(tree: NameTree, path: Identifier, progress: Progress) -> Scope:
    """Return a namespace with all that is below it. Costs a parallel round or two of GETs for each level.

    NoSuchNamespace; an absent warehouse is empty.
    """
    found = tree.find_namespace(path)
    if found is None:
        if path:
            raise no_such_namespace(path)
        return Scope()
    name = quoted(path) if path else tree.logs.warehouse
    scope = Scope(namespaces=[Target(name, path, found.tracked, found.view)])
    level = scope.namespaces
    met = {found.tracked.location}
    while level:
        scope.tables += _loaded(tree.logs, "table", tree.logs.table, _entries(level, RELATION), scope)
        below = _each_once(tree.logs, _entries(level, NAMESPACE), met, scope)
        level = _loaded(tree.logs, "namespace", tree.logs.namespace, below, scope)
        scope.namespaces += level
        progress(f"found {len(scope.namespaces):,} namespaces and {len(scope.tables):,} tables")
    return scope


@dataclass(frozen=True, slots=True)
class _Child:
    """An entry of a namespace, by the path of its name."""

    parent: TrackedLog[NamespaceState]
    space: str
    path: Identifier
    entry: Entry


def _entries(level: Iterable[Target[NamespaceState]], space: str) -> Iterator[_Child]:
    for target in level:
        assert target.path is not None
        names: Mapping[str, Entry] = target.view.state.entries.get(space, {})
        for name, entry in sorted(names.items()):
            if entry.kind in (TABLE, NAMESPACE):
                yield _Child(target.tracked, space, (*target.path, name), entry)


def _each_once(logs: LogCache, children: Iterable[_Child], met: set[str], scope: Scope) -> Iterator[_Child]:
    """Yield the namespaces that were not `met` yet: one can be forged that leads to itself, or to another one twice."""
    for child in children:
        if child.entry.location in met:
            what = "another name leads to this namespace too: run `lakelog fsck` for details"
            url = logs.url(child.entry.location)
            scope.unreadable.append(Unreadable("namespace", quoted(child.path), url, what))
        else:
            met.add(child.entry.location)
            yield child


def _loaded(
    logs: LogCache,
    kind: str,
    log_at: Callable[[str], TrackedLog[S]],
    children: Iterable[_Child],
    scope: Scope,
) -> list[Target[S]]:
    found: dict[int, Target[S]] = {}

    def load(number: int, child: _Child) -> None:
        path, entry = child.path, child.entry
        try:
            tracked = log_at(entry.location)
            view = tracked.current()
            if view.log_id != entry.id:
                view = tracked.anew()
            is_there = not view.sealed and view.log_id == entry.id
            if is_there and not is_own(view, child.parent.location, path[-1]):
                path = _name_now(logs, child, view)
        except NotFound as error:
            what = f"its name leads here, but there is no log: run `lakelog fsck` for details ({error})"
            scope.unreadable.append(Unreadable(kind, quoted(path), logs.url(entry.location), what))
        except LakelogError as error:
            scope.unreadable.append(Unreadable(kind, quoted(path), logs.url(entry.location), str(error)))
        else:
            # A log that is sealed, or another one now, is being dropped: the name no longer leads to it.
            if is_there and path:
                found[number] = Target(quoted(path), path, tracked, view)

    logs.log_options.in_parallel([partial(load, number, child) for number, child in enumerate(children)])
    return [found[number] for number in sorted(found)]


def _name_now(logs: LogCache, child: _Child, view: View[Any]) -> Identifier:
    """Return the path of a log that was renamed after its namespace was read; empty where it was moved elsewhere.

    FormatError where the name is still there: it was forged, or the log has been taken over.
    """
    now, name = child.parent.current().state, child.path[-1]
    if now.entry(child.space, name) == child.entry:
        raise linked_elsewhere(quoted(child.path), logs.url(child.entry.location), view.state.link)
    link = view.state.link
    if link is None or link.namespace != child.parent.location:
        return ()
    return (*child.path[:-1], link.name) if now.entry(child.space, link.name) == child.entry else ()
