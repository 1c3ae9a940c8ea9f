"""The changes of a table's files since a version, from its commits: files that came and went, and rows that
moved.

Compactions are kept apart: they add no row and remove none, but move rows to other files. Rule: entries have
the statistics of their commits, so they answer questions in the types of that time (see `types_may_differ`).

Lines of contents count their changes. So it is known how many changes a line has had since another line had
all of it. The log shows whether these only moved rows. Its newest commits are read back until that many
changes are found. The new files stay if the other line still has the old files unchanged. These hold the same
rows, each with its id and version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.data_file import decode_files, decode_removed, files_to_arrow
from lakelog.catalog.core.logs.branch_log import seen_on
from lakelog.catalog.core.logs.live_files import file_keys
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.state.conflicts import MOVING
from lakelog.catalog.core.state.decoded_events import says_only, table_events
from lakelog.catalog.core.state.events import (
    BranchFilesChanged,
    FastForwarded,
    FilesChanged,
    RefDropped,
    RefSet,
    RolledBack,
    RowsAppended,
    SchemaChanged,
    TableCloned,
    TableCreated,
    TableEvent,
    TablePurged,
    TableReplaced,
)
from lakelog.catalog.core.state.refs import MAIN
from lakelog.catalog.errors import CommitConflict, NoSuchRef
from lakelog.catalog.next_step import start_over
from lakelog.log import Commit
from lakelog.log.errors import NotFound
from lakelog.log.once import once


class FilesSince:
    """The changes of files between `base` and `head`, of a single line. It reads the parts that commits do
    not contain."""

    def __init__(self, base: TableHead, head: TableHead, passed_commits: Sequence[Commit]) -> None:
        self._base = base
        self._head = head
        self.commits = [commit for commit in passed_commits if commit.version > base.version]
        events = [
            (commit, event)
            for commit in self.commits
            if not says_only(commit, RowsAppended)
            for event in table_events(commit)
        ]
        self.events = [(commit, event) for commit, event in events if isinstance(event, FilesChanged)]
        self.types_may_differ = any(
            isinstance(event, RolledBack)
            or (isinstance(event, SchemaChanged) and not _has_all_of(head.schema, base.schema))
            or (isinstance(event, FastForwarded) and event.branch == MAIN)
            for _, event in events
        )

    @property
    def rows_moved(self) -> bool:
        """Return whether compactions also changed the files, so that only the commits show the changes of
        others."""
        return any(_moves(event) for _, event in self.events)

    @once
    def moved_to(self) -> set[str]:
        """The files to which compactions have moved rows."""
        moves = (self.added_by(*commit_event) for commit_event in self.events if _moves(commit_event[1]))
        return {path for new_files in moves for path in new_files["path"].to_pylist()}

    @once
    def added_by_others(self) -> list[pa.Table]:
        """The files that others have added or given another vector, whether or not they still exist."""
        return [self.added_by(*commit_event) for commit_event in self.events if not _moves(commit_event[1])]

    @once
    def removed_by_others(self) -> list[pa.Table]:
        """The files of the base, and of compactions since, that others have removed or given another
        vector."""
        removed_paths = {
            path
            for commit_event in self.events
            if not _moves(commit_event[1])
            for path in self._removed_by(*commit_event)
        }
        if not removed_paths:
            return []
        paths = pa.array(sorted(removed_paths), pa.string())
        moved_files = (
            self.added_by(*commit_event) for commit_event in self.events if _moves(commit_event[1])
        )
        candidates = [*self._base.files_named(removed_paths), *moved_files]
        return [files.filter(pc.is_in(files["path"], value_set=paths)) for files in candidates]

    def added_by(self, commit: Commit, event: FilesChanged) -> pa.Table:
        metadata = self._head.metadata
        if event.added_sidecar is None:
            return files_to_arrow(event.added, metadata.schema, metadata.specs)
        return decode_files(self._sidecars(commit)[event.added_sidecar])

    def only_added_by(self, commit: Commit, event: FilesChanged) -> pa.Table:
        """Return `added_by` without files that only got another vector."""
        new_files = self.added_by(commit, event)
        removed_paths = pa.array(list(self._removed_by(commit, event)), pa.string())
        return new_files.filter(pc.invert(pc.is_in(new_files["path"], value_set=removed_paths)))

    def _removed_by(self, commit: Commit, event: FilesChanged) -> Iterator[str]:
        at = event.removed_sidecar
        removed_files = event.removed if at is None else decode_removed(self._sidecars(commit)[at])
        return (file.path for file in removed_files)

    def _sidecars(self, commit: Commit) -> Sequence[bytes]:
        blobs = self._base.tracked.log.replay.sidecars([commit])[commit.version]
        if blobs is None:
            raise CommitConflict(
                f"version {commit.version} of {self._base.name} expired while a change that began before it was "
                f"committed: {start_over()}",
                version=commit.version,
            )
        return blobs


def _has_all_of(schema: Schema, past_schema: Schema) -> bool:
    """Return whether columns were only added, renamed or moved. Columns of `past_schema` still have their values and
    types."""
    types = {field.id: field.type for field in schema.fields}
    return all(types.get(field.id) == field.type for field in past_schema.fields)


def _moves(event: FilesChanged) -> bool:
    return event.operation in MOVING


# Whether a line was changed since another line had all of it


@dataclass(slots=True)
class _Group:
    """Files whose rows are all in other files now: the line's files before, and its files now."""

    before: set[str] = field(default_factory=set)
    now: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class LineMoves:
    """Moves of a line's rows, oldest first: the paths that each removed and added.

    `paths` is None if they are not known. `version` is the version before all of them.
    """

    version: int
    paths: Sequence[tuple[Collection[str], Collection[str]]] | None

    def groups(self) -> list[_Group]:
        """Return the old and the new files of each connected group of moves, from the first move to the
        last."""
        of: dict[str, _Group] = {}
        groups: list[_Group] = []
        for old_paths, new_paths in self.paths or ():
            into = _Group()
            for path in old_paths:
                earlier = of.get(path)
                if earlier is None:
                    into.before.add(path)
                elif earlier is not into:
                    into.before |= earlier.before
                    into.now |= earlier.now
                    of.update(dict.fromkeys(earlier.now, into))
                    groups.remove(earlier)
            into.now -= set(old_paths)
            into.now |= set(new_paths)
            of.update(dict.fromkeys(into.now, into))
            groups.append(into)
        return groups


