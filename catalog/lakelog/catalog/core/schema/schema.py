"""The schema of a table: its columns with ids and physical names, and their lookup.

Ids are given in the order of the columns (a parent before its parts), and never reused. `last_id` is the
highest id ever given, also to dropped columns. The physical name is made from the first name and the id. It
survives every rename, so that old data files need no rewriting.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NoReturn

import msgspec

from lakelog.catalog.core.schema.types import (
    AtomicType,
    Field,
    ListType,
    MapType,
    StructType,
    Type,
    children,
    is_collated,
    walk,
)
from lakelog.catalog.errors import ColumnExists, NoSuchColumn
from lakelog.catalog.nearest import nearest
from lakelog.log.errors import InvalidInput, Unsupported
from lakelog.log.grammar import Int32
from lakelog.log.once import once

NAME_LIMIT_BYTES = 255
DEPTH_LIMIT = 64
FIELD_LIMIT = 20_000

OF_SPARK = frozenset({"__row_operation", "__row_from_source", "__row_from_target", "__row_id"})
"""Columns that Spark adds to rows, in lower case. See `refuse_names_of_spark`."""
PREFIX_OF_SPARK = "__original_row_id_"
"""The prefix of further such columns, one for each column by which Spark finds rows."""

_PHYSICAL_STEM_LENGTH = 48


class Schema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Columns in their order. Immutable. A table's changes make new schemas (see `schema_changes`)."""

    fields: tuple[Field, ...]
    last_id: Int32

    def __repr__(self) -> str:
        """Return a line for each column, for people: `msgspec.structs.asdict` has all that is stored."""
        return "\n".join(["Schema:", *map(_line, self.fields)])

    def __call__(self) -> NoReturn:
        raise TypeError("a table's schema is no method: write table.schema, or table.arrow_schema")

    def find(self, path: Sequence[str], case_sensitive: bool = False) -> Field:
        """Return the field at `path`, through structs and the parts `element`, `key` and `value`.

        An exact match wins over a match in another case. Raises NoSuchColumn if there is no match.
        """
        field = self.get(path, case_sensitive)
        if field is None:
            column_names = ", ".join(dotted((column.name,)) for column in self.fields[:20])
            more = ", …" if len(self.fields) > 20 else ""
            like = nearest(dotted(path), [dotted(column_path) for column_path, _ in self.walk()])
            hint = f": did you mean {' or '.join(like)}?" if like else ""
            raise NoSuchColumn(
                f"there is no column {dotted(path)}{hint}; the columns are {column_names or 'none'}{more}"
            )
        return field

    def get(self, path: Sequence[str], case_sensitive: bool = False) -> Field | None:
        """Return the field at `path`, like `find`, or None."""
        fields, field = self.fields, None
        for name in path:
            field = find_in(fields, name, case_sensitive)
            if field is None:
                return None
            fields = children(field.type)
        return field

    def field_by_id(self, id: int) -> Field:
        """Return the column, nested field, element, key or value of that id. Raises NoSuchColumn if it was
        dropped."""
        return self._entry(id)[1]

    def has_id(self, id: int) -> bool:
        return id in self._by_id

    def path_of(self, id: int) -> tuple[str, ...]:
        """Return the path of the field of that id. Raises NoSuchColumn if it was dropped."""
        return self._entry(id)[0]

    @property
    def paths(self) -> Mapping[int, tuple[str, ...]]:
        """The path of every field, by id."""
        return {id: path for id, (path, _) in self._by_id.items()}

    def walk(self) -> Iterator[tuple[tuple[str, ...], Field]]:
        """Yield every field with its path, a parent before its parts."""
        return walk(self.fields)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def _entry(self, id: int) -> tuple[tuple[str, ...], Field]:
        try:
            return self._by_id[id]
        except KeyError:
            raise NoSuchColumn(f"there is no column with the id {id} in this version of the schema") from None

    @once
    def _by_id(self) -> dict[int, tuple[tuple[str, ...], Field]]:
        return {field.id: (path, field) for path, field in self.walk()}


def _line(field: Field) -> str:
    comment = "" if field.comment is None else f" COMMENT {field.comment!r}"
    return f"  {field.name} {field.type}{'' if field.nullable else ' NOT NULL'}{comment}"


