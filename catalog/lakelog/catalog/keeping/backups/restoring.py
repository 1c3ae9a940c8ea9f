"""Restoring a warehouse: a backup's objects at their keys in an empty folder.

From then on, its logs are its own.

The logs are the same, cut at their versions. So history, time travel, tags, branches, row ids and stream
positions equal the source's up to the cut. A log is never cut in place because that would give versions that
others have read to other commits. So the folder has to be empty, or to hold the objects of an earlier run of
this restore.

A mark comes first, and is removed last. With the mark, and without the first commit of the root, no client
takes the folder for a warehouse. That commit is written as the last object of all.
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
    ListedObject,
    LogInBackup,
    RestoreMark,
    check_apart,
    first_key,
    remove_leftovers,
)
from lakelog.catalog.keeping.backups.tables import name_beside
from lakelog.catalog.names import Identifier, quoted
from lakelog.log import Draft, LogView
from lakelog.log.decisions import prove_root
from lakelog.log.errors import FormatError, InvalidInput, StorageError
from lakelog.log.expiry import clean_up, last_base
from lakelog.log.keys import LogKeys
from lakelog.log.settling import create
from lakelog.log.stores import ObjectStore

AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredWarehouse:
    """The result of a restore: objects copied now and in total, tables, and the omissions of the backup."""

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
    """Make the warehouse of `target`, an empty folder, from a backup.

    Raises InvalidInput if the folder is not empty. `finish` does the remaining work once it is a warehouse,
    and may be called again.
    """
    backup = whole_warehouse(target, place, id)
    copies = restore_objects(target, place, backup, progress)
    end_expiry(target, backup)
    unlink_left(target, backup)
    finish(backup)
    remove_leftovers(target.places.store(target.warehouse))
    unmark(target.places.store(target.warehouse))
    return RestoredWarehouse(
        backup=backup,
        objects=backup.objects,
        copied=len(copies),
        copied_bytes=sum(entry.size for entry in copies),
        tables=len(backup.tables),
        left=backup.left,
    )


def whole_warehouse(target: LogCache, place: BackupPlace, id: str | None) -> Backup:
    """Return the backup of a warehouse to restore to a folder.

    Raises InvalidInput for a backup of something else.
    """
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
) -> list[ListedObject]:
    """Put a backup's missing objects at their keys, the first commit of the root last, and return them.

    Raises InvalidInput for a folder that holds something else, unless it need not be empty.
    """
    pending = begin_restore(target, place, backup, is_empty=is_empty)
    store = target.places.store(target.warehouse)

    def put(each_object: ListedObject) -> None:
        data = sound(place.store, each_object)
        if not is_of_a_log(each_object):
            store.put(each_object.key, data)
        elif not create(store, each_object.key, data, target.log_options):
            # Never over an object that clients may have changed since another run came to its end.
            check_unfinished(store)
            if not has_root(store):
                store.put(each_object.key, data)

    count = 0
    try:
        for batch in _batches(pending):
            target.in_parallel(put, batch)
            count += len(batch)
            progress(f"object {count:,} of {len(pending):,}")
    except StorageError as error:
        raise StorageError(
            f"the restore stopped after {count:,} of {len(pending):,} objects: {error}. Run it again, and it goes on",
            location=error.location,
        ) from error
    except FormatError:
        # Another run may have finished the copy, and removed the objects that this run reads.
        check_unfinished(store)
        raise
    return pending


def begin_restore(
    target: LogCache, place: BackupPlace, backup: Backup, *, is_empty: bool = True
) -> list[ListedObject]:
    """Claim the folder, and return the objects that are missing there."""
    objects = place.objects_of(backup)
    claim(target, backup, is_empty=is_empty)
    sizes = dict(target.places.store(target.warehouse).list_sizes(""))
    if LogKeys("").commit(1) in sizes:
        return []  # this commit was the last object, and clients may have changed others since
    return [entry for entry in objects if sizes.get(entry.key) != entry.size]


def mark_at(store: ObjectStore) -> RestoreMark | None:
    """Return the mark of an unfinished restore to a folder. None if there is none."""
    data = store.get(RESTORING)
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=RestoreMark)
    except msgspec.MsgspecError as error:
        raise FormatError(f"{store.url}/{RESTORING} cannot be read ({error}): remove the folder") from error


def has_root(store: ObjectStore) -> bool:
    """Return whether a store has the log of a root namespace. Makes a GET request."""
    return store.get(LogKeys("").commit(1)) is not None


def check_unfinished(store: ObjectStore) -> None:
    """Raise InvalidInput for a warehouse without a mark, which another run has finished.

    Objects that only this run brought belong to another moment. Objects that this run would remove may be
    needed there.
    """
    if has_root(store) and mark_at(store) is None:
        raise InvalidInput(
            f"{store.url} is a warehouse already, another run has finished it meanwhile, and it goes its own way: "
            "nothing of it was changed"
        )


def unmark(store: ObjectStore) -> None:
    store.delete([RESTORING])


def claim(target: LogCache, backup: Backup, *, is_empty: bool) -> None:
    """Claim the folder for this restore. Raises InvalidInput if it holds something else, but has to be empty."""
    store = target.places.store(target.warehouse)
    old_mark = mark_at(store)
    if old_mark is None:
        first = first_key(store) if is_empty else None
        if first is not None:
            raise InvalidInput(
                f"{target.warehouse} is not empty, it holds {first!r}: a warehouse is restored to an empty folder. To "
                "get back what a warehouse that is in use has lost, restore tables into it, by their names"
            )
        check_unfinished(store)
        prove_root(store, "", target.log_options)
        # With an id, because this run must not remove a mark of another run of the same backup.
        mark = RestoreMark(format=FORMAT, backup=backup.id, run=target.log_options.new_id())
        if not create(store, RESTORING, msgspec.json.encode(mark), target.log_options):
            old_mark = mark_at(store)
            check_unfinished(store)
        elif has_root(store):
            unmark(store)  # another run has come to its end between the two reads
            check_unfinished(store)
    if old_mark is not None and old_mark.backup != backup.id:
        raise InvalidInput(
            f"a restore of the backup {old_mark.backup} to {target.warehouse} has not ended: go on with that one, or "
            "remove the folder first"
        )


def is_of_a_log(each_object: ListedObject) -> bool:
    """Return whether an object belongs to a log, a cut or a transaction, and not to files that these name."""
    return is_key_of_a_log(each_object.key)


def is_key_of_a_log(key: str) -> bool:
    return key.startswith(("_log/", "_cut/", "_txn/")) or "/_log/" in key or "/_cut/" in key


def _batches(objects: list[ListedObject]) -> list[list[ListedObject]]:
    """Return the objects in the order in which they are stored; a batch is stored in parallel.

    Files come before the logs that name them. The root's log comes after all others, and its first commit
    last.
    """
    root = LogKeys("")

    def rank(each_object: ListedObject) -> int:
        if each_object.key == root.commit(1):
            return 4
        if each_object.key.startswith(f"{root.log}/"):
            return 3
        if each_object.key.startswith(("_cut/", "_txn/")):
            return 2
        return 1 if is_of_a_log(each_object) else 0

    batches = []
    for level in range(5):
        entries = [entry for entry in objects if rank(entry) == level]
        batches += [entries[begin : begin + AT_ONCE] for begin in range(0, len(entries), AT_ONCE)]
    return batches


def end_expiry(target: LogCache, backup: Backup) -> None:
    """Make tombstones of all versions that had expired.

    If expiry was under way at the source, commits have come without their files.
    """

    def end(at: LogInBackup) -> None:
        tracked_log: TrackedLog[Any] = (
            target.namespace(at.location) if at.kind == NAMESPACE else target.table(at.location)
        )
        base = last_base(tracked_log.log)
        if base is not None:
            clean_up(tracked_log.log, base, all_anew=True)

    for begin in range(0, len(backup.logs), AT_ONCE):
        target.in_parallel(end, backup.logs[begin : begin + AT_ONCE])


def unlink_left(target: LogCache, backup: Backup) -> None:
    """Remove the names that lead out of the warehouse, and the locations of namespaces there.

    The objects there belong to the source. If two warehouses had them, each could drop them for the other, or
    purge them as an unfinished creation.
    """
    inside = _Inside(target, backup)
    for at in backup.logs:
        if at.kind == NAMESPACE and not at.dropped:
            inside.make(at.name)


class _Inside:
    """Removes references from a restored warehouse's namespaces to outside objects that belong to the source."""

    def __init__(self, target: LogCache, backup: Backup) -> None:
        self._logs, self._tree = target, NameTree(target)
        # By their places, because another run may have ended, and clients may have put tables elsewhere
        # since.
        self._places = {omission.place for omission in backup.left if omission.kind in (TABLE, DROPPED)}
        self._dropped = {at.location for at in backup.logs if at.kind == NAMESPACE and at.dropped}

    def make(self, path: Identifier) -> None:
        namespace = self._tree.find_namespace(path)
        if namespace is None:
            return

        def decide(view: LogView[NamespaceState], passed: object) -> Draft:
            events = self._events(view.state)
            if not events:
                raise NothingToDo
            return Draft(events=encode(events))

        with suppress(NothingToDo):
            commit_in(namespace, path, decide, None)
        self._make_dropped(path, namespace.tracked)

    def _events(self, state: NamespaceState) -> list[NamespaceEvent]:
        events: list[NamespaceEvent] = [
            EntryUnlinked(space=space, name=name, id=entry.id, dropped=False)
            for space, name, entry in state.all_logs()
            if self._is_left(entry.location)
        ]
        events += [
            EntryPurged(id=drop.entry.id)
            for drop in state.dropped_logs()
            if self._is_left(drop.entry.location)
        ]
        # The source's tables there have the same places, and name the same namespace. So no vacuum could show
        # the owner.
        # vacuum could show whose they are.
        url = state.properties.get(LOCATION)
        if url is not None and is_elsewhere(self._logs.location(url)):
            events.append(NamespaceAltered(set={}, removed=(LOCATION,)))
        return events

    def _is_left(self, location: str) -> bool:
        return is_elsewhere(location) and location in self._places

    def _make_dropped(self, path: Identifier, tracked: TrackedLog[NamespaceState]) -> None:
        """Do the same for the namespaces that were dropped in this namespace.

        A sealed log accepts no such change, and a purge of it would also purge the objects outside. So it is
        restored for the change, and dropped again.
        """
        for child in list(tracked.current().state.dropped_logs()):
            if child.space == NAMESPACE and self._leads_out(child.entry.location):
                id, old_path = child.entry.id, (*path, child.name)
                is_free = self._tree.find_namespace(old_path) is None
                new_path = old_path if is_free else name_beside(old_path, id[:12])
                undrop_namespace(self._tree, old_path, id, new_path, None, inside_only=True)
        # Also the namespaces of a run that died between the two steps.
        for name, entry in list(tracked.current().state.logs(NAMESPACE)):
            if entry.location in self._dropped:
                self._make_all((*path, name))
                check_unfinished(self._logs.places.store(self._logs.warehouse))
                drop_namespace(self._tree, (*path, name), cascade=True, token=None)

    def _make_all(self, path: Identifier) -> None:
        self.make(path)
        for name, _ in list(self._tree.namespace(path).view.state.logs(NAMESPACE)):
            self._make_all((*path, name))

    def _leads_out(self, location: str) -> bool:
        """Return whether a dropped namespace, or a namespace below it, leads out of the warehouse."""
        view = self._logs.namespace(location).current()
        if view.purged:
            return False
        state: NamespaceState = view.state
        below = [entry.location for _, entry in state.logs(NAMESPACE)]
        below += [child.entry.location for child in state.dropped_logs() if child.space == NAMESPACE]
        return bool(self._events(state)) or any(map(self._leads_out, below))
