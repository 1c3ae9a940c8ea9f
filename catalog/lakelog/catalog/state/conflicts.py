"""The conflict matrix: what an operation may do when other commits came between its base and its own.

For every operation and every kind of change there is exactly one rule; `catalog/README.md` shows the same matrix as a
table. Matches are exhaustive and have no wildcard, so that a new kind of change has to be decided everywhere.
"""

from __future__ import annotations

from enum import Enum
from typing import assert_never

from lakelog.catalog.schema import Check
from lakelog.catalog.state.events import (
    AdoptedDeleted,
    BranchFilesChanged,
    ClonePromised,
    CloneReleased,
    ClusteringChanged,
    ConstraintAdded,
    ConstraintDropped,
    ErasureEnded,
    FastForwarded,
    FilesAdopted,
    FilesChanged,
    FilesVacuumed,
    HistoryExpired,
    IdentityTaken,
    OriginsReleased,
    PartitioningChanged,
    RefDropped,
    RefSet,
    RolledBack,
    RowsAppended,
    RowsErased,
    SchemaChanged,
    SortOrderChanged,
    SourceImported,
    StatisticsComputed,
    StreamCommitted,
    TableAltered,
    TableCloned,
    TableCreated,
    TableDropped,
    TableEvent,
    TableMoved,
    TablePurged,
    TableReplaced,
    TableRestored,
)


class Operation(Enum):
    """What the caller is about to commit."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    OVERWRITE_PARTITIONS = "overwrite-partitions"
    TRUNCATE = "truncate"
    DELETE = "delete"
    DELETE_ROWS = "delete-rows"
    UPDATE = "update"
    MERGE = "merge"
    COMPACT = "compact"
    ALTER = "alter"
    REPLACE = "replace"
    ROLLBACK = "rollback"
    SET_CURRENT = "set-current-version"
    SET_REF = "set tag or branch"
    FAST_FORWARD = "fast-forward"
    COMPUTE_STATISTICS = "compute statistics"
    IMPORT = "import"
    CLONE = "clone"
    MATERIALIZE = "materialize"
    DROP = "drop"

    @property
    def word(self) -> str:
        """The word for it in commits and messages, the same for a delete of files and of rows."""
        return "delete" if self is Operation.DELETE_ROWS else self.value

    @property
    def makes_rows(self) -> bool:
        """Whether an operation on rows writes new rows, which it may have computed from any that it read."""
        return self in (Operation.UPDATE, Operation.MERGE)


MOVING = frozenset({Operation.COMPACT.value, Operation.MATERIALIZE.value})
"""The words of operations by which rows only come into other files, each with its id and its version."""


class ChangeKind(Enum):
    """What another commit did since the caller's base."""

    ADDED_FILES = "added files"
    REMOVED_FILES = "removed files"
    MOVED_ROWS = "moved rows"  # to other files, by a compaction: it adds none, and removes none
    SCHEMA = "changed the schema"
    PARTITIONING = "changed the partitioning"
    SORT_ORDER = "changed the sort order"  # or the clustering, which is one too
    PROPERTIES = "changed the properties"
    CHECK = "added a CHECK"
    CONSTRAINTS = "changed other constraints"
    IDENTITY = "took identity values"
    REFS = "changed tags or branches"
    REPLACED = "replaced the table"
    DROPPED = "dropped the table"


class Rule(Enum):
    """The consequence for an operation.

    REBASE: the change does not touch the operation, which goes on as it is. REEVALUATE: the operation read nothing that
    it cannot read again from metadata alone, so it is decided anew on the new state. CHECK_FILES: goes on unless a file
    added or removed since then may hold rows that the operation replaces. CHECK_ROWS: goes on unless rows that it
    changes were changed since then, or rows that it should have seen were added. CHECK_SCHEMA: goes on if the
    files that it wrote still fit the schema. CHECK_VALUES: goes on unless it has taken identity values that others have
    taken. FAIL: a conflict; the caller has to start over. GONE: the table was dropped.
    """

    REBASE = "rebase"
    REEVALUATE = "re-evaluate"
    CHECK_FILES = "check files"
    CHECK_ROWS = "check rows"
    CHECK_SCHEMA = "check schema"
    CHECK_VALUES = "check values"
    FAIL = "fail"
    GONE = "gone"


