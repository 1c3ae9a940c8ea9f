"""Columns, partitions and orders in Iceberg's JSON. Pure.

Column ids are field ids, and partition fields have Iceberg's ids and transforms already. Source: the
specification of Iceberg's table format, version 3, appendix C.
"""

from __future__ import annotations

import base64
from collections.abc import Collection
from typing import Any
from zlib import crc32

from lakelog.catalog.core.schema import (
    ICEBERG_TYPES,
    AtomicType,
    Field,
    ListType,
    MapType,
    Metadata,
    PartitionField,
    PartitionSpec,
    Schema,
    SortOrder,
    StructType,
    Type,
    TypedValue,
    is_in_iceberg,
    moment_text,
    parse_literal,
    widened,
)
from lakelog.log.errors import InvalidInput


def schema_json(schema: Schema, schema_id: int) -> dict[str, Any]:
    return {
        "type": "struct",
        "schema-id": schema_id,
        "fields": [field_json(field) for field in schema.fields],
    }


def field_json(field: Field) -> dict[str, Any]:
    json_field: dict[str, Any] = {
        "id": field.id,
        "name": field.name,
        "required": not field.nullable,
        "type": type_json(field.type),
    }
    if field.comment is not None:
        json_field["doc"] = field.comment
    if field.default is not None:
        if field.default.exists is not None:
            json_field["initial-default"] = _value(widened(field.default.exists, field.type))
        current = None if field.default.current is None else _literal(field.default.current, field.type)
        if current is not None:
            json_field["write-default"] = _value(current)
    return json_field


def type_json(type: Type) -> Any:
    match type:
        case StructType():
            return {"type": "struct", "fields": [field_json(field) for field in type.fields]}
        case ListType():
            return {
                "type": "list",
                "element-id": type.element_id,
                "element-required": not type.element_nullable,
                "element": type_json(type.element),
            }
        case MapType():
            return {
                "type": "map",
                "key-id": type.key_id,
                "key": type_json(type.key),
                "value-id": type.value_id,
                "value-required": not type.value_nullable,
                "value": type_json(type.value),
            }
        case AtomicType():
            if type.family == "decimal":
                return f"decimal({type.precision}, {type.scale})"
            return ICEBERG_TYPES[type.family]


def _literal(sql: str, type: Type) -> TypedValue | None:
    """Return the value of a default for new rows. None for NULL, and if Iceberg cannot have it."""
    try:
        value = parse_literal(sql, type)
    except InvalidInput:
        return None
    return value if value is not None and is_in_iceberg(value) else None


def _value(value: TypedValue) -> Any:
    """Return a value in Iceberg's JSON."""
    match AtomicType(value.type).family:
        case "date" | "time" | "timestamp_ntz":
            # Microseconds are always written, as in Iceberg's own files.
            return moment_text(value).replace(" ", "T")
        case "timestamp":
            return moment_text(value).replace(" ", "T") + "+00:00"
        case "binary":
            return base64.b64decode(str(value.value)).hex()
        case _:
            return value.value


def exported_specs(metadata: Metadata, columns: Schema) -> dict[int, PartitionSpec]:
    """Return the partitionings for readers, only with fields of `columns`, by ids of the table's own.

    These are the columns of the exported version, whatever version the files have. Readers look up all
    partitionings in them, and some readers fail on a field without a column. Fields by which some readers
    prune wrongly are left out too. Fewer fields are still correct because partitions only help to find files.
    """
    specs = {}
    for spec in metadata.specs:
        fields = tuple(
            field for field in spec.fields if columns.has_id(field.source_id) and not _is_misread(field)
        )
        specs[spec.id] = _shown(spec, fields)
    return specs


def _shown(spec: PartitionSpec, remaining_fields: tuple[PartitionField, ...]) -> PartitionSpec:
    if remaining_fields == spec.fields:
        return spec
    numbers = ",".join(str(number) for number in (spec.id, *(field.id for field in remaining_fields)))
    # Any id that the table itself does not give; the same fields have the same id.
    return PartitionSpec(id=(1 << 30) + crc32(numbers.encode()) % (1 << 29), fields=remaining_fields)


def early_fields(spec: PartitionSpec, columns: Schema) -> tuple[PartitionField, ...]:
    """Return the fields of a partitioning for which DuckDB misreads values below zero.

    DuckDB rounds days and months of timestamps in a search towards the year 1970, rather than down. So it
    misses rows of the days and months before.
    """
    return tuple(
        field
        for field in spec.fields
        if field.transform.name in ("day", "month")
        and isinstance(type := columns.field_by_id(field.source_id).type, AtomicType)
        and type.family in ("timestamp", "timestamp_ntz")
    )


def without_fields(spec: PartitionSpec, fields: Collection[PartitionField]) -> PartitionSpec:
    """Return a partitioning for readers without `fields`, for files that readers would miss by these."""
    return _shown(spec, tuple(field for field in spec.fields if field not in fields))


def _is_misread(field: PartitionField) -> bool:
    """Return whether some readers miss rows by the values of a field. The values are in the column's order.

    Pyiceberg reads doubles of manifests as floats. For DuckDB, NaN is the greatest number, outside of all
    bounds. The lowest numbers of a type have no multiple below them. Depending on reader and type, the result
    wraps around, is lower, or is an error.
    """
    families = {"identity": ("float", "double"), "truncate": ("byte", "short", "integer", "long", "decimal")}
    return field.result.family in families.get(field.transform.name, ())


def spec_json(spec: PartitionSpec) -> dict[str, Any]:
    return {
        "spec-id": spec.id,
        "fields": [
            {
                "source-id": field.source_id,
                "field-id": field.id,
                "name": field.name,
                "transform": str(field.transform),
            }
            for field in spec.fields
        ],
    }


def order_json(order: SortOrder, order_id: int) -> dict[str, Any]:
    return {
        "order-id": order_id,
        "fields": [
            {
                "transform": str(field.transform),
                "source-id": field.source_id,
                "direction": field.direction,
                "null-order": f"nulls-{field.nulls}",
            }
            for field in order.fields
        ],
    }
