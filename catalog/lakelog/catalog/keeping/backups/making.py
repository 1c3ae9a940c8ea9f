"""Making a backup: a saved cut keeps its versions, objects are copied, and an object marks it as complete.

The order: the run is noted at the place of backups, and the cut is saved in the source. Objects are copied,
with lists of them now and then. The complete list and the backup itself follow, and only then is the cut
dropped. If a run stops anywhere, the next run finds the note and continues with the same cut. Nothing is read
from an incomplete backup.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from lakelog.catalog.choices import CARRY, LEAVE, REFUSE
from lakelog.catalog.core.ddl import all_cuts, drop_cut, save_cut, versions_of
from lakelog.catalog.core.logs import NameTree, Progress
from lakelog.catalog.core.state import NAMESPACE
from lakelog.catalog.keeping.backups.contents import (
    TRIES_MAX,
    BackupCutGone,
    LogAt,
    LogContents,
    contents_of,
    logs_of,
)
from lakelog.catalog.keeping.backups.place import (
    CUT,
    DROPPED,
    FILE,
    FORMAT,
    TABLE,
    WAREHOUSE,
    Backup,
    BackupPlace,
    LeftOut,
    ListedObject,
    LogInBackup,
    RunningBackup,
    check_apart,
)
from lakelog.catalog.names import Identifier, quoted
from lakelog.log.errors import FormatError, InvalidInput, LakelogError, NotFound, StorageError
from lakelog.log.stores import ObjectStore

COPIES_AT_ONCE = 4
SMALL_AT_ONCE = 64
LISTED_AT_ONCE = 200
"""After so many copies a list of them is written. A next run need not copy these."""


Input = TypeVar("Input")
Output = TypeVar("Output")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedUp:
    """The result of a run: the backup, the copies that it made, and whether it continued an earlier run."""

    backup: Backup
    copied: int
    copied_bytes: int
    resumed: bool


def create_backup(
    tree: NameTree,
    place: BackupPlace,
    name: Identifier,
    *,
    is_table: bool,
    outside: str,
    progress: Progress,
) -> BackedUp:
    """Back up a table, or a namespace with its contents (() is the warehouse), as of a single moment.

    See `Catalog.backup`.
    """
    root = _claimed(tree, place, outside)
    for tries_left in reversed(range(TRIES_MAX)):
        run, continues = _running(tree, place, name, is_table)
        copy_count = copied_bytes = 0
        if place.has(run.id):
            break
        maker = BackupRun(tree, place, run, progress)
        try:
            with _cut_of_a_run(tree, place, run):
                maker.make(root, outside)
        except BackupCutGone:
            # No run can ever continue with its version. The next run can use its copies.
            maker.flush()
            _drop_cut(tree, run)
            place.give_up(run.id)
            if not tries_left:
                raise
            continue
        copy_count, copied_bytes = maker.copied, maker.copied_bytes
        break
    _end(tree, place, run)
    return BackedUp(
        backup=place.backup(run.id), copied=copy_count, copied_bytes=copied_bytes, resumed=continues
    )


def begun(
    tree: NameTree, place: BackupPlace, name: Identifier, *, is_table: bool, outside: str, progress: Progress
) -> tuple[BackupRun, list[tuple[str, int | None]], bool] | None:
    """Begin a backup as `create_backup` does, for an engine that makes the copies.

    Returns the run, the keys and sizes of the objects to copy, and whether it continues an earlier run.
    `create_backup` then finds all of them. None if an earlier run has come to its end.
    """
    _claimed(tree, place, outside)
    run, continues = _running(tree, place, name, is_table)
    if place.has(run.id):
        return None
    maker = BackupRun(tree, place, run, progress)
    try:
        with _cut_of_a_run(tree, place, run):
            return maker, maker.plan(outside), continues
    except BackupCutGone:
        return None  # `create_backup` begins anew


def _claimed(tree: NameTree, place: BackupPlace, outside: str) -> str:
    """Claim the place for this warehouse, and return the id of its root's log."""
    if outside == CARRY:
        raise InvalidInput(
            "outside is 'carry', which only a copy can do: a backup has the objects of the warehouse's folder. Give "
            f"{REFUSE} or {LEAVE}"
        )
    if outside not in (REFUSE, LEAVE):
        raise InvalidInput(f"outside is {outside!r}: give {REFUSE} or {LEAVE}; for a copy {CARRY} too")
    logs = tree.logs
    logs.check_writable()
    check_apart(logs.warehouse, place.store.url, "a place of backups")
    root = logs.namespace("").current().log_id
    place.claim(root, logs.warehouse)
    return root


