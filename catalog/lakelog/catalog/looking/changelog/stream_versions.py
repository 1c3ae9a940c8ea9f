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
from lakelog.catalog.looking.changelog.stream_positions import BatchSize
from lakelog.log.errors import NotFound

CACHED_FILES = 200_000
"""The most files of versions that are cached.

A batch needs a version when it is planned, and when it is read.
"""


CACHED_HASHES = 10_000


@dataclass(frozen=True, slots=True)
class StreamVersion:
    """A version: the files with rows that it added (in the form of `plan_scan`), in order.

    `changes` says whether it removed or restored rows. `form` is the form of its schema (see `form_of`), if
    it gave the table a schema. `spent` counts all that it added, removed and changed, for a stream of
    changes.
    """

    version: int
    files: pa.Table
    changes: bool
    form: str | None
    operation: str
    author: str
    spent: BatchSize
    time_us: int
    hash: str


class StreamVersions:
    """The versions that streams of this process have read. Safe to share between threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str, int, bool], StreamVersion | pa.Table] = OrderedDict()
        self._times: dict[tuple[str, str, int], int] = {}
        self._hashes: OrderedDict[tuple[str, str, int], str] = OrderedDict()
        self._files = 0
        self._lock = threading.Lock()

    def seen(self, head: TableHead, first: int, last: int) -> Iterator[StreamVersion]:
        """Yield the versions from `first` to `last`, without aborted versions.

        Makes a GET for each version that is not cached. Raises NotFound if a version has expired.
        """
        version = first
        while version <= last:
            cached_version = self._get((head.tracked.location, head.id, version, False))
            if isinstance(cached_version, StreamVersion):
                yield cached_version
                version += 1
                continue
            for files in files_of_commits(head.tracked, version, last):
                version_files = _seen(files)
                self._put(
                    (head.tracked.location, head.id, version_files.version, False),
                    version_files,
                    version_files.files.num_rows,
                )
                yield version_files
            return

    def at_time(self, head: TableHead, time_us: int) -> int:
        """Return the newest version at or before a time, or 0.

        The time is earlier than an existing version's.
        """
        key = (head.tracked.location, head.id, time_us)
        newest_version = self._times.get(key)
        if newest_version is None:
            try:
                newest_version = head.tracked.version_at_time(time_us)
            except NotFound:
                newest_version = 0
            # The cache gets an entry for each query that ends at a time.
            self._times[key] = newest_version
        return newest_version

    def hash_of(self, head: TableHead, version: int) -> str:
        """Return the commit hash of an existing version, expired or not.

        Makes a GET if no stream has read it.
        """
        cached_version = self._get((head.tracked.location, head.id, version, False))
        if isinstance(cached_version, StreamVersion):
            return cached_version.hash
        key = (head.tracked.location, head.id, version)
        with self._lock:
            commit_hash = self._hashes.get(key)
        if commit_hash is None:
            commit_hash = head.hash_of(version)
            with self._lock:
                self._hashes[key] = commit_hash
                while len(self._hashes) > CACHED_HASHES:
                    self._hashes.popitem(last=False)
        return commit_hash

    def whole(self, head: TableHead, version: int) -> pa.Table:
        """Return the table's files with rows at `version`, in an order that never changes.

        May raise NotFound.
        """
        tracked = head.tracked
        key = (tracked.location, head.id, version, True)
        files = self._get(key)
        if not isinstance(files, pa.Table):
            newest = tracked.known
            view = (
                newest if newest is not None and newest.version == version else tracked.log.view_at(version)
            )
            if view.log_id != head.id:
                raise NotFound(f"version {version} belongs to another table")
            # File names begin with the version that a write started from, so older rows come first.
            files = _with_rows(head.at(view).all_files()).sort_by("path")
            self._put(key, files, files.num_rows)
        return files

    def _get(self, key: tuple[str, str, int, bool]) -> StreamVersion | pa.Table | None:
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
            return self._known.get(key)

    def _put(self, key: tuple[str, str, int, bool], value: StreamVersion | pa.Table, files: int) -> None:
        with self._lock:
            if key not in self._known:
                self._files += files + 1
            self._known[key] = value
            while self._files > CACHED_FILES and len(self._known) > 1:
                _, oldest_value = self._known.popitem(last=False)
                self._files -= (
                    oldest_value.files if isinstance(oldest_value, StreamVersion) else oldest_value
                ).num_rows + 1


def _seen(read: CommitFiles) -> StreamVersion:
    form = None
    changes = False
    added_tables: list[pa.Table] = []
    rewritten_paths: list[set[str]] = []
    batch_size = BatchSize()
    for event in read.events:
        match event:
            case SchemaChanged():
                form = form_of(event.schema)
            case TableReplaced():
                # Earlier changes of the same transaction were to another table.
                form, changes, batch_size = form_of(event.schema), False, BatchSize()
                added_tables.clear()
                rewritten_paths.clear()
            case RolledBack():
                form = form if event.metadata is None else form_of(event.metadata.schema)
                changes = changes or any(_moves_rows(change) for change in read.events)
            case FilesChanged() if event.operation in MOVING:
                rewritten_paths.append({file.path for file in read.removed(event)})
            case FilesChanged():
                changes = changes or event.removed_rows > 0 or event.deleted_rows > 0
                added_tables.append(read.added(event))
                batch_size = batch_size.with_change(event)
            case _:
                pass
    files = _with_rows(joined(added_tables))
    if rewritten_paths and not changes:
        # Rows that the same transaction added and compacted share files with other rows.
        added_paths = set(files["path"].to_pylist())
        changes = any(added_paths & paths for paths in rewritten_paths)
    return StreamVersion(
        read.commit.version,
        files.sort_by("path"),
        changes,
        form,
        ", ".join(operations_of(read.commit)),
        author_of(read.commit) or "an unknown writer",
        batch_size,
        read.commit.time_us,
        read.commit.hash,
    )


def _moves_rows(event: object) -> bool:
    return isinstance(event, FilesChanged) and bool(
        event.added_rows or event.removed_rows or event.deleted_rows or event.changed_files
    )


def _with_rows(files: pa.Table) -> pa.Table:
    """Return `files` without the files that stand for empty partitions."""
    return files.filter(pc.greater(files["rows"], 0)) if files.num_rows else empty()


def expired(name: str, version: int) -> StreamStopped:
    return StreamStopped(
        f"version {version} of {name}, from which the stream has to continue, has expired before it was read: rows of "
        "it may be lost. Start the query with a new checkpoint, from the present contents or from an existing version "
        "(startingVersion), and let expire keep more versions than the streams lag behind. A stream of added rows goes "
        "on after what has expired, without those rows, by the option failOnDataLoss = false"
    )
