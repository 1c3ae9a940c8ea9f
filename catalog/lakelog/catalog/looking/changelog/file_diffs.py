"""How each version's files differ from the version before: removed, added, or with other deleted rows.

Only the result of a commit counts: a file that it adds and removes again does not appear. Files are
dictionaries with the columns of `ENTRY`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakelog.catalog.core.files import CONSTANTS, DELETES, FIRST_ROW, FOOTER, NAMES, VERSION, live_twice
from lakelog.catalog.core.logs import CommitFiles, TableHead, files_of_commits
from lakelog.catalog.core.schema import Schema
from lakelog.catalog.core.state import (
    MOVING,
    FastForwarded,
    FilesChanged,
    OperationKind,
    RefSet,
    RolledBack,
    SchemaChanged,
    SourceImported,
    TableCreated,
    TableEvent,
    TableReplaced,
)
from lakelog.log.errors import NotFound

FileEntry = dict[str, Any]
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
    OperationKind.APPEND.value,
    OperationKind.OVERWRITE.value,
    OperationKind.OVERWRITE_PARTITIONS.value,
    OperationKind.TRUNCATE.value,
}
"""Operations whose added rows are all new, with ids that no row had before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """The changes of files by a version.

    `changed` are files whose deleted rows changed, before and after. With `fresh`, all rows that it added are
    new. With `backwards`, deleted rows may be live again. It was a rollback, or took over a branch or another
    table, which may have been rolled back.
    """

    version: int
    time_us: int
    removed: Sequence[FileEntry] = ()
    added: Sequence[FileEntry] = ()
    changed: Sequence[tuple[FileEntry, FileEntry]] = ()
    fresh: bool = False
    backwards: bool = False

    @property
    def takes_rows(self) -> bool:
        """Whether the version may have removed rows."""
        return bool(self.removed or self.changed)

    @property
    def brings_rows(self) -> bool:
        return bool(self.added) or (self.backwards and bool(self.changed))

    @property
    def may_update(self) -> bool:
        """Whether a row of the same id may have been deleted and inserted."""
        return self.takes_rows and self.brings_rows and not self.fresh

    @property
    def may_carry(self) -> bool:
        """Whether a row may have been deleted and inserted unchanged: copied, rather than updated."""
        # Rows that are deleted by their positions are never copied by the same operation.
        return self.may_update and (bool(self.removed) or self.backwards)


@dataclass(frozen=True, slots=True)
class FileDiffs:
    """The diffs of the versions from `first` to `last`, in order.

    `schemas` are the schemas that their files were written for, with versions that had them. `replaced` are
    the versions that replaced the table. `made` is the version that created the branch. If there are any of
    these, there are no diffs.
    """

    diffs: Sequence[FileDiff]
    schemas: Sequence[tuple[int, Schema]]
    replaced: Sequence[int]
    made: int | None = None


def file_diffs(head: TableHead, first: int, last: int, before: Callable[[], TableHead]) -> FileDiffs:
    """Return the diffs of existing versions, of a table or of the branch that `head` is on.

    `before` returns the version before `first`. It is called only if a file of that version is removed or
    changed, or if the table was rolled back. Raises NotFound if a version has expired, or belongs to another
    table, and FormatError if a version adds a file that an earlier version has added. Makes a GET for each
    version.
    """
    steps: list[_Step] = []
    schemas: list[tuple[int, Schema]] = []
    replaced_versions: list[int] = []
    goes_back = False
    branch_version: int | None = None
    for files in files_of_commits(head.tracked, first, last):
        is_created = any(isinstance(event, TableCreated) for event in files.events)
        if files.commit.log_id != head.id:
            raise NotFound(f"version {files.commit.version} belongs to another table")
        steps.append(_step(files))
        for event in files.events:
            if isinstance(event, RefSet) and event.id == head.ref_id:
                branch_version = files.commit.version
            if isinstance(event, SchemaChanged | TableCreated | TableReplaced):
                schemas.append((files.commit.version, event.schema))
            elif isinstance(event, RolledBack) and event.metadata is not None:
                goes_back = True
                schemas.append((files.commit.version, event.metadata.schema))
            if (isinstance(event, TableReplaced) and not is_created) or _makes_another(event):
                replaced_versions.append(files.commit.version)
    if replaced_versions or branch_version is not None:
        return FileDiffs((), schemas, replaced_versions, branch_version)
    needed_paths = _needed_before(steps)
    live: dict[str, FileEntry] = {}
    # After a rollback, the columns of the first versions may differ from all schemas in the
    # commits.
    if needed_paths or (goes_back and first > 1):
        previous_head = before()
        schemas.append((previous_head.version, previous_head.schema))
        live = {entry["path"]: entry for entry in _entries_at(previous_head, needed_paths)}
    return FileDiffs(list(_paired(steps, live)), schemas, ())