def kind_of(name: Identifier, *, is_table: bool) -> str:
    """Return the kind of a name in a backup: a table, a namespace or the whole warehouse."""
    return TABLE if is_table else NAMESPACE if name else WAREHOUSE


def _running(
    tree: NameTree, place: BackupPlace, name: Identifier, is_table: bool
) -> tuple[RunningBackup, bool]:
    """Return the run to continue, or note a new run."""
    kind = kind_of(name, is_table=is_table)
    for earlier_run in place.running():
        if (earlier_run.kind, earlier_run.name) != (kind, name):
            continue
        if not place.is_gone(earlier_run.id):
            return earlier_run, True
        _end(tree, place, earlier_run)  # a process gave it up, and died
    id = tree.logs.new_id()
    above = name[:-1] if is_table else name
    new_run = RunningBackup(
        format=FORMAT, id=id, cut=f"backup-{id}", cut_namespace=above, name=name, kind=kind
    )
    place.begin(new_run)
    return new_run, False


def _end(tree: NameTree, place: BackupPlace, running_backup: RunningBackup) -> None:
    _drop_cut(tree, running_backup)
    place.end(running_backup.id)
    _drop_cut(tree, running_backup)  # an older run, which did not know yet, may have saved the cut again


@contextmanager
def _cut_of_a_run(tree: NameTree, place: BackupPlace, running_backup: RunningBackup) -> Iterator[None]:
    """Drop the cut if a failure comes from another process that ended the run.

    That process dropped the cut before, and no other process will.
    """
    try:
        yield
    except LakelogError as error:
        if not isinstance(error, StorageError) and running_backup not in place.running():
            _drop_cut(tree, running_backup)
        raise


def _drop_cut(tree: NameTree, running_backup: RunningBackup) -> None:
    for namespace in {running_backup.cut_namespace, ()}:
        try:
            drop_cut(tree, running_backup.cut, namespace, None)
        except NotFound:
            continue


