"""Changing what is said of a table: its definition (columns, partitioning, order, properties, constraints, all in one
commit), and estimates of its rows for planners of queries.

Conditions on the rows that a definition needs are proven on every state that the change is decided on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakelog.catalog.core.files import TableEstimates
from lakelog.catalog.core.logs import NothingToDo, TableHead, Token, Written, check_conflicts, no_files
from lakelog.catalog.core.parquet import check_rows, required
from lakelog.catalog.core.schema import SetProperty, TableChange, apply_changes, changes_from, warn_of_foreign
from lakelog.catalog.core.state import (
    FilesChanged,
    Operation,
    StatisticsComputed,
    TableState,
    encode,
    events_of,
    table_events,
)
from lakelog.catalog.errors import CommitConflict
from lakelog.log import Commit, Draft, View


def alter(
    head: TableHead,
    changes: Sequence[TableChange | Mapping[str, Any]],
    looked_at: TableHead | None,
    token: Token | None,
) -> TableHead:
    """Apply `changes` in their order, or none of them, and return the newest version.

    RowsUnproven where statistics do not prove the conditions on the rows; for the rows of the version `looked_at`, the
    caller has checked them. CommitConflict when files added since then may hold rows that do not satisfy them.
    """
    parsed = changes_from(changes)
    warn_of_foreign({each.key: each.value for each in parsed if isinstance(each, SetProperty)})
    written = Written(head.version, head.schema, no_files)
    looked = None if looked_at is None else looked_at.view
    head.check_own_steps(Operation.ALTER, written)

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        metadata = view.state.current
        check_conflicts(Operation.ALTER, view, passed, written, head.name)
        altered = apply_changes(metadata, parsed)
        events = events_of(metadata, altered)
        if not events:
            raise NothingToDo("nothing to change")
        check_rows(head.at(view), looked, required(metadata, altered))
        return Draft(events=encode(events))

    return head.commit_or_refresh(decide, token)


def set_statistics(head: TableHead, estimates: TableEstimates, token: Token | None) -> TableHead:
    """Commit `estimates`, with the rows that were added since they were made, and return the newest version."""

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        written = Written(head.version, head.schema, no_files)
        check_conflicts(Operation.COMPUTE_STATISTICS, view, passed, written, head.name)
        if view.state.erased > estimates.version:
            raise CommitConflict(
                f"rows of {head.name} were erased while its statistics were computed, which may have their values: "
                "compute them again",
                version=view.version,
            )
        added = 0
        if view.version > estimates.version:
            commits = head.tracked.log.commits(first=estimates.version + 1, last=view.version)
            events = [event for commit in commits for event in table_events(commit)]
            added = sum(event.added_rows for event in events if isinstance(event, FilesChanged))
        return Draft(events=encode([StatisticsComputed(estimates=estimates.with_added(added))]))

    return head.commit_or_refresh(decide, token)
