"""Which data files the retained versions of a table can reach, and which files in its folder belong to it.

An object of deletion vectors counts as a data file here, if a file's entry names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import DELETES, Deletes, decode_files, deletes_from_json, joined, without
from lakelog.catalog.core.logs import Progress, TrackedLog, naming, no_progress
from lakelog.catalog.core.state import FileChange, TableState, table_events
from lakelog.log import Commit, NotFound, View
from lakelog.log.errors import ConflictError
from lakelog.log.format import Base
from lakelog.log.leftovers import last_base_from

T = TypeVar("T")

TRIES_MAX = 3
DATA = "data/"
GATHERED_TABLES = 512
GATHERED_ROWS = 20_000
"""How many tables, and rows of them, become one: a table of one row takes thousands of bytes."""

_FILES = pa.schema([("path", pa.string()), ("size", pa.int64())])


def first_readable(base: Base | None) -> int:
    return 1 if base is None else base.root.version


def reachable(tracked: TrackedLog[TableState], last: int) -> pa.Table:
    """Return the path and size of every file that was in the table at any version that can be read, up to `last`.

    Costs one GET for each of those versions. ConflictError where concurrent expiry goes on for too long.
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
    """Return those of `files`, which have a path, that no version that can be read has, up to `last`.

    Their writes started from the version `since` or later ones, so that no earlier version has any; that one has some
    where a transaction created the table with rows. Costs one GET for each version from there on, and holds few of them
    at once. ConflictError as in `reachable`.
    """

    def read(first: int) -> list[pa.Table]:
        left = list(files)
        # Of the first one, no more than its state may be left.
        is_old = since <= first
        parts = (
            ever_in(tracked, first, last, progress) if is_old else added_by(tracked, since, last, progress)
        )
        for part in parts:
            value_set = part["path"].combine_chunks()
            left = [kept for each in left if (kept := without(each, value_set)).num_rows]
            if not left:
                break
        return left

    return _of_the_readable(tracked, read) if files else []


def _of_the_readable(tracked: TrackedLog[TableState], read: Callable[[int], T]) -> T:
    """Return what `read` returns for the first version that can be read, if that is the same afterwards."""
    for _ in range(TRIES_MAX):
        view = tracked.current()
        before = last_base_from(tracked.log, view)
        try:
            files: T | None = read(first_readable(before))
        except NotFound:
            files = None
        # A base exists before the first commit expires: without a new one, none of these was missing.
        after = last_base_from(tracked.log, view)
        if files is not None and before == after:
            return files
    raise ConflictError(f"versions of {tracked.log.location} expire while it is read: retry later")


def lost_with(
    tracked: TrackedLog[TableState], first: int, kept: int, last: int, progress: Progress = no_progress
) -> pa.Table:
    """Return the path and size of every file that was in the table at a version from `first` to `kept` and in none from
    there to `last`.

    Costs one GET for each version up to `kept`; for later ones only where a file was removed before it, as a rollback
    may have brought it back.
    """
    live = live_at(tracked, kept)
    left = [_FILES.empty_table()]
    for part in ever_in(tracked, first, kept, progress):
        for chunk in live:
            part = not_in(part, chunk)
        if part.num_rows:
            left.append(part)
    lost = joined(left)
    if lost.num_rows:
        for part in added_by(tracked, kept + 1, last, progress):
            lost = not_in(lost, part)
    return lost.group_by("path").aggregate([("size", "max")]).rename_columns(["path", "size"])


def ever_in(
    tracked: TrackedLog[TableState], first: int, last: int, progress: Progress = no_progress
) -> Iterator[pa.Table]:
    """Yield the path and size of every file that was in the table at a version from `first` to `last`, in parts; some
    twice."""
    start = tracked.log.view_at(first)
    # What was kept for clones then, and is no more, is in no version that a reader could go back to.
    yield from _named(tracked, start.state.lines())
    yield from added_by(tracked, first + 1, last, progress)


def live_at(tracked: TrackedLog[TableState], version: int) -> list[pa.Table]:
    """Return the path and size of every file that the table has at a version; some twice."""
    return all_named(tracked, tracked.log.view_at(version))


def all_named(tracked: TrackedLog[TableState], view: View[TableState]) -> list[pa.Table]:
    """Return the path and size of every object that entries of files name: of the table, of all its tags and branches,
    and of what is kept for clones; some more than once. A hundred tags of a million files take no more than one."""
    found: list[pa.Table] = []
    for line in view.state.kept():
        own = _named(tracked, [line])
        if found and own:
            own = [not_in(joined(own), joined(found))]
        found += [part for part in own if part.num_rows]
    return found


def _named(tracked: TrackedLog[TableState], lines: Iterable[TableState]) -> list[pa.Table]:
    # Of a million files, all that is known would take hundreds of megabytes: it goes manifest by manifest.
    fetch = tracked.log.read_blobs
    with naming(tracked.log.location):
        return [named_by(part) for line in lines for part in line.files.parts(fetch)]


def added_by(
    tracked: TrackedLog[TableState], first: int, last: int, progress: Progress = no_progress
) -> Iterator[pa.Table]:
    """Yield the path and size of the files that these versions add, in parts."""
    some: list[pa.Table] = []
    rows = 0
    for commit in _commits(tracked, first, last):
        own = added(tracked, commit)
        some += own
        rows += sum(table.num_rows for table in own)
        if len(some) >= GATHERED_TABLES or rows >= GATHERED_ROWS:
            progress(f"{tracked.log.location}: version {commit.version:,} of {last:,}")
            yield joined(some)
            some, rows = [], 0
    if some:
        yield joined(some)


def _commits(tracked: TrackedLog[TableState], first: int, last: int) -> Iterator[Commit]:
    """Yield the commits. NotFound for one that has expired, FormatError for one that is missing: none is left out."""
    for entry in tracked.log.replay.effects(first, last):
        if not isinstance(entry, Commit):
            raise NotFound(f"version {entry.version} of {tracked.log.location} expired while it was read")
        yield entry


def added(tracked: TrackedLog[TableState], commit: Commit) -> list[pa.Table]:
    """Return the path and size of the files that a commit adds. NotFound where expiry deleted its sidecars."""
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
    named = files.select(_FILES.names)
    if DELETES not in files.column_names:
        return named
    texts = files[DELETES].drop_null().to_pylist()
    return joined([named, _vectors([deletes_from_json(text) for text in texts])])


def _vectors(listed: Iterable[Deletes | None]) -> pa.Table:
    """Return the objects that vectors are in. The size of an object is the end of the last of its vectors."""
    apart = [each for each in listed if each is not None and each.path is not None]
    return _table([(str(each.path), (each.offset or 0) + each.size_bytes) for each in apart])


def not_in(files: pa.Table, others: pa.Table) -> pa.Table:
    """Return `files` without those whose path is among `others`."""
    return without(files, others["path"].combine_chunks())


def among(files: pa.Table, others: pa.Table) -> pa.Array:
    """Return the paths of `files` that are among those of `others`, of which there are fewer."""
    column = files["path"].combine_chunks()
    return column.filter(pc.is_in(column, value_set=others["path"].combine_chunks()))


def paths(files: pa.Table) -> set[str]:
    return set(files["path"].to_pylist())


def total(files: pa.Table) -> int:
    return int(pc.sum(files["size"], min_count=0).as_py())


def _table(files: Iterable[tuple[str, int]]) -> pa.Table:
    rows = list(files)
    return pa.table({"path": [path for path, _ in rows], "size": [size for _, size in rows]}, schema=_FILES)