def rule(operation: Operation, change: ChangeKind) -> Rule:
    """Return what `operation` does about `change`."""
    match operation:
        case Operation.APPEND:
            return _for_append(change)
        case Operation.OVERWRITE | Operation.OVERWRITE_PARTITIONS:
            return _for_overwrite(change)
        case Operation.TRUNCATE | Operation.DELETE | Operation.ALTER | Operation.SET_CURRENT:
            return _for_metadata_only(change)
        case Operation.SET_REF | Operation.FAST_FORWARD | Operation.IMPORT:
            return _for_metadata_only(change)
        case Operation.CLONE | Operation.MATERIALIZE:
            return _for_metadata_only(change)
        case Operation.DELETE_ROWS | Operation.UPDATE | Operation.MERGE:
            return _for_rows(operation, change)
        case Operation.COMPACT:
            return _for_compact(change)
        case Operation.ROLLBACK:
            return _for_rollback(change)
        case Operation.REPLACE:
            return _for_replace(change)
        case Operation.COMPUTE_STATISTICS:
            return _for_statistics(change)
        case Operation.DROP:
            return _for_drop(change)
    assert_never(operation)


def _for_append(change: ChangeKind) -> Rule:
    match change:
        case ChangeKind.ADDED_FILES | ChangeKind.REMOVED_FILES | ChangeKind.MOVED_ROWS:
            return Rule.REBASE
        case ChangeKind.SCHEMA:
            return Rule.CHECK_SCHEMA
        case (
            ChangeKind.PARTITIONING
            | ChangeKind.SORT_ORDER
            | ChangeKind.PROPERTIES
            | ChangeKind.CONSTRAINTS
            | ChangeKind.REFS
        ):
            return Rule.REBASE
        case ChangeKind.CHECK:
            # The rows were not checked against it.
            return Rule.FAIL
        case ChangeKind.IDENTITY:
            return Rule.CHECK_VALUES
        case ChangeKind.REPLACED:
            return Rule.FAIL
        case ChangeKind.DROPPED:
            return Rule.GONE
    assert_never(change)


def _for_overwrite(change: ChangeKind) -> Rule:
    match change:
        case ChangeKind.ADDED_FILES:
            return Rule.CHECK_FILES
        case ChangeKind.REMOVED_FILES:
            # The new rows may come from a query that still saw the deleted ones: these must not come back.
            return Rule.CHECK_FILES
        case ChangeKind.MOVED_ROWS:
            # The rows that it replaces are looked for in the files to which they were moved.
            return Rule.REBASE
        case ChangeKind.SCHEMA:
            return Rule.CHECK_SCHEMA
        case ChangeKind.PARTITIONING | ChangeKind.CHECK:
            return Rule.FAIL
        case ChangeKind.IDENTITY:
            return Rule.CHECK_VALUES
        case ChangeKind.SORT_ORDER | ChangeKind.PROPERTIES | ChangeKind.CONSTRAINTS | ChangeKind.REFS:
            return Rule.REBASE
        case ChangeKind.REPLACED:
            return Rule.FAIL
        case ChangeKind.DROPPED:
            return Rule.GONE
    assert_never(change)


def _for_rows(operation: Operation, change: ChangeKind) -> Rule:
    match change:
        case ChangeKind.ADDED_FILES | ChangeKind.REMOVED_FILES | ChangeKind.MOVED_ROWS:
            return Rule.CHECK_ROWS
        case ChangeKind.SCHEMA:
            return Rule.CHECK_SCHEMA
        case (
            ChangeKind.PARTITIONING
            | ChangeKind.SORT_ORDER
            | ChangeKind.PROPERTIES
            | ChangeKind.CONSTRAINTS
            | ChangeKind.REFS
        ):
            # Files are named, not found by a filter, and their specs stay.
            return Rule.REBASE
        case ChangeKind.CHECK:
            # New rows were not checked against it. A delete has none: the rows that it copies were checked when it
            # was added.
            return Rule.REBASE if operation is Operation.DELETE_ROWS else Rule.FAIL
        case ChangeKind.IDENTITY:
            # Changed rows keep their values; only a merge has new rows, which need values.
            return Rule.CHECK_VALUES if operation is Operation.MERGE else Rule.REBASE
        case ChangeKind.REPLACED:
            return Rule.FAIL
        case ChangeKind.DROPPED:
            return Rule.GONE
    assert_never(change)


