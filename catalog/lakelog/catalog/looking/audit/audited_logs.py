"""The logs that an audit reads: every namespace and table of a warehouse, also dropped, by present and former
names.

A namespace whose log is damaged hides nothing. Its links are then taken from the commits that can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import NameTree
from lakelog.catalog.core.state import NAMESPACE, TABLE, NamespaceState
from lakelog.catalog.errors import NoSuchNamespace, NoSuchTable
from lakelog.catalog.looking.audit.chain import audited_versions, extent_of
from lakelog.catalog.names import Identifier, quoted
from lakelog.log import Commit, FormatError, NotFound

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class NameNow:
    """`identifier` is a log's name, now or when it (or a namespace above it) was dropped."""

    identifier: Identifier
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class AuditedLog:
    """A log to be read.

    `names` go by log ids because several logs can have followed at the same place.

    `above` are the locations of the namespaces that it is in. If `only` is given, only commits of these log
    ids are reported. If `about` is given, only commits about these ids. `problem` says why a namespace could
    not be read.
    """

    location: str
    kind: str
    names: Mapping[str, NameNow] = field(default_factory=dict)
    above: tuple[str, ...] = ()
    only: frozenset[str] | None = None
    about: frozenset[str] | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class _Link:
    """A table or namespace that a namespace ever linked under an id, and its names there, the newest last."""

    kind: str
    location: str
    names: tuple[str, ...]
    dropped: bool


def every_log(tree: NameTree, path: Identifier = (), *, deep: bool = True) -> list[AuditedLog]:
    """Return all logs that a name leads to, or that can be restored.

    They are the logs of the namespaces that lead to `path`, and with `deep` of all below it. Loads each of
    these namespaces, level by level, and nothing else.
    """
    root = _read_namespace(tree, AuditedLog("", NAMESPACE, {}, ()), NameNow(()))
    if root is None:
        return []
    logs: dict[str, AuditedLog] = {}
    # A forged namespace can lead to itself, or to another namespace many times.
    seen_locations = {root[0].location}
    level = [root]
    while level:
        below: list[tuple[AuditedLog, NameNow]] = []
        for log, name, links in level:
            _add(logs, log)
            for id, link in links.items():
                present_name = NameNow((*name.identifier, link.names[-1]), name.dropped or link.dropped)
                child = AuditedLog(link.location, link.kind, {id: present_name}, (*log.above, log.location))
                if link.kind == NAMESPACE and not _leads_to(present_name.identifier, path, deep):
                    continue
                if link.kind == NAMESPACE and link.location in seen_locations:
                    _add(logs, child)
                elif link.kind == NAMESPACE:
                    seen_locations.add(link.location)
                    below.append((child, present_name))
                elif link.kind == TABLE:
                    _add(logs, child)
        level = [
            namespace
            for namespace in tree.logs.in_parallel(_read_namespaces(tree), below)
            if namespace is not None
        ]
    return list(logs.values())


def _leads_to(identifier: Identifier, path: Identifier, deep: bool) -> bool:
    depth = len(identifier)
    return identifier[: len(path)] == path[:depth] and (deep or depth < len(path))


def logs_of_table(tree: NameTree, path: Identifier) -> list[AuditedLog]:
    """Return the logs of the tables that have or had the name `path`, and of the namespaces that linked them.

    Reads the namespaces that lead to that name. Reads others only if a table was moved there. Raises
    NoSuchTable if the retained history has no such table.
    """
    ids, parents = _ever_named(tree, path, TABLE)
    if not ids:
        raise NoSuchTable(f"there is no table {quoted(path)}, now or in the retained history: check the name")
    all_logs = every_log(tree, path, deep=False)
    if not ids <= {id for log in all_logs for id in log.names}:
        all_logs = every_log(tree)
    tables = [
        replace(log, only=frozenset(ids)) for log in all_logs if log.kind == TABLE and ids & log.names.keys()
    ]
    parents = parents | {log.above[-1] for log in tables}
    return tables + _commits_about(all_logs, parents, ids)


def logs_below(tree: NameTree, path: Identifier) -> list[AuditedLog]:
    """Return the logs of the namespaces that have or had the name `path`, of all below, and of their parents.

    Raises NoSuchNamespace if the retained history has no such namespace.
    """
    all_logs = every_log(tree, path)
    if not path:
        return all_logs
    ids, parents = _ever_named(tree, path, NAMESPACE)
    if not ids:
        raise NoSuchNamespace(
            f"there is no namespace {quoted(path)}, now or in the retained history: check the name"
        )
    tops = {log.location for log in all_logs if log.kind == NAMESPACE and ids & log.names.keys()}
    below = [log for log in all_logs if log.location in tops or not tops.isdisjoint(log.above)]
    parents = parents | {log.above[-1] for log in all_logs if log.location in tops}
    return below + _commits_about(all_logs, parents - {log.location for log in below}, ids)


