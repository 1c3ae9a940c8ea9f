"""A copy of a warehouse, a namespace or a table: a backup and its restore at once, in the new folder.

Data files, vectors and manifests are stored at their own keys at once. Objects that can change at the source,
above all commits, stay below `_lakelog_copy/` with their hashes, as in a backup, until a run finishes the
copy. Then they are put in place, the first commit of the root last. Until then, no client takes the folder
for a warehouse, so each further run may bring it up to date. A copy that a run has completed can be finished
without the source.

For a namespace or a table, the logs keep their ids and places, and the namespaces above are created anew.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from lakelog.catalog.core.ddl import drop_table, rename_table
from lakelog.catalog.core.logs import LogCache, NameTree, Progress, TableHead, TrackedLog, no_progress
from lakelog.catalog.core.state import NAMESPACE, RELATION, EntryLinked, NamespaceCreated, encode
from lakelog.catalog.keeping.backups.making import BackedUp
from lakelog.catalog.keeping.backups.place import (
    CUT,
    DROPPED,
    FILE,
    TABLE,
    WAREHOUSE,
    Backup,
    BackupPlace,
    LeftOut,
    ListedObject,
    RunningBackup,
)
from lakelog.catalog.keeping.backups.restoring import (
    check_unfinished,
    claim,
    end_expiry,
    has_root,
    is_key_of_a_log,
    mark_at,
    restore_objects,
    unlink_left,
    unmark,
)
from lakelog.catalog.keeping.backups.tables import copy_table, name_beside
from lakelog.catalog.names import quoted
from lakelog.log import Draft
from lakelog.log.decisions import prove_root
from lakelog.log.errors import AlreadyExists, InvalidInput, LakelogError, StorageError
from lakelog.log.grammar import ROOT_RIGHTS_KEY
from lakelog.log.stores import ObjectStore

FOLDER = "_lakelog_copy/"
RUN = "_run"
ID_LENGTH = 26
DELETED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """The result of a run, and whether the copy is a warehouse now.

    `backup` describes the moment and the contents. `carried` were outside of the warehouse, and are tables of
    the copy now. `left` are not in it.
    """

    backup: Backup
    url: str
    copied: int
    copied_bytes: int
    resumed: bool
    finished: bool
    carried: tuple[LeftOut, ...] = ()

    @property
    def left(self) -> tuple[LeftOut, ...]:
        return tuple(entry for entry in self.backup.left if entry not in self.carried)


class CopyPlace(BackupPlace):
    """A folder that becomes a warehouse.

    The newest run continues. Older runs notice this before they write objects of another moment. Without
    clocks, nothing distinguishes a slow run from a dead run.
    """

    folder: ClassVar[str] = FOLDER
    objects: ClassVar[str] = ""
    _run: bytes | None = None

    def claim(self, root: str, warehouse: str) -> None:
        super().claim(root, warehouse)
        prove_root(self.store, "", self.options)
        self.take_over()

    def take_over(self) -> None:
        """Make this the current run. Raises InvalidInput if another run has made the folder a warehouse."""
        self._run = self.options.new_id().encode()
        self.store.put(f"{FOLDER}{RUN}", self._run)
        self.check_own()

    def check_own(self) -> None:
        """Raise InvalidInput if another run has begun since, or has made the folder a warehouse."""
        if self.has_root() and not self.is_begun():
            # No warehouse needs the objects of this run.
            _delete(self.store, list(self.store.list_after(FOLDER)))
            check_unfinished(self.store)
        if self.store.get(f"{FOLDER}{RUN}") == self._run:
            return
        raise InvalidInput(
            f"another run has begun to copy to {self.store.url} since, and goes on in place of this one: nothing is "
            "lost. Once that has ended, run this again where the copy is to be brought up to date"
        )

    @contextmanager
    def as_own(self) -> Iterator[None]:
        """Raise the error about another run, if that run caused a failure."""
        try:
            yield
        except LakelogError as error:
            if self._run is not None and not isinstance(error, StorageError):
                self.check_own()
            raise

    def begin(self, running_backup: RunningBackup) -> None:
        self.check_own()
        super().begin(running_backup)

    def put_list(self, id: str, objects: Iterable[ListedObject]) -> str:
        self.check_own()
        return super().put_list(id, objects)

    def put_backup(self, backup: Backup) -> None:
        self.check_own()
        super().put_backup(backup)

    def end(self, id: str) -> None:
        self.check_own()
        super().end(id)

    def is_another(self, first: str) -> InvalidInput:
        return InvalidInput(
            f"{self.store.url} is not empty, it holds {first!r}: a copy is made in an empty or new folder, or goes on "
            "in one whose copy is not finished"
        )

    def check_of(self, kind: str, name: tuple[str, ...]) -> None:
        """Raise InvalidInput if the folder has a copy of something else, or a finished copy."""
        if self.has_root():
            if mark_at(self.store) is None:
                raise InvalidInput(
                    f"{self.store.url} is a warehouse already, and goes its own way: copy to an empty folder; or give "
                    "one table and the name that it is to have there"
                )
            return
        if self.identity() is None:
            return
        runs = [(backup.kind, backup.name) for backup in self.running()]
        for of_kind, of_name in (*runs, *((backup.kind, backup.name) for backup in self.backups())):
            if (of_kind, of_name) != (kind, name):
                raise InvalidInput(
                    f"{self.store.url} has the unfinished copy of {of(of_kind, of_name)}, not of "
                    f"{of(kind, name)}: finish that one, or choose another folder"
                )

    def is_begun(self) -> bool:
        """Return whether a run has begun to finish the copy. Then it is finished as it is."""
        return mark_at(self.store) is not None

    def has_root(self) -> bool:
        return has_root(self.store)

    def remove(self, stale: list[str]) -> None:
        """Remove objects that only the copy needed, and `stale` objects.

        The description of the backup is removed last.
        """
        needed_folders = tuple(f"{self.folder}{folder}" for folder in ("backups/", "lists/", "_"))
        keys = [key for key in self.store.list_after(self.folder) if not key.startswith(needed_folders)]
        _delete(self.store, [*stale, *keys])
        unmark(self.store)
        _delete(self.store, list(self.store.list_after(self.folder)))


def finish_copy(
    target: LogCache,
    place: CopyPlace,
    finish: Callable[[Backup], None],
    progress: Progress,
    id: str | None = None,
) -> Backup:
    """Make the folder a warehouse as of a run or of the newest complete run, or continue an attempt.

    Raises NotFound if no run was complete.
    """
    mark = mark_at(place.store)
    backup = place.backup(id if mark is None else mark.backup)
    place.take_over()
    claim(target, backup, is_empty=False)
    kept_names = {name for entry in place.objects_of(backup) for name in (entry.key, entry.stored)}
    # Listed before the check of the root, so that objects of clients after another run's finish are not in
    # the list.
    brought = [*place.known(), *filter(is_key_of_a_log, place.store.list_after(""))]
    if not place.has_root():
        # Objects of logs from other runs would be taken for the rest of damaged logs.
        kept_names.add(ROOT_RIGHTS_KEY)
        _delete(place.store, [key for key in brought if key not in kept_names and not key.startswith(FOLDER)])
    place.check_own()
    restore_objects(target, place, backup, progress, is_empty=False)
    if backup.kind != WAREHOUSE:
        _above(target, backup)
    end_expiry(target, backup)
    unlink_left(target, backup)
    finish(backup)
    place.check_own()
    place.remove(_of_others(place, backup))
    return backup


def of(kind: str, name: tuple[str, ...]) -> str:
    return f"the {kind} {quoted(name)}" if name else "the warehouse"


def carry(
    target: NameTree, backup: Backup, source_of: Callable[[LeftOut, int | None], TableHead | None]
) -> list[LeftOut]:
    """Make tables of the copy from objects outside of the copied warehouse.

    Return the entries of `left` for them.

    `source_of` returns a table of the source, at a version or as it is. A table at a place of its own is
    copied as it is now. A table in the warehouse with files elsewhere is replaced by a table with files of
    its own, as of the copy.
    """
    versions = {at.name: at.version for at in backup.tables}
    carried = []
    for entry in backup.left:
        if entry.kind in (DROPPED, CUT):
            continue
        head = source_of(entry, versions.get(entry.name) if entry.kind == FILE else None)
        if head is None:
            continue  # it was dropped
        carried.append(entry)
        table = target.find_table(entry.name)
        if entry.kind != FILE:
            if table is None:
                copy_table(target, head, entry.name, no_progress)
            continue
        new_name = name_beside(entry.name, hashlib.sha256(backup.id.encode()).hexdigest()[:12])
        if table is not None and table.view.log_id == head.id:
            if target.find_table(new_name) is None:
                copy_table(target, head, new_name, no_progress)
            drop_table(target, entry.name, None)
        if target.find_table(new_name) is not None:
            rename_table(target, new_name, entry.name, None)
    return carried


def outcome(
    finished_backup: BackedUp | None,
    backup: Backup,
    url: str,
    *,
    finished: bool,
    carried: Sequence[LeftOut] = (),
) -> Copied:
    """Return the result of a copy for its report."""
    return Copied(
        backup=backup,
        url=url,
        copied=0 if finished_backup is None else finished_backup.copied,
        copied_bytes=0 if finished_backup is None else finished_backup.copied_bytes,
        resumed=finished_backup is None or finished_backup.resumed,
        finished=finished,
        carried=tuple(carried),
    )


def _delete(store: ObjectStore, keys: list[str]) -> None:
    for begin in range(0, len(keys), DELETED_AT_ONCE):
        store.delete(keys[begin : begin + DELETED_AT_ONCE])


def _of_others(place: BackupPlace, backup: Backup) -> list[str]:
    """Return data files that came only for a clone, which has files of its own now.

    Their table is not in the copy.
    """
    if backup.kind == WAREHOUSE:
        return []
    folders = {at.location for at in backup.logs}
    return [
        entry.stored
        for entry in place.objects_of(backup)
        if "/data/" in entry.key and entry.key.partition("/data/")[0] not in folders
    ]


def _above(target: LogCache, backup: Backup) -> None:
    """Create the namespaces above the copied table or namespace, and finally the root, which leads to it.

    The copied log names the place of its namespace. The namespaces above that may be at any place.
    """
    top = next(at for at in backup.logs if at.name == backup.name and not at.dropped)
    tracked_log: TrackedLog[Any] = (
        target.table(top.location) if backup.kind == TABLE else target.namespace(top.location)
    )
    view = tracked_log.current()
    link = view.state.link
    assert link is not None, "what a name leads to says which"
    space, kind = (RELATION, "table") if backup.kind == TABLE else (NAMESPACE, NAMESPACE)
    link_event = EntryLinked(space=space, name=link.name, kind=kind, id=view.log_id, location=top.location)
    at, names = link.namespace, list(backup.name[:-1])
    while names:
        name = names.pop()
        depth = len(names)
        parent = f"n-{_id(backup, depth)}" if names else ""
        id = at.rpartition("/")[2].removeprefix("n-")
        creation = NamespaceCreated(properties={}, parent=parent, name=name)
        _create(target, at, id, [creation, link_event])
        link_event = EntryLinked(space=NAMESPACE, name=name, kind=NAMESPACE, id=id, location=at)
        at = parent
    _create(target, "", _id(backup, 0), [NamespaceCreated(properties={}), link_event])


def _create(target: LogCache, location: str, id: str, events: list[Any]) -> None:
    try:
        target.namespace(location).create(Draft(events=encode(events)), log_id=id, commit_id=id)
    except AlreadyExists:
        return  # by an earlier run


def _id(backup: Backup, depth: int) -> str:
    """Return the same id each time."""
    digest = hashlib.sha256(f"{backup.id} {depth}".encode()).digest()
    return base64.b32encode(digest).decode().lower()[:ID_LENGTH]
