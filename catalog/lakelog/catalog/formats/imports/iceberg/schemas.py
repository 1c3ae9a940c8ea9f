"""Iceberg's JSON of columns and partitionings, as lakelog's. Pure.

Field ids are column ids, and partition fields have Iceberg's ids and transforms. Features that lakelog lacks
are refused by name. Source: the specification of Iceberg's table format, version 3, appendix C.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar

import msgspec

from lakelog.catalog.core.schema import (
    FIRST_FIELD_ID,
    AtomicType,
    Default,
    Field,
    ListType,
    MapType,
    PartitionField,
    PartitionSpec,
    Schema,
    StructType,
    Transform,
    Type,
    TypedValue,
    dotted,
    literal_of,
    result_type,
    value_of,
)
from lakelog.log.errors import FormatError, InvalidInput, Unsupported

_TYPES = {
    "boolean": "boolean",
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "time": "time(6)",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_FIXED = re.compile(r"fixed\[\d+\]")

Json = Mapping[str, Any]
T = TypeVar("T")


class DeclaredParts(dict[int, T]):
    """The definitions of a source by id. A definition that lakelog cannot have is refused if it is used, else
    left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self._refused: dict[int, Unsupported] = {}

    def add(self, id: int, make: Callable[[], T]) -> None:
        try:
            self[id] = make()
        except Unsupported as error:
            self._refused[id] = error

    def check_used(self, id: int | None) -> None:
        """Raise Unsupported for a definition that cannot be used."""
        if id in self._refused:
            raise self._refused[id]


def schema_from(document: Json, last_id: int) -> Schema:
    """Return the columns of a schema. Raises Unsupported, with the column, for a type that lakelog does not
    have.
    """
    fields = tuple(_field(json_field, ()) for json_field in document["fields"])
    ids = [field.id for _, field in Schema(fields=fields, last_id=last_id).walk()]
    if min(ids, default=1) < 1 or len(set(ids)) < len(ids):
        raise Unsupported(
            "the source has columns of one id, or of an id below 1, as tables of early releases of Iceberg have: copy "
            "its rows by CREATE TABLE … AS SELECT"
        )
    return Schema(fields=fields, last_id=max(last_id, *ids) if ids else last_id)


def _field(said: Json, parent: tuple[str, ...]) -> Field:
    path = (*parent, said["name"])
    type = _type(said["type"], path)
    exists, current = (
        _default(said.get(member), type, path) for member in ("initial-default", "write-default")
    )
    return Field(
        id=said["id"],
        name=said["name"],
        type=type,
        nullable=not said["required"],
        comment=said.get("doc"),
        default=None
        if exists is None and current is None
        else Default(current=None if current is None else literal_of(current), exists=exists),
    )


def _type(said: Any, path: tuple[str, ...]) -> Type:
    if isinstance(said, str):
        if match := _DECIMAL.fullmatch(said):
            return AtomicType(f"decimal({int(match[1])},{int(match[2])})")
        if _FIXED.fullmatch(said):
            return AtomicType("binary")
        if said in _TYPES:
            return AtomicType(_TYPES[said])
    else:
        match said["type"]:
            case "struct":
                return StructType(tuple(_field(json_field, path) for json_field in said["fields"]))
            case "list":
                return ListType(
                    element_id=said["element-id"],
                    element=_type(said["element"], (*path, "element")),
                    element_nullable=not said["element-required"],
                )
            case "map":
                return MapType(
                    key_id=said["key-id"],
                    key=_type(said["key"], (*path, "key")),
                    value_id=said["value-id"],
                    value=_type(said["value"], (*path, "value")),
                    value_nullable=not said["value-required"],
                )
    raise Unsupported(
        f"the column {dotted(path)} is {said if isinstance(said, str) else said['type']}, a type that lakelog does not "
        "have: copy the rows by CREATE TABLE … AS SELECT, with a CAST of that column"
    )


