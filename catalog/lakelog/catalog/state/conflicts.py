"""The conflict matrix: what an operation may do when other commits came between its base and its turn.

For every operation and every kind of change there is exactly one rule; `catalog/README.md` shows the same matrix as a
table. Matches are exhaustive and have no wildcard, so that a new kind of change has to be thought about everywhere.
"""

from __future__ import annotations

from enum import Enum
from typing import assert_never

from lakelog.catalog.schema import Check
from lakelog.catalog.state.events import (
    BranchFilesChanged,
    ClusteringChanged,
    ConstraintAdded,
    ConstraintDropped,
    FastForwarded,
    FilesChanged,
    FilesVacuumed,
    HistoryExpired,
    IdentityTaken,
    PartitioningChanged,
    RefDropped,
    RefSet,
    RolledBack,
    SchemaChanged,
    SortOrderChanged,
    StatisticsComputed,
    StreamCommitted,
    TableAltered,
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
    DROP = "drop"

    @property
    def word(self) -> str:
        """What a commit and a message call it: nobody is told whether a delete went by files or by rows."""
        return "delete" if self is Operation.DELETE_ROWS else self.value

    @property
    def makes_rows(self) -> bool:
        """Whether an operation on rows writes others than were there, which it may have computed from any it read."""
        return self in (Operation.UPDATE, Operation.MERGE)


class Change(Enum):
    """What another commit did since the caller's base."""

    ADDED_FILES = "added files"
    REMOVED_FILES = "removed files"
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
    """What follows.

    REBASE: the change does not touch the operation, which goes on as it is. REEVALUATE: the operation read nothing that
    it cannot read again from metadata alone, so it is decided anew on the new state. CHECK_FILES: goes on unless a file
    added or removed since then may hold rows that the operation replaces. CHECK_ROWS: goes on unless rows that it
    changes were changed since then, or there are others by now that it should have seen. CHECK_SCHEMA: goes on if the
    files that it wrote still fit the schema. CHECK_VALUES: goes on unless it has taken identity values that others have
    taken. FAIL: a conflict; the caller has to start over. GONE: there is no such table any more.
    """

    REBASE = "rebase"
    REEVALUATE = "re-evaluate"
    CHECK_FILES = "check files"
    CHECK_ROWS = "check rows"
    CHECK_SCHEMA = "check schema"
    CHECK_VALUES = "check values"
    FAIL = "fail"
    GONE = "gone"


def rule(operation: Operation, change: Change) -> Rule:
    """Return what `operation` does about `change`."""
    match operation:
        case Operation.APPEND:
            return _for_append(change)
        case Operation.OVERWRITE | Operation.OVERWRITE_PARTITIONS:
            return _for_overwrite(change)
        case Operation.TRUNCATE | Operation.DELETE | Operation.ALTER | Operation.SET_CURRENT:
            return _for_metadata_only(change)
        case Operation.SET_REF | Operation.FAST_FORWARD:
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


def _for_append(change: Change) -> Rule:
    match change:
        case Change.ADDED_FILES | Change.REMOVED_FILES:
            return Rule.REBASE
        case Change.SCHEMA:
            return Rule.CHECK_SCHEMA
        case Change.PARTITIONING | Change.SORT_ORDER | Change.PROPERTIES | Change.CONSTRAINTS | Change.REFS:
            return Rule.REBASE
        case Change.CHECK:
            # Nobody has held the rows against it.
            return Rule.FAIL
        case Change.IDENTITY:
            return Rule.CHECK_VALUES
        case Change.REPLACED:
            return Rule.FAIL
        case Change.DROPPED:
            return Rule.GONE
    assert_never(change)


def _for_overwrite(change: Change) -> Rule:
    match change:
        case Change.ADDED_FILES:
            return Rule.CHECK_FILES
        case Change.REMOVED_FILES:
            # The new rows may come from a query that still saw those which are gone: they must not come back.
            return Rule.CHECK_FILES
        case Change.SCHEMA:
            return Rule.CHECK_SCHEMA
        case Change.PARTITIONING | Change.CHECK:
            return Rule.FAIL
        case Change.IDENTITY:
            return Rule.CHECK_VALUES
        case Change.SORT_ORDER | Change.PROPERTIES | Change.CONSTRAINTS | Change.REFS:
            return Rule.REBASE
        case Change.REPLACED:
            return Rule.FAIL
        case Change.DROPPED:
            return Rule.GONE
    assert_never(change)


def _for_rows(operation: Operation, change: Change) -> Rule:
    match change:
        case Change.ADDED_FILES | Change.REMOVED_FILES:
            return Rule.CHECK_ROWS
        case Change.SCHEMA:
            return Rule.CHECK_SCHEMA
        case Change.PARTITIONING | Change.SORT_ORDER | Change.PROPERTIES | Change.CONSTRAINTS | Change.REFS:
            # Files are named, not found by a filter, and their specs stay.
            return Rule.REBASE
        case Change.CHECK:
            # Nobody has held new rows against it. A delete has none: what it copies was there to be held against it.
            return Rule.REBASE if operation is Operation.DELETE_ROWS else Rule.FAIL
        case Change.IDENTITY:
            # Rows that are changed keep their values; only a merge has others, which need some.
            return Rule.CHECK_VALUES if operation is Operation.MERGE else Rule.REBASE
        case Change.REPLACED:
            return Rule.FAIL
        case Change.DROPPED:
            return Rule.GONE
    assert_never(change)


def _for_compact(change: Change) -> Rule:
    match change:
        case Change.ADDED_FILES:
            return Rule.REBASE
        case Change.REMOVED_FILES:
            return Rule.CHECK_ROWS
        case Change.SCHEMA:
            return Rule.CHECK_SCHEMA
        case Change.PARTITIONING | Change.SORT_ORDER | Change.PROPERTIES | Change.CHECK | Change.CONSTRAINTS:
            return Rule.REBASE
        case Change.IDENTITY | Change.REFS:
            return Rule.REBASE
        case Change.REPLACED:
            return Rule.FAIL
        case Change.DROPPED:
            return Rule.GONE
    assert_never(change)


def _for_metadata_only(change: Change) -> Rule:
    match change:
        case Change.ADDED_FILES | Change.REMOVED_FILES:
            return Rule.REEVALUATE
        case Change.SCHEMA | Change.PARTITIONING | Change.SORT_ORDER | Change.PROPERTIES:
            return Rule.REEVALUATE
        case Change.CHECK | Change.CONSTRAINTS | Change.IDENTITY | Change.REFS:
            return Rule.REEVALUATE
        case Change.REPLACED:
            return Rule.FAIL
        case Change.DROPPED:
            return Rule.GONE
    assert_never(change)


def _for_replace(change: Change) -> Rule:
    match change:
        case Change.ADDED_FILES | Change.REMOVED_FILES:
            return Rule.FAIL
        case Change.SORT_ORDER | Change.PROPERTIES | Change.CHECK | Change.CONSTRAINTS:
            # What the new table has of these was said with it.
            return Rule.REBASE
        case Change.IDENTITY:
            # The new table's columns are others.
            return Rule.REBASE
        case Change.REFS:
            # Whether there are branches now, which do not allow it, is seen from the state.
            return Rule.REEVALUATE
        case Change.SCHEMA | Change.PARTITIONING:
            # The replacement took its column and spec ids from the metadata at its base; they may be in use by now.
            return Rule.FAIL
        case Change.REPLACED:
            return Rule.FAIL
        case Change.DROPPED:
            return Rule.GONE
    assert_never(change)


def _for_rollback(change: Change) -> Rule:
    match change:
        case Change.ADDED_FILES | Change.REMOVED_FILES:
            return Rule.REEVALUATE
        case Change.SCHEMA | Change.PARTITIONING | Change.SORT_ORDER | Change.PROPERTIES | Change.REPLACED:
            # All of the table becomes what it was, whatever it is by now.
            return Rule.REEVALUATE
        case Change.CHECK | Change.CONSTRAINTS | Change.IDENTITY | Change.REFS:
            return Rule.REEVALUATE
        case Change.DROPPED:
            return Rule.GONE
    assert_never(change)


def _for_statistics(change: Change) -> Rule:
    match change:
        case (
            Change.ADDED_FILES
            | Change.REMOVED_FILES
            | Change.PARTITIONING
            | Change.SORT_ORDER
            | Change.PROPERTIES
            | Change.CHECK
            | Change.CONSTRAINTS
            | Change.IDENTITY
            | Change.REFS
        ):
            return Rule.REBASE
        case Change.SCHEMA:
            # They name columns by ids and say of which type their bounds are.
            return Rule.REBASE
        case Change.REPLACED:
            return Rule.FAIL
        case Change.DROPPED:
            return Rule.GONE
    assert_never(change)


def _for_drop(change: Change) -> Rule:
    match change:
        case Change.ADDED_FILES | Change.REMOVED_FILES:
            return Rule.REBASE
        case Change.SCHEMA | Change.PARTITIONING | Change.SORT_ORDER | Change.PROPERTIES | Change.REPLACED:
            return Rule.REBASE
        case Change.CHECK | Change.CONSTRAINTS | Change.IDENTITY | Change.REFS:
            return Rule.REBASE
        case Change.DROPPED:
            return Rule.GONE
    assert_never(change)


def changes(event: TableEvent) -> tuple[Change, ...]:
    """Return what `event` did to the table, in the matrix' words."""
    match event:
        case TableCreated() | TableReplaced():
            return (Change.REPLACED,)
        case SchemaChanged():
            return (Change.SCHEMA,)
        case PartitioningChanged():
            return (Change.PARTITIONING,)
        case SortOrderChanged() | ClusteringChanged():
            return (Change.SORT_ORDER,)
        case TableAltered():
            return (Change.PROPERTIES,)
        case ConstraintAdded():
            return (Change.CHECK if isinstance(event.constraint, Check) else Change.CONSTRAINTS,)
        case ConstraintDropped():
            return (Change.CONSTRAINTS,)
        case FilesChanged():
            added = (Change.ADDED_FILES,) if event.added_files else ()
            removed = (Change.REMOVED_FILES,) if event.removed_files or event.changed_files else ()
            return added + removed
        case BranchFilesChanged():
            # Another line's; who writes to that branch is shown it as a change of files.
            return ()
        case RefSet() | RefDropped() | FastForwarded():
            # What a fast-forward does to files is said beside it.
            return (Change.REFS,)
        case IdentityTaken():
            return (Change.IDENTITY,)
        case RolledBack():
            if event.metadata is None:
                return ()
            replaced = () if event.metadata.generation else (Change.REPLACED,)
            checks = any(isinstance(each, Check) for each in event.metadata.constraints)
            return (
                *replaced, Change.SCHEMA, Change.PARTITIONING, Change.SORT_ORDER, Change.PROPERTIES,
                Change.CHECK if checks else Change.CONSTRAINTS,
            )  # fmt: skip
        case TableDropped() | TablePurged():
            return (Change.DROPPED,)
        case TableMoved() | TableRestored() | HistoryExpired() | FilesVacuumed() | StatisticsComputed():
            # Names and old versions are nobody's business here; what started before a drop has met that already.
            return ()
        case StreamCommitted():
            # Another stream's batches are not this one's, and its own are looked up in the state.
            return ()
    assert_never(event)
