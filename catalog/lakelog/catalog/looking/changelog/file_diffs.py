"""How each version's files differ from those of the version before: removed, added, or with other deleted rows.

Of the steps of one commit, only the result counts: a file that it adds and removes again does not appear.
Files are dictionaries with the columns of `ENTRY`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakelog.catalog.core.files import CONSTANTS, DELETES, FIRST_ROW, FOOTER, NAMES, VERSION
from lakelog.catalog.core.logs import CommitFiles, TableHead, files_of_commits
from lakelog.catalog.core.schema import Schema
from lakelog.catalog.core.state import (
    MOVING,
    FastForwarded,
    FilesChanged,
    Operation,
    RefSet,
    RolledBack,
    SchemaChanged,
    SourceImported,
    TableCreated,
    TableEvent,
    TableReplaced,
)
from lakelog.log.errors import NotFound

Entry = dict[str, Any]
"""A data file, by the columns of `ENTRY`."""

ENTRY = pa.schema(
    [
        ("path", pa.string()),
        ("size", pa.int64()),
        ("rows", pa.int64()),
        ("write", pa.string()),
        (FOOTER, pa.int64()),
        (NAMES, pa.string()),
        (CONSTANTS, pa.string()),
        (DELETES, pa.string()),
        (FIRST_ROW, pa.int64()),
        (VERSION, pa.int64()),
    ]
)

_FRESH = {
    Operation.APPEND.value,
    Operation.OVERWRITE.value,
    Operation.OVERWRITE_PARTITIONS.value,
    Operation.TRUNCATE.value,
}
"""Operations whose added rows are all new, with ids that no row has had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """The changes of files by one version.

    `changed` are files whose deleted rows changed, before and after. `fresh`: all rows that it added are new ones.
    `backwards`: it was a rollback, or took over what a branch or another table has, which may have been rolled back,
    so that deleted rows may be live again.
    """

    version: int
    time_us: int
    removed: Sequence[Entry] = ()
    added: Sequence[Entry] = ()
    changed: Sequence[tuple[Entry, Entry]] = ()
    fresh: bool = False
    backwards: bool = False

    @property
    def takes_rows(self) -> bool:
        """Whether it may have removed rows."""
        return bool(self.removed or self.changed)

    @property
    def brings_rows(self) -> bool:
        return bool(self.added) or (self.backwards and bool(self.changed))

    @property
    def may_update(self) -> bool:
        """Whether a row of one id may have been deleted and inserted."""
        return self.takes_rows and self.brings_rows and not self.fresh

    @property
    def may_carry(self) -> bool:
        """Whether a row may have been deleted and inserted unchanged: copied, rather than updated."""
        # Rows that are deleted by their positions are never copied by the same operation.
        return self.may_update and (bool(self.removed) or self.backwards)


@dataclass(frozen=True, slots=True)
class Diffs:
    """The diffs of the versions from `first` to `last`, in order.

    `schemas` are those that their files have been written for, with versions that had them; `replaced` are the versions
    that replaced the table, and `made` is the one that created the branch: where there are any, there are no diffs.
    """

    diffs: Sequence[FileDiff]
    schemas: Sequence[tuple[int, Schema]]
    replaced: Sequence[int]
    made: int | None = None