def assign_ids(columns: StructType | Schema | Sequence[Field], after_id: int = 0) -> Schema:
    """Return `columns` as a schema with ids after `after_id` and physical names. Their own ids are replaced.

    Raises InvalidInput for bad names and for more or deeper columns than the limits allow. Raises
    ColumnExists for duplicates.
    """
    fields = tuple(columns.fields if isinstance(columns, StructType | Schema) else columns)
    check_fields(fields)
    counter = _Counter(after_id)
    bound_fields = tuple(counter.bind(field) for field in fields)
    return Schema(fields=bound_fields, last_id=counter.last_id)


def bind_field(field: Field, after_id: int) -> tuple[Field, int]:
    """Return `field` with fresh ids after `after_id` in it and below it, and the last given id."""
    counter = _Counter(after_id)
    return counter.bind(field), counter.last_id


def check_fields(fields: Sequence[Field]) -> None:
    """Raise InvalidInput or ColumnExists unless `fields` may be the columns of a table."""
    count = _check_level(fields, (), 1)
    if count > FIELD_LIMIT:
        raise InvalidInput(
            f"the schema has {count} columns and nested fields; the limit is {FIELD_LIMIT}: use fewer"
        )


def check_names(fields: Sequence[Field], parent: tuple[str, ...] = ()) -> None:
    """Raise InvalidInput or ColumnExists unless siblings' names are valid and differ in more than case."""
    names_by_key: dict[str, str] = {}
    for field in fields:
        check_column_name(field.name)
        same_name = names_by_key.get(field.name.lower())
        if same_name is not None:
            where = f" in {dotted(parent)}" if parent else ""
            raise ColumnExists(
                f"the column {dotted((field.name,))} clashes with {dotted((same_name,))}{where}: the names of "
                "columns must differ (case-insensitive)"
            )
        names_by_key[field.name.lower()] = field.name


def check_column_name(name: str) -> None:
    """Raise InvalidInput if `name` is empty, too long or contains control characters."""
    if not name:
        raise InvalidInput("the name of a column is empty: give it at least one character")
    size = len(name.encode("utf-8", "surrogatepass"))
    if size > NAME_LIMIT_BYTES:
        raise InvalidInput(
            f"the name of the column {name[:40]!r}… has {size} bytes; the limit is {NAME_LIMIT_BYTES}: "
            "shorten it"
        )
    for character in name:
        if unicodedata.category(character) in ("Cc", "Cs"):
            raise InvalidInput(
                f"the name of the column {name!r} contains the control character U+{ord(character):04X}: "
                "remove it"
            )


def refuse_names_of_spark(names: Iterable[str]) -> None:
    """Raise InvalidInput if a new column has the name of a column that Spark adds.

    An UPDATE, MERGE or DELETE in Spark adds columns to the table's rows and finds them by their names. Fields
    of structs may have these names. A table may have such a column from before this check. The adapter
    refuses to change its rows, and a rename mends it.
    """
    for name in names:
        if name.lower() in OF_SPARK or name.lower().startswith(PREFIX_OF_SPARK):
            raise InvalidInput(
                f"a column cannot be called {name}, because Spark adds a column of that name to the rows that an "
                "UPDATE or MERGE changes: choose another name"
            )


def find_in(fields: Sequence[Field], name: str, case_sensitive: bool = False) -> Field | None:
    """Return the sibling named `name`. An exact match wins over a match in another case."""
    for field in fields:
        if field.name == name:
            return field
    if case_sensitive:
        return None
    lower_name = name.lower()
    return next((field for field in fields if field.name.lower() == lower_name), None)


def required_field_without_values(old_schema: Schema, schema: Schema) -> tuple[str, ...] | None:
    """Return the path of a NOT NULL field that rows of `old_schema` have no value for. None if there is none.

    A field of a new struct needs no values. The struct is NULL in these rows.
    """
    ids = {path: field.id for path, field in schema.walk()}
    for path, field in schema.walk():
        has_value = field.default is not None and field.default.exists is not None
        if field.nullable or has_value or old_schema.has_id(field.id):
            continue
        if len(path) == 1 or old_schema.has_id(ids[path[:-1]]):
            return path
    return None


