"""Conversion of schemas to and from Spark's JSON.

Comments, defaults and char/varchar are in a field's metadata under Spark's keys. The rest of the metadata is
the user's and kept unchanged. Types that Parquet cannot store are refused by name, because Spark itself
accepts them and would write NULLs.
"""

from __future__ import annotations

import json as json_text
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from lakelog.catalog.core.schema.literals import single_type, stored_value, widened
from lakelog.catalog.core.schema.schema import DEPTH_LIMIT, Schema, assign_ids, check_fields, dotted, too_deep
from lakelog.catalog.core.schema.sql_literals import literal_of, parse_literal
from lakelog.catalog.core.schema.types import (
    BINARY_COLLATION,
    AtomicType,
    Default,
    Field,
    Generated,
    Identity,
    ListType,
    MapType,
    StructType,
    Type,
    TypedValue,
    children,
    with_children,
)
from lakelog.log.errors import InvalidInput, Unsupported
from lakelog.log.grammar import shortened

SparkType: TypeAlias = str | dict[str, Any]
"""A type in Spark's JSON: a name, or an object with `type` struct, array or map."""

COMMENT = "comment"
CURRENT_DEFAULT = "CURRENT_DEFAULT"
EXISTS_DEFAULT = "EXISTS_DEFAULT"
EXISTS = "lakelog.exists"
CHAR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"
COLLATIONS = "__COLLATIONS"
RESERVED = "lakelog."
FIELD_ID = "lakelog.id"
PHYSICAL_NAME = "lakelog.physical"
PART_IDS = "lakelog.part-ids"
GENERATED = "lakelog.generated"
IDENTITY_START = "identity.start"
IDENTITY_STEP = "identity.step"
IDENTITY_EXPLICIT = "identity.allowExplicitInsert"

_ALIASES = {
    "bool": "boolean", "tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long",
    "real": "float", "timestamp_ltz": "timestamp", "decimal": "decimal(10,0)", "time": "time(6)",
}  # fmt: skip


def schema_from_spark(json: str | Mapping[str, Any], last_id: int = 0) -> Schema:
    """Return the schema of Spark's JSON of a struct, with fresh ids after `last_id`.

    Raises InvalidInput for JSON that is not a schema and for bad names, and ColumnExists for duplicates.
    Raises Unsupported, which names the column, if a column cannot be stored. Ids and physical names in the
    JSON belong to another table and are ignored.
    """
    if isinstance(json, str):
        try:
            json = json_text.loads(json)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"the schema is not JSON, or nested too deeply: {error}") from None
    type = type_from_spark(json)  # type: ignore[arg-type]
    if not isinstance(type, StructType):
        raise InvalidInput(f"the schema is of type {type}: it must be a struct")
    return assign_ids(type, last_id)


def schema_to_spark(schema: Schema, *, internal: bool = False) -> dict[str, Any]:
    """Return `schema` as Spark's JSON of a struct. Char and varchar are types, as in Spark's raw schemas.

    With `internal`, the metadata of each field at every level also has `lakelog.id` and `lakelog.physical`. A
    field with lists or maps has `lakelog.part-ids`, too: the ids of elements, keys and values by their path
    from the field.
    """
    return {"type": "struct", "fields": [_field_to_spark(field, internal) for field in schema.fields]}


def type_from_spark(json: SparkType, path: tuple[str, ...] = ()) -> Type:
    """Return a type without ids. Error messages name the column at `path`."""
    if len(path) > DEPTH_LIMIT + 1:
        raise too_deep(path)
    where = dotted(path) or "the schema"
    if isinstance(json, str):
        return _atomic(json, where)
    try:
        match json["type"]:
            case "struct":
                return StructType(tuple(_field_from_spark(field, path) for field in json["fields"]))
            case "array":
                return ListType(
                    element=type_from_spark(json["elementType"], (*path, "element")),
                    element_nullable=json["containsNull"],
                )
            case "map":
                return MapType(
                    key=type_from_spark(json["keyType"], (*path, "key")),
                    value=type_from_spark(json["valueType"], (*path, "value")),
                    value_nullable=json["valueContainsNull"],
                )
            case "udt":
                name = json.get("class") or json.get("pyClass")
                raise Unsupported(
                    f"the column {where} has the user-defined type {name}, which is not supported: convert "
                    "it to its underlying type"
                )
    except (KeyError, TypeError, AttributeError):
        pass
    raise InvalidInput(f"the type of {where} is not a type in Spark's JSON: {shortened(repr(json))}")


