"""The fold, dump and load of a namespace's log: its root and its pages. Pure, except for reading
pages.

A mapping of few names is in the root. A mapping of many names is in pages, and the root has their hashes and
the changes since they were written (see `paged_map`). A dump writes the new pages. The root's `writers` are
those of a table's root.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from operator import itemgetter
from typing import Any, Literal
from weakref import WeakValueDictionary

import msgspec

from lakelog.catalog.core.schema.definition import NameSpace
from lakelog.catalog.core.schema.stored_types import ready, state_of
from lakelog.catalog.core.state import features
from lakelog.catalog.core.state.decoded_events import namespace_events
from lakelog.catalog.core.state.link import NameLink
from lakelog.catalog.core.state.name_pages import NamePage, NamePages, PageSource, StoredPage
from lakelog.catalog.core.state.namespace_entries import DroppedObject, StoredEntry
from lakelog.catalog.core.state.namespace_state import LAYOUTS, NamespaceState, SavedCut, apply_all
from lakelog.catalog.core.state.paged_map import PagedMap, resolved
from lakelog.catalog.core.state.shared_map import RemovedKey, SharedMap
from lakelog.log import Commit, FeatureNames, Json, StateDump
from lakelog.log.errors import FormatError, NotFound
from lakelog.log.grammar import Id, Name, Number, TimeUs


class _Paged(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The pages of a mapping. Names added since are in the mapping's usual member, and removed names are
    here."""

    of: Literal["entries", "dropped"]
    space: NameSpace | Literal[""] = ""
    pages: tuple[StoredPage, ...]
    gone: tuple[Name, ...] = ()


