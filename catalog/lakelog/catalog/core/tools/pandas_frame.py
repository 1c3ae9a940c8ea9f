"""Rows as a data frame of pandas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.catalog.core.tools.narrowed import Narrowed
from lakelog.catalog.core.tools.packages import package

if TYPE_CHECKING:
    import pandas as pd

_NULLABLE = {
    pa.int8(): "Int8Dtype", pa.int16(): "Int16Dtype", pa.int32(): "Int32Dtype", pa.int64(): "Int64Dtype",
}  # fmt: skip


def to_frame(rows: Narrowed, options: Mapping[str, Any]) -> pd.DataFrame:
    """Return all rows; see `ArrowRows.to_pandas`."""
    pandas = package("pandas", "to_pandas", "lakelog[pandas]")
    table = rows.narrowed(None, (), None).read_all()
    chosen = dict(options)
    if not {"types_mapper", "integer_object_nulls"} & chosen.keys():
        nulls = {column.type for column in table.columns if column.null_count and column.type in _NULLABLE}
        types = {type: getattr(pandas, _NULLABLE[type])() for type in nulls}
        chosen["types_mapper"] = types.get
    frame: pd.DataFrame = table.to_pandas(**chosen)
    return frame
