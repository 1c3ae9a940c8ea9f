"""Columns of a Delta table as lakelog's: types, names in files, and ids that stay the same over its versions.

The path of the names in files, the *physical* names, identifies a column. Without column mapping these are
the columns' own names. With column mapping they never change, and are given once. Rule: if a column's new
type does not fit its older values, it is another column because Delta rewrote all of its files then. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from lakelog.catalog.core.schema import (
    AtomicType,
    Default,
    Field,
    Schema,
    StructType,
    Type,
    children,
    dotted,
    is_widening,
    parse_literal,
    type_from_spark,
    with_children,
)
from lakelog.catalog.formats.imports.delta.actions import TableMetadata, configuration_of
from lakelog.catalog.formats.imports.delta.protocol import ID, NONE
from lakelog.log.decoding import UNREADABLE, said
from lakelog.log.errors import FormatError, InvalidInput, Unsupported

PHYSICAL = "lakelog.delta-name"
"""The key in a field's metadata for its name in files, if that differs from its own name.

By this name a later import recognizes the column.
"""

_NAME_IN_FILES = "delta.columnMapping.physicalName"
_FIELD_ID = "delta.columnMapping.id"
_TYPE_CHANGES = "delta.typeChanges"
_GENERATED = "delta.generationExpression"
_IDENTITY = "delta.identity.start"
_INVARIANTS = "delta.invariants"
_CONSTRAINT = "delta.constraints."
_APPEND_ONLY = "delta.appendOnly"
_EXISTS_DEFAULT = "EXISTS_DEFAULT"
"""Spark's key for the value of older rows, which Delta never applies."""
_CHAR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"
"""The key under which Spark keeps the lengths of texts, also of texts nested in the column."""
_PARTS = {"elementType": "element", "keyType": "key", "valueType": "value"}
_OF_DELTA = ("delta.", "parquet.field")


class ColumnIds:
    """Gives ids to columns. The same column has the same id in all schemas that an object binds."""

    def __init__(self, known_schema: Schema | None = None) -> None:
        self._ids: dict[tuple[int, str], tuple[int, Type]] = {}
        self.names: dict[int, str] = {}
        """The name of each column id in files, among its siblings.

        A file may have any column that was ever there.
        """
        self.last_id = 0 if known_schema is None else known_schema.last_id
        if known_schema is not None:
            self._remember(known_schema.fields, 0, is_struct=True)

    def _remember(self, fields: tuple[Field, ...], parent: int, *, is_struct: bool) -> None:
        for field in fields:
            physical = field.metadata.get(PHYSICAL, field.name)
            self._ids[parent, physical] = (field.id, field.type)
            if is_struct:
                self.names[field.id] = physical
            self._remember(children(field.type), field.id, is_struct=isinstance(field.type, StructType))

    def bound(self, fields: tuple[Field, ...]) -> Schema:
        """Return columns with physical names as a schema with ids, and without physical names."""
        fields_with_ids = tuple(self._bind(field, 0, is_struct=True) for field in fields)
        return Schema(fields=fields_with_ids, last_id=self.last_id)

    def _bind(self, field: Field, parent: int, *, is_struct: bool) -> Field:
        key = (parent, field.physical or field.name)
        id, old_type = self._ids.get(key, (0, field.type))
        if not id or not _is_the_same(old_type, field.type):
            self.last_id += 1
            id = self.last_id
        self._ids[key] = (id, field.type)
        if is_struct:
            self.names[id] = key[1]
        is_below = isinstance(field.type, StructType)
        parts = tuple(self._bind(part, id, is_struct=is_below) for part in children(field.type))
        type = with_children(field.type, parts) if parts else field.type
        return msgspec.structs.replace(field, id=id, physical="", type=type)


def _is_the_same(type_before: Type, current_type: Type) -> bool:
    """Return whether older values of a column can be read as its present type."""
    if isinstance(type_before, AtomicType) and isinstance(current_type, AtomicType):
        return is_widening(type_before, current_type)
    return type_before.__class__ is current_type.__class__


