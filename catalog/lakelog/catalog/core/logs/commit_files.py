"""The changes of a table's files, read from commits alone, for streams and for changes of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import pyarrow as pa

from lakelog.catalog.core.files.data_file import RemovedFile, decode_files, decode_removed, files_to_arrow
from lakelog.catalog.core.files.row_ids import with_version
from lakelog.catalog.core.logs.named_errors import naming
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.state.decoded_events import table_events
from lakelog.catalog.core.state.events import FileChange, FilesChanged, TableEvent
from lakelog.catalog.core.state.table_state import TableState
from lakelog.log import Commit
from lakelog.log.errors import FormatError, NotFound


@dataclass(frozen=True, slots=True)
class CommitFiles:
    """The events of a commit, and the files of its `FilesChanged` events."""

    commit: Commit
    events: tuple[TableEvent, ...]
    _blobs: list[bytes]

    def added(self, event: FileChange) -> pa.Table:
        """Return the files that an event adds. Files in the event itself lack statistics and partitions."""
        if event.added_sidecar is not None:
            with naming(self._name):
                return with_version(decode_files(self._blob(event.added_sidecar)), self.commit.version)
        # Statistics and partition values are of no use to a reader of all rows.
        plain = [msgspec.structs.replace(file, stats={}, partition={}) for file in event.added]
        return files_to_arrow(with_version(plain, self.commit.version), Schema(fields=(), last_id=0), ())

    def removed(self, event: FilesChanged) -> list[RemovedFile]:
        if event.removed_sidecar is None:
            return list(event.removed)
        with naming(self._name):
            return decode_removed(self._blob(event.removed_sidecar))

    @property
    def _name(self) -> str:
        return f"version {self.commit.version} of the log {self.commit.log_id}"

    def _blob(self, index: int) -> bytes:
        if index >= len(self._blobs):
            raise FormatError(
                f"version {self.commit.version} of the log {self.commit.log_id} names its sidecar {index}, and "
                "has none of that number: find out which client wrote it"
            )
        return self._blobs[index]


def commits_with_sidecars(
    tracked: TrackedLog[TableState], first: int, last: int
) -> Iterator[tuple[Commit, list[bytes]]]:
    """Yield the commits from `first` to `last` with their sidecars, without aborted commits.

    All must exist. Costs a GET for each commit, and for each of its sidecars. Raises NotFound if any of them
    has expired.
    """
    for entry in tracked.log.replay.effects(first, last):
        if not isinstance(entry, Commit):
            raise NotFound(f"version {entry.version} expired")
        blobs = tracked.log.replay.sidecars([entry])[entry.version] if entry.sidecars else []
        if blobs is None:
            raise NotFound(f"version {entry.version} expired")
        yield entry, blobs


def files_of_commits(tracked: TrackedLog[TableState], first: int, last: int) -> Iterator[CommitFiles]:
    """Yield `commits_with_sidecars` with their events, as seen on a tag or branch if the log is on one."""
    for entry, blobs in commits_with_sidecars(tracked, first, last):
        commit = tracked.as_seen(entry)
        yield CommitFiles(commit, tuple(table_events(commit)), blobs)
