"""The properties that a table or a namespace may have.

Names under `lakelog.` are lakelog's own. An unknown such name is refused, because a misspelled setting that
is stored and ignored is noticed too late. Properties of other formats are refused if ignoring them would harm
(`foreign_properties`). All others are the user's (or Spark's) and are kept word for word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lakelog.catalog.core.schema.foreign_properties import check_foreign
from lakelog.catalog.core.schema.properties.kinds import TableProperty
from lakelog.catalog.core.schema.properties.known import (
    ALL_COLUMNS,
    BLOOM_COLUMNS,
    INHERITED,
    KNOWN,
    RESERVED,
    STATISTICS,
)
from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.schema.types import AtomicType, Field, StructType
from lakelog.log.errors import InvalidInput

_PLACES = frozenset(("provider", "location", "external", "is_managed_location"))
"""Spark's names for parts of a table's definition, which are not settings."""


def check_properties(properties: Mapping[str, str]) -> None:
    """Raise InvalidInput for an unknown reserved name, for an invalid value of a known property, and for a
    harmful one.

    A harmful property is a property of another format that must not be ignored.
    """
    check_foreign(properties)
    for name, value in properties.items():
        check_text(name, value)
        if name.startswith(RESERVED):
            _known(name).check(value)


def check_namespace_properties(properties: Mapping[str, str]) -> None:
    """Check the properties of a namespace, like `check_properties`."""
    for name, value in properties.items():
        check_text(name, value)
        if name in INHERITED:
            INHERITED[name].check(value)
        elif name.startswith(RESERVED):
            raise InvalidInput(
                f"the namespace property {name!r} is not known: choose a name that does not begin with {RESERVED!r}, "
                f"or one of {', '.join(INHERITED)}"
            )


def check_columns_named(properties: Mapping[str, str], schema: Schema) -> None:
    """Raise InvalidInput if a property names a column that a table of that schema does not have."""
    column_names = STATISTICS.of(properties)
    columns = {dotted(path) for path, _ in schema.walk()} if column_names else ()
    for name in column_names:
        if name != ALL_COLUMNS and name not in columns:
            raise InvalidInput(
                f"the property {STATISTICS.name} names the column {name}, which the table does not have: name columns "
                f"as in SQL, divided by commas, or {ALL_COLUMNS} for all"
            )


def with_names_of(schema: Schema, schema_before: Schema, properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return `properties` with the names in `schema` for columns that they name as in `schema_before`.

    A dropped column leaves its property. A property is removed if no column is left in it.
    """
    new_properties = dict(properties)
    for property in (STATISTICS, BLOOM_COLUMNS):
        if names := property.of(properties):
            ids = {dotted(path): field.id for path, field in schema_before.walk()}
            names_by_id = {field.id: dotted(path) for path, field in schema.walk()}
            new_names = [names_by_id.get(ids[name]) if name in ids else name for name in names]
            if new_names != names:
                new_properties[property.name] = ", ".join(name for name in new_names if name is not None)
                if not new_properties[property.name]:
                    del new_properties[property.name]
    return new_properties


# Bloom filters are only for columns whose values are equal exactly if their bytes in a file are.
# Floating-point numbers have two zeros and many NaNs, strings with a collation are equal in many spellings,
# and a CHAR is compared with blanks.

_FILTERED = frozenset(
    ["byte", "short", "integer", "long", "date", "timestamp", "timestamp_ntz"]
    + ["decimal", "string", "varchar", "binary"]
)


def bloom_columns(properties: Mapping[str, str], schema: Schema) -> list[tuple[str, ...]]:
    """Return the paths of the columns with Bloom filters in new files, in the schema's order."""
    column_names = set(BLOOM_COLUMNS.of(properties))
    if not column_names:
        return []
    return [
        path for path, field in _alone(schema.fields) if dotted(path) in column_names and _can_have(field)
    ]


def check_bloom_columns(properties: Mapping[str, str], schema: Schema) -> None:
    """Raise InvalidInput if the property names a column that cannot have a filter, or that is not in the
    schema."""
    column_names = BLOOM_COLUMNS.of(properties)
    if not column_names:
        return
    scalars = {dotted(path): field for path, field in _alone(schema.fields)}
    all_fields = {dotted(path): field for path, field in schema.walk()}
    for name in column_names:
        where = f"the property {BLOOM_COLUMNS.name} names the column {name}"
        if name not in all_fields:
            raise InvalidInput(
                f"{where}, which the table does not have: name columns as in SQL, divided by commas"
            )
        if name not in scalars:
            raise InvalidInput(
                f"{where}, of which a row has many: name columns, and fields of structs, of single values"
            )
        if not _can_have(scalars[name]):
            raise InvalidInput(
                f"{where} of type {scalars[name].type}, which has no Bloom filters: name columns of whole numbers, "
                "decimals, dates, timestamps, STRING without a collation, VARCHAR or BINARY"
            )


def _alone(fields: Sequence[Field], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Field]]:
    """Yield the columns and struct fields that have at most a single value in a row."""
    for field in fields:
        path = (*above, field.name)
        yield path, field
        if isinstance(field.type, StructType):
            yield from _alone(field.type.fields, path)


def _can_have(field: Field) -> bool:
    return isinstance(field.type, AtomicType) and field.type.family in _FILTERED


def check_text(name: object, value: object) -> None:
    """Raise InvalidInput unless `name` and `value` can be kept as a property."""
    for text in (name, value):
        if not isinstance(text, str):
            raise InvalidInput(f"the property {name!r} = {value!r} must be text")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidInput(
                f"the property {name!r} = {value!r} has half a surrogate pair: remove it"
            ) from None
    if name == "":
        raise InvalidInput("the name of a property is empty: give it at least one character")


def is_setting(name: str) -> bool:
    """Return whether a property of another format's table can be a lakelog property, word for word."""
    return name != "" and not name.startswith(RESERVED) and name not in _PLACES


def check_alterable(names: Iterable[str]) -> None:
    """Raise InvalidInput for a name of a part of the table's definition, which cannot be set or removed."""
    for name in names:
        if name in _PLACES:
            raise InvalidInput(
                f"the property {name} belongs to the table itself and cannot be changed: create a new table "
                "for it"
            )


def _known(name: str) -> TableProperty[Any]:
    try:
        return KNOWN[name]
    except KeyError:
        raise InvalidInput(
            f"the property {name} is not known; names under {RESERVED!r} are reserved, and the known ones "
            f"are {', '.join(KNOWN)}: correct it, or choose a name outside of the reserved ones"
        ) from None