class HistoryGone(Exception):
    """The versions that show the changes of a line have expired."""


def moves_of(head: TableHead, name: str, changes: int) -> LineMoves | None:
    """Return the last `changes` changes of a line of this version if they only moved rows, else None.

    Costs a GET for each version since then. Raises HistoryGone if these versions have expired.
    """
    move_paths: list[tuple[Collection[str], Collection[str]] | None] = []
    version, is_seen = head.version, True
    for of_version in _newest_first(head):
        for commit, event in of_version:
            if not _is_of(event, name):
                continue
            if len(move_paths) == changes:
                # The same version has changed the line before. No version has its files after that change.
                is_seen = False
                break
            if not isinstance(event, FilesChanged | BranchFilesChanged) or event.operation not in MOVING:
                return None
            move_paths.append(_paths(head, commit, event))
            # A transaction's own steps are not in versions of their own.
            version = commit.version - 1 if commit.commit_id else head.version
        if len(move_paths) == changes:
            break
    if len(move_paths) < changes:
        raise HistoryGone
    known_moves = [paths for paths in move_paths if paths is not None]
    return LineMoves(version, known_moves[::-1] if is_seen and len(known_moves) == len(move_paths) else None)


def _newest_first(head: TableHead) -> Iterator[list[tuple[Commit, TableEvent]]]:
    """Yield the events of each version, newest first. Events of a transaction's steps come together."""
    own = head.tracked.transaction.own_since(replace(head.view, steps=0))[: head.view.steps]
    yield [(commit, event) for commit in reversed(own) for event in reversed(table_events(commit))]
    try:
        for commit in head.commits(newest_first=True):
            yield [(commit, event) for event in reversed(table_events(commit))]
    except NotFound as error:
        raise HistoryGone from error


