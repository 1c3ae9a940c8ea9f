"""Which columns get Bloom filters in the data files of a table, by its properties.

Only columns whose values are equal exactly where their bytes in a file are: floating-point numbers have two zeros and
many NaNs, texts with a collation are equal in many spellings, a CHAR is compared with blanks behind it. What is named
and cannot have a filter is refused when it is named; a column that changes later only loses its filter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lakelog.catalog.schema.properties import BLOOM_COLUMNS, columns_named
from lakelog.catalog.schema.schema import Schema, dotted
from lakelog.catalog.schema.types import AtomicType, Field, StructType
from lakelog.log.errors import InvalidInput

FAMILIES = frozenset(
    (
        "byte",
        "short",
        "integer",
        "long",
        "date",
        "timestamp",
        "timestamp_ntz",
        "decimal",
        "string",
        "varchar",
        "binary",
    )
)


def bloom_columns(properties: Mapping[str, str], schema: Schema) -> list[tuple[str, ...]]:
    """Return the paths of the columns that new files have filters of, in the schema's order."""
    named = set(columns_named(properties, BLOOM_COLUMNS))
    if not named:
        return []
    return [path for path, field in _alone(schema.fields) if dotted(path) in named and _can_have(field)]


def check_bloom_columns(properties: Mapping[str, str], schema: Schema) -> None:
    """Raise InvalidInput where the property names a column that cannot have a filter, or that a table of that schema
    does not have."""
    named = columns_named(properties, BLOOM_COLUMNS)
    if not named:
        return
    alone = {dotted(path): field for path, field in _alone(schema.fields)}
    all = {dotted(path): field for path, field in schema.walk()}
    for name in named:
        where = f"the property {BLOOM_COLUMNS.name} names the column {name}"
        if name not in all:
            raise InvalidInput(
                f"{where}, which the table does not have: name columns as in SQL, divided by commas"
            )
        if name not in alone:
            raise InvalidInput(
                f"{where}, of which a row has many: name columns, and fields of structs, of single values"
            )
        if not _can_have(alone[name]):
            raise InvalidInput(
                f"{where} of type {alone[name].type}, which has no Bloom filters: name columns of whole numbers, "
                "decimals, dates, timestamps, STRING without a collation, VARCHAR or BINARY"
            )


def _alone(fields: Sequence[Field], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Field]]:
    """Yield the columns and fields of structs that a row has one value of at most."""
    for field in fields:
        path = (*above, field.name)
        yield path, field
        if isinstance(field.type, StructType):
            yield from _alone(field.type.fields, path)


def _can_have(field: Field) -> bool:
    return isinstance(field.type, AtomicType) and field.type.family in FAMILIES
