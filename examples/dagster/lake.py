"""An I/O manager: the rows of an asset are a lakelog table of its name, and each run's are a version of it.

An asset returns anything that is an Arrow stream (a table of Arrow, pandas by Arrow, Polars, DuckDB), and receives
an Arrow table. A partition of an asset is the rows with its key in one column, which the metadata `partition_column`
names: a run replaces these and no others, by one commit. Runs of different partitions do not disturb each other.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from dagster import ConfigurableIOManager, InputContext, OutputContext

from lakelog.catalog import Catalog, NoSuchNamespace, NoSuchTable, Table, TableExists, col


class LakeIOManager(ConfigurableIOManager):
    """Keeps assets in the namespace `namespace` of a warehouse."""

    warehouse: str
    namespace: str

    def handle_output(self, context: OutputContext, obj: Any) -> None:
        rows = pa.table(obj)
        catalog = Catalog(self.warehouse)
        name = f"{self.namespace}.{context.asset_key.path[-1]}"
        try:
            table = catalog.load_table(name)
        except (NoSuchTable, NoSuchNamespace):
            table = self._created(catalog, name, rows.schema)
        column = (context.definition_metadata or {}).get("partition_column")
        if context.has_asset_partitions and column:
            table = table.overwrite(rows, filter=col(column) == context.partition_key)
        else:
            table = table.overwrite(rows)
        context.add_output_metadata(
            {"table": name, "lakelog_version": table.version, "dagster/row_count": table.row_count}
        )

    def load_input(self, context: InputContext) -> pa.Table:
        return Catalog(self.warehouse).load_table(f"{self.namespace}.{context.asset_key.path[-1]}").to_arrow()

    def _created(self, catalog: Catalog, name: str, schema: pa.Schema) -> Table:
        catalog.create_namespace(self.namespace, if_not_exists=True)
        try:
            return catalog.create_table(name, schema)
        except TableExists:
            # Another run of the same asset was first.
            return catalog.load_table(name)