def file_diffs(head: TableHead, first: int, last: int, before: Callable[[], TableHead]) -> Diffs:
    """Return the diffs of existing versions, of a table or of the branch that `head` is on.

    `before` returns the version before `first`, and is called only where one of its files is removed or changed, or
    where the table was rolled back.

    NotFound where a version has expired, or belongs to another table. Costs a GET for each version.
    """
    steps: list[_Step] = []
    schemas: list[tuple[int, Schema]] = []
    replaced: list[int] = []
    goes_back = False
    made: int | None = None
    for files in files_of_commits(head.tracked, first, last):
        is_created = any(isinstance(event, TableCreated) for event in files.events)
        if files.commit.log_id != head.id:
            raise NotFound(f"version {files.commit.version} belongs to another table")
        steps.append(_step(files))
        for event in files.events:
            if isinstance(event, RefSet) and event.id == head.ref_id:
                made = files.commit.version
            if isinstance(event, SchemaChanged | TableCreated | TableReplaced):
                schemas.append((files.commit.version, event.schema))
            elif isinstance(event, RolledBack) and event.metadata is not None:
                goes_back = True
                schemas.append((files.commit.version, event.metadata.schema))
            if (isinstance(event, TableReplaced) and not is_created) or _makes_another(event):
                replaced.append(files.commit.version)
    if replaced or made is not None:
        return Diffs((), schemas, replaced, made)
    needed = _needed_before(steps)
    live: dict[str, Entry] = {}
    # After a rollback, the columns of the first versions may be unlike all schemas that are known from the commits.
    if needed or (goes_back and first > 1):
        then = before()
        schemas.append((then.version, then.schema))
        live = {entry["path"]: entry for entry in _entries_at(then, needed)}
    return Diffs(list(_paired(steps, live)), schemas, ())


def entries(files: pa.Table) -> list[Entry]:
    """Return files (in the form of `FileSet.chunks`) as entries."""
    columns = [
        files[field.name].cast(field.type)
        if field.name in files.column_names
        else pa.nulls(files.num_rows, field.type)
        for field in ENTRY
    ]
    found: list[Entry] = pa.table(columns, schema=ENTRY).to_pylist()
    return found


def _makes_another(event: TableEvent) -> bool:
    return isinstance(event, RolledBack) and event.metadata is not None and event.metadata.generation == 0


@dataclass(frozen=True, slots=True)
class _Step:
    version: int
    time_us: int
    removed: Collection[str]
    added: dict[str, Entry]
    operations: Collection[str]
    backwards: bool


def _step(files: CommitFiles) -> _Step:
    removed: dict[str, None] = {}
    added: dict[str, Entry] = {}
    operations: dict[str, None] = {}
    backwards = False
    for event in files.events:
        if isinstance(event, TableReplaced):
            # The same commit created the table: no reader ever saw its earlier contents.
            removed.clear()
            added.clear()
        # A branch, or a source, may have been rolled back before the fast-forward to it, or before it was imported.
        backwards = backwards or isinstance(event, RolledBack | FastForwarded | SourceImported)
        if isinstance(event, FilesChanged):
            operations[event.operation] = None
            for gone in files.removed(event):
                if added.pop(gone.path, None) is None:
                    removed[gone.path] = None
            for entry in entries(files.added(event)):
                added[entry["path"]] = entry
    commit = files.commit
    return _Step(commit.version, commit.time_us, removed, added, operations, backwards)


def _needed_before(steps: Sequence[_Step]) -> set[str]:
    """Return which files must have existed before the first step."""
    needed: set[str] = set()
    come: set[str] = set()
    for step in steps:
        needed.update(path for path in step.removed if path not in come)
        come.update(step.added)
    return needed


def _entries_at(head: TableHead, paths: set[str]) -> list[Entry]:
    return [entry for chunk in head.files_named(paths) for entry in entries(chunk)]


def _paired(steps: Sequence[_Step], live: dict[str, Entry]) -> Iterator[FileDiff]:
    for step in steps:
        gone = [live.pop(path) for path in step.removed]
        live.update(step.added)
        if step.operations and MOVING.issuperset(step.operations):
            # Rows have only moved, each with its id and its version.
            continue
        changed = [
            (old, new) for old in gone if (new := step.added.get(old["path"])) and _is_same_file(old, new)
        ]
        still = {old["path"] for old, _ in changed}
        yield FileDiff(
            version=step.version,
            time_us=step.time_us,
            removed=[old for old in gone if old["path"] not in still and old["rows"]],
            added=[new for path, new in step.added.items() if path not in still and new["rows"]],
            changed=[(old, new) for old, new in changed if old[DELETES] != new[DELETES]],
            fresh=_FRESH.issuperset(step.operations),
            backwards=step.backwards,
        )


def _is_same_file(old: Entry, new: Entry) -> bool:
    """Return whether a path that is removed and added is the same file: one from elsewhere can be added again."""
    return bool(old["write"] == new["write"] and old[FIRST_ROW] == new[FIRST_ROW])
