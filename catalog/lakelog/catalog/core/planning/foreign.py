"""Conditions of other engines, which filter the rows themselves again, as far as a scan can take them.

Another engine does not always compare as lakelog does: it rounds a number to the column's type, or counts the
blanks behind a CHAR. Rule: a condition that is handed down is true for every row for which the other engine
finds it true.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal

import msgspec

from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.planning.bound import Bound, possible
from lakelog.catalog.core.schema.literals import float_from_json
from lakelog.catalog.core.schema.predicate import Column, FilterLiteral, Operand, Predicate
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.types import AtomicType, Field, StructType, Type
from lakelog.log.errors import LakelogError

_INTEGERS = ("byte", "short", "integer", "long")
_EXACT_BELOW = 2**53
"""Integers up to here are doubles, too."""


def handed_down(predicate: Predicate, schema: Schema) -> Bound | None:
    """Return a condition that is true whenever another engine finds `predicate` true; None if unknown."""
    if not _is_alike(predicate, schema):
        return None
    try:
        return possible(bind(predicate, schema, case_sensitive=True))
    except LakelogError:
        return None


def by_bytes(schema: Schema) -> Schema:
    """Return the schema as seen by engines without collations and CHAR: every text is plain bytes."""
    return msgspec.structs.replace(schema, fields=tuple(map(_plain, schema.fields)))


def _plain(field: Field) -> Field:
    return msgspec.structs.replace(field, type=_plain_type(field.type))


def _plain_type(type: Type) -> Type:
    if isinstance(type, StructType):
        return StructType(tuple(map(_plain, type.fields)))
    if isinstance(type, AtomicType) and type.family in ("collated string", "char", "varchar"):
        return AtomicType("string")
    return type


def _is_alike(operand: Operand, schema: Schema) -> bool:
    """Return whether other engines compare as lakelog does, for each comparison of a column with a value."""
    if not isinstance(operand, Predicate):
        return True
    columns = [argument for argument in operand.args if isinstance(argument, Column)]
    values = [argument for argument in operand.args if isinstance(argument, FilterLiteral)]
    if columns and values:
        field = schema.get(columns[0].path, case_sensitive=True)
        return field is not None and all(_is_same(field.type, value) for value in values)
    return all(_is_alike(argument, schema) for argument in operand.args)


def _is_same(type: Type, literal: FilterLiteral) -> bool:
    if literal.value is None:
        return True
    if not isinstance(type, AtomicType):
        return False
    match type.family, literal.type:
        case family, "long" if family in _INTEGERS or family == "decimal":
            return True
        case family, "double" if family in _INTEGERS:
            return abs(_number(literal)) < _EXACT_BELOW
        case "decimal", "decimal":
            exponent = Decimal(str(literal.value)).as_tuple().exponent
            return isinstance(exponent, int) and -exponent <= type.scale
        case "float", ("long" | "double"):
            return _is_float(_number(literal))
        case "double", "long":
            return abs(_number(literal)) <= _EXACT_BELOW
        case (("string" | "varchar"), "string"):
            return True
        case "interval day-time", "interval day to second":
            return True
        case (
            "double" | "boolean" | "binary" | "date" | "timestamp" | "timestamp_ntz" | "time"
        ) as family, given:
            return family == given
    return False


def _number(literal: FilterLiteral) -> float:
    value = literal.value
    assert isinstance(value, int | float | str)
    try:
        return float_from_json(value)
    except OverflowError:
        return math.inf


def _is_float(number: float) -> bool:
    try:
        return math.isnan(number) or struct.unpack("f", struct.pack("f", number))[0] == number
    except OverflowError:
        return False