def type_to_spark(type: Type, *, internal: bool = False) -> SparkType:
    match type:
        case AtomicType():
            return type.name
        case StructType():
            return {"type": "struct", "fields": [_field_to_spark(field, internal) for field in type.fields]}
        case ListType():
            return {
                "type": "array",
                "elementType": type_to_spark(type.element, internal=internal),
                "containsNull": type.element_nullable,
            }
        case MapType():
            return {
                "type": "map",
                "keyType": type_to_spark(type.key, internal=internal),
                "valueType": type_to_spark(type.value, internal=internal),
                "valueContainsNull": type.value_nullable,
            }


def checked_type(json: SparkType, path: tuple[str, ...]) -> Type:
    """Return the type in a change, like `type_from_spark`, after a check of the names in it."""
    type = type_from_spark(json, path)
    check_fields(children(type))
    return type


def _atomic(name: str, where: str) -> AtomicType:
    # SHOW CREATE TABLE prints the collation of every string. After a char's length there is no space.
    name = re.sub(rf"(\)| ) ?collate {BINARY_COLLATION}$", r"\1", name.strip()).strip()
    name = re.sub(r"\s*([(),])\s*", r"\1", name if "collate " in name else name.lower())
    name = name.replace(")collate ", ") collate ")
    try:
        return AtomicType(_ALIASES.get(name, name))
    except Unsupported as error:
        raise Unsupported(f"the column {where} cannot be stored: {error}") from None
    except InvalidInput as error:
        raise InvalidInput(f"the column {where} is not valid: {error}") from None


def _field_from_spark(json: Mapping[str, Any], parent: tuple[str, ...]) -> Field:
    name = json["name"]
    if not isinstance(name, str):
        raise InvalidInput(f"the name of a column is {name!r}: it must be text")
    path = (*parent, name)
    metadata = dict(json.get("metadata") or {})
    _refuse_ignored_metadata(metadata, path)
    type = _collated(type_from_spark(json["type"], path), metadata.pop(COLLATIONS, None) or {}, path)
    generation = _generated_from_spark(metadata, path)
    identity = _identity_from_spark(metadata, path)
    raw = metadata.pop(CHAR_VARCHAR, None)
    if raw is not None:
        type = _with_length(type, raw, path)
    current, exists = metadata.pop(CURRENT_DEFAULT, None), _exists_from_spark(metadata, type, path)
    return Field(
        name=name,
        type=type,
        # An identity column has a value in every row, with or without NOT NULL.
        nullable=bool(json.get("nullable", True)) and identity is None,
        comment=metadata.pop(COMMENT, None),
        default=None if current is None and exists is None else Default(current=current, exists=exists),
        generated=generation,
        identity=identity,
        metadata={key: value for key, value in metadata.items() if not key.startswith(RESERVED)},
    )


def _exists_from_spark(metadata: dict[str, Any], type: Type, path: tuple[str, ...]) -> TypedValue | None:
    """Remove the value of older rows from a field's metadata. The adapter puts it there instead of Spark's SQL.

    Raises InvalidInput if the value, or Spark's SQL, is not one of the column.
    """
    value, sql = metadata.pop(EXISTS, None), metadata.pop(EXISTS_DEFAULT, None)
    if single_type(type) is None:
        return None
    try:
        if value is not None:
            return stored_value(msgspec.convert(value, TypedValue), type)
        return None if sql is None else parse_literal(sql, type)
    except (InvalidInput, msgspec.ValidationError) as error:
        raise InvalidInput(
            f"the default of the column {dotted(path)} for existing rows is not one: {error}"
        ) from None


def _generated_from_spark(metadata: dict[str, Any], path: tuple[str, ...]) -> Generated | None:
    """Remove the expression from a field's metadata. The adapter puts it there with its columns."""
    expression = metadata.pop(GENERATED, None)
    if expression is None:
        return None
    if len(path) > 1:
        raise Unsupported(f"the nested field {dotted(path)} cannot be generated: generate whole columns")
    return Generated(sql=expression["sql"], columns=tuple(expression["columns"]))


def _identity_from_spark(metadata: dict[str, Any], path: tuple[str, ...]) -> Identity | None:
    """Remove the definition of an identity column from a field's metadata. Spark puts it there for a new
    table."""
    start, step = metadata.pop(IDENTITY_START, None), metadata.pop(IDENTITY_STEP, None)
    explicit = metadata.pop(IDENTITY_EXPLICIT, None)
    if (start, step, explicit) == (None, None, None):
        return None
    if len(path) > 1:
        raise Unsupported(
            f"the nested field {dotted(path)} cannot be an identity column: make it a whole column"
        )
    if type(start) is not int or type(step) is not int or type(explicit) is not bool:
        raise InvalidInput(
            f"the identity column {dotted(path)} starts with {start!r} and has the step {step!r}, which are not whole "
            "numbers"
        )
    return Identity(start=start, step=step, always=not explicit)


