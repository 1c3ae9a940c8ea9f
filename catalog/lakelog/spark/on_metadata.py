"""What the adapter can ask about the metadata tables of a table that was loaded."""

from lakelog.log.errors import Unsupported
from lakelog.spark.arrow_streams import in_streams, schema_json
from lakelog.spark.asking import Answer, Params
from lakelog.spark.handles import Handles


class OnMetadata:
    _handles: Handles

    def on_metadata_table(self, params: Params) -> Params:
        """Answer the columns of a metadata table. Unsupported on a tag for one of the whole table."""
        from lakelog.catalog.audit import METADATA_TABLES

        name = params["name"]
        table = self._handles.loaded(params)
        if "ref" in params and not METADATA_TABLES[name].of_a_line:
            raise Unsupported(
                f"{name} tells of {table.name} with all its tags and branches: ask it of the table itself, without "
                f"{table.ref}"
            )
        return {"name": name, "schema": schema_json(table.inspect(name).schema)}

    def on_read_metadata_table(self, params: Params) -> Answer:
        return in_streams(self._handles.loaded(params).inspect(params["name"], params["columns"]))