class _Root(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    properties: dict[str, str]
    entries: dict[NameSpace, dict[Name, StoredEntry]]
    dropped: dict[Id, DroppedObject] = {}
    forgotten: tuple[Id, ...] = ()
    cuts: dict[Name, SavedCut] = {}
    begun: dict[Id, TimeUs] = {}
    expired: Number = 0
    link: NameLink | None = None
    writers: dict[str, Any] = {}
    paged: tuple[_Paged, ...] = ()
    version: Number = 0


ready(_Root, tuple[_Paged, ...])


@dataclass(frozen=True, slots=True, kw_only=True)
class _NamespaceDump(StateDump):
    """A dump with its paged mappings, before and after it, and the stored form of the new pages."""

    paged: Sequence[tuple[PagedMap[Any], PagedMap[Any]]]
    new: Mapping[NamePage[Any], StoredPage]


class NamespaceProjection:
    """See `lakelog.log.StateProjection`. `source` reads pages. Without it, states have only names that were folded
    here."""

    known_features = features.KNOWN

    def __init__(self, source: PageSource | None = None) -> None:
        self._source = source
        self._known: WeakValueDictionary[tuple[str, StoredPage], NamePage[Any]] = WeakValueDictionary()

    def uses(self, commit: Commit, blobs: Sequence[bytes]) -> FeatureNames:
        return features.used_by(commit, blobs)

    def initial(self) -> NamespaceState:
        return NamespaceState()

    def apply(self, state: NamespaceState, commit: Commit, blobs: Sequence[bytes]) -> NamespaceState:
        new_state = apply_all(state, namespace_events(commit), commit.time_us)
        if not commit.commit_id:
            return new_state  # a step of a transaction: it is no version yet
        return new_state.with_mappings(
            {
                at: mapping.at(commit.version)
                for at, mapping in new_state.mappings()
                if isinstance(mapping, PagedMap)
            }
        )

    def dump(self, state: NamespaceState, version: int, for_base: bool = False) -> StateDump:
        entries: dict[str, dict[str, StoredEntry]] = {}
        drops: dict[str, DroppedObject] = {}
        blobs: dict[str, bytes] = {}
        new: dict[NamePage[Any], StoredPage] = {}
        paged_mappings, page_lists = [], []
        for (name, space), mapping in state.mappings():
            inline: Mapping[str, Any] = mapping
            dump_mapping = mapping.dumped() if isinstance(mapping, PagedMap) else None
            if isinstance(mapping, PagedMap) and dump_mapping is not None:
                pages, different = dump_mapping.parts
                page_refs = [_stored(page, version, blobs, new) for page in pages.pages]
                gone_keys = sorted(key for key, value in different.items() if value is RemovedKey)
                page_lists.append(_Paged(of=name, space=space, pages=tuple(page_refs), gone=tuple(gone_keys)))  # type: ignore[arg-type]
                paged_mappings.append((mapping, dump_mapping))
                inline = {key: value for key, value in resolved(different).items() if value is not RemovedKey}
            if space:
                entries[space] = dict(inline.items())
            else:
                drops = dict(inline.items())
        root = _Root(
            properties=dict(state.properties),
            entries=entries,
            dropped=drops,
            forgotten=tuple(sorted(state.forgotten)),
            cuts=dict(state.cuts.items()),
            begun=dict(state.begun),
            expired=state.expired,
            link=state.link,
            paged=tuple(page_lists),
            version=version if page_lists else 0,
        )
        uses = dict.fromkeys(page.name for page_list in page_lists for page in page_list.pages)
        return _NamespaceDump(
            root=msgspec.to_builtins(root),
            blobs=blobs,
            uses=tuple(uses),
            features=(features.PAGES,) if page_lists else (),
            paged=paged_mappings,
            new=new,
        )

    def stored(self, dump: StateDump) -> None:
        """Record that new pages are durable. The next dump refers to them, and later versions build on
        them."""
        if not isinstance(dump, _NamespaceDump):
            return
        for page, stored_page in dump.new.items():
            page.stored = stored_page
        for base_mapping, new_mapping in dump.paged:
            pages, different = base_mapping.parts
            if new_mapping.parts[0] is not pages:
                pages.successor = (different, new_mapping.parts[0])

    def load(self, root: Json) -> NamespaceState:
        loaded_root = state_of(root, _Root, "namespace", "table")
        state = NamespaceState(
            properties=loaded_root.properties,
            entries={space: SharedMap(names) for space, names in loaded_root.entries.items()},
            dropped=SharedMap(loaded_root.dropped),
            forgotten=frozenset(loaded_root.forgotten),
            cuts=SharedMap(loaded_root.cuts),
            begun=loaded_root.begun,
            expired=loaded_root.expired,
            link=loaded_root.link,
        )
        if len({(page_list.of, page_list.space) for page_list in loaded_root.paged}) < len(loaded_root.paged):
            raise FormatError("a snapshot has the pages of a mapping twice: find out which client wrote it")
        return state.with_mappings(
            {
                (page_list.of, page_list.space): self._paged(state, page_list, loaded_root.version)
                for page_list in loaded_root.paged
            }
        )

    def _paged(self, state: NamespaceState, stored: _Paged, version: int) -> PagedMap[Any]:
        name, space = stored.of, stored.space
        if (name == "entries") != bool(space):
            raise FormatError(
                f"a snapshot has pages of {name} in the space {space!r}: find out which client wrote it"
            )
        inline: Mapping[str, Any] = state.entries.get(space, {}) if space else state.dropped
        pages = NamePages(
            LAYOUTS[name], [self._page(name, stored_page) for stored_page in stored.pages], self._source
        )
        different = {**dict.fromkeys(stored.gone, RemovedKey), **dict(inline.items())}
        return PagedMap(pages, different, version, (name, space))

    def _page(self, name: str, stored_page: StoredPage) -> NamePage[Any]:
        """Return a page, or the same page in memory. Most pages stay the same from version to version."""
        page = self._known.get((name, stored_page))
        if page is None:
            page = self._known[name, stored_page] = NamePage(LAYOUTS[name], stored_page)
        return page


def pages_in(root: Json) -> dict[str, str]:
    """Return the pages that a root names, each with its hash. Returns no pages for a root of another log."""
    pagings = msgspec.convert(root.get("paged", ()) if isinstance(root, dict) else (), tuple[_Paged, ...])
    return {page.name: page.sha256 for page_list in pagings for page in page_list.pages}


def names_difference(state: NamespaceState, other_state: NamespaceState) -> str | None:
    """Return the parts in which two states differ, or None if they are equal.

    Reads all pages. Raises FormatError for a page whose values are not of their form.
    """
    for _, mapping in other_state.mappings():
        if isinstance(mapping, PagedMap):
            for _ in mapping.rows():  # this checks each row
                pass
    names = NamespaceState.__dataclass_fields__
    return ", ".join(name for name in names if getattr(state, name) != getattr(other_state, name)) or None


def names_digest(state: NamespaceState, read: Callable[[Sequence[str]], list[bytes]]) -> str:
    """Return a hash of a state that does not depend on which parts are in pages. `read` reads all pages
    anew."""
    digest = sha256()
    small = {name: getattr(state, name) for name in ("properties", "cuts", "begun", "expired", "link")}
    digest.update(msgspec.json.encode({**small, "cuts": dict(state.cuts.items())}, order="sorted"))
    digest.update(msgspec.json.encode(sorted(state.forgotten)))
    for at, mapping in sorted(state.mappings(), key=itemgetter(0)):
        digest.update(msgspec.json.encode(at))
        if isinstance(mapping, PagedMap):
            mapping = mapping.read_by(_Anew(read))
        rows = mapping.rows() if isinstance(mapping, PagedMap) else sorted(mapping.items(), key=itemgetter(0))
        for row in rows:
            digest.update(msgspec.json.encode(row, order="sorted"))
    return digest.hexdigest()


class _Anew:
    """Reads pages, and does not replace pages that have expired."""

    def __init__(self, read: Callable[[Sequence[str]], list[bytes]]) -> None:
        self.read = read

    def state_at(self, version: int) -> NamespaceState:
        raise NotFound("pages of a namespace have expired meanwhile: load it again")


def _stored(
    page: NamePage[Any], version: int, blobs: dict[str, bytes], new: dict[NamePage[Any], StoredPage]
) -> StoredPage:
    """Return the stored form of a page, and add its bytes to `blobs` if it was not written yet."""
    if page.stored is not None:
        return page.stored
    blob = page.blob()
    stored_page = StoredPage(
        first=page.first, entries=page.entries, version=version, sha256=sha256(blob).hexdigest()
    )
    blobs[stored_page.name] = blob
    new[page] = stored_page
    return stored_page
