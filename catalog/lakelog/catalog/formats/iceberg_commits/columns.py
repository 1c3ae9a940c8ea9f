"""The columns of Iceberg's metadata as the table's own, after a client of Iceberg changed them. Pure.

Column ids are Iceberg's field ids. A column that the client left as it was keeps everything, also what Iceberg
has no word for, such as the length of a VARCHAR. Rule: a change with which older files would be read wrongly is
refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lakelog.catalog.core.schema import (
    AtomicType,
    Default,
    Field,
    ListType,
    MapType,
    Schema,
    StructType,
    Type,
    check_fields,
    dotted,
    is_iceberg_promotion,
    is_text,
    is_widening,
    physical_name,
    refuse_names_of_spark,
)
from lakelog.catalog.formats.iceberg.schemas import field_json, type_json
from lakelog.catalog.formats.imports.iceberg.schemas import schema_from
from lakelog.log.errors import InvalidInput, Unsupported

Path = tuple[str, ...]


def new_columns(document: Mapping[str, Any], last_id: int) -> Schema:
    """Return the columns of a new table, with the ids that the client gave. Raises Unsupported or InvalidInput."""
    return merged_columns(document, Schema(fields=(), last_id=0), last_id)


def schema_of_client(document: Mapping[str, Any]) -> Schema:
    """Return the columns of a view, without ids of lakelog's own. Raises Unsupported or InvalidInput."""
    _refuse_fixed(document, ())
    return schema_from(document, 0)


def merged_columns(document: Mapping[str, Any], schema: Schema, last_id: int) -> Schema:
    """Return the columns of a schema in Iceberg's JSON, of a table whose columns were `schema`.

    Raises Unsupported for a type that lakelog does not keep, or for a change that older files do not allow. Raises
    InvalidInput for columns that cannot be.
    """
    if document.get("identifier-field-ids"):
        raise Unsupported(
            "identifier fields are not supported, as lakelog would not keep them: leave identifier-field-ids out, and "
            "name the columns in each upsert"
        )
    _refuse_fixed(document, ())
    wanted = schema_from(document, max(last_id, schema.last_id))
    check_fields(wanted.fields)
    refuse_names_of_spark(set(wanted.names) - set(schema.names))
    merge = _Merge(schema)
    return Schema(fields=merge.fields(wanted.fields, schema.fields, ()), last_id=wanted.last_id)


