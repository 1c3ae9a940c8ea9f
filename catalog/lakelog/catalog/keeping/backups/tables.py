"""Restoring a table into a warehouse in use: its rows and definition as of the backup, in a log of its own.

The backup is read as a warehouse, through a store that shows its objects at their keys. The new table has a
new id, so readers and writers of the old table notice the change, and no log gives a version twice. Row ids
and values of identity columns continue. Older versions, tags and branches are only in the backup.
"""

from __future__ import annotations

import hashlib
import io
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa
from pyroaring import BitMap

from lakelog.catalog.core.ddl import (
    StagedTable,
    create_from,
    drop_table,
    list_dropped,
    rename_table,
    undrop_table,
)
from lakelog.catalog.core.files import (
    CRC,
    DELETES,
    VERSION,
    deletes_from_json,
    deletes_to_json,
    file_path,
    is_elsewhere,
    physical_rows,
)
from lakelog.catalog.core.logs import (
    FoundLog,
    LogCache,
    NameTree,
    Progress,
    TableHead,
    Token,
    TrackedLog,
    WarehouseStores,
    merged_drafts,
    no_progress,
    read_vector,
    was_applied_anywhere,
    write_vectors,
)
from lakelog.catalog.core.state import StreamCommitted, TableState, encode
from lakelog.catalog.errors import NoSuchTable, TableExists
from lakelog.catalog.keeping.backups.checking import sound
from lakelog.catalog.keeping.backups.place import DROPPED, Backup, BackupPlace, ListedObject, LogInBackup
from lakelog.catalog.keeping.backups.refs import copies_of, files_of_refs, refs_drafts
from lakelog.catalog.keeping.clones.cloning import first_commit, stage_like
from lakelog.catalog.keeping.maintenance.drop_purge import drop_and_purge, purge_replaced
from lakelog.catalog.keeping.maintenance.promises import release_lost
from lakelog.catalog.names import NAME_LIMIT_BYTES, Identifier, quoted
from lakelog.log import Draft, LogOptions
from lakelog.log.errors import FormatError, NotFound, StorageError, Unsupported
from lakelog.log.stores import ObjectStore

AT_ONCE = 4
_WIDE: dict[str, Any] = {"promote_options": "permissive"}


@dataclass(frozen=True, slots=True)
class RestoredTable:
    """A table that was restored from a backup, and the number and size of the copied files."""

    table: TableHead
    backup: Backup
    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """A table that was copied from another warehouse, as of its `version` there, and the copied files."""

    table: TableHead
    version: int
    files: int
    size_bytes: int


def restore_table(
    tree: NameTree,
    place: BackupPlace,
    id: str | None,
    name: Identifier,
    to: Identifier,
    token: Token | None,
    progress: Progress,
    *,
    as_clone: bool = False,
) -> RestoredTable:
    """Make the table `to` from the table `name` of a backup.

    Raises NoSuchTable, NotFound or TableExists, and Unsupported if the table has files outside of the
    warehouse. With `as_clone`, the new table replaces a former clone, with its tags and branches, and keeps
    the names of such files.
    """
    tree.logs.check_writable()
    backup = place.backup(id)
    at = _table_in(backup, place, name)
    if token is not None and was_applied_anywhere(tree.logs, token):
        return RestoredTable(TableHead.named(tree.logs, tree.table(to), to), backup, 0, 0)
    source = table_of(place, backup, at)
    files = source.all_files()
    paths = files["path"].to_pylist() + (files_of_refs(source)["path"].to_pylist() if as_clone else [])
    keys = _keys(source, backup, list(dict.fromkeys(paths)), as_clone)
    backup_store = source.tracked.store
    assert isinstance(backup_store, BackupStore)

    def read(path: str) -> bytes:
        return sound(place.store, backup_store.listed(keys[path]))

    table, size_bytes = _made(
        tree, source, backup.warehouse, files, list(keys), read, to, token, progress, with_refs=as_clone
    )
    return RestoredTable(table, backup, len(keys), size_bytes)


