"""The columns of a file that a client of Iceberg has written for a table of lakelog. Pure.

Rule: a file is refused if any reader would read it otherwise than lakelog, now or after the next change of the
table's columns. Some readers find parts of lists, maps and structs by id, and others by place. So all ids have to
be there, each once, at the table's own places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

import pyarrow as pa

from lakelog.catalog.core.schema import (
    FIELD_ID,
    AtomicType,
    ColumnPath,
    Field,
    ListType,
    MapType,
    Schema,
    StructType,
    Type,
    dotted,
    is_iceberg_promotion,
    is_list,
    is_widening,
    type_from_arrow,
)
from lakelog.log.errors import InvalidInput, Unsupported

RESERVED_FROM = 2_147_483_447
"""Iceberg reserves ids from this number on, for example for row ids."""

_UTC = (None, "UTC", "Etc/UTC", "Z", "+00:00")
"""The time zones that all readers of Iceberg take for UTC."""


def check_client_columns(name: str, arrow: pa.Schema, schema: Schema) -> None:
    """Raise Unsupported or InvalidInput unless all readers read the file `name` as the table's columns `schema`."""
    check = _Check(name, schema)
    check.ids(list(arrow))
    check.struct(list(arrow), schema.fields, ())


class _Check:
    def __init__(self, file: str, schema: Schema) -> None:
        self._file = file
        self._schema = schema

    def ids(self, parts: Sequence[pa.Field]) -> None:
        """Raise Unsupported unless every part has an id of its own, which no later column will get."""
        paths_by_id: dict[int, ColumnPath] = {}
        for path, part in _walk(parts, ()):
            id = id_of(part)
            if id is None:
                self._refuse(f"has no id for {dotted(path)}: write the ids of all columns and their parts")
            if id >= RESERVED_FROM:
                self._refuse(
                    f"has ids of rows, in {dotted(path)}, which lakelog does not take over: let the writer leave them "
                    "out, as for tables of version 2 of the format"
                )
            if id in paths_by_id:
                self._refuse(
                    f"has the id {id} twice, in {dotted(paths_by_id[id])} and {dotted(path)}: give each its own"
                )
            if not 0 < id <= self._schema.last_id:
                self._refuse(
                    f"has the id {id}, of {dotted(path)}, which the table has not given: add the column first"
                )
            paths_by_id[id] = path

    def struct(self, parts: Sequence[pa.Field], fields: Sequence[Field], path: ColumnPath) -> None:
        """Check the parts of a struct, or all columns."""
        fields_by_id: Mapping[int, Field] = {field.id: field for field in fields}
        for part in parts:
            id = id_of(part)
            assert id is not None, "ids are checked before types"
            field = fields_by_id.get(id)
            if field is not None:
                self._field(part, field.type, field.nullable or not path, (*path, field.name))
            elif self._schema.has_id(id):
                self._refuse(
                    f"has {dotted(self._schema.path_of(id))} in {dotted((*path, part.name))}: write it at its place"
                )
        if path:
            self._check_there({id_of(part) for part in parts}, fields, path)

    def _check_there(self, ids: set[int | None], fields: Sequence[Field], path: ColumnPath) -> None:
        for field in fields:
            has_value = field.default is not None and field.default.exists is not None
            if field.id not in ids and not field.nullable and not has_value:
                raise InvalidInput(
                    f"the file {self._file} lacks {dotted((*path, field.name))}, which is required: write all columns"
                )

    def _field(self, part: pa.Field, wanted: Type, nullable: bool, path: ColumnPath) -> None:
        if part.nullable and not nullable:
            raise InvalidInput(
                f"the file {self._file} may have NULLs in {dotted(path)}, which is required: write it as required"
            )
        self._type(part.type, wanted, path)

    def _type(self, there: pa.DataType, wanted: Type, path: ColumnPath) -> None:
        match wanted:
            case StructType() if pa.types.is_struct(there):
                self.struct([there.field(i) for i in range(there.num_fields)], wanted.fields, path)
            case ListType() if is_list(there):
                self._part(there.value_field, wanted.element_id, (*path, "element"))
                self._field(there.value_field, wanted.element, wanted.element_nullable, (*path, "element"))
            case MapType() if pa.types.is_map(there):
                self._part(there.key_field, wanted.key_id, (*path, "key"))
                self._part(there.item_field, wanted.value_id, (*path, "value"))
                self._key(there.key_type, (*path, "key"))
                self._type(there.key_type, wanted.key, (*path, "key"))
                self._field(there.item_field, wanted.value, wanted.value_nullable, (*path, "value"))
            case AtomicType():
                self._atomic(there, wanted, path)
            case _:
                self._mismatch(there, wanted, path)

    def _key(self, type: pa.DataType, path: ColumnPath) -> None:
        for part_path, part in _walk(_parts_of(type), path):
            id = id_of(part)
            assert id is not None, "ids are checked before types"
            if not self._schema.has_id(id):
                self._refuse(
                    f"has {dotted(part_path)}, which the keys of that map do not have any more, so that two keys may "
                    "be equal: load the table, and write its keys"
                )

    def _part(self, part: pa.Field, wanted_id: int, path: ColumnPath) -> None:
        if id_of(part) != wanted_id:
            self._refuse(f"has the id {id_of(part)} for {dotted(path)}, which has {wanted_id}: write that id")

    def _atomic(self, there: pa.DataType, wanted: AtomicType, path: ColumnPath) -> None:
        if pa.types.is_dictionary(there) or pa.types.is_run_end_encoded(there):
            there = there.value_type
        if (
            pa.types.is_nested(there)
            or pa.types.is_time32(there)
            or pa.types.is_float16(there)
            or pa.types.is_fixed_size_binary(there)
            or (pa.types.is_timestamp(there) and there.tz not in _UTC)
        ):
            self._mismatch(there, wanted, path)
        type_in_file = type_from_arrow(there, path)
        if not (
            isinstance(type_in_file, AtomicType)
            and is_widening(type_in_file, wanted)
            and is_iceberg_promotion(type_in_file, wanted)
        ):
            self._mismatch(there, wanted, path)

    def _mismatch(self, there: pa.DataType, wanted: Type, path: ColumnPath) -> NoReturn:
        self._refuse(
            f"has {there} for {dotted(path)}, which is {wanted}, and not all readers of Iceberg read one as the other: "
            "write the table's type"
        )

    def _refuse(self, why: str) -> NoReturn:
        raise Unsupported(f"the file {self._file} {why}")


def id_of(part: pa.Field) -> int | None:
    """Return the id of a column or part in a file. None if it has none."""
    text = (part.metadata or {}).get(FIELD_ID)
    return None if text is None else int(text)


def _walk(parts: Sequence[pa.Field], path: ColumnPath) -> Iterator[tuple[ColumnPath, pa.Field]]:
    """Yield all parts, at any depth, with their paths in the file."""
    for part in parts:
        own_path = (*path, part.name)
        yield own_path, part
        yield from _walk(_parts_of(part.type), own_path)


def _parts_of(type: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(type):
        return [type.field(i) for i in range(type.num_fields)]
    if is_list(type):
        return [type.value_field]
    return [type.key_field, type.item_field] if pa.types.is_map(type) else []
