"""Rows as a relation of DuckDB, which reads as little as the query needs.

DuckDB scans a dataset of pyarrow by columns and a condition, and relies on the condition. It means its own
order, in which NaN is the largest number, and compares strings by their bytes. pyarrow would evaluate the
same condition differently. So the condition is evaluated here, in DuckDB's meaning. It also skips data in the
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lakelog.catalog.core.parquet.plain_arrow import unsliced_batch
from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.planning.bound import Bound, OpaqueCondition, unknown_parts
from lakelog.catalog.core.planning.foreign import by_bytes
from lakelog.catalog.core.planning.row_filter import evaluate
from lakelog.catalog.core.schema.filter_arrow import columns_of, from_arrow_expression
from lakelog.catalog.core.tools.narrowed import NarrowableRows
from lakelog.catalog.core.tools.packages import package
from lakelog.log.errors import LakelogError

if TYPE_CHECKING:
    import duckdb


def to_relation(
    rows: NarrowableRows, connection: duckdb.DuckDBPyConnection | None
) -> duckdb.DuckDBPyRelation:
    """Return the rows as a relation, which may be read any number of times, also within a single query."""
    module = package("duckdb", "to_duckdb", "duckdb")
    on = module.default_connection() if connection is None else connection
    relation: duckdb.DuckDBPyRelation = on.from_arrow(_Dataset(rows))
    return relation


class _Dataset(ds.Dataset):  # type: ignore[misc]
    """The parts of a dataset that DuckDB uses: its schema, and scans of some columns by a condition."""

    def __init__(self, rows: NarrowableRows) -> None:
        self._rows = rows

    @property
    def schema(self) -> pa.Schema:
        return self._rows.arrow_schema

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **_: Any
    ) -> _Scanner:
        return _Scanner(self._rows, list(columns or self._rows.arrow_schema.names), filter)


class _Scanner:
    def __init__(self, rows: NarrowableRows, columns: list[str], filter: pc.Expression | None) -> None:
        self._rows = rows
        self._columns = columns
        self._filter = filter
        self.projected_schema = pa.schema([rows.arrow_schema.field(name) for name in columns])

    def to_reader(self) -> pa.RecordBatchReader:
        batches = (unsliced_batch(batch) for batch in self._batches())
        return pa.RecordBatchReader.from_batches(self.projected_schema, batches)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        if self._filter is None:
            yield from self._rows._narrowed(self._columns, (), None)
            return
        names = list(dict.fromkeys([*self._columns, *columns_of(self._filter)]))
        try:
            condition = from_arrow_expression(self._filter, nan_is_largest=True)
            condition_tree: Bound = bind(condition, by_bytes(self._rows._row_schema), case_sensitive=True)
        except LakelogError:
            condition_tree = OpaqueCondition("what DuckDB means pyarrow to evaluate")
        if unknown_parts(condition_tree):
            for batch in self._rows._narrowed(names, (), None):
                yield from (
                    pa.Table.from_batches([batch]).filter(self._filter).select(self._columns).to_batches()
                )
            return
        for batch in self._rows._narrowed(names, [condition], None):
            yield batch.filter(evaluate(condition_tree, batch)).select(self._columns)
