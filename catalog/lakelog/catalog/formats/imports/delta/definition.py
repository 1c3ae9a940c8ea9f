"""The definition of a version of a Delta table: columns with ids, partitioning, names in files. Pure.

Rule: ids of partition fields and partitionings are computed from their columns' ids. So each import makes the
same ids.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from lakelog.catalog.core.schema import (
    FIRST_FIELD_ID,
    IDENTITY,
    AtomicType,
    PartitionField,
    PartitionSpec,
    Schema,
    dotted,
    result_type,
)
from lakelog.catalog.formats.imports.delta.actions import DeltaProtocol, TableMetadata
from lakelog.catalog.formats.imports.delta.columns import ColumnIds, DeltaColumns
from lakelog.catalog.formats.imports.delta.protocol import check_readable, mapping_of
from lakelog.log.errors import FormatError


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A column whose values are in the log, where its name is `physical`."""

    id: int
    field_id: int
    physical: str
    name: str
    type: AtomicType


@dataclass(frozen=True, slots=True)
class DeltaDefinition:
    """`field_ids` has Parquet's field ids by column id. It is empty if files name columns."""

    schema: Schema
    spec: PartitionSpec
    partition: tuple[PartitionColumn, ...]
    field_ids: Mapping[int, int]
    notes: tuple[str, ...]


def definition_of(
    protocol: DeltaProtocol, metadata: TableMetadata, ids: ColumnIds, url: str
) -> DeltaDefinition:
    """Return the definition of the table at `url` by its log.

    Raises Unsupported for features that lakelog lacks, and FormatError.
    """
    check_readable(protocol, metadata, url)
    columns = DeltaColumns(metadata, mapping_of(protocol, metadata, url), url)
    schema = ids.bound(columns.fields)
    partition = tuple(_partition_column(name, schema, ids, url) for name in metadata.partition_columns)
    return DeltaDefinition(
        schema=schema,
        spec=_spec(partition),
        partition=partition,
        field_ids=columns.by_id(schema, ids.names),
        notes=columns.notes,
    )


def _partition_column(name: str, schema: Schema, ids: ColumnIds, url: str) -> PartitionColumn:
    field = next((column for column in schema.fields if column.name == name), None)
    if field is None:
        raise FormatError(
            f"the Delta table {url} is partitioned by {dotted((name,))}, which is not a column of it"
        )
    type = result_type(IDENTITY, field.type)
    return PartitionColumn(field.id, FIRST_FIELD_ID + field.id, ids.names[field.id], field.name, type)


def _spec(partition: tuple[PartitionColumn, ...]) -> PartitionSpec:
    fields = tuple(
        PartitionField(
            id=column.field_id, source_id=column.id, name=column.name, transform=IDENTITY, result=column.type
        )
        for column in partition
    )
    column_ids = ",".join(str(column.id) for column in partition)
    # 30 bits, because the export for readers of Iceberg uses higher ids.
    return PartitionSpec(id=(zlib.crc32(column_ids.encode()) >> 2) | 1 if fields else 0, fields=fields)
