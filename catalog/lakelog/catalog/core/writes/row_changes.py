"""Changes of rows: delete, update, merge and compaction, as an engine prepared them by reading files of one
version.

Such a change names files that are replaced by new files (removed), rows of files by their positions
(deletes), and new files. It was computed from its base. So it is rebased over other commits only if these do
not touch the rows that it changes, and add no rows that it should have seen. See `conflicts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lakelog.catalog.core.files.data_file import DataFile, check_written_by
from lakelog.catalog.core.files.deletion_vectors import DeletedPositions, positions_of
from lakelog.catalog.core.logs.changed import TableCommit
from lakelog.catalog.core.logs.commits import NothingToDo, OperationFacts, Token, check_conflicts, no_files
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.schema.identity import ValuesTaken
from lakelog.catalog.core.schema.predicate import Predicate
from lakelog.catalog.core.state.conflicts import ChangeKind, OperationKind
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.core.writes.identity_values import with_values
from lakelog.catalog.core.writes.prepared_rows import PreparedChange, RowChange
from lakelog.catalog.core.writes.row_rebase import RowRebase, draft_of
from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.next_step import start_over
from lakelog.log import Commit, Draft, LogView, WriteRef
from lakelog.log.errors import InvalidInput

_OPERATIONS = {
    each.word: each
    for each in (OperationKind.DELETE_ROWS, OperationKind.UPDATE, OperationKind.MERGE, OperationKind.COMPACT)
}


def row_change(
    operation: str,
    files: Sequence[DataFile],
    removed: Sequence[str],
    deletes: Sequence[DeletedPositions | Mapping[str, Any]],
    condition: Predicate | None,
    values: Sequence[ValuesTaken] = (),
    *,
    reads_others: bool = False,
    inserted: int | None = None,
    updated: int | None = None,
) -> RowChange:
    """Return an engine's change. Raises InvalidInput for a change that makes no sense in itself."""
    if operation not in _OPERATIONS:
        raise InvalidInput(f"{operation!r} is not an operation on rows: use one of {', '.join(_OPERATIONS)}")
    positions = positions_of(deletes)
    if len({*positions, *removed}) < len(positions) + len(removed):
        raise InvalidInput(
            "a file occurs twice among the removed files and the deleted rows: name each file once"
        )
    return RowChange(
        operation=_OPERATIONS[operation],
        files=files,
        removed=frozenset(removed),
        deletes=positions,
        condition=condition,
        values=values,
        reads_others=reads_others,
        inserted=inserted,
        updated=updated,
    )


def commit_rows(head: TableHead, write: WriteRef, change: RowChange, token: Token | None) -> TableHead:
    """Commit a change that was prepared on the version that `write` began from. Return the newest version."""
    check_written_by(change.files, write)
    if change.is_empty:
        return head.refreshed().unchanged()
    token = token or head.token_of(write)
    base = head.at_write_to_commit(write, token, may_be_proposed=False)
    if base is None:
        return head.refreshed()
    try:
        return head.after(commit(base, change, write=write, token=token))
    except NothingToDo:
        return head.refreshed().unchanged()


def commit(base: TableHead, change: RowChange, *, write: WriteRef, token: Token | None = None) -> TableCommit:
    """Commit `change`, which was prepared against `base`, on the newest state that allows it.

    Raises CommitConflict if the matrix says so, NoSuchTable if the table was dropped, and InvalidInput for
    files or rows that `base` does not have. Costs 1 PUT if there were no other commits, and another for
    vectors that are too large for a commit.
    """
    return with_values(base, change, lambda change: _commit(base, change, write, token))


def _commit(base: TableHead, change: RowChange, write: WriteRef, token: Token | None) -> TableCommit:
    prepared_change = PreparedChange(base, change, write)
    write_base = OperationFacts(base.version, base.schema, no_files, lambda kind: "rows were changed")
    base.check_own_steps(change.operation, write_base)
    return base.commit(partial(_decide, prepared_change), token)


def _decide(
    prepared_change: PreparedChange, current: LogView[TableState], passed_commits: Sequence[Commit]
) -> Draft:
    base, change = prepared_change.base, prepared_change.change
    since = [commit for commit in passed_commits if commit.version > base.version]
    rebase = RowRebase(prepared_change, base.at(current), since)
    schema = base.schema if prepared_change.files else None
    write_base = OperationFacts(base.version, schema, no_files, rebase.touched, change.values)
    check_conflicts(change.operation, current, passed_commits, write_base, prepared_change.name)
    # The matrix saw no conflict in the commits since the base, but the files may differ all the same.
    why = rebase.touched(ChangeKind.REMOVED_FILES)
    if why is not None:
        raise CommitConflict(
            f"the {change.operation.word} of {prepared_change.name} conflicts with another change: {why}. Nothing was "
            f"changed: {start_over()}",
            version=current.version,
        )
    return draft_of([rebase])