def _for_compact(change: ChangeKind) -> Rule:
    match change:
        case ChangeKind.ADDED_FILES:
            return Rule.REBASE
        case ChangeKind.REMOVED_FILES | ChangeKind.MOVED_ROWS:
            return Rule.CHECK_ROWS
        case ChangeKind.SCHEMA:
            return Rule.CHECK_SCHEMA
        case (
            ChangeKind.PARTITIONING
            | ChangeKind.SORT_ORDER
            | ChangeKind.PROPERTIES
            | ChangeKind.CHECK
            | ChangeKind.CONSTRAINTS
        ):
            return Rule.REBASE
        case ChangeKind.IDENTITY | ChangeKind.REFS:
            return Rule.REBASE
        case ChangeKind.REPLACED:
            return Rule.FAIL
        case ChangeKind.DROPPED:
            return Rule.GONE
    assert_never(change)


def _for_metadata_only(change: ChangeKind) -> Rule:
    match change:
        case ChangeKind.ADDED_FILES | ChangeKind.REMOVED_FILES | ChangeKind.MOVED_ROWS:
            return Rule.REEVALUATE
        case ChangeKind.SCHEMA | ChangeKind.PARTITIONING | ChangeKind.SORT_ORDER | ChangeKind.PROPERTIES:
            return Rule.REEVALUATE
        case ChangeKind.CHECK | ChangeKind.CONSTRAINTS | ChangeKind.IDENTITY | ChangeKind.REFS:
            return Rule.REEVALUATE
        case ChangeKind.REPLACED:
            return Rule.FAIL
        case ChangeKind.DROPPED:
            return Rule.GONE
    assert_never(change)


def _for_replace(change: ChangeKind) -> Rule:
    match change:
        case ChangeKind.ADDED_FILES | ChangeKind.REMOVED_FILES:
            return Rule.FAIL
        case ChangeKind.MOVED_ROWS:
            # All files go, whichever they are by then.
            return Rule.REBASE
        case ChangeKind.SORT_ORDER | ChangeKind.PROPERTIES | ChangeKind.CHECK | ChangeKind.CONSTRAINTS:
            # The new table's own were set with it.
            return Rule.REBASE
        case ChangeKind.IDENTITY:
            # The new table has other columns.
            return Rule.REBASE
        case ChangeKind.REFS:
            # Whether there are branches now, which do not allow it, is seen from the state.
            return Rule.REEVALUATE
        case ChangeKind.SCHEMA | ChangeKind.PARTITIONING:
            # The replacement took its column and spec ids from the metadata at its base; they may be in use by now.
            return Rule.FAIL
        case ChangeKind.REPLACED:
            return Rule.FAIL
        case ChangeKind.DROPPED:
            return Rule.GONE
    assert_never(change)


def _for_rollback(change: ChangeKind) -> Rule:
    match change:
        case ChangeKind.ADDED_FILES | ChangeKind.REMOVED_FILES | ChangeKind.MOVED_ROWS:
            return Rule.REEVALUATE
        case (
            ChangeKind.SCHEMA
            | ChangeKind.PARTITIONING
            | ChangeKind.SORT_ORDER
            | ChangeKind.PROPERTIES
            | ChangeKind.REPLACED
        ):
            # All of the table becomes what it was, regardless of changes since.
            return Rule.REEVALUATE
        case ChangeKind.CHECK | ChangeKind.CONSTRAINTS | ChangeKind.IDENTITY | ChangeKind.REFS:
            return Rule.REEVALUATE
        case ChangeKind.DROPPED:
            return Rule.GONE
    assert_never(change)


