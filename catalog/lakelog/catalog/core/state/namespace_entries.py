"""The objects of a namespace's names: logs, and the definitions of views and functions. Pure.

A name has one object, whatever its kind. `StoredEntry` and `DroppedObject` are the stored forms. A caller that
follows names to logs uses `NamespaceEntry`, which always has a location, so that no view is taken for a log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import msgspec

from lakelog.catalog.core.schema.definition import SPACES, Definition, EntryKind, NameSpace, kind_of
from lakelog.log.grammar import Id, Location, Name, TimeUs

E_co = TypeVar("E_co", bound="AnyEntry", covariant=True)


class StoredEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The object of a name: a log at `location`, or a view or function, which is its `definition`.

    `location` is relative to the warehouse, or a URL if the user chose the place.
    """

    kind: EntryKind
    id: Id
    location: Location | None = None
    definition: Definition | None = None

    def __post_init__(self) -> None:
        _check(self.kind, self.location, self.definition)

    @property
    def entry(self) -> AnyEntry:
        return _entry(self.kind, self.id, self.location, self.definition)


class DroppedObject(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """An object that was called `name` and can be restored. `time_us` is the time of the drop."""

    space: NameSpace
    name: Name
    kind: EntryKind
    location: Location | None = None
    definition: Definition | None = None
    time_us: TimeUs

    def __post_init__(self) -> None:
        _check(self.kind, self.location, self.definition)

    def entry(self, id: str) -> AnyEntry:
        return _entry(self.kind, id, self.location, self.definition)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceEntry:
    """A name's log, of a table or a namespace."""

    kind: str
    id: str
    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionEntry:
    """A name's view or function."""

    id: str
    definition: Definition

    @property
    def kind(self) -> str:
        return kind_of(self.definition)


AnyEntry: TypeAlias = NamespaceEntry | DefinitionEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedName(Generic[E_co]):
    """A dropped log or definition, with the name that it had."""

    space: str
    name: str
    entry: E_co
    time_us: int


DroppedLog: TypeAlias = DroppedName[NamespaceEntry]
DroppedDefinition: TypeAlias = DroppedName[DefinitionEntry]


def _check(kind: str, location: str | None, definition: Definition | None) -> None:
    if (location is None) == (definition is None):
        raise ValueError("an object of a name has either a location or a definition")
    if (kind in SPACES) if definition is None else (kind != kind_of(definition)):
        raise ValueError(f"an object of the kind {kind} has the form of another kind")


def _entry(kind: str, id: str, location: str | None, definition: Definition | None) -> AnyEntry:
    if definition is not None:
        return DefinitionEntry(id=id, definition=definition)
    assert location is not None, "an object without a definition has a location"
    return NamespaceEntry(kind=kind, id=id, location=location)
