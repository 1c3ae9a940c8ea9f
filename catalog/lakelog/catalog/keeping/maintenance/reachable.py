"""The data files that a table's retained versions can reach, and the files in its folder that belong to it.

Here, an object of deletion vectors counts as a data file if a file's entry names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import (
    DELETES,
    DeletionVector,
    decode_files,
    deletes_from_json,
    joined,
    without,
)
from lakelog.catalog.core.logs import Progress, TrackedLog, naming, no_progress
from lakelog.catalog.core.state import FileChange, TableState, table_events
from lakelog.log import Commit, LogView, NotFound
from lakelog.log.errors import ConflictError
from lakelog.log.format import LogBase
from lakelog.log.leftovers import last_base_from

T = TypeVar("T")

TRIES_MAX = 3
DATA = "data/"
GATHERED_TABLES = 512
GATHERED_ROWS = 20_000
"""How many tables, and rows of them, are joined. A table of a single row takes thousands of bytes."""

_FILES = pa.schema([("path", pa.string()), ("size", pa.int64())])


def first_readable(base: LogBase | None) -> int:
    return 1 if base is None else base.root.version


def reachable(tracked: TrackedLog[TableState], last: int) -> pa.Table:
    """Return the path and size of every file of the table at any readable version, up to `last`.

    Makes a GET request for each of those versions. Raises ConflictError if concurrent expiry does not end.
    """

    def read(first: int) -> pa.Table:
        return joined([_FILES.empty_table(), *ever_in(tracked, first, last)])

    return _of_the_readable(tracked, read)


def unreachable(
    tracked: TrackedLog[TableState],
    last: int,
    files: Sequence[pa.Table],
    since: int,
    progress: Progress = no_progress,
) -> list[pa.Table]:
    """Return those of `files`, which have a path, that no readable version up to `last` has.

    Their writes started from the version `since` or later versions, so no earlier version has any of them.
    That version itself has some of them if a transaction created the table with rows. Makes a GET request for
    each version from there on, and holds few versions at once. Raises ConflictError as `reachable` does.
    """

    def read(first: int) -> list[pa.Table]:
        tables = list(files)
        # Of the first version, perhaps only its state is left.
        is_old = since <= first
        parts = (
            ever_in(tracked, first, last, progress) if is_old else added_by(tracked, since, last, progress)
        )
        for part in parts:
            value_set = part["path"].combine_chunks()
            tables = [remaining for table in tables if (remaining := without(table, value_set)).num_rows]
            if not tables:
                break
        return tables

    return _of_the_readable(tracked, read) if files else []


def _of_the_readable(tracked: TrackedLog[TableState], read: Callable[[int], T]) -> T:
    """Return the result of `read` for the first readable version, if that version is the same afterwards."""
    for _ in range(TRIES_MAX):
        view = tracked.current()
        old_base = last_base_from(tracked.log, view)
        try:
            files: T | None = read(first_readable(old_base))
        except NotFound:
            files = None
        # A base exists before the first commit expires. So without a new base, no commit was missing.
        new_base = last_base_from(tracked.log, view)
        if files is not None and old_base == new_base:
            return files
    raise ConflictError(f"versions of {tracked.log.location} expire while it is read: retry later")


def lost_with(
    tracked: TrackedLog[TableState], first: int, kept: int, last: int, progress: Progress = no_progress
) -> pa.Table:
    """Return the path and size of files at versions from `first` to `kept`, but not from `kept` to `last`.

    Makes a GET request for each version up to `kept`. For later versions it does so only if a file was
    removed before, because a rollback may have brought it back.
    """
    live = live_at(tracked, kept)
    lost_parts = [_FILES.empty_table()]
    for part in ever_in(tracked, first, kept, progress):
        for chunk in live:
            part = not_in(part, chunk)
        if part.num_rows:
            lost_parts.append(part)
    lost_files = joined(lost_parts)
    if lost_files.num_rows:
        for part in added_by(tracked, kept + 1, last, progress):
            lost_files = not_in(lost_files, part)
    return lost_files.group_by("path").aggregate([("size", "max")]).rename_columns(["path", "size"])


def ever_in(
    tracked: TrackedLog[TableState], first: int, last: int, progress: Progress = no_progress
) -> Iterator[pa.Table]:
    """Yield the path and size of every file at a version from `first` to `last`, in parts.

    May have duplicates.
    """
    start = tracked.log.view_at(first)
    # No reader can go back to files that were kept for clones then, and are not any more.
    yield from _named(tracked, start.state.lines())
    yield from added_by(tracked, first + 1, last, progress)


def live_at(tracked: TrackedLog[TableState], version: int) -> list[pa.Table]:
    """Return the path and size of every file of the table at a version. May have duplicates."""
    return all_named(tracked, tracked.log.view_at(version))


def all_named(tracked: TrackedLog[TableState], view: LogView[TableState]) -> list[pa.Table]:
    """Return the path and size of every object that entries of files name. May have duplicates.

    The entries are those of the table, of all its tags and branches, and of the states kept for clones. A
    hundred tags of a million files take no more memory than a single tag.
    """
    parts: list[pa.Table] = []
    for line in view.state.kept():
        own = _named(tracked, [line])
        if parts and own:
            own = [not_in(joined(own), joined(parts))]
        parts += [part for part in own if part.num_rows]
    return parts


def _named(tracked: TrackedLog[TableState], lines: Iterable[TableState]) -> list[pa.Table]:
    # All facts about a million files would take hundreds of megabytes. So files are read manifest by
    # manifest.
    fetch = tracked.log.read_blobs
    with naming(tracked.log.location):
        return [named_by(part) for line in lines for part in line.files.parts(fetch)]


def added_by(
    tracked: TrackedLog[TableState], first: int, last: int, progress: Progress = no_progress
) -> Iterator[pa.Table]:
    """Yield the path and size of the files that these versions add, in parts."""
    batch: list[pa.Table] = []
    rows = 0
    for commit in _commits(tracked, first, last):
        own = added(tracked, commit)
        batch += own
        rows += sum(table.num_rows for table in own)
        if len(batch) >= GATHERED_TABLES or rows >= GATHERED_ROWS:
            progress(f"{tracked.log.location}: version {commit.version:,} of {last:,}")
            yield joined(batch)
            batch, rows = [], 0
    if batch:
        yield joined(batch)


def _commits(tracked: TrackedLog[TableState], first: int, last: int) -> Iterator[Commit]:
    """Yield all of the commits. Raises NotFound for an expired commit, and FormatError for a missing commit."""
    for entry in tracked.log.replay.effects(first, last):
        if not isinstance(entry, Commit):
            raise NotFound(f"version {entry.version} of {tracked.log.location} expired while it was read")
        yield entry


def added(tracked: TrackedLog[TableState], commit: Commit) -> list[pa.Table]:
    """Return the path and size of the files that a commit adds.

    Raises NotFound if expiry deleted its sidecars.
    """
    changes = [event for event in table_events(commit) if isinstance(event, FileChange)]
    files = [file for event in changes for file in event.added]
    tables = [_table((file.path, file.size_bytes) for file in files)] if files else []
    vectors = [file.deletes for file in files if file.deletes is not None]
    tables += [_vectors(vectors)] if vectors else []
    sidecars = [event.added_sidecar for event in changes if event.added_sidecar is not None]
    if sidecars:
        blobs = tracked.log.replay.sidecars([commit])[commit.version]
        if blobs is None:
            raise NotFound(f"version {commit.version} of {tracked.log.location} expired while it was read")
        tables += [named_by(decode_files(blobs[index])) for index in sidecars]
    return tables


def named_by(files: pa.Table) -> pa.Table:
    """Return the path and size of all objects that entries of files (in the form of `FileSet.parts`) name."""
    own_files = files.select(_FILES.names)
    if DELETES not in files.column_names:
        return own_files
    texts = files[DELETES].drop_null().to_pylist()
    return joined([own_files, _vectors([deletes_from_json(text) for text in texts])])


def _vectors(listed_vector: Iterable[DeletionVector | None]) -> pa.Table:
    """Return the objects that contain vectors. The size of an object is the end of its last vector."""
    apart = [entry for entry in listed_vector if entry is not None and entry.path is not None]
    return _table([(str(entry.path), (entry.offset or 0) + entry.size_bytes) for entry in apart])


def not_in(files: pa.Table, other_tables: pa.Table) -> pa.Table:
    """Return `files` without those whose path is among `other_tables`."""
    return without(files, other_tables["path"].combine_chunks())


def among(files: pa.Table, other_tables: pa.Table) -> pa.Array:
    """Return the paths of `files` that are among the paths of `other_tables`, which are fewer."""
    column = files["path"].combine_chunks()
    return column.filter(pc.is_in(column, value_set=other_tables["path"].combine_chunks()))


def paths(files: pa.Table) -> set[str]:
    return set(files["path"].to_pylist())


def total(files: pa.Table) -> int:
    return int(pc.sum(files["size"], min_count=0).as_py())


def _table(files: Iterable[tuple[str, int]]) -> pa.Table:
    rows = list(files)
    return pa.table({"path": [path for path, _ in rows], "size": [size for _, size in rows]}, schema=_FILES)
