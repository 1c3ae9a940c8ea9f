"""Mappings of very many names: pages that are read when a name of them is asked for, and what was changed since. Pure.

A change of a namespace costs what it changes: it stands beside the pages, in memory and in a snapshot's root, until
there are so many changes that the pages they are of are written anew. Folding a commit reads nothing: what a name led
to that was given another name, or was dropped, is read when it is asked for. Rule: what a version shows never changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence, ValuesView
from typing import Any, Generic, TypeVar, cast

import pyarrow as pa

from lakelog.catalog.core.state.name_pages import (
    PAGE_NAMES,
    Layout,
    Page,
    Pages,
    PageSource,
    changed,
    is_to_be_divided,
    new_pages,
)
from lakelog.catalog.core.state.shared_map import DIFFERENT_MIN, Gone
from lakelog.log.errors import FormatError, NotFound

T = TypeVar("T")
U = TypeVar("U")

PAGED_FROM = 2_000
"""A mapping of more names is in pages. One that has fewer than half of that when they are written anew is not."""

FOLDED_FACTOR = 8
"""How many times more changes than a dump lets stand beside the pages are kept by a process that writes no dumps."""


class Late(Generic[T]):
    """What a name led to in pages that were not read when it was given another one, or dropped."""

    __slots__ = ("_pages", "_key", "_make")

    def __init__(self, pages: PagedMap[Any], key: str, make: Callable[[Any], T]) -> None:
        self._pages = pages
        self._key = key
        self._make = make

    def value(self) -> T:
        found = self._pages.get(self._key)
        if found is None:
            raise FormatError(
                f"a commit of a namespace gave up the name {self._key!r}, which did not exist: find out which client "
                "wrote it"
            )
        return self._make(found)

    def made(self, make: Callable[[T], U]) -> Late[U]:
        before = self._make
        return Late(self._pages, self._key, lambda found: make(before(found)))

    def note(self, wanted: dict[int, tuple[Pages[Any], set[int]]]) -> None:
        """Add the page that it needs to those by the `id` of all pages."""
        pages = self._pages.parts[0]
        place = pages.index(self._key)
        if place is not None:
            wanted.setdefault(id(pages), (pages, set()))[1].add(place)


class PagedMap(Mapping[str, T], Generic[T]):
    """One version of such a mapping. Safe to share between threads.

    `field` says which mapping of a namespace it is, and `version` one at which the pages, with the changes beside them,
    were what the namespace had: where expiry has replaced pages, that version is read anew.
    """

    __slots__ = ("_parts", "version", "field")

    def __init__(
        self, pages: Pages[T], different: dict[str, Any], version: int, field: tuple[str, str]
    ) -> None:
        """Takes the dict over: it is not changed any more."""
        # Replaced by one assignment, as threads share a version.
        self._parts = (pages, different)
        self.version = version
        self.field = field

    @property
    def parts(self) -> tuple[Pages[T], dict[str, Any]]:
        """The pages, and what is different: a value, `Late`, or `Gone`, which may be of a name that was not there."""
        return self._parts

    @staticmethod
    def beside_no_pages(layout: Layout[T], known: Mapping[str, T], field: tuple[str, str]) -> PagedMap[T]:
        """Return a mapping of few names as one that may have what is late."""
        return PagedMap(Pages(layout, (), None), dict(known.items()), 0, field)

    def at(self, version: int) -> PagedMap[T]:
        """Return the same, of a later version."""
        return PagedMap(*self._parts, version, self.field)

    def read_by(self, source: PageSource) -> PagedMap[T]:
        """Return the same, with the pages that are stored read anew from another source."""
        pages, different = self._parts
        unread = [page if page.stored is None else Page(pages.layout, page.stored) for page in pages.pages]
        return PagedMap(Pages(pages.layout, unread, source), different, self.version, self.field)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PagedMap):
            columns = self._parts[0].layout.schema.names
            if self.table(columns).equals(other.table(columns)):
                return True  # of many names far faster than one by one
        return super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, key: str) -> T:
        def look(pages: Pages[T], different: dict[str, Any]) -> Any:
            found = different[key] if key in different else pages.get(key)
            return found.value() if isinstance(found, Late) else found

        found = self._read(look)
        if found is None or found is Gone:
            raise KeyError(key)
        return cast(T, found)

    def __bool__(self) -> bool:
        pages, different = self._parts
        return pages.entries > len(different) or len(self) > 0

    def __len__(self) -> int:
        """Reads the pages of what is different."""

        def count(pages: Pages[T], different: dict[str, Any]) -> int:
            pages.load({place for key in different if (place := pages.index(key)) is not None})
            there = sum(pages.has(key) for key in different)
            return pages.entries - there + sum(found is not Gone for found in different.values())

        return self._read(count)

    def __iter__(self) -> Iterator[str]:
        for table, _ in self._tables():
            yield from table.column(0).to_pylist()

    def items(self) -> ItemsView[str, T]:
        return _Items(self)

    def values(self) -> ValuesView[T]:
        return _Values(self)

    def rows(self) -> Iterator[tuple[str, T]]:
        """Yield all names with what they lead to, in order, page by page."""
        for table, page in self._tables():
            values = self._parts[0].layout.values(table) if page is None else page.values(table)
            yield from zip(table.column(0).to_pylist(), values, strict=True)

    def table(self, columns: Sequence[str]) -> pa.Table:
        """Return some columns of all pages as they are now, in the order of names; values are not checked."""
        return pa.concat_tables([table for table, _ in self._tables(columns)])

    def _tables(self, columns: Sequence[str] | None = None) -> Iterator[tuple[pa.Table, Page[T] | None]]:
        def loaded(pages: Pages[T], different: dict[str, Any]) -> tuple[Pages[T], dict[str, Any]]:
            pages.load(range(len(pages.pages)))
            return pages, different

        pages, different = self._read(loaded)
        changes, added = changes_in(pages.layout, different)
        if columns is not None:
            added = added.select(columns)
        if not pages.pages:
            yield added, None
        for page, table in pages.overlaid(changes, added, columns):
            yield table, page

    def _read(self, look: Callable[[Pages[T], dict[str, Any]], U]) -> U:
        """Return what `look` returns for the pages, read anew where expiry has replaced them. NotFound."""
        try:
            return look(*self._parts)
        except NotFound:
            self._renew()
            return look(*self._parts)

    def _renew(self) -> None:
        """Rest on the pages that the version has now. What was changed since the old ones stays: nothing else was."""
        pages, different = self._parts
        if pages.source is None:
            raise NotFound("pages of a namespace have expired meanwhile: load it again")
        name, space = self.field
        fresh = getattr(pages.source.state_at(self.version), name)
        fresh = fresh.get(space, {}) if space else fresh
        if isinstance(fresh, PagedMap):
            newer, since = fresh.parts
            self._parts = newer, {**since, **different}
        else:
            self._parts = Pages.of(pages.layout, fresh.items(), pages.source), different

    # Dumps

    def dumped(self) -> PagedMap[T] | None:
        """Return it as a dump has it: with its pages made anew where many changes stand beside them; None where it has
        so few names that it needs no pages. Reads the pages that are made anew."""
        pages, different = self._parts
        if not pages.pages and len(different) <= PAGED_FROM:
            return None
        if len(different) <= changes_max(pages.entries):
            return self
        after = self._read(lambda pages, different: merged(pages, changes_in(pages.layout, different)))
        if after.entries < PAGED_FROM // 2:
            return None
        return PagedMap(after, {}, self.version, self.field)

    def based(self) -> tuple[Pages[T], dict[str, Any]]:
        """Return its parts on the newest pages that a dump has made of the same, with what is different then."""
        pages, different = self._parts
        while pages.successor is not None:
            known, newer = pages.successor
            if not different.keys() >= known.keys():
                break  # it is older than what was dumped
            different = {
                key: found for key, found in different.items() if key not in known or known[key] is not found
            }
            pages = newer
        return pages, different


class _Items(ItemsView[str, T]):
    """Page by page: far faster than one name after another."""

    def __init__(self, of: PagedMap[T]) -> None:
        super().__init__(of)
        self._of = of

    def __iter__(self) -> Iterator[tuple[str, T]]:
        return self._of.rows()


class _Values(ValuesView[T]):
    def __init__(self, of: PagedMap[T]) -> None:
        super().__init__(of)
        self._of = of

    def __iter__(self) -> Iterator[T]:
        return (value for _, value in self._of.rows())


class ChangingPages(Generic[T]):
    """The version after another one, while it is made. Reads nothing but where a name is asked for."""

    __slots__ = ("_before", "_pages", "_was", "_different")

    def __init__(self, before: PagedMap[T]) -> None:
        self._before = before
        self._pages, self._was = before.based()
        self._different = dict(self._was)

    def _now(self) -> PagedMap[T]:
        return PagedMap(self._pages, self._different, self._before.version, self._before.field)

    def shared(self) -> PagedMap[T]:
        """Return the version that was made; this is not to be used after that."""
        now = self._now()
        is_much = len(self._different) > FOLDED_FACTOR * changes_max(self._pages.entries)
        if is_much and self._pages.is_read and not any(isinstance(f, Late) for f in self._different.values()):
            return PagedMap(
                merged(self._pages, changes_in(self._pages.layout, self._different)),
                {},
                now.version,
                now.field,
            )
        return now

    def get(self, key: str) -> T | None:
        return self._now().get(key)

    def __setitem__(self, key: str, value: T | Late[T]) -> None:
        self._different[key] = value

    def discard(self, key: str) -> None:
        # What the version before has is noted as gone even if no page has it: a step of a transaction rests on that
        # version, whose newer pages may have it (see `PagedMap._renew`).
        if key not in self._was and self._pages.is_known(key) and not self._pages.has(key):
            self._different.pop(key, None)
        else:
            self._different[key] = Gone

    def take(self, key: str) -> T | Late[T] | None:
        """Remove a name, and return what it leads to: `Late` where that is in a page that was not read."""
        found: Any
        if key in self._different:
            found = None if self._different[key] is Gone else self._different[key]
        elif self._pages.is_known(key):
            found = self._pages.get(key)
        else:
            bare = PagedMap(self._pages, {}, self._before.version, self._before.field)
            found = Late(bare, key, _as_it_is)
        self.discard(key)
        return cast("T | Late[T] | None", found)


def _as_it_is(found: T) -> T:
    return found


def changes_max(names: int) -> int:
    """Return how many changes stand beside so many names before pages are made anew."""
    return DIFFERENT_MIN + 2 * math.isqrt(names)


def resolved(different: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is different without what is late: all pages that this needs are read in one round."""
    late = [found for found in different.values() if isinstance(found, Late)]
    wanted: dict[int, tuple[Pages[Any], set[int]]] = {}
    for each in late:
        each.note(wanted)
    for pages, places in wanted.values():
        try:
            pages.load(sorted(places))
        except NotFound:
            continue  # each is read anew by itself
    return {key: found.value() if isinstance(found, Late) else found for key, found in different.items()}


