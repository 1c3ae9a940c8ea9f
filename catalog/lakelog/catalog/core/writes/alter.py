"""Changes of a table's definition and of its estimates.

The definition is columns, partitioning, order, properties and constraints, all changed in one commit. The
estimates of rows are for query planners. Row conditions that a definition needs are proven on every state on
which the change is decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakelog.catalog.core.files.column_statistics import TableEstimates
from lakelog.catalog.core.logs.commits import NothingToDo, OperationFacts, Token, check_conflicts, no_files
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.parquet.proofs import check_rows, required
from lakelog.catalog.core.schema.foreign_properties import warn_of_foreign
from lakelog.catalog.core.schema.schema_changes import apply_changes
from lakelog.catalog.core.schema.table_changes import SetProperty, TableChange, changes_from
from lakelog.catalog.core.state.altering import events_of
from lakelog.catalog.core.state.conflicts import OperationKind
from lakelog.catalog.core.state.decoded_events import table_events
from lakelog.catalog.core.state.events import FilesChanged, StatisticsComputed, encode
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.errors import CommitConflict
from lakelog.log import Commit, Draft, LogView


def alter(
    head: TableHead,
    changes: Sequence[TableChange | Mapping[str, Any]],
    looked_at: TableHead | None,
    token: Token | None,
) -> TableHead:
    """Apply `changes` in their order, or none of them, and return the newest version.

    Raises RowsUnproven if statistics do not prove the conditions on the rows. The caller has checked the rows
    of the version `looked_at`. Raises CommitConflict if files added since then may hold rows that do not
    satisfy them.
    """
    table_changes = changes_from(changes)
    warn_of_foreign({change.key: change.value for change in table_changes if isinstance(change, SetProperty)})
    written_base = OperationFacts(head.version, head.schema, no_files)
    checked_view = None if looked_at is None else looked_at.view
    head.check_own_steps(OperationKind.ALTER, written_base)

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        metadata = view.state.current
        check_conflicts(OperationKind.ALTER, view, passed_commits, written_base, head.name)
        definition = apply_changes(metadata, table_changes)
        events = events_of(metadata, definition)
        if not events:
            raise NothingToDo("nothing to change")
        check_rows(head.at(view), checked_view, required(metadata, definition))
        return Draft(events=encode(events))

    return head.commit_or_refresh(decide, token)


def set_statistics(head: TableHead, estimates: TableEstimates, token: Token | None) -> TableHead:
    """Commit `estimates`, with the rows that were added since their computation, and return the newest
    version."""

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        written_base = OperationFacts(head.version, head.schema, no_files)
        check_conflicts(OperationKind.COMPUTE_STATISTICS, view, passed_commits, written_base, head.name)
        if view.state.erased > estimates.version:
            raise CommitConflict(
                f"rows of {head.name} were erased while its statistics were computed, which may have their values: "
                "compute them again",
                version=view.version,
            )
        added_rows = 0
        if view.version > estimates.version:
            commits = head.tracked.log.commits(first=estimates.version + 1, last=view.version)
            events = [event for commit in commits for event in table_events(commit)]
            added_rows = sum(event.added_rows for event in events if isinstance(event, FilesChanged))
        return Draft(events=encode([StatisticsComputed(estimates=estimates.with_added(added_rows))]))

    return head.commit_or_refresh(decide, token)
