"""Mappings of very many names: pages that are read on demand, and the changes since. Pure.

The cost of a change of a namespace depends on the change alone. Changes are kept apart from the pages, in memory
and in a snapshot's root. If there are many, their pages are rewritten. Folding a commit reads nothing. The
value of a renamed or dropped name is read on demand. Rule: a version never changes for its readers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence, ValuesView
from typing import Any, Generic, TypeVar, cast

import pyarrow as pa

from lakelog.catalog.core.state.name_pages import (
    PAGE_NAMES,
    NamePage,
    NamePages,
    PageLayout,
    PageSource,
    changed,
    is_to_be_divided,
    new_pages,
)
from lakelog.catalog.core.state.shared_map import DIFFERENT_MIN, RemovedKey
from lakelog.log.errors import FormatError, NotFound

T = TypeVar("T")
U = TypeVar("U")

PAGED_FROM = 2_000
"""A mapping of more names is in pages. It leaves pages if it has fewer than half as many names at a
rewrite."""

FOLDED_FACTOR = 8
"""A process that writes no dumps keeps this many times more changes apart from the pages than a dump does."""


class UnreadValue(Generic[T]):
    """The value of a name in pages that were not read when the name was renamed or dropped."""

    __slots__ = ("_pages", "_key", "_make")

    def __init__(self, pages: PagedMap[Any], key: str, make: Callable[[Any], T]) -> None:
        self._pages = pages
        self._key = key
        self._make = make

    def value(self) -> T:
        value = self._pages.get(self._key)
        if value is None:
            raise FormatError(
                f"a commit of a namespace gave up the name {self._key!r}, which did not exist: find out which client "
                "wrote it"
            )
        return self._make(value)

    def made(self, make: Callable[[T], U]) -> UnreadValue[U]:
        make_before = self._make
        return UnreadValue(self._pages, self._key, lambda found: make(make_before(found)))

    def note(self, wanted: dict[int, tuple[NamePages[Any], set[int]]]) -> None:
        """Add the page that it needs to the places in `wanted`, which has them by the `id` of all pages."""
        pages = self._pages.parts[0]
        place = pages.index(self._key)
        if place is not None:
            wanted.setdefault(id(pages), (pages, set()))[1].add(place)


class PagedMap(Mapping[str, T], Generic[T]):
    """A version of such a mapping. Safe to share between threads.

    `field` identifies the mapping of a namespace. At `version`, the pages with the separate changes were
    the namespace's mapping. If expiry has replaced pages, that version is read again.
    """

    __slots__ = ("_parts", "version", "field")

    def __init__(
        self, pages: NamePages[T], different: dict[str, Any], version: int, field: tuple[str, str]
    ) -> None:
        """Takes ownership of the dict, which must not be changed any more."""
        # Replaced by one assignment, because threads share a version.
        self._parts = (pages, different)
        self.version = version
        self.field = field

    @property
    def parts(self) -> tuple[NamePages[T], dict[str, Any]]:
        """The pages and the differences: a value, `UnreadValue`, or `RemovedKey`, which is possible even for
        a name that never existed."""
        return self._parts

    @staticmethod
    def beside_no_pages(layout: PageLayout[T], known: Mapping[str, T], field: tuple[str, str]) -> PagedMap[T]:
        """Return a mapping of few names as a map that may have `UnreadValue` values."""
        return PagedMap(NamePages(layout, (), None), dict(known.items()), 0, field)

    def at(self, version: int) -> PagedMap[T]:
        """Return the same mapping at a later version."""
        return PagedMap(*self._parts, version, self.field)

    def read_by(self, source: PageSource) -> PagedMap[T]:
        """Return the same mapping, with its stored pages read again from another source."""
        pages, different = self._parts
        unread = [
            page if page.stored is None else NamePage(pages.layout, page.stored) for page in pages.pages
        ]
        return PagedMap(NamePages(pages.layout, unread, source), different, self.version, self.field)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PagedMap):
            columns = self._parts[0].layout.schema.names
            if self.table(columns).equals(other.table(columns)):
                return True  # for many names this is far faster than one by one
        return super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, key: str) -> T:
        def look(pages: NamePages[T], different: dict[str, Any]) -> Any:
            value = different[key] if key in different else pages.get(key)
            return value.value() if isinstance(value, UnreadValue) else value

        result = self._read(look)
        if result is None or result is RemovedKey:
            raise KeyError(key)
        return cast(T, result)

    def __bool__(self) -> bool:
        pages, different = self._parts
        return pages.entries > len(different) or len(self) > 0

    def __len__(self) -> int:
        """Return the number of names. Reads the pages of changed names."""

        def count(pages: NamePages[T], different: dict[str, Any]) -> int:
            pages.load({place for key in different if (place := pages.index(key)) is not None})
            paged_count = sum(pages.has(key) for key in different)
            return pages.entries - paged_count + sum(value is not RemovedKey for value in different.values())

        return self._read(count)

    def first_names(self, count: int) -> list[str]:
        """Return the first `count` names, in order. Reads only the pages that have them."""

        def look(pages: NamePages[T], different: dict[str, Any]) -> list[str]:
            names: list[str] = []
            for place, page in enumerate(pages.pages):
                if len(names) >= count:
                    break
                pages.load([place])
                names += [name for name in page.table.column(0).to_pylist() if name not in different]
            names += [name for name, value in different.items() if value is not RemovedKey]
            return sorted(names)[:count]

        return self._read(look)

    def __iter__(self) -> Iterator[str]:
        for table, _ in self._tables():
            yield from table.column(0).to_pylist()

    def items(self) -> ItemsView[str, T]:
        return _Items(self)

    def values(self) -> ValuesView[T]:
        return _Values(self)

    def rows(self) -> Iterator[tuple[str, T]]:
        """Yield all names with their values, in order, page by page."""
        for table, page in self._tables():
            values = self._parts[0].layout.values(table) if page is None else page.values(table)
            yield from zip(table.column(0).to_pylist(), values, strict=True)

    def table(self, columns: Sequence[str]) -> pa.Table:
        """Return some columns of all pages with the changes, in the order of names. Values are not
        checked."""
        return pa.concat_tables([table for table, _ in self._tables(columns)])

    def _tables(self, columns: Sequence[str] | None = None) -> Iterator[tuple[pa.Table, NamePage[T] | None]]:
        def loaded(pages: NamePages[T], different: dict[str, Any]) -> tuple[NamePages[T], dict[str, Any]]:
            pages.load(range(len(pages.pages)))
            return pages, different

        pages, different = self._read(loaded)
        changes, new_rows = changes_in(pages.layout, different, columns)
        if not pages.pages:
            yield new_rows, None
        for page, table in pages.overlaid(changes, new_rows, columns):
            yield table, page

    def _read(self, look: Callable[[NamePages[T], dict[str, Any]], U]) -> U:
        """Return the result of `look` for the pages. Reads them again if expiry has replaced them. Raises
        NotFound."""
        try:
            return look(*self._parts)
        except NotFound:
            self._renew()
            return look(*self._parts)

    def _renew(self) -> None:
        """Switch to the version's present pages. Changes since the old pages stay, because nothing else
        changed."""
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
            self._parts = NamePages.of(pages.layout, fresh.items(), pages.source), different

    # Dumps

    def dumped(self) -> PagedMap[T] | None:
        """Return the mapping for a dump, or None if it has so few names that it needs no pages.

        If there are many separate changes, the changed pages are remade. Reads only the pages that are
        remade.
        """
        pages, different = self._parts
        if not pages.pages and len(different) <= PAGED_FROM:
            return None
        if len(different) <= changes_max(pages.entries):
            return self
        new_pages_of_map = self._read(
            lambda pages, different: merged(pages, changes_in(pages.layout, different))
        )
        if new_pages_of_map.entries < PAGED_FROM // 2:
            return None
        return PagedMap(new_pages_of_map, {}, self.version, self.field)

    def based(self) -> tuple[NamePages[T], dict[str, Any]]:
        """Return the parts on the newest pages that a dump has made of this mapping, with the differences
        from these pages."""
        pages, different = self._parts
        while pages.successor is not None:
            dumped_changes, newer = pages.successor
            if not different.keys() >= dumped_changes.keys():
                break  # it is older than the dumped mapping
            different = {
                key: value
                for key, value in different.items()
                if key not in dumped_changes or dumped_changes[key] is not value
            }
            pages = newer
        return pages, different


class _Items(ItemsView[str, T]):
    """Page by page, which is far faster than name by name."""

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
    """The next version of a mapping, while it is made. It reads pages only if a name is looked up."""

    __slots__ = ("_before", "_pages", "_was", "_different")

    def __init__(self, map_before: PagedMap[T]) -> None:
        self._before = map_before
        self._pages, self._was = map_before.based()
        self._different = dict(self._was)

    def _now(self) -> PagedMap[T]:
        return PagedMap(self._pages, self._different, self._before.version, self._before.field)

    def shared(self) -> PagedMap[T]:
        """Return the finished version. This object must not be used after that."""
        version = self._now()
        is_much = len(self._different) > FOLDED_FACTOR * changes_max(self._pages.entries)
        if (
            is_much
            and self._pages.is_read
            and not any(isinstance(f, UnreadValue) for f in self._different.values())
        ):
            return PagedMap(
                merged(self._pages, changes_in(self._pages.layout, self._different)),
                {},
                version.version,
                version.field,
            )
        return version

    def get(self, key: str) -> T | None:
        return self._now().get(key)

    def __setitem__(self, key: str, value: T | UnreadValue[T]) -> None:
        self._different[key] = value

    def discard(self, key: str) -> None:
        # A name of the version before is recorded as gone even if no page has it. A step of a transaction
        # builds on that version, whose newer pages may have the name (see `PagedMap._renew`).
        if key not in self._was and self._pages.is_known(key) and not self._pages.has(key):
            self._different.pop(key, None)
        else:
            self._different[key] = RemovedKey

    def take(self, key: str) -> T | UnreadValue[T] | None:
        """Remove a name, and return its value, or `UnreadValue` if the value is in an unread page."""
        value: Any
        if key in self._different:
            value = None if self._different[key] is RemovedKey else self._different[key]
        elif self._pages.is_known(key):
            value = self._pages.get(key)
        else:
            bare = PagedMap(self._pages, {}, self._before.version, self._before.field)
            value = UnreadValue(bare, key, _as_it_is)
        self.discard(key)
        return cast("T | UnreadValue[T] | None", value)


def _as_it_is(found: T) -> T:
    return found


def changes_max(names: int) -> int:
    """Return how many changes may be kept apart before the pages of this many names are remade."""
    return DIFFERENT_MIN + 2 * math.isqrt(names)


def resolved(different: Mapping[str, Any]) -> dict[str, Any]:
    """Return the differences with all `UnreadValue` values read. Reads all pages that this needs in one round."""
    late = [value for value in different.values() if isinstance(value, UnreadValue)]
    page_places: dict[int, tuple[NamePages[Any], set[int]]] = {}
    for late_value in late:
        late_value.note(page_places)
    for pages, places in page_places.values():
        try:
            pages.load(sorted(places))
        except NotFound:
            continue  # each is read again on its own
    return {
        key: value.value() if isinstance(value, UnreadValue) else value for key, value in different.items()
    }


def changes_in(
    layout: PageLayout[T], different: Mapping[str, Any], columns: Sequence[str] | None = None
) -> tuple[list[tuple[str, int | None]], pa.Table]:
    """Return the differences as sorted changes (see `changed`), and a table of their values, or of some
    columns."""
    values = resolved(different)
    keys = sorted(values)
    present_keys = [key for key in keys if values[key] is not RemovedKey]
    rows = {key: row for row, key in enumerate(present_keys)}
    new_rows = layout.table([(key, values[key]) for key in present_keys], columns)
    return [(key, rows.get(key)) for key in keys], new_rows


def merged(pages: NamePages[T], changes: tuple[list[tuple[str, int | None]], pa.Table]) -> NamePages[T]:
    """Return pages that have the changes. Unchanged pages are kept, and a page that became small joins the
    next."""
    different, new_rows = changes
    layout = pages.layout
    if not pages.pages:
        return NamePages(layout, new_pages(layout, new_rows), pages.source)
    changed_places = sorted({pages.index(key) or 0 for key, _ in different})
    pages.load(changed_places)
    result: list[NamePage[T]] = []
    small: list[pa.Table] = []
    at = 0
    for place, page in enumerate(pages.pages):
        first = at
        end = pages.pages[place + 1].first if place + 1 < len(pages.pages) else None
        while at < len(different) and (end is None or different[at][0] < end):
            at += 1
        if at == first and not small:
            result.append(page)
            continue
        pages.load([place])
        table = changed(page.table, different[first:at], new_rows)
        if not small and table.num_rows == page.entries and table.equals(page.table):
            result.append(page)
            continue
        table = pa.concat_tables([*small, table]).combine_chunks()
        if table.num_rows <= PAGE_NAMES // 4:
            small = [table]
            continue
        small = []
        result += new_pages(layout, table) if is_to_be_divided(table) else [NamePage(layout, None, table)]
    if small and small[0].num_rows:
        result.append(NamePage(layout, None, small[0]))
    return NamePages(layout, result, pages.source)