def copy_table(tree: NameTree, source: TableHead, to: Identifier, progress: Progress) -> CopiedTable:
    """Make the table `to` of another warehouse from the present state of `source`.

    Raises NotFound if files of it were vacuumed during the copy, and FormatError if a file does not match its
    entry.
    """
    tree.logs.check_writable()
    files = source.all_files()
    sizes: dict[str, int] = dict(zip(files["path"].to_pylist(), files["size"].to_pylist(), strict=True))
    checksums: dict[str, int | None] = {}
    if CRC in files.column_names:
        checksums = dict(zip(sizes, files[CRC].to_pylist(), strict=True))

    def read(path: str) -> bytes:
        store, key = source.tracked.store, f"{source.tracked.prefix}/{path}".lstrip("/")
        if is_elsewhere(path):
            store, key = source.logs.places.open_url(path)
        with store.open_input(key) as source_file:
            data = source_file.read()
        crc = checksums.get(path)
        if len(data) != sizes[path] or (crc is not None and zlib.crc32(data) != crc):
            raise FormatError(
                f"{store.url}/{key} is not what the log of {source.name} says: run `lakelog fsck --deep`"
            )
        return data

    table, size_bytes = _made(
        tree, source, source.logs.warehouse, files, list(sizes), read, to, None, progress
    )
    return CopiedTable(table, source.version, len(sizes), size_bytes)


def _made(
    tree: NameTree,
    source: TableHead,
    warehouse: str,
    files: pa.Table,
    paths: Sequence[str],
    read: Callable[[str], bytes],
    to: Identifier,
    token: Token | None,
    progress: Progress,
    *,
    with_refs: bool = False,
) -> tuple[TableHead, int]:
    """Make a table from copies of the files at `paths`. Return it, and the number of copied bytes."""
    stage = stage_like(tree, source, to, token)
    copies = copies_of(files if not with_refs else pa.concat_tables([files, files_of_refs(source)], **_WIDE))
    places = {path: file_path(stage.write, copies[path]) for path in paths}
    store, prefix = tree.logs.places.open(stage.location)

    def copy(path: str) -> int:
        data = read(path)
        store.put(f"{prefix}/{places[path]}" if prefix else places[path], data)
        return len(data)

    size_bytes = 0
    for begin in range(0, len(paths), AT_ONCE):
        size_bytes += sum(tree.logs.in_parallel(copy, paths[begin : begin + AT_ONCE]))
        progress(f"file {begin:,} of {len(paths):,}")

    def own(files: pa.Table) -> pa.Table:
        return _own(source, warehouse, files, stage, places, store, prefix)

    # A stream that has written to the source continues here, or notices that batches are missing.
    streams = [StreamCommitted(stream=stream, batch=last) for stream, last in source.state.streams.items()]
    refs = refs_drafts(source, own, tree.logs.new_id) if with_refs else ()
    first = first_commit(source, source.view, stage, (), own(files))
    draft = merged_drafts([first, Draft(events=encode(streams)), *refs])
    return create_from(tree, stage, draft, lambda tracked, view: view), size_bytes


def remade_clones(tree: NameTree, place: BackupPlace, backup: Backup) -> None:
    """Replace each clone, whose log names files of the backed-up warehouse, by a table with its own files.

    Tables that were dropped as clones are purged: no saved cut or clone needs them because all have files of
    their own. If it stops anywhere, the next call finishes the work. All new tables are made before any clone
    is purged. This is because, in the folder of a copy, the files of a clone may be read from the place of
    another clone's copy.
    """
    clones = [at for at in backup.tables if at.name in backup.clones]
    for at in clones:
        _make_beside(tree, place, backup, at)
    for at in clones:
        _put_in_place(tree, backup, at)
    for omission in backup.left:
        if omission.kind == DROPPED and not is_elsewhere(omission.place):
            purge_replaced(tree, omission.name, omission.place)
    for at in backup.tables:
        tracked_log = tree.logs.table(at.location)
        if not tracked_log.current().sealed:
            _release_clones(tree, tracked_log, quoted(at.name))


