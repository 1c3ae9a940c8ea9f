"""The state of a namespace's log: its properties and its entries, folded from events. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar, assert_never

import msgspec

from lakelog.catalog.schema import Definition, ready, state_of
from lakelog.catalog.state.events import (
    CutDropped,
    CutSaved,
    EntryDefined,
    EntryForgotten,
    EntryLinked,
    EntryPurged,
    EntryRenamed,
    EntryUnlinked,
    FilesVacuumed,
    HistoryExpired,
    NamespaceAltered,
    NamespaceCreated,
    NamespaceDropped,
    NamespaceEvent,
    NamespaceMoved,
    NamespacePurged,
    NamespaceRestored,
    namespace_events,
)
from lakelog.catalog.state.link import Link
from lakelog.log import Commit, Dump, Json
from lakelog.log.grammar import CutObject, Hash, Id, Location, Name, Number, TimeUs, Word

V = TypeVar("V")

RELATION = "relation"
NAMESPACE = "namespace"
"""The spaces of names: tables and views share one, as in Spark's own catalogs; child namespaces have another, and
functions the third, `definition.SPACES` says its name."""

TABLE = "table"

PROPERTIES = "properties"
"""Stands, among the spaces of names, for the properties of a namespace that a transaction read."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a name leads to. `location` is relative to the warehouse, or a URL where the user chose the place."""

    kind: Word
    id: Id
    location: Location


