"""The logs that a maintenance operation covers: one table, or a namespace with all that is below it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from lakelog.catalog.core.logs.cache import LogCache
from lakelog.catalog.core.logs.name_tree import NameTree
from lakelog.catalog.core.logs.own_links import is_own, linked_elsewhere
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.state.link import NameLink
from lakelog.catalog.core.state.namespace_entries import (
    NamespaceEntry,
)
from lakelog.catalog.core.state.namespace_state import (
    NAMESPACE,
    RELATION,
    TABLE,
    NamespaceState,
)
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.errors import NoSuchTable
from lakelog.catalog.names import Identifier, quoted
from lakelog.log import LogView
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
    """Return a progress that several threads may call."""
    lock = threading.Lock()

    def show(message: str) -> None:
        with lock:
            progress(message)

    return show


@dataclass(frozen=True, slots=True)
class LogTarget(Generic[S]):
    """A log with its newest view. `name` is for messages: quoted, or the place of a log without a name."""

    name: str
    path: Identifier | None
    tracked: TrackedLog[S]
    view: LogView[S]


@dataclass(frozen=True, slots=True)
class UnreadableLog:
    """A log that cannot be read, or was found by a name that is not its own.

    Maintenance leaves it alone, reports it, and goes on.
    """

    kind: str
    name: str
    location: str
    error: str


@dataclass(slots=True)
class LogScope:
    """The logs of an operation. Parents come before their children."""

    namespaces: list[LogTarget[NamespaceState]] = field(default_factory=list)
    tables: list[LogTarget[TableState]] = field(default_factory=list)
    unreadable: list[UnreadableLog] = field(default_factory=list)

    @property
    def is_one_table(self) -> bool:
        """Whether the scope is a single table.

        Then a failure is an error, instead of an answer among many.
        """
        return not self.namespaces and len(self.tables) == 1


def chosen_scope(
    tree: NameTree,
    table: Identifier | None = None,
    namespace: Identifier | None = None,
    *,
    location: str | None = None,
    progress: Progress | None = None,
) -> LogScope:
    """Return the scope of a table, a namespace or a location; without any of them, the whole catalog.

    Maintenance is of the catalog as it is, and of each log on its own. So it raises Unsupported for the past,
    or in a transaction. Raises NoSuchTable, NoSuchNamespace or InvalidInput.
    """
    if tree.logs.is_a_cut:
        raise Unsupported(NO_MAINTENANCE)
    if sum(choice is not None for choice in (table, namespace, location)) > 1:
        raise InvalidInput("a table, a namespace and a location exclude each other: give one of them")
    if table is not None:
        table_head = tree.table(table)
        return LogScope(tables=[LogTarget(quoted(table), table, table_head.tracked, table_head.view)])
    if location is not None:
        return _at(tree, location)
    return of_namespace(tree, namespace or (), progress or no_progress)


def _at(tree: NameTree, location: str) -> LogScope:
    table_log = tree.logs.table(tree.logs.location(location))
    try:
        view = table_log.at_its_place()
    except NotFound as error:
        raise NoSuchTable(f"there is no table at {location}: check the path") from error
    if view.sealed:
        raise NoSuchTable(f"there is no table at {location}: it was dropped")
    if view.state.link is not None and not _is_named(tree.logs, view, view.state.link):
        raise InvalidInput(
            f"the table at {location} has its name in another warehouse than {tree.logs.warehouse}, whose saved cuts "
            "and clones may need its versions: open that warehouse"
        )
    return LogScope(tables=[LogTarget(tree.logs.url(table_log.location), None, table_log, view)])


def _is_named(logs: LogCache, view: LogView[TableState], link: NameLink) -> bool:
    """Return whether the name of a table is in this warehouse. Costs a GET."""
    try:
        parent = logs.namespace(link.namespace).current()
    except NotFound:
        return False
    entry = parent.state.entry(RELATION, link.name)
    return entry is not None and entry.id == view.log_id


def of_namespace(tree: NameTree, path: Identifier, progress: Progress) -> LogScope:
    """Return a namespace with all that is below it; an empty folder is an empty warehouse.

    Costs a parallel round or two of GETs for each level. Raises NoSuchNamespace or NoSuchWarehouse.
    """
    namespace_head = tree.find_namespace(path)
    if namespace_head is None:
        if path:
            raise tree.missing_namespace(path)
        tree.check_there()
        return LogScope()
    name = quoted(path) if path else tree.logs.warehouse
    scope = LogScope(namespaces=[LogTarget(name, path, namespace_head.tracked, namespace_head.view)])
    level = scope.namespaces
    met = {namespace_head.tracked.location}
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
    entry: NamespaceEntry


def _entries(level: Iterable[LogTarget[NamespaceState]], space: str) -> Iterator[_Child]:
    for target in level:
        assert target.path is not None
        for name, entry in sorted(target.view.state.logs(space)):
            if entry.kind in (TABLE, NAMESPACE):
                yield _Child(target.tracked, space, (*target.path, name), entry)


def _each_once(
    logs: LogCache, children: Iterable[_Child], met: set[str], scope: LogScope
) -> Iterator[_Child]:
    """Yield the namespaces that are not in `met`.

    A forged namespace can lead to itself, or to another namespace twice.
    """
    for child in children:
        if child.entry.location in met:
            problem = "another name leads to this namespace too: run `lakelog fsck` for details"
            url = logs.url(child.entry.location)
            scope.unreadable.append(UnreadableLog("namespace", quoted(child.path), url, problem))
        else:
            met.add(child.entry.location)
            yield child


def _loaded(
    logs: LogCache,
    kind: str,
    log_at: Callable[[str], TrackedLog[S]],
    children: Iterable[_Child],
    scope: LogScope,
) -> list[LogTarget[S]]:
    targets: dict[int, LogTarget[S]] = {}

    def load(number: int, child: _Child) -> None:
        path, entry = child.path, child.entry
        try:
            log = log_at(entry.location)
            view = log.current()
            if view.log_id != entry.id:
                view = log.anew()
            is_there = not view.sealed and view.log_id == entry.id
            if is_there and not is_own(view, child.parent.location, path[-1]):
                path = _name_now(logs, child, view)
        except NotFound as error:
            problem = f"its name leads here, but there is no log: run `lakelog fsck` for details ({error})"
            scope.unreadable.append(UnreadableLog(kind, quoted(path), logs.url(entry.location), problem))
        except LakelogError as error:
            scope.unreadable.append(UnreadableLog(kind, quoted(path), logs.url(entry.location), str(error)))
        else:
            # A sealed log, or another log at the place, is being dropped: the name no longer leads to it.
            if is_there and path:
                targets[number] = LogTarget(quoted(path), path, log, view)

    logs.log_options.in_parallel([partial(load, number, child) for number, child in enumerate(children)])
    return [targets[number] for number in sorted(targets)]


def _name_now(logs: LogCache, child: _Child, view: LogView[Any]) -> Identifier:
    """Return the path of a log that was renamed after its namespace was read; empty if moved elsewhere.

    Raises FormatError if the name still leads there: it was forged, or the log has been taken over.
    """
    parent_state, name = child.parent.current().state, child.path[-1]
    if parent_state.entry(child.space, name) == child.entry:
        raise linked_elsewhere(quoted(child.path), logs.url(child.entry.location), view.state.link)
    link = view.state.link
    if link is None or link.namespace != child.parent.location:
        return ()
    return (*child.path[:-1], link.name) if parent_state.entry(child.space, link.name) == child.entry else ()
