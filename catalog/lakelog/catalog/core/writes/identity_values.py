"""The free values of identity columns, as far as this process knows; a writer whose values are taken gets others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol, TypeVar

from lakelog.catalog.core.files import DataFile
from lakelog.catalog.core.logs import Changed, TableHead, TrackedLog
from lakelog.catalog.core.parquet import leftovers
from lakelog.catalog.core.schema import ValuesTaken, identity_fields
from lakelog.catalog.core.state import TableState
from lakelog.catalog.core.writes.identity_rewrite import renumbered
from lakelog.catalog.errors import ValuesGone
from lakelog.log.errors import CommitUnknown, LakelogError


class Taking(Protocol):
    """A change, as a data class, that adds files, for whose rows it took values of identity columns."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def files(self) -> Sequence[DataFile]: ...
    @property
    def values(self) -> Sequence[ValuesTaken]: ...


C = TypeVar("C", bound=Taking)


def known_taken(head: TableHead) -> Mapping[int, int]:
    """Return the last values that are taken of identity columns, by their ids. They never move back."""
    taken: dict[int, int] = {}
    # Of columns that all clients see, a transaction takes its values by commits outside of it.
    for each in (head.view, head.tracked.known, head.tracked.outside.known):
        if each is not None and each.log_id == head.id:
            taken.update(each.state.identities)
    return taken


def refresh_taken(head: TableHead) -> None:
    """Read which values others have taken, of a table with identity columns: 1 GET, less than to replace taken ones."""
    if identity_fields(head.schema) and not head.tracked.transaction.creates_log:
        head.tracked.outside.current()


def with_values(head: TableHead, change: C, commit: Callable[[C], Changed]) -> Changed:
    """Commit `change`, prepared against `head`, with the values that it took or, where these are taken, others.

    ValuesGone where others are needed and the files also hold some that the user gave.
    """
    public = _seen_outside(head.tracked, change.values)
    if not public:
        try:
            return commit(change)
        except ValuesGone:
            if any(each.given for each in change.values):
                raise
    return _renumbered(head, change, public or change.values, commit)


def _seen_outside(tracked: TrackedLog[TableState], values: Sequence[ValuesTaken]) -> list[ValuesTaken]:
    """Return the values, in a transaction, of columns that other clients see: they are taken before it commits."""
    outside = tracked.outside
    if not values or outside is tracked or tracked.transaction.creates_log:
        return []
    columns = {field.id for field, _ in identity_fields(outside.current().state.current.schema)}
    return [each for each in values if each.column in columns]


def _renumbered(
    head: TableHead,
    change: C,
    values: Sequence[ValuesTaken],
    commit: Callable[[C], Changed],
) -> Changed:
    """Commit `change` with others for some of its `values`, which are taken by a separate commit before."""
    tracked = head.tracked
    others = renumbered(head, change.files, values)
    change = replace(
        change, files=others.files, values=[each for each in change.values if each not in values]
    )
    try:
        committed = commit(change)
    except CommitUnknown:
        raise
    except LakelogError:
        leftovers.delete(tracked, others.written)
        raise
    if tracked.outside is tracked:
        # No commit can ever have these files: their values were taken by another writer.
        leftovers.delete(tracked, others.replaced)
    return committed
