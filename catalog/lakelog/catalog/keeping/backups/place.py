"""The place of backups: its objects and their names. See docs/backup.md; names of objects come from the source's keys.

    _lakelog_backups.json        what this place is, and of which warehouse: the id of its root's log
    backups/<id>.json            a backup that is whole: what it is of, and its list by its hash
    lists/<id>/<name>.parquet    keys, sizes, hashes of what was copied; the list of a whole one is named by its hash
    running/<id>.json            a backup that has begun: a later run goes on with it
    objects/<key>~<hash>         an object; of data files, which are never written twice, `objects/<key>`
    doomed/<id>.parquet          names of objects that a deletion of backups may delete at any time, however late

An id is never used twice: of a backup that was deleted, or will never be whole, an object says so in its place. Nor is
a name that is doomed: what has to be copied again has the next one, `…~1`.

A copy has all of this below `_lakelog_copy/` in the folder that it is made in, until it is done; but what is never
written twice has its own key in that folder at once.

A name with a hash holds what has that hash, and one without it what is immutable at its source. So one backup shares
with others what is there already, and never replaces what they need.
"""

from __future__ import annotations

import contextlib
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
from lakelog.log.errors import FormatError, InvalidInput, NotFound, StorageError
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


class Identity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of which warehouse a place has backups: `root` is the id of its root's log, which a copy of it has too."""

    format: Literal[1]
    root: str
    warehouse: str


WAREHOUSE, TABLE = "warehouse", "table"
DROPPED, FILE, CUT = "dropped", "file", "cut"
"""Kinds of what is left out, beside live tables: only these and files of live tables are refused."""


