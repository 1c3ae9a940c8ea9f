"""The types of columns, as they are stored in the log.

Atomic types are named as Spark's JSON names them, so that nothing is lost on the way to Spark and back.
A text with a collation is a type of its own family: whatever compares texts by their bytes does not know it.
Structs, lists and maps carry the ids that make evolution safe: an id belongs to one column for ever, and so
does its physical name, which is what stands in data files. This module knows neither Spark nor Arrow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NoReturn, TypeAlias

import msgspec

from lakelog.log.errors import InvalidInput, Unsupported
from lakelog.log.grammar import Int32, Int64

ELEMENT, KEY, VALUE = "element", "key", "value"
"""The path parts (and the names in data files) of a list's elements and of a map's keys and values."""

DECIMAL_PRECISION_LIMIT = 38
TIME_PRECISION_LIMIT = 6

_PLAIN = frozenset(
    (
        "boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary", "date",
        "timestamp", "timestamp_ntz", "variant",
    )
)  # fmt: skip
_YEAR_MONTH = ("year", "month")
_DAY_TIME = ("day", "hour", "minute", "second")
_PARAMETRISED = re.compile(r"(decimal|char|varchar|time)\(\s*(-?\d+)\s*(?:,\s*(-?\d+)\s*)?\)")
_INTERVAL = re.compile(r"interval (\w+)(?: to (\w+))?")
COLLATED = "collated string"
"""The family of texts that are compared by a collation: values that are equal may have different bytes."""
BINARY_COLLATION = "UTF8_BINARY"
_COLLATED = re.compile(r"string collate (\w+)")
# What Spark calls its own and ICU's; which locales there are, a Spark version knows.
_COLLATION = re.compile(
    r"UTF8_BINARY_RTRIM|UTF8_LCASE(_RTRIM)?|"
    r"(UNICODE|[a-z]{2,3}(_[A-Z][a-z]{3})?(_[A-Z]{3})?)(_(CI|CI_AI|AI))?(_RTRIM)?"
)


class AtomicType(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="atomic"):
    """A type without parts. `name` is Spark's JSON name: `long`, `decimal(10,2)`, `interval day to second`, …

    InvalidInput for a name that is malformed or out of bounds, Unsupported for a type that cannot be stored.
    """

    name: str

    def __post_init__(self) -> None:
        _checked(self.name)

    @property
    def family(self) -> str:
        """The name without parameters; for intervals `interval year-month` and `interval day-time`; `COLLATED`."""
        return _checked(self.name)[0]

    @property
    def precision(self) -> int:
        """Of a decimal (total digits) or a time (digits of a second)."""
        self._check_family("decimal", "time")
        return _checked(self.name)[1]

    @property
    def scale(self) -> int:
        self._check_family("decimal")
        return _checked(self.name)[2]

    @property
    def length(self) -> int:
        """Of a char or varchar, in characters."""
        self._check_family("char", "varchar")
        return _checked(self.name)[1]

    def _check_family(self, *families: str) -> None:
        if self.family not in families:
            raise InvalidInput(f"the type {self.name} has no such parameter: {', '.join(families)} have")

    def __str__(self) -> str:
        return self.name


class Default(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A column's default, as SQL text. `current` is for new rows, `exists` for rows older than the column."""

    current: str | None = None
    exists: str | None = None


