"""What became of a change of a table: the state after it, and how many rows it has changed.

Rule: the numbers are those of the commit as it stands in the log, also of one that an earlier try has made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakelog.catalog.core.logs.commits import Token
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.state import RowCounts, TableState, rows_of, rows_of_events
from lakelog.log import Committed, Draft, each_change
from lakelog.log.errors import NotFound, StorageError


@dataclass(frozen=True, slots=True)
class Changed(Committed[TableState]):
    """A commit of a table, and how many rows it has changed; None of one that changes none, and where that is not
    known."""

    rows: RowCounts | None = None


def changed(
    tracked: TrackedLog[TableState],
    done: Committed[TableState],
    decided: Sequence[Draft],
    token: Token | None,
) -> Changed:
    """Return what a commit has changed: what was decided last, or, where nothing was, what an earlier try of
    the request of `token` did. That costs 1 GET."""
    rows = rows_of_events(decided[-1].events) if decided else _rows_of(tracked, done.version, token)
    return Changed(done.view, done.version, rows)


def _rows_of(tracked: TrackedLog[TableState], version: int, token: Token | None) -> RowCounts | None:
    if token is None:
        return None
    try:
        for commit in tracked.log.commits(first=version, last=version):
            for change in each_change(commit):
                if change.commit_id == token.commit_id:
                    return rows_of(change)
    except (NotFound, StorageError):
        pass  # it happened, whatever else can be said of it
    return None
