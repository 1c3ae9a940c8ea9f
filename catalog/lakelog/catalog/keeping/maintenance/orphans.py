"""Logs and folders that no name leads to: leftovers of unfinished creations.

A creation writes the first commit of a log under a new id, and only then links it in a namespace. A CREATE
TABLE AS SELECT even writes data files before there is a log. A writer that dies in between leaves an object
that nothing leads to. A slow writer's object looks the same. A commit in the namespace that would link it
makes the difference: `entry-forgotten`. From then on a link of that id fails, so no reader will ever see it,
whatever its creator still does. The age decides only when that commit is made.

That commit is made only in the namespace in whose folder the log is. A log that names another namespace was
moved there. Then that namespace knows it, or it was purged with it. Otherwise it may be forged, and is left
alone.

This is safe for a log that was linked once, too. A move, drop or restore of it writes into its own log.
Consider the time between the read that names the log's namespace, and the commit that seals the log for good.
If the log has not changed in that time, it can have been linked only in that namespace; and there it was not
linked when it was forgotten.

A folder without a log has no time. The namespace records which folders vacuum has met, and the age counts
from then on.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakelog.catalog.core.ddl import table_folders
from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import LogCache, LogScope, LogTarget, NameTree, TrackedLog, UnreadableLog
from lakelog.catalog.core.state import (
    NAMESPACE,
    TABLE,
    EntryForgotten,
    FilesVacuumed,
    NamespaceEntry,
    NamespaceEvent,
    NamespaceState,
    TableState,
    encode,
)
from lakelog.catalog.keeping.maintenance import purge
from lakelog.catalog.keeping.maintenance.purge import LogPurge, PurgedContent, all_of, folder
from lakelog.log import Commit, Draft, LogView
from lakelog.log.errors import FormatError, LakelogError, LogSealed, NotFound
from lakelog.log.keys import number

BATCH = 64

_SKEW_US = 60 * 60 * 1_000_000
"""By how much clocks of clients may differ, if different clients made the namespace and a table in it."""

_FOLDER = re.compile(r"([nt])-([a-z2-7]{26})")


@dataclass(frozen=True, slots=True)
class OrphanLog:
    """A log that no name leads to, and the namespace that it was made for."""

    id: str
    home: TrackedLog[NamespaceState]
    purge: LogPurge


@dataclass(slots=True)
class NamespaceOrphans:
    """The findings in a namespace: logs, and folders without a log by their locations.

    `begun` may still be under way.
    """

    logs: list[OrphanLog] = field(default_factory=list)
    folders: dict[str, PurgedContent] = field(default_factory=dict)
    begun: dict[str, int] = field(default_factory=dict)
    unreadable: list[UnreadableLog] = field(default_factory=list)


def known_places(scope: LogScope) -> set[str]:
    """Return the locations that the namespaces in `scope` know, linked or dropped."""
    locations: set[str] = set()
    for namespace in scope.namespaces:
        state = namespace.view.state
        locations.update(entry.location for _, _, entry in state.all_logs())
        locations.update(drop.entry.location for drop in state.dropped_logs())
    return locations


def find(
    tree: NameTree,
    namespace: LogTarget[NamespaceState],
    known: Collection[str],
    until_us: int,
    dropped_until_us: int,
) -> NamespaceOrphans:
    """Return the logs and folders in a namespace's folders that are not `known`, made by `until_us`.

    Makes a LIST request for each of its folders: its own, and another for each `location` that it has or had.
    Makes a GET request for each unknown folder, and more only for folders that are not purged yet.
    """
    findings = NamespaceOrphans()
    for kind, location, id in _unknown(tree.logs, namespace, known):
        try:
            _judge(tree, namespace, kind, location, id, until_us, dropped_until_us, findings)
        except LakelogError as error:
            url = tree.logs.url(location)
            findings.unreadable.append(UnreadableLog(kind, url, url, str(error)))
    return findings


def unlinked(
    logs: LogCache, namespace: LogTarget[NamespaceState], known: Collection[str]
) -> Iterator[TrackedLog[TableState]]:
    """Yield the tables' places in a namespace's folders that are not `known`, whatever their age.

    Their creations were stopped, or are under way. Costs as much as `find`.
    """
    for kind, location, _ in _unknown(logs, namespace, known):
        if kind == TABLE:
            yield logs.table(location)


def unfinished(
    tree: NameTree, tracked: TrackedLog[TableState], view: LogView[TableState]
) -> OrphanLog | None:
    """Return a table of any age to which no name leads, for removal.

    None if a name leads to it, or may again.

    None also if any commit came after `view`. It may have moved the table, and the new namespace was not
    checked.
    """
    link = view.state.link
    if link is None:
        return None
    home = tree.logs.namespace(link.namespace)
    at_home = home.current()
    if at_home.sealed or is_known(at_home.state, view.log_id):
        return None
    entry = NamespaceEntry(kind=TABLE, id=view.log_id, location=tracked.location)
    plan = purge.plan_purge(tree, TABLE, tree.logs.url(tracked.location), entry, link=None, only_look=True)
    if plan is None or plan.view.version != view.version:
        return None
    return OrphanLog(view.log_id, home, plan)


def _unknown(
    logs: LogCache, namespace: LogTarget[NamespaceState], known: Collection[str]
) -> Iterator[tuple[str, str, str]]:
    """Yield the kind, location and id of each unknown folder, except for logs that were purged completely."""
    places = []
    for place in table_folders(logs, namespace.tracked.location, namespace.view):
        store, prefix = logs.places.open(place)
        for name in store.list_folders(f"{prefix}/" if prefix else ""):
            match = _FOLDER.fullmatch(name)
            location = f"{place}/{name}" if place else name
            if match is not None and location not in known:
                places.append((TABLE if match[1] == "t" else NAMESPACE, location, match[2]))
    for start in range(0, len(places), BATCH):
        batch = places[start : start + BATCH]
        unread_logs = [logs.unread(location) for _, location, _ in batch]
        hints = hints_of(unread_logs)
        for candidate, tracked_log, hint in zip(batch, unread_logs, hints, strict=True):
            replay = tracked_log.log.replay
            root = replay.root_or_none(replay.keys.latest, hint)
            # The hint of a purged log is written last. A wrong hint only costs space.
            if root is None or not root.purged or root.log_id != candidate[2]:
                yield candidate


def hints_of(opened_logs: Sequence[TrackedLog[Any]]) -> list[bytes | None]:
    """Return the object at the hint of each log. Makes a round of requests for each store."""
    hints: dict[str, bytes | None] = {}
    for store in {id(tracked_log.store): tracked_log.store for tracked_log in opened_logs}.values():
        store_logs = [tracked_log for tracked_log in opened_logs if tracked_log.store is store]
        data = store.get_many([tracked_log.log.replay.keys.latest for tracked_log in store_logs])
        hints |= {tracked_log.location: hint for tracked_log, hint in zip(store_logs, data, strict=True)}
    return [hints[tracked_log.location] for tracked_log in opened_logs]


def _judge(
    tree: NameTree,
    namespace: LogTarget[NamespaceState],
    kind: str,
    location: str,
    id: str,
    until_us: int,
    dropped_until_us: int,
    orphans: NamespaceOrphans,
) -> None:
    logs = tree.logs
    tracked_log: TrackedLog[Any] = logs.table(location) if kind == TABLE else logs.namespace(location)
    try:
        # The removal settles an undecided transaction, and reads again.
        view = tracked_log.at_its_place()
    except NotFound:
        _judge_folder(namespace, tracked_log, id, until_us, orphans)
        return
    if view.log_id != id:
        return
    link = view.state.link
    if link is None:
        return
    home = logs.namespace(link.namespace)
    at_home = home.current()
    if not view.purged:
        if is_known(at_home.state, id) or (at_home.sealed and not at_home.purged):
            return
        if home.location != namespace.tracked.location and not at_home.purged:
            raise FormatError(
                f"the log at {logs.url(location)} says that it belongs to {logs.url(home.location)}, which does not "
                "know it: the log was forged, or a transaction died that created and moved it. Delete the folder if no "
                "transaction is under way"
            )
        # A location outlives its warehouse, and another warehouse at that URL may have a namespace at the
        # same place.
        if is_elsewhere(location) and _created_us(tracked_log) < _created_us(home) - _SKEW_US:
            raise FormatError(
                f"the table at {logs.url(location)} is older than the namespace {logs.url(home.location)}, which it "
                "says that it is in: it was made in another warehouse, whose folder is gone. Register it, or delete "
                "its folder if it is of no use"
            )
        young = view.time_us > dropped_until_us if view.sealed else _created_us(tracked_log) > until_us
        # A removal of a forgotten log has already begun.
        if young and id not in at_home.state.forgotten:
            return
    entry = NamespaceEntry(kind=kind, id=id, location=location)
    plan = purge.plan_purge(tree, kind, logs.url(location), entry, link=None, only_look=True)
    # The plan reads again. A commit in between may have moved the log, and its new namespace was not checked.
    if plan is not None and plan.view.version == view.version:
        orphans.logs.append(OrphanLog(id, home, plan))


def _judge_folder(
    namespace: LogTarget[NamespaceState],
    tracked: TrackedLog[Any],
    id: str,
    until_us: int,
    orphans: NamespaceOrphans,
) -> None:
    content = all_of(tracked.store, folder(tracked))
    of_first = _of_first_commit(tracked)
    if of_first is None:
        return
    content.objects |= of_first
    if not content.files and not content.objects:
        return
    state = namespace.view.state
    if id in state.forgotten or state.begun.get(id, until_us + 1) <= until_us:
        orphans.folders[tracked.location] = content
    else:
        orphans.begun[tracked.location] = len(content.files)


def _of_first_commit(tracked: TrackedLog[Any]) -> dict[str, int] | None:
    """Return the objects of a first commit that was never made: its lists of files.

    None if the commit exists now.

    Raises FormatError for objects of a log that has had commits: they may be all that is left of a table.
    """
    keys = tracked.log.keys
    sizes = dict(tracked.store.list_sizes(f"{keys.log}/"))
    if keys.commit(1) in sizes:
        return None
    extra = [key for key in sizes if not key.startswith(keys.sidecar(f"{number(1)}-"))]
    if extra:
        raise FormatError(
            f"{tracked.log.replay.at(extra[0])} is of a log whose commits are missing: objects were removed or moved "
            "with other tools. Restore them from a backup, or delete the folder if nothing of it is needed"
        )
    return sizes


def _created_us(tracked: TrackedLog[Any]) -> int:
    first = tracked.log.entry_at(1)
    if first is None:
        raise FormatError(
            f"{tracked.log.replay.at(tracked.log.keys.commit(1))} is missing although later versions exist; restore it "
            "from a backup"
        )
    return first.time_us


def is_known(state: NamespaceState, id: str) -> bool:
    """Return whether a namespace leads to that id, or may do so again."""
    return id in state.dropped or any(entry.id == id for _, _, entry in state.all_logs())


def note(namespace: LogTarget[NamespaceState], orphans: NamespaceOrphans) -> None:
    """Commit which folders are forgotten, so that their content can be deleted, and which are newly met."""
    namespace_log = namespace.tracked

    def decide(view: LogView[NamespaceState], passed_commits: Sequence[Commit]) -> Draft:
        events: list[NamespaceEvent] = []
        for location in list(orphans.folders):
            id = _id_of(location)
            if is_known(view.state, id):
                del orphans.folders[location]
            elif id not in view.state.forgotten:
                events.append(EntryForgotten(id=id))
        begun_ids = {_id_of(location) for location in orphans.begun}
        if begun_ids != view.state.begun.keys():
            contents = orphans.folders.values()
            events.append(
                FilesVacuumed(
                    files=sum(len(content.files) for content in contents),
                    size_bytes=sum(sum(content.files.values()) for content in contents),
                    begun=tuple(sorted(begun_ids)),
                )
            )
        if not events:
            raise _NothingNew
        return Draft(events=encode(events))

    try:
        namespace_log.commit(namespace_log.at_least(namespace.view.version), decide)
    except _NothingNew:
        return
    except LogSealed:
        orphans.folders.clear()  # the namespace was dropped: its own purge deletes them


def remove(tree: NameTree, orphan: OrphanLog) -> bool:
    """Forget a log that no name leads to, then purge it. False if a name leads to it, or may again."""
    home = orphan.home

    def decide(view: LogView[NamespaceState], passed_commits: Sequence[Commit]) -> Draft:
        if is_known(view.state, orphan.id):
            raise _AlreadyForgotten
        if orphan.id in view.state.forgotten:
            raise _NothingNew
        return Draft(events=encode([EntryForgotten(id=orphan.id)]))

    try:
        if not orphan.purge.view.purged:
            home.commit(home.current(), decide)
    except _NothingNew:
        pass
    except _AlreadyForgotten:
        return False
    except LogSealed:
        # Nothing is ever linked in a purged namespace. A namespace that is only dropped may be restored.
        if not home.current().purged:
            return False
    return purge.do(tree, orphan.purge, sealed=False)


def _id_of(location: str) -> str:
    return location[-26:]


class _AlreadyForgotten(LakelogError):
    """Ends a commit that would forget a known id."""


class _NothingNew(LakelogError):
    """Ends a commit without any change."""
