"""Pages: the stored form of a mapping of very many names, each page an immutable object of a range of them. Pure.

A page is an Arrow stream with one row for each name, in the order of names. A snapshot's root has, for each page, its
first name and its hash, so that a name is found by one page, and what was not changed is not written again. Rule: a
page is believed only in the form that its root says, and its values only in the form that they have in a root. It must
not know when pages are written, or which changes stand beside them (see `paged_map`).
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar

import msgspec
import pyarrow as pa

from lakelog.catalog.core.files import decode_table, encode_table
from lakelog.catalog.core.schema import Definition, ready
from lakelog.log.decoding import said
from lakelog.log.errors import FormatError
from lakelog.log.grammar import Hash, Name, Number

T = TypeVar("T")

PAGE_NAMES = 1_000
PAGE_BYTES = 512 * 1024
"""A page is made with about so many names, or bytes before it is encoded, and is divided when it has twice as many."""

PAGES_AT_ONCE = 256
"""Pages that are read in one round."""


class StoredPage(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """How a root names a page: an array, as there may be thousands."""

    first: Name
    entries: Number
    version: Number
    sha256: Hash

    @property
    def name(self) -> str:
        return f"{self.version:020d}-{self.sha256[:16]}.arrow"


ready(StoredPage)


class PageSource(Protocol):
    """Where the pages of one namespace are read."""

    def read(self, names: Sequence[str]) -> list[bytes]:
        """Return pages by their names, in one round. NotFound where one has expired."""
        ...

    def state_at(self, version: int) -> Any:
        """Return the namespace's state at a version, read anew. NotFound where that has expired."""
        ...


