"""Pages: the stored form of a mapping of very many names. Each page is an immutable object for a range of
names.

A page is an Arrow stream with a row for each name, in the order of names. A snapshot's root has the first
name and the hash of each page. So a name is found in a single page, and unchanged pages are not written
again. Rule: a page is accepted only in the form that its root says, and its values only in the form that they
have in a root. It must not know when pages are written, or which changes are kept apart from them (see
`paged_map`). Pure.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar

import msgspec
import pyarrow as pa

from lakelog.catalog.core.files.arrow_lists import decode_table, encode_table
from lakelog.catalog.core.schema.stored_types import ready
from lakelog.log.decoding import said
from lakelog.log.errors import FormatError
from lakelog.log.grammar import Hash, Name, Number

T = TypeVar("T")

PAGE_NAMES = 1_000
PAGE_BYTES = 512 * 1024
"""A new page has about this many names, or bytes before it is encoded. It is divided when it has twice as
many."""

PAGES_AT_ONCE = 256
"""The number of pages that are read in one round."""


class StoredPage(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A root's reference to a page. It is stored as an array, because there may be thousands."""

    first: Name
    entries: Number
    version: Number
    sha256: Hash

    @property
    def name(self) -> str:
        return f"{self.version:020d}-{self.sha256[:16]}.arrow"


ready(StoredPage)


class PageSource(Protocol):
    """The source of a namespace's pages."""

    def read(self, names: Sequence[str]) -> list[bytes]:
        """Return pages by their names, in one round. Raises NotFound if a page has expired."""
        ...

    def state_at(self, version: int) -> Any:
        """Return the namespace's state at a version, read again. Raises NotFound if that version has
        expired."""
        ...


