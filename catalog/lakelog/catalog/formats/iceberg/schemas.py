"""Columns, partitions and orders in Iceberg's JSON. Pure.

Column ids are field ids, and partition fields have Iceberg's ids and transforms already. Source: the specification of
Iceberg's table format, version 3, appendix C.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Collection
from decimal import Decimal
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
    parse_literal,
)
from lakelog.log.errors import InvalidInput


def schema_json(schema: Schema, schema_id: int) -> dict[str, Any]:
    return {"type": "struct", "schema-id": schema_id, "fields": [_field(field) for field in schema.fields]}


def _field(field: Field) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": field.id,
        "name": field.name,
        "required": not field.nullable,
        "type": type_json(field.type),
    }
    if field.comment is not None:
        made["doc"] = field.comment
    if field.default is not None:
        for member, sql in (
            ("initial-default", field.default.exists),
            ("write-default", field.default.current),
        ):
            value = None if sql is None else _literal(sql, field.type)
            if value is not None:
                made[member] = value
    return made


def type_json(type: Type) -> Any:
    match type:
        case StructType():
            return {"type": "struct", "fields": [_field(field) for field in type.fields]}
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


def _literal(sql: str, type: Type) -> Any:
    """Return the value of an SQL literal as Iceberg's JSON has it; None for NULL, and for another expression."""
    try:
        value = parse_literal(sql, type)
    except InvalidInput:
        return None
    match value:
        case dt.datetime():
            # Microseconds are always written, as in Iceberg's own files.
            return value.isoformat(timespec="microseconds")
        case dt.time():
            return value.isoformat(timespec="microseconds")
        case dt.date():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case bytes():
            return value.hex()
        case float():
            return value if math.isfinite(value) else None
        case _:
            return value


def exported_specs(metadata: Metadata, columns: Schema) -> dict[int, PartitionSpec]:
    """Return, by the ids of a table's partitionings, how readers are shown them: with fields of `columns` alone.

    These are the columns that the exported table has by now, whatever version the files are of: readers look all
    partitionings up there, and some end over a field without a column. Fields that some readers prune by wrongly are
    left out too. Partitions only help to find files: fewer fields are right as well.
    """
    found = {}
    for spec in metadata.specs:
        left = tuple(
            field for field in spec.fields if columns.has_id(field.source_id) and not _is_misread(field)
        )
        found[spec.id] = _shown(spec, left)
    return found


def _shown(spec: PartitionSpec, left: tuple[PartitionField, ...]) -> PartitionSpec:
    if left == spec.fields:
        return spec
    said = ",".join(str(number) for number in (spec.id, *(field.id for field in left)))
    # Any id that the table itself does not give, the same for the same fields.
    return PartitionSpec(id=(1 << 30) + crc32(said.encode()) % (1 << 29), fields=left)


def early_fields(spec: PartitionSpec, columns: Schema) -> tuple[PartitionField, ...]:
    """Return the fields of a partitioning whose values DuckDB misreads where they are less than zero.

    It rounds days and months of timestamps towards the year 1970 in what is sought, rather than down, and so misses
    rows of the days and months before.
    """
    return tuple(
        field
        for field in spec.fields
        if field.transform.name in ("day", "month")
        and isinstance(type := columns.field_by_id(field.source_id).type, AtomicType)
        and type.family in ("timestamp", "timestamp_ntz")
    )


def without_fields(spec: PartitionSpec, fields: Collection[PartitionField]) -> PartitionSpec:
    """Return how files of a partitioning are shown that are to be found without some of its fields."""
    return _shown(spec, tuple(field for field in spec.fields if field not in fields))


def _is_misread(field: PartitionField) -> bool:
    """Return whether some readers miss rows by the values of a field, which is in the order of its column in any case.

    pyiceberg reads doubles of manifests as floats. NaN is the greatest number for DuckDB, and outside of all bounds.
    The lowest numbers of a type have no multiple below them: it wraps around, is lower, or an error, by reader and
    type.
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