class _Merge:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def fields(self, wanted: Sequence[Field], old: Sequence[Field], parent: Path) -> tuple[Field, ...]:
        by_id = {field.id: field for field in old}
        return tuple(self._field(field, by_id.get(field.id), (*parent, field.name)) for field in wanted)

    def _field(self, wanted: Field, old: Field | None, path: Path) -> Field:
        if old is None:
            return self._added(wanted, path)
        type_, widened = self._type(wanted.type, old.type, old.widened, path)
        return msgspec.structs.replace(
            old,
            name=wanted.name,
            nullable=wanted.nullable,
            comment=wanted.comment,
            default=_default(wanted, old, type_, path),
            type=type_,
            widened=widened,
        )

    def _added(self, wanted: Field, path: Path) -> Field:
        self._check_new(wanted.id, path)
        has_value = wanted.default is not None and wanted.default.exists is not None
        if self._schema.fields and not wanted.nullable and not has_value:
            raise Unsupported(
                f"the column {dotted(path)} is new and required, and existing rows would have no value: add it as "
                "optional, or with a default"
            )
        physical = physical_name(wanted.name, wanted.id)
        return msgspec.structs.replace(wanted, physical=physical, type=self._new_type(wanted.type, path))

    def _check_new(self, id: int, path: Path) -> None:
        if id <= self._schema.last_id:
            present = self._schema.has_id(id)
            why = (
                f"is {dotted(self._schema.path_of(id))}"
                if present
                else "belonged to a column that was dropped"
            )
            raise Unsupported(
                f"the column {dotted(path)} has the id {id}, which {why}: give a new column an id above "
                f"{self._schema.last_id}"
            )

    def _new_type(self, wanted: Type, path: Path) -> Type:
        match wanted:
            case StructType():
                return StructType(tuple(self._nested(field, (*path, field.name)) for field in wanted.fields))
            case ListType():
                self._check_new(wanted.element_id, path)
                return msgspec.structs.replace(wanted, element=self._new_type(wanted.element, path))
            case MapType():
                self._check_new(wanted.key_id, path)
                self._check_new(wanted.value_id, path)
                return msgspec.structs.replace(
                    wanted, key=self._new_type(wanted.key, path), value=self._new_type(wanted.value, path)
                )
            case _:
                return wanted

    def _nested(self, wanted: Field, path: Path) -> Field:
        """Return a field of a new struct. It may be required, as no older row has the struct."""
        self._check_new(wanted.id, path)
        physical = physical_name(wanted.name, wanted.id)
        return msgspec.structs.replace(wanted, physical=physical, type=self._new_type(wanted.type, path))

    def _type(
        self, wanted: Type, old: Type, widened: tuple[str, ...], path: Path
    ) -> tuple[Type, tuple[str, ...]]:
        """Return the type of an existing column, and the former types that files may have."""
        match wanted, old:
            case AtomicType(), AtomicType():
                if type_json(wanted) == type_json(old):
                    return old, widened
                if not (is_widening(old, wanted) and is_iceberg_promotion(old, wanted)):
                    raise Unsupported(
                        f"the column {dotted(path)} cannot change from {old} to {wanted}, as which older files "
                        "cannot be read: add a new column"
                    )
                return wanted, widened if is_text(old) else tuple(dict.fromkeys((*widened, old.name)))
            case StructType(), StructType():
                return StructType(self.fields(wanted.fields, old.fields, path)), widened
            case ListType(), ListType() if wanted.element_id == old.element_id:
                element, former = self._type(
                    wanted.element, old.element, old.element_widened, (*path, "element")
                )
                nullable = wanted.element_nullable
                return msgspec.structs.replace(
                    old, element=element, element_widened=former, element_nullable=nullable
                ), widened
            case MapType(), MapType() if (wanted.key_id, wanted.value_id) == (old.key_id, old.value_id):
                key, former_key = self._type(wanted.key, old.key, old.key_widened, (*path, "key"))
                value, former_value = self._type(wanted.value, old.value, old.value_widened, (*path, "value"))
                if former_key != old.key_widened:
                    raise Unsupported(
                        f"the type of the keys of {dotted(path)} cannot change: add a new column"
                    )
                nullable = wanted.value_nullable
                return msgspec.structs.replace(
                    old, key=key, value=value, value_widened=former_value, value_nullable=nullable
                ), widened
            case _:
                raise Unsupported(
                    f"the column {dotted(path)} cannot change from {old} to {wanted}: add a new column"
                )


def _default(wanted: Field, old: Field, type_: Type, path: Path) -> Default | None:
    wanted_json, old_json = (
        field_json(msgspec.structs.replace(field, type=type_)) for field in (wanted, old)
    )
    if wanted_json.get("initial-default") != old_json.get("initial-default"):
        raise Unsupported(
            f"the default of {dotted(path)} for existing rows cannot change, as it is a value of theirs"
        )
    if wanted_json.get("write-default") == old_json.get("write-default"):
        return old.default
    exists = None if old.default is None else old.default.exists
    current = None if wanted.default is None else wanted.default.current
    return None if current is None and exists is None else Default(current=current, exists=exists)


def _refuse_fixed(json_type: Any, path: Path) -> None:
    """Raise Unsupported for the type `fixed`, which would come back as `binary`."""
    if isinstance(json_type, str):
        if json_type.startswith("fixed"):
            raise Unsupported(
                f"the column {dotted(path)} is {json_type}, which lakelog does not keep: use binary"
            )
        return
    for field in json_type.get("fields", ()):
        _refuse_fixed(field["type"], (*path, field["name"]))
    for part in ("element", "key", "value"):
        if part in json_type:
            _refuse_fixed(json_type[part], (*path, part))


def check_dropped(old: Schema, new: Schema, used: Mapping[int, str]) -> None:
    """Raise InvalidInput if a column was dropped that is in `used`, with its use in words."""
    for path, field in old.walk():
        if field.id in used and not new.has_id(field.id):
            raise InvalidInput(
                f"cannot drop {dotted(path)}: {used[field.id]} needs it; change that first, in a commit of its own"
            )
