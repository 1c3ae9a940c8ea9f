"""Reading a version of a table into Arrow, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from lakelog.catalog.core.logs import PickledHead, TableHead, Unchanging, observed, watched
from lakelog.catalog.core.parquet import ID_FIELDS, read_files
from lakelog.catalog.core.planning import Aggregate, And, Bound, aggregate, bind, decided, handed_down, terms
from lakelog.catalog.core.schema import (
    AtomicType,
    Field,
    Filter,
    Predicate,
    Schema,
    as_predicate,
    schema_to_arrow,
)
from lakelog.catalog.core.tools import ArrowRows, as_html
from lakelog.log.errors import InvalidInput

_MOST_ROWS = 2**63 - 1
"""Arrow counts no further, and no table has more rows."""


@observed(lambda scan: scan._head.logs, lambda scan: scan._head.name, apart_from=("narrowed",))
class Scan(ArrowRows, Unchanging):
    """A prepared read: it makes no request to the store before a method is called."""

    def __init__(
        self,
        head: TableHead,
        columns: Sequence[str] | None,
        filter: Filter | None,
        limit: int | None,
        *,
        row_ids: bool = False,
    ) -> None:
        if columns is not None and not columns:
            raise InvalidInput("the scan has no columns: name at least one, or leave columns out")
        if columns is not None and len({name.lower() for name in columns}) < len(columns):
            raise InvalidInput(f"the columns {', '.join(columns)} have one of them twice: leave one out")
        if limit is not None and limit < 0:
            raise InvalidInput(f"the limit of {limit} rows is negative: use 0 or more")
        predicate = None if filter is None else as_predicate(filter)
        head.note_rows_read(predicate)
        metadata = head.metadata
        self._head = head
        self._filter = predicate
        self._metadata = metadata
        self._limit = None if limit is None else min(limit, _MOST_ROWS)
        self._row_ids = row_ids
        self._columns = None if columns is None else [metadata.schema.find((name,)).name for name in columns]
        self._predicate = None if predicate is None else bind(predicate, metadata.schema)

    def __reduce__(self) -> tuple[Any, ...]:
        head = PickledHead.of(self._head, "a read")
        return _unpickled, (head, self._columns, self._filter, self._limit, self._row_ids)

    def plan(self) -> pa.Table:
        """Return the data files that may hold rows of this scan, one row for each file."""
        return self._head.plan_bound(self._predicate, limit=self._limit)

    def aggregate(self, wanted: Sequence[Aggregate], group_by: Sequence[str] = ()) -> pa.Table | None:
        """Return the result of `planning.aggregate` for the matching rows, regardless of the columns of the scan.

        No rows are read: None where that would be needed, or where a file has matching rows and others.
        """
        if self._limit is not None:
            return None
        named = {*group_by, *(each.column for each in wanted)}
        looked_at = {field.id for field in self._metadata.schema.fields if field.name in named}
        if self._predicate is not None:
            looked_at |= {term.column_id for term in terms(self._predicate)}
        chunks = self._head.chunks(looked_at, self._predicate)
        if self._predicate is not None:
            matching = decided(chunks, self._predicate, self._metadata.specs)
            if matching is None:
                return None
            chunks = matching
        return aggregate(chunks, self._metadata, wanted, group_by)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what is to be read, without a request."""
        facts = {"version": f"{self._head.version:,}", "filter": self._filter, "limit": self._limit}
        columns = [(field.name, field.type) for field in self.arrow_schema]
        return as_html(f"Scan of {self._head.name}", facts, ("column", "type in Arrow"), columns)

    @property
    def arrow_schema(self) -> pa.Schema:
        whole = schema_to_arrow(self._metadata.schema)
        names = whole.names if self._columns is None else self._columns
        return pa.schema([*(whole.field(name) for name in names), *(ID_FIELDS if self._row_ids else ())])

    @property
    def row_schema(self) -> Schema:
        """The columns of the table, and those of row ids where the scan has them."""
        schema = self._metadata.schema
        if not self._row_ids:
            return schema
        ids = (
            Field(id=schema.last_id + count, name=field.name, type=AtomicType("long"))
            for count, field in enumerate(ID_FIELDS, start=1)
        )
        return msgspec.structs.replace(
            schema, fields=(*schema.fields, *ids), last_id=schema.last_id + len(ID_FIELDS)
        )

    def narrowed(
        self, columns: Sequence[str] | None, conditions: Sequence[Predicate], limit: int | None
    ) -> pa.RecordBatchReader:
        """Return a part of the rows, for a library that filters them itself: see `tools.narrowed`."""
        schema = self.arrow_schema
        chosen = schema if columns is None else pa.schema([schema.field(name) for name in columns])
        ids = {field.name for field in ID_FIELDS} if self._row_ids else set()
        predicate = self._and(conditions)
        limits = [each for each in (self._limit, limit) if each is not None]
        tracked = self._head.tracked
        reading = watched(self._head.logs, "scan", self._head.name)
        with reading.working():
            found, batches = read_files(
                tracked.store,
                tracked.prefix,
                self._head.plan_bound(predicate, limit=min(limits, default=None)),
                self._metadata.schema,
                self._metadata.specs,
                columns=[name for name in chosen.names if name not in ids],
                predicate=predicate,
                open_url=tracked.log.replay.open_url,
                row_ids=not ids.isdisjoint(chosen.names),
            )
        batches = reading.each(batches)
        if found != chosen:
            batches = (batch.select(chosen.names) for batch in batches)
        return pa.RecordBatchReader.from_batches(chosen, _limited(batches, min(limits, default=None)))

    def _and(self, conditions: Sequence[Predicate]) -> Bound | None:
        """Return the scan's condition and those of `conditions` that may be evaluated before its limit."""
        known = [handed_down(each, self._metadata.schema) for each in conditions]
        parts = [each for each in known if each is not None] if self._limit is None else []
        if self._predicate is not None:
            parts = [self._predicate, *parts]
        return None if not parts else parts[0] if len(parts) == 1 else And(tuple(parts))

    def _prepared(self) -> Scan:
        return self


def _limited(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    if limit is None:
        yield from batches
        return
    missing = limit
    for batch in batches:
        if missing <= 0:
            return
        yield batch.slice(0, missing)
        missing -= batch.num_rows


def _unpickled(
    head: PickledHead,
    columns: Sequence[str] | None,
    filter: Predicate | None,
    limit: int | None,
    row_ids: bool,
) -> Scan:
    return Scan(head.head(), columns, filter, limit, row_ids=row_ids)