class Generated(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a column's values are computed from others of the same row: an expression in Spark's SQL, and its columns.

    These are columns of the table, by their names, which cannot change until this column is dropped.
    """

    sql: str
    columns: tuple[str, ...]


class Identity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the values of a column are made for rows that give none: `start`, then each `step` further.

    `always`: a row cannot be given a value.
    """

    start: Int64
    step: Int64
    always: bool


class Field(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A column, or a field of a struct. An id of 0 means "not assigned yet" and is never stored.

    `widened` has the names of its former types that files may still have, and that Iceberg does not read as this one.
    """

    id: Int32 = 0
    name: str
    physical: str = ""
    type: Type
    nullable: bool = True
    comment: str | None = None
    default: Default | None = None
    generated: Generated | None = None
    identity: Identity | None = None
    metadata: dict[str, Any] = {}
    widened: tuple[str, ...] = ()


class StructType(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="struct"):
    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return "struct<" + ", ".join(f"{field.name}: {field.type}" for field in self.fields) + ">"


class ListType(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True,
    tag_field="kind", tag="list",
):  # fmt: skip
    element_id: Int32 = 0
    element: Type
    element_nullable: bool = True

    def __str__(self) -> str:
        return f"array<{self.element}>"


class MapType(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True,
    tag_field="kind", tag="map",
):  # fmt: skip
    key_id: Int32 = 0
    key: Type
    value_id: Int32 = 0
    value: Type
    value_nullable: bool = True

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


Type: TypeAlias = AtomicType | StructType | ListType | MapType


def children(type: Type) -> tuple[Field, ...]:
    """Return the direct parts of `type` as fields; elements, keys and values are fields of those names."""
    match type:
        case StructType():
            return type.fields
        case ListType():
            return (_part(type.element_id, ELEMENT, type.element, type.element_nullable),)
        case MapType():
            return (
                _part(type.key_id, KEY, type.key, False),
                _part(type.value_id, VALUE, type.value, type.value_nullable),
            )
        case AtomicType():
            return ()


def with_children(type: Type, fields: tuple[Field, ...]) -> Type:
    """Return `type` with other parts, which for a list or map are those that `children` gives, in order."""
    match type:
        case StructType():
            return StructType(fields)
        case ListType():
            (element,) = fields
            return ListType(element_id=element.id, element=element.type, element_nullable=element.nullable)
        case MapType():
            key, value = fields
            return MapType(
                key_id=key.id, key=key.type,
                value_id=value.id, value=value.type, value_nullable=value.nullable,
            )  # fmt: skip
        case AtomicType():
            return type


def walk(fields: tuple[Field, ...], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Field]]:
    """Yield every field with its path, a parent before its parts."""
    for field in fields:
        here = (*path, field.name)
        yield here, field
        yield from walk(children(field.type), here)


def same_shape(one: Type, other: Type) -> bool:
    """Return whether two types are equal, ignoring ids, physical names, comments, defaults and metadata."""
    return list(_shape(one)) == list(_shape(other))


def _shape(type: Type) -> Iterator[object]:
    yield type.name if isinstance(type, AtomicType) else type.__class__
    for part in children(type):
        yield part.name, part.nullable
        yield from _shape(part.type)
    yield None


def _part(id: int, name: str, type: Type, nullable: bool) -> Field:
    return Field(id=id, name=name, physical=name, type=type, nullable=nullable)


@lru_cache(maxsize=4096)
def _checked(name: str) -> tuple[str, int, int]:
    """Return family, first and second parameter of an atomic type's name, spelled canonically."""
    if name in _PLAIN:
        return name, 0, 0
    if match := _PARAMETRISED.fullmatch(name):
        return _parametrised(name, match[1], int(match[2]), None if match[3] is None else int(match[3]))
    if match := _INTERVAL.fullmatch(name):
        return _interval(name, match[1], match[2])
    if name == "interval":
        _refused(name, "Parquet cannot store calendar intervals: use a year-month or a day-time interval")
    if name in ("void", "null"):
        _refused(name, "a column of NULLs has no type to store: cast it to one")
    if match := _COLLATED.fullmatch(name):
        return _collated(name, match[1])
    if re.match(r"(var)?char\b.*\bcollate\b", name):
        _refused(
            name, "CHAR and VARCHAR are compared by their bytes (UTF8_BINARY): use STRING with the collation"
        )
    if name.startswith(("geometry", "geography")):
        _refused(name, "lakelog does not store spatial types yet: store them as binary")
    _refused(name, "lakelog does not know this type")


def _collated(name: str, collation: str) -> tuple[str, int, int]:
    if collation == BINARY_COLLATION:
        raise InvalidInput(f"the type {name} is not spelled canonically: write string")
    if not _COLLATION.fullmatch(collation):
        raise InvalidInput(
            f"the type {name} has an unknown collation: write one as Spark does, such as UTF8_LCASE, UNICODE_CI or "
            "de_CI_AI"
        )
    return COLLATED, 0, 0


def is_collated(type: Type) -> bool:
    """Return whether values of `type` are texts that a collation compares, at any depth."""
    if isinstance(type, AtomicType):
        return type.family == COLLATED
    return any(is_collated(part.type) for part in children(type))


def _parametrised(name: str, family: str, first: int, second: int | None) -> tuple[str, int, int]:
    match family:
        case "decimal":
            scale = 0 if second is None else second
            if not (1 <= first <= DECIMAL_PRECISION_LIMIT and 0 <= scale <= first):
                raise InvalidInput(
                    f"the type {name} is out of bounds: the precision of a decimal is 1 to "
                    f"{DECIMAL_PRECISION_LIMIT}, its scale 0 to the precision"
                )
            canonical = f"decimal({first},{scale})"
        case "time":
            scale = 0
            if not 0 <= first <= TIME_PRECISION_LIMIT:
                raise InvalidInput(
                    f"the type {name} is out of bounds: a time has 0 to {TIME_PRECISION_LIMIT} digits of a "
                    "second"
                )
            canonical = f"time({first})"
        case _:
            scale = 0
            if first < 1:
                raise InvalidInput(f"the type {name} is out of bounds: its length is at least 1")
            canonical = f"{family}({first})"
    if name != canonical:
        raise InvalidInput(f"the type {name} must be spelled {canonical}")
    return family, first, scale


def _interval(name: str, start: str, end: str | None) -> tuple[str, int, int]:
    for family, units in (("interval year-month", _YEAR_MONTH), ("interval day-time", _DAY_TIME)):
        if start in units and end is None:
            return family, units.index(start), units.index(start)
        if start in units and end in units and units.index(start) < units.index(end):
            return family, units.index(start), units.index(end)
    raise InvalidInput(
        f"the type {name} is not an interval: write one of its units, or `interval year to month`, "
        "`interval day to second` or a narrower range"
    )


def _refused(name: str, reason: str) -> NoReturn:
    raise Unsupported(f"the type {name} is not supported: {reason}")
