"""Iceberg's JSON of columns and partitionings, as lakelog's. Pure.

Field ids are column ids, and partition fields have Iceberg's ids and transforms. What lakelog has no word for is
refused by name. Source: the specification of Iceberg's table format, version 3, appendix C.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
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
    dotted,
    parse_literal,
    result_type,
    text_literal,
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
_TYPED = {"date": "DATE", "time": "TIME", "timestamp_ntz": "TIMESTAMP_NTZ", "timestamp": "TIMESTAMP"}

Json = Mapping[str, Any]
T = TypeVar("T")


class Declared(dict[int, T]):
    """What a source declares, by its id. What lakelog does not have is refused where it is used, and else left out."""

    def __init__(self) -> None:
        super().__init__()
        self._refused: dict[int, Unsupported] = {}

    def add(self, id: int, make: Callable[[], T]) -> None:
        try:
            self[id] = make()
        except Unsupported as error:
            self._refused[id] = error

    def check_used(self, id: int | None) -> None:
        """Raise Unsupported for what cannot be used."""
        if id in self._refused:
            raise self._refused[id]


def schema_from(document: Json, last_id: int) -> Schema:
    """Return the columns of a schema. Unsupported, with the column, for a type that lakelog does not have."""
    fields = tuple(_field(each, ()) for each in document["fields"])
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
        default=None if exists is None and current is None else Default(current=current, exists=exists),
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
                return StructType(tuple(_field(each, path) for each in said["fields"]))
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


def _default(value: Any, type: Type, path: tuple[str, ...]) -> str | None:
    """Return a default as an SQL literal."""
    if value is None:
        return None
    sql = _literal(value, type) if isinstance(type, AtomicType) else None
    try:
        if sql is not None:
            parse_literal(sql, type)
            return sql
    except InvalidInput:
        pass
    raise Unsupported(
        f"the column {dotted(path)} has the default {value!r}, which lakelog cannot have: drop the default"
    )


def _literal(value: Any, type: AtomicType) -> str | None:
    match value:
        case bool():
            return str(value).upper()
        case int() | float() if type.family in ("float", "double"):
            return f"CAST('{float(value)!r}' AS {type.family.upper()})"
        case int():
            return str(value)
        case str() if type.family == "decimal":
            return value
        case str() if type.family == "binary":
            return f"X'{value}'"
        case str() if type.family in _TYPED:
            return f"{_TYPED[type.family]} '{value}'"
        case str():
            return text_literal(value)
    return None


# Partitionings


def specs_from(document: Json, columns: Sequence[Schema]) -> Declared[PartitionSpec]:
    """Return the partitionings of a table by their ids. `columns` are all schemas that it is known to have had.

    Fields without values (void) and of columns that no schema has are left out: partitions only help to find files.
    """
    said = document.get("partition-specs") or [{"spec-id": 0, "fields": document.get("partition-spec", [])}]
    now = document.get("default-spec-id", 0)
    specs: Declared[PartitionSpec] = Declared()
    known: dict[int, PartitionField] = {}
    # The present one is used, whatever is wrong with others.
    for each in sorted(said, key=lambda each: each["spec-id"] != now):
        specs.add(each["spec-id"], partial(_spec, each, columns, known))
    return specs


def _spec(said: Json, columns: Sequence[Schema], known: dict[int, PartitionField]) -> PartitionSpec:
    fields = []
    for number, part in enumerate(said["fields"]):
        field = _part(part, FIRST_FIELD_ID + number, columns)
        if field is None:
            continue
        other = known.get(field.id, field)
        if (other.source_id, other.transform) != (field.source_id, field.transform):
            raise Unsupported(
                f"the source gives the id {field.id} to the partition fields {other.name} and {field.name}, which "
                "differ, as in tables of version 1: copy its rows by CREATE TABLE … AS SELECT"
            )
        fields.append(field)
    known.update((field.id, field) for field in fields)
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
    """Return the names of columns in files without ids, as the property of a table has them. FormatError."""
    try:
        found: list[Json] = msgspec.json.decode(text, type=list[dict[str, Any]])
    except msgspec.DecodeError as error:
        raise FormatError(
            f"the property schema.name-mapping.default of the source is not JSON: {error}"
        ) from None
    return found
