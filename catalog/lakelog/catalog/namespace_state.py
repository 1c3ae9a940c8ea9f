"""What a namespace's log amounts to: its properties and its entries, folded from events. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

import msgspec

from lakelog.catalog.events import (
    EntryLinked,
    EntryRenamed,
    EntryUnlinked,
    NamespaceAltered,
    NamespaceCreated,
    NamespaceDropped,
    NamespaceEvent,
    namespace_events,
)
from lakelog.log import Commit, Dump, Json

RELATION = "relation"
NAMESPACE = "namespace"
"""The spaces of names: tables (and views) share one, child namespaces have another, as in Spark's own catalogs."""

TABLE = "table"


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a name leads to. `location` is relative to the warehouse, or a URL where the user chose the place."""

    kind: str
    id: str
    location: str


@dataclass(frozen=True, slots=True)
class NamespaceState:
    """A namespace at one version. `entries` maps a space to its names."""

    properties: Mapping[str, str] = field(default_factory=dict)
    entries: Mapping[str, Mapping[str, Entry]] = field(default_factory=dict)

    def entry(self, space: str, name: str) -> Entry | None:
        return self.entries.get(space, {}).get(name)

    def names(self, space: str, kind: str) -> list[str]:
        """Return the names of the entries of one kind, sorted."""
        return sorted(name for name, entry in self.entries.get(space, {}).items() if entry.kind == kind)

    @property
    def is_empty(self) -> bool:
        return not any(self.entries.values())


def apply(state: NamespaceState, event: NamespaceEvent) -> NamespaceState:
    """Fold one event. Total and deterministic: what an event says was decided before it was committed."""
    match event:
        case NamespaceCreated():
            return NamespaceState(properties=event.properties)
        case NamespaceAltered():
            kept = {key: value for key, value in state.properties.items() if key not in event.removed}
            return replace(state, properties=kept | event.set)
        case EntryLinked():
            entry = Entry(kind=event.kind, id=event.id, location=event.location)
            return _with(state, event.space, {**state.entries.get(event.space, {}), event.name: entry})
        case EntryUnlinked():
            return _with(state, event.space, _without(state.entries[event.space], event.name))
        case EntryRenamed():
            names = state.entries[event.space]
            moved = {event.new_name: names[event.name]}
            return _with(state, event.space, _without(names, event.name) | moved)
        case NamespaceDropped():
            return state
    assert_never(event)


def _with(state: NamespaceState, space: str, names: Mapping[str, Entry]) -> NamespaceState:
    return replace(state, entries={**state.entries, space: names})


def _without(names: Mapping[str, Entry], name: str) -> dict[str, Entry]:
    return {key: entry for key, entry in names.items() if key != name}


class _Root(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    properties: dict[str, str]
    entries: dict[str, dict[str, Entry]]


class NamespaceProjection:
    """How the log folds, dumps and loads a namespace (see `lakelog.log.Projection`)."""

    def initial(self) -> NamespaceState:
        return NamespaceState()

    def apply(self, state: NamespaceState, commit: Commit, blobs: Sequence[bytes]) -> NamespaceState:
        for event in namespace_events(commit):
            state = apply(state, event)
        return state

    def dump(self, state: NamespaceState, version: int) -> Dump:
        root = _Root(
            properties=dict(state.properties), entries={k: dict(v) for k, v in state.entries.items()}
        )
        return Dump(root=msgspec.to_builtins(root), blobs={}, uses=())

    def stored(self, dump: Dump) -> None:
        """Nothing to remember: the whole state stands in the root."""

    def load(self, root: Json) -> NamespaceState:
        stored = msgspec.convert(root, _Root)
        return NamespaceState(properties=stored.properties, entries=stored.entries)
