"""Dropped objects that can be restored: when and by which writer they were dropped, and how long they are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from lakelog.catalog.core.logs import NameTree
from lakelog.catalog.core.schema import kind_of
from lakelog.catalog.core.state import NAMESPACE, Dropped, DroppedDefinition, NamespaceState, writer
from lakelog.catalog.names import Identifier, quoted
from lakelog.catalog.retention import kept_until_us
from lakelog.log import Commit, FormatError, InvalidInput, Json, NotFound
from lakelog.log.format import Tombstone

D = TypeVar("D", Dropped, DroppedDefinition)


class DroppedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A table, namespace, view or function that can be restored.

    `name` is its former name, which several may have had. A view or function has no `location`.

    `kept_until_us` is when a vacuum with default settings may purge it; no purge happens by itself. `writer` has the
    facts about the writer that dropped it, empty where that commit has expired.
    """

    id: str
    kind: str
    name: Identifier
    location: str
    dropped_us: int
    kept_until_us: int
    writer: dict[str, Json]

    @property
    def user(self) -> str | None:
        said = self.writer.get(writer.USER)
        return None if said is None else str(said)


def list_dropped(tree: NameTree, namespace: Identifier, *, recursive: bool = False) -> list[DroppedEntry]:
    """Return the dropped objects of a namespace, the latest drop first; with `recursive`, of all below it too.

    Objects in a dropped namespace are restored with it and are not listed by themselves. NoSuchNamespace. Costs a read
    of the log of each listed object.
    """
    found = tree.find_namespace(()) if not namespace else tree.namespace(namespace)
    if found is None:
        return []
    known: list[tuple[Identifier, str, Dropped]] = []
    definitions: list[DroppedEntry] = []
    level: list[tuple[Identifier, NamespaceState]] = [(namespace, found.view.state)]
    met = {found.tracked.location}  # a namespace can be forged that leads to itself
    while level:
        below: list[tuple[Identifier, str]] = []
        for path, state in level:
            known += [((*path, each.name), id, each) for id, each in state.dropped.items()]
            definitions += [_defined(path, id, each) for id, each in state.dropped_definitions.items()]
            if recursive:
                children = state.entries.get(NAMESPACE, {})
                for name, entry in children.items():
                    if entry.location not in met:
                        met.add(entry.location)
                        below.append(((*path, name), entry.location))
        # One that was dropped since its parent was read is sealed: the next read of its parent reports it.
        loaded = tree.logs.in_parallel(lambda one: (one[0], _state_at(tree, one[1])), below)
        level = [(path, state) for path, state in loaded if state is not None]
    entries = tree.logs.in_parallel(lambda one: _entry(tree, *one), known)
    return sorted(entries + definitions, key=lambda entry: (-entry.dropped_us, entry.name, entry.id))


def dropped_last(
    entries: Mapping[str, D], space: str, name: Identifier, id: str | None, *, what: str
) -> tuple[str, D]:
    """Return the id and the entry that was dropped last under a name, or has that id, of a namespace's dropped ones.

    NotFound, with the names that there are; `what` begins its message: `nothing`, or `no view`.
    """
    known = {key: each for key, each in entries.items() if each.space == space}
    meant = {
        key: each for key, each in known.items() if (key == id if id is not None else each.name == name[-1])
    }
    if not meant:
        names = sorted({quoted([each.name]) for each in known.values()})
        hint = (
            f"its namespace has {', '.join(names[:10])}"
            if names
            else "its namespace has nothing that can be restored"
        )
        wanted = quoted(name) + (f" with the id {id}" if id is not None else "")
        raise NotFound(
            f"{what} named {wanted} was dropped and can be restored: {hint}. `lakelog dropped` lists all"
        )
    return max(meant.items(), key=lambda pair: pair[1].time_us)


def _state_at(tree: NameTree, location: str) -> NamespaceState | None:
    """Return a namespace; None where it was dropped, or is none: fsck says more."""
    try:
        view = tree.logs.namespace(location).current()
    except (FormatError, InvalidInput, NotFound):
        return None
    return None if view.sealed else view.state


def _entry(tree: NameTree, name: Identifier, id: str, dropped: Dropped) -> DroppedEntry:
    return DroppedEntry(
        id=id,
        kind=dropped.kind,
        name=name,
        location=tree.logs.url(dropped.location),
        dropped_us=dropped.time_us,
        kept_until_us=kept_until_us(dropped.time_us),
        writer=_who_dropped(tree, id, dropped),
    )


def _defined(path: Identifier, id: str, dropped: DroppedDefinition) -> DroppedEntry:
    # The writer that dropped it is in the namespace's log, among all of its commits: the audit reports it.
    return DroppedEntry(
        id=id,
        kind=kind_of(dropped.definition),
        name=(*path, dropped.name),
        location="",
        dropped_us=dropped.time_us,
        kept_until_us=kept_until_us(dropped.time_us),
        writer={},
    )


def _who_dropped(tree: NameTree, id: str, dropped: Dropped) -> dict[str, Json]:
    """Return the facts about the writer of the commit that sealed the log, which usually is its newest commit."""
    try:
        log = tree.logs.unread(dropped.location).log
        newest = log.load().version
        # An aborted restore may be after the seal, and in rare cases another table at its place.
        for version in range(newest, 0, -1):
            entry = log.replay.entry(version, log.replay.get_versions([version])[0] or b"")
            if isinstance(entry, Commit) and entry.seals and entry.log_id == id:
                return dict(entry.writer)
            if isinstance(entry, Tombstone):
                break
    except (FormatError, InvalidInput, NotFound):
        # The entry is listed anyway; restoring it reports the problem.
        pass
    return {}
