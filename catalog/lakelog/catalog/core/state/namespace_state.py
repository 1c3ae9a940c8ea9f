"""The state of a namespace's log: its properties and its entries, folded from events. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar, assert_never

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.schema.definition import kind_of
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
    NamespacePurged,
    NamespaceRestored,
)
from lakelog.catalog.core.state.link import NameLink
from lakelog.catalog.core.state.name_pages import NamePages, PageLayout
from lakelog.catalog.core.state.namespace_entries import (
    AnyEntry,
    DefinitionEntry,
    DroppedDefinition,
    DroppedLog,
    DroppedName,
    DroppedObject,
    NamespaceEntry,
    StoredEntry,
)
from lakelog.catalog.core.state.paged_map import PAGED_FROM, ChangingPages, PagedMap, UnreadValue
from lakelog.catalog.core.state.shared_map import ChangingMap, SharedMap
from lakelog.catalog.times import moment_of
from lakelog.log.grammar import CutObject, Hash, Id, Name, Number, TimeUs

E = TypeVar("E", bound=AnyEntry)

RELATION = "relation"
NAMESPACE = "namespace"
"""The spaces of names. Tables and views share the relation space, as in Spark's own catalogs. Child
namespaces have their own, and so do functions (see `definition.SPACES`)."""

TABLE = "table"

NAMES_PER_VERSION = 100
"""A hint holds all names. If they are n times this many, it is written only once in about n versions.

So a commit causes about this many names to be written, however many there are.
"""

VERSIONS_PER_PAGED_HINT = 20
"""A hint that needs pages is written with a snapshot, as often as a table's hint."""

PROPERTIES = "properties"
"""Among the spaces of names, it stands for the properties of a namespace that a transaction read."""


