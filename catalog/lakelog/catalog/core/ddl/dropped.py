"""Dropped objects that can be restored: when and by whom they were dropped, and how long they are kept."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from lakelog.catalog.core.logs.name_tree import NameTree
from lakelog.catalog.core.state import writer
from lakelog.catalog.core.state.namespace_entries import AnyEntry, DroppedLog, DroppedName, NamespaceEntry
from lakelog.catalog.core.state.namespace_state import NAMESPACE, NamespaceState
from lakelog.catalog.names import Identifier, quoted
from lakelog.catalog.retention import kept_until_us
from lakelog.catalog.times import moment_of, time_us
from lakelog.log import Commit, FormatError, InvalidInput, Json, NotFound
from lakelog.log.format import Tombstone

E = TypeVar("E", bound=AnyEntry)


class DroppedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A table, namespace, view or function that can be restored.

    `name` is its former name, which several objects may have had. A view or function has no `location`.
    `kept_until` is when a vacuum with default settings may purge it; no purge happens by itself. `writer`
    has the facts about the writer that dropped it. It is empty if that commit has expired.
    """

    id: str
    kind: str
    name: Identifier
    location: str
    dropped_at: dt.datetime
    kept_until: dt.datetime
    writer: dict[str, Json]

    @property
    def user(self) -> str | None:
        user = self.writer.get(writer.USER)
        return None if user is None else str(user)


def list_dropped(tree: NameTree, namespace: Identifier, *, recursive: bool = False) -> list[DroppedEntry]:
    """Return the dropped objects of a namespace, the latest drop first.

    With `recursive`, also those below it. Objects in a dropped namespace are restored with it, and are not
    listed separately. Raises NoSuchNamespace. Costs a read of the log of each listed object.
    """
    root = tree.find_namespace(()) if not namespace else tree.namespace(namespace)
    if root is None:
        tree.check_there()
        return []
    logs: list[tuple[Identifier, DroppedLog]] = []
    definitions: list[DroppedEntry] = []
    level: list[tuple[Identifier, NamespaceState]] = [(namespace, root.view.state)]
    met = {root.tracked.location}  # a namespace can be forged that leads to itself
    while level:
        below: list[tuple[Identifier, str]] = []
        for path, state in level:
            logs += [(path, drop) for drop in state.dropped_logs()]
            # The writer that dropped a definition is in the namespace's log, among all of its commits: the
            # audit reports it.
            definitions += [_entry(path, drop, "", {}) for drop in state.dropped_definitions()]
            if recursive:
                for name, entry in state.logs(NAMESPACE):
                    if entry.location not in met:
                        met.add(entry.location)
                        below.append(((*path, name), entry.location))
        # A namespace that was dropped after its parent was read is sealed: the next read of its parent
        # reports it.
        states = tree.logs.in_parallel(lambda one: (one[0], _state_at(tree, one[1])), below)
        level = [(path, state) for path, state in states if state is not None]
    entries = tree.logs.in_parallel(
        lambda one: _entry(*one, tree.logs.url(one[1].entry.location), _who_dropped(tree, one[1].entry)), logs
    )
    return sorted(entries + definitions, key=lambda entry: (-time_us(entry.dropped_at), entry.name, entry.id))


def dropped_last(
    drops: Iterable[DroppedName[E]], space: str, name: Identifier, id: str | None, *, what: str
) -> DroppedName[E]:
    """Return the object of a namespace that was dropped last under a name, or has that id.

    Raises NotFound with the names that can be restored. `what` begins its message: `nothing`, or `no view`.
    """
    candidates = [drop for drop in drops if drop.space == space]
    matches = [
        drop for drop in candidates if (drop.entry.id == id if id is not None else drop.name == name[-1])
    ]
    if not matches:
        names = sorted({quoted([drop.name]) for drop in candidates})
        hint = (
            f"its namespace has {', '.join(names[:10])}"
            if names
            else "its namespace has nothing that can be restored"
        )
        title = quoted(name) + (f" with the id {id}" if id is not None else "")
        raise NotFound(
            f"{what} named {title} was dropped and can be restored: {hint}. `lakelog dropped` lists all"
        )
    return max(matches, key=lambda drop: drop.time_us)


def _state_at(tree: NameTree, location: str) -> NamespaceState | None:
    """Return a namespace; None if it was dropped, or is not a namespace: fsck says more."""
    try:
        view = tree.logs.namespace(location).current()
    except (FormatError, InvalidInput, NotFound):
        return None
    return None if view.sealed else view.state


def _entry(
    path: Identifier, drop: DroppedName[AnyEntry], location: str, writer: dict[str, Json]
) -> DroppedEntry:
    return DroppedEntry(
        id=drop.entry.id,
        kind=drop.entry.kind,
        name=(*path, drop.name),
        location=location,
        dropped_at=moment_of(drop.time_us),
        kept_until=moment_of(kept_until_us(drop.time_us)),
        writer=writer,
    )


def _who_dropped(tree: NameTree, log_entry: NamespaceEntry) -> dict[str, Json]:
    """Return the facts about the writer of the commit that sealed the log, usually its newest commit."""
    try:
        log = tree.logs.unread(log_entry.location).log
        newest = log.load().version
        # An aborted restore may follow the seal, and in rare cases another table at its place.
        for version in range(newest, 0, -1):
            entry = log.replay.entry(version, log.replay.get_versions([version])[0] or b"")
            if isinstance(entry, Commit) and entry.seals and entry.log_id == log_entry.id:
                return dict(entry.writer)
            if isinstance(entry, Tombstone):
                break
    except (FormatError, InvalidInput, NotFound):
        # The entry is listed anyway; restoring it reports the problem.
        pass
    return {}
