"""Literals as exact numbers, in the unit of the column that they are compared with.

The unit of an integer is 1, of a decimal its last digit, and of a date a day. The unit of timestamps and
times is a microsecond, and of intervals a month or a microsecond.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import pyarrow as pa

from lakelog.catalog.core.schema.literals import float_from_json, to_arrow, value_type
from lakelog.catalog.core.schema.predicate import FilterLiteral
from lakelog.catalog.core.schema.predicate import literal as literal_of
from lakelog.catalog.core.schema.types import AtomicType
from lakelog.log.errors import InvalidInput

DAY_US = 86_400_000_000
_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64, "interval year-month": 32, "date": 32}
_NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal")


def exact_value(literal: FilterLiteral, kind: AtomicType) -> Fraction | float | None:
    """Return `literal` in units of `kind`; NaN and the infinities as floats.

    None if the two cannot be compared.
    """
    value, family = literal.value, kind.family
    type_family = _family(literal.type)
    if isinstance(value, bool):
        return None
    if family in _NUMBERS:
        number = _number(value, type_family)
        if number is None or isinstance(number, float):
            return number
        return number * 10**kind.scale if family == "decimal" else number
    if isinstance(value, str) and type_family in (None, "string", "varchar"):
        time_literal = _parsed(value, family)
        return None if time_literal is None else exact_value(time_literal, kind)
    if not isinstance(value, int):
        return None
    if (
        type_family in (None, family)
        or type_family in ("long", "integer")
        and family == "interval year-month"
    ):
        return Fraction(value)
    if (type_family, family) == ("date", "timestamp_ntz"):
        return Fraction(value * DAY_US)
    if (type_family, family) == ("timestamp_ntz", "date"):
        return Fraction(value, DAY_US)
    return None


def of_double(exact: Fraction, units: int) -> tuple[int, int]:
    """Return the first and the last whole number of `units` of 1 with the same double as `exact`.

    The first is beyond the last if there is none. Halfway between two doubles, the even double is the
    nearest.
    """
    value = float(exact / units)
    bits = struct.unpack("<q", struct.pack("<d", value))[0]
    low, high = (
        (Fraction(value) + Fraction(near if math.isfinite(near) else value)) / 2 * units
        for near in (math.nextafter(value, -math.inf), math.nextafter(value, math.inf))
    )
    if bits % 2:
        return math.floor(low) + 1, math.ceil(high) - 1
    return math.ceil(low), math.floor(high)


def range_of(kind: AtomicType) -> tuple[int, int]:
    """Return the lowest and the highest value of `kind`, in its unit."""
    if kind.family == "decimal":
        highest = 10**kind.precision - 1
        return -highest, highest
    if kind.family == "time":
        return 0, DAY_US - 1
    bits = _BITS.get(kind.family, 64)
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def scalar_of(number: int, kind: AtomicType) -> pa.Scalar:
    """Return a number of units of `kind` as a value that Arrow compares."""
    if kind.family == "decimal":
        digits = tuple(map(int, str(abs(number))))
        return pa.scalar(Decimal((int(number < 0), digits, -kind.scale)), value_type(kind))
    return to_arrow([number], value_type(kind))[0]


def _number(value: object, given: str | None) -> Fraction | float | None:
    if given not in (None, *_NUMBERS):
        return None
    try:
        if isinstance(value, str) and given == "decimal":
            return Fraction(Decimal(value))
        if isinstance(value, str):
            value = float_from_json(value) if given in ("float", "double") else _decimal_or_float(value)
    except (InvalidOperation, ValueError, InvalidInput):
        return None
    if isinstance(value, float):
        if not math.isfinite(value):
            return value
        # A literal of Spark's FLOAT may come as its shortest digits, which mean the nearest float.
        return Fraction(struct.unpack("f", struct.pack("f", value))[0] if given == "float" else value)
    return Fraction(value) if isinstance(value, int | Decimal) else None


def _decimal_or_float(text: str) -> Decimal | float:
    return float_from_json(text) if text in ("NaN", "Infinity", "-Infinity") else Decimal(text)


def _family(name: str | None) -> str | None:
    if name is None or not name.startswith("interval"):
        return None if name is None else name.split("(")[0]
    return "interval year-month" if "year" in name or "month" in name else "interval day-time"


def _parsed(text: str, family: str) -> FilterLiteral | None:
    """Read an ISO date, time or timestamp; a timestamp of a point in time needs an offset."""
    try:
        match family:
            case "date":
                return literal_of(dt.date.fromisoformat(text))
            case "time":
                return literal_of(dt.time.fromisoformat(text))
            case "timestamp" | "timestamp_ntz":
                timestamp = literal_of(dt.datetime.fromisoformat(text))
                return timestamp if timestamp.type == family else None
    except (ValueError, InvalidInput):
        return None
    return None
