"""Keeping what somebody has found by looking at all rows of a version, for planners of queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakelog.catalog.files import TableEstimates
from lakelog.catalog.logs import TrackedLog, Written, check, no_files
from lakelog.catalog.state import (
    FilesChanged,
    Operation,
    StatisticsComputed,
    TableState,
    encode,
    table_events,
)
from lakelog.log import Commit, Draft, View


def decision(
    tracked: TrackedLog[TableState], base: View[TableState], estimates: TableEstimates, name: str
) -> Callable[[View[TableState], Sequence[Commit]], Draft]:
    """Return how a commit of `estimates` is decided, with the rows that were added since they were made."""

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        written = Written(base.version, base.state.current.schema, no_files)
        check(Operation.COMPUTE_STATISTICS, view, passed, written, name)
        added = 0
        if view.version > estimates.version:
            commits = tracked.log.commits(first=estimates.version + 1, last=view.version)
            events = [event for commit in commits for event in table_events(commit)]
            added = sum(event.added_rows for event in events if isinstance(event, FilesChanged))
        return Draft(events=encode([StatisticsComputed(estimates=estimates.with_added(added))]))

    return decide