def _commits_about(audited_logs: Sequence[AuditedLog], parents: set[str], ids: set[str]) -> list[AuditedLog]:
    return [replace(log, about=frozenset(ids)) for log in audited_logs if log.location in parents]


def _add(audited_logs: dict[str, AuditedLog], log: AuditedLog) -> None:
    """Add a log, or add its name to the log at that place."""
    other_log = audited_logs.get(log.location)
    if other_log is None:
        audited_logs[log.location] = log
    else:
        is_live = any(not name.dropped for name in other_log.names.values())
        names = {**log.names, **other_log.names} if is_live else {**other_log.names, **log.names}
        audited_logs[log.location] = replace(
            other_log, names=names, above=other_log.above if is_live else log.above
        )


_ReadNamespace = tuple[AuditedLog, NameNow, dict[str, _Link]]


def _read_namespaces(tree: NameTree) -> Callable[[tuple[AuditedLog, NameNow]], _ReadNamespace | None]:
    return lambda one: _read_namespace(tree, *one)


def _read_namespace(tree: NameTree, log: AuditedLog, name: NameNow) -> _ReadNamespace | None:
    """Return a namespace with its links, or None if the root does not exist."""
    try:
        if not log.location and tree.find_namespace(()) is None:
            return None
        view = tree.logs.namespace(log.location).current()
    except NotFound as error:
        return replace(log, problem=str(error)), name, {}
    except FormatError as error:
        if is_elsewhere(log.location):
            return replace(log, problem=str(error)), name, {}
        links = _ever_linked(tree, log.location, None)
        return replace(log, names=log.names or {"": name}, problem=str(error)), name, links
    names = log.names or {view.log_id: name}
    return replace(log, names=names), name, _linked(view.state)


def _linked(state: NamespaceState) -> dict[str, _Link]:
    links = {
        entry.id: _Link(entry.kind, entry.location, (name,), dropped=False)
        for _, name, entry in state.all_logs()
    }
    for drop in state.dropped_logs():
        entry = drop.entry
        links[entry.id] = _Link(entry.kind, entry.location, (drop.name,), dropped=True)
    return links


def _ever_named(tree: NameTree, path: Identifier, kind: str) -> tuple[set[str], set[str]]:
    """Return the ids that ever had the name `path`, and the locations of the namespaces that linked them so."""
    namespaces = {""}
    for part in path[:-1]:
        namespaces = {
            link.location
            for location in namespaces
            for link in _ever_linked_in(tree, location).values()
            if link.kind == NAMESPACE and part in link.names
        }
    ids: set[str] = set()
    parents: set[str] = set()
    for location in namespaces:
        for id, link in _ever_linked_in(tree, location).items():
            if link.kind == kind and path[-1] in link.names:
                ids.add(id)
                parents.add(location)
    return ids, parents


def _ever_linked_in(tree: NameTree, location: str) -> dict[str, _Link]:
    try:
        state = tree.logs.namespace(location).current().state
    except (FormatError, NotFound):
        state = None
    return _ever_linked(tree, location, state)


def _ever_linked(tree: NameTree, location: str, state: NamespaceState | None) -> dict[str, _Link]:
    """Return all links that a namespace ever had: from its retained commits, and older links from `state`."""
    links: dict[str, _Link] = {}
    for event in _events(tree, location):
        match event.get("event"):
            case "entry-linked":
                earlier_link = links.get(event["id"])
                names = (*(earlier_link.names if earlier_link else ()), event["name"])
                links[event["id"]] = _Link(event["kind"], event["location"], names, dropped=False)
            case "entry-renamed" if event["id"] in links:
                earlier_link = links[event["id"]]
                links[event["id"]] = replace(earlier_link, names=(*earlier_link.names, event["new_name"]))
            case "entry-renamed" if state is not None:
                # An expired commit linked it. The state has its present place, unless it was purged later.
                present_link = _linked(state).get(event["id"])
                if present_link is not None:
                    links[event["id"]] = replace(present_link, names=(event["name"], event["new_name"]))
            case "entry-unlinked" if event["id"] in links:
                links[event["id"]] = replace(links[event["id"]], dropped=True)
            case "entry-purged" if state is None:
                links.pop(event["id"], None)
    for id, link in (_linked(state) if state is not None else {}).items():
        earlier_link = links.get(id)
        links[id] = link if earlier_link is None else replace(link, names=(*earlier_link.names, *link.names))
    return links


def _events(tree: NameTree, location: str) -> Iterator[dict[str, Any]]:
    log = tree.logs.unread(location).log
    for version in audited_versions(
        log, extent_of(log), since_us=None, until_us=None, newest_first=False, verify=False, batch=64
    ):
        if isinstance(version.entry, Commit):
            yield from version.entry.events