class Layout(Generic[T]):
    """The columns of the pages of one mapping: `key`, and one for each member of its values."""

    def __init__(self, key: str, key_type: Any, value: type[T]) -> None:
        self.key = key
        self._keys: type[list[str]] = list[key_type]
        self._values: Any = list[value]  # type: ignore[valid-type]
        ready(self._keys, self._values)
        self._types = {
            each.name: each.type
            for each in msgspec.structs.fields(value)  # type: ignore[arg-type]
        }
        columns = {key: pa.string()} | {name: _arrow_type(each) for name, each in self._types.items()}
        self.schema = pa.schema([pa.field(name, type, nullable=False) for name, type in columns.items()])

    def table(self, items: Sequence[tuple[str, T]]) -> pa.Table:
        """Return what is in that order as a table."""
        columns: list[list[Any]] = [[key for key, _ in items]]
        for name, type in self._types.items():
            values = [getattr(value, name) for _, value in items]
            columns.append(
                [msgspec.json.encode(each).decode() for each in values] if type is Definition else values
            )
        return pa.table(
            [pa.array(c, f.type) for c, f in zip(columns, self.schema, strict=True)], schema=self.schema
        )

    def values(self, table: pa.Table) -> list[T]:
        """Return the values of a table's rows. FormatError where one does not have the form that it has in a root."""
        columns: list[list[Any]] = []
        try:
            for name, type in self._types.items():
                column = table[name].to_pylist()
                columns.append(
                    [msgspec.json.decode(each) for each in column] if type is Definition else column
                )
            rows = [dict(zip(self._types, row, strict=True)) for row in zip(*columns, strict=True)]
            found: list[T] = msgspec.convert(rows, self._values)
            return found
        except (msgspec.MsgspecError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
            raise FormatError(f"it has a value that is not of its form ({said(error)})") from None

    def check_keys(self, keys: pa.Array) -> None:
        try:
            found = msgspec.convert(keys.to_pylist(), self._keys)
        except msgspec.ValidationError as error:
            raise FormatError(f"it has a name that is not of its form ({said(error)})") from None
        if not all(one < other for one, other in pairwise(found)):
            raise FormatError("its names are not in their order, or one is there twice")


def _arrow_type(of: Any) -> pa.DataType:
    """Return the type of a column: numbers as such, definitions as JSON, all else is text."""
    number = isinstance(msgspec.inspect.type_info(of), msgspec.inspect.IntType)
    return pa.int64() if number else pa.string()


class Page(Generic[T]):
    """One page. `stored` is how a root names it; None before it was written."""

    __slots__ = ("layout", "first", "entries", "stored", "_table", "__weakref__")

    def __init__(self, layout: Layout[T], stored: StoredPage | None, table: pa.Table | None = None) -> None:
        assert stored is not None or table is not None, "a page is stored or in memory"
        self.layout = layout
        self.stored = stored
        self._table = table
        self.first: str = keys_of(table)[0].as_py() if stored is None else stored.first
        self.entries: int = table.num_rows if stored is None and table is not None else stored.entries  # type: ignore[union-attr]

    @property
    def is_read(self) -> bool:
        return self._table is not None

    @property
    def table(self) -> pa.Table:
        assert self._table is not None, "a page is read before it is used"
        return self._table

    @property
    def last(self) -> str:
        found: str = keys_of(self.table)[-1].as_py()
        return found

    def read(self, blob: bytes) -> None:
        """Take the content of the page. FormatError for another one than the root names, or none of a page."""
        stored = self.stored
        assert stored is not None, "only what is stored is read"
        if hashlib.sha256(blob).hexdigest() != stored.sha256:
            raise FormatError(
                f"the page {stored.name} does not have the content that its snapshot names: it was altered or "
                "truncated. Run lakelog fsck --repair, which writes it anew where the log allows that"
            )
        try:
            table = decode_table(blob).combine_chunks()
            schema = self.layout.schema
            if (table.schema.names, table.schema.types) != (schema.names, schema.types) or any(
                column.null_count for column in table.columns
            ):
                raise FormatError("it has other columns than a page of its kind")
            table = table.cast(schema)  # as ours, which may be joined with it
            if table.num_rows != self.entries or not table.num_rows:
                raise FormatError(f"it has {table.num_rows:,} names, and its snapshot says {self.entries:,}")
            self.layout.check_keys(keys_of(table))
            if keys_of(table)[0].as_py() != self.first:
                raise FormatError("it begins with another name than its snapshot says")
        except FormatError as error:
            raise self.wrong(error) from error
        self._table = table

    def row(self, key: str) -> pa.Table | None:
        keys = keys_of(self.table)
        place = place_of(keys, key)
        if place == len(keys) or keys[place].as_py() != key:
            return None
        return self.table.slice(place, 1)

    def values(self, rows: pa.Table) -> list[T]:
        try:
            return self.layout.values(rows)
        except FormatError as error:
            raise self.wrong(error) from error

    def wrong(self, error: FormatError) -> FormatError:
        name = "that was not written yet" if self.stored is None else self.stored.name
        return FormatError(f"the page {name}: {error.message}: find out which client wrote it")

    def blob(self) -> bytes:
        return encode_table(self.table)


class Pages(Generic[T]):
    """All pages of one mapping at some version, in the order of their names."""

    __slots__ = ("layout", "source", "pages", "entries", "_firsts", "successor")

    def __init__(self, layout: Layout[T], pages: Sequence[Page[T]], source: PageSource | None) -> None:
        self.layout = layout
        self.source = source
        self.pages = tuple(pages)
        self.entries = sum(page.entries for page in pages)
        self._firsts = [page.first for page in pages]
        if not all(one < other for one, other in pairwise(self._firsts)):
            raise FormatError("the pages of a namespace are not in the order of their names")
        # What they became with some changes that stood beside them, once that is durable: replaced by one assignment,
        # as threads share them.
        self.successor: tuple[dict[str, Any], Pages[T]] | None = None

    @staticmethod
    def of(layout: Layout[T], items: Iterable[tuple[str, T]], source: PageSource | None) -> Pages[T]:
        """Return new pages of these values."""
        table = layout.table(sorted(items, key=lambda item: item[0]))
        return Pages(layout, new_pages(layout, table), source)

    @property
    def is_read(self) -> bool:
        return all(page.is_read for page in self.pages)

    def index(self, key: str) -> int | None:
        """Return which page has the name, if any has."""
        place = bisect_right(self._firsts, key) - 1
        return None if place < 0 else place

    def is_known(self, key: str) -> bool:
        """Return whether it takes no request to say what the name leads to."""
        place = self.index(key)
        return place is None or self.pages[place].is_read

    def get(self, key: str) -> T | None:
        """Return what a name leads to. One GET where its page was not read yet. NotFound where that has expired."""
        row = self._row(key)
        return None if row is None else row[0].values(row[1])[0]

    def has(self, key: str) -> bool:
        return self._row(key) is not None

    def _row(self, key: str) -> tuple[Page[T], pa.Table] | None:
        place = self.index(key)
        if place is None:
            return None
        self.load([place])
        row = self.pages[place].row(key)
        return None if row is None else (self.pages[place], row)

    def load(self, places: Iterable[int]) -> None:
        """Read pages that are not in memory yet, many in a round. FormatError, NotFound."""
        needed = list(places)
        wanted = [place for place in needed if not self.pages[place].is_read]
        for start in range(0, len(wanted), PAGES_AT_ONCE):
            some = wanted[start : start + PAGES_AT_ONCE]
            assert self.source is not None, "pages that are not in memory have a source"
            blobs = self.source.read([self.pages[place].stored.name for place in some])  # type: ignore[union-attr]
            for place, blob in zip(some, blobs, strict=True):
                self.pages[place].read(blob)
        for place in needed:
            page = self.pages[place]
            if place + 1 < len(self.pages) and page.last >= self._firsts[place + 1]:
                raise page.wrong(FormatError("it has names of the page after it"))

    def overlaid(
        self, changes: Sequence[tuple[str, int | None]], added: pa.Table, columns: Sequence[str] | None
    ) -> Iterator[tuple[Page[T], pa.Table]]:
        """Yield each page with some columns of what it has after sorted changes: a name leads to a row of `added`, or
        to nothing.

        Reads all pages. What comes before the first page is the first one's.
        """
        at = 0
        for start in range(0, len(self.pages), PAGES_AT_ONCE):
            places = range(start, min(start + PAGES_AT_ONCE, len(self.pages)))
            self.load(places)
            for place in places:
                end = len(changes)
                if place + 1 < len(self.pages):
                    end = bisect_left(changes, self._firsts[place + 1], lo=at, key=lambda change: change[0])
                page = self.pages[place]
                table = page.table if columns is None else page.table.select(columns)
                yield page, changed(table, changes[at:end], added)
                at = end


def new_pages(layout: Layout[T], table: pa.Table) -> list[Page[T]]:
    """Return pages of a table, in which names are in their order."""
    if not table.num_rows:
        return []
    pieces = max(-(-table.num_rows // PAGE_NAMES), -(-table.nbytes // PAGE_BYTES))
    size = -(-table.num_rows // min(pieces, table.num_rows))
    starts = range(0, table.num_rows, size)
    return [Page(layout, None, table.slice(start, size).combine_chunks()) for start in starts]


def is_to_be_divided(table: pa.Table) -> bool:
    return table.num_rows > 1 and bool(table.num_rows > 2 * PAGE_NAMES or table.nbytes > 2 * PAGE_BYTES)


def keys_of(table: pa.Table) -> pa.Array:
    """Return the first column of a table, which is in one piece."""
    column = table.column(0)
    return column.chunk(0) if column.num_chunks else pa.array([], pa.string())


def place_of(keys: pa.Array, key: str, first: int = 0) -> int:
    """Return where a name is, or would be, from a place on."""
    return bisect_left(keys, key, lo=first, key=lambda each: each.as_py())


def changed(table: pa.Table, changes: Sequence[tuple[str, int | None]], added: pa.Table) -> pa.Table:
    """Return a page's table after sorted changes: itself where there are none."""
    if not changes:
        return table
    keys, parts, at = keys_of(table), [], 0
    first = end = 0  # rows of `added` that follow what is in `parts`
    for key, row in changes:
        place = place_of(keys, key, at)
        if place > at:
            parts += [added.slice(first, end - first), table.slice(at, place - at)]
            first = end
        if row is not None:
            first, end = (row if first == end else first), row + 1
        at = place + (place < len(keys) and keys[place].as_py() == key)
    parts += [added.slice(first, end - first), table.slice(at)]
    return pa.concat_tables(parts).combine_chunks()
