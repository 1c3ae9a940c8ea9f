"""Restoring a warehouse: a backup's objects at their keys in an empty folder, and from there on logs of their own.

The same logs, cut at their versions: history, time travel, tags, branches, ids of rows and positions of streams are
those of the source up to the cut. A log is never cut where it is: that would give versions that others have read to
other commits. So the folder has to be empty, or to hold what an earlier run of this restore has left.

A mark comes first, and goes last. With it, and without the first commit of the root, no client takes the folder for a
warehouse: that commit is the last object of all.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from lakelog.catalog.core.ddl import LOCATION, drop_namespace, undrop_namespace
from lakelog.catalog.core.files import is_elsewhere
from lakelog.catalog.core.logs import LogCache, NameTree, NothingToDo, Progress, TrackedLog, commit_in
from lakelog.catalog.core.state import (
    NAMESPACE,
    EntryPurged,
    EntryUnlinked,
    NamespaceAltered,
    NamespaceEvent,
    NamespaceState,
    encode,
)
from lakelog.catalog.keeping.backups.checking import sound
from lakelog.catalog.keeping.backups.place import (
    DROPPED,
    FORMAT,
    RESTORING,
    TABLE,
    WAREHOUSE,
    Backup,
    BackupPlace,
    LeftOut,
    Listed,
    LogInBackup,
    Restoring,
    check_apart,
    remove_leftovers,
)
from lakelog.catalog.keeping.backups.tables import name_beside
from lakelog.catalog.names import Identifier, quoted
from lakelog.log import Draft, View
from lakelog.log.errors import FormatError, InvalidInput, StorageError
from lakelog.log.expiry import clean_up, last_base
from lakelog.log.keys import Keys
from lakelog.log.settling import create
from lakelog.log.stores import ObjectStore

AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredWarehouse:
    """What was restored: objects copied now and in all, tables, and what the backup did not have."""

    backup: Backup
    objects: int
    copied: int
    copied_bytes: int
    tables: int
    left: tuple[LeftOut, ...]


def restore_warehouse(
    target: LogCache,
    place: BackupPlace,
    id: str | None,
    finish: Callable[[Backup], None],
    progress: Progress,
) -> RestoredWarehouse:
    """Make the warehouse of `target`, an empty folder, what a backup has. InvalidInput where it is not empty. `finish`
    does what is left to do once it is a warehouse, and may be called again."""
    backup = whole_warehouse(target, place, id)
    missing = restore_objects(target, place, backup, progress)
    end_expiry(target, backup)
    unlink_left(target, backup)
    finish(backup)
    remove_leftovers(target.places.store(target.warehouse))
    unmark(target.places.store(target.warehouse))
    return RestoredWarehouse(
        backup=backup,
        objects=backup.objects,
        copied=len(missing),
        copied_bytes=sum(each.size for each in missing),
        tables=len(backup.tables),
        left=backup.left,
    )


def whole_warehouse(target: LogCache, place: BackupPlace, id: str | None) -> Backup:
    """Return the backup of a warehouse that is to be restored to a folder. InvalidInput for another one."""
    backup = place.backup(id)
    if backup.kind != WAREHOUSE:
        raise InvalidInput(
            f"the backup {backup.id} is of the {backup.kind} {quoted(backup.name)}, not of a warehouse: give the table "
            "to restore from it, and the name that it is to have"
        )
    check_apart(target.warehouse, place.store.url, "a warehouse that is restored")
    return backup


def restore_objects(
    target: LogCache, place: BackupPlace, backup: Backup, progress: Progress, *, is_empty: bool = True
) -> list[Listed]:
    """Put what is missing of a backup's objects at their keys, the first commit of the root last, and return these.

    InvalidInput for a folder that holds something else, unless it need not be empty."""
    missing = begin_restore(target, place, backup, is_empty=is_empty)
    store = target.places.store(target.warehouse)

    def put(each: Listed) -> None:
        data = sound(place.store, each)
        if not is_of_a_log(each):
            store.put(each.key, data)
        elif not create(store, each.key, data, target.log_options):
            # Never over what clients may have changed since another run has come to its end.
            check_unfinished(store)
            if not has_root(store):
                store.put(each.key, data)

    copied = 0
    try:
        for batch in _batches(missing):
            target.in_parallel(put, batch)
            copied += len(batch)
            progress(f"object {copied:,} of {len(missing):,}")
    except StorageError as error:
        raise StorageError(
            f"the restore stopped after {copied:,} of {len(missing):,} objects: {error}. Run it again, and it goes on",
            location=error.location,
        ) from error
    except FormatError:
        # What it was to read is gone where another run has finished the copy, and has removed what that needed.
        check_unfinished(store)
        raise
    return missing


def begin_restore(
    target: LogCache, place: BackupPlace, backup: Backup, *, is_empty: bool = True
) -> list[Listed]:
    """Claim the folder, and return the objects that are missing there."""
    objects = place.objects_of(backup)
    claim(target, backup, is_empty=is_empty)
    there = dict(target.places.store(target.warehouse).list_sizes(""))
    if Keys("").commit(1) in there:
        return []  # it was the last one, and clients may have changed others since
    return [each for each in objects if there.get(each.key) != each.size]


def mark_at(store: ObjectStore) -> Restoring | None:
    """Return of which backup a restore to a folder has not ended."""
    found = store.get(RESTORING)
    if found is None:
        return None
    try:
        return msgspec.json.decode(found, type=Restoring)
    except msgspec.MsgspecError as error:
        raise FormatError(f"{store.url}/{RESTORING} cannot be read ({error}): remove the folder") from error


def has_root(store: ObjectStore) -> bool:
    return store.get(Keys("").commit(1)) is not None


def check_unfinished(store: ObjectStore) -> None:
    """InvalidInput for a warehouse that bears no mark: another run has finished it. What only this one has brought is
    of another moment, and what this one would remove may be needed there."""
    if has_root(store) and mark_at(store) is None:
        raise InvalidInput(
            f"{store.url} is a warehouse already, another run has finished it meanwhile, and it goes its own way: "
            "nothing of it was changed"
        )


def unmark(store: ObjectStore) -> None:
    store.delete([RESTORING])


def claim(target: LogCache, backup: Backup, *, is_empty: bool) -> None:
    """Claim the folder for this restore. InvalidInput where it holds something else, if it has to be empty."""
    store = target.places.store(target.warehouse)
    found = mark_at(store)
    if found is None:
        first = next(iter(store.list_after("")), None) if is_empty else None
        if first is not None:
            raise InvalidInput(
                f"{target.warehouse} is not empty, it holds {first!r}: a warehouse is restored to an empty folder. To "
                "get back what a warehouse that is in use has lost, restore tables into it, by their names"
            )
        check_unfinished(store)
        # With an id: a mark of another run of the same backup is not this one's to remove.
        mark = Restoring(format=FORMAT, backup=backup.id, run=target.log_options.new_id())
        if not create(store, RESTORING, msgspec.json.encode(mark), target.log_options):
            found = mark_at(store)
            check_unfinished(store)
        elif has_root(store):
            unmark(store)  # another run has come to its end between the two looks
            check_unfinished(store)
    if found is not None and found.backup != backup.id:
        raise InvalidInput(
            f"a restore of the backup {found.backup} to {target.warehouse} has not ended: go on with that one, or "
            "remove the folder first"
        )


def is_of_a_log(each: Listed) -> bool:
    """Whether an object belongs to a log, a cut or a transaction, and not to the files that these name."""
    return is_key_of_a_log(each.key)


def is_key_of_a_log(key: str) -> bool:
    return key.startswith(("_log/", "_cut/", "_txn/")) or "/_log/" in key or "/_cut/" in key


def _batches(objects: list[Listed]) -> list[list[Listed]]:
    """Return the objects in the order in which they are put, those of a batch side by side: files before the logs that
    name them, the root's log after all others, and its first commit last."""
    root = Keys("")

    def rank(each: Listed) -> int:
        if each.key == root.commit(1):
            return 4
        if each.key.startswith(f"{root.log}/"):
            return 3
        if each.key.startswith(("_cut/", "_txn/")):
            return 2
        return 1 if is_of_a_log(each) else 0

    batches = []
    for wanted in range(5):
        ranked = [each for each in objects if rank(each) == wanted]
        batches += [ranked[begin : begin + AT_ONCE] for begin in range(0, len(ranked), AT_ONCE)]
    return batches


