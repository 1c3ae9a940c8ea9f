"""The state of a namespace's log: its properties and its entries, folded from events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, assert_never

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.schema import Definition
from lakelog.catalog.core.state.events import (
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
)
from lakelog.catalog.core.state.link import Link
from lakelog.catalog.core.state.name_pages import Layout, Pages
from lakelog.catalog.core.state.paged_map import PAGED_FROM, ChangingPages, Late, PagedMap
from lakelog.catalog.core.state.shared_map import Changing, SharedMap
from lakelog.log.grammar import CutObject, Hash, Id, Location, Name, Number, TimeUs, Word

RELATION = "relation"
NAMESPACE = "namespace"
"""The spaces of names: tables and views share one, as in Spark's own catalogs; child namespaces have another, and
functions the third, `definition.SPACES` says its name."""

TABLE = "table"

NAMES_PER_VERSION = 100
"""A hint holds all names. It is written once for so many of them in versions, so that a commit causes about as many to
be written, however many there are."""

VERSIONS_PER_PAGED_HINT = 20
"""A hint that needs pages is written with a snapshot: as often as that of a table."""

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


LAYOUTS: Mapping[str, Layout[Any]] = {
    "entries": Layout("name", Name, Entry),
    "definitions": Layout("name", Name, Defined),
    "dropped": Layout("id", Id, Dropped),
    "dropped_definitions": Layout("id", Id, DroppedDefinition),
}
"""The mappings that are in pages where they are large."""

BY_SPACE = ("entries", "definitions")


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
        entries = self.entries.get(space, {})
        if not isinstance(entries, PagedMap):
            return sorted(name for name, entry in entries.items() if entry.kind == kind)
        names: list[str] = _names_of(entries, kind).to_numpy(zero_copy_only=False).tolist()
        return names

    def names_array(self, space: str, kind: str) -> pa.StringArray:
        """As `names`, as an Arrow array: of a million names in a fraction of the time."""
        entries = self.entries.get(space, {})
        if not isinstance(entries, PagedMap):
            return pa.array(self.names(space, kind), pa.string())
        return _names_of(entries, kind)

    def mappings(self) -> Iterator[tuple[tuple[str, str], Mapping[str, Any]]]:
        """Yield the mappings that are in pages where they are large, each with its name and its space, if it is one of
        a space."""
        for name in LAYOUTS:
            mapping = getattr(self, name)
            if name in BY_SPACE:
                yield from (((name, space), names) for space, names in mapping.items())
            else:
                yield (name, ""), mapping

    def with_mappings(self, changed: Mapping[tuple[str, str], Mapping[str, Any]]) -> NamespaceState:
        """Return the state with some of these replaced."""
        own: dict[str, Any] = {}
        for (name, space), mapping in changed.items():
            if space:
                own[name] = {**own.get(name, getattr(self, name)), space: mapping}
            else:
                own[name] = mapping
        return replace(self, **own) if own else self

    @property
    def versions_per_hint(self) -> int:
        """How many versions there may be between two hints: one, while the names are few."""
        kept = [mapping for _, mapping in self.mappings()]
        if any(isinstance(each, PagedMap) for each in kept):
            return VERSIONS_PER_PAGED_HINT
        return 1 + sum(map(len, (*kept, self.cuts, self.begun))) // NAMES_PER_VERSION

    @property
    def is_empty(self) -> bool:
        return not any(self.entries.values()) and not any(self.definitions.values())


def _names_of(entries: PagedMap[Entry], kind: str) -> pa.StringArray:
    table = entries.table(["name", "kind"])
    of_kind = pc.equal(table["kind"], kind)
    return (table if pc.all(of_kind).as_py() else table.filter(of_kind))["name"].combine_chunks()


def apply(state: NamespaceState, event: NamespaceEvent, time_us: int) -> NamespaceState:
    """Fold one event of a commit of that time. Total and deterministic: an event was decided before."""
    return apply_all(state, (event,), time_us)


def apply_all(state: NamespaceState, events: Iterable[NamespaceEvent], time_us: int) -> NamespaceState:
    """Fold the events of a commit of that time, in their order. Costs about what they change, however many names there
    are: a commit may link 100,000 tables."""
    fold = _Fold(state)
    for event in events:
        fold.apply(event, time_us)
    return fold.state()


class _Fold:
    """A namespace between two versions. The versions share what no event changes."""

    def __init__(self, state: NamespaceState) -> None:
        self._begin(state)

    def _begin(self, state: NamespaceState) -> None:
        self._state = state
        self._own: dict[str, Any] = {}
        self._own_names: dict[tuple[str, str], AnyChanging] = {}
        self._forgotten: set[str] = set()

    def state(self) -> NamespaceState:
        own = dict(self._own)
        for name, each in self._own.items():
            if isinstance(each, Changing | ChangingPages):
                own[name] = _shared(each, name, "")
        for (name, space), names in self._own_names.items():
            own[name] = {**own[name], space: _shared(names, name, space)}
        if self._forgotten:
            own["forgotten"] = self._state.forgotten | self._forgotten
        return replace(self._state, **own)

    def apply(self, event: NamespaceEvent, time_us: int) -> None:
        match event:
            case NamespaceCreated():
                self._begin(NamespaceState(properties=event.properties, link=_link(event)))
            case NamespaceAltered():
                properties = dict(self._seen("properties"))
                for key in event.removed:
                    properties.pop(key, None)
                self._own["properties"] = properties | event.set
            case EntryLinked():
                entry = Entry(kind=event.kind, id=event.id, location=event.location)
                self._names("entries", event.space)[event.name] = entry
                self._forget("dropped", event.id)
            case EntryDefined():
                defined = Defined(id=event.id, definition=event.definition)
                self._names("definitions", event.space)[event.name] = defined
                self._forget("dropped_definitions", event.id)
            case EntryUnlinked():
                self._unlink(event, time_us)
            case EntryRenamed():
                names = self._names(self._kind_of(event), event.space)
                renamed = names.take(event.name)
                if renamed is None:
                    raise KeyError(event.name)
                names[event.new_name] = renamed
            case EntryForgotten():
                self._forgotten.add(event.id)
            case EntryPurged():
                self._forget("dropped", event.id)
                self._forget("dropped_definitions", event.id)
            case CutSaved():
                cut = SavedCut(object=event.object, hash=event.hash, time_us=time_us, logs=event.logs)
                self._changed("cuts")[event.name] = cut
            case CutDropped():
                self._forget("cuts", event.name)
            case HistoryExpired():
                self._state = replace(self._state, expired=max(self._state.expired, event.version))
            case FilesVacuumed():
                begun = self._seen("begun")
                self._own["begun"] = {id: begun.get(id, time_us) for id in event.begun}
            case NamespaceMoved() | NamespaceRestored():
                self._state = replace(self._state, link=_link(event))
            case NamespaceDropped() | NamespacePurged():
                pass
            case _:
                assert_never(event)

    def _unlink(self, event: EntryUnlinked, time_us: int) -> None:
        kind = self._kind_of(event)
        gone = self._names(kind, event.space).take(event.name)
        if not event.dropped:
            return
        if gone is None:
            raise KeyError(event.name)

        def dropped(entry: Entry) -> Dropped:
            return Dropped(
                space=event.space, name=event.name, kind=entry.kind, location=entry.location, time_us=time_us
            )

        def definition(defined: Defined) -> DroppedDefinition:
            return DroppedDefinition(
                space=event.space, name=event.name, definition=defined.definition, time_us=time_us
            )

        to, make = ("dropped", dropped) if kind == "entries" else ("dropped_definitions", definition)
        if isinstance(gone, Late):
            if not isinstance(self._changed(to), ChangingPages):
                few = self._changed(to).shared()
                self._own[to] = ChangingPages(PagedMap.beside_no_pages(LAYOUTS[to], few, (to, "")))
            self._changed(to)[event.id] = gone.made(make)
        else:
            self._changed(to)[event.id] = make(gone)

    def _kind_of(self, event: EntryUnlinked | EntryRenamed) -> str:
        """Return which mapping the name of an event is in. KeyError where no name of its space ever was."""
        defined = self._seen("definitions").get(event.space, {}).get(event.name)
        if defined is not None and defined.id == event.id:
            return "definitions"
        if event.space not in self._seen("entries"):
            raise KeyError(event.space)
        return "entries"

    def _seen(self, name: str) -> Mapping[str, Any]:
        """Return a mapping as it is now, not to be changed."""
        seen: Mapping[str, Any] = self._own.get(name, getattr(self._state, name))
        return seen

    def _changed(self, name: str) -> AnyChanging:
        """Return a mapping to be changed."""
        own = self._own.get(name)
        if not isinstance(own, Changing | ChangingPages):
            own = self._own[name] = _changing(self._seen(name))
        return own

    def _names(self, name: str, space: str) -> AnyChanging:
        """Return the names of one space, in `entries` or `definitions`, to be changed."""
        own = self._own_names.get((name, space))
        if own is None:
            # A dict of the few spaces, each of which is shared by itself.
            spaces = self._own[name] = dict(self._seen(name))
            own = self._own_names[name, space] = spaces[space] = _changing(spaces.get(space, {}))
        return own

    def _forget(self, name: str, key: str) -> None:
        seen = self._seen(name)
        if isinstance(seen, PagedMap | ChangingPages) or key in seen:
            self._changed(name).discard(key)


AnyChanging: TypeAlias = "Changing[Any] | ChangingPages[Any]"


def _changing(before: Mapping[str, Any]) -> AnyChanging:
    return ChangingPages(before) if isinstance(before, PagedMap) else Changing(before)


def _shared(made: AnyChanging, name: str, space: str) -> Mapping[str, Any]:
    """Return the version that was made, in pages where it has become large."""
    after = made.shared()
    if isinstance(after, SharedMap) and len(after) > PAGED_FROM and name in LAYOUTS:
        return PagedMap(Pages.of(LAYOUTS[name], after.items(), None), {}, 0, (name, space))
    return after


def _link(event: NamespaceCreated | NamespaceMoved | NamespaceRestored) -> Link | None:
    if event.parent is None or event.name is None:
        return None
    return Link(namespace=event.parent, name=event.name)