def _for_statistics(change: ChangeKind) -> Rule:
    match change:
        case (
            ChangeKind.ADDED_FILES
            | ChangeKind.REMOVED_FILES
            | ChangeKind.MOVED_ROWS
            | ChangeKind.PARTITIONING
            | ChangeKind.SORT_ORDER
            | ChangeKind.PROPERTIES
            | ChangeKind.CHECK
            | ChangeKind.CONSTRAINTS
            | ChangeKind.IDENTITY
            | ChangeKind.REFS
        ):
            return Rule.REBASE
        case ChangeKind.SCHEMA:
            # They name columns by ids and say of which type their bounds are.
            return Rule.REBASE
        case ChangeKind.REPLACED:
            return Rule.FAIL
        case ChangeKind.DROPPED:
            return Rule.GONE
    assert_never(change)


def _for_drop(change: ChangeKind) -> Rule:
    match change:
        case ChangeKind.ADDED_FILES | ChangeKind.REMOVED_FILES | ChangeKind.MOVED_ROWS:
            return Rule.REBASE
        case (
            ChangeKind.SCHEMA
            | ChangeKind.PARTITIONING
            | ChangeKind.SORT_ORDER
            | ChangeKind.PROPERTIES
            | ChangeKind.REPLACED
        ):
            return Rule.REBASE
        case ChangeKind.CHECK | ChangeKind.CONSTRAINTS | ChangeKind.IDENTITY | ChangeKind.REFS:
            return Rule.REBASE
        case ChangeKind.DROPPED:
            return Rule.GONE
    assert_never(change)


def changes(event: TableEvent) -> tuple[ChangeKind, ...]:
    """Return what `event` did to the table, in the matrix' words."""
    match event:
        case TableCreated() | TableCloned() | TableReplaced():
            return (ChangeKind.REPLACED,)
        case SchemaChanged():
            return (ChangeKind.SCHEMA,)
        case PartitioningChanged():
            return (ChangeKind.PARTITIONING,)
        case SortOrderChanged() | ClusteringChanged():
            return (ChangeKind.SORT_ORDER,)
        case TableAltered():
            return (ChangeKind.PROPERTIES,)
        case ConstraintAdded():
            return (ChangeKind.CHECK if isinstance(event.constraint, Check) else ChangeKind.CONSTRAINTS,)
        case ConstraintDropped():
            return (ChangeKind.CONSTRAINTS,)
        case FilesChanged() if event.operation in MOVING:
            return (ChangeKind.MOVED_ROWS,)
        case FilesChanged():
            added = (ChangeKind.ADDED_FILES,) if event.added_files else ()
            removed = (ChangeKind.REMOVED_FILES,) if event.removed_files or event.changed_files else ()
            return added + removed
        case RowsAppended():
            # A later change of the same version adds their files.
            return ()
        case BranchFilesChanged():
            # Another line's; a writer to that branch is shown it as a change of files.
            return ()
        case RefSet() | RefDropped() | FastForwarded():
            # Another event of the commit has what a fast-forward does to files.
            return (ChangeKind.REFS,)
        case IdentityTaken():
            return (ChangeKind.IDENTITY,)
        case RolledBack():
            if event.metadata is None:
                return ()
            replaced = () if event.metadata.generation else (ChangeKind.REPLACED,)
            checks = any(isinstance(each, Check) for each in event.metadata.constraints)
            return (
                *replaced, ChangeKind.SCHEMA, ChangeKind.PARTITIONING, ChangeKind.SORT_ORDER, ChangeKind.PROPERTIES,
                ChangeKind.CHECK if checks else ChangeKind.CONSTRAINTS,
            )  # fmt: skip
        case TableDropped() | TablePurged():
            return (ChangeKind.DROPPED,)
        case TableMoved() | TableRestored() | HistoryExpired() | FilesVacuumed() | StatisticsComputed():
            # Old versions do not matter, and an operation from before a drop has met that already. Whether the table
            # still has the name that the operation was prepared under is seen from the state.
            return ()
        case FilesAdopted() | AdoptedDeleted():
            # Contents stay as they are, and what an import relies on is looked up in the state.
            return ()
        case ClonePromised() | CloneReleased() | OriginsReleased():
            # What is kept for others, or by others, is no part of the contents.
            return ()
        case RowsErased() | ErasureEnded():
            # The changes of files before it have what it does to contents.
            return ()
        case SourceImported():
            # Other events of the commit have what it changes; a later import looks it up in the state.
            return ()
        case StreamCommitted():
            # Another stream's batches are not this one's, and its own are looked up in the state.
            return ()
    assert_never(event)
