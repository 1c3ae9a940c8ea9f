"""Conversion of schemas to and from Arrow.

Python users see the logical schema: the table's names, with an Arrow type for each type. Data files have the
physical schema: physical names, and integers for intervals, as Spark writes them. Both carry
`PARQUET:field_id`, so that other readers of the files find columns by id. A variant is the struct of its two
binaries, `metadata` and `value`, which is also its form in Parquet. A year-month interval is its number of
months.
"""

from __future__ import annotations

import pyarrow as pa

from lakelog.catalog.core.schema.literals import VALUE_TYPES
from lakelog.catalog.core.schema.schema import DEPTH_LIMIT, Schema, assign_ids, dotted, too_deep
from lakelog.catalog.core.schema.types import (
    COLLATED,
    ELEMENT,
    KEY,
    VALUE,
    AtomicType,
    Field,
    ListType,
    MapType,
    StructType,
    Type,
)
from lakelog.log.errors import Unsupported

FIELD_ID = b"PARQUET:field_id"
COMMENT = b"comment"

VARIANT = pa.struct(
    [pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)]
)

# The log's own value types, except for types that users see in another form.
_ATOMIC: dict[str, pa.DataType] = {
    **VALUE_TYPES,
    "interval day-time": pa.duration("us"),
    "variant": VARIANT,
    COLLATED: pa.string(),
}

_FROM_ARROW: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("boolean", ("is_boolean",)),
    ("byte", ("is_int8",)),
    ("short", ("is_int16", "is_uint8")),
    ("integer", ("is_int32", "is_uint16")),
    ("long", ("is_int64", "is_uint32")),
    ("decimal(20,0)", ("is_uint64",)),
    ("float", ("is_float16", "is_float32")),
    ("double", ("is_float64",)),
    ("string", ("is_string", "is_large_string", "is_string_view")),
    ("binary", ("is_binary", "is_large_binary", "is_binary_view", "is_fixed_size_binary")),
    ("date", ("is_date",)),
    ("time(6)", ("is_time",)),
    ("interval day to second", ("is_duration",)),
)


def schema_to_arrow(schema: Schema, *, physical: bool = False) -> pa.Schema:
    """Return the logical or the physical Arrow schema of `schema`."""
    return pa.schema([field_to_arrow(field, physical=physical) for field in schema.fields])


def field_to_arrow(field: Field, *, physical: bool = False) -> pa.Field:
    name = field.physical if physical else field.name
    return identified_field(name, type_to_arrow(field.type, physical=physical), field.nullable, field.id)


def type_to_arrow(type: Type, *, physical: bool = False) -> pa.DataType:
    match type:
        case StructType():
            return pa.struct([field_to_arrow(field, physical=physical) for field in type.fields])
        case ListType():
            element = type_to_arrow(type.element, physical=physical)
            return pa.list_(identified_field(ELEMENT, element, type.element_nullable, type.element_id))
        case MapType():
            key, value = (
                type_to_arrow(type.key, physical=physical),
                type_to_arrow(type.value, physical=physical),
            )
            return pa.map_(
                identified_field(KEY, key, False, type.key_id),
                identified_field(VALUE, value, type.value_nullable, type.value_id),
            )
        case AtomicType():
            if type.family == "decimal":
                return pa.decimal128(type.precision, type.scale)
            if physical and type.family == "interval day-time":
                return pa.int64()
            return _ATOMIC[type.family]


def schema_from_arrow(schema: pa.Schema, last_id: int = 0) -> Schema:
    """Return the schema that holds data of the Arrow `schema`, with fresh ids after `last_id`.

    A field's metadata `comment` becomes the column's comment. Raises Unsupported, which names the column, if
    a type cannot be stored.
    """
    return assign_ids([_field_from_arrow(field, ()) for field in schema], last_id)


def type_from_arrow(type: pa.DataType, path: tuple[str, ...]) -> Type:
    """Return the type, without ids, that holds Arrow's `type`. Error messages name the column at `path`."""
    if len(path) > DEPTH_LIMIT + 1:
        raise too_deep(path)
    types = pa.types
    if isinstance(type, pa.BaseExtensionType):
        return type_from_arrow(storage_of(type, path), path)
    if types.is_dictionary(type) or types.is_run_end_encoded(type):
        return type_from_arrow(type.value_type, path)
    if types.is_struct(type):
        if type == VARIANT:
            return AtomicType("variant")
        return StructType(tuple(_field_from_arrow(type.field(i), path) for i in range(type.num_fields)))
    if types.is_map(type):
        return MapType(
            key=type_from_arrow(type.key_type, (*path, KEY)),
            value=type_from_arrow(type.item_type, (*path, VALUE)),
            value_nullable=type.item_field.nullable,
        )
    if is_list(type):
        element = type_from_arrow(type.value_type, (*path, ELEMENT))
        return ListType(element=element, element_nullable=type.value_field.nullable)
    if types.is_timestamp(type):
        return AtomicType("timestamp_ntz" if type.tz is None else "timestamp")
    if types.is_decimal(type) and 0 <= type.scale <= type.precision <= 38:
        return AtomicType(f"decimal({type.precision},{type.scale})")
    for name, tests in _FROM_ARROW:
        if any(getattr(types, test)(type) for test in tests):
            return AtomicType(name)
    raise Unsupported(
        f"the column {dotted(path)} has Arrow's type {type}, which cannot be stored: cast it to another"
    )


_MEANINGLESS = {
    "arrow.opaque": "only what wrote it knows what its bytes mean",
    "pandas.interval": "its storage does not say which ends belong to it",
    "pandas.period": "its storage is a number whose unit gets lost",
}


def storage_of(type: pa.BaseExtensionType, path: tuple[str, ...]) -> pa.DataType:
    """Return the storage type of an Arrow extension type. Raises Unsupported if the storage loses its
    meaning."""
    why = _MEANINGLESS.get(type.extension_name)
    if why is not None:
        raise Unsupported(
            f"the column {dotted(path)} has Arrow's type {type}, which cannot be stored, as {why}: cast it to another"
        )
    return pa.bool_() if type.extension_name == "arrow.bool8" else type.storage_type


def is_list(type: pa.DataType) -> bool:
    """Return whether `type` is a kind of Arrow list."""
    tests = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
    return any(getattr(pa.types, test)(type) for test in tests)


def _field_from_arrow(field: pa.Field, parent: tuple[str, ...]) -> Field:
    comment = (field.metadata or {}).get(COMMENT)
    return Field(
        name=field.name,
        type=type_from_arrow(field.type, (*parent, field.name)),
        nullable=field.nullable,
        comment=None if comment is None else comment.decode("utf-8", "replace"),
    )


def identified_field(name: str, type: pa.DataType, nullable: bool, id: int) -> pa.Field:
    """Return a field with its id in the metadata, which readers of other formats use."""
    return pa.field(name, type, nullable=nullable, metadata={FIELD_ID: str(id).encode()})
