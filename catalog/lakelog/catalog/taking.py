"""Which values of identity columns are free, as far as this process knows; whoever is wrong takes others."""

from __future__ import annotations

from collections.abc import Mapping

from lakelog.catalog.identity import identity_fields
from lakelog.catalog.log_cache import TrackedLog
from lakelog.catalog.table_state import TableState
from lakelog.log import View


def known_taken(tracked: TrackedLog[TableState], view: View[TableState]) -> Mapping[int, int]:
    """Return the last values that are taken of identity columns, by their ids. They only ever move on."""
    taken: dict[int, int] = {}
    # What a transaction took of columns that everybody sees, it took outside of it.
    for each in (view, tracked.known, tracked.outside.known):
        if each is not None and each.log_id == view.log_id:
            taken.update(each.state.identities)
    return taken


def look_again(tracked: TrackedLog[TableState], view: View[TableState]) -> None:
    """Learn what others have taken, where that matters: values that are not free cost more than the 1 GET of this."""
    if identity_fields(view.state.current.schema) and not tracked.is_new:
        tracked.outside.current()
