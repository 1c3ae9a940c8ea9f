"""Single partitions of a table that was loaded."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.planning import partition_values
from lakelog.spark.arrow_streams import in_arrow
from lakelog.spark.open_catalog import OpenCatalog
from lakelog.spark.requests import partitions as ask
from lakelog.spark.requests.base import Done


def list_partitions(at: OpenCatalog, asked: ask.ListPartitions) -> tuple[Done, bytes]:
    found = at.loaded(asked).partitions(asked.where)
    columns = [_as_spark(column) for column in found.columns]
    table = pa.Table.from_arrays(columns, names=found.column_names)
    return Done(), in_arrow(table.schema, table.to_batches())


def keys(at: OpenCatalog, asked: ask.PartitionKeys) -> tuple[ask.Complete, bytes]:
    table = at.loaded(asked)
    fields = {field.id: field for spec in table.specs for field in spec.fields}
    complete = [spec.id for spec in table.specs if {field.id for field in spec.fields} >= set(asked.fields)]
    planned = table.plan(asked.predicate).combine_chunks()
    specs = pc.is_in(planned["spec"], value_set=pa.array(complete, pa.int32()))
    if not pc.all(specs, min_count=0).as_py():
        return ask.Complete(complete=False), b""
    values = [partition_values(planned, fields[id]) for id in asked.fields]
    names = [*map(str, range(len(values))), "path"]
    found = pa.Table.from_arrays([*values, planned["path"]], names=names)
    return ask.Complete(complete=True), in_arrow(found.schema, found.to_batches())


def add(at: OpenCatalog, asked: ask.AddPartitions) -> Done:
    at.writable(asked).add_partitions(asked.partitions, token=asked.token)
    return Done()


def drop(at: OpenCatalog, asked: ask.DropPartitions) -> Done:
    at.writable(asked).drop_partitions(asked.partitions, token=asked.token)
    return Done()


def truncate(at: OpenCatalog, asked: ask.TruncatePartitions) -> Done:
    at.writable(asked).truncate_partitions(asked.partitions, token=asked.token)
    return Done()


def rename(at: OpenCatalog, asked: ask.RenamePartition) -> Done:
    at.writable(asked).rename_partition(asked.old, asked.new, token=asked.token)
    return Done()


def _as_spark(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times as nanoseconds, as Spark has them."""
    return pc.multiply(column.cast(pa.int64()), 1000) if pa.types.is_time64(column.type) else column