def end_expiry(target: LogCache, backup: Backup) -> None:
    """Make tombstones of all versions that had expired. Where expiry was under way at the source, commits have come
    whose files have not."""

    def end(at: LogInBackup) -> None:
        tracked: TrackedLog[Any] = (
            target.namespace(at.location) if at.kind == NAMESPACE else target.table(at.location)
        )
        base = last_base(tracked.log)
        if base is not None:
            clean_up(tracked.log, base, all_anew=True)

    for begin in range(0, len(backup.logs), AT_ONCE):
        target.in_parallel(end, backup.logs[begin : begin + AT_ONCE])


def unlink_left(target: LogCache, backup: Backup) -> None:
    """Remove the names that lead out of the warehouse, and the locations of namespaces there: what is there is the
    source's, and two warehouses that had it would each drop it for the other, or purge it as an unfinished creation."""
    inside = _Inside(target, backup)
    for at in backup.logs:
        if at.kind == NAMESPACE and not at.dropped:
            inside.make(at.name)


class _Inside:
    """Makes namespaces of a restored warehouse lead to nothing outside that is the source's."""

    def __init__(self, target: LogCache, backup: Backup) -> None:
        self._logs, self._tree = target, NameTree(target)
        # By their places: another run may have come to its end, and clients have put tables elsewhere since.
        self._places = {each.place for each in backup.left if each.kind in (TABLE, DROPPED)}
        self._dropped = {at.location for at in backup.logs if at.kind == NAMESPACE and at.dropped}

    def make(self, path: Identifier) -> None:
        found = self._tree.find_namespace(path)
        if found is None:
            return

        def decide(view: View[NamespaceState], passed: object) -> Draft:
            events = self._events(view.state)
            if not events:
                raise NothingToDo
            return Draft(events=encode(events))

        with suppress(NothingToDo):
            commit_in(found, path, decide, None)
        self._make_dropped(path, found.tracked)

    def _events(self, state: NamespaceState) -> list[NamespaceEvent]:
        events: list[NamespaceEvent] = [
            EntryUnlinked(space=space, name=name, id=entry.id, dropped=False)
            for space, entries in state.entries.items()
            for name, entry in entries.items()
            if self._is_left(entry.location)
        ]
        events += [EntryPurged(id=id) for id, each in state.dropped.items() if self._is_left(each.location)]
        # Tables there have the same places and name the same namespace as those that the source makes there, so no
        # vacuum could show whose they are.
        url = state.properties.get(LOCATION)
        if url is not None and is_elsewhere(self._logs.location(url)):
            events.append(NamespaceAltered(set={}, removed=(LOCATION,)))
        return events

    def _is_left(self, location: str) -> bool:
        return is_elsewhere(location) and location in self._places

    def _make_dropped(self, path: Identifier, tracked: TrackedLog[NamespaceState]) -> None:
        """Do the same for the namespaces that were dropped in this one. A log that is sealed takes no such change, and
        what it leads to would go with it once it is purged: it is brought back for that, and dropped again."""
        for id, each in list(tracked.current().state.dropped.items()):
            if each.space == NAMESPACE and self._leads_out(each.location):
                then = (*path, each.name)
                is_free = self._tree.find_namespace(then) is None
                now = then if is_free else name_beside(then, id[:12])
                undrop_namespace(self._tree, then, id, now, None, inside_only=True)
        # Those of a run that died between the two, too.
        for name, entry in list(tracked.current().state.entries.get(NAMESPACE, {}).items()):
            if entry.location in self._dropped:
                self._make_all((*path, name))
                check_unfinished(self._logs.places.store(self._logs.warehouse))
                drop_namespace(self._tree, (*path, name), cascade=True, token=None)

    def _make_all(self, path: Identifier) -> None:
        self.make(path)
        for name in list(self._tree.namespace(path).view.state.entries.get(NAMESPACE, {})):
            self._make_all((*path, name))

    def _leads_out(self, location: str) -> bool:
        """Return whether a dropped namespace, or one below it, leads out of the warehouse."""
        view = self._logs.namespace(location).current()
        if view.purged:
            return False
        state: NamespaceState = view.state
        below = [entry.location for entry in state.entries.get(NAMESPACE, {}).values()]
        below += [each.location for each in state.dropped.values() if each.space == NAMESPACE]
        return bool(self._events(state)) or any(map(self._leads_out, below))
