"""What the adapter can ask about the metadata tables of a table that was loaded."""

from lakelog.log.errors import Unsupported
from lakelog.spark.arrow_streams import in_streams, schema_json
from lakelog.spark.asking import Answer, Params
from lakelog.spark.handles import Handles


class OnMetadata:
    _handles: Handles

    def on_metadata_table(self, params: Params) -> Params:
        """Answer the columns of a metadata table. Unsupported for one that has no past, of a version of the past."""
        from lakelog.catalog.metadata_tables import METADATA_TABLES

        name = params["name"]
        table = self._handles.loaded(params)
        if params["past"] and not METADATA_TABLES[name].has_past:
            raise Unsupported(
                f"{table.name}.{name} tells what is so now: leave out VERSION AS OF and TIMESTAMP AS OF"
            )
        return {"name": name, "schema": schema_json(table.inspect(name).schema)}

    def on_read_metadata_table(self, params: Params) -> Answer:
        return in_streams(self._handles.loaded(params).inspect(params["name"], params["columns"]))
