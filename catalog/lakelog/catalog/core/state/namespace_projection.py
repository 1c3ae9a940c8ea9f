"""How the log folds, dumps and loads a namespace: its root, and the pages beside it. Pure, except that pages are read.

A mapping of few names stands in the root, one of many in pages, of which the root has the hashes and what was changed
since they were written (see `paged_map`). A dump writes the pages that are new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from operator import itemgetter
from typing import Any, Literal
from weakref import WeakValueDictionary

import msgspec

from lakelog.catalog.core.schema import ready, state_of
from lakelog.catalog.core.state.decoded_events import namespace_events
from lakelog.catalog.core.state.link import Link
from lakelog.catalog.core.state.name_pages import Page, Pages, PageSource, StoredPage
from lakelog.catalog.core.state.namespace_state import (
    BY_SPACE,
    LAYOUTS,
    Defined,
    Dropped,
    DroppedDefinition,
    Entry,
    NamespaceState,
    SavedCut,
    apply_all,
)
from lakelog.catalog.core.state.paged_map import PagedMap, resolved
from lakelog.catalog.core.state.shared_map import Gone, SharedMap
from lakelog.log import Commit, Dump, Json
from lakelog.log.errors import FormatError, NotFound
from lakelog.log.grammar import Id, Name, Number, TimeUs, Word


class _Paged(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The pages of a mapping. What was added to them stands where the mapping does, and what is gone here."""

    of: Literal["entries", "definitions", "dropped", "dropped_definitions"]
    space: Word | Literal[""] = ""
    pages: tuple[StoredPage, ...]
    gone: tuple[Name, ...] = ()


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
    paged: tuple[_Paged, ...] = ()
    version: Number = 0


ready(_Root, tuple[_Paged, ...])


@dataclass(frozen=True, slots=True, kw_only=True)
class _NamespaceDump(Dump):
    """With the pages that it names, by their mappings as they were, and how it names those that are new."""

    paged: Sequence[tuple[PagedMap[Any], PagedMap[Any]]]
    new: Mapping[Page[Any], StoredPage]


class NamespaceProjection:
    """See `lakelog.log.Projection`. `source` reads pages; without it, states have only what was folded here."""

    def __init__(self, source: PageSource | None = None) -> None:
        self._source = source
        self._known: WeakValueDictionary[tuple[str, StoredPage], Page[Any]] = WeakValueDictionary()

    def initial(self) -> NamespaceState:
        return NamespaceState()

    def apply(self, state: NamespaceState, commit: Commit, blobs: Sequence[bytes]) -> NamespaceState:
        after = apply_all(state, namespace_events(commit), commit.time_us)
        if not commit.commit_id:
            return after  # a step of a transaction: it is no version yet
        return after.with_mappings(
            {at: each.at(commit.version) for at, each in after.mappings() if isinstance(each, PagedMap)}
        )

    def dump(self, state: NamespaceState, version: int, for_base: bool = False) -> Dump:
        own: dict[str, Any] = {"entries": {}, "definitions": {}}
        blobs: dict[str, bytes] = {}
        new: dict[Page[Any], StoredPage] = {}
        paged, stored = [], []
        for (name, space), mapping in state.mappings():
            inline: Mapping[str, Any] = mapping
            after = mapping.dumped() if isinstance(mapping, PagedMap) else None
            if isinstance(mapping, PagedMap) and after is not None:
                pages, different = after.parts
                named = [_stored(page, version, blobs, new) for page in pages.pages]
                gone = sorted(key for key, found in different.items() if found is Gone)
                stored.append(_Paged(of=name, space=space, pages=tuple(named), gone=tuple(gone)))  # type: ignore[arg-type]
                paged.append((mapping, after))
                inline = {key: found for key, found in resolved(different).items() if found is not Gone}
            if space:
                own[name][space] = dict(inline.items())
            else:
                own[name] = dict(inline.items())
        root = _Root(
            properties=dict(state.properties),
            **own,
            forgotten=tuple(sorted(state.forgotten)),
            cuts=dict(state.cuts.items()),
            begun=dict(state.begun),
            expired=state.expired,
            link=state.link,
            paged=tuple(stored),
            version=version if stored else 0,
        )
        uses = dict.fromkeys(page.name for each in stored for page in each.pages)
        return _NamespaceDump(
            root=msgspec.to_builtins(root), blobs=blobs, uses=tuple(uses), paged=paged, new=new
        )

    def stored(self, dump: Dump) -> None:
        """Note that new pages are durable: the next dump names them again, and versions to come rest on them."""
        if not isinstance(dump, _NamespaceDump):
            return
        for page, stored in dump.new.items():
            page.stored = stored
        for before, after in dump.paged:
            pages, different = before.parts
            if after.parts[0] is not pages:
                pages.successor = (different, after.parts[0])

    def load(self, root: Json) -> NamespaceState:
        stored = state_of(root, _Root, "namespace", "table")
        state = NamespaceState(
            properties=stored.properties,
            entries={space: SharedMap(names) for space, names in stored.entries.items()},
            definitions={space: SharedMap(names) for space, names in stored.definitions.items()},
            dropped=SharedMap(stored.dropped),
            dropped_definitions=SharedMap(stored.dropped_definitions),
            forgotten=frozenset(stored.forgotten),
            cuts=SharedMap(stored.cuts),
            begun=stored.begun,
            expired=stored.expired,
            link=stored.link,
        )
        if len({(each.of, each.space) for each in stored.paged}) < len(stored.paged):
            raise FormatError("a snapshot has the pages of a mapping twice: find out which client wrote it")
        return state.with_mappings(
            {(each.of, each.space): self._paged(state, each, stored.version) for each in stored.paged}
        )

    def _paged(self, state: NamespaceState, stored: _Paged, version: int) -> PagedMap[Any]:
        name, space = stored.of, stored.space
        if (name in BY_SPACE) != bool(space):
            raise FormatError(
                f"a snapshot has pages of {name} in the space {space!r}: find out which client wrote it"
            )
        beside = getattr(state, name)
        beside = beside.get(space, {}) if space else beside
        pages = Pages(LAYOUTS[name], [self._page(name, each) for each in stored.pages], self._source)
        different = {**dict.fromkeys(stored.gone, Gone), **dict(beside.items())}
        return PagedMap(pages, different, version, (name, space))

    def _page(self, name: str, stored: StoredPage) -> Page[Any]:
        """Return a page, the one that is in memory where there is one: most are the same from version to version."""
        page = self._known.get((name, stored))
        if page is None:
            page = self._known[name, stored] = Page(LAYOUTS[name], stored)
        return page