class DeltaColumns:
    """The columns of a version.

    `fields` have physical names and no ids; `field_ids` has Parquet's ids by physical path.
    """

    def __init__(self, metadata: TableMetadata, mapping: str, url: str) -> None:
        self._mapping = mapping
        self._url = url
        self.field_ids: dict[tuple[str, ...], int] = {}
        try:
            json = msgspec.json.decode(metadata.schema_string)
        except UNREADABLE as error:
            raise FormatError(f"the schema of the Delta table {url} is not JSON: {said(error)}") from None
        self.notes = tuple(_notes(json, metadata))
        type = type_from_spark(_without_delta(json))
        if not isinstance(type, StructType) or not type.fields:
            raise Unsupported(f"the Delta table {url} has no columns: add one first")
        self.fields = tuple(self._column(field, (), ()) for field in type.fields)

    def by_id(self, schema: Schema, names: Mapping[int, str]) -> dict[int, int]:
        """Return Parquet's field ids by the ids of columns in `schema`.

        `names` has the columns' names in files.
        """

        def below(fields: tuple[Field, ...], parent: tuple[str, ...]) -> Iterator[tuple[int, int]]:
            for field in fields:
                path = (*parent, names.get(field.id, field.name))
                if path in self.field_ids:
                    yield field.id, self.field_ids[path]
                yield from below(children(field.type), path)

        return dict(below(schema.fields, ()))

    def _column(self, field: Field, path: tuple[str, ...], physical: tuple[str, ...]) -> Field:
        metadata = dict(field.metadata)
        column_path, name = (*path, field.name), field.name
        if self._mapping != NONE:
            name = metadata.get(_NAME_IN_FILES, "")
            if not isinstance(name, str) or not name:
                raise FormatError(
                    f"the column {dotted(column_path)} of the Delta table {self._url} has no {_NAME_IN_FILES}, "
                    f"though columns are mapped by {self._mapping}"
                )
        physical_path = (*physical, name)
        if self._mapping == ID:
            id = metadata.get(_FIELD_ID)
            if not isinstance(id, int):
                raise FormatError(
                    f"the column {dotted(column_path)} of the Delta table {self._url} has no {_FIELD_ID}, though "
                    "columns are mapped by id"
                )
            self.field_ids[physical_path] = id
        _check_changes(metadata.get(_TYPE_CHANGES) or (), column_path, self._url)
        plain_metadata = {key: value for key, value in metadata.items() if not key.startswith(_OF_DELTA)}
        if name != field.name:
            plain_metadata[PHYSICAL] = name
        return msgspec.structs.replace(
            field,
            physical=name,
            type=self._type(field.type, column_path, physical_path),
            default=_default(field),
            metadata=plain_metadata,
        )

    def _type(self, type: Type, path: tuple[str, ...], physical: tuple[str, ...]) -> Type:
        match type:
            case AtomicType():
                if type.family == "variant":
                    raise Unsupported(
                        f"the column {dotted(path)} of the Delta table {self._url} is a variant, which lakelog does "
                        "not read in other writers' files: copy the rows by a query"
                    )
                return type
            case StructType():
                return StructType(tuple(self._column(field, path, physical) for field in type.fields))
            case _:
                parts = (
                    msgspec.structs.replace(
                        part, type=self._type(part.type, (*path, part.name), (*physical, part.name))
                    )
                    for part in children(type)
                )
                return with_children(type, tuple(parts))


def _default(field: Field) -> Default | None:
    """Return the default of new rows, if lakelog can express it. Delta never applies defaults to older files."""
    current = None if field.default is None else field.default.current
    if current is None:
        return None
    try:
        parse_literal(current, field.type)
    except InvalidInput:
        return None
    return Default(current=current)


def _check_changes(changes: Any, path: tuple[str, ...], url: str) -> None:
    """Raise Unsupported for a former type of a column, in older files, that lakelog does not widen."""
    for change in changes:
        try:
            old, new = (type_from_spark(change[side], path) for side in ("fromType", "toType"))
        except (KeyError, TypeError):
            raise FormatError(
                f"the column {dotted(path)} of the Delta table {url} has {change!r} as a change of its type"
            ) from None
        if not (isinstance(old, AtomicType) and isinstance(new, AtomicType) and is_widening(old, new)):
            raise Unsupported(
                f"the column {dotted(path)} of the Delta table {url} was widened from {old} to {new}, which lakelog "
                "cannot read older files as: rewrite them (REORG TABLE), drop the feature typeWidening, and retry"
            )


def _without_delta(json: Any) -> Any:
    """Return a schema without the metadata that `type_from_spark` would take for instructions."""
    if isinstance(json, list):
        return [_without_delta(item) for item in json]
    if not isinstance(json, dict):
        return json
    members = {key: _without_delta(value) for key, value in json.items() if key != "metadata"}
    if "metadata" in json:
        metadata = json["metadata"] or {}
        members["metadata"] = {
            key: value
            for key, value in metadata.items()
            if key not in (_GENERATED, _INVARIANTS, _EXISTS_DEFAULT)
            and not key.startswith("delta.identity.")
            and (key != _CHAR_VARCHAR or isinstance(json.get("type"), str))
        }
    return members


def _notes(json: Any, metadata: TableMetadata) -> Iterator[str]:
    """Yield the demands on Delta's writers that lakelog does not make. None of them concerns readers."""
    yield from _notes_of_columns(json, ())
    for key, condition in sorted(metadata.configuration.items()):
        if key.lower().startswith(_CONSTRAINT):
            yield f"the constraint {key[len(_CONSTRAINT) :]} CHECK ({condition}) is not enforced"
    if (configuration_of(metadata, _APPEND_ONLY) or "").lower() == "true":
        yield f"the property {_APPEND_ONLY} is true: rows of the table can be changed and deleted"


def _notes_of_columns(type: Any, path: tuple[str, ...]) -> Iterator[str]:
    if not isinstance(type, dict):
        return
    for part in ("elementType", "keyType", "valueType"):
        yield from _notes_of_columns(type.get(part), (*path, _PARTS[part]))
    for field in type.get("fields") or ():
        if not isinstance(field, dict):
            continue
        metadata: Mapping[str, Any] = field.get("metadata") or {}
        column_path = (*path, str(field.get("name")))
        name = dotted(column_path)
        if _GENERATED in metadata:
            yield f"the column {name} is generated from {metadata[_GENERATED]}: it becomes a plain column"
        if _IDENTITY in metadata:
            yield f"the column {name} is an identity column: it becomes a plain column"
        if _INVARIANTS in metadata:
            yield f"the column {name} has the invariant {metadata[_INVARIANTS]}: it is not enforced"
        default = metadata.get("CURRENT_DEFAULT")
        if default is not None and not _is_literal(default, field.get("type")):
            yield f"the column {name} has the default {default}, which is not a literal: it is left out"
        if _CHAR_VARCHAR in metadata and not isinstance(field.get("type"), str):
            yield f"the column {name} is {metadata[_CHAR_VARCHAR]}: the texts in it become STRING"
        yield from _notes_of_columns(field.get("type"), column_path)


def _is_literal(sql: str, json: Any) -> bool:
    try:
        parse_literal(sql, type_from_spark(json))
    except InvalidInput:
        return False
    return True
