"""What maintenance has done to a line of contents since another one had all of it: rows moved to other files, no more.

Lines count their changes, so that of two it is known how many one has had since. Whether these only moved rows is in
the log: its newest commits are read back until that many changes of the line were seen. Nothing is read where lines
have each other's changes. Of what was moved, the new files stay where the other line still has the old ones as they
were: these hold the same rows, each with its id and version. Rule: what is not certain is a change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.errors import NoSuchRef
from lakelog.catalog.files import decode_files, decode_removed
from lakelog.catalog.logs import TableHead, file_keys, seen_on
from lakelog.catalog.state import (
    MAIN,
    MOVING,
    BranchFilesChanged,
    FastForwarded,
    FilesChanged,
    RefDropped,
    RefSet,
    RolledBack,
    TableCloned,
    TableCreated,
    TableEvent,
    TablePurged,
    TableReplaced,
    table_events,
)
from lakelog.log import Commit
from lakelog.log.errors import NotFound


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
    version = head.version
    for commit, event in _newest_first(head):
        if len(found) == changes:
            break
        if not _is_of(event, name):
            continue
        if not isinstance(event, FilesChanged | BranchFilesChanged) or event.operation not in MOVING:
            return None
        found.append(_paths(head, commit, event))
        # What a transaction has done itself is not in a version of its own.
        version = commit.version - 1 if commit.commit_id else commit.version
    if len(found) < changes:
        raise HistoryGone
    known = [each for each in found if each is not None]
    return LineMoves(version, known[::-1] if len(known) == len(found) else None)


def _newest_first(head: TableHead) -> Iterator[tuple[Commit, TableEvent]]:
    own = head.tracked.transaction.own_since(replace(head.view, steps=0))[: head.view.steps]
    for commit in reversed(own):
        for event in reversed(table_events(commit)):
            yield commit, event
    try:
        for commit in head.commits(newest_first=True):
            for event in reversed(table_events(commit)):
                yield commit, event
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
