"""The types of columns, as they are stored in the log.

Atomic types have the names of Spark's JSON, so that the round trip to Spark loses nothing. A string with a
collation has a type family of its own, which code that compares strings by their bytes does not know.
Structs, lists and maps carry the ids that make evolution safe. An id belongs to one column for ever, and so
does its physical name, which is its name in data files. This module knows neither Spark nor Arrow.
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
"""The family of strings that are compared by a collation. Equal values may have different bytes."""
BINARY_COLLATION = "UTF8_BINARY"

ColumnPath: TypeAlias = tuple[str, ...]
"""The names that lead from a column of a table to a part of it."""

Scalar: TypeAlias = bool | int | float | str | None
"""A value in its JSON form (see `literals`)."""
_COLLATED = re.compile(r"string collate (\w+)")
# The names of Spark's own collations and of ICU's. Only a Spark version knows which locales exist.
_COLLATION = re.compile(
    r"UTF8_BINARY_RTRIM|UTF8_LCASE(_RTRIM)?|"
    r"(UNICODE|[a-z]{2,3}(_[A-Z][a-z]{3})?(_[A-Z]{3})?)(_(CI|CI_AI|AI))?(_RTRIM)?"
)


class AtomicType(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="atomic"):
    """A type without parts. `name` is Spark's JSON name: `long`, `decimal(10,2)`, `interval day to second`, …

    Raises InvalidInput if the name is malformed or out of bounds, and Unsupported if the type cannot be
    stored.
    """

    name: str

    def __post_init__(self) -> None:
        _checked(self.name)

    @property
    def family(self) -> str:
        """The name without parameters, or `COLLATED`. For intervals: `interval year-month` or `interval
        day-time`."""
        return _checked(self.name)[0]

    @property
    def precision(self) -> int:
        """The total digits of a decimal, or the digits of a second of a time."""
        self._check_family("decimal", "time")
        return _checked(self.name)[1]

    @property
    def scale(self) -> int:
        self._check_family("decimal")
        return _checked(self.name)[2]

    @property
    def length(self) -> int:
        """The length of a char or varchar, in characters."""
        self._check_family("char", "varchar")
        return _checked(self.name)[1]

    def _check_family(self, *families: str) -> None:
        if self.family not in families:
            raise InvalidInput(f"the type {self.name} has no such parameter: {', '.join(families)} have")

    def __str__(self) -> str:
        return self.name


_FORMS: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    **dict.fromkeys(("float", "double"), (float, int, str)),
    **dict.fromkeys(("decimal", "string", "binary"), (str,)),
    **dict.fromkeys(
        ("byte", "short", "integer", "long", "date", "timestamp", "timestamp_ntz", "time"), (int,)
    ),
    **dict.fromkeys(("interval year-month", "interval day-time"), (int,)),
}
"""The JSON forms of values by the families of their types."""


class TypedValue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value of a column: a JSON literal of the atomic type `type`.

    The type is the column's when the value was stored. For any text it is `string`. The column may have another
    type by now. Raises InvalidInput if values of the type have another form.
    """

    type: str
    value: Scalar

    def __post_init__(self) -> None:
        forms = _FORMS.get(_checked(self.type)[0], ())
        if self.value is not None and type(self.value) not in forms:
            raise InvalidInput(f"{self.value!r} is not a value of the type {self.type} in its JSON form")


class Default(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A column's default. `current` is SQL text for new rows.

    `exists` is the value of rows in files without the column. None is NULL.
    """

    current: str | None = None
    exists: TypedValue | None = None


class Generated(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The expression in Spark's SQL that computes a column from other columns of the same row, and these
    columns.

    They are columns of the table, by name. They cannot change until this column is dropped.
    """

    sql: str
    columns: tuple[str, ...]


class Identity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rule for the values of rows that give none: `start`, then `step` further for each row.

    With `always`, a row cannot be given a value.
    """

    start: Int64
    step: Int64
    always: bool


class Field(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A column, or a field of a struct. An id of 0 means "not assigned yet" and is never stored.

    `widened` has former type names that files may still have. Texts have none, because files have all texts
    alike.
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
    """A type of named fields."""

    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return "struct<" + ", ".join(f"{field.name}: {field.type}" for field in self.fields) + ">"


class ListType(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True,
    tag_field="kind", tag="list",
):  # fmt: skip
    """A list whose elements all have the same type. For `element_widened` see `Field`."""

    element_id: Int32 = 0
    element: Type
    element_nullable: bool = True
    element_widened: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"array<{self.element}>"


class MapType(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True,
    tag_field="kind", tag="map",
):  # fmt: skip
    """A map. All its keys have the same type, and so have all its values. For their former types see `Field`."""

    key_id: Int32 = 0
    key: Type
    key_widened: tuple[str, ...] = ()
    value_id: Int32 = 0
    value: Type
    value_nullable: bool = True
    value_widened: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


Type: TypeAlias = AtomicType | StructType | ListType | MapType


def children(type: Type) -> tuple[Field, ...]:
    """Return the direct parts of `type` as fields. Elements, keys and values are fields with those names."""
    match type:
        case StructType():
            return type.fields
        case ListType():
            return (
                _part(type.element_id, ELEMENT, type.element, type.element_nullable, type.element_widened),
            )
        case MapType():
            return (
                _part(type.key_id, KEY, type.key, False, type.key_widened),
                _part(type.value_id, VALUE, type.value, type.value_nullable, type.value_widened),
            )
        case AtomicType():
            return ()


def with_children(type: Type, fields: tuple[Field, ...]) -> Type:
    """Return `type` with other parts. For a list or map these are fields like those of `children`, in
    order."""
    match type:
        case StructType():
            return StructType(fields)
        case ListType():
            (element,) = fields
            return ListType(
                element_id=element.id, element=element.type,
                element_nullable=element.nullable, element_widened=element.widened,
            )  # fmt: skip
        case MapType():
            key, value = fields
            return MapType(
                key_id=key.id, key=key.type, key_widened=key.widened,
                value_id=value.id, value=value.type,
                value_nullable=value.nullable, value_widened=value.widened,
            )  # fmt: skip
        case AtomicType():
            return type


def walk(fields: tuple[Field, ...], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Field]]:
    """Yield every field with its path, a parent before its parts."""
    for field in fields:
        field_path = (*path, field.name)
        yield field_path, field
        yield from walk(children(field.type), field_path)


def same_shape(first_type: Type, other_type: Type) -> bool:
    """Return whether two types are equal, ignoring ids, physical names, comments, defaults and metadata."""
    return list(_shape(first_type)) == list(_shape(other_type))


def _shape(type: Type) -> Iterator[object]:
    yield type.name if isinstance(type, AtomicType) else type.__class__
    for part in children(type):
        yield part.name, part.nullable
        yield from _shape(part.type)
    yield None


def _part(id: int, name: str, type: Type, nullable: bool, widened: tuple[str, ...]) -> Field:
    return Field(id=id, name=name, physical=name, type=type, nullable=nullable, widened=widened)


@lru_cache(maxsize=4096)
def _checked(name: str) -> tuple[str, int, int]:
    """Return family, first and second parameter of an atomic type's name in canonical spelling."""
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
    """Return whether values of `type` are strings with a collation, at any depth."""
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
