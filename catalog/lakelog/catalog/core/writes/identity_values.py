"""The free values of identity columns, as far as this process knows. If a writer's values are taken, it gets
others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol, TypeVar

from lakelog.catalog.core.files.data_file import DataFile
from lakelog.catalog.core.logs.changed import TableCommit
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.parquet import leftovers
from lakelog.catalog.core.schema.identity import ValuesTaken, identity_fields
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.core.writes.identity_rewrite import renumbered
from lakelog.catalog.errors import ValuesGone
from lakelog.log.errors import CommitUnknown, LakelogError


class NumberedChange(Protocol):
    """A change, as a data class, that adds files and took values of identity columns for their rows."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def files(self) -> Sequence[DataFile]: ...
    @property
    def values(self) -> Sequence[ValuesTaken]: ...


C = TypeVar("C", bound=NumberedChange)


def known_taken(head: TableHead) -> Mapping[int, int]:
    """Return the last taken values of identity columns, by column id. They never move back."""
    last_values: dict[int, int] = {}
    # For columns that all clients see, a transaction takes its values by commits outside of it.
    for view in (head.view, head.tracked.known, head.tracked.outside.known):
        if view is not None and view.log_id == head.id:
            last_values.update(view.state.identities)
    return last_values


def refresh_taken(head: TableHead) -> None:
    """Read the values that others have taken, for a table with identity columns. Costs 1 GET, less than a
    replacement."""
    if identity_fields(head.schema) and not head.tracked.transaction.creates_log:
        head.tracked.outside.current()


def with_values(head: TableHead, change: C, commit: Callable[[C], TableCommit]) -> TableCommit:
    """Commit `change`, prepared against `head`, with the values that it took, or with others if these are
    taken.

    Raises ValuesGone if others are needed and the files also hold values that the user gave.
    """
    public = _seen_outside(head.tracked, change.values)
    if not public:
        try:
            return commit(change)
        except ValuesGone:
            if any(entry.given for entry in change.values):
                raise
    return _renumbered(head, change, public or change.values, commit)


def _seen_outside(tracked: TrackedLog[TableState], values: Sequence[ValuesTaken]) -> list[ValuesTaken]:
    """Return the values, in a transaction, of columns that other clients see. They are taken before it
    commits."""
    outside = tracked.outside
    if not values or outside is tracked or tracked.transaction.creates_log:
        return []
    columns = {field.id for field, _ in identity_fields(outside.current().state.current.schema)}
    return [entry for entry in values if entry.column in columns]


def _renumbered(
    head: TableHead,
    change: C,
    values: Sequence[ValuesTaken],
    commit: Callable[[C], TableCommit],
) -> TableCommit:
    """Commit `change` with replacements for some of its `values`. A separate commit takes them first."""
    log = head.tracked
    new_files = renumbered(head, change.files, values)
    change = replace(
        change, files=new_files.files, values=[entry for entry in change.values if entry not in values]
    )
    try:
        result = commit(change)
    except CommitUnknown:
        raise
    except LakelogError:
        leftovers.delete(log, new_files.written)
        raise
    if log.outside is log:
        # No commit can ever have these files: their values were taken by another writer.
        leftovers.delete(log, new_files.replaced)
    return result
