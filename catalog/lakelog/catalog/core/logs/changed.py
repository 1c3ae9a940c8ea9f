"""The outcome of a change of a table: the state after it, and how many rows it has changed.

Rule: the numbers are those of the commit as it stands in the log, even if an earlier attempt made the commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakelog.catalog.core.logs.commits import Token
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.state.row_counts import RowCounts, rows_of, rows_of_events
from lakelog.catalog.core.state.table_state import TableState
from lakelog.log import CommittedChange, Draft, each_change
from lakelog.log.errors import NotFound, StorageError


@dataclass(frozen=True, slots=True)
class TableCommit(CommittedChange[TableState]):
    """A commit of a table, and how many rows it has changed.

    None if it changes no rows, or the number is not known.
    """

    rows: RowCounts | None = None


def changed(
    tracked: TrackedLog[TableState],
    result: CommittedChange[TableState],
    drafts: Sequence[Draft],
    token: Token | None,
) -> TableCommit:
    """Return the result of a commit with its row counts.

    They come from the last decision. If nothing was decided, they come from the commit of an earlier attempt
    at the request of `token`, which costs a GET.
    """
    rows = rows_of_events(drafts[-1].events) if drafts else _rows_of(tracked, result.version, token)
    return TableCommit(result.view, result.version, rows)


def _rows_of(tracked: TrackedLog[TableState], version: int, token: Token | None) -> RowCounts | None:
    if token is None:
        return None
    try:
        for commit in tracked.log.commits(first=version, last=version):
            for change in each_change(commit):
                if change.commit_id == token.commit_id:
                    return rows_of(change)
    except (NotFound, StorageError):
        pass  # the commit happened, even if its rows cannot be counted
    return None
