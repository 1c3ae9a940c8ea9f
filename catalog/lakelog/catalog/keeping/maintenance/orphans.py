"""Logs and folders that no name leads to: leftovers of unfinished creations.

A creation writes the first commit of a log under a new id, and only then links it in a namespace; a CREATE TABLE AS
SELECT even writes data files before there is a log. A writer that dies in between leaves an object that nothing leads
to; a slow writer has one too, and looks the same. A commit in the namespace that is to link it makes the difference:
`entry-forgotten`. From then on a link of that id fails, so that no reader will ever see it, whatever its creator still
does. The age decides only when that commit is made.

That commit is made in the namespace in whose folder the log is, and in no other. A log that names another one was moved
there, which knows it, or was purged with it; else it may be forged, and is left alone.

It is safe for a log that was linked once, too. A move, drop or restore of it writes into its own log. So if that log
has not changed between the read, which names the namespace that it belongs to, and the commit that seals it for good,
then in all that time it can have been linked only there; and there it was not linked when it was forgotten.

A folder without a log has no time. The namespace records which ones vacuum has met; the age counts from then on.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakelog.catalog.core.ddl import table_folders
from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import LogCache, NameTree, Scope, Target, TrackedLog, Unreadable
from lakelog.catalog.core.state import (
    NAMESPACE,
    TABLE,
    Entry,
    EntryForgotten,
    FilesVacuumed,
    NamespaceEvent,
    NamespaceState,
    TableState,
    encode,
)
from lakelog.catalog.keeping.maintenance import purge
from lakelog.catalog.keeping.maintenance.purge import Content, Purge, all_of, folder
from lakelog.log import Commit, Draft, View
from lakelog.log.errors import FormatError, LakelogError, LogSealed, NotFound
from lakelog.log.keys import number

BATCH = 64

_SKEW_US = 60 * 60 * 1_000_000
"""By how much clocks of clients may differ, where one made the namespace and another a table in it."""

_FOLDER = re.compile(r"([nt])-([a-z2-7]{26})")


@dataclass(frozen=True, slots=True)
class Orphan:
    """A log that no name leads to, and the namespace that it was made for."""

    id: str
    home: TrackedLog[NamespaceState]
    purge: Purge


@dataclass(slots=True)
class Orphans:
    """The findings in one namespace: logs, and by their locations folders without one; `begun` ones may still be
    under way."""

    logs: list[Orphan] = field(default_factory=list)
    folders: dict[str, Content] = field(default_factory=dict)
    begun: dict[str, int] = field(default_factory=dict)
    unreadable: list[Unreadable] = field(default_factory=list)


def known_places(scope: Scope) -> set[str]:
    """Return the locations that the namespaces in `scope` know, linked or dropped."""
    known: set[str] = set()
    for namespace in scope.namespaces:
        state = namespace.view.state
        known.update(entry.location for names in state.entries.values() for entry in names.values())
        known.update(dropped.location for dropped in state.dropped.values())
    return known


def find(
    tree: NameTree,
    namespace: Target[NamespaceState],
    known: Collection[str],
    until_us: int,
    dropped_until_us: int,
) -> Orphans:
    """Return the logs and folders in a namespace's folders that are not `known` and were made at `until_us` or before.

    Costs a LIST of each of its folders (one, and one more for each `location` it has or had) and a GET for each one
    that is not known; more only for those that are not purged yet.
    """
    found = Orphans()
    for kind, location, id in _unknown(tree.logs, namespace, known):
        try:
            _judge(tree, namespace, kind, location, id, until_us, dropped_until_us, found)
        except LakelogError as error:
            url = tree.logs.url(location)
            found.unreadable.append(Unreadable(kind, url, url, str(error)))
    return found


def unlinked(
    logs: LogCache, namespace: Target[NamespaceState], known: Collection[str]
) -> Iterator[TrackedLog[TableState]]:
    """Yield the tables' places in a namespace's folders that are not `known`, whatever their age: of creations that
    were stopped, or are under way. Costs as `find` does."""
    for kind, location, _ in _unknown(logs, namespace, known):
        if kind == TABLE:
            yield logs.table(location)


def unfinished(tree: NameTree, tracked: TrackedLog[TableState], view: View[TableState]) -> Orphan | None:
    """Return a table to which no name leads, whatever its age, to be removed; None where one does, or may again. Also
    where anything came in since `view`, by which it may have moved: its new namespace has not been asked."""
    link = view.state.link
    if link is None:
        return None
    home = tree.logs.namespace(link.namespace)
    at_home = home.current()
    if at_home.sealed or is_known(at_home.state, view.log_id):
        return None
    entry = Entry(kind=TABLE, id=view.log_id, location=tracked.location)
    planned = purge.plan_purge(tree, TABLE, tree.logs.url(tracked.location), entry, link=None, only_look=True)
    if planned is None or planned.view.version != view.version:
        return None
    return Orphan(view.log_id, home, planned)


def _unknown(
    logs: LogCache, namespace: Target[NamespaceState], known: Collection[str]
) -> Iterator[tuple[str, str, str]]:
    """Yield kind, location and id of each folder that is not known, except for logs that were purged completely."""
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
        opened = [logs.unread(location) for _, location, _ in batch]
        hints = hints_of(opened)
        for found, tracked, hint in zip(batch, opened, hints, strict=True):
            replay = tracked.log.replay
            root = replay.root_or_none(replay.keys.latest, hint)
            # The hint of a purged log is written last of all. A wrong one only costs space.
            if root is None or not root.purged or root.log_id != found[2]:
                yield found


def hints_of(opened: Sequence[TrackedLog[Any]]) -> list[bytes | None]:
    """Return the object at the hint of each log: one round for each store."""
    found: dict[str, bytes | None] = {}
    for store in {id(tracked.store): tracked.store for tracked in opened}.values():
        here = [tracked for tracked in opened if tracked.store is store]
        data = store.get_many([tracked.log.replay.keys.latest for tracked in here])
        found |= {tracked.location: hint for tracked, hint in zip(here, data, strict=True)}
    return [found[tracked.location] for tracked in opened]


def _judge(
    tree: NameTree,
    namespace: Target[NamespaceState],
    kind: str,
    location: str,
    id: str,
    until_us: int,
    dropped_until_us: int,
    found: Orphans,
) -> None:
    logs = tree.logs
    tracked: TrackedLog[Any] = logs.table(location) if kind == TABLE else logs.namespace(location)
    try:
        # The removal settles an undecided transaction, and reads again.
        view = tracked.at_its_place()
    except NotFound:
        _judge_folder(namespace, tracked, id, until_us, found)
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
        # A location outlives its warehouse, and another one at that URL may have a namespace at the same place.
        if is_elsewhere(location) and _created_us(tracked) < _created_us(home) - _SKEW_US:
            raise FormatError(
                f"the table at {logs.url(location)} is older than the namespace {logs.url(home.location)}, which it "
                "says that it is in: it was made in another warehouse, whose folder is gone. Register it, or delete "
                "its folder if it is of no use"
            )
        young = view.time_us > dropped_until_us if view.sealed else _created_us(tracked) > until_us
        # One that was forgotten is being removed already.
        if young and id not in at_home.state.forgotten:
            return
    entry = Entry(kind=kind, id=id, location=location)
    planned = purge.plan_purge(tree, kind, logs.url(location), entry, link=None, only_look=True)
    # The plan reads again. What came in between may have moved it, and its new namespace has not been asked.
    if planned is not None and planned.view.version == view.version:
        found.logs.append(Orphan(id, home, planned))


def _judge_folder(
    namespace: Target[NamespaceState], tracked: TrackedLog[Any], id: str, until_us: int, found: Orphans
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
        found.folders[tracked.location] = content
    else:
        found.begun[tracked.location] = len(content.files)


def _of_first_commit(tracked: TrackedLog[Any]) -> dict[str, int] | None:
    """Return what a first commit that was never made has written: its lists of files. None where the commit has been
    made meanwhile. FormatError for objects of a log that has had commits: they may be all that is left of a table."""
    keys = tracked.log.keys
    there = dict(tracked.store.list_sizes(f"{keys.log}/"))
    if keys.commit(1) in there:
        return None
    others = [key for key in there if not key.startswith(keys.sidecar(f"{number(1)}-"))]
    if others:
        raise FormatError(
            f"{tracked.log.replay.at(others[0])} is of a log whose commits are missing: objects were removed or moved "
            "with other tools. Restore them from a backup, or delete the folder if nothing of it is needed"
        )
    return there


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
    return id in state.dropped or any(
        entry.id == id for names in state.entries.values() for entry in names.values()
    )


def note(namespace: Target[NamespaceState], found: Orphans) -> None:
    """Commit which folders are forgotten, so that their content can be deleted, and which were met; only new ones."""
    tracked = namespace.tracked

    def decide(view: View[NamespaceState], passed: Sequence[Commit]) -> Draft:
        events: list[NamespaceEvent] = []
        for location in list(found.folders):
            id = _id_of(location)
            if is_known(view.state, id):
                del found.folders[location]
            elif id not in view.state.forgotten:
                events.append(EntryForgotten(id=id))
        begun = {_id_of(location) for location in found.begun}
        if begun != view.state.begun.keys():
            contents = found.folders.values()
            events.append(
                FilesVacuumed(
                    files=sum(len(content.files) for content in contents),
                    size_bytes=sum(sum(content.files.values()) for content in contents),
                    begun=tuple(sorted(begun)),
                )
            )
        if not events:
            raise _NothingNew
        return Draft(events=encode(events))

    try:
        tracked.commit(tracked.at_least(namespace.view.version), decide)
    except _NothingNew:
        return
    except LogSealed:
        found.folders.clear()  # dropped meanwhile: its own purge deletes them


def remove(tree: NameTree, orphan: Orphan) -> bool:
    """Forget a log that no name leads to, then purge it. False where a name leads to it, or may again."""
    home = orphan.home

    def decide(view: View[NamespaceState], passed: Sequence[Commit]) -> Draft:
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
        # Nothing is ever linked in a purged namespace; one that is only dropped may be restored.
        if not home.current().purged:
            return False
    return purge.do(tree, orphan.purge, sealed=False)


def _id_of(location: str) -> str:
    return location[-26:]


class _AlreadyForgotten(LakelogError):
    """Ends a commit that would forget a known id."""


class _NothingNew(LakelogError):
    """Ends a commit that would have nothing new."""
