"""What was done to a table's files since a version, as its commits say: files that came and went, and rows that moved.

Compactions are kept apart: they add no row and remove none, but move rows to other files. Rule: entries have the
statistics of their commits, so they are good for questions in the types of then (see `types_changed`).

Of lines of contents, which count their changes, it is known how many one has had since another had all of it. Whether
these only moved rows is in the log, of which the newest commits are read back until that many were seen. The new files
stay where the other line still has the old ones as they were: these hold the same rows, each with its id and version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import decode_files, decode_removed, files_to_arrow
from lakelog.catalog.core.logs import TableHead, file_keys, seen_on
from lakelog.catalog.core.schema import Schema
from lakelog.catalog.core.state import (
    MAIN,
    MOVING,
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
    says_only,
    table_events,
)
from lakelog.catalog.errors import CommitConflict, NoSuchRef
from lakelog.log import Commit
from lakelog.log.errors import NotFound
from lakelog.log.once import once


class FilesSince:
    """The changes of files between `base` and `head`, of one line. What commits do not have in themselves is read."""

    def __init__(self, base: TableHead, head: TableHead, passed: Sequence[Commit]) -> None:
        self._base = base
        self._head = head
        self.commits = [commit for commit in passed if commit.version > base.version]
        events = [
            (commit, event)
            for commit in self.commits
            if not says_only(commit, RowsAppended)
            for event in table_events(commit)
        ]
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


# Whether a line was changed since another one had all of it


@dataclass(slots=True)
class _Group:
    """Files of which the rows are all in others now: those that the line had before, and those that it has."""

    before: set[str] = field(default_factory=set)
    now: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class LineMoves:
    """Moves of a line's rows, oldest first: the paths that each removed and added. `paths` is None where they are not
    known. `version` is the one before them all."""

    version: int
    paths: Sequence[tuple[Collection[str], Collection[str]]] | None

    def groups(self) -> list[_Group]:
        """Return what became of what, from the first move to the last."""
        of: dict[str, _Group] = {}
        groups: list[_Group] = []
        for removed, added in self.paths or ():
            into = _Group()
            for path in removed:
                earlier = of.get(path)
                if earlier is None:
                    into.before.add(path)
                elif earlier is not into:
                    into.before |= earlier.before
                    into.now |= earlier.now
                    of.update(dict.fromkeys(earlier.now, into))
                    groups.remove(earlier)
            into.now -= set(removed)
            into.now |= set(added)
            of.update(dict.fromkeys(into.now, into))
            groups.append(into)
        return groups


class HistoryGone(Exception):
    """The versions that say what was done to a line have expired."""


def moves_of(head: TableHead, name: str, changes: int) -> LineMoves | None:
    """Return what the last `changes` changes of a line of this version were, if rows only moved; None where one of them
    was more than that. HistoryGone.

    Costs a GET for each version since then.
    """
    found: list[tuple[Collection[str], Collection[str]] | None] = []
    version, is_seen = head.version, True
    for of_version in _newest_first(head):
        for commit, event in of_version:
            if not _is_of(event, name):
                continue
            if len(found) == changes:
                # The same version has changed the line before: what that made of its files is in no version.
                is_seen = False
                break
            if not isinstance(event, FilesChanged | BranchFilesChanged) or event.operation not in MOVING:
                return None
            found.append(_paths(head, commit, event))
            # What a transaction has done itself is not in a version of its own.
            version = commit.version - 1 if commit.commit_id else head.version
        if len(found) == changes:
            break
    if len(found) < changes:
        raise HistoryGone
    known = [each for each in found if each is not None]
    return LineMoves(version, known[::-1] if is_seen and len(known) == len(found) else None)


def _newest_first(head: TableHead) -> Iterator[list[tuple[Commit, TableEvent]]]:
    """Yield the events of each version, newest first; those of a transaction's steps together."""
    own = head.tracked.transaction.own_since(replace(head.view, steps=0))[: head.view.steps]
    yield [(commit, event) for commit in reversed(own) for event in reversed(table_events(commit))]
    try:
        for commit in head.commits(newest_first=True):
            yield [(commit, event) for event in reversed(table_events(commit))]
    except NotFound as error:
        raise HistoryGone from error


