"""The versions of a table as a stream sees them: files with new rows, a change of rows, or nothing."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import empty, joined
from lakelog.catalog.core.logs import CommitFiles, TableHead, files_of_commits
from lakelog.catalog.core.state import (
    MOVING,
    FilesChanged,
    RolledBack,
    SchemaChanged,
    TableReplaced,
    author_of,
    form_of,
    operations_of,
)
from lakelog.catalog.errors import StreamStopped
from lakelog.catalog.looking.changelog.stream_positions import Spent
from lakelog.log.errors import NotFound

CACHED_FILES = 200_000
"""This many files of versions are cached: a version is needed when a batch is planned, and when it is read."""


CACHED_HASHES = 10_000


@dataclass(frozen=True, slots=True)
class Seen:
    """One version: the files with rows that it added (in the form of `plan_scan`), in order.

    `changes` says whether it removed or restored rows; `form` is that of its schema where it gave the table one (see
    `form_of`). `spent` counts all that it added, removed and changed, for a stream that reads all of that.
    """

    version: int
    files: pa.Table
    changes: bool
    form: str | None
    operation: str
    author: str
    spent: Spent
    time_us: int
    hash: str


class Versions:
    """The versions that streams of this process have read. Safe to share between threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str, int, bool], Seen | pa.Table] = OrderedDict()
        self._times: dict[tuple[str, str, int], int] = {}
        self._hashes: OrderedDict[tuple[str, str, int], str] = OrderedDict()
        self._files = 0
        self._lock = threading.Lock()

    def seen(self, head: TableHead, first: int, last: int) -> Iterator[Seen]:
        """Yield the versions from `first` to `last`, without aborted ones. Costs a GET for each that is not cached.

        NotFound where one has expired.
        """
        version = first
        while version <= last:
            known = self._get((head.tracked.location, head.id, version, False))
            if isinstance(known, Seen):
                yield known
                version += 1
                continue
            for files in files_of_commits(head.tracked, version, last):
                one = _seen(files)
                self._put((head.tracked.location, head.id, one.version, False), one, one.files.num_rows)
                yield one
            return

    def at_time(self, head: TableHead, time_us: int) -> int:
        """Return the newest version at or before a time that is earlier than an existing version's. 0 for none."""
        key = (head.tracked.location, head.id, time_us)
        known = self._times.get(key)
        if known is None:
            try:
                known = head.tracked.version_at_time(time_us)
            except NotFound:
                known = 0
            # One for each query that ends at a time.
            self._times[key] = known
        return known

    def hash_of(self, head: TableHead, version: int) -> str:
        """Return the hash of the commit of an existing version, expired or not. A GET where no stream has read it."""
        known = self._get((head.tracked.location, head.id, version, False))
        if isinstance(known, Seen):
            return known.hash
        key = (head.tracked.location, head.id, version)
        with self._lock:
            found = self._hashes.get(key)
        if found is None:
            found = head.hash_of(version)
            with self._lock:
                self._hashes[key] = found
                while len(self._hashes) > CACHED_HASHES:
                    self._hashes.popitem(last=False)
        return found

    def whole(self, head: TableHead, version: int) -> pa.Table:
        """Return the files with rows that the table has at `version`, in an order that never changes. NotFound."""
        tracked = head.tracked
        key = (tracked.location, head.id, version, True)
        known = self._get(key)
        if not isinstance(known, pa.Table):
            newest = tracked.known
            view = (
                newest if newest is not None and newest.version == version else tracked.log.view_at(version)
            )
            if view.log_id != head.id:
                raise NotFound(f"version {version} belongs to another table")
            # Names begin with the version that a write started from, so that older rows come first.
            known = _with_rows(head.at(view).all_files()).sort_by("path")
            self._put(key, known, known.num_rows)
        return known

    def _get(self, key: tuple[str, str, int, bool]) -> Seen | pa.Table | None:
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
            return self._known.get(key)

    def _put(self, key: tuple[str, str, int, bool], value: Seen | pa.Table, files: int) -> None:
        with self._lock:
            if key not in self._known:
                self._files += files + 1
            self._known[key] = value
            while self._files > CACHED_FILES and len(self._known) > 1:
                _, gone = self._known.popitem(last=False)
                self._files -= (gone.files if isinstance(gone, Seen) else gone).num_rows + 1


def _seen(read: CommitFiles) -> Seen:
    form = None
    changes = False
    added: list[pa.Table] = []
    rewritten: list[set[str]] = []
    spent = Spent()
    for event in read.events:
        match event:
            case SchemaChanged():
                form = form_of(event.schema)
            case TableReplaced():
                # Earlier changes of the same transaction were to another table.
                form, changes, spent = form_of(event.schema), False, Spent()
                added.clear()
                rewritten.clear()
            case RolledBack():
                form = form if event.metadata is None else form_of(event.metadata.schema)
                changes = changes or any(_moves_rows(each) for each in read.events)
            case FilesChanged() if event.operation in MOVING:
                rewritten.append({file.path for file in read.removed(event)})
            case FilesChanged():
                changes = changes or event.removed_rows > 0 or event.deleted_rows > 0
                added.append(read.added(event))
                spent = spent.with_change(event)
            case _:
                pass
    files = _with_rows(joined(added))
    if rewritten and not changes:
        # Rows that the same transaction added and compacted are in files together with others.
        own = set(files["path"].to_pylist())
        changes = any(own & paths for paths in rewritten)
    return Seen(
        read.commit.version,
        files.sort_by("path"),
        changes,
        form,
        ", ".join(operations_of(read.commit)),
        author_of(read.commit) or "an unknown writer",
        spent,
        read.commit.time_us,
        read.commit.hash,
    )


def _moves_rows(event: object) -> bool:
    return isinstance(event, FilesChanged) and bool(
        event.added_rows or event.removed_rows or event.deleted_rows or event.changed_files
    )


def _with_rows(files: pa.Table) -> pa.Table:
    """Return `files` without those that stand for partitions without rows."""
    return files.filter(pc.greater(files["rows"], 0)) if files.num_rows else empty()


def expired(name: str, version: int) -> StreamStopped:
    return StreamStopped(
        f"version {version} of {name}, from which the stream has to continue, has expired before it was read: rows of "
        "it may be lost. Start the query with a new checkpoint, from the present contents or from an existing version "
        "(startingVersion), and let expire keep more versions than the streams lag behind. A stream of added rows goes "
        "on after what has expired, without those rows, by the option failOnDataLoss = false"
    )