class PageLayout(Generic[T]):
    """The columns of a mapping's pages: `key`, and a column for each member of its values.

    A member that may be left out is NULL then. A member that is an object is a JSON string.
    """

    def __init__(self, key: str, key_type: Any, value: type[T]) -> None:
        self.key = key
        self._keys: type[list[str]] = list[key_type]
        self._values: Any = list[value]  # type: ignore[valid-type]
        ready(self._keys, self._values)
        members = msgspec.structs.fields(value)  # type: ignore[arg-type]
        self._members = [member.name for member in members]
        self._objects = {member.name for member in members if _is_object(member.type)}
        columns = [pa.field(key, pa.string(), nullable=False)]
        columns += [
            pa.field(member.name, _arrow_type(member.type), nullable=not member.required)
            for member in members
        ]
        self.schema = pa.schema(columns)

    def table(self, items: Sequence[tuple[str, T]], columns: Sequence[str] | None = None) -> pa.Table:
        """Return items as a table, in their order. Makes only some columns if they are given."""
        schema = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        return pa.table([self._column(items, field) for field in schema], schema=schema)

    def _column(self, items: Sequence[tuple[str, T]], field: pa.Field) -> pa.Array:
        if field.name == self.key:
            return pa.array([key for key, _ in items], field.type)
        values: list[Any] = [getattr(value, field.name) for _, value in items]
        if field.name in self._objects:
            values = [None if value is None else msgspec.json.encode(value).decode() for value in values]
        return pa.array(values, field.type)

    def values(self, table: pa.Table) -> list[T]:
        """Return the values of a table's rows. Raises FormatError if a value does not have the form that it
        has in a root."""
        columns: list[list[Any]] = []
        try:
            for name in self._members:
                column = table[name].to_pylist()
                if name in self._objects:
                    column = [None if text is None else msgspec.json.decode(text) for text in column]
                columns.append(column)
            rows = [dict(zip(self._members, row, strict=True)) for row in zip(*columns, strict=True)]
            result: list[T] = msgspec.convert(rows, self._values)
            return result
        except (msgspec.MsgspecError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
            raise FormatError(f"it has a value that is not of its form ({said(error)})") from None

    def check_columns(self, table: pa.Table) -> None:
        columns = (table.schema.names, table.schema.types) == (self.schema.names, self.schema.types)
        if not columns or any(
            column.null_count and not field.nullable
            for column, field in zip(table.columns, self.schema, strict=True)
        ):
            raise FormatError("it has other columns than a page of its kind")

    def check_keys(self, keys: pa.Array) -> None:
        try:
            names = msgspec.convert(keys.to_pylist(), self._keys)
        except msgspec.ValidationError as error:
            raise FormatError(f"it has a name that is not of its form ({said(error)})") from None
        if not all(name < next_name for name, next_name in pairwise(names)):
            raise FormatError("its names are not in their order, or one is there twice")


def _arrow_type(of: Any) -> pa.DataType:
    """Return the type of a column: integers for numbers, else strings."""
    number = isinstance(msgspec.inspect.type_info(of), msgspec.inspect.IntType)
    return pa.int64() if number else pa.string()


def _is_object(of: Any) -> bool:
    info = msgspec.inspect.type_info(of)
    types = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
    return any(isinstance(type, msgspec.inspect.StructType) for type in types)


class NamePage(Generic[T]):
    """A page. `stored` is the root's reference to it, or None before it was written."""

    __slots__ = ("layout", "first", "entries", "stored", "_table", "__weakref__")

    def __init__(
        self, layout: PageLayout[T], stored_page: StoredPage | None, table: pa.Table | None = None
    ) -> None:
        assert stored_page is not None or table is not None, "a page is stored or in memory"
        self.layout = layout
        self.stored = stored_page
        self._table = table
        self.first: str = keys_of(table)[0].as_py() if stored_page is None else stored_page.first
        self.entries: int = table.num_rows if stored_page is None else stored_page.entries  # type: ignore[union-attr]

    @property
    def is_read(self) -> bool:
        return self._table is not None

    @property
    def table(self) -> pa.Table:
        assert self._table is not None, "a page is read before it is used"
        return self._table

    @property
    def last(self) -> str:
        key: str = keys_of(self.table)[-1].as_py()
        return key

    def read(self, blob: bytes) -> None:
        """Take the content of the page. Raises FormatError if it is not the content in the root, or not a
        page."""
        stored_page = self.stored
        assert stored_page is not None, "only what is stored is read"
        if hashlib.sha256(blob).hexdigest() != stored_page.sha256:
            raise FormatError(
                f"the page {stored_page.name} does not have the content that its snapshot names: it was altered or "
                "truncated. Run lakelog fsck --repair, which writes it anew where the log allows that"
            )
        try:
            table = decode_table(blob).combine_chunks()
            self.layout.check_columns(table)
            table = table.cast(self.layout.schema)  # as ours, which may be joined with it
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


class NamePages(Generic[T]):
    """All pages of a mapping at some version, in the order of their names."""

    __slots__ = ("layout", "source", "pages", "entries", "_firsts", "successor")

    def __init__(
        self, layout: PageLayout[T], pages: Sequence[NamePage[T]], source: PageSource | None
    ) -> None:
        self.layout = layout
        self.source = source
        self.pages = tuple(pages)
        self.entries = sum(page.entries for page in pages)
        self._firsts = [page.first for page in pages]
        if not all(name < next_name for name, next_name in pairwise(self._firsts)):
            raise FormatError("the pages of a namespace are not in the order of their names")
        # The pages after some changes that were kept apart from them, once they are durable. Replaced by one
        # assignment, because threads share them.
        self.successor: tuple[dict[str, Any], NamePages[T]] | None = None

    @staticmethod
    def of(layout: PageLayout[T], items: Iterable[tuple[str, T]], source: PageSource | None) -> NamePages[T]:
        """Return new pages of these values."""
        table = layout.table(sorted(items, key=lambda item: item[0]))
        return NamePages(layout, new_pages(layout, table), source)

    @property
    def is_read(self) -> bool:
        return all(page.is_read for page in self.pages)

    def index(self, key: str) -> int | None:
        """Return the index of the page for the name, or None if the name precedes all pages."""
        place = bisect_right(self._firsts, key) - 1
        return None if place < 0 else place

    def is_known(self, key: str) -> bool:
        """Return whether the name can be looked up without a request."""
        place = self.index(key)
        return place is None or self.pages[place].is_read

    def get(self, key: str) -> T | None:
        """Return the value of a name. Makes a GET if its page was not read yet. Raises NotFound if the page
        has expired."""
        row = self._row(key)
        return None if row is None else row[0].values(row[1])[0]

    def has(self, key: str) -> bool:
        return self._row(key) is not None

    def _row(self, key: str) -> tuple[NamePage[T], pa.Table] | None:
        place = self.index(key)
        if place is None:
            return None
        self.load([place])
        row = self.pages[place].row(key)
        return None if row is None else (self.pages[place], row)

    def load(self, places: Iterable[int]) -> None:
        """Read the pages that are not in memory yet, many in a round. Raises FormatError or NotFound."""
        page_places = list(places)
        unread = [place for place in page_places if not self.pages[place].is_read]
        for start in range(0, len(unread), PAGES_AT_ONCE):
            batch = unread[start : start + PAGES_AT_ONCE]
            assert self.source is not None, "pages that are not in memory have a source"
            blobs = self.source.read([self.pages[place].stored.name for place in batch])  # type: ignore[union-attr]
            for place, blob in zip(batch, blobs, strict=True):
                self.pages[place].read(blob)
        for place in page_places:
            page = self.pages[place]
            if place + 1 < len(self.pages) and page.last >= self._firsts[place + 1]:
                raise page.wrong(FormatError("it has names of the page after it"))

    def overlaid(
        self, changes: Sequence[tuple[str, int | None]], added: pa.Table, columns: Sequence[str] | None
    ) -> Iterator[tuple[NamePage[T], pa.Table]]:
        """Yield each page with some columns of its names after sorted changes.

        Each change sets a name to a row of `added`, or removes it. Reads all pages. Names before the first
        page belong to it.
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


def new_pages(layout: PageLayout[T], table: pa.Table) -> list[NamePage[T]]:
    """Return pages of a table that is sorted by name."""
    if not table.num_rows:
        return []
    pieces = max(-(-table.num_rows // PAGE_NAMES), -(-table.nbytes // PAGE_BYTES))
    size = -(-table.num_rows // min(pieces, table.num_rows))
    starts = range(0, table.num_rows, size)
    return [NamePage(layout, None, table.slice(start, size).combine_chunks()) for start in starts]


def is_to_be_divided(table: pa.Table) -> bool:
    return table.num_rows > 1 and bool(table.num_rows > 2 * PAGE_NAMES or table.nbytes > 2 * PAGE_BYTES)


def keys_of(table: pa.Table) -> pa.Array:
    """Return the first column of a table. It has at most a single chunk."""
    column = table.column(0)
    return column.chunk(0) if column.num_chunks else pa.array([], pa.string())


def place_of(keys: pa.Array, key: str, first: int = 0) -> int:
    """Return the place of a name, or its place if it were added, from a place on."""
    return bisect_left(keys, key, lo=first, key=lambda scalar: scalar.as_py())


def changed(table: pa.Table, changes: Sequence[tuple[str, int | None]], added: pa.Table) -> pa.Table:
    """Return a page's table after sorted changes, or the same table if there are no changes."""
    if not changes:
        return table
    keys, parts, at = keys_of(table), [], 0
    first = end = 0  # rows of `added` that follow the rows in `parts`
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