def pages_in(root: Json) -> dict[str, str]:
    """Return the pages that a root names, each with its hash. None, of another log's."""
    paged = msgspec.convert(root.get("paged", ()) if isinstance(root, dict) else (), tuple[_Paged, ...])
    return {page.name: page.sha256 for each in paged for page in each.pages}


def names_difference(one: NamespaceState, other: NamespaceState) -> str | None:
    """Return which parts of two states differ, None where none do. Reads all pages. FormatError for a page whose
    values are not of their form."""
    for _, mapping in other.mappings():
        if isinstance(mapping, PagedMap):
            for _ in mapping.rows():  # each is looked at
                pass
    names = NamespaceState.__dataclass_fields__
    return ", ".join(name for name in names if getattr(one, name) != getattr(other, name)) or None


def names_digest(state: NamespaceState, read: Callable[[Sequence[str]], list[bytes]]) -> str:
    """Return a hash of a state that does not depend on what of it is in pages. All pages are read anew, by `read`."""
    found = sha256()
    small = {name: getattr(state, name) for name in ("properties", "cuts", "begun", "expired", "link")}
    found.update(msgspec.json.encode({**small, "cuts": dict(state.cuts.items())}, order="sorted"))
    found.update(msgspec.json.encode(sorted(state.forgotten)))
    for at, mapping in sorted(state.mappings(), key=lambda each: each[0]):
        found.update(msgspec.json.encode(at))
        if isinstance(mapping, PagedMap):
            mapping = mapping.read_by(_Anew(read))
        rows = mapping.rows() if isinstance(mapping, PagedMap) else sorted(mapping.items(), key=itemgetter(0))
        for row in rows:
            found.update(msgspec.json.encode(row, order="sorted"))
    return found.hexdigest()


class _Anew:
    """Reads pages, and does not replace those that have expired."""

    def __init__(self, read: Callable[[Sequence[str]], list[bytes]]) -> None:
        self.read = read

    def state_at(self, version: int) -> NamespaceState:
        raise NotFound("pages of a namespace have expired meanwhile: load it again")


def _stored(
    page: Page[Any], version: int, blobs: dict[str, bytes], new: dict[Page[Any], StoredPage]
) -> StoredPage:
    """Return how a root names a page, and add its bytes to `blobs` where it was not written yet."""
    if page.stored is not None:
        return page.stored
    blob = page.blob()
    stored = StoredPage(
        first=page.first, entries=page.entries, version=version, sha256=sha256(blob).hexdigest()
    )
    blobs[stored.name] = blob
    new[page] = stored
    return stored
