"""The place of backups: its objects and their names, which come from the source's keys. See docs/backup.md.

    _lakelog_backups.json        the mark of the place, and of its warehouse: the id of its root's log
    backups/<id>.json            a complete backup: its subject, and the hash of its list
    lists/<id>/<name>.parquet    keys, sizes, hashes of copies; a complete backup's list is named by its hash
    running/<id>.json            a backup that has begun: a later run continues it
    objects/<key>~<hash>         an object; data files, which are never written twice, are `objects/<key>`
    doomed/<id>.parquet          names of objects that a deletion of backups may delete at any time, however late

An id is never used twice. If a backup was deleted, or will never be complete, an object in its place says so.
A doomed name is not used again either: an object that has to be copied again has the next name, `…~1`.

A copy has all of these objects below `_lakelog_copy/` in its folder until it is done. But an object that is
never written twice has its own key in that folder at once.

A name with a hash holds the bytes of that hash. A name without a hash holds an object that is immutable at
its source. So a backup shares existing objects with other backups, and never replaces objects that they need.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, Literal, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lakelog.catalog.core.logs import check_not_own, spellings
from lakelog.catalog.names import quoted_where_needed
from lakelog.catalog.times import moment_of
from lakelog.log.errors import FormatError, InvalidInput, NotFound, StorageError
from lakelog.log.grammar import ROOT_RIGHTS_KEY
from lakelog.log.options import LogOptions
from lakelog.log.settling import create
from lakelog.log.stores import ObjectStore

IDENTITY = "_lakelog_backups.json"
RESTORING = "_lakelog_restoring.json"
FORMAT: Literal[1] = 1
HASH_DIGITS = 16

T = TypeVar("T")

_DOOMED = pa.schema([("stored", pa.string())])
_LIST = pa.schema(
    [("key", pa.string()), ("size", pa.int64()), ("sha256", pa.string()), ("stored", pa.string())]
)


class BackupIdentity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The warehouse whose backups a place has.

    `root` is the id of its root's log, which a copy of it has too.
    """

    format: Literal[1]
    root: str
    warehouse: str


WAREHOUSE, TABLE = "warehouse", "table"
DROPPED, FILE, CUT = "dropped", "file", "cut"
"""Kinds of omissions, in addition to live tables. Only live tables and files of live tables are refused."""


class RunningBackup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A backup under way: the saved cut that keeps its versions, and its subject."""

    format: Literal[1]
    id: str
    cut: str
    cut_namespace: tuple[str, ...]
    name: tuple[str, ...]
    kind: str


class RestoreMark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The mark in a folder during a restore. `run` is the id of the run that created it, if the mark has it."""

    format: Literal[1]
    backup: str
    run: str = ""


class DeletedMark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Replaces a backup that was deleted, or abandoned before it was complete. No run can make it any more."""

    format: Literal[1]
    id: str
    gone: Literal[True]


class LeftOut(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object that is not in a backup: a table or a file outside of the warehouse's folder.

    `place` is its place; for a dropped table with files of others, it is below the warehouse. A saved cut
    (`kind` cut) is in the backup, but does not show the objects that `place` names.
    """

    kind: str
    name: tuple[str, ...]
    place: str
    files: int = 0

    @property
    def text(self) -> str:
        """Return the text that follows "not in the backup" in messages to people."""
        name = quoted_where_needed(self.name)
        if self.kind == CUT:
            return f"{self.place} in the saved cut {name}, which shows all else"
        if self.files:
            return f"{name}, {self.files:,} files of it at {self.place} and other places"
        return f"{name}, {self.place}"


class LogInBackup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A log that a backup has, and its newest version in the backup."""

    kind: str
    location: str
    version: int
    name: tuple[str, ...]
    dropped: bool = False


class Backup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A complete backup.

    `kind` is warehouse, namespace or table, and `name` is its subject. `clones` are tables with files of
    others, which their logs name by places in the backed-up warehouse. `seal` is the hash of all other
    members. Without it, a version number that storage damage changed would be restored, with its rows.
    """

    format: Literal[1]
    id: str
    time_us: int
    kind: str
    name: tuple[str, ...]
    root: str
    warehouse: str
    logs: tuple[LogInBackup, ...]
    left: tuple[LeftOut, ...]
    clones: tuple[tuple[str, ...], ...]
    objects: int
    size_bytes: int
    list_hash: str
    seal: str = ""

    @property
    def as_of(self) -> dt.datetime:
        """The moment that it is of, in UTC."""
        return moment_of(self.time_us)

    @property
    def sealed(self) -> Backup:
        data = msgspec.json.encode(msgspec.structs.replace(self, seal=""))
        return msgspec.structs.replace(self, seal=hashlib.sha256(data).hexdigest())

    @property
    def tables(self) -> tuple[LogInBackup, ...]:
        return tuple(log for log in self.logs if log.kind != "namespace" and not log.dropped)


