"""Copying what a clone still borrows into its own folder, so that the owners need not keep it.

A copy has the bytes of its original, so positions of rows stay, and with them deletion vectors and ids of rows. So a
commit puts the copy's path in the place of the original's, whatever was deleted in it meanwhile: it never conflicts. A
few files are copied at once, and committed, so that a run that was stopped goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import msgspec

from lakelog.catalog.core.files import (
    DataFile,
    Deletes,
    copy_suffix,
    file_path,
    hash_in,
    is_elsewhere,
    path_hash,
    removed_file,
)
from lakelog.catalog.core.logs import (
    NothingToDo,
    TableHead,
    TrackedLog,
    Written,
    check_conflicts,
    files_event,
    no_files,
    read_vector,
    write_vectors,
)
from lakelog.catalog.core.state import MAIN, TAG, Operation, TableState, encode
from lakelog.catalog.keeping.clones.borrowed import is_of
from lakelog.log import Commit, Draft, View, WriteRef
from lakelog.log.errors import InvalidInput, Unsupported
from lakelog.log.stores import copy_object, is_copied_by_server

FILES_AT_ONCE = 256
"""So many files are copied for one commit."""

BY_SERVER_AT_ONCE = 16
THROUGH_HERE_AT_ONCE = 2
"""A file is in memory as a whole then."""

Progress = Callable[[str], None]

CopyFiles = Callable[[Sequence[tuple[str, str, int]]], None]
"""Copies objects, each by its URL to another one, entirely and durably. The third member is their size in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Materialized:
    """How many files were copied, with how many bytes. `version` is the newest one then; `tags` still borrow files.
    The tables in the folders `owners` still keep files, also for older versions. `is_left`: a limit came before the
    end."""

    files: int
    size_bytes: int
    version: int
    tags: tuple[str, ...]
    owners: tuple[str, ...] = ()
    is_left: bool = False


def materialize(
    head: TableHead, progress: Progress, *, copy: CopyFiles | None = None, limit_bytes: int | None = None
) -> Materialized:
    """Copy the files of other tables that a clone and its branches have. Nothing for a table that has none.

    `copy` is how an engine copies what one server cannot copy by itself; None: through this process. After about
    `limit_bytes` nothing more is begun. Tags stay as they are, and go on borrowing. Unsupported in a transaction.
    """
    if limit_bytes is not None and limit_bytes < 1:
        raise InvalidInput(f"a limit of {limit_bytes:,} bytes leaves nothing to be copied: give at least 1")
    head.logs.check_writable()
    if head.tracked.transaction.is_open:
        raise Unsupported(
            f"{head.name} cannot be materialized in a transaction: files are copied and committed a few at a time. "
            "Materialize it before or after the transaction"
        )
    table = head.on(MAIN).refreshed()
    files = size_bytes = 0
    is_left = False
    for line in (MAIN, *table.state.branches):
        while not is_left and (some := _next(table := table.refreshed(), line)):
            left = None if limit_bytes is None else limit_bytes - size_bytes
            if left is not None and left <= 0:
                is_left = True
                break
            copied = _copied(table.on(line), some, _copies(table), copy, left)
            files, size_bytes = files + len(copied), size_bytes + sum(copied.values())
            progress(f"{table.name}: {files:,} files copied, {size_bytes:,} bytes")
    table = table.refreshed()
    tags = [name for name, ref in sorted(table.state.refs.items()) if ref.kind == TAG]
    return Materialized(
        files=files,
        size_bytes=size_bytes,
        version=table.version,
        tags=tuple(name for name in tags if _next(table, name)),
        is_left=is_left,
    )


def _next(table: TableHead, line: str) -> list[str]:
    """Return the paths of some files that a line borrows, of its data or its deleted rows; none are left without."""
    if line != MAIN and line not in table.state.refs:
        return []  # dropped meanwhile
    folders = [table.logs.url(origin.location) for origin in table.state.origins]
    found: list[str] = []
    for chunk in table.on(line).chunks() if folders else ():
        for path in chunk["path"].to_pylist():
            if is_elsewhere(path) and any(is_of(path, folder) for folder in folders):
                found.append(path)
                if len(found) == FILES_AT_ONCE:
                    return found
    return found


