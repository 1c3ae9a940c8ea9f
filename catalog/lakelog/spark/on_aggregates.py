"""What the adapter can ask about aggregates of a table that was loaded: thin over `lakelog.catalog.scan.Scan`."""

from lakelog.spark.asking import Answer, Params, in_arrow
from lakelog.spark.handles import Handles


class OnAggregates:
    _handles: Handles

    def on_aggregate(self, params: Params) -> Answer:
        """Answer the values of `group_by`, and then the aggregates, if they are `known` without a look at the files."""
        from lakelog.catalog.planning import aggregate_from

        wanted = [aggregate_from(each) for each in params["aggregates"]]
        found = self._handles.loaded(params).scan().aggregate(wanted, params["group_by"])
        if found is None:
            return {"known": False}, b""
        _, body = in_arrow(found.schema, found.to_batches())
        return {"known": True}, body