def _is_of(event: TableEvent, name: str) -> bool:
    """Whether an event changes the contents of a line, or ends or begins it."""
    if name == MAIN:
        return isinstance(event, FilesChanged | TableReplaced | TableCreated | TableCloned | TablePurged)
    if isinstance(event, BranchFilesChanged):
        return event.branch == name
    return isinstance(event, RefSet | RefDropped) and event.name == name


def _paths(
    head: TableHead, commit: Commit, event: FilesChanged | BranchFilesChanged
) -> tuple[Collection[str], Collection[str]] | None:
    """Return the files that a move removed and added; None where they are not in the log yet, or not any more."""
    removed, added = event.removed, [file.path for file in event.added]
    if event.removed_sidecar is not None or event.added_sidecar is not None:
        blobs = head.tracked.log.replay.sidecars([commit])[commit.version] if commit.commit_id else None
        if blobs is None:
            return None
        if event.removed_sidecar is not None:
            removed = tuple(decode_removed(blobs[event.removed_sidecar]))
        if event.added_sidecar is not None:
            added = decode_files(blobs[event.added_sidecar])["path"].to_pylist()
    # A file that only got another vector is in both.
    gone = {file.path for file in removed}
    return gone, set(added)


def keeping(
    head: TableHead, name: str, id: str, moves: LineMoves, added: pa.Table, removed: pa.Table
) -> tuple[pa.Table, pa.Table]:
    """Return what a line, of which rows have only moved, is to get and to lose to become another, without what it has
    in its own files as it is in the other's: `added` and `removed` are the files that only one of the two has.

    A group of files stays where the other line has all files of before, each with the vector that it had then.
    """
    groups = moves.groups()
    if not groups:
        return added, removed
    coming, going = _known(added), _known(removed)
    groups = [each for each in groups if each.before <= coming.keys() and each.now <= going.keys()]
    then = _then(head, name, id, moves.version, {path for each in groups for path in each.before})
    stay = [
        each
        for each in groups
        if all(then.get(path) == coming[path] for path in each.before)
        # It holds by construction; rows that are lost or there twice could not be repaired.
        and sum(coming[path].rows for path in each.before) == sum(going[path].rows for path in each.now)
    ]
    return (
        _without(added, {path for each in stay for path in each.before}),
        _without(removed, {path for each in stay for path in each.now}),
    )


class _Known(NamedTuple):
    key: str
    rows: int


def _known(files: pa.Table) -> dict[str, _Known]:
    facts = map(_Known, file_keys(files).to_pylist(), files["rows"].to_pylist())
    return dict(zip(files["path"].to_pylist(), facts, strict=True))


def _then(head: TableHead, name: str, id: str, version: int, paths: Collection[str]) -> dict[str, _Known]:
    """Return the files of a line at a version; none where that has expired."""
    if not paths:
        return {}
    table = head.whole
    try:
        view = seen_on(table.tracked.view_at(version), name, id)
        found = table.at(view).files_named(paths)
    except (NotFound, NoSuchRef):
        return {}
    return {path: each for files in found for path, each in _known(files).items()}


def _without(files: pa.Table, paths: Collection[str]) -> pa.Table:
    if not paths:
        return files
    return files.filter(pc.invert(pc.is_in(files["path"], value_set=pa.array(sorted(paths), pa.string()))))


def only_moved(passed: Sequence[Commit], version: int, lines: Collection[str] = (MAIN,)) -> bool:
    """Whether all that others have done to these lines since a version is that rows moved, and that they did."""
    events = [
        event
        for commit in passed
        if commit.version > version
        for event in table_events(commit)
        if any(_is_of(event, name) for name in lines)
        or isinstance(event, RolledBack)
        or (isinstance(event, FastForwarded) and event.branch in lines)
    ]
    return bool(events) and all(
        isinstance(event, FilesChanged | BranchFilesChanged) and event.operation in MOVING for event in events
    )
