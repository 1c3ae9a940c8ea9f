"""The columns of Iceberg's metadata as the table's own, after a client of Iceberg changed them. Pure.

Column ids are Iceberg's field ids. If the client left a column as it was, it keeps everything, also properties that
Iceberg lacks, such as the length of a VARCHAR. Rule: a change is refused if older files would be read wrongly with
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lakelog.catalog.core.schema import (
    AtomicType,
    ColumnPath,
    Constraint,
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
    refuse_dependent,
    refuse_in_key,
    refuse_names_of_spark,
    same_shape,
)
from lakelog.catalog.formats.iceberg.schemas import field_json, type_json
from lakelog.catalog.formats.imports.iceberg.schemas import schema_from
from lakelog.log.errors import InvalidInput, Unsupported


def new_columns(document: Mapping[str, Any], last_id: int) -> Schema:
    """Return the columns of a new table, with the ids that the client gave. Raises Unsupported or InvalidInput."""
    return merged_columns(document, Schema(fields=(), last_id=0), last_id, has_rows=False)


def schema_of_client(document: Mapping[str, Any]) -> Schema:
    """Return the columns of a view, without ids of lakelog's own. Raises Unsupported or InvalidInput."""
    _refuse_fixed(document, ())
    return schema_from(document, 0)


def merged_columns(
    document: Mapping[str, Any], schema: Schema, last_id: int, *, has_rows: bool = True
) -> Schema:
    """Return the columns of a schema in Iceberg's JSON, of a table whose columns were `schema`.

    If the table has no rows, or none of them stays, new columns may be required.

    Raises Unsupported for a type that lakelog does not keep, or for a change that older files do not allow. Raises
    InvalidInput for columns that cannot be.
    """
    if document.get("identifier-field-ids"):
        raise Unsupported(
            "identifier fields are not supported, as lakelog would not keep them: leave identifier-field-ids out, and "
            "name the columns in each upsert"
        )
    _refuse_fixed(document, ())
    target = schema_from(document, max(last_id, schema.last_id))
    check_fields(target.fields)
    refuse_names_of_spark(set(target.names) - set(schema.names))
    merge = _Merge(schema, has_rows=has_rows)
    return Schema(fields=merge.fields(target.fields, schema.fields, ()), last_id=target.last_id)


