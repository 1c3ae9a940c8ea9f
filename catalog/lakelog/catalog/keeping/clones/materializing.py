"""Copying the files that a clone borrows into its own folder, so that the owners need not keep them.

A copy has the bytes of its original. So row positions stay, and with them deletion vectors and row ids. A
commit replaces the original's path by the copy's path, whatever rows were deleted before it: it never
conflicts. A few files are copied at once, and committed. So a stopped run continues from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import msgspec

from lakelog.catalog.core.files import (
    DataFile,
    DeletionVector,
    copy_suffix,
    file_path,
    hash_in,
    is_elsewhere,
    path_hash,
    removed_file,
)
from lakelog.catalog.core.logs import (
    NothingToDo,
    OperationFacts,
    Progress,
    TableHead,
    TrackedLog,
    check_conflicts,
    files_event,
    no_files,
    read_vector,
    write_vectors,
)
from lakelog.catalog.core.state import MAIN, TAG, OperationKind, TableState, encode
from lakelog.catalog.keeping.clones.borrowed import is_of
from lakelog.log import Commit, Draft, LogView, WriteRef
from lakelog.log.errors import InvalidInput, Unsupported
from lakelog.log.stores import copies_at_once, copy_object, is_copied_by_server

FILES_AT_ONCE = 256
"""The number of files that are copied for one commit."""

CopyFiles = Callable[[Sequence[tuple[str, str, int]]], None]
"""Copies objects entirely and durably. Each has its URL, the URL of its copy, and its size in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Materialized:
    """How many files were copied, and how many bytes.

    `version` is the newest version after the copies. `tags` still borrow files. The tables in the folders
    `owners` still keep files, also for older versions. `is_left` means that a limit came before the end.
    """

    files: int
    size_bytes: int
    version: int
    tags: tuple[str, ...]
    owners: tuple[str, ...] = ()
    is_left: bool = False


def materialize(
    head: TableHead, progress: Progress, *, copy: CopyFiles | None = None, limit_bytes: int | None = None
) -> Materialized:
    """Copy the files of other tables that a clone and its branches have. Does nothing if the table has none.

    `copy` is how an engine copies files that a server cannot copy by itself. If it is None, this process
    copies them. No copy begins after about `limit_bytes`. Tags stay as they are, and continue to borrow.
    Raises Unsupported in a transaction.
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
        while not is_left and (paths := _next(table := table.refreshed(), line)):
            remaining_bytes = None if limit_bytes is None else limit_bytes - size_bytes
            if remaining_bytes is not None and remaining_bytes <= 0:
                is_left = True
                break
            copied_sizes = _copied(table.on(line), paths, _copies(table), copy, remaining_bytes)
            files, size_bytes = files + len(copied_sizes), size_bytes + sum(copied_sizes.values())
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
    """Return the paths of some data files or deletion vectors that a line borrows. Empty if it borrows none."""
    if line != MAIN and line not in table.state.refs:
        return []  # the branch or tag was dropped
    folders = [table.logs.url(origin.location) for origin in table.state.origins]
    paths: list[str] = []
    for chunk in table.on(line).chunks() if folders else ():
        for path in chunk["path"].to_pylist():
            if is_elsewhere(path) and any(is_of(path, folder) for folder in folders):
                paths.append(path)
                if len(paths) == FILES_AT_ONCE:
                    return paths
    return paths


def _copies(table: TableHead) -> dict[str, str]:
    """Return the copies of all lines by the hashes of their originals' paths, because lines share files."""
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
    """Copy these files, up to the limit, and commit the copies in their places. Return the copies' sizes by
    path.
    """
    table_log, write = line.tracked, line.begin_write()
    sizes = {path: file.size_bytes for path, file in line.entries(originals).items()}
    if limit_bytes is not None:
        offsets = accumulate((sizes.get(path, 0) for path in originals), initial=0)
        originals = [path for path, offset in zip(originals, offsets, strict=False) if offset < limit_bytes]
    places = {path: known.get(path_hash(path)) or file_path(write, copy_suffix(path)) for path in originals}
    new = {path: sizes[path] for path in originals if path_hash(path) not in known and path in sizes}
    _copy(line, {path: places[path] for path in new}, new, copy)

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        check_conflicts(
            OperationKind.MATERIALIZE,
            view,
            passed_commits,
            OperationFacts(line.version, None, no_files),
            line.name,
        )
        entries = line.at(view).entries(originals)
        if not entries:
            raise NothingToDo("others have removed them")
        new_files = [
            _placed(table_log, write, file, places[path], path in new)
            for path, file in sorted(entries.items())
        ]
        old_files = [removed_file(file) for file in entries.values()]
        event, blobs = files_event(OperationKind.MATERIALIZE, new_files, old_files, view.state.current)
        return Draft(events=encode([event]), blobs=blobs, write=write)

    line.commit_or_refresh(decide, None)
    return new


def _placed(
    tracked: TrackedLog[TableState], write: WriteRef, file: DataFile, path: str, is_new: bool
) -> DataFile:
    """Return the entry of a copy, with the same deleted rows. A borrowed deletion vector is copied too."""
    deletes: DeletionVector | None = file.deletes
    if deletes is not None and deletes.path is not None and is_elsewhere(deletes.path):
        vector = read_vector(tracked.store, tracked.prefix, deletes, file.physical_rows)
        deletes = write_vectors(tracked.store, tracked.prefix, write, {path: vector})[path]
    return msgspec.structs.replace(
        file, path=path, deletes=deletes, write_id=write.id if is_new else file.write_id
    )


def _copy(
    line: TableHead, places: Mapping[str, str], sizes: Mapping[str, int], copy: CopyFiles | None
) -> None:
    """Copy files into the table's folder, each under its given name. Raises NotFound if a file is gone."""
    target, open_url = line.tracked.store, line.tracked.log.replay.open_url
    assert open_url is not None, "it was opened by a catalog"
    prefix = f"{line.tracked.prefix}/" if line.tracked.prefix else ""
    originals = {path: open_url(path) for path in places}
    sources = [store for store, _ in originals.values()]
    if copy is not None and not all(is_copied_by_server(source, target) for source in sources):
        folder = line.url.rstrip("/")
        if places:
            copy([(path, f"{folder}/{place}", sizes[path]) for path, place in places.items()])
        return

    def one(path: str) -> None:
        copy_object(*originals[path], target, f"{prefix}{places[path]}")

    paths, at_once = list(places), copies_at_once(sources, target)
    for start in range(0, len(paths), at_once):
        line.tracked.log.options.in_parallel([partial(one, path) for path in paths[start : start + at_once]])
