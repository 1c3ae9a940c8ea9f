"""Which logs an audit reads: every namespace and table of a warehouse, dropped ones too, by the names they have or had.

A namespace whose log is damaged hides nothing: what it ever linked is then taken from the commits that can be read.
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
    """A log to be read. `names` go by log ids, since several can have followed one another at one place.

    `above` are the locations of the namespaces that it is in. Where these are given, only commits of the log ids `only`
    are reported, and only those `about` some ids. `problem` is why a namespace could not be read.
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
    """What a namespace ever linked under an id, and the names that it had there, the newest last."""

    kind: str
    location: str
    names: tuple[str, ...]
    dropped: bool


def every_log(tree: NameTree, path: Identifier = (), *, deep: bool = True) -> list[AuditedLog]:
    """Return all logs that a name leads to or that can be restored, of the namespaces that lead to `path`, and with
    `deep` of all below it. Loads each of these namespaces, level by level, and nothing beside them."""
    root = _read_namespace(tree, AuditedLog("", NAMESPACE, {}, ()), NameNow(()))
    if root is None:
        return []
    found: dict[str, AuditedLog] = {}
    # A namespace can be forged that leads to itself, or to another one many times.
    met = {root[0].location}
    level = [root]
    while level:
        below: list[tuple[AuditedLog, NameNow]] = []
        for log, name, links in level:
            _add(found, log)
            for id, link in links.items():
                now = NameNow((*name.identifier, link.names[-1]), name.dropped or link.dropped)
                child = AuditedLog(link.location, link.kind, {id: now}, (*log.above, log.location))
                if link.kind == NAMESPACE and not _leads_to(now.identifier, path, deep):
                    continue
                if link.kind == NAMESPACE and link.location in met:
                    _add(found, child)
                elif link.kind == NAMESPACE:
                    met.add(link.location)
                    below.append((child, now))
                elif link.kind == TABLE:
                    _add(found, child)
        level = [one for one in tree.logs.in_parallel(_read_namespaces(tree), below) if one is not None]
    return list(found.values())


def _leads_to(identifier: Identifier, path: Identifier, deep: bool) -> bool:
    depth = len(identifier)
    return identifier[: len(path)] == path[:depth] and (deep or depth < len(path))


def logs_of_table(tree: NameTree, path: Identifier) -> list[AuditedLog]:
    """Return the logs of the tables that have or had the name `path`, and those of the namespaces that linked them.

    Reads what leads to that name, and other namespaces only where a table was moved there. NoSuchTable where the
    retained history has no such table.
    """
    ids, parents = _ever_named(tree, path, TABLE)
    if not ids:
        raise NoSuchTable(f"there is no table {quoted(path)}, now or in the retained history: check the name")
    everything = every_log(tree, path, deep=False)
    if not ids <= {id for log in everything for id in log.names}:
        everything = every_log(tree)
    tables = [
        replace(log, only=frozenset(ids))
        for log in everything
        if log.kind == TABLE and ids & log.names.keys()
    ]
    parents = parents | {log.above[-1] for log in tables}
    return tables + _commits_about(everything, parents, ids)


def logs_below(tree: NameTree, path: Identifier) -> list[AuditedLog]:
    """Return the logs of the namespaces that have or had the name `path`, of all below, and those that linked them.

    NoSuchNamespace where the retained history has no such namespace.
    """
    everything = every_log(tree, path)
    if not path:
        return everything
    ids, parents = _ever_named(tree, path, NAMESPACE)
    if not ids:
        raise NoSuchNamespace(
            f"there is no namespace {quoted(path)}, now or in the retained history: check the name"
        )
    tops = {log.location for log in everything if log.kind == NAMESPACE and ids & log.names.keys()}
    below = [log for log in everything if log.location in tops or not tops.isdisjoint(log.above)]
    parents = parents | {log.above[-1] for log in everything if log.location in tops}
    return below + _commits_about(everything, parents - {log.location for log in below}, ids)


def _commits_about(everything: Sequence[AuditedLog], parents: set[str], ids: set[str]) -> list[AuditedLog]:
    return [replace(log, about=frozenset(ids)) for log in everything if log.location in parents]


def _add(found: dict[str, AuditedLog], log: AuditedLog) -> None:
    """Add a log, or a name to the log that is known at that place."""
    known = found.get(log.location)
    if known is None:
        found[log.location] = log
    else:
        is_live = any(not name.dropped for name in known.names.values())
        names = {**log.names, **known.names} if is_live else {**known.names, **log.names}
        found[log.location] = replace(known, names=names, above=known.above if is_live else log.above)


_ReadNamespace = tuple[AuditedLog, NameNow, dict[str, _Link]]


def _read_namespaces(tree: NameTree) -> Callable[[tuple[AuditedLog, NameNow]], _ReadNamespace | None]:
    return lambda one: _read_namespace(tree, *one)


def _read_namespace(tree: NameTree, log: AuditedLog, name: NameNow) -> _ReadNamespace | None:
    """Return a namespace with what it links; None for a root that does not exist."""
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
        for names in state.entries.values()
        for name, entry in names.items()
    }
    for id, gone in state.dropped.items():
        links[id] = _Link(gone.kind, gone.location, (gone.name,), dropped=True)
    return links


def _ever_named(tree: NameTree, path: Identifier, kind: str) -> tuple[set[str], set[str]]:
    """Return the ids that ever had the name `path`, and the locations of the namespaces that linked them under it."""
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
    """Return what a namespace ever linked, from its retained commits, and from `state` for older ones."""
    links: dict[str, _Link] = {}
    for event in _events(tree, location):
        match event.get("event"):
            case "entry-linked":
                known = links.get(event["id"])
                names = (*(known.names if known else ()), event["name"])
                links[event["id"]] = _Link(event["kind"], event["location"], names, dropped=False)
            case "entry-renamed" if event["id"] in links:
                known = links[event["id"]]
                links[event["id"]] = replace(known, names=(*known.names, event["new_name"]))
            case "entry-renamed" if state is not None:
                # Linked by a commit that has expired: the state has its present place, unless it was purged since.
                now = _linked(state).get(event["id"])
                if now is not None:
                    links[event["id"]] = replace(now, names=(event["name"], event["new_name"]))
            case "entry-unlinked" if event["id"] in links:
                links[event["id"]] = replace(links[event["id"]], dropped=True)
            case "entry-purged" if state is None:
                links.pop(event["id"], None)
    for id, link in (_linked(state) if state is not None else {}).items():
        known = links.get(id)
        links[id] = link if known is None else replace(link, names=(*known.names, *link.names))
    return links


def _events(tree: NameTree, location: str) -> Iterator[dict[str, Any]]:
    log = tree.logs.unread(location).log
    for each in audited_versions(
        log, extent_of(log), since_us=None, until_us=None, newest_first=False, verify=False, batch=64
    ):
        if isinstance(each.entry, Commit):
            yield from each.entry.events
