"""Single partitions of a table that was loaded."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.spark.arrow_streams import files_in_arrow, in_arrow
from lakelog.spark.frames import Beside
from lakelog.spark.open_catalog import OpenCatalog
from lakelog.spark.requests import partitions as ask
from lakelog.spark.requests.base import Done


def list_partitions(at: OpenCatalog, asked: ask.ListPartitions) -> tuple[Done, bytes]:
    found = at.loaded(asked).partitions(asked.where)
    columns = [_as_spark(column) for column in found.columns]
    table = pa.Table.from_arrays(columns, names=found.column_names)
    return Done(), in_arrow(table.schema, table.to_batches())


def add(at: OpenCatalog, asked: ask.AddPartitions) -> Done:
    at.writable(asked).add_partitions(asked.partitions, token=asked.token)
    return Done()


def drop(at: OpenCatalog, asked: ask.DropPartitions) -> Done:
    at.writable(asked).drop_partitions(asked.partitions, token=asked.token)
    return Done()


def truncate(at: OpenCatalog, asked: ask.TruncatePartitions) -> Done:
    at.writable(asked).truncate_partitions(asked.partitions, token=asked.token)
    return Done()


def plan_rename(at: OpenCatalog, asked: ask.PlanRename) -> tuple[ask.RenamePlan, Beside]:
    files, columns = at.loaded(asked).plan_rename(asked.old, asked.new)
    return ask.RenamePlan(columns=columns), files_in_arrow(files)


def rename(at: OpenCatalog, asked: ask.RenamePartition) -> Done:
    at.writable(asked).rename_partition(
        asked.old, asked.new, write=asked.write, files=asked.files, token=asked.token
    )
    return Done()


def _as_spark(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times as nanoseconds, as Spark has them."""
    return pc.multiply(column.cast(pa.int64()), 1000) if pa.types.is_time64(column.type) else column