def _release_clones(tree: NameTree, tracked: TrackedLog[TableState], title: str) -> None:
    """Release the files kept for clones that are not in this warehouse."""
    for clone, promise in tracked.current().state.clones.items():
        try:
            tree.logs.table(promise.location).current()
        except NotFound:
            release_lost(tree.logs, tracked, title, clone, dry_run=False)


def name_beside(name: Identifier, mark: str) -> Identifier:
    """Return the name of a table while it is made to replace another table."""
    suffix = f"-restored-{mark}"
    begin = name[-1].encode()[: NAME_LIMIT_BYTES - len(suffix)].decode(errors="ignore")
    return (*name[:-1], begin + suffix)


def _beside(backup: Backup, at: LogInBackup) -> Identifier:
    # A name of its own for each clone, because several clones may have the same beginning.
    return name_beside(at.name, hashlib.sha256(f"{backup.id} {at.location}".encode()).hexdigest()[:12])


def _make_beside(tree: NameTree, place: BackupPlace, backup: Backup, at: LogInBackup) -> None:
    new_name = _beside(backup, at)
    table = tree.find_table(at.name) or _undropped(tree, at)
    if table is None or table.tracked.location != at.location or tree.find_table(new_name) is not None:
        return
    with suppress(TableExists):
        restore_table(tree, place, backup.id, at.name, new_name, None, no_progress, as_clone=True)


def _put_in_place(tree: NameTree, backup: Backup, at: LogInBackup) -> None:
    new_name = _beside(backup, at)
    table = tree.find_table(at.name)
    if table is not None and table.tracked.location != at.location:
        return
    # Only the table at this location: after another run's end, clients may have written to a table of this
    # name.
    if not drop_and_purge(tree, at.name, None, at.location, is_replaced=True):
        # A run died while it purged the table. A vacuum would not continue with a table that a saved cut has.
        purge_replaced(tree, at.name, at.location)
    try:
        rename_table(tree, new_name, at.name, None)
    except (NoSuchTable, TableExists):
        # Another run has put it in place. This run may have made a second table, which can be restored.
        drop_table(tree, new_name, None)


def _undropped(tree: NameTree, at: LogInBackup) -> FoundLog[TableState] | None:
    """Restore a table whose run died after the drop and before the purge. None if it is purged."""
    for entry in list_dropped(tree, at.name[:-1], recursive=False):
        if entry.location == tree.logs.url(at.location):
            try:
                undrop_table(tree, at.name, entry.id, None, None)
            except NotFound:
                continue
            return tree.find_table(at.name)
    return None


def _table_in(backup: Backup, place: BackupPlace, name: Identifier) -> LogInBackup:
    log = next((entry for entry in backup.tables if entry.name == name), None)
    if log is not None:
        return log
    omission = next((entry for entry in backup.left if entry.name == name), None)
    if omission is not None:
        raise Unsupported(
            f"the backup {backup.id} does not have {quoted(name)}: it was left out, as it is at {omission.place}"
        )
    table_names = ", ".join(quoted(entry.name) for entry in backup.tables[:10]) or "none"
    raise NoSuchTable(
        f"the backup {backup.id} at {place.store.url} has no table {quoted(name)}: its tables are {table_names}"
    )


def table_of(place: BackupPlace, backup: Backup, at: LogInBackup) -> TableHead:
    """Return a table of a backup for reading."""
    objects = {entry.key: entry for entry in place.objects_of(backup)}
    places = WarehouseStores(f"memory://backup-{backup.id}", {})
    places.stores[places.warehouse] = BackupStore(places.warehouse, place.store, objects)
    logs = LogCache(places, {}, LogOptions(snapshot_every_versions=0))
    tracked_log = logs.table(at.location)
    return TableHead(logs, tracked_log, tracked_log.log.view_at(at.version), quoted(at.name))


