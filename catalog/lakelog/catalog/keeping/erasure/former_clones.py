"""Clones of a table that need none of its files any more. Their own files may have copies of its rows.

The table keeps nothing for them, so only their own first commit says which tables they come from. It never
changes, so a hint of any age has this information.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from lakelog.catalog.core.logs import LogCache, TrackedLog
from lakelog.catalog.core.state import RELATION, TABLE, TableState
from lakelog.catalog.keeping.erasure.namespaces import ErasureNamespace
from lakelog.catalog.keeping.maintenance.orphans import hints_of
from lakelog.log import LogView
from lakelog.log.errors import LakelogError

AT_ONCE = 64

Clone = tuple[str, TrackedLog[TableState], LogView[TableState]]


def former_clones(
    logs: LogCache, namespaces: Sequence[ErasureNamespace], family: Collection[str], met: Collection[str]
) -> Iterator[Clone]:
    """Yield the tables, dropped or not, that come from a table of the family. Skips the tables in `met`.

    Tables with the fewest ancestors come first. Makes a GET request for each table, 64 in a round.
    """
    places = {
        entry.id: entry.location
        for space in namespaces
        for _, entry in space.state.logs(RELATION)
        if entry.kind == TABLE and entry.id not in met
    }
    places |= {
        drop.entry.id: drop.entry.location
        for space in namespaces
        for drop in space.state.dropped_logs()
        if drop.space == RELATION and drop.entry.id not in met
    }
    clones: list[Clone] = []
    items = list(places.items())
    for start in range(0, len(items), AT_ONCE):
        batch = items[start : start + AT_ONCE]
        table_logs = [logs.table(location) for _, location in batch]
        for (id, _), table_log, hint in zip(batch, table_logs, hints_of(table_logs), strict=True):
            view = _known(table_log, hint, id)
            if view is None or any(item.id in family for item in view.state.ancestors):
                try:
                    view = table_log.at_its_place()
                except LakelogError:
                    continue  # no reader can read it, and fsck reports it
                # A purged table that is still on a list was not emptied: its purge has to be completed.
                if view.log_id == id and (
                    view.purged or any(item.id in family for item in view.state.ancestors)
                ):
                    clones.append((id, table_log, view))
    yield from sorted(clones, key=lambda clone: len(clone[2].state.ancestors))


def _known(tracked: TrackedLog[TableState], hint: bytes | None, id: str) -> LogView[TableState] | None:
    """Return the state in a hint, of any version. None if the hint has none."""
    replay = tracked.log.replay
    root = replay.root_or_none(replay.keys.latest, hint)
    if root is None or root.state is None or root.log_id != id:
        return None
    try:
        return replay.view_of(root, replay.keys.latest)
    except LakelogError:
        return None