def entries(files: pa.Table) -> list[FileEntry]:
    """Return files (in the form of `FileSet.chunks`) as entries."""
    columns = [
        files[field.name].cast(field.type)
        if field.name in files.column_names
        else pa.nulls(files.num_rows, field.type)
        for field in ENTRY
    ]
    rows: list[FileEntry] = pa.table(columns, schema=ENTRY).to_pylist()
    return rows


def _makes_another(event: TableEvent) -> bool:
    return isinstance(event, RolledBack) and event.metadata is not None and event.metadata.generation == 0


@dataclass(frozen=True, slots=True)
class _Step:
    version: int
    time_us: int
    removed: Collection[str]
    added: dict[str, FileEntry]
    operations: Collection[str]
    backwards: bool


def _step(files: CommitFiles) -> _Step:
    removed_paths: dict[str, None] = {}
    added_entries: dict[str, FileEntry] = {}
    operations: dict[str, None] = {}
    backwards = False
    for event in files.events:
        if isinstance(event, TableReplaced):
            # The same commit created the table, so no reader ever saw its earlier contents.
            removed_paths.clear()
            added_entries.clear()
        # A branch, or a source, may have been rolled back before the fast-forward to it, or before it was imported.
        backwards = backwards or isinstance(event, RolledBack | FastForwarded | SourceImported)
        if isinstance(event, FilesChanged):
            operations[event.operation] = None
            for file in files.removed(event):
                if added_entries.pop(file.path, None) is None:
                    removed_paths[file.path] = None
            for entry in entries(files.added(event)):
                added_entries[entry["path"]] = entry
    commit = files.commit
    return _Step(commit.version, commit.time_us, removed_paths, added_entries, operations, backwards)


def _needed_before(steps: Sequence[_Step]) -> set[str]:
    """Return the paths of files that must have existed before the first step."""
    needed_paths: set[str] = set()
    added_paths: set[str] = set()
    for step in steps:
        needed_paths.update(path for path in step.removed if path not in added_paths)
        added_paths.update(step.added)
    return needed_paths


def _entries_at(head: TableHead, paths: set[str]) -> list[FileEntry]:
    return [entry for chunk in head.files_named(paths) for entry in entries(chunk)]


def _paired(steps: Sequence[_Step], live: dict[str, FileEntry]) -> Iterator[FileDiff]:
    for step in steps:
        removed_entries = [live.pop(path) for path in step.removed]
        for path in live.keys() & step.added.keys():
            raise live_twice(path)
        live.update(step.added)
        if step.operations and MOVING.issuperset(step.operations):
            # Rows have only moved, each with its id and its version.
            continue
        entry_pairs = [
            (old, new)
            for old in removed_entries
            if (new := step.added.get(old["path"])) and _is_same_file(old, new)
        ]
        same_paths = {old["path"] for old, _ in entry_pairs}
        yield FileDiff(
            version=step.version,
            time_us=step.time_us,
            removed=[old for old in removed_entries if old["path"] not in same_paths and old["rows"]],
            added=[new for path, new in step.added.items() if path not in same_paths and new["rows"]],
            changed=[(old, new) for old, new in entry_pairs if old[DELETES] != new[DELETES]],
            fresh=_FRESH.issuperset(step.operations),
            backwards=step.backwards,
        )


def _is_same_file(old: FileEntry, new: FileEntry) -> bool:
    """Return whether a path that is removed and added is the same file. A file outside can be added again."""
    return bool(old["write"] == new["write"] and old[FIRST_ROW] == new[FIRST_ROW])
