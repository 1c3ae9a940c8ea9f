"""What a version of a Delta table is, apart from its files: columns with ids, partitioning, names in files. Pure.

Rule: ids of partition fields and partitionings are made of those of their columns, so that each import makes the same.
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
from lakelog.catalog.formats.imports.delta.actions import Protocol, TableMetadata
from lakelog.catalog.formats.imports.delta.columns import ColumnIds, Columns
from lakelog.catalog.formats.imports.delta.protocol import check_readable, mapping_of
from lakelog.log.errors import FormatError


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A column whose values stand in the log: `physical` is its name there."""

    id: int
    field_id: int
    physical: str
    name: str
    type: AtomicType


@dataclass(frozen=True, slots=True)
class Definition:
    """`field_ids` are Parquet's by the id of a column: empty where files name columns."""

    schema: Schema
    spec: PartitionSpec
    partition: tuple[PartitionColumn, ...]
    field_ids: Mapping[int, int]
    notes: tuple[str, ...]


def definition_of(protocol: Protocol, metadata: TableMetadata, ids: ColumnIds, url: str) -> Definition:
    """Return what the log says of the table at `url`. Unsupported for what lakelog does not do, FormatError."""
    check_readable(protocol, metadata, url)
    columns = Columns(metadata, mapping_of(protocol, metadata, url), url)
    schema = ids.bound(columns.fields)
    partition = tuple(_partition_column(name, schema, ids, url) for name in metadata.partition_columns)
    return Definition(
        schema=schema,
        spec=_spec(partition),
        partition=partition,
        field_ids=columns.by_id(schema, ids.names),
        notes=columns.notes,
    )


def _partition_column(name: str, schema: Schema, ids: ColumnIds, url: str) -> PartitionColumn:
    field = next((each for each in schema.fields if each.name == name), None)
    if field is None:
        raise FormatError(
            f"the Delta table {url} is partitioned by {dotted((name,))}, which is not a column of it"
        )
    type = result_type(IDENTITY, field.type)
    return PartitionColumn(field.id, FIRST_FIELD_ID + field.id, ids.names[field.id], field.name, type)


def _spec(partition: tuple[PartitionColumn, ...]) -> PartitionSpec:
    fields = tuple(
        PartitionField(
            id=each.field_id, source_id=each.id, name=each.name, transform=IDENTITY, result=each.type
        )
        for each in partition
    )
    listed = ",".join(str(each.id) for each in partition)
    # Of 30 bits: the export for readers of Iceberg has ids of its own above.
    return PartitionSpec(id=(zlib.crc32(listed.encode()) >> 2) | 1 if fields else 0, fields=fields)