@dataclass(frozen=True, slots=True)
class ListedObject:
    """A list entry of an object: its key below the warehouse, size, hash, and name in the place of backups."""

    key: str
    size: int
    sha256: str
    stored: str


def first_key(store: ObjectStore) -> str | None:
    """Return the first key of a store, None if it is empty. The proof of its server is left out."""
    return next((key for key in store.list_after("") if key != ROOT_RIGHTS_KEY), None)


class BackupPlace:
    """A folder or prefix that holds backups of a warehouse."""

    folder: ClassVar[str] = ""
    """The prefix of the place's own objects in the store."""

    objects: ClassVar[str] = "objects/"
    """The prefix of objects that are never written twice."""

    def __init__(self, store: ObjectStore, options: LogOptions) -> None:
        self.store, self.options = store, options
        self._doomed: frozenset[str] = frozenset()

    def identity(self) -> BackupIdentity | None:
        """Return the warehouse whose backups it has.

        None if the place is empty. Raises InvalidInput for anything else.
        """
        key = f"{self.folder}{IDENTITY}"
        data, first = self.store.get(key), None
        if data is None:
            first = first_key(self.store)
        if first is not None:
            data = self.store.get(key)  # another run may have begun between the two reads
        if data is not None:
            return _decoded(data, BackupIdentity, f"{self.store.url}/{key}")
        if first is not None:
            raise self.is_another(first)
        return None

    def is_another(self, first: str) -> InvalidInput:
        """Return the error for a folder that holds something else."""
        return InvalidInput(
            f"{self.store.url} is not a place of backups: it holds {first!r}. Give an empty or new folder, or the "
            "one that earlier backups are in"
        )

    def stored_name(self, key: str, sha256: str | None) -> str:
        """Return the name of an object here, with its hash if the source may write the key again.

        Skips doomed names.
        """
        name = (
            f"{self.objects}{key}" if sha256 is None else f"{self.folder}objects/{key}~{sha256[:HASH_DIGITS]}"
        )
        if name not in self._doomed:
            return name
        return next(next_name for at in count(1) if (next_name := f"{name}~{at}") not in self._doomed)

    def required(self) -> BackupIdentity:
        identity = self.identity()
        if identity is None:
            raise NotFound(f"there are no backups at {self.store.url}: check the place")
        return identity

    def claim(self, root: str, warehouse: str) -> None:
        """Claim the place for that warehouse. Raises InvalidInput if it belongs to another warehouse."""
        identity = self.identity()
        if identity is None:
            mine = BackupIdentity(format=FORMAT, root=root, warehouse=warehouse)
            if create(self.store, f"{self.folder}{IDENTITY}", msgspec.json.encode(mine), self.options):
                return
            identity = self.required()
        if identity.root != root:
            raise InvalidInput(
                f"{self.store.url} has backups of another warehouse, {identity.warehouse}: choose another place"
            )

    # Complete backups

    def backups(self) -> list[Backup]:
        """Return all backups, oldest first."""
        backups = filter(None, map(self._there, self._keys()))
        return sorted(backups, key=lambda backup: (backup.time_us, backup.id))

    def backups_by_id(self) -> dict[str, Backup | None]:
        """Return all backups that are not gone, with None for an altered backup."""
        backups: dict[str, Backup | None] = {}
        for key in self._keys():
            id = self._id(key)
            try:
                backup = self._there(key)
            except FormatError:
                backups[id] = None
            else:
                backups |= {} if backup is None else {id: backup}
        return backups

    def backup(self, id: str | None) -> Backup:
        """Return a backup by its id, however damaged others are; the newest without an id. Raises NotFound."""
        keys = self._keys()
        if id is not None and self._key(id) in keys and (backup := self._there(self._key(id))) is not None:
            return backup
        all_backups = self.backups()
        if id is not None or not all_backups:
            newest_ids = ", ".join(other_backup.id for other_backup in all_backups[-5:]) or "none is whole"
            raise NotFound(f"there is no backup {id or 'yet'} at {self.store.url}: there are {newest_ids}")
        return all_backups[-1]

    def _keys(self) -> list[str]:
        self.required()
        return [key for key in self.store.list_after(f"{self.folder}backups/") if key.endswith(".json")]

    def _key(self, id: str) -> str:
        return f"{self.folder}backups/{id}.json"

    def _id(self, key: str) -> str:
        return key.removeprefix(f"{self.folder}backups/").removesuffix(".json")

    def has(self, id: str) -> bool:
        """Return whether a run for it has come to its end: the backup is complete, or gone."""
        return self.store.get(self._key(id)) is not None

    def is_gone(self, id: str) -> bool:
        return self.store.get(self._key(id)) == _gone(id)

    def _there(self, key: str) -> Backup | None:
        """Return a backup. None if it is gone."""
        data = self.store.get(key)
        if data is None:
            raise NotFound(f"{self.store.url}/{key} was deleted meanwhile: list the backups anew")
        if data == _gone(self._id(key)):
            return None
        backup = _decoded(data, Backup, f"{self.store.url}/{key}")
        if backup != backup.sealed or key != self._key(backup.id):
            raise FormatError(f"{self.store.url}/{key} was altered: delete it, and use another backup")
        return backup

    def newest_us(self) -> int:
        """Return the time of the newest readable backup. 0 if there is none."""
        times = [0]
        for key in self._keys():
            with contextlib.suppress(FormatError, NotFound):
                times += [backup.time_us] if (backup := self._there(key)) is not None else []
        return max(times)

    def put_backup(self, backup: Backup) -> None:
        key = self._key(backup.id)
        is_put = create(self.store, key, msgspec.json.encode(backup.sealed), self.options)
        if not is_put and self.is_gone(backup.id):
            raise NotFound(
                f"the backup {backup.id} at {self.store.url} was given up or deleted while it was made: make it again"
            )

    def delete_backup(self, id: str) -> None:
        """Mark a backup as gone. Its lists and its objects stay."""
        self.store.put(self._key(id), _gone(id))

    def delete_lists(self) -> None:
        """Delete the lists of backups that are gone. Other lists may belong to runs that have begun since."""
        place = f"{self.folder}lists/"
        lists = [(key, key.removeprefix(place).partition("/")[0]) for key in self.store.list_after(place)]
        gone_ids = {id for id in {id for _, id in lists} if self.is_gone(id)}
        self.store.delete([key for key, id in lists if id in gone_ids])

    def objects_of(self, backup: Backup) -> list[ListedObject]:
        """Return the objects of a backup. Raises FormatError if its list is missing or was altered."""
        key = self._list_key(backup)
        data = self.store.get(key)
        if data is None or hashlib.sha256(data).hexdigest() != backup.list_hash:
            problem = "is missing" if data is None else "was altered"
            raise FormatError(
                f"{self.store.url}/{key}, the list of the backup {backup.id}, {problem}: use another backup"
            )
        return _listed(data, key)

    # Backups under way

    def running(self) -> list[RunningBackup]:
        runs = []
        for key in self.store.list_after(f"{self.folder}running/"):
            data = self.store.get(key)
            if data is not None:
                runs.append(_decoded(data, RunningBackup, f"{self.store.url}/{key}"))
        return runs

    def begin(self, running_backup: RunningBackup) -> None:
        self.store.put(f"{self.folder}running/{running_backup.id}.json", msgspec.json.encode(running_backup))

    def end(self, id: str) -> None:
        """Remove objects that only a run needs: all lists except the list of a complete backup."""
        backup = self._there(self._key(id)) if self.has(id) else None
        backup_list = None if backup is None else self._list_key(backup)
        parts = [key for key in self.store.list_after(f"{self.folder}lists/{id}/") if key != backup_list]
        self.store.delete([*parts, f"{self.folder}running/{id}.json"])
        remove_leftovers(self.store)

    def give_up(self, id: str) -> None:
        """Abandon a run that nothing can continue. Its lists stay because they name existing copies.

        It first prevents that another process of the run ends the run. Otherwise nothing would mark the
        objects that the other process found as needed.
        """
        create(self.store, self._key(id), _gone(id), self.options)
        self.store.delete([f"{self.folder}running/{id}.json"])

    # Lists and objects

    def put_list(self, id: str, objects: Iterable[ListedObject]) -> str:
        """Write a list under the name of its hash, and return the hash.

        So runs of a backup never replace each other's.
        """
        rows = [(entry.key, entry.size, entry.sha256, entry.stored) for entry in objects]
        columns = zip(*rows, strict=True) if rows else [(), (), (), ()]
        table = pa.table(
            [pa.array(list(column), field.type) for column, field in zip(columns, _LIST, strict=True)],
            schema=_LIST,
        )
        out = io.BytesIO()
        pq.write_table(table, out, compression="zstd")
        data = out.getvalue()
        digest = hashlib.sha256(data).hexdigest()
        self.store.put(f"{self.folder}lists/{id}/{digest}.parquet", data)
        return digest

    def known(self) -> dict[str, ListedObject]:
        """Return the copies of earlier runs, by their names here. An unreadable list only costs new copies."""
        entries: dict[str, ListedObject] = {}
        for key in self.store.list_after(f"{self.folder}lists/"):
            data = self.store.get(key)
            try:
                entries |= {entry.stored: entry for entry in _listed(data or b"", key)}
            except FormatError:
                continue
        return entries

    def avoid_doomed(self) -> None:
        """Record the names that deletions may delete at any time. Call it after `begin`: see `deleting`."""
        self._doomed = frozenset(self.doomed())

    def doomed(self) -> Iterator[str]:
        for key in self.store.list_after(f"{self.folder}doomed/"):
            data = self.store.get(key)
            if data is None:
                continue  # that deletion has not begun
            try:
                names = pq.read_table(io.BytesIO(data), schema=_DOOMED)["stored"]
            except (pa.ArrowException, OSError) as error:
                raise FormatError(
                    f"{self.store.url}/{key}, which names objects that are deleted, cannot be read ({error}): begin a "
                    "new place of backups"
                ) from error
            yield from names.to_pylist()

    def doom(self, names: Sequence[str], id: str) -> None:
        out = io.BytesIO()
        pq.write_table(pa.table({"stored": pa.array(names, pa.string())}, _DOOMED), out, compression="zstd")
        self.store.put(self._doomed_key(id), out.getvalue())

    def spare(self, id: str) -> None:
        """Withdraw the doomed names of a deletion that has deleted nothing."""
        self.store.delete([self._doomed_key(id)])

    def _doomed_key(self, id: str) -> str:
        return f"{self.folder}doomed/{id}.parquet"

    def sizes(self) -> dict[str, int]:
        """Return the objects that exist, with their sizes."""
        return dict(self.store.list_sizes(self.objects))

    def _list_key(self, backup: Backup) -> str:
        return f"{self.folder}lists/{backup.id}/{backup.list_hash}.parquet"


