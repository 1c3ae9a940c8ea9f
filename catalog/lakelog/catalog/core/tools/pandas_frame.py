"""Rows as a data frame of pandas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.catalog.core.tools.narrowed import NarrowableRows
from lakelog.catalog.core.tools.packages import package

if TYPE_CHECKING:
    import pandas as pd

_NULLABLE = {
    pa.int8(): "Int8Dtype", pa.int16(): "Int16Dtype", pa.int32(): "Int32Dtype", pa.int64(): "Int64Dtype",
}  # fmt: skip


def to_frame(rows: NarrowableRows, options: Mapping[str, Any]) -> pd.DataFrame:
    """Return all rows. See `ArrowRows.to_pandas`."""
    pandas = package("pandas", "to_pandas", "pandas")
    table = rows._narrowed(None, (), None).read_all()
    pandas_options = dict(options)
    if not {"types_mapper", "integer_object_nulls"} & pandas_options.keys():
        nulls = {column.type for column in table.columns if column.null_count and column.type in _NULLABLE}
        types = {type: getattr(pandas, _NULLABLE[type])() for type in nulls}
        pandas_options["types_mapper"] = types.get
    frame: pd.DataFrame = table.to_pandas(**pandas_options)
    return frame
