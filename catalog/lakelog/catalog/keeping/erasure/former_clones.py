"""Clones of a table that need none of its files any more: their own files may have copies of its rows.

The table keeps nothing for them, so only they know what they come from. That stands in their first commit, and never
changes: a hint of any age says it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from lakelog.catalog.core.logs import LogCache, TrackedLog
from lakelog.catalog.core.state import RELATION, TABLE, TableState
from lakelog.catalog.keeping.erasure.namespaces import Namespace
from lakelog.catalog.keeping.maintenance import hints_of
from lakelog.log import View
from lakelog.log.errors import LakelogError

AT_ONCE = 64

Clone = tuple[str, TrackedLog[TableState], View[TableState]]


def former_clones(
    logs: LogCache, namespaces: Sequence[Namespace], family: Collection[str], met: Collection[str]
) -> Iterator[Clone]:
    """Yield the tables that come from one of the family, dropped or not, without those that were `met`: the ones
    that come from the fewest first. Costs a GET for each table, 64 in a round."""
    places = {
        entry.id: entry.location
        for space in namespaces
        for entry in space.state.entries.get(RELATION, {}).values()
        if entry.kind == TABLE and entry.id not in met
    }
    places |= {
        id: each.location
        for space in namespaces
        for id, each in space.state.dropped.items()
        if each.space == RELATION and id not in met
    }
    found: list[Clone] = []
    listed = list(places.items())
    for start in range(0, len(listed), AT_ONCE):
        some = listed[start : start + AT_ONCE]
        opened = [logs.table(location) for _, location in some]
        for (id, _), tracked, hint in zip(some, opened, hints_of(opened), strict=True):
            view = _known(tracked, hint, id)
            if view is None or any(each.id in family for each in view.state.ancestors):
                try:
                    view = tracked.at_its_place()
                except LakelogError:
                    continue  # it cannot be read by anyone, and fsck says so
                # One that is purged, and still on a list, was not emptied: its purge is to be ended.
                if view.log_id == id and (
                    view.purged or any(each.id in family for each in view.state.ancestors)
                ):
                    found.append((id, tracked, view))
    yield from sorted(found, key=lambda each: len(each[2].state.ancestors))


def _known(tracked: TrackedLog[TableState], hint: bytes | None, id: str) -> View[TableState] | None:
    """Return the state that a hint has, of whatever version; None where it has none."""
    replay = tracked.log.replay
    root = replay.root_or_none(replay.keys.latest, hint)
    if root is None or root.state is None or root.log_id != id:
        return None
    try:
        return replay.view_of(root, replay.keys.latest)
    except LakelogError:
        return None
