"""What others have done to a table's files since a version, as their commits say: files that they added and removed.

Compactions are kept apart: they add no row and remove none, but move rows to other files. Rule: entries have the
statistics of their commits, so they are good for questions in the types of then (see `types_changed`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.files import decode_files, decode_removed, files_to_arrow
from lakelog.catalog.logs import TableHead
from lakelog.catalog.schema import Schema
from lakelog.catalog.state import (
    MAIN,
    MOVING,
    FastForwarded,
    FilesChanged,
    RolledBack,
    SchemaChanged,
    table_events,
)
from lakelog.log import Commit
from lakelog.log.once import once


class FilesSince:
    """The changes of files between `base` and `head`, of one line. What commits do not have in themselves is read."""

    def __init__(self, base: TableHead, head: TableHead, passed: Sequence[Commit]) -> None:
        self._base = base
        self._head = head
        self.commits = [commit for commit in passed if commit.version > base.version]
        events = [(commit, event) for commit in self.commits for event in table_events(commit)]
        self.events = [(commit, event) for commit, event in events if isinstance(event, FilesChanged)]
        self.types_changed = any(
            isinstance(event, RolledBack)
            or (isinstance(event, SchemaChanged) and not _has_all_of(head.schema, base.schema))
            or (isinstance(event, FastForwarded) and event.branch == MAIN)
            for _, event in events
        )

    @property
    def rows_moved(self) -> bool:
        """Whether the ends differ by compactions, too, so that only the commits say what others did."""
        return any(_moves(event) for _, event in self.events)

    @once
    def moved_to(self) -> set[str]:
        """The files to which compactions have moved rows."""
        moves = (self.added_by(*each) for each in self.events if _moves(each[1]))
        return {path for added in moves for path in added["path"].to_pylist()}

    @once
    def added_by_others(self) -> list[pa.Table]:
        """The files that others have added, with those that got another vector, whether they are still there or not."""
        return [self.added_by(*each) for each in self.events if not _moves(each[1])]

    @once
    def removed_by_others(self) -> list[pa.Table]:
        """The files of the base, and of compactions since, that others have removed or given another vector."""
        gone = {path for each in self.events if not _moves(each[1]) for path in self._removed_by(*each)}
        if not gone:
            return []
        paths = pa.array(sorted(gone), pa.string())
        moved = (self.added_by(*each) for each in self.events if _moves(each[1]))
        there = [*self._base.files_named(gone), *moved]
        return [files.filter(pc.is_in(files["path"], value_set=paths)) for files in there]

    def added_by(self, commit: Commit, event: FilesChanged) -> pa.Table:
        metadata = self._head.metadata
        if event.added_sidecar is None:
            return files_to_arrow(event.added, metadata.schema, metadata.specs)
        return decode_files(self._sidecars(commit)[event.added_sidecar])

    def only_added_by(self, commit: Commit, event: FilesChanged) -> pa.Table:
        """As `added_by`, without files that only got another vector."""
        added = self.added_by(commit, event)
        removed = pa.array(list(self._removed_by(commit, event)), pa.string())
        return added.filter(pc.invert(pc.is_in(added["path"], value_set=removed)))

    def _removed_by(self, commit: Commit, event: FilesChanged) -> Iterator[str]:
        at = event.removed_sidecar
        removed = event.removed if at is None else decode_removed(self._sidecars(commit)[at])
        return (file.path for file in removed)

    def _sidecars(self, commit: Commit) -> Sequence[bytes]:
        blobs = self._base.tracked.log.replay.sidecars([commit])[commit.version]
        if blobs is None:
            raise CommitConflict(
                f"version {commit.version} of {self._base.name} expired while a change that began before it was "
                "committed: run the statement again",
                version=commit.version,
            )
        return blobs


def _has_all_of(now: Schema, then: Schema) -> bool:
    """Return whether columns were only added, renamed or moved: those of then have their values and types."""
    types = {field.id: field.type for field in now.fields}
    return all(types.get(field.id) == field.type for field in then.fields)


def _moves(event: FilesChanged) -> bool:
    return event.operation in MOVING
