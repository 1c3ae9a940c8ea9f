"""Statistics from a scan of all rows of a version, committed for planners of queries."""

from __future__ import annotations

from collections.abc import Sequence

from lakelog.catalog.files import TableEstimates
from lakelog.catalog.logs import TableHead, Token, Written, check_conflicts, no_files
from lakelog.catalog.state import (
    FilesChanged,
    Operation,
    StatisticsComputed,
    TableState,
    encode,
    table_events,
)
from lakelog.log import Commit, Draft, View


def commit(head: TableHead, estimates: TableEstimates, token: Token | None) -> TableHead:
    """Commit `estimates`, with the rows that were added since they were made, and return the newest version."""

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        written = Written(head.version, head.schema, no_files)
        check_conflicts(Operation.COMPUTE_STATISTICS, view, passed, written, head.name)
        added = 0
        if view.version > estimates.version:
            commits = head.tracked.log.commits(first=estimates.version + 1, last=view.version)
            events = [event for commit in commits for event in table_events(commit)]
            added = sum(event.added_rows for event in events if isinstance(event, FilesChanged))
        return Draft(events=encode([StatisticsComputed(estimates=estimates.with_added(added))]))

    return head.commit_or_refresh(decide, token)