def _refuse_ignored_metadata(metadata: dict[str, Any], path: tuple[str, ...]) -> None:
    for key in metadata:
        if key == "GENERATION_EXPRESSION" or key.endswith(".generationExpression"):
            raise Unsupported(
                f"the column {dotted(path)} is generated from {metadata[key]!r}; generated columns are made by "
                "GENERATED ALWAYS AS in a CREATE TABLE, and not by metadata"
            )
        if ".identity." in key:
            raise Unsupported(
                f"the column {dotted(path)} has an identity column below the top ({key}): make it a whole column"
            )


def _collated(type: Type, collations: Mapping[str, Any], path: tuple[str, ...]) -> Type:
    """Return the type of a field with the collations in its metadata. Spark keeps them by the path of each
    string.

    Such a path is the field's name, followed by element, key and value. Fields of structs have their own
    metadata.
    """
    stray = dict(collations)

    def with_collations(type: Type, where: str) -> Type:
        if isinstance(type, AtomicType):
            collation = str(stray.pop(where, BINARY_COLLATION)).rpartition(".")[2]
            return (
                type
                if collation == BINARY_COLLATION
                else _atomic(f"{type} collate {collation}", dotted(path))
            )
        if isinstance(type, StructType):
            return type
        parts = children(type)
        new_parts = (replace(part, type=with_collations(part.type, f"{where}.{part.name}")) for part in parts)
        return with_children(type, tuple(new_parts))

    collated_type = with_collations(type, path[-1])
    if stray:
        raise InvalidInput(
            f"the column {dotted(path)} has a collation at {', '.join(map(str, stray))} in its metadata, where it has "
            "no text"
        )
    return collated_type


def _with_length(type: Type, raw: str, path: tuple[str, ...]) -> Type:
    """Return the char or varchar that Spark hides behind the string type. Some versions also show it as the
    type."""
    if (
        isinstance(type, AtomicType)
        and type.family in ("char", "varchar")
        and type == _atomic(raw, dotted(path))
    ):
        return type
    if type == AtomicType("string") and re.fullmatch(
        rf"(var)?char\(\d+\)( ?collate {BINARY_COLLATION})?", raw
    ):
        return _atomic(raw, dotted(path))
    if not re.search(r"char\(", raw):
        return type
    if " collate " in raw.replace(f" collate {BINARY_COLLATION}", ""):
        raise Unsupported(
            f"the column {dotted(path)} is {raw}: CHAR and VARCHAR cannot have a collation; use STRING with the "
            "collation"
        )
    raise Unsupported(
        f"the column {dotted(path)} has {raw!r} in the metadata {CHAR_VARCHAR}, which is only understood "
        "for a string: give the type itself char and varchar parts"
    )


def _field_to_spark(field: Field, internal: bool) -> dict[str, Any]:
    metadata = dict(field.metadata)
    if field.comment is not None:
        metadata[COMMENT] = field.comment
    if field.default is not None:
        if field.default.current is not None:
            metadata[CURRENT_DEFAULT] = field.default.current
            metadata[EXISTS_DEFAULT] = "NULL"
        if field.default.exists is not None:
            value = widened(field.default.exists, field.type)
            metadata[EXISTS_DEFAULT] = literal_of(value)
            if internal:
                metadata[EXISTS] = {"type": value.type, "value": value.value}
    if internal:
        if field.generated is not None:
            metadata[GENERATED] = {"sql": field.generated.sql, "columns": list(field.generated.columns)}
        if field.identity is not None:
            metadata[IDENTITY_START] = field.identity.start
            metadata[IDENTITY_STEP] = field.identity.step
            metadata[IDENTITY_EXPLICIT] = not field.identity.always
        metadata[FIELD_ID] = field.id
        metadata[PHYSICAL_NAME] = field.physical
        part_ids = dict(_part_ids(field.type, ""))
        if part_ids:
            metadata[PART_IDS] = part_ids
    return {
        "name": field.name,
        "type": type_to_spark(field.type, internal=internal),
        "nullable": field.nullable,
        "metadata": metadata,
    }


def _part_ids(type: Type, prefix: str) -> Iterator[tuple[str, int]]:
    if isinstance(type, ListType | MapType):
        for part in children(type):
            yield prefix + part.name, part.id
            yield from _part_ids(part.type, f"{prefix}{part.name}.")
