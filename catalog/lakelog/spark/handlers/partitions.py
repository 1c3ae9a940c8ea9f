"""Single partitions of a loaded table."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog import engine
from lakelog.spark.arrow_streams import files_in_arrow, in_arrow
from lakelog.spark.frames import Beside
from lakelog.spark.open_catalog import ServedCatalog
from lakelog.spark.requests import partitions as ask
from lakelog.spark.requests.base import EmptyAnswer


def list_partitions(at: ServedCatalog, asked: ask.ListPartitions) -> tuple[EmptyAnswer, bytes]:
    partitions = engine.partitions(at.loaded(asked), asked.where)
    columns = [_as_spark(column) for column in partitions.columns]
    table = pa.Table.from_arrays(columns, names=partitions.column_names)
    return EmptyAnswer(), in_arrow(table.schema, table.to_batches())


def add(at: ServedCatalog, asked: ask.AddPartitions) -> EmptyAnswer:
    engine.add_partitions(at.writable(asked), asked.partitions, token=asked.token)
    return EmptyAnswer()


def drop(at: ServedCatalog, asked: ask.DropPartitions) -> EmptyAnswer:
    engine.drop_partitions(at.writable(asked), asked.partitions, token=asked.token)
    return EmptyAnswer()


def truncate(at: ServedCatalog, asked: ask.TruncatePartitions) -> EmptyAnswer:
    engine.truncate_partitions(at.writable(asked), asked.partitions, token=asked.token)
    return EmptyAnswer()


def plan_rename(at: ServedCatalog, asked: ask.PlanRename) -> tuple[ask.RenamePlan, Beside]:
    files, columns = engine.plan_rename(at.loaded(asked), asked.old, asked.new)
    return ask.RenamePlan(columns=columns), files_in_arrow(files)


def rename(at: ServedCatalog, asked: ask.RenamePartition) -> EmptyAnswer:
    engine.rename_partition(
        at.writable(asked), asked.old, asked.new, write=asked.write, files=asked.files, token=asked.token
    )
    return EmptyAnswer()


def _as_spark(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times as nanoseconds, as in Spark."""
    return pc.multiply(column.cast(pa.int64()), 1000) if pa.types.is_time64(column.type) else column
