"""Rows as a dataset of PyTorch: batches of tensors, which are read while a model trains on earlier
batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.schema.schema import dotted
from lakelog.catalog.core.tools.narrowed import NarrowableRows
from lakelog.catalog.core.tools.packages import package
from lakelog.log.errors import InvalidInput, Unsupported


def to_dataset(rows: NarrowableRows, batch_size: int) -> Any:
    """Return an IterableDataset. See `ArrowRows.to_torch`. Raises InvalidInput for a column that no tensor
    can hold."""
    torch = package("torch", "to_torch", "torch")
    data = package("torch.utils.data", "to_torch", "torch")
    if batch_size < 1:
        raise InvalidInput(f"a batch of {batch_size} rows is none: use 1 or more")
    for field in rows.arrow_schema:
        if not _is_number(field.type):
            raise InvalidInput(
                f"the column {dotted((field.name,))} is {field.type}, which is not a tensor's type: choose columns of "
                "numbers or booleans by scan(columns=…)"
            )

    class LakeDataset(data.IterableDataset):  # type: ignore[name-defined, misc]
        """The rows of a version of a table, in their order."""

        def __iter__(self) -> Iterator[dict[str, Any]]:
            if data.get_worker_info() is not None:
                raise Unsupported(
                    "a table cannot be read by the worker processes of a DataLoader: use num_workers=0, as files are "
                    "read ahead by threads"
                )
            for batch in _of_size(rows._narrowed(None, (), None), batch_size):
                yield {name: torch.from_numpy(_values(batch, name)) for name in batch.schema.names}

    return LakeDataset()


def _is_number(type: pa.DataType) -> bool:
    return bool(pa.types.is_boolean(type) or pa.types.is_integer(type) or pa.types.is_floating(type))


def _of_size(batches: pa.RecordBatchReader, size: int) -> Iterator[pa.Table]:
    """Yield the rows in tables of `size` rows each. The last table has the remaining rows."""
    pending_rows = batches.schema.empty_table()
    for batch in batches:
        pending_rows = pa.concat_tables([pending_rows, pa.Table.from_batches([batch])])
        while pending_rows.num_rows >= size:
            yield pending_rows.slice(0, size)
            pending_rows = pending_rows.slice(size)
    if pending_rows.num_rows:
        yield pending_rows


def _values(batch: pa.Table, name: str) -> Any:
    column = batch[name]
    if column.null_count:
        if not pa.types.is_floating(column.type):
            raise InvalidInput(
                f"the column {dotted((name,))} has NULLs, which are not {column.type}: choose rows without them by "
                f'scan(filter="{dotted((name,))} IS NOT NULL")'
            )
        column = pc.fill_null(column, float("nan"))
    # A copy, because tensors may be written to, and Arrow's memory must not be.
    return np.array(column.to_numpy())
