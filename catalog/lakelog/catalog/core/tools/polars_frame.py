"""Rows as a lazy frame of Polars, which reads as little as the query needs.

Polars hands down the columns, a condition and a limit. The understood parts of the condition go into the
read, which skips files by them. Then Polars filters by the whole condition. So a condition that is not
understood, or has another meaning in Polars, only costs time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelog.catalog.core.schema.filter_polars import conjuncts
from lakelog.catalog.core.tools.narrowed import NarrowableRows
from lakelog.catalog.core.tools.packages import package

if TYPE_CHECKING:
    import polars as pl


def to_lazy_frame(rows: NarrowableRows) -> pl.LazyFrame:
    """Return the rows as a source of Polars. It may be read any number of times, also within a single
    query."""
    polars = package("polars", "to_polars", "polars")
    from polars.io.plugins import register_io_source

    def read(
        columns: list[str] | None, condition: pl.Expr | None, limit: int | None, _batch_rows: int | None
    ) -> Iterator[pl.DataFrame]:
        names = None
        if columns:
            condition_columns = [] if condition is None else condition.meta.root_names()
            names = list(dict.fromkeys([*columns, *condition_columns]))
        # The limit comes before the condition, because Polars gives both for head(n).filter(…) only.
        conditions = [] if condition is None or limit is not None else conjuncts(condition)
        for batch in rows._narrowed(names, conditions, limit):
            frame = polars.from_arrow(batch)
            if condition is not None:
                frame = frame.filter(condition)
            yield frame if names is None else frame.select(columns)

    schema = polars.from_arrow(pa.Table.from_batches([], rows.arrow_schema)).schema
    return register_io_source(read, schema=schema, is_pure=True)