class _Merge:
    def __init__(self, schema: Schema, *, has_rows: bool) -> None:
        self._schema = schema
        self._has_rows = has_rows

    def fields(self, target: Sequence[Field], old: Sequence[Field], parent: ColumnPath) -> tuple[Field, ...]:
        by_id = {field.id: field for field in old}
        return tuple(self._field(field, by_id.get(field.id), (*parent, field.name)) for field in target)

    def _field(self, target: Field, old: Field | None, path: ColumnPath) -> Field:
        if old is None:
            return self._added(target, path)
        type_, former_types = self._type(target.type, old.type, old.widened, path)
        return msgspec.structs.replace(
            old,
            name=target.name,
            nullable=target.nullable,
            comment=target.comment,
            default=_default(target, old, type_, path),
            type=type_,
            widened=former_types,
        )

    def _added(self, target: Field, path: ColumnPath) -> Field:
        self._check_new(target.id, path)
        has_value = target.default is not None and target.default.exists is not None
        if self._has_rows and not target.nullable and not has_value:
            raise Unsupported(
                f"the column {dotted(path)} is new and required, and existing rows would have no value: add it as "
                "optional, or with a default"
            )
        physical = physical_name(target.name, target.id)
        return msgspec.structs.replace(target, physical=physical, type=self._new_type(target.type, path))

    def _check_new(self, id: int, path: ColumnPath) -> None:
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

    def _new_type(self, target: Type, path: ColumnPath) -> Type:
        match target:
            case StructType():
                return StructType(tuple(self._nested(field, (*path, field.name)) for field in target.fields))
            case ListType():
                self._check_new(target.element_id, path)
                return msgspec.structs.replace(target, element=self._new_type(target.element, path))
            case MapType():
                self._check_new(target.key_id, path)
                self._check_new(target.value_id, path)
                return msgspec.structs.replace(
                    target, key=self._new_type(target.key, path), value=self._new_type(target.value, path)
                )
            case _:
                return target

    def _nested(self, target: Field, path: ColumnPath) -> Field:
        """Return a field of a new struct. It may be required, as no older row has the struct."""
        self._check_new(target.id, path)
        physical = physical_name(target.name, target.id)
        return msgspec.structs.replace(target, physical=physical, type=self._new_type(target.type, path))

    def _type(
        self, target: Type, old: Type, former_types: tuple[str, ...], path: ColumnPath
    ) -> tuple[Type, tuple[str, ...]]:
        """Return the type of an existing column, and the former types that files may have."""
        match target, old:
            case AtomicType(), AtomicType():
                if type_json(target) == type_json(old):
                    return old, former_types
                if not (is_widening(old, target) and is_iceberg_promotion(old, target)):
                    raise Unsupported(
                        f"the column {dotted(path)} cannot change from {old} to {target}, as which older files "
                        "cannot be read: add a new column"
                    )
                return target, former_types if is_text(old) else tuple(
                    dict.fromkeys((*former_types, old.name))
                )
            case StructType(), StructType():
                return StructType(self.fields(target.fields, old.fields, path)), former_types
            case ListType(), ListType() if target.element_id == old.element_id:
                element, former_element = self._type(
                    target.element, old.element, old.element_widened, (*path, "element")
                )
                nullable = target.element_nullable
                return msgspec.structs.replace(
                    old, element=element, element_widened=former_element, element_nullable=nullable
                ), former_types
            case MapType(), MapType() if (target.key_id, target.value_id) == (old.key_id, old.value_id):
                key, former_key = self._type(target.key, old.key, old.key_widened, (*path, "key"))
                value, former_value = self._type(target.value, old.value, old.value_widened, (*path, "value"))
                if former_key != old.key_widened:
                    raise Unsupported(
                        f"the type of the keys of {dotted(path)} cannot change: add a new column"
                    )
                nullable = target.value_nullable
                return msgspec.structs.replace(
                    old, key=key, value=value, value_widened=former_value, value_nullable=nullable
                ), former_types
            case _:
                raise Unsupported(
                    f"the column {dotted(path)} cannot change from {old} to {target}: add a new column"
                )


def _default(target: Field, old: Field, type_: Type, path: ColumnPath) -> Default | None:
    wanted_json, old_json = (
        field_json(msgspec.structs.replace(field, type=type_)) for field in (target, old)
    )
    if wanted_json.get("initial-default") != old_json.get("initial-default"):
        raise Unsupported(
            f"the default of {dotted(path)} for existing rows cannot change, as it is a value of theirs"
        )
    if wanted_json.get("write-default") == old_json.get("write-default"):
        return old.default
    exists = None if old.default is None else old.default.exists
    current = None if target.default is None else target.default.current
    return None if current is None and exists is None else Default(current=current, exists=exists)


def _refuse_fixed(json_type: Any, path: ColumnPath) -> None:
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


def check_dropped(old: Schema, new: Schema, uses: Mapping[int, str]) -> None:
    """Raise InvalidInput if a column was dropped that is in `uses`, with its use in words, or a part of map keys."""
    for path, field in old.walk():
        if new.has_id(field.id):
            continue
        if field.id in uses:
            raise InvalidInput(
                f"cannot drop {dotted(path)}: {uses[field.id]} needs it; change that first, in a commit of its own"
            )
        if len(path) > 1 and new.has_id(old.find(path[:-1], case_sensitive=True).id):
            refuse_in_key(old, path, case_sensitive=True)


def check_constraints(old: Schema, new: Schema, constraints: Sequence[Constraint]) -> None:
    """Raise InvalidInput if a column that a constraint needs was dropped, or a CHECK's was renamed or got another type.

    A CHECK names its columns, so it would hold for another column, or for none.
    """
    if not constraints:
        return
    for path, field in old.walk():
        new_field = new.field_by_id(field.id) if new.has_id(field.id) else None
        if new_field is None:
            change, checks_only = "drop", False
        elif new_field.name != field.name:
            change, checks_only = "rename", True
        elif isinstance(field.type, AtomicType) and not same_shape(field.type, new_field.type):
            change, checks_only = "change the type of", True
        else:
            continue
        refuse_dependent(constraints, old, path, change, case_sensitive=True, checks_only=checks_only)
