"""Reading a version of a table into Arrow, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakelog.catalog.logs import TableHead
from lakelog.catalog.parquet import read_files
from lakelog.catalog.planning import Aggregate, aggregate, bind, decided
from lakelog.catalog.schema import Filter, as_predicate
from lakelog.log.errors import InvalidInput


class Scan:
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
        head.note_rows_read(filter)
        metadata = head.metadata
        self._head = head
        self._metadata = metadata
        self._limit = limit
        self._row_ids = row_ids
        self._columns = None if columns is None else [metadata.schema.find((name,)).name for name in columns]
        self._predicate = None if filter is None else bind(as_predicate(filter), metadata.schema)

    def plan(self) -> pa.Table:
        """Return the data files that may hold rows of this scan, one row for each file."""
        return self._head.plan_bound(self._predicate, limit=self._limit)

    def aggregate(self, wanted: Sequence[Aggregate], group_by: Sequence[str] = ()) -> pa.Table | None:
        """Return the result of `planning.aggregate` for the matching rows, regardless of the columns of the scan.

        No rows are read: None where that would be needed, or where a file has matching rows and others.
        """
        chunks = self._head.chunks()
        if self._limit is not None:
            return None
        if self._predicate is not None:
            matching = decided(chunks, self._predicate, self._metadata.specs)
            if matching is None:
                return None
            chunks = matching
        return aggregate(chunks, self._metadata, wanted, group_by)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a reader of record batches, which reads files lazily."""
        tracked = self._head.tracked
        schema, batches = read_files(
            tracked.store,
            tracked.prefix,
            self.plan(),
            self._metadata.schema,
            self._metadata.specs,
            columns=self._columns,
            predicate=self._predicate,
            open_url=tracked.log.replay.open_url,
            row_ids=self._row_ids,
        )
        return pa.RecordBatchReader.from_batches(schema, self._limited(batches))

    def to_arrow(self) -> pa.Table:
        return self.to_reader().read_all()

    def _limited(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if self._limit is None:
            yield from batches
            return
        missing = self._limit
        for batch in batches:
            if missing <= 0:
                return
            yield batch.slice(0, missing)
            missing -= batch.num_rows
