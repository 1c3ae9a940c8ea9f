"""What the adapter can ask when it compacts a table: which files to write anew, and to commit what it has written."""

from lakelog.spark.asking import Answer, Params, in_arrow, token_of
from lakelog.spark.handles import PLANNED_COLUMNS, Handles


class OnCompaction:
    _handles: Handles

    def on_plan_compaction(self, params: Params) -> Answer:
        """Answer the next groups, and their files: those of each group follow one another."""
        import msgspec

        from lakelog.catalog.state import Goal

        files, groups = self._handles.loaded(params).plan_compaction(
            msgspec.convert(params["goal"], Goal),
            params["predicate"],
            until=params["until"],
            limit_bytes=params["limit_bytes"],
        )
        files = files.select([name for name in PLANNED_COLUMNS if name in files.column_names])
        _, body = in_arrow(files.schema, files.to_batches())
        return {"groups": msgspec.to_builtins(groups)}, body

    def on_commit_compaction(self, params: Params) -> Params:
        """Answer which groups were left out, as others have changed their files."""
        import msgspec

        from lakelog.catalog.writes import Rewritten
        from lakelog.log import WriteRef

        groups = msgspec.convert(params["groups"], list[Rewritten], str_keys=True)
        _, lost = self._handles.writable(params).commit_compaction(
            msgspec.convert(params["write"], WriteRef), groups, token=token_of(params)
        )
        return {"lost": lost}
