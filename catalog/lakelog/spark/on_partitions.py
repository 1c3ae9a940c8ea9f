"""What the adapter can ask about single partitions of a table that was loaded: thin over `lakelog.catalog.Table`."""

from typing import TYPE_CHECKING

from lakelog.spark.asking import Answer, Params, in_arrow, token_of
from lakelog.spark.handles import Handles

if TYPE_CHECKING:
    import pyarrow as pa


class OnPartitions:
    _handles: Handles

    def on_partitions(self, params: Params) -> Answer:
        """Answer partitions as an Arrow stream of Spark's representation, with the columns files, rows and bytes."""
        import pyarrow as pa

        found = self._handles.loaded(params).partitions(params["where"])
        columns = [_as_spark(column) for column in found.columns]
        table = pa.Table.from_arrays(columns, names=found.column_names)
        return in_arrow(table.schema, table.to_batches())

    def on_partition_keys(self, params: Params) -> Answer:
        """Answer the values of partition fields, by their ids, of each file that `plan` gives, and its path.

        They are `complete` where all files are partitioned by all of these fields; else nothing else is answered.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        from lakelog.catalog.planning import partition_values

        table = self._handles.loaded(params)
        wanted = params["fields"]
        fields = {field.id: field for spec in table.specs for field in spec.fields}
        complete = [spec.id for spec in table.specs if {field.id for field in spec.fields} >= set(wanted)]
        planned = table.plan(params["predicate"]).combine_chunks()
        specs = pc.is_in(planned["spec"], value_set=pa.array(complete, pa.int32()))
        if not pc.all(specs, min_count=0).as_py():
            return {"complete": False}, b""
        values = [partition_values(planned, fields[id]) for id in wanted]
        keys = pa.Table.from_arrays([*values, planned["path"]], names=[*map(str, range(len(wanted))), "path"])
        _, body = in_arrow(keys.schema, keys.to_batches())
        return {"complete": True}, body

    def on_add_partitions(self, params: Params) -> Params:
        self._handles.writable(params).add_partitions(params["partitions"], token=token_of(params))
        return {}

    def on_drop_partitions(self, params: Params) -> Params:
        self._handles.writable(params).drop_partitions(params["partitions"], token=token_of(params))
        return {}

    def on_truncate_partitions(self, params: Params) -> Params:
        self._handles.writable(params).truncate_partitions(params["partitions"], token=token_of(params))
        return {}

    def on_rename_partition(self, params: Params) -> Params:
        self._handles.writable(params).rename_partition(params["old"], params["new"], token=token_of(params))
        return {}


def _as_spark(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Return times as nanoseconds, as Spark has them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.multiply(column.cast(pa.int64()), 1000) if pa.types.is_time64(column.type) else column
