"""Reading a version of a table into Arrow, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from lakelog.catalog.core.logs import PickledHead, TableHead, UnchangingValue, as_operation, observed, watched
from lakelog.catalog.core.parquet import ID_FIELDS, read_files, with_row_ids
from lakelog.catalog.core.planning import (
    Aggregate,
    AndCondition,
    Bound,
    aggregate,
    bind,
    decided,
    handed_down,
    terms,
)
from lakelog.catalog.core.schema import (
    Filter,
    Predicate,
    Schema,
    as_predicate,
    schema_to_arrow,
)
from lakelog.catalog.core.tools import (
    ArrowRows,
    HtmlTable,
    as_html,
    checked_count,
    last_rows,
    limited,
    sample_of_batches,
    sample_of_files,
)
from lakelog.catalog.foreign_calls import explaining
from lakelog.catalog.names import check_list
from lakelog.log.errors import InvalidInput

_MOST_ROWS = 2**63 - 1
"""Arrow cannot count further, and no table has more rows."""


@observed(lambda scan: scan._head.logs, lambda scan: scan._head.name, apart_from=("head", "sample", "tail"))
@explaining
class Scan(ArrowRows, UnchangingValue):
    """A prepared read. It makes no request to the store before a method is called."""

    def __init__(
        self,
        head: TableHead,
        columns: Sequence[str] | None,
        filter: Filter | None,
        limit: int | None,
        *,
        row_ids: bool = False,
    ) -> None:
        check_list(columns, "columns")
        if columns is not None and not columns:
            raise InvalidInput("the scan has no columns: name at least one, or leave columns out")
        if columns is not None and len({name.lower() for name in columns}) < len(columns):
            raise InvalidInput(f"the columns {', '.join(columns)} have one of them twice: leave one out")
        if limit is not None and (isinstance(limit, bool) or not hasattr(type(limit), "__index__")):
            raise InvalidInput(f"the limit {limit!r} is not a number of rows: give a whole number")
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
        """Return the data files that may hold rows of this scan, with a row for each file."""
        return self._head.plan_bound(self._predicate, limit=self._limit)

    def aggregate(self, wanted: Sequence[Aggregate], group_by: Sequence[str] = ()) -> pa.Table | None:
        """Return the result of `planning.aggregate` for the matching rows, regardless of the columns of the
        scan.

        Reads no rows. Returns None if it had to, or if a file has matching rows and others.
        """
        check_list(group_by, "columns")
        if self._limit is not None:
            return None
        column_names = {*group_by, *(aggregate_request.column for aggregate_request in wanted)}
        column_ids = {field.id for field in self._metadata.schema.fields if field.name in column_names}
        if self._predicate is not None:
            column_ids |= {term.column_id for term in terms(self._predicate)}
        chunks = self._head.chunks(column_ids, self._predicate)
        if self._predicate is not None:
            decided_chunks = decided(chunks, self._predicate, self._metadata.specs)
            if decided_chunks is None:
                return None
            chunks = decided_chunks
        return aggregate(chunks, self._metadata, wanted, group_by)

    def head(self, n: int = 5) -> pa.Table:
        """Return the first `n` rows, in the order of the scan. Reads no more files than that takes."""
        return self._narrowed(None, (), checked_count(n)).read_all()

    def tail(self, n: int = 5) -> pa.Table:
        """Return the last `n` rows, in the order of the scan, which need not be the newest.

        Reads only the last files. If the scan has a limit, reads all of its rows.
        """
        count = checked_count(n)
        if self._limit is not None:
            rows = self.to_arrow()
            return rows.slice(max(0, rows.num_rows - count))
        with as_operation(self._head.logs, "scan", self._head.name):
            plan = self._head.plan_bound(self._predicate)
            return last_rows(count, plan.num_rows, partial(self._file, plan), self.arrow_schema)

    def sample(self, n: int = 5, *, seed: int | None = None) -> pa.Table:
        """Return `n` rows by chance, each equally likely.

        With a `seed`, a version has the same rows each time.

        Reads only files that have any of these rows. With a filter or a limit, reads all rows of the scan.
        """
        count, schema, chance = checked_count(n), self.arrow_schema, np.random.default_rng(seed)
        if self._limit is not None or self._predicate is not None:
            return sample_of_batches(count, self.to_reader(), schema, chance)
        with as_operation(self._head.logs, "scan", self._head.name):
            plan = self._head.plan_bound(None)
            return sample_of_files(count, plan["rows"].to_pylist(), partial(self._file, plan), schema, chance)

    def _repr_html_(self) -> str:
        """Return the scan's HTML for a notebook. Makes no request."""
        facts = {"version": f"{self._head.version:,}", "filter": self._filter, "limit": self._limit}
        columns = [(field.name, field.type) for field in self.arrow_schema]
        table = HtmlTable(("column", "type in Arrow"), columns)
        return as_html(f"Scan of {self._head.name}", facts, [table])

    @property
    def arrow_schema(self) -> pa.Schema:
        whole = schema_to_arrow(self._metadata.schema)
        names = whole.names if self._columns is None else self._columns
        return pa.schema([*(whole.field(name) for name in names), *(ID_FIELDS if self._row_ids else ())])

    @property
    def _row_schema(self) -> Schema:
        """The columns of the table, and the row id columns if the scan has them."""
        schema = self._metadata.schema
        return with_row_ids(schema) if self._row_ids else schema

    def _narrowed(
        self, columns: Sequence[str] | None, conditions: Sequence[Predicate], limit: int | None
    ) -> pa.RecordBatchReader:
        """Return a part of the rows, for a library that filters them itself (see `tools.narrowed`)."""
        schema = self.arrow_schema
        result_schema = schema if columns is None else pa.schema([schema.field(name) for name in columns])
        predicate = self._and(conditions)
        limits = [row_limit for row_limit in (self._limit, limit) if row_limit is not None]
        least = min(limits, default=None)
        watch = watched(self._head.logs, "scan", self._head.name)
        with watch.working():
            plan = self._head.plan_bound(predicate, limit=least)
            batches = self._rows_of(plan, result_schema, predicate)
        return pa.RecordBatchReader.from_batches(result_schema, limited(watch.each(batches), least))

    def _rows_of(
        self, plan: pa.Table, chosen: pa.Schema, predicate: Bound | None
    ) -> Iterator[pa.RecordBatch]:
        """Return the matching rows of planned files."""
        tracked, ids = self._head.tracked, {field.name for field in ID_FIELDS} if self._row_ids else set()
        file_schema, batches = read_files(
            tracked.store,
            tracked.prefix,
            plan,
            self._metadata.schema,
            self._metadata.specs,
            columns=[name for name in chosen.names if name not in ids],
            predicate=predicate,
            open_url=tracked.log.replay.open_url,
            row_ids=not ids.isdisjoint(chosen.names),
        )
        return batches if file_schema == chosen else (batch.select(chosen.names) for batch in batches)

    def _file(self, plan: pa.Table, number: int) -> pa.Table:
        """Return the matching rows of a file."""
        schema = self.arrow_schema
        batches = self._rows_of(plan.slice(number, 1), schema, self._predicate)
        return pa.Table.from_batches(batches, schema)

    def _and(self, conditions: Sequence[Predicate]) -> Bound | None:
        """Return the scan's condition, with all of `conditions` that may be evaluated before its limit."""
        understood = [handed_down(condition, self._metadata.schema) for condition in conditions]
        parts = (
            [condition for condition in understood if condition is not None] if self._limit is None else []
        )
        if self._predicate is not None:
            parts = [self._predicate, *parts]
        return None if not parts else parts[0] if len(parts) == 1 else AndCondition(tuple(parts))

    def _prepared(self) -> Scan:
        return self


def _unpickled(
    head: PickledHead,
    columns: Sequence[str] | None,
    filter: Predicate | None,
    limit: int | None,
    row_ids: bool,
) -> Scan:
    return Scan(head.head(), columns, filter, limit, row_ids=row_ids)
