"""Making a backup: a saved cut keeps its versions, its objects are copied, and one object says that it is whole.

The order: what has begun is noted at the place of backups, the cut is saved in the source, objects are copied, with
lists of these now and then, the list of all, the backup itself, and only then the cut is dropped. Stopped anywhere, a
next run finds what was noted and goes on with the same cut. Nothing is read from a backup that is not whole.
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
    Contents,
    LogAt,
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
    Listed,
    LogInBackup,
    Running,
    check_apart,
)
from lakelog.catalog.names import Identifier, quoted
from lakelog.log.errors import FormatError, InvalidInput, LakelogError, NotFound, StorageError
from lakelog.log.stores import ObjectStore

COPIES_AT_ONCE = 4
SMALL_AT_ONCE = 64
LISTED_AT_ONCE = 200
"""After so many copies a list of them is written: what a next run need not copy."""


Input = TypeVar("Input")
Output = TypeVar("Output")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedUp:
    """What a run has done: the backup, what of it was copied now, and whether it went on with an earlier run."""

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
    """Back up a table, or a namespace with all below it, () for the warehouse, as of one moment: `Catalog.backup`."""
    root = _claimed(tree, place, outside)
    for tries_left in reversed(range(TRIES_MAX)):
        running, resumed = _running(tree, place, name, is_table)
        copied = copied_bytes = 0
        if place.has(running.id):
            break
        made = Making(tree, place, running, progress)
        try:
            with _cut_of_a_run(tree, place, running):
                made.make(root, outside)
        except BackupCutGone:
            # No run could go on with its version, ever. What it has copied is of use for the next one.
            made.flush()
            _drop_cut(tree, running)
            place.give_up(running.id)
            if not tries_left:
                raise
            continue
        copied, copied_bytes = made.copied, made.copied_bytes
        break
    _end(tree, place, running)
    return BackedUp(
        backup=place.backup(running.id), copied=copied, copied_bytes=copied_bytes, resumed=resumed
    )


def begun(
    tree: NameTree, place: BackupPlace, name: Identifier, *, is_table: bool, outside: str, progress: Progress
) -> tuple[Making, list[tuple[str, int | None]], bool] | None:
    """Begin a backup as `create_backup`, and return it with the keys and sizes of what is to be copied, for an engine
    that does that, and whether it goes on with an earlier run. `create_backup` then finds all of it. None where an
    earlier run has come to its end."""
    _claimed(tree, place, outside)
    running, resumed = _running(tree, place, name, is_table)
    if place.has(running.id):
        return None
    making = Making(tree, place, running, progress)
    try:
        with _cut_of_a_run(tree, place, running):
            return making, making.plan(outside), resumed
    except BackupCutGone:
        return None  # `create_backup` begins anew


def _claimed(tree: NameTree, place: BackupPlace, outside: str) -> str:
    """Make the place one of this warehouse, and return the id of its root's log."""
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
    return TABLE if is_table else NAMESPACE if name else WAREHOUSE


def _running(tree: NameTree, place: BackupPlace, name: Identifier, is_table: bool) -> tuple[Running, bool]:
    """Return the run to go on with, or note a new one."""
    kind = kind_of(name, is_table=is_table)
    for found in place.running():
        if (found.kind, found.name) != (kind, name):
            continue
        if not place.is_gone(found.id):
            return found, True
        _end(tree, place, found)  # it was given up by a process that died
    id = tree.logs.new_id()
    above = name[:-1] if is_table else name
    running = Running(format=FORMAT, id=id, cut=f"backup-{id}", cut_namespace=above, name=name, kind=kind)
    place.begin(running)
    return running, False


def _end(tree: NameTree, place: BackupPlace, running: Running) -> None:
    _drop_cut(tree, running)
    place.end(running.id)
    _drop_cut(tree, running)  # a run that was overtaken, and did not know it yet, may have saved it anew


@contextmanager
def _cut_of_a_run(tree: NameTree, place: BackupPlace, running: Running) -> Iterator[None]:
    """Drop the cut where this fails as another one has come to the end of the run: that has dropped it before, and no
    other will."""
    try:
        yield
    except LakelogError as error:
        if not isinstance(error, StorageError) and running not in place.running():
            _drop_cut(tree, running)
        raise


def _drop_cut(tree: NameTree, running: Running) -> None:
    for namespace in {running.cut_namespace, ()}:
        try:
            drop_cut(tree, running.cut, namespace, None)
        except NotFound:
            continue