def _is_of(event: TableEvent, name: str) -> bool:
    """Return whether an event changes the contents of a line, or ends or begins it."""
    if name == MAIN:
        return isinstance(event, FilesChanged | TableReplaced | TableCreated | TableCloned | TablePurged)
    if isinstance(event, BranchFilesChanged):
        return event.branch == name
    return isinstance(event, RefSet | RefDropped) and event.name == name


def _paths(
    head: TableHead, commit: Commit, event: FilesChanged | BranchFilesChanged
) -> tuple[Collection[str], Collection[str]] | None:
    """Return the files that a move removed and added, or None if they are not in the log yet, or not any
    more."""
    removed_files, added_paths = event.removed, [file.path for file in event.added]
    if event.removed_sidecar is not None or event.added_sidecar is not None:
        blobs = head.tracked.log.replay.sidecars([commit])[commit.version] if commit.commit_id else None
        if blobs is None:
            return None
        if event.removed_sidecar is not None:
            removed_files = tuple(decode_removed(blobs[event.removed_sidecar]))
        if event.added_sidecar is not None:
            added_paths = decode_files(blobs[event.added_sidecar])["path"].to_pylist()
    # A file that only got another vector is in both.
    removed_paths = {file.path for file in removed_files}
    return removed_paths, set(added_paths)


def keeping(
    head: TableHead, name: str, id: str, moves: LineMoves, added: pa.Table, removed: pa.Table
) -> tuple[pa.Table, pa.Table]:
    """Return the files that a line gains and loses to become another line, without files of moved rows that
    may stay.

    The line's rows have only moved. `added` and `removed` are the files that only one of the two lines has. A
    group of files stays if the other line has all of its old files, each with the vector that it had then.
    """
    groups = moves.groups()
    if not groups:
        return added, removed
    files_to_add, files_to_remove = _known(added), _known(removed)
    groups = [
        group
        for group in groups
        if group.before <= files_to_add.keys() and group.now <= files_to_remove.keys()
    ]
    files_then = _then(head, name, id, moves.version, {path for group in groups for path in group.before})
    stay = [
        group
        for group in groups
        if all(files_then.get(path) == files_to_add[path] for path in group.before)
        # It holds by construction. Rows that are lost or doubled could not be repaired.
        and sum(files_to_add[path].rows for path in group.before)
        == sum(files_to_remove[path].rows for path in group.now)
    ]
    return (
        _without(added, {path for group in stay for path in group.before}),
        _without(removed, {path for group in stay for path in group.now}),
    )


class _Known(NamedTuple):
    key: str
    rows: int


def _known(files: pa.Table) -> dict[str, _Known]:
    facts = map(_Known, file_keys(files).to_pylist(), files["rows"].to_pylist())
    return dict(zip(files["path"].to_pylist(), facts, strict=True))


def _then(head: TableHead, name: str, id: str, version: int, paths: Collection[str]) -> dict[str, _Known]:
    """Return the files of a line at a version, or no files if that version has expired."""
    if not paths:
        return {}
    table = head.whole
    try:
        view = seen_on(table.tracked.view_at(version), name, id)
        tables = table.at(view).files_named(paths)
    except (NotFound, NoSuchRef):
        return {}
    return {path: file for files in tables for path, file in _known(files).items()}


def _without(files: pa.Table, paths: Collection[str]) -> pa.Table:
    if not paths:
        return files
    return files.filter(pc.invert(pc.is_in(files["path"], value_set=pa.array(sorted(paths), pa.string()))))


def only_moved(passed_commits: Sequence[Commit], version: int, lines: Collection[str] = (MAIN,)) -> bool:
    """Return whether others did something to these lines since a version, and only moved rows."""
    events = [
        event
        for commit in passed_commits
        if commit.version > version
        for event in table_events(commit)
        if any(_is_of(event, name) for name in lines)
        or isinstance(event, RolledBack)
        or (isinstance(event, FastForwarded) and event.branch in lines)
    ]
    return bool(events) and all(
        isinstance(event, FilesChanged | BranchFilesChanged) and event.operation in MOVING for event in events
    )