def returned_field(old_schema: Schema, schema: Schema) -> tuple[str, ...] | None:
    """Return the path of a field that had been dropped in `old_schema`, and is there again. None if there is none.

    A rollback has brought it back: ids are not used again.
    """
    for path, field in schema.walk():
        if not old_schema.has_id(field.id) and field.id <= old_schema.last_id:
            return path
    return None


def missing_key_part(old_schema: Schema, schema: Schema) -> tuple[str, ...] | None:
    """Return the path in `old_schema` of a part of a map's keys that the map in `schema` lacks. None if there is none.

    A rollback has taken it away. Two keys of a map may be equal without it.
    """
    for path, field in old_schema.walk():
        if isinstance(field.type, MapType) and schema.has_id(field.id):
            for part_path, part in walk(children(field.type)[:1]):
                if not schema.has_id(part.id):
                    return (*path, *part_path)
    return None


def equal_keys(old_schema: Schema, schema: Schema) -> str | None:
    """Return why rows of `old_schema` may have maps with equal keys in `schema`. None if they have none."""
    path = missing_key_part(old_schema, schema)
    return (
        None if path is None else f"the keys of a map lack {dotted(path)} now, so that two keys may be equal"
    )


def physical_name(name: str, id: int) -> str:
    """Return the name in data files of a column first called `name`: ASCII, and unique through the id."""
    stem = re.sub(r"[^A-Za-z0-9_]", "_", name)[:_PHYSICAL_STEM_LENGTH]
    return f"{stem}_{id}"


def dotted(path: Sequence[str]) -> str:
    """Return `path` for messages: joined by dots, with backticks around a part that is not a plain word."""
    return ".".join(
        part if re.fullmatch(r"\w+", part) else "`" + part.replace("`", "``") + "`" for part in path
    )


class _Counter:
    def __init__(self, last_id: int) -> None:
        self.last_id = last_id

    def take(self) -> int:
        self.last_id += 1
        return self.last_id

    def bind(self, field: Field) -> Field:
        id = self.take()
        return msgspec.structs.replace(
            field, id=id, physical=physical_name(field.name, id), type=self.bind_type(field.type)
        )

    def bind_type(self, type: Type) -> Type:
        match type:
            case StructType():
                return StructType(tuple(self.bind(field) for field in type.fields))
            case ListType():
                id = self.take()
                return msgspec.structs.replace(type, element_id=id, element=self.bind_type(type.element))
            case MapType():
                key_id, value_id = self.take(), self.take()
                return msgspec.structs.replace(
                    type, key_id=key_id, value_id=value_id,
                    key=self.bind_type(type.key), value=self.bind_type(type.value),
                )  # fmt: skip
            case AtomicType():
                return type


def too_deep(path: Sequence[str]) -> InvalidInput:
    return InvalidInput(
        f"the column {dotted(path[:4])}… is nested deeper than the limit of {DEPTH_LIMIT} levels: flatten it"
    )


def _check_level(fields: Sequence[Field], parent: tuple[str, ...], depth: int, in_key: bool = False) -> int:
    if depth > DEPTH_LIMIT:
        raise too_deep(parent)
    check_names(fields, parent)
    count = len(fields)
    for field in fields:
        path = (*parent, field.name)
        if isinstance(field.type, StructType) and not field.type.fields:
            raise InvalidInput(
                f"the column {dotted(path)} is a struct without fields, which Parquet cannot store: give "
                "it one"
            )
        if isinstance(field.type, MapType) and is_collated(field.type.key):
            raise Unsupported(
                f"the column {dotted(path)} is a {field.type}: keys of maps cannot have a collation; make them string"
            )
        if isinstance(field.type, MapType) and in_key:
            raise InvalidInput(
                f"the column {dotted(path)} is a {field.type}, in the key of a map: keys cannot have maps in them; "
                "make it an array of structs"
            )
        nested_fields = children(field.type)
        if isinstance(field.type, MapType):
            count += _check_level(nested_fields[:1], path, depth + 1, in_key=True)
            nested_fields = nested_fields[1:]
        count += _check_level(nested_fields, path, depth + 1, in_key)
    return count