class SavedCut(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The object that has the versions of all logs in a saved cut, and its hash."""

    object: CutObject
    hash: Hash
    time_us: TimeUs
    logs: Number

    @property
    def as_of(self) -> dt.datetime:
        """The moment that it shows, in UTC."""
        return moment_of(self.time_us)


LAYOUTS: Mapping[str, PageLayout[Any]] = {
    "entries": PageLayout("name", Name, StoredEntry),
    "dropped": PageLayout("id", Id, DroppedObject),
}
"""The mappings that are in pages if they are large."""


@dataclass(frozen=True, slots=True)
class NamespaceState:
    """A namespace at one version. `entries` maps a space to its names.

    The keys of `dropped` and `forgotten` are ids. `begun` are the ids of folders in it that hold files but no
    log, with the time when vacuum first met them. Versions before `expired` are expired. `link` is the name
    that the namespace has, or had when it was dropped. It is None for the root.
    """

    properties: Mapping[str, str] = field(default_factory=dict)
    entries: Mapping[str, Mapping[str, StoredEntry]] = field(default_factory=dict)
    dropped: Mapping[str, DroppedObject] = field(default_factory=dict)
    forgotten: frozenset[str] = frozenset()
    cuts: Mapping[str, SavedCut] = field(default_factory=dict)
    begun: Mapping[str, int] = field(default_factory=dict)
    expired: int = 0
    link: NameLink | None = None

    def named(self, space: str, name: str) -> StoredEntry | None:
        """Return the object of a name, whatever its kind."""
        return self.entries.get(space, {}).get(name)

    def is_taken(self, space: str, name: str) -> bool:
        return name in self.entries.get(space, {})

    def entry(self, space: str, name: str) -> NamespaceEntry | None:
        """Return the log that a name leads to; None if it leads to none."""
        return self._entry(space, name, NamespaceEntry)

    def definition(self, space: str, name: str) -> DefinitionEntry | None:
        """Return the view or function of a name; None if it has none."""
        return self._entry(space, name, DefinitionEntry)

    def logs(self, space: str) -> Iterator[tuple[str, NamespaceEntry]]:
        """Yield the names of a space that lead to logs."""
        return self._entries(space, NamespaceEntry)

    def all_logs(self) -> Iterator[tuple[str, str, NamespaceEntry]]:
        """Yield all names that lead to logs, each after its space."""
        return ((space, name, entry) for space in self.entries for name, entry in self.logs(space))

    def definitions(self, space: str) -> Iterator[tuple[str, DefinitionEntry]]:
        """Yield the names of the views or functions of a space."""
        return self._entries(space, DefinitionEntry)

    def dropped_logs(self) -> Iterator[DroppedLog]:
        """Yield the logs that can be restored."""
        return self._dropped(NamespaceEntry)

    def dropped_log(self, id: str) -> DroppedLog | None:
        """Return the log that was dropped with this id, if it can be restored."""
        drop = self.dropped.get(id)
        return None if drop is None else _dropped_as(id, drop, NamespaceEntry)

    def dropped_definitions(self) -> Iterator[DroppedDefinition]:
        """Yield the views and functions that can be restored."""
        return self._dropped(DefinitionEntry)

    def _entry(self, space: str, name: str, of: type[E]) -> E | None:
        stored_entry = self.entries.get(space, {}).get(name)
        return entry if stored_entry is not None and isinstance(entry := stored_entry.entry, of) else None

    def _entries(self, space: str, of: type[E]) -> Iterator[tuple[str, E]]:
        for name, stored_entry in self.entries.get(space, {}).items():
            if isinstance(entry := stored_entry.entry, of):
                yield name, entry

    def _dropped(self, of: type[E]) -> Iterator[DroppedName[E]]:
        for id, drop in self.dropped.items():
            if (name := _dropped_as(id, drop, of)) is not None:
                yield name

    def names(self, space: str, kind: str) -> list[str]:
        """Return the sorted names of the objects of a kind."""
        entries = self.entries.get(space, {})
        if not isinstance(entries, PagedMap):
            return sorted(name for name, entry in entries.items() if entry.kind == kind)
        names: list[str] = _names_of(entries, kind).to_numpy(zero_copy_only=False).tolist()
        return names

    def first_names(self, space: str, count: int) -> tuple[list[str], int]:
        """Return the first `count` names of a space, in order, and the number of all its names.

        Of many names, only the pages of the first names are read. Their number then leaves out changes since
        the pages were written.
        """
        entries = self.entries.get(space, {})
        if not isinstance(entries, PagedMap):
            return sorted(entries)[:count], len(entries)
        return entries.first_names(count), entries.parts[0].entries

    def names_array(self, space: str, kind: str) -> pa.StringArray:
        """Return `names` as an Arrow array. For a million names this takes a fraction of the time."""
        entries = self.entries.get(space, {})
        if not isinstance(entries, PagedMap):
            return pa.array(self.names(space, kind), pa.string())
        return _names_of(entries, kind)

    def mappings(self) -> Iterator[tuple[tuple[str, str], Mapping[str, Any]]]:
        """Yield the mappings that are in pages if they are large, each with its name and its space.

        The space is empty if the mapping has none.
        """
        yield from ((("entries", space), names) for space, names in self.entries.items())
        yield ("dropped", ""), self.dropped

    def with_mappings(self, changed: Mapping[tuple[str, str], Mapping[str, Any]]) -> NamespaceState:
        """Return the state with some of these mappings replaced."""
        entries = {space: names for (_, space), names in changed.items() if space}
        return replace(
            self, entries={**self.entries, **entries}, dropped=changed.get(("dropped", ""), self.dropped)
        )

    @property
    def versions_per_hint(self) -> int:
        """How many versions may lie between two hints. It is 1 if there are few names."""
        mappings = [value for _, value in self.mappings()]
        if any(isinstance(mapping, PagedMap) for mapping in mappings):
            return VERSIONS_PER_PAGED_HINT
        return 1 + sum(map(len, (*mappings, self.cuts, self.begun))) // NAMES_PER_VERSION

    @property
    def is_empty(self) -> bool:
        return not any(self.entries.values())


def _dropped_as(id: str, drop: DroppedObject, of: type[E]) -> DroppedName[E] | None:
    if not isinstance(entry := drop.entry(id), of):
        return None
    return DroppedName(space=drop.space, name=drop.name, entry=entry, time_us=drop.time_us)


def _names_of(entries: PagedMap[StoredEntry], kind: str) -> pa.StringArray:
    table = entries.table(["name", "kind"])
    of_kind = pc.equal(table["kind"], kind)
    return (table if pc.all(of_kind).as_py() else table.filter(of_kind))["name"].combine_chunks()


def apply(state: NamespaceState, event: NamespaceEvent, time_us: int) -> NamespaceState:
    """Fold an event of a commit of that time. Total and deterministic, because an event was decided
    before."""
    return apply_all(state, (event,), time_us)


def apply_all(state: NamespaceState, events: Iterable[NamespaceEvent], time_us: int) -> NamespaceState:
    """Fold the events of a commit of that time, in their order.

    The cost depends on the changes, and hardly on the number of names. A commit may link 100,000 tables.
    """
    fold = _Fold(state)
    for event in events:
        fold.apply(event, time_us)
    return fold.state()


class _Fold:
    """A namespace between two versions. The versions share everything that no event changes."""

    def __init__(self, state: NamespaceState) -> None:
        self._begin(state)

    def _begin(self, state: NamespaceState) -> None:
        self._state = state
        self._own: dict[str, Any] = {}
        self._own_names: dict[str, AnyChanging] = {}
        self._forgotten: set[str] = set()

    def state(self) -> NamespaceState:
        own = dict(self._own)
        for name, mapping in self._own.items():
            if isinstance(mapping, ChangingMap | ChangingPages):
                own[name] = _shared(mapping, name, "")
        for space, names in self._own_names.items():
            own["entries"] = {**own["entries"], space: _shared(names, "entries", space)}
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
                self._give(event, StoredEntry(kind=event.kind, id=event.id, location=event.location))
            case EntryDefined():
                kind = kind_of(event.definition)
                self._give(event, StoredEntry(kind=kind, id=event.id, definition=event.definition))
            case EntryUnlinked():
                self._unlink(event, time_us)
            case EntryRenamed():
                names = self._names(event.space)
                target = names.take(event.name)
                if target is None:
                    raise KeyError(event.name)
                names[event.new_name] = target
            case EntryForgotten():
                self._forgotten.add(event.id)
            case EntryPurged():
                self._forget("dropped", event.id)
            case CutSaved():
                cut = SavedCut(object=event.object, hash=event.hash, time_us=time_us, logs=event.logs)
                self._changed("cuts")[event.name] = cut
            case CutDropped():
                self._forget("cuts", event.name)
            case HistoryExpired():
                self._state = replace(self._state, expired=max(self._state.expired, event.version))
            case FilesVacuumed():
                first_met = self._seen("begun")
                self._own["begun"] = {id: first_met.get(id, time_us) for id in event.begun}
            case NamespaceRestored():
                self._state = replace(self._state, link=_link(event))
            case NamespaceDropped() | NamespacePurged():
                pass
            case _:
                assert_never(event)

    def _give(self, event: EntryLinked | EntryDefined, entry: StoredEntry) -> None:
        self._names(event.space)[event.name] = entry
        self._forget("dropped", event.id)

    def _unlink(self, event: EntryUnlinked, time_us: int) -> None:
        unlinked_entry = self._names(event.space).take(event.name)
        if not event.dropped:
            return
        if unlinked_entry is None:
            raise KeyError(event.name)

        def dropped(entry: StoredEntry) -> DroppedObject:
            return DroppedObject(
                space=event.space,
                name=event.name,
                kind=entry.kind,
                location=entry.location,
                definition=entry.definition,
                time_us=time_us,
            )

        if not isinstance(unlinked_entry, UnreadValue):
            self._changed("dropped")[event.id] = dropped(unlinked_entry)
            return
        if not isinstance(self._changed("dropped"), ChangingPages):
            few = self._changed("dropped").shared()
            self._own["dropped"] = ChangingPages(
                PagedMap.beside_no_pages(LAYOUTS["dropped"], few, ("dropped", ""))
            )
        self._changed("dropped")[event.id] = unlinked_entry.made(dropped)

    def _seen(self, name: str) -> Mapping[str, Any]:
        """Return the present mapping, which must not be changed."""
        mapping: Mapping[str, Any] = self._own.get(name, getattr(self._state, name))
        return mapping

    def _changed(self, name: str) -> AnyChanging:
        """Return a mapping that may be changed."""
        own = self._own.get(name)
        if not isinstance(own, ChangingMap | ChangingPages):
            own = self._own[name] = _changing(self._seen(name))
        return own

    def _names(self, space: str) -> AnyChanging:
        """Return the names of a space, which may be changed."""
        own = self._own_names.get(space)
        if own is None:
            # A dict of the few spaces. Each space is shared on its own.
            spaces = self._own["entries"] = dict(self._seen("entries"))
            own = self._own_names[space] = spaces[space] = _changing(spaces.get(space, {}))
        return own

    def _forget(self, name: str, key: str) -> None:
        mapping = self._seen(name)
        if isinstance(mapping, PagedMap | ChangingPages) or key in mapping:
            self._changed(name).discard(key)


AnyChanging: TypeAlias = "ChangingMap[Any] | ChangingPages[Any]"


def _changing(before: Mapping[str, Any]) -> AnyChanging:
    return ChangingPages(before) if isinstance(before, PagedMap) else ChangingMap(before)


def _shared(made: AnyChanging, name: str, space: str) -> Mapping[str, Any]:
    """Return the finished version, in pages if it has become large."""
    mapping = made.shared()
    if isinstance(mapping, SharedMap) and len(mapping) > PAGED_FROM and name in LAYOUTS:
        return PagedMap(NamePages.of(LAYOUTS[name], mapping.items(), None), {}, 0, (name, space))
    return mapping


def _link(event: NamespaceCreated | NamespaceRestored) -> NameLink | None:
    if event.parent is None or event.name is None:
        return None
    return NameLink(namespace=event.parent, name=event.name)
