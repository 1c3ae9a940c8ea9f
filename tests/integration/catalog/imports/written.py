"""Iceberg tables that pyiceberg writes into a folder, each commit as a metadata file beside the last one."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO, _pyarrow_to_schema_without_ids
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import update_table_metadata


class Folder(NoopCatalog):
    """Keeps one table in a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__("folder")
        self.folder = folder
        self.io = PyArrowFileIO()
        self.number = 0

    def create(
        self,
        schema: Schema | pa.Schema,
        spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        properties: dict[str, str] | None = None,
    ) -> Table:
        if isinstance(schema, pa.Schema):
            schema = assign_fresh_schema_ids(_pyarrow_to_schema_without_ids(schema))
        metadata = new_table_metadata(
            schema, spec, UNSORTED_SORT_ORDER, str(self.folder), {"format-version": "2", **(properties or {})}
        )
        return self.table(metadata, self.put(metadata))

    def table(self, metadata: TableMetadata, location: str) -> Table:
        return Table(("t",), metadata, location, self.io, self)

    def put(self, metadata: TableMetadata) -> str:
        location = f"{self.folder}/metadata/{self.number:05d}-{uuid.uuid4()}.metadata.json"
        self.number += 1
        ToOutputFile.table_metadata(metadata, self.io.new_output(location))
        return location

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        for requirement in requirements:
            requirement.validate(table.metadata)
        metadata = update_table_metadata(table.metadata, updates, enforce_validation=True)
        return CommitTableResponse.model_validate(
            {"metadata": metadata, "metadata-location": self.put(metadata)}
        )
