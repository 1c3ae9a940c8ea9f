"""Rows for every library that reads Arrow, and the forms of the most common libraries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.catalog.core.parquet.plain_arrow import unsliced_batch
from lakelog.catalog.core.tools.narrowed import NarrowableRows
from lakelog.catalog.core.tools.pandas_frame import to_frame
from lakelog.catalog.core.tools.polars_frame import to_lazy_frame
from lakelog.catalog.core.tools.torch_dataset import to_dataset
from lakelog.catalog.foreign_calls import explaining

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl


@explaining
class ArrowRows(ABC):
    """Rows that are ready to be read. Each call reads them again, from the same version, in the same order.

    Through `__arrow_c_stream__`, every reader of Arrow accepts them: `pyarrow.table(rows)`,
    `polars.DataFrame(rows)`, `duckdb.sql("SELECT * FROM rows")`, `Table.append(rows)`. They are read on
    demand, a few batches ahead.
    """

    @property
    @abstractmethod
    def arrow_schema(self) -> pa.Schema:
        """The columns and their types in Arrow."""

    @abstractmethod
    def _prepared(self) -> NarrowableRows:
        """Return the read of these rows."""

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a reader of record batches, which reads files lazily."""
        return self._prepared()._narrowed(None, (), None)

    def to_arrow(self, *, progress: Callable[[str], None] | None = None) -> pa.Table:
        """Return all rows in memory. `progress` is called with a text after each batch."""
        if progress is None:
            return self.to_reader().read_all()
        reader, batches, rows = self.to_reader(), [], 0
        for batch in reader:
            batches.append(batch)
            rows += batch.num_rows
            progress(f"{rows:,} rows were read")
        return pa.Table.from_batches(batches, reader.schema)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches, which are read on demand."""
        yield from self.to_reader()

    def __arrow_c_schema__(self) -> object:
        return self.arrow_schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as a stream of Arrow's C interface, cast to `requested_schema` if it is given.

        Nothing is read or planned before the stream's first batch, because some readers open streams only for
        their schema.
        """
        # DuckDB takes streams too.
        batches = (unsliced_batch(batch) for batch in self.to_batches())
        reader = pa.RecordBatchReader.from_batches(self.arrow_schema, batches)
        return reader.__arrow_c_stream__(requested_schema)

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """Return all rows as a data frame of pandas, by `pyarrow.Table.to_pandas` with these options.

        Without `types_mapper` and `integer_object_nulls`, integers of a type that has NULLs become pandas'
        nullable integers rather than floats, which have too few digits. `types_mapper=pandas.ArrowDtype`
        keeps all types.
        """
        return to_frame(self._prepared(), options)

    def to_polars(self) -> pl.LazyFrame:
        """Return the rows as a lazy frame of Polars, which hands down columns, conditions and limits to the
        read."""
        return to_lazy_frame(self._prepared())

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """Return the rows as a relation of a DuckDB connection, which hands down columns and conditions if it
        can.

        None means the default connection. Only one thread at a time may use a connection and its relations.
        """
        # It needs pyarrow.dataset, which takes long to import.
        from lakelog.catalog.core.tools.duckdb_relation import to_relation

        return to_relation(self._prepared(), connection)

    def to_torch(self, batch_size: int = 1024) -> Any:
        """Return the rows as an IterableDataset of PyTorch: a tensor for each column, in dicts of
        `batch_size` rows.

        Columns are numbers or booleans. A NULL is NaN in a column of floats, and an error in others. A
        DataLoader needs `batch_size=None` and no worker processes, because threads read files ahead.
        """
        return to_dataset(self._prepared(), batch_size)