def _gone(id: str) -> bytes:
    return msgspec.json.encode(DeletedMark(format=FORMAT, id=id, gone=True))


def remove_leftovers(store: ObjectStore) -> None:
    """Remove unfinished objects of killed runs, which no listing shows."""
    store.delete([key for key, _ in store.list_leftovers("")])


def check_apart(source: str, target: str, what: str) -> None:
    """Raise InvalidInput if a place is inside the other, in any spelling."""
    check_not_own(target)
    for source_url in spellings(source):
        for target_url in spellings(target):
            if source_url == target_url or f"{target_url}/".startswith(f"{source_url.rstrip('/')}/"):
                raise InvalidInput(f"{target} is inside of {source}: {what} has to be a place of its own")
            if f"{source_url}/".startswith(f"{target_url.rstrip('/')}/"):
                raise InvalidInput(f"{target} has {source} inside: {what} has to be a place of its own")


def _listed(data: bytes, key: str) -> list[ListedObject]:
    try:
        columns: Mapping[str, list[object]] = pq.read_table(io.BytesIO(data), schema=_LIST).to_pydict()
    except (pa.ArrowException, OSError, StorageError) as error:
        raise FormatError(f"{key} is not a list of a backup ({error}): use another backup") from error
    return [ListedObject(*row) for row in zip(*(columns[name] for name in _LIST.names), strict=True)]


def _decoded(data: bytes, type: type[T], location: str) -> T:
    try:
        return msgspec.json.decode(data, type=type)
    except msgspec.MsgspecError as error:
        raise FormatError(
            f"{location} cannot be read ({error}): it was altered, or a newer lakelog wrote it"
        ) from error
