"""The conflict matrix: the rules for an operation if other commits come between its base and its own commit.

For every operation and every kind of change there is exactly one rule. `catalog/README.md` shows the same
matrix, which a test compares. There is no default rule, so that a new kind of change has to be decided for
every operation.
"""

from __future__ import annotations

from enum import Enum
from typing import assert_never

from lakelog.catalog.core.schema.constraints import CheckConstraint
from lakelog.catalog.core.state.events import (
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


class OperationKind(Enum):
    """The operation that the caller is about to commit."""

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
        return "delete" if self is OperationKind.DELETE_ROWS else self.value

    @property
    def makes_rows(self) -> bool:
        """Return whether it writes new rows, which it may have computed from any rows that it read."""
        return self in (OperationKind.UPDATE, OperationKind.MERGE)


MOVING = frozenset({OperationKind.COMPACT.value, OperationKind.MATERIALIZE.value})
"""The words of operations that only move rows into other files. Each row keeps its id and its version."""


class ChangeKind(Enum):
    """The effect of another commit since the caller's base."""

    ADDED_FILES = "added files"
    REMOVED_FILES = "removed files"
    MOVED_ROWS = "moved rows"  # to other files, by a compaction: it adds none, and removes none
    SCHEMA = "changed the schema"
    PARTITIONING = "changed the partitioning"
    SORT_ORDER = "changed the sort order"  # or the clustering, which is also an order
    PROPERTIES = "changed the properties"
    CHECK = "added a CHECK"
    CONSTRAINTS = "changed other constraints"
    IDENTITY = "took identity values"
    REFS = "changed tags or branches"
    REPLACED = "replaced the table"
    DROPPED = "dropped the table"


class ConflictRule(Enum):
    """The consequence for an operation.

    REBASE: the change does not touch the operation, which goes on as it is. REEVALUATE: the operation read
    only data that it can read again from metadata alone, so it is decided again on the new state. CHECK_FILES:
    goes on unless a file added or removed since then may hold rows that the operation replaces. CHECK_ROWS:
    goes on unless rows that it changes were changed since then, or rows that it should have seen were added.
    CHECK_SCHEMA: goes on if the files that it wrote still fit the schema. CHECK_VALUES: goes on unless it has
    taken identity values that others have taken. FAIL: a conflict, and the caller has to start over. GONE:
    the table was dropped.
    """

    REBASE = "rebase"
    REEVALUATE = "re-evaluate"
    CHECK_FILES = "check files"
    CHECK_ROWS = "check rows"
    CHECK_SCHEMA = "check schema"
    CHECK_VALUES = "check values"
    FAIL = "fail"
    GONE = "gone"


_MATRIX = """
operation            added  removed moved  schema parts  order  props  check  constr values refs   replaced dropped
append               rebase rebase  rebase schema rebase rebase rebase FAIL   rebase values rebase FAIL     gone
overwrite            files  files   rebase schema FAIL   rebase rebase FAIL   rebase values rebase FAIL     gone
overwrite_partitions files  files   rebase schema FAIL   rebase rebase FAIL   rebase values rebase FAIL     gone
delete_rows          rows   rows    rows   schema rebase rebase rebase rebase rebase rebase rebase FAIL     gone
update               rows   rows    rows   schema rebase rebase rebase FAIL   rebase rebase rebase FAIL     gone
merge                rows   rows    rows   schema rebase rebase rebase FAIL   rebase values rebase FAIL     gone
compact              rebase rows    rows   schema rebase rebase rebase rebase rebase rebase rebase FAIL     gone
replace              FAIL   FAIL    rebase FAIL   FAIL   rebase rebase rebase rebase rebase anew   FAIL     gone
rollback             anew   anew    anew   anew   anew   anew   anew   anew   anew   anew   anew   anew     gone
compute_statistics   rebase rebase  rebase rebase rebase rebase rebase rebase rebase rebase rebase FAIL     gone
drop                 rebase rebase  rebase rebase rebase rebase rebase rebase rebase rebase rebase rebase   gone
truncate             anew   anew    anew   anew   anew   anew   anew   anew   anew   anew   anew   FAIL     gone
delete               anew   anew    anew   anew   anew   anew   anew   anew   anew   anew   anew   FAIL     gone
alter                anew   anew    anew   anew   anew   anew   anew   anew   anew   anew   anew   FAIL     gone
set_current          anew   anew    anew   anew   anew   anew   anew   anew   anew   anew   anew   FAIL     gone
set_ref              anew   anew    anew   anew   anew   anew   anew   anew   anew   anew   anew   FAIL     gone
fast_forward         anew   anew    anew   anew   anew   anew   anew   anew   anew   anew   anew   FAIL     gone
import               anew   anew    anew   anew   anew   anew   anew   anew   anew   anew   anew   FAIL     gone
clone                anew   anew    anew   anew   anew   anew   anew   anew   anew   anew   anew   FAIL     gone
materialize          anew   anew    anew   anew   anew   anew   anew   anew   anew   anew   anew   FAIL     gone
"""
"""Operations by their names in `OperationKind`, kinds of changes in the order of `ChangeKind`. The reasons:

- A removed file matters to an overwrite, because its new rows may come from a query that still saw the file, and
  deleted rows must not come back. Moved rows do not matter, because replaced rows are found at their present place.
- A change of rows names its files and rows, so it goes on over new partitioning. An added CHECK applies to its new
  rows, and fails it. A delete of rows has no new rows, because its copies were checked when the CHECK was added. Of
  these operations only a merge has new rows that need identity values.
- A replacement took its column and spec ids from the metadata at its base, so they may be in use by now. It set
  everything else of the new table itself. Branches do not allow it, and the state shows if there are any.
- A rollback restores the whole table, regardless of changes since.
- Statistics name columns by their ids, and include the type of their bounds.
"""

_RULES = {
    "rebase": ConflictRule.REBASE,
    "anew": ConflictRule.REEVALUATE,
    "files": ConflictRule.CHECK_FILES,
    "rows": ConflictRule.CHECK_ROWS,
    "schema": ConflictRule.CHECK_SCHEMA,
    "values": ConflictRule.CHECK_VALUES,
    "FAIL": ConflictRule.FAIL,
    "gone": ConflictRule.GONE,
}


def _read_matrix() -> dict[tuple[OperationKind, ChangeKind], ConflictRule]:
    rows = [line.split() for line in _MATRIX.strip().splitlines()[1:]]
    return {
        (OperationKind[name.upper()], kind): _RULES[word]
        for name, *words in rows
        for kind, word in zip(ChangeKind, words, strict=True)
    }


_BY_PAIR = _read_matrix()


def rule(operation: OperationKind, change: ChangeKind) -> ConflictRule:
    """Return the rule for `operation` after `change`."""
    return _BY_PAIR[operation, change]


def changes(event: TableEvent) -> tuple[ChangeKind, ...]:
    """Return the effects of `event` on the table, as kinds of the matrix."""
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
            return (
                ChangeKind.CHECK if isinstance(event.constraint, CheckConstraint) else ChangeKind.CONSTRAINTS,
            )
        case ConstraintDropped():
            return (ChangeKind.CONSTRAINTS,)
        case FilesChanged() if event.operation in MOVING:
            return (ChangeKind.MOVED_ROWS,)
        case FilesChanged():
            added_kinds = (ChangeKind.ADDED_FILES,) if event.added_files else ()
            removed_kinds = (ChangeKind.REMOVED_FILES,) if event.removed_files or event.changed_files else ()
            return added_kinds + removed_kinds
        case RowsAppended():
            # A later change of the same version adds their files.
            return ()
        case BranchFilesChanged():
            # It changes another line. A writer to that branch sees it as a change of files.
            return ()
        case RefSet() | RefDropped() | FastForwarded():
            # Another event of the commit has the fast-forward's change of files.
            return (ChangeKind.REFS,)
        case IdentityTaken():
            return (ChangeKind.IDENTITY,)
        case RolledBack():
            if event.metadata is None:
                return ()
            replaces = () if event.metadata.generation else (ChangeKind.REPLACED,)
            checks = any(isinstance(constraint, CheckConstraint) for constraint in event.metadata.constraints)
            return (
                *replaces, ChangeKind.SCHEMA, ChangeKind.PARTITIONING, ChangeKind.SORT_ORDER, ChangeKind.PROPERTIES,
                ChangeKind.CHECK if checks else ChangeKind.CONSTRAINTS,
            )  # fmt: skip
        case TableDropped() | TablePurged():
            return (ChangeKind.DROPPED,)
        case TableMoved() | TableRestored() | HistoryExpired() | FilesVacuumed() | StatisticsComputed():
            # Old versions do not matter, and an operation from before a drop has met the drop itself. The
            # state shows whether the table still has the name that the operation was prepared under.
            return ()
        case FilesAdopted() | AdoptedDeleted():
            # Contents stay as they are, and an import looks up its premises in the state.
            return ()
        case ClonePromised() | CloneReleased() | OriginsReleased():
            # Files that are kept for others, or by others, are no part of the contents.
            return ()
        case RowsErased() | ErasureEnded():
            # The file changes before it have its effect on contents.
            return ()
        case SourceImported():
            # Other events of the commit have its changes. A later import looks it up in the state.
            return ()
        case StreamCommitted():
            # Batches of other streams do not matter, and a stream's own are looked up in the state.
            return ()
    assert_never(event)
