"""Rows as a lazy frame of Polars, which reads as little as the query needs.

Polars hands down the columns, a condition and a limit. What is understood of the condition goes into the read,
where it skips files; then Polars filters by the whole of it. So a condition that is not understood, or means
something else to Polars, costs time and no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelog.catalog.core.schema import conjuncts
from lakelog.catalog.core.tools.narrowed import Narrowed
from lakelog.catalog.core.tools.packages import package

if TYPE_CHECKING:
    import polars as pl


def to_lazy_frame(rows: Narrowed) -> pl.LazyFrame:
    """Return the rows as a source of Polars. It may be read any number of times, also within one query."""
    polars = package("polars", "to_polars", "lakelog[polars]")
    from polars.io.plugins import register_io_source

    def read(
        columns: list[str] | None, condition: pl.Expr | None, limit: int | None, _batch_rows: int | None
    ) -> Iterator[pl.DataFrame]:
        needed = None
        if columns:
            tested = [] if condition is None else condition.meta.root_names()
            needed = list(dict.fromkeys([*columns, *tested]))
        # The limit comes before the condition: Polars gives both for head(n).filter(…) only.
        conditions = [] if condition is None or limit is not None else conjuncts(condition)
        for batch in rows.narrowed(needed, conditions, limit):
            frame = polars.from_arrow(batch)
            if condition is not None:
                frame = frame.filter(condition)
            yield frame if needed is None else frame.select(columns)

    schema = polars.from_arrow(pa.Table.from_batches([], rows.arrow_schema)).schema
    return register_io_source(read, schema=schema, is_pure=True)