def changes_in(
    layout: Layout[T], different: Mapping[str, Any]
) -> tuple[list[tuple[str, int | None]], pa.Table]:
    """Return what is different as sorted changes (see `changed`), and a table of the values that they lead to."""
    if not different:
        return [], layout.schema.empty_table()
    settled = resolved(different)
    keys = sorted(settled)
    kept = [key for key in keys if settled[key] is not Gone]
    rows = {key: row for row, key in enumerate(kept)}
    return [(key, rows.get(key)) for key in keys], layout.table([(key, settled[key]) for key in kept])


def merged(pages: Pages[T], changes: tuple[list[tuple[str, int | None]], pa.Table]) -> Pages[T]:
    """Return pages that have the changes. Those without any are kept; one that has become small goes with the next."""
    different, added = changes
    layout = pages.layout
    if not pages.pages:
        return Pages(layout, new_pages(layout, added), pages.source)
    concerned = sorted({pages.index(key) or 0 for key, _ in different})
    pages.load(concerned)
    found: list[Page[T]] = []
    small: list[pa.Table] = []
    at = 0
    for place, page in enumerate(pages.pages):
        first = at
        end = pages.pages[place + 1].first if place + 1 < len(pages.pages) else None
        while at < len(different) and (end is None or different[at][0] < end):
            at += 1
        if at == first and not small:
            found.append(page)
            continue
        pages.load([place])
        table = changed(page.table, different[first:at], added)
        if not small and table.num_rows == page.entries and table.equals(page.table):
            found.append(page)
            continue
        table = pa.concat_tables([*small, table]).combine_chunks()
        if table.num_rows <= PAGE_NAMES // 4:
            small = [table]
            continue
        small = []
        found += new_pages(layout, table) if is_to_be_divided(table) else [Page(layout, None, table)]
    if small and small[0].num_rows:
        found.append(Page(layout, None, small[0]))
    return Pages(layout, found, pages.source)
