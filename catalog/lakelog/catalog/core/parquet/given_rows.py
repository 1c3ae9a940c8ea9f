"""Rows that users may give: Arrow data, and whatever exports it.

Opened as a single stream of plain Arrow. A pandas frame has an index apart from its columns. Rule: an index
with a name is a column, whatever its values are. Row numbers without a name are left out. pandas' own Arrow
stream decides it by the values.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from lakelog.catalog.core.parquet.plain_arrow import PlainStream, first_line, without_columns
from lakelog.catalog.core.schema.schema import dotted
from lakelog.log.errors import InvalidInput, LakelogError, Unsupported


class ArrowStream(Protocol):
    """Anything that exports rows by Arrow's C stream interface: pandas, Polars, DuckDB and others do."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


Ingestible: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader | ArrowStream


def stream_of(data: Ingestible) -> PlainStream:
    """Return `data` as a stream of plain Arrow. Raises InvalidInput if it is not Arrow data."""
    reader = _reader_of(data)
    try:
        _check_index(reader.schema)
        return PlainStream(reader)
    except LakelogError:
        # A result of DuckDB that stays open, as the error's traceback keeps it, would block its connection.
        if reader is not data:
            reader.close()
        raise


def reader_of(data: Ingestible) -> pa.RecordBatchReader:
    """Return all columns of `stream_of`."""
    return stream_of(data).reader()


def _reader_of(data: Ingestible) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(data, getattr(pandas, "DataFrame", ())):
        data = _of_frame(data, pandas)
    if isinstance(data, pa.Table):
        return data.to_reader()
    if not hasattr(data, "__arrow_c_stream__"):
        name = type(data).__name__
        for method in _TO_ROWS:
            if hasattr(data, method):
                raise InvalidInput(
                    f"cannot write a {name}, whose rows are not computed yet: give its .{method}()"
                )
        raise InvalidInput(
            f"cannot write a {name}: give a pyarrow Table, RecordBatch or RecordBatchReader, or an "
            "object with __arrow_c_stream__ (pandas and Polars data frames have it)"
        )
    _check_objects(data)
    try:
        return pa.RecordBatchReader.from_stream(data)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(data, error) from error


_TO_ROWS = ("to_reader", "to_table", "toArrow", "collect")
"""Methods that make Arrow data of a scanner, a data set, or a frame of Spark or lazy Polars, in this order.
"""


def _check_objects(data: Any) -> None:
    """Raise Unsupported for a column of Python objects, of which Polars exports the memory addresses."""
    schema = getattr(data, "schema", None)
    for name, type in schema.items() if isinstance(schema, Mapping) else ():
        if str(type) == "Object":
            raise Unsupported(
                f"the column {dotted((name,))} has Python's objects (Polars' type Object), which Arrow does not have: "
                "convert it to another type"
            )


_WITHOUT_ARROW = ("Int128", "UInt128", "VARIANT")
"""Types of Polars and DuckDB that they cannot export."""


def _unreadable(data: Any, error: BaseException) -> InvalidInput:
    schema = getattr(data, "schema", None)
    if isinstance(schema, Mapping):
        columns = list(schema.items())
    else:
        columns = list(zip(getattr(data, "columns", ()), getattr(data, "types", ()), strict=False))
    for name, kind in columns:
        if any(type_name in str(kind) for type_name in _WITHOUT_ARROW):
            return Unsupported(
                f"the column {dotted((name,))} has the type {kind}, which Arrow does not have: cast it to another, "
                "such as a decimal of 38 digits"
            )
    return InvalidInput(
        f"the rows of a {type(data).__name__} cannot be read as an Arrow stream ({first_line(error)}): give a table or "
        "a data frame whose columns have types of Arrow"
    )


def _of_frame(frame: Any, pandas: Any) -> pa.Table:
    names = list(frame.index.names)
    if len(names) == 1 and names[0] is None:
        if not pandas.api.types.is_integer_dtype(frame.index.dtype):
            raise InvalidInput(
                f"the index of the data frame ({frame.index.dtype}) has no name, so it is no column: name it by "
                "frame.rename_axis('…'), or leave it out by frame.reset_index(drop=True)"
            )
    elif None in names:
        raise InvalidInput(
            f"level {names.index(None)} of the data frame's index has no name, so it is no column: name it by "
            "frame.rename_axis([…]), or leave it out by frame.reset_index(drop=True)"
        )
    else:
        twice = [str(name) for name in names if name in frame.columns]
        if twice:
            raise InvalidInput(
                f"the data frame has {dotted((twice[0],))} as a column and in its index: rename one of them"
            )
        frame = frame.reset_index()
    if not len(frame.columns):
        return pa.Table.from_batches([without_columns(len(frame))])
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        reason = ", ".join(str(argument) for argument in error.args) or type(error).__name__
        raise InvalidInput(
            f"the data frame of pandas cannot become Arrow data ({reason.splitlines()[0]}): convert the column"
        ) from error


def _check_index(schema: pa.Schema) -> None:
    """Raise InvalidInput for Arrow data that says it has a column of its index, but has no such column."""
    try:
        pandas_metadata = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        index = pandas_metadata.get("index_columns", [])
    except (ValueError, AttributeError):
        return
    for index_column in index if isinstance(index, list) else []:
        name = index_column.get("name") if isinstance(index_column, dict) else None
        if name is not None and name not in schema.names:
            raise InvalidInput(
                f"the data was made from a data frame of pandas, and its index {dotted((str(name),))} is not in it: "
                "make it of frame.reset_index(), or leave the index out by replace_schema_metadata()"
            )
