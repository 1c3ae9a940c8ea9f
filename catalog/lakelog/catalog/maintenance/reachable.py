"""Which data files the retained versions of a table can reach, and which files in its folder belong to it.

An object of deletion vectors counts as a data file here, if a file's entry names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.files import DELETES, Deletes, decode_files, deletes_from_json, joined
from lakelog.catalog.logs import TrackedLog, naming
from lakelog.catalog.state import FileChange, TableState, table_events
from lakelog.log import Commit, NotFound, View
from lakelog.log.errors import ConflictError
from lakelog.log.format import Base
from lakelog.log.leftovers import last_base_from

TRIES_MAX = 3
DATA = "data/"

_FILES = pa.schema([("path", pa.string()), ("size", pa.int64())])


def first_readable(base: Base | None) -> int:
    return 1 if base is None else base.root.version


def reachable(tracked: TrackedLog[TableState], last: int) -> pa.Table:
    """Return the path and size of every file that was in the table at any version that can be read, up to `last`.

    Costs one GET for each of those versions. ConflictError where concurrent expiry goes on for too long.
    """
    for _ in range(TRIES_MAX):
        view = tracked.current()
        before = last_base_from(tracked.log, view)
        try:
            files = ever_in(tracked, first_readable(before), last)
        except NotFound:
            files = None
        # A base exists before the first commit expires: without a new one, none of these was missing.
        after = last_base_from(tracked.log, view)
        if files is not None and before == after:
            return files
    raise ConflictError(f"versions of {tracked.log.location} expire while it is read: retry later")


def ever_in(tracked: TrackedLog[TableState], first: int, last: int) -> pa.Table:
    """Return the path and size of every file that was in the table at a version from `first` to `last`; some twice."""
    start = tracked.log.view_at(first)
    live = [named_by(chunk) for chunk in all_chunks(tracked, start)]
    commits = _commits(tracked, first + 1, last)
    return joined(
        [_FILES.empty_table(), *live, *(table for commit in commits for table in added(tracked, commit))]
    )


def all_chunks(tracked: TrackedLog[TableState], view: View[TableState]) -> list[pa.Table]:
    """Return the files of the table and of all its tags and branches (see `FileSet.chunks`), some more than once."""
    fetch = tracked.log.read_blobs
    with naming(tracked.log.location):
        return [chunk for line in view.state.lines() for chunk in line.files.chunks(fetch)]


def _commits(tracked: TrackedLog[TableState], first: int, last: int) -> Iterator[Commit]:
    """Yield the commits. NotFound for one that has expired, FormatError for one that is missing: none is left out."""
    for entry in tracked.log.replay.effects(first, last):
        if not isinstance(entry, Commit):
            raise NotFound(f"version {entry.version} of {tracked.log.location} expired while it was read")
        yield entry


def added(tracked: TrackedLog[TableState], commit: Commit) -> list[pa.Table]:
    """Return the path and size of the files that a commit adds. NotFound where expiry deleted its sidecars."""
    changes = [event for event in table_events(commit) if isinstance(event, FileChange)]
    tables = [
        _table([(file.path, file.size_bytes) for file in event.added]) for event in changes if event.added
    ]
    tables += [_vectors([file.deletes for file in event.added]) for event in changes if event.added]
    sidecars = [event.added_sidecar for event in changes if event.added_sidecar is not None]
    if sidecars:
        blobs = tracked.log.replay.sidecars([commit])[commit.version]
        if blobs is None:
            raise NotFound(f"version {commit.version} of {tracked.log.location} expired while it was read")
        tables += [named_by(decode_files(blobs[index])) for index in sidecars]
    return tables


def named_by(files: pa.Table) -> pa.Table:
    """Return the path and size of all objects that entries of files (in the form of `FileSet.chunks`) name."""
    named = files.select(_FILES.names)
    if DELETES not in files.column_names:
        return named
    texts = files[DELETES].drop_null().to_pylist()
    return joined([named, _vectors([deletes_from_json(text) for text in texts])])


def _vectors(listed: Iterable[Deletes | None]) -> pa.Table:
    """Return the objects that vectors are in. The size of an object is the end of the last of its vectors."""
    apart = [each for each in listed if each is not None and each.path is not None]
    return _table([(str(each.path), (each.offset or 0) + each.size_bytes) for each in apart])


def without(files: pa.Table, others: pa.Table) -> pa.Table:
    """Return `files` without those that are in `others` too, each once."""
    left = files.filter(pc.invert(pc.is_in(files["path"], value_set=others["path"].combine_chunks())))
    return left.group_by("path").aggregate([("size", "max")]).rename_columns(["path", "size"])


def paths(files: pa.Table) -> set[str]:
    return set(files["path"].to_pylist())


def total(files: pa.Table) -> int:
    return int(pc.sum(files["size"], min_count=0).as_py())


def _table(files: Sequence[tuple[str, int]] | Iterable[tuple[str, int]]) -> pa.Table:
    rows = list(files)
    return pa.table({"path": [path for path, _ in rows], "size": [size for _, size in rows]}, schema=_FILES)