class Running(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A backup under way: the saved cut that keeps its versions, and what it is of."""

    format: Literal[1]
    id: str
    cut: str
    cut_namespace: tuple[str, ...]
    name: tuple[str, ...]
    kind: str


class Restoring(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The mark in a folder that is being restored to. `run` is the id of the run that has put it, if that says so."""

    format: Literal[1]
    backup: str
    run: str = ""


class Gone(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Stands in place of a backup that was deleted, or given up before it was whole: no run can make it any more."""

    format: Literal[1]
    id: str
    gone: Literal[True]


class LeftOut(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is not in a backup, as it is not in the warehouse's folder: a table or a file of one, and its place; of a
    dropped table with files of others, below the warehouse. A saved cut (`kind` cut) is there, and does not show what
    `place` names."""

    kind: str
    name: tuple[str, ...]
    place: str
    files: int = 0

    @property
    def text(self) -> str:
        """What people read after: not in the backup."""
        name = quoted_where_needed(self.name)
        if self.kind == CUT:
            return f"{self.place} in the saved cut {name}, which shows all else"
        if self.files:
            return f"{name}, {self.files:,} files of it at {self.place} and other places"
        return f"{name}, {self.place}"


class LogInBackup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A log that a backup has, and its newest version in it."""

    kind: str
    location: str
    version: int
    name: tuple[str, ...]
    dropped: bool = False


class Backup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A backup that is whole. `kind` is warehouse, namespace or table; `name` what it is of. `clones` are tables
    with files of others, which their logs name by places in the warehouse that was backed up. `seal` is the hash of
    all else: a version that is another one by a damage of the storage would be restored, with its rows."""

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
    def sealed(self) -> Backup:
        data = msgspec.json.encode(msgspec.structs.replace(self, seal=""))
        return msgspec.structs.replace(self, seal=hashlib.sha256(data).hexdigest())

    @property
    def tables(self) -> tuple[LogInBackup, ...]:
        return tuple(each for each in self.logs if each.kind != "namespace" and not each.dropped)


@dataclass(frozen=True, slots=True)
class Listed:
    """One object: its key below the warehouse, what it has to be, and its name in the place of backups."""

    key: str
    size: int
    sha256: str
    stored: str


class BackupPlace:
    """A folder or prefix that holds backups of one warehouse."""

    folder: ClassVar[str] = ""
    """Where in the store its own objects are."""

    objects: ClassVar[str] = "objects/"
    """Where in the store those are that are never written twice."""

    def __init__(self, store: ObjectStore, options: LogOptions) -> None:
        self.store, self.options = store, options
        self._doomed: frozenset[str] = frozenset()

    def identity(self) -> Identity | None:
        """Return of which warehouse it has backups; None where nothing is there. InvalidInput for anything else."""
        key = f"{self.folder}{IDENTITY}"
        data, first = self.store.get(key), None
        if data is None:
            first = next(iter(self.store.list_after("")), None)
        if first is not None:
            data = self.store.get(key)  # another run may have begun between the two looks
        if data is not None:
            return _decoded(data, Identity, f"{self.store.url}/{key}")
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
        """Return the name of an object here, with its hash where the source may write the key again; none that is
        doomed."""
        name = (
            f"{self.objects}{key}" if sha256 is None else f"{self.folder}objects/{key}~{sha256[:HASH_DIGITS]}"
        )
        if name not in self._doomed:
            return name
        return next(other for at in count(1) if (other := f"{name}~{at}") not in self._doomed)

    def required(self) -> Identity:
        found = self.identity()
        if found is None:
            raise NotFound(f"there are no backups at {self.store.url}: check the place")
        return found

    def claim(self, root: str, warehouse: str) -> None:
        """Make the place one of that warehouse. InvalidInput where it is another one's."""
        found = self.identity()
        if found is None:
            mine = Identity(format=FORMAT, root=root, warehouse=warehouse)
            if create(self.store, f"{self.folder}{IDENTITY}", msgspec.json.encode(mine), self.options):
                return
            found = self.required()
        if found.root != root:
            raise InvalidInput(
                f"{self.store.url} has backups of another warehouse, {found.warehouse}: choose another place"
            )

    # Backups that are whole

    def backups(self) -> list[Backup]:
        """Return all backups, oldest first."""
        found = filter(None, map(self._there, self._keys()))
        return sorted(found, key=lambda each: (each.time_us, each.id))

    def backups_by_id(self) -> dict[str, Backup | None]:
        """Return all backups that are not gone, None for one that was altered."""
        found: dict[str, Backup | None] = {}
        for key in self._keys():
            id = self._id(key)
            try:
                backup = self._there(key)
            except FormatError:
                found[id] = None
            else:
                found |= {} if backup is None else {id: backup}
        return found

    def backup(self, id: str | None) -> Backup:
        """Return a backup by its id, however damaged others are, the newest without one. NotFound."""
        keys = self._keys()
        if id is not None and self._key(id) in keys and (found := self._there(self._key(id))) is not None:
            return found
        known = self.backups()
        if id is not None or not known:
            listed = ", ".join(each.id for each in known[-5:]) or "none is whole"
            raise NotFound(f"there is no backup {id or 'yet'} at {self.store.url}: there are {listed}")
        return known[-1]

    def _keys(self) -> list[str]:
        self.required()
        return [key for key in self.store.list_after(f"{self.folder}backups/") if key.endswith(".json")]

    def _key(self, id: str) -> str:
        return f"{self.folder}backups/{id}.json"

    def _id(self, key: str) -> str:
        return key.removeprefix(f"{self.folder}backups/").removesuffix(".json")

    def has(self, id: str) -> bool:
        """Whether a run for it has come to its end: it is whole, or gone."""
        return self.store.get(self._key(id)) is not None

    def is_gone(self, id: str) -> bool:
        return self.store.get(self._key(id)) == _gone(id)

    def _there(self, key: str) -> Backup | None:
        """Return a backup, None for one that is gone."""
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
        """Return the time of the newest backup that can be read, 0 where there is none."""
        times = [0]
        for key in self._keys():
            with contextlib.suppress(FormatError, NotFound):
                times += [found.time_us] if (found := self._there(key)) is not None else []
        return max(times)

    def put_backup(self, backup: Backup) -> None:
        key = self._key(backup.id)
        is_put = create(self.store, key, msgspec.json.encode(backup.sealed), self.options)
        if not is_put and self.is_gone(backup.id):
            raise NotFound(
                f"the backup {backup.id} at {self.store.url} was given up or deleted while it was made: make it again"
            )

    def delete_backup(self, id: str) -> None:
        """Have it gone. Its lists and its objects stay."""
        self.store.put(self._key(id), _gone(id))

    def delete_lists(self) -> None:
        """Delete the lists of backups that are gone. Others may be of runs that have begun meanwhile."""
        place = f"{self.folder}lists/"
        listed = [(key, key.removeprefix(place).partition("/")[0]) for key in self.store.list_after(place)]
        gone = {id for id in {id for _, id in listed} if self.is_gone(id)}
        self.store.delete([key for key, id in listed if id in gone])

    def objects_of(self, backup: Backup) -> list[Listed]:
        """Return what a backup consists of. FormatError where its list is missing or was altered."""
        key = self._list_key(backup)
        data = self.store.get(key)
        if data is None or hashlib.sha256(data).hexdigest() != backup.list_hash:
            what = "is missing" if data is None else "was altered"
            raise FormatError(
                f"{self.store.url}/{key}, the list of the backup {backup.id}, {what}: use another backup"
            )
        return _listed(data, key)

    # Backups under way

    def running(self) -> list[Running]:
        found = []
        for key in self.store.list_after(f"{self.folder}running/"):
            data = self.store.get(key)
            if data is not None:
                found.append(_decoded(data, Running, f"{self.store.url}/{key}"))
        return found

    def begin(self, running: Running) -> None:
        self.store.put(f"{self.folder}running/{running.id}.json", msgspec.json.encode(running))

    def end(self, id: str) -> None:
        """Remove what only a run needs: all lists but that of the backup, if there is one."""
        found = self._there(self._key(id)) if self.has(id) else None
        kept = None if found is None else self._list_key(found)
        parts = [key for key in self.store.list_after(f"{self.folder}lists/{id}/") if key != kept]
        self.store.delete([*parts, f"{self.folder}running/{id}.json"])
        remove_leftovers(self.store)

    def give_up(self, id: str) -> None:
        """Forget a run that nothing can go on with. Its lists stay: they say what is there already.

        First of all no other process that is at it can end it: nothing would say that the objects are needed which it
        has found.
        """
        create(self.store, self._key(id), _gone(id), self.options)
        self.store.delete([f"{self.folder}running/{id}.json"])

    # Lists and objects

    def put_list(self, id: str, objects: Iterable[Listed]) -> str:
        """Write a list, named by its hash, and return that. Two runs of one backup never replace each other's."""
        rows = [(each.key, each.size, each.sha256, each.stored) for each in objects]
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

    def known(self) -> dict[str, Listed]:
        """Return what earlier runs have copied, by its name here. A list that cannot be read costs copies, no more."""
        found: dict[str, Listed] = {}
        for key in self.store.list_after(f"{self.folder}lists/"):
            data = self.store.get(key)
            try:
                found |= {each.stored: each for each in _listed(data or b"", key)}
            except FormatError:
                continue
        return found

    def avoid_doomed(self) -> None:
        """Take note of the names that deletions may delete at any time. After `begin`: see `deleting`."""
        self._doomed = frozenset(self.doomed())

    def doomed(self) -> Iterator[str]:
        for key in self.store.list_after(f"{self.folder}doomed/"):
            data = self.store.get(key)
            if data is None:
                continue  # that deletion was not begun
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
        """Take back what a deletion has doomed that has deleted nothing."""
        self.store.delete([self._doomed_key(id)])

    def _doomed_key(self, id: str) -> str:
        return f"{self.folder}doomed/{id}.parquet"

    def sizes(self) -> dict[str, int]:
        """Return the objects that are there, with their sizes."""
        return dict(self.store.list_sizes(self.objects))

    def _list_key(self, backup: Backup) -> str:
        return f"{self.folder}lists/{backup.id}/{backup.list_hash}.parquet"


def _gone(id: str) -> bytes:
    return msgspec.json.encode(Gone(format=FORMAT, id=id, gone=True))


def remove_leftovers(store: ObjectStore) -> None:
    """Remove what runs that were killed have left half-made, which no listing shows."""
    store.delete([key for key, _ in store.list_leftovers("")])


def check_apart(source: str, target: str, what: str) -> None:
    """InvalidInput where one place is in the other, however they are spelled."""
    check_not_own(target)
    for one in spellings(source):
        for other in spellings(target):
            if one == other or f"{other}/".startswith(f"{one.rstrip('/')}/"):
                raise InvalidInput(f"{target} is inside of {source}: {what} has to be a place of its own")
            if f"{one}/".startswith(f"{other.rstrip('/')}/"):
                raise InvalidInput(f"{target} has {source} inside: {what} has to be a place of its own")


def _listed(data: bytes, key: str) -> list[Listed]:
    try:
        columns: Mapping[str, list[object]] = pq.read_table(io.BytesIO(data), schema=_LIST).to_pydict()
    except (pa.ArrowException, OSError, StorageError) as error:
        raise FormatError(f"{key} is not a list of a backup ({error}): use another backup") from error
    return [Listed(*row) for row in zip(*(columns[name] for name in _LIST.names), strict=True)]


def _decoded(data: bytes, type: type[T], location: str) -> T:
    try:
        return msgspec.json.decode(data, type=type)
    except msgspec.MsgspecError as error:
        raise FormatError(
            f"{location} cannot be read ({error}): it was altered, or a newer lakelog wrote it"
        ) from error