class Making:
    """One run of a backup."""

    def __init__(self, tree: NameTree, place: BackupPlace, running: Running, progress: Progress) -> None:
        self.tree, self.place, self.running, self.progress = tree, place, running, progress
        self.copied = self.copied_bytes = 0
        place.avoid_doomed()
        self._there = place.sizes()
        self._known = place.known()
        self._all: dict[str, Listed] = {}
        self._new: list[Listed] = []
        self._borrowing: list[LogAt] = []
        # With the location of their namespace: a dropped one may have had the same name.
        self._cuts: dict[tuple[str, Identifier], frozenset[str]] = {}

    def plan(self, outside: str) -> list[tuple[str, int | None]]:
        """Return the keys and sizes of what has to be copied; what was read for that is put."""
        chosen, _, _ = self._begin(outside)
        todo: dict[str, int | None] = {}
        for number, at in enumerate(chosen, start=1):
            self.progress(f"{number:,} of {len(chosen):,}: {quoted(at.path) or 'the root'}")
            contents = contents_of(self.tree.logs, at, self.progress)
            taken = self._put_read(contents)
            todo.update(self._needed(contents, taken))
        self.flush()
        return list(todo.items())

    def _begin(self, outside: str) -> tuple[list[LogAt], list[LeftOut], int]:
        """Return the logs, what is left out, and the time of the cut."""
        versions, start, time_us = self._versions()
        chosen, left = self._chosen(versions, start)
        if outside == REFUSE and (live := [each for each in left if each.kind == TABLE]):
            self._refuse(live)
        return chosen, left, time_us

    def make(self, root: str, outside: str) -> None:
        chosen, left, time_us = self._begin(outside)
        files: list[LeftOut] = []
        for number, at in enumerate(chosen, start=1):
            self.progress(f"{number:,} of {len(chosen):,}: {quoted(at.path) or 'the root'}")
            files += self._take(at)
            if outside == REFUSE and (live := [each for each in files if each.kind == FILE]):
                self._refuse(live)
        self.flush()
        objects = sorted(self._all.values(), key=lambda each: each.key)
        self.place.put_backup(
            Backup(
                format=FORMAT,
                id=self.running.id,
                # After a cut of another namespace, by another clock, it is the newest here all the same.
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
                    for at in chosen
                ),
                left=(*left, *files, *self._cuts_in_part(chosen)),
                clones=tuple(at.path for at in self._borrowing if not at.dropped),
                objects=len(objects),
                size_bytes=sum(each.size for each in objects),
                list_hash=self.place.put_list(self.running.id, objects),
            )
        )

    def _versions(self) -> tuple[dict[str, int], str, int]:
        """Return the versions of the cut, which is saved where that has not happened, the place of its namespace, and
        its time: the last commit of that namespace may be far older.

        Where the namespace leads to a log outside of its folder, which has no cut of its own, the whole catalog's is.
        """
        cut, above = self.running.cut, self.running.cut_namespace
        tree = self.tree
        # The root, too: a namespace may have lost its right to a cut since the run began.
        for namespace in dict.fromkeys((above, ())):
            found = tree.namespace(namespace) if namespace else tree.root()
            if cut not in all_cuts(tree, namespace):
                try:
                    save_cut(tree, cut, namespace, None)
                except InvalidInput:
                    if not namespace:
                        raise
                    continue
            saved = all_cuts(tree, namespace)[cut]
            return versions_of(found.tracked, cut, saved), found.tracked.location, saved.time_us
        raise AssertionError("the root always has a cut")

    def _chosen(self, versions: dict[str, int], start: str) -> tuple[list[LogAt], list[LeftOut]]:
        above = self.running.cut_namespace
        logs = self.tree.logs
        begin, path = start, above
        if above and start == "":
            path = ()
        chosen, outside = logs_of(logs, versions, begin, path)
        left = [
            LeftOut(kind=DROPPED if each.dropped else TABLE, name=each.path, place=logs.url(each.location))
            for each in outside
        ]
        wanted = self.running.name
        if self.running.kind == TABLE:
            chosen = [
                each for each in chosen if each.path == wanted and not each.dropped and each.kind != NAMESPACE
            ]
            left = [each for each in left if each.name == wanted]
            if not chosen and not left:
                raise NotFound(f"there is no table {quoted(wanted)}: nothing was backed up")
        else:
            depth = len(wanted)
            chosen = [each for each in chosen if each.path[:depth] == wanted]
            left = [each for each in left if each.name[:depth] == wanted]
        return chosen, left

    def _take(self, at: LogAt) -> list[LeftOut]:
        """Copy what a log consists of, again from its start where something has expired meanwhile."""
        logs = self.tree.logs
        for _ in range(TRIES_MAX):
            contents = contents_of(logs, at, self.progress)
            try:
                taken = self._copy(contents)
            except NotFound as error:
                missing = error
                continue
            self._all |= taken
            self._cuts |= {(at.location, (*at.path, cut)): logs for cut, logs in contents.cuts.items()}
            if contents.borrowed:
                self._borrowing.append(at)
            if contents.borrowed and at.dropped:
                # Its files are the source's, at the source's places, and nothing at another place keeps them.
                return [LeftOut(kind=DROPPED, name=at.path, place=at.location, files=len(contents.borrowed))]
            if not contents.elsewhere:
                return []
            place, kind = sorted(contents.elsewhere)[0], DROPPED if at.dropped else FILE
            return [LeftOut(kind=kind, name=at.path, place=place, files=len(contents.elsewhere))]
        raise FormatError(f"{missing}: run lakelog fsck on {logs.url(at.location)}") from missing

    def _cuts_in_part(self, chosen: Sequence[LogAt]) -> list[LeftOut]:
        """Return the saved cuts that no restored warehouse shows in whole, with what each lacks: clones, of whose
        versions of then it has no files, and logs that are not in this backup."""
        here = {at.location: at.path for at in chosen}
        whole = here.keys() - {at.location for at in self._borrowing}
        found = []
        for (_, cut), locations in self._cuts.items():
            if without := sorted(quoted(here.get(each, (each,))) for each in locations - whole):
                found.append(LeftOut(kind=CUT, name=cut, place=", ".join(without)))
        return found

    def _copy(self, contents: Contents) -> dict[str, Listed]:
        source = self.tree.logs.places.store(self.tree.logs.warehouse)
        taken = self._put_read(contents)
        named = self._needed(contents, taken)
        for begin in range(0, len(named), COPIES_AT_ONCE):
            if begin:
                self.progress(f"object {begin:,} of {len(named):,}")
            copies = self._each(
                lambda each: copied(source, each[0], each[1], self.place),
                named[begin : begin + COPIES_AT_ONCE],
            )
            taken |= {each.key: each for each in copies}
            self.note(copies)
        return taken

    def _put_read(self, contents: Contents) -> dict[str, Listed]:
        """Put the objects whose bytes are here, and return them."""
        taken: dict[str, Listed] = {}
        small: list[tuple[Listed, bytes]] = []
        for key, data in contents.read.items():
            digest = hashlib.sha256(data).hexdigest()
            listed = Listed(key, len(data), digest, self.place.stored_name(key, digest))
            taken[key] = listed
            if self._there.get(listed.stored) != listed.size:
                small.append((listed, data))
        for begin in range(0, len(small), SMALL_AT_ONCE):
            batch = small[begin : begin + SMALL_AT_ONCE]
            self._each(self._put, batch)
            self.note([each for each, _ in batch])
        return taken

    def _needed(self, contents: Contents, taken: dict[str, Listed]) -> list[tuple[str, int | None]]:
        """Return the keys and sizes of the objects that have to be copied; the others, which are there, are `taken`."""
        named: list[tuple[str, int | None]] = []
        for key, size in contents.named.items():
            known = self._known.get(self.place.stored_name(key, None))
            if (
                known is not None
                and known.size == self._there.get(known.stored)
                and size in (None, known.size)
            ):
                taken[key] = known
            else:
                named.append((key, size))
        return named

    def _put(self, each: tuple[Listed, bytes]) -> None:
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

    def note(self, copies: list[Listed]) -> None:
        self.copied += len(copies)
        self.copied_bytes += sum(each.size for each in copies)
        for each in copies:
            self._there[each.stored] = each.size
            self._known[each.stored] = each
        self._new += copies
        if len(self._new) >= LISTED_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        if self._new:
            self.place.put_list(self.running.id, self._new)
            self._new = []

    def _refuse(self, left: list[LeftOut]) -> None:
        """Refuse, and leave nothing behind: another choice begins anew."""
        self.place.give_up(self.running.id)
        _end(self.tree, self.place, self.running)
        shown = "; ".join(f"{quoted(each.name)} at {each.place}" for each in left[:5])
        more = f", and {len(left) - 5:,} more" if len(left) > 5 else ""
        raise InvalidInput(
            f"{shown}{more} is outside of the warehouse's folder {self.tree.logs.warehouse}, and would not be in the "
            "backup: say that it may be left out (outside => 'leave', --outside leave), or copy it into the warehouse"
        )


def copied(source: ObjectStore, key: str, size: int | None, place: BackupPlace) -> Listed:
    """Copy an object that is never written twice, and return what it is. NotFound; FormatError for another size."""
    with source.open_input(key) as opened:
        data = opened.read()
    if size is not None and size != len(data):
        raise FormatError(
            f"{source.url}/{key} has {len(data):,} bytes, and its log says {size:,}: run lakelog fsck"
        )
    listed = Listed(key, len(data), hashlib.sha256(data).hexdigest(), place.stored_name(key, None))
    place.store.put(listed.stored, data)
    return listed


def summary(backup: Backup) -> Mapping[str, object]:
    """Return the facts of a backup for programs."""
    return {
        "id": backup.id,
        "time_us": backup.time_us,
        "kind": backup.kind,
        "name": list(backup.name),
        "warehouse": backup.warehouse,
        "tables": len(backup.tables),
        "objects": backup.objects,
        "size_bytes": backup.size_bytes,
        "left": [
            {"kind": each.kind, "name": list(each.name), "place": each.place, "files": each.files}
            for each in backup.left
        ],
    }