class BackupRun:
    """A run of a backup."""

    def __init__(
        self, tree: NameTree, place: BackupPlace, running_backup: RunningBackup, progress: Progress
    ) -> None:
        self.tree, self.place, self.running, self.progress = tree, place, running_backup, progress
        self.copied = self.copied_bytes = 0
        place.avoid_doomed()
        self._there = place.sizes()
        self._known = place.known()
        self._all: dict[str, ListedObject] = {}
        self._new: list[ListedObject] = []
        self._borrowing: list[LogAt] = []
        # With the location of their namespace, because a dropped namespace may have had the same name.
        self._cuts: dict[tuple[str, Identifier], frozenset[str]] = {}

    def plan(self, outside: str) -> list[tuple[str, int | None]]:
        """Return the keys and sizes of the objects to copy. Objects that were read for this are stored."""
        logs, _, _ = self._begin(outside)
        todo: dict[str, int | None] = {}
        for number, at in enumerate(logs, start=1):
            self.progress(f"{number:,} of {len(logs):,}: {quoted(at.path) or 'the root'}")
            contents = contents_of(self.tree.logs, at, self.progress)
            stored_objects = self._put_read(contents)
            todo.update(self._needed(contents, stored_objects))
        self.flush()
        return list(todo.items())

    def _begin(self, outside: str) -> tuple[list[LogAt], list[LeftOut], int]:
        """Return the logs, the parts that are left out, and the time of the cut."""
        versions, start, time_us = self._versions()
        logs, omissions = self._chosen(versions, start)
        if outside == REFUSE and (live := [entry for entry in omissions if entry.kind == TABLE]):
            self._refuse(live)
        return logs, omissions, time_us

    def make(self, root: str, outside: str) -> None:
        logs, omissions, time_us = self._begin(outside)
        files: list[LeftOut] = []
        for number, at in enumerate(logs, start=1):
            self.progress(f"{number:,} of {len(logs):,}: {quoted(at.path) or 'the root'}")
            files += self._take(at)
            if outside == REFUSE and (live := [item for item in files if item.kind == FILE]):
                self._refuse(live)
        self.flush()
        objects = sorted(self._all.values(), key=lambda entry: entry.key)
        self.place.put_backup(
            Backup(
                format=FORMAT,
                id=self.running.id,
                # Even after a cut of another namespace, by another clock, the new backup is the newest here.
                time_us=max(time_us, self.place.newest_us() + 1),
                kind=self.running.kind,
                name=self.running.name,
                root=root,
                warehouse=self.tree.logs.warehouse,
                logs=tuple(
                    LogInBackup(
                        kind=at.kind,
                        location=at.location,
                        version=at.version,
                        name=at.path,
                        dropped=at.dropped,
                    )
                    for at in logs
                ),
                left=(*omissions, *files, *self._cuts_in_part(logs)),
                clones=tuple(at.path for at in self._borrowing if not at.dropped),
                objects=len(objects),
                size_bytes=sum(item.size for item in objects),
                list_hash=self.place.put_list(self.running.id, objects),
            )
        )

    def _versions(self) -> tuple[dict[str, int], str, int]:
        """Return the versions of the cut, the place of its namespace, and its time.

        The cut is saved if it does not exist yet. The last commit of the namespace may be far older than the
        cut. If the namespace leads to a log outside of its folder, it has no cut of its own, and the whole
        catalog's cut is used.
        """
        cut, above = self.running.cut, self.running.cut_namespace
        tree = self.tree
        # The root, too, because a namespace may have lost its right to a cut since the run began.
        for namespace in dict.fromkeys((above, ())):
            namespace_head = tree.namespace(namespace) if namespace else tree.root()
            if cut not in all_cuts(tree, namespace):
                try:
                    save_cut(tree, cut, namespace, None)
                except InvalidInput:
                    if not namespace:
                        raise
                    continue
            saved_cut = all_cuts(tree, namespace)[cut]
            return (
                versions_of(namespace_head.tracked, cut, saved_cut),
                namespace_head.tracked.location,
                saved_cut.time_us,
            )
        raise AssertionError("the root always has a cut")

    def _chosen(self, versions: dict[str, int], start: str) -> tuple[list[LogAt], list[LeftOut]]:
        above = self.running.cut_namespace
        logs = self.tree.logs
        begin, path = start, above
        if above and start == "":
            path = ()
        backup_logs, outside = logs_of(logs, versions, begin, path)
        omissions = [
            LeftOut(kind=DROPPED if entry.dropped else TABLE, name=entry.path, place=logs.url(entry.location))
            for entry in outside
        ]
        name = self.running.name
        if self.running.kind == TABLE:
            backup_logs = [
                entry
                for entry in backup_logs
                if entry.path == name and not entry.dropped and entry.kind != NAMESPACE
            ]
            omissions = [entry for entry in omissions if entry.name == name]
            if not backup_logs and not omissions:
                raise NotFound(f"there is no table {quoted(name)}: nothing was backed up")
        else:
            depth = len(name)
            backup_logs = [entry for entry in backup_logs if entry.path[:depth] == name]
            omissions = [entry for entry in omissions if entry.name[:depth] == name]
        return backup_logs, omissions

    def _take(self, at: LogAt) -> list[LeftOut]:
        """Copy the objects of a log. If any of them expires during the copy, start again."""
        logs = self.tree.logs
        for _ in range(TRIES_MAX):
            contents = contents_of(logs, at, self.progress)
            try:
                copies = self._copy(contents)
            except NotFound as error:
                last_error = error
                continue
            self._all |= copies
            self._cuts |= {(at.location, (*at.path, cut)): logs for cut, logs in contents.cuts.items()}
            if contents.borrowed:
                self._borrowing.append(at)
            if contents.borrowed and at.dropped:
                # Its files belong to the source, at the source's places, and no log at another place keeps
                # them.
                return [LeftOut(kind=DROPPED, name=at.path, place=at.location, files=len(contents.borrowed))]
            if not contents.elsewhere:
                return []
            place, kind = sorted(contents.elsewhere)[0], DROPPED if at.dropped else FILE
            return [LeftOut(kind=kind, name=at.path, place=place, files=len(contents.elsewhere))]
        raise FormatError(f"{last_error}: run lakelog fsck on {logs.url(at.location)}") from last_error

    def _cuts_in_part(self, chosen: Sequence[LogAt]) -> list[LeftOut]:
        """Return the saved cuts that a restored warehouse shows only in part, with their missing logs.

        A cut lacks clones, whose files of those versions are not in the backup, and logs that are not in this
        backup.
        """
        paths = {at.location: at.path for at in chosen}
        whole = paths.keys() - {at.location for at in self._borrowing}
        omissions = []
        for (_, cut), locations in self._cuts.items():
            if without := sorted(quoted(paths.get(location, (location,))) for location in locations - whole):
                omissions.append(LeftOut(kind=CUT, name=cut, place=", ".join(without)))
        return omissions

    def _copy(self, contents: LogContents) -> dict[str, ListedObject]:
        source = self.tree.logs.places.store(self.tree.logs.warehouse)
        copies = self._put_read(contents)
        pending = self._needed(contents, copies)
        for begin in range(0, len(pending), COPIES_AT_ONCE):
            if begin:
                self.progress(f"object {begin:,} of {len(pending):,}")
            new_copies = self._each(
                lambda pair: copied(source, pair[0], pair[1], self.place),
                pending[begin : begin + COPIES_AT_ONCE],
            )
            copies |= {item.key: item for item in new_copies}
            self.note(new_copies)
        return copies

    def _put_read(self, contents: LogContents) -> dict[str, ListedObject]:
        """Store the objects whose bytes were read, and return them."""
        entries: dict[str, ListedObject] = {}
        small: list[tuple[ListedObject, bytes]] = []
        for key, data in contents.read.items():
            digest = hashlib.sha256(data).hexdigest()
            new_entry = ListedObject(key, len(data), digest, self.place.stored_name(key, digest))
            entries[key] = new_entry
            if self._there.get(new_entry.stored) != new_entry.size:
                small.append((new_entry, data))
        for begin in range(0, len(small), SMALL_AT_ONCE):
            batch = small[begin : begin + SMALL_AT_ONCE]
            self._each(self._put, batch)
            self.note([put_entry for put_entry, _ in batch])
        return entries

    def _needed(
        self, contents: LogContents, taken_objects: dict[str, ListedObject]
    ) -> list[tuple[str, int | None]]:
        """Return the keys and sizes of the objects to copy.

        Objects that are at the place already are added to `taken_objects`.
        """
        pending: list[tuple[str, int | None]] = []
        for key, size in contents.named.items():
            entry = self._known.get(self.place.stored_name(key, None))
            if (
                entry is not None
                and entry.size == self._there.get(entry.stored)
                and size in (None, entry.size)
            ):
                taken_objects[key] = entry
            else:
                pending.append((key, size))
        return pending

    def _put(self, each: tuple[ListedObject, bytes]) -> None:
        self.place.store.put(each[0].stored, each[1])

    def _each(self, work: Callable[[Input], Output], inputs: Sequence[Input]) -> list[Output]:
        try:
            return self.tree.logs.in_parallel(work, inputs)
        except StorageError as error:
            raise StorageError(
                f"the backup {self.running.id} stopped after {self.copied:,} objects: {error}. Its versions are kept "
                f"by the saved cut {self.running.cut}; run it again, and it goes on",
                location=error.location,
            ) from error

    def note(self, copies: list[ListedObject]) -> None:
        self.copied += len(copies)
        self.copied_bytes += sum(entry.size for entry in copies)
        for entry in copies:
            self._there[entry.stored] = entry.size
            self._known[entry.stored] = entry
        self._new += copies
        if len(self._new) >= LISTED_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        if self._new:
            self.place.put_list(self.running.id, self._new)
            self._new = []

    def _refuse(self, left: list[LeftOut]) -> None:
        """Raise InvalidInput, and leave nothing behind, because another choice begins anew."""
        self.place.give_up(self.running.id)
        _end(self.tree, self.place, self.running)
        names = "; ".join(f"{quoted(entry.name)} at {entry.place}" for entry in left[:5])
        more = f", and {len(left) - 5:,} more" if len(left) > 5 else ""
        raise InvalidInput(
            f"{names}{more} is outside of the warehouse's folder {self.tree.logs.warehouse}, and would not be in the "
            "backup: say that it may be left out (outside => 'leave', --outside leave), or copy it into the warehouse"
        )


def copied(source: ObjectStore, key: str, size: int | None, place: BackupPlace) -> ListedObject:
    """Copy an object that is never written twice, and return its list entry.

    Raises NotFound, and FormatError if its size is wrong.
    """
    with source.open_input(key) as source_file:
        data = source_file.read()
    if size is not None and size != len(data):
        raise FormatError(
            f"{source.url}/{key} has {len(data):,} bytes, and its log says {size:,}: run lakelog fsck"
        )
    entry = ListedObject(key, len(data), hashlib.sha256(data).hexdigest(), place.stored_name(key, None))
    place.store.put(entry.stored, data)
    return entry


def summary(backup: Backup) -> Mapping[str, object]:
    """Return the facts of a backup for programs."""
    return {
        "id": backup.id,
        "as_of": backup.as_of.isoformat(),
        "kind": backup.kind,
        "name": list(backup.name),
        "warehouse": backup.warehouse,
        "tables": len(backup.tables),
        "objects": backup.objects,
        "size_bytes": backup.size_bytes,
        "left": [
            {"kind": entry.kind, "name": list(entry.name), "place": entry.place, "files": entry.files}
            for entry in backup.left
        ],
    }