def _copies(table: TableHead) -> dict[str, str]:
    """Return the copies that any line has, by the hashes of their originals' paths: lines share files."""
    paths = [path for line in table.state.lines() for path in _paths(table, line)]
    return {key: path for path in paths if (key := hash_in(path)) is not None}


def _paths(table: TableHead, line: TableState) -> list[str]:
    chunks = line.files.chunks(table.tracked.log.read_blobs, ())
    return [path for chunk in chunks for path in chunk["path"].to_pylist()]


def _copied(
    line: TableHead,
    originals: Sequence[str],
    known: Mapping[str, str],
    copy: CopyFiles | None,
    limit_bytes: int | None,
) -> dict[str, int]:
    """Copy these files, or as many as have so many bytes, commit the copies in their places, and return the sizes of
    what was copied, by path."""
    tracked, write = line.tracked, line.begin_write()
    sizes = {path: file.size_bytes for path, file in line.entries(originals).items()}
    if limit_bytes is not None:
        before = accumulate((sizes.get(path, 0) for path in originals), initial=0)
        originals = [path for path, read in zip(originals, before, strict=False) if read < limit_bytes]
    places = {path: known.get(path_hash(path)) or file_path(write, copy_suffix(path)) for path in originals}
    new = {path: sizes[path] for path in originals if path_hash(path) not in known and path in sizes}
    _copy(line, {path: places[path] for path in new}, new, copy)

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        check_conflicts(Operation.MATERIALIZE, view, passed, Written(line.version, None, no_files), line.name)
        now = line.at(view).entries(originals)
        if not now:
            raise NothingToDo("others have removed them")
        added = [
            _placed(tracked, write, file, places[path], path in new) for path, file in sorted(now.items())
        ]
        removed = [removed_file(file) for file in now.values()]
        event, blobs = files_event(Operation.MATERIALIZE, added, removed, view.state.current)
        return Draft(events=encode([event]), blobs=blobs, write=write)

    line.commit_or_refresh(decide, None)
    return new


def _placed(
    tracked: TrackedLog[TableState], write: WriteRef, file: DataFile, path: str, is_new: bool
) -> DataFile:
    """Return the entry of a copy, with the same rows deleted: their vector is copied too where it is borrowed."""
    deletes: Deletes | None = file.deletes
    if deletes is not None and deletes.path is not None and is_elsewhere(deletes.path):
        vector = read_vector(tracked.store, tracked.prefix, deletes, file.physical_rows)
        deletes = write_vectors(tracked.store, tracked.prefix, write, {path: vector})[path]
    return msgspec.structs.replace(
        file, path=path, deletes=deletes, write_id=write.id if is_new else file.write_id
    )


def _copy(
    line: TableHead, places: Mapping[str, str], sizes: Mapping[str, int], copy: CopyFiles | None
) -> None:
    """Copy files into the table's folder, each under the name that is given for it. NotFound where one is gone."""
    target, open_url = line.tracked.store, line.tracked.log.replay.open_url
    assert open_url is not None, "it was opened by a catalog"
    prefix = f"{line.tracked.prefix}/" if line.tracked.prefix else ""
    opened = {path: open_url(path) for path in places}
    by_server = all(is_copied_by_server(store, target) for store, _ in opened.values())
    if copy is not None and not by_server:
        folder = line.url.rstrip("/")
        if places:
            copy([(path, f"{folder}/{place}", sizes[path]) for path, place in places.items()])
        return

    def one(path: str) -> None:
        copy_object(*opened[path], target, f"{prefix}{places[path]}")

    listed, at_once = list(places), BY_SERVER_AT_ONCE if by_server else THROUGH_HERE_AT_ONCE
    for start in range(0, len(listed), at_once):
        line.tracked.log.options.in_parallel([partial(one, path) for path in listed[start : start + at_once]])