def _default(said: Any, type: Type, path: tuple[str, ...]) -> TypedValue | None:
    if said is None:
        return None
    try:
        value = value_of(_python_value(said, type), type)
    except (ValueError, ArithmeticError):
        value = None
    if value is not None:
        return value
    raise Unsupported(
        f"the column {dotted(path)} has the default {said!r}, which lakelog cannot have: drop the default"
    )


def _python_value(said: Any, type: Type) -> Any:
    """Return a value in Iceberg's JSON as Python has it. Raises ValueError or ArithmeticError for a wrong form."""
    family = type.family if isinstance(type, AtomicType) else ""
    if not isinstance(said, str):
        return said
    match family:
        case "date":
            return date.fromisoformat(said)
        case "time":
            return time.fromisoformat(said)
        case "timestamp" | "timestamp_ntz":
            return datetime.fromisoformat(said)
        case "decimal":
            return Decimal(said)
        case "binary":
            return bytes.fromhex(said)
        case _:
            return said


# Partitionings


def specs_from(document: Json, columns: Sequence[Schema]) -> DeclaredParts[PartitionSpec]:
    """Return the partitionings of a table by their ids. `columns` are all schemas that the table is known to
    have had.

    Fields without values (void) are left out, and fields of columns that no schema has. Partitions only help
    to find files.
    """
    json_specs = document.get("partition-specs") or [
        {"spec-id": 0, "fields": document.get("partition-spec", [])}
    ]
    default_id = document.get("default-spec-id", 0)
    specs: DeclaredParts[PartitionSpec] = DeclaredParts()
    fields_by_id: dict[int, PartitionField] = {}
    # The current partitioning comes first because it is used, whatever is wrong with others.
    for json_spec in sorted(json_specs, key=lambda json_spec: json_spec["spec-id"] != default_id):
        specs.add(json_spec["spec-id"], partial(_spec, json_spec, columns, fields_by_id))
    return specs


def _spec(said: Json, columns: Sequence[Schema], known_fields: dict[int, PartitionField]) -> PartitionSpec:
    fields = []
    for number, part in enumerate(said["fields"]):
        field = _part(part, FIRST_FIELD_ID + number, columns)
        if field is None:
            continue
        prior = known_fields.get(field.id, field)
        if (prior.source_id, prior.transform) != (field.source_id, field.transform):
            raise Unsupported(
                f"the source gives the id {field.id} to the partition fields {prior.name} and {field.name}, which "
                "differ, as in tables of version 1: copy its rows by CREATE TABLE … AS SELECT"
            )
        fields.append(field)
    known_fields.update((field.id, field) for field in fields)
    return PartitionSpec(id=said["spec-id"], fields=tuple(fields))


def _part(said: Json, id: int, columns: Sequence[Schema]) -> PartitionField | None:
    if said["transform"] == "void":
        return None
    if "source-id" not in said:
        raise Unsupported(
            f"the partition field {said['name']} is of several columns, which lakelog does not have: copy the rows by "
            "CREATE TABLE … AS SELECT"
        )
    try:
        transform = Transform.parse(said["transform"])
    except (InvalidInput, Unsupported) as error:
        raise Unsupported(
            f"the partition field {said['name']} of the source is by {said['transform']}, which lakelog does not have: "
            "copy its rows by CREATE TABLE … AS SELECT"
        ) from error
    for schema in reversed(columns):
        if schema.has_id(said["source-id"]):
            type = schema.field_by_id(said["source-id"]).type
            return PartitionField(
                id=said.get("field-id", id),
                source_id=said["source-id"],
                name=said["name"],
                transform=transform,
                result=result_type(transform, type),
            )
    return None


def mapped_names(text: str) -> list[Json]:
    """Return the names of columns in files without ids, as a property of the table has them. Raises
    FormatError.
    """
    try:
        names: list[Json] = msgspec.json.decode(text, type=list[dict[str, Any]])
    except msgspec.DecodeError as error:
        raise FormatError(
            f"the property schema.name-mapping.default of the source is not JSON: {error}"
        ) from None
    return names
