"""Proposals: changes that other processes ask a leader to commit.

They have rows, bounds and statements of their own.

A proposal whose author died stays in the inbox until a vacuum deletes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from lakelog.catalog.core.files import files_to_arrow
from lakelog.catalog.core.logs import TableHead, TrackedLog, commit_of
from lakelog.catalog.core.parquet import decoded_rows
from lakelog.catalog.core.planning import IsTrue, evaluate
from lakelog.catalog.core.state import FileChange, NamespaceState, table_events
from lakelog.catalog.keeping.erasure.history import schema_at
from lakelog.catalog.keeping.erasure.row_set import RowSet
from lakelog.catalog.keeping.erasure.texts import quotes
from lakelog.log import Draft
from lakelog.log.errors import LakelogError
from lakelog.log.format import ProposedChange
from lakelog.log.proposals.inbox import proposal_at


@dataclass(frozen=True, slots=True)
class ProposalWithRows:
    """`what` describes its contents. `is_read`: it could be read."""

    key: str
    what: str
    is_read: bool = True


def proposals_with_rows(head: TableHead, rows: RowSet, values: Sequence[str]) -> Iterator[ProposalWithRows]:
    """Yield the proposals in a table's inbox that have rows to erase, or may, or that quote a value."""
    log = head.tracked.log
    for key in log.store.list_after(log.keys.inbox):
        data = log.store.get(key)
        if data is None:
            continue  # it was applied, or withdrawn
        if not data and log.keys.is_wish(key):
            continue
        try:
            changes = proposal_at(key, data, log.keys, log.location, log.replay.features).changes
            row_count = sum(_rows_like(change, head, rows) for change in changes)
            bounds = any(_has_bounds(change, head, rows) for change in changes)
        except LakelogError as error:
            yield ProposalWithRows(key, f"cannot be read: {error}", is_read=False)
            continue
        if row_count:
            yield ProposalWithRows(key, f"has {row_count:,} such rows")
        elif bounds:
            yield ProposalWithRows(key, "has bounds of such rows, or may")
        elif any(quotes(str(change.writer.get("statement") or ""), values) for change in changes):
            yield ProposalWithRows(key, "quotes a value")


def proposals_quoting(tracked: TrackedLog[NamespaceState], values: Sequence[str]) -> list[str]:
    """Return the keys of proposals to a namespace that quote a value."""
    store = tracked.log.store
    proposals = ((key, store.get(key)) for key in store.list_after(tracked.log.keys.inbox))
    return [key for key, data in proposals if data and quotes(data.decode(errors="replace"), values)]


def _rows_like(change: ProposedChange, head: TableHead, rows: RowSet) -> int:
    if not change.rows or rows.present is None:
        return 0
    new_rows = decoded_rows(change.rows, head.schema)
    return int(pc.sum(evaluate(IsTrue(rows.present.bound), new_rows), min_count=0).as_py())


def _has_bounds(change: ProposedChange, head: TableHead, rows: RowSet) -> bool:
    return any(
        rows.may_be_in(files_to_arrow(event.added, schema_at(rows.schemas, change.base), ()))
        for event in table_events(commit_of(head.view, Draft(events=change.events)))
        if isinstance(event, FileChange) and event.added
    )
