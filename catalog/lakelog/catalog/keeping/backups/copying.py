"""A copy of a warehouse, a namespace or a table: a backup and its restore in one, in the folder of the new warehouse.

Data files, vectors and manifests are put at their own keys at once. What can change at the source, commits first of
all, stands below `_lakelog_copy/` with its hash, as in a backup, until a run finishes the copy: then it is put
in place, the first commit of the root last. Until then no client takes the folder for a warehouse, so each further run
may bring it up to date, and what a run has brought whole can be finished without the source.

Of a namespace or a table the logs come with their ids, at their places; the namespaces above are made anew.
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
    Listed,
    Running,
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
from lakelog.log.errors import AlreadyExists, InvalidInput, LakelogError, StorageError
from lakelog.log.stores import ObjectStore

FOLDER = "_lakelog_copy/"
RUN = "_run"
ID_LENGTH = 26
DELETED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """What a run has copied, and whether the copy is a warehouse now. `backup` says of which moment and what it is.
    `carried` were outside of the warehouse, and are tables of the copy now; `left` are not in it."""

    backup: Backup
    url: str
    copied: int
    copied_bytes: int
    resumed: bool
    finished: bool
    carried: tuple[LeftOut, ...] = ()

    @property
    def left(self) -> tuple[LeftOut, ...]:
        return tuple(each for each in self.backup.left if each not in self.carried)


class CopyPlace(BackupPlace):
    """A folder that is to become a warehouse.

    The run that began last goes on; those that it has overtaken see that before they write what would be of another
    moment. Without clocks, nothing distinguishes a run that is slow from one that died.
    """

    folder: ClassVar[str] = FOLDER
    objects: ClassVar[str] = ""
    _run: bytes | None = None

    def claim(self, root: str, warehouse: str) -> None:
        super().claim(root, warehouse)
        self.take_over()

    def take_over(self) -> None:
        """Make this the run that goes on. InvalidInput where another one has made the folder a warehouse."""
        self._run = self.options.new_id().encode()
        self.store.put(f"{FOLDER}{RUN}", self._run)
        self.check_own()

    def check_own(self) -> None:
        """InvalidInput where another run has begun since, or has made the folder a warehouse."""
        if self.has_root() and not self.is_begun():
            # No warehouse needs what this run has put there.
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
        """Fail by what another run has done, where that is why something failed."""
        try:
            yield
        except LakelogError as error:
            if self._run is not None and not isinstance(error, StorageError):
                self.check_own()
            raise

    def begin(self, running: Running) -> None:
        self.check_own()
        super().begin(running)

    def put_list(self, id: str, objects: Iterable[Listed]) -> str:
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
        """InvalidInput where the folder has a copy of something else, or a finished one."""
        if self.has_root():
            if mark_at(self.store) is None:
                raise InvalidInput(
                    f"{self.store.url} is a warehouse already, and goes its own way: copy to an empty folder; or give "
                    "one table and the name that it is to have there"
                )
            return
        if self.identity() is None:
            return
        begun = [(each.kind, each.name) for each in self.running()]
        for of_kind, of_name in (*begun, *((each.kind, each.name) for each in self.backups())):
            if (of_kind, of_name) != (kind, name):
                raise InvalidInput(
                    f"{self.store.url} has the unfinished copy of {of(of_kind, of_name)}, not of "
                    f"{of(kind, name)}: finish that one, or choose another folder"
                )

    def is_begun(self) -> bool:
        """Whether a run has begun to finish the copy: then it is finished as it is."""
        return mark_at(self.store) is not None

    def has_root(self) -> bool:
        return has_root(self.store)

    def remove(self, stale: list[str]) -> None:
        """Remove what only the copy needed, and `stale` objects; what says of which backup it is goes last."""
        needed = tuple(f"{self.folder}{each}" for each in ("backups/", "lists/", "_"))
        all_ = [key for key in self.store.list_after(self.folder) if not key.startswith(needed)]
        _delete(self.store, [*stale, *all_])
        unmark(self.store)
        _delete(self.store, list(self.store.list_after(self.folder)))


def finish_copy(
    target: LogCache,
    place: CopyPlace,
    finish: Callable[[Backup], None],
    progress: Progress,
    id: str | None = None,
) -> Backup:
    """Make the folder a warehouse as of a run, or the newest that was whole, or go on with what was begun. NotFound
    where none was."""
    mark = mark_at(place.store)
    backup = place.backup(id if mark is None else mark.backup)
    place.take_over()
    claim(target, backup, is_empty=False)
    kept = {name for each in place.objects_of(backup) for name in (each.key, each.stored)}
    # Listed before the look at the root: what clients write once another run has finished the copy is not among it.
    brought = [*place.known(), *filter(is_key_of_a_log, place.store.list_after(""))]
    if not place.has_root():
        # What later runs or earlier ones have brought of logs would be taken for the rest of damaged ones.
        _delete(place.store, [key for key in brought if key not in kept and not key.startswith(FOLDER)])
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
    """Make tables of the copy of what is outside of the warehouse that was copied, and return what has become one.

    `source_of` returns a table of the source, at a version or as it is. A table at a place of its own is made as it is
    now; one in the warehouse that has files elsewhere is replaced by one with files of its own, as of the copy.
    """
    versions = {at.name: at.version for at in backup.tables}
    carried = []
    for left in backup.left:
        if left.kind in (DROPPED, CUT):
            continue
        head = source_of(left, versions.get(left.name) if left.kind == FILE else None)
        if head is None:
            continue  # it was dropped
        carried.append(left)
        found = target.find_table(left.name)
        if left.kind != FILE:
            if found is None:
                copy_table(target, head, left.name, no_progress)
            continue
        beside = name_beside(left.name, hashlib.sha256(backup.id.encode()).hexdigest()[:12])
        if found is not None and found.view.log_id == head.id:
            if target.find_table(beside) is None:
                copy_table(target, head, beside, no_progress)
            drop_table(target, left.name, None)
        if target.find_table(beside) is not None:
            rename_table(target, beside, left.name, None)
    return carried


def outcome(
    done: BackedUp | None, backup: Backup, url: str, *, finished: bool, carried: Sequence[LeftOut] = ()
) -> Copied:
    return Copied(
        backup=backup,
        url=url,
        copied=0 if done is None else done.copied,
        copied_bytes=0 if done is None else done.copied_bytes,
        resumed=done is None or done.resumed,
        finished=finished,
        carried=tuple(carried),
    )


def _delete(store: ObjectStore, keys: list[str]) -> None:
    for begin in range(0, len(keys), DELETED_AT_ONCE):
        store.delete(keys[begin : begin + DELETED_AT_ONCE])


def _of_others(place: BackupPlace, backup: Backup) -> list[str]:
    """Return the data files that came for a clone alone, which has files of its own now: the table that they are of is
    not in the copy."""
    if backup.kind == WAREHOUSE:
        return []
    folders = {at.location for at in backup.logs}
    return [
        each.stored
        for each in place.objects_of(backup)
        if "/data/" in each.key and each.key.partition("/data/")[0] not in folders
    ]


def _above(target: LogCache, backup: Backup) -> None:
    """Make the namespaces above what was copied, and the root, which leads to it, last of all.

    The log of what was copied says at which place the namespace is that links it. Those above that are at any place.
    """
    top = next(at for at in backup.logs if at.name == backup.name and not at.dropped)
    tracked: TrackedLog[Any] = (
        target.table(top.location) if backup.kind == TABLE else target.namespace(top.location)
    )
    view = tracked.current()
    link = view.state.link
    assert link is not None, "what a name leads to says which"
    space, kind = (RELATION, "table") if backup.kind == TABLE else (NAMESPACE, NAMESPACE)
    linked = EntryLinked(space=space, name=link.name, kind=kind, id=view.log_id, location=top.location)
    at, names = link.namespace, list(backup.name[:-1])
    while names:
        name = names.pop()
        depth = len(names)
        parent = f"n-{_id(backup, depth)}" if names else ""
        id = at.rpartition("/")[2].removeprefix("n-")
        created = NamespaceCreated(properties={}, parent=parent, name=name)
        _create(target, at, id, [created, linked])
        linked = EntryLinked(space=NAMESPACE, name=name, kind=NAMESPACE, id=id, location=at)
        at = parent
    _create(target, "", _id(backup, 0), [NamespaceCreated(properties={}), linked])


def _create(target: LogCache, location: str, id: str, events: list[Any]) -> None:
    try:
        target.namespace(location).create(Draft(events=encode(events)), log_id=id, commit_id=id)
    except AlreadyExists:
        return  # by an earlier run


def _id(backup: Backup, depth: int) -> str:
    """Return the same id each time."""
    digest = hashlib.sha256(f"{backup.id} {depth}".encode()).digest()
    return base64.b32encode(digest).decode().lower()[:ID_LENGTH]