def _keys(source: TableHead, backup: Backup, paths: Sequence[str], as_clone: bool) -> dict[str, str]:
    """Return the keys in the backup of the files that a table's entries name, by their paths.

    Raises Unsupported if the backup lacks a file. With `as_clone`, such a file is skipped.
    """
    keys: dict[str, str] = {}
    for path in paths:
        if not is_elsewhere(path):
            keys[path] = f"{source.tracked.prefix}/{path}"
            continue
        inside = path.removeprefix(f"{backup.warehouse.rstrip('/')}/")
        if inside != path:
            keys[path] = inside
        elif not as_clone:
            raise Unsupported(
                f"{source.name} has the file {path}, which was outside of the warehouse and is not in the backup: "
                "import or add it anew"
            )
    return keys


def _own(
    source: TableHead,
    warehouse: str,
    files: pa.Table,
    stage: StagedTable,
    places: Mapping[str, str],
    store: ObjectStore,
    prefix: str,
) -> pa.Table:
    """Return the entries of the copies, with the same deleted rows. Separate vectors are written again."""
    paths: list[str] = files["path"].to_pylist()
    if DELETES in files.column_names:
        vectors: dict[str, BitMap] = {}
        texts: list[str | None] = files[DELETES].to_pylist()
        for path, text, rows in zip(paths, texts, physical_rows(files).to_pylist(), strict=True):
            deletes = None if text is None else deletes_from_json(text)
            if deletes is None or deletes.path is None:
                continue
            where = f"{source.tracked.prefix}/" if not is_elsewhere(deletes.path) else ""
            inside = where + deletes.path.removeprefix(f"{warehouse.rstrip('/')}/")
            vector_entry = msgspec.structs.replace(deletes, path=inside)
            vectors[places.get(path, path)] = read_vector(source.tracked.store, "", vector_entry, rows)
        new_deletes = write_vectors(store, prefix, stage.write, vectors) if vectors else {}
        texts = [
            deletes_to_json(new_deletes[at]) if (at := places.get(path, path)) in new_deletes else text
            for path, text in zip(paths, texts, strict=True)
        ]
        files = _with(files, DELETES, texts)
    files = _with(files, "path", [places.get(path, path) for path in paths])
    files = _with(files, "write", [stage.write.id] * len(paths)) if "write" in files.column_names else files
    return files.drop_columns([VERSION]) if VERSION in files.column_names else files


def _with(files: pa.Table, column: str, values: Sequence[str | None]) -> pa.Table:
    at = files.column_names.index(column)
    return files.set_column(at, column, pa.array(values, files.schema.field(at).type))


class BackupStore:
    """The objects of a backup at their original keys. See ObjectStore; it is read-only."""

    def __init__(self, url: str, store: ObjectStore, objects: Mapping[str, ListedObject]) -> None:
        self.url = url
        self.is_bucket = store.is_bucket
        self._store = store
        self._objects = objects
        self._keys = sorted(objects, key=lambda key: key.encode())

    def listed(self, key: str) -> ListedObject:
        if key not in self._objects:
            raise NotFound(f"the backup has no {key}: verify it, or use another one")
        return self._objects[key]

    def get(self, key: str) -> bytes | None:
        return sound(self._store, self._objects[key]) if key in self._objects else None

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def put_if_absent(self, key: str, data: bytes) -> bool:
        raise StorageError("a backup is not written to", location=self.url, without_effect=True)

    def put(self, key: str, data: bytes) -> None:
        raise StorageError("a backup is not written to", location=self.url, without_effect=True)

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        return (key for key in self._keys if key.startswith(prefix) and key.encode() > after.encode())

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        return ((key, self._objects[key].size) for key in self.list_after(prefix, after))

    def list_folders(self, prefix: str) -> list[str]:
        below = (key.removeprefix(prefix) for key in self.list_after(prefix))
        return sorted({key.partition("/")[0] for key in below if "/" in key})

    def list_leftovers(self, prefix: str) -> Iterator[tuple[str, int]]:
        return iter(())

    def delete(self, keys: Sequence[str]) -> None:
        raise StorageError("a backup is not written to", location=self.url, without_effect=True)

    def open_input(self, key: str) -> BinaryIO:
        return io.BytesIO(sound(self._store, self.listed(key)))

    def now_us(self, near: str = "") -> int | None:
        return self._store.now_us(near)