class Dropped(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A log that was linked here under `name` and can be restored. `time_us` is when it was dropped."""

    space: Word
    name: Name
    kind: Word
    location: Location
    time_us: TimeUs


class Defined(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A view or a function: its name leads to no log."""

    id: Id
    definition: Definition


class DroppedDefinition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A view or function that was named `name` and can be restored. `time_us` is when it was dropped."""

    space: Word
    name: Name
    definition: Definition
    time_us: TimeUs


class SavedCut(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The object that has the versions of all logs in a saved cut, and its hash."""

    object: CutObject
    hash: Hash
    time_us: TimeUs
    logs: Number


@dataclass(frozen=True, slots=True)
class NamespaceState:
    """A namespace at one version. `entries` maps a space to its names that lead to logs, `definitions` to those that
    stand for views and functions; `dropped`, `dropped_definitions` and `forgotten` go by ids.

    `begun` are the ids of folders in it that hold files but no log, with the time when vacuum first met them. Versions
    before `expired` are expired. `link` is the name that the namespace has, or had when it was dropped; None for the
    root.
    """

    properties: Mapping[str, str] = field(default_factory=dict)
    entries: Mapping[str, Mapping[str, Entry]] = field(default_factory=dict)
    definitions: Mapping[str, Mapping[str, Defined]] = field(default_factory=dict)
    dropped: Mapping[str, Dropped] = field(default_factory=dict)
    dropped_definitions: Mapping[str, DroppedDefinition] = field(default_factory=dict)
    forgotten: frozenset[str] = frozenset()
    cuts: Mapping[str, SavedCut] = field(default_factory=dict)
    begun: Mapping[str, int] = field(default_factory=dict)
    expired: int = 0
    link: Link | None = None

    def entry(self, space: str, name: str) -> Entry | None:
        return self.entries.get(space, {}).get(name)

    def definition(self, space: str, name: str) -> Defined | None:
        return self.definitions.get(space, {}).get(name)

    def defined_names(self, space: str) -> list[str]:
        """Return the names of a space that stand for views or functions, sorted."""
        return sorted(self.definitions.get(space, {}))

    def is_taken(self, space: str, name: str) -> bool:
        return self.entry(space, name) is not None or self.definition(space, name) is not None

    def names(self, space: str, kind: str) -> list[str]:
        """Return the names of the entries of one kind, sorted."""
        return sorted(name for name, entry in self.entries.get(space, {}).items() if entry.kind == kind)

    @property
    def is_empty(self) -> bool:
        return not any(self.entries.values()) and not any(self.definitions.values())


def apply(state: NamespaceState, event: NamespaceEvent, time_us: int) -> NamespaceState:
    """Fold one event of a commit of that time. Total and deterministic: an event was decided before."""
    match event:
        case NamespaceCreated():
            return NamespaceState(properties=event.properties, link=_link(event))
        case NamespaceAltered():
            kept = {key: value for key, value in state.properties.items() if key not in event.removed}
            return replace(state, properties=kept | event.set)
        case EntryLinked():
            entry = Entry(kind=event.kind, id=event.id, location=event.location)
            linked = _with(state, event.space, {**state.entries.get(event.space, {}), event.name: entry})
            return replace(linked, dropped=_without(state.dropped, event.id))
        case EntryDefined():
            return _defined(state, event)
        case EntryUnlinked() if _is_definition(state, event):
            return _undefined(state, event, time_us)
        case EntryUnlinked():
            return _unlinked(state, event, time_us)
        case EntryRenamed() if _is_definition(state, event):
            defs = state.definitions[event.space]
            renamed = {event.new_name: defs[event.name]}
            return _with_definitions(state, event.space, _without(defs, event.name) | renamed)
        case EntryRenamed():
            names = state.entries[event.space]
            moved = {event.new_name: names[event.name]}
            return _with(state, event.space, _without(names, event.name) | moved)
        case EntryForgotten():
            return replace(state, forgotten=state.forgotten | {event.id})
        case EntryPurged():
            return replace(
                state,
                dropped=_without(state.dropped, event.id),
                dropped_definitions=_without(state.dropped_definitions, event.id),
            )
        case CutSaved():
            cut = SavedCut(object=event.object, hash=event.hash, time_us=time_us, logs=event.logs)
            return replace(state, cuts={**state.cuts, event.name: cut})
        case CutDropped():
            return replace(state, cuts=_without(state.cuts, event.name))
        case HistoryExpired():
            return replace(state, expired=max(state.expired, event.version))
        case FilesVacuumed():
            return replace(state, begun={id: state.begun.get(id, time_us) for id in event.begun})
        case NamespaceMoved() | NamespaceRestored():
            return replace(state, link=_link(event))
        case NamespaceDropped() | NamespacePurged():
            return state
    assert_never(event)


def _link(event: NamespaceCreated | NamespaceMoved | NamespaceRestored) -> Link | None:
    if event.parent is None or event.name is None:
        return None
    return Link(namespace=event.parent, name=event.name)


def _unlinked(state: NamespaceState, event: EntryUnlinked, time_us: int) -> NamespaceState:
    names = state.entries[event.space]
    unlinked = _with(state, event.space, _without(names, event.name))
    if not event.dropped:
        return unlinked
    entry = names[event.name]
    dropped = Dropped(
        space=event.space, name=event.name, kind=entry.kind, location=entry.location, time_us=time_us
    )
    return replace(unlinked, dropped={**state.dropped, event.id: dropped})


def _defined(state: NamespaceState, event: EntryDefined) -> NamespaceState:
    names = {**state.definitions.get(event.space, {})}
    names[event.name] = Defined(id=event.id, definition=event.definition)
    restored = _without(state.dropped_definitions, event.id)
    return replace(_with_definitions(state, event.space, names), dropped_definitions=restored)


def _is_definition(state: NamespaceState, event: EntryUnlinked | EntryRenamed) -> bool:
    defined = state.definition(event.space, event.name)
    return defined is not None and defined.id == event.id


def _undefined(state: NamespaceState, event: EntryUnlinked, time_us: int) -> NamespaceState:
    names = state.definitions[event.space]
    without = _with_definitions(state, event.space, _without(names, event.name))
    if not event.dropped:
        return without
    dropped = DroppedDefinition(
        space=event.space, name=event.name, definition=names[event.name].definition, time_us=time_us
    )
    return replace(without, dropped_definitions={**state.dropped_definitions, event.id: dropped})


def _with_definitions(state: NamespaceState, space: str, names: Mapping[str, Defined]) -> NamespaceState:
    return replace(state, definitions={**state.definitions, space: names})


def _with(state: NamespaceState, space: str, names: Mapping[str, Entry]) -> NamespaceState:
    return replace(state, entries={**state.entries, space: names})


def _without(names: Mapping[str, V], name: str) -> dict[str, V]:
    return {key: value for key, value in names.items() if key != name}


class _Root(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    properties: dict[str, str]
    entries: dict[Word, dict[Name, Entry]]
    definitions: dict[Word, dict[Name, Defined]] = {}
    dropped: dict[Id, Dropped] = {}
    dropped_definitions: dict[Id, DroppedDefinition] = {}
    forgotten: tuple[Id, ...] = ()
    cuts: dict[Name, SavedCut] = {}
    begun: dict[Id, TimeUs] = {}
    expired: Number = 0
    link: Link | None = None


ready(_Root)


class NamespaceProjection:
    """How the log folds, dumps and loads a namespace (see `lakelog.log.Projection`)."""

    def initial(self) -> NamespaceState:
        return NamespaceState()

    def apply(self, state: NamespaceState, commit: Commit, blobs: Sequence[bytes]) -> NamespaceState:
        for event in namespace_events(commit):
            state = apply(state, event, commit.time_us)
        return state

    def dump(self, state: NamespaceState, version: int) -> Dump:
        root = _Root(
            properties=dict(state.properties),
            entries={k: dict(v) for k, v in state.entries.items()},
            definitions={k: dict(v) for k, v in state.definitions.items()},
            dropped=dict(state.dropped),
            dropped_definitions=dict(state.dropped_definitions),
            forgotten=tuple(sorted(state.forgotten)),
            cuts=dict(state.cuts),
            begun=dict(state.begun),
            expired=state.expired,
            link=state.link,
        )
        return Dump(root=msgspec.to_builtins(root), blobs={}, uses=())

    def stored(self, dump: Dump) -> None:
        """Nothing to remember: the whole state stands in the root."""

    def load(self, root: Json) -> NamespaceState:
        stored = state_of(root, _Root, "namespace", "table")
        return NamespaceState(
            properties=stored.properties,
            entries=stored.entries,
            definitions=stored.definitions,
            dropped=stored.dropped,
            dropped_definitions=stored.dropped_definitions,
            forgotten=frozenset(stored.forgotten),
            cuts=stored.cuts,
            begun=stored.begun,
            expired=stored.expired,
            link=stored.link,
        )
