"""Single values of columns: their JSON form and their Arrow form, alone and with their type.

In JSON, integers, booleans and strings are themselves. A date is its days since 1970, a timestamp its
microseconds since 1970, a time its microseconds since midnight, an interval its months or microseconds. A
decimal is its digits as a string, binary is base64, and a float is a number or "NaN", "Infinity",
"-Infinity". In Arrow, each type has a single value type, chosen so that Arrow compares its values as Spark
does (except for NaN). Types without an order (variant) and nested types have none.

A `TypedValue` is a value with its type. Its column may have a wider type by now. The type of any text is
`string`. The value of a CHAR column has all of its blanks.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from lakelog.catalog.core.schema.type_widening import is_widening
from lakelog.catalog.core.schema.types import COLLATED, AtomicType, Type, TypedValue
from lakelog.log.errors import InvalidInput

VALUE_TYPES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "char": pa.string(),
    "varchar": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "time": pa.time64("us"),
    "interval year-month": pa.int32(),
    "interval day-time": pa.int64(),
}

_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def value_type(type: Type) -> pa.DataType | None:
    """Return the Arrow type of single values of `type`, or None if values have no order."""
    return _atomic(type.name) if isinstance(type, AtomicType) else None


@lru_cache(maxsize=4096)
def _atomic(name: str) -> pa.DataType | None:
    type = AtomicType(name)
    if type.family == "decimal":
        return pa.decimal128(type.precision, type.scale)
    return VALUE_TYPES.get(type.family)


def to_arrow(values: Sequence[Any], type: pa.DataType) -> pa.Array:
    """Return JSON values as an array of the value type `type`. Raises InvalidInput for a value of another
    type."""
    try:
        if pa.types.is_date32(type):
            return pa.array(values, pa.int32()).cast(type)
        if pa.types.is_timestamp(type) or pa.types.is_time64(type):
            return pa.array(values, pa.int64()).cast(type)
        if pa.types.is_decimal(type):
            return pa.array([None if value is None else Decimal(value) for value in values], type)
        if pa.types.is_floating(type):
            return pa.array([_FLOATS[value] if isinstance(value, str) else value for value in values], type)
        if pa.types.is_binary(type):
            return pa.array(
                [None if value is None else base64.b64decode(value, validate=True) for value in values], type
            )
        return pa.array(values, type)
    except (pa.ArrowException, TypeError, ValueError, ArithmeticError, KeyError) as error:
        raise InvalidInput(f"a stored value is not of the type {type}: {error}") from None


def from_arrow(array: pa.Array) -> list[Any]:
    """Return an array of a value type as JSON values."""
    type = array.type
    if pa.types.is_date32(type):
        return _plain(array.cast(pa.int32()))
    if pa.types.is_timestamp(type) or pa.types.is_time64(type):
        return _plain(array.cast(pa.int64()))
    if pa.types.is_decimal(type):
        return [None if value is None else format(value, "f") for value in array.to_pylist()]
    if pa.types.is_floating(type):
        return [float_to_json(value) for value in array.to_pylist()]
    if pa.types.is_binary(type):
        return [
            None if value is None else base64.b64encode(value).decode("ascii") for value in array.to_pylist()
        ]
    return _plain(array)


def float_to_json(value: float | None) -> float | str | None:
    """Return a float in a form that JSON can hold."""
    if value is None or math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def float_from_json(value: float | str) -> float:
    """Return the float that `float_to_json` wrote. Raises InvalidInput for another string."""
    if isinstance(value, str):
        if value not in _FLOATS:
            raise InvalidInput(f"{value!r} is not a number: write NaN, Infinity or -Infinity")
        return _FLOATS[value]
    return float(value)


def _plain(array: pa.Array) -> list[Any]:
    values: list[Any] = array.to_pylist()
    return values


# Values with their type

_RANGES = {"byte": 8, "short": 16, "integer": 32, "long": 64}


def single_type(type: Type) -> AtomicType | None:
    """Return the type of the values of a column of `type`. None for variants and types with parts."""
    if not isinstance(type, AtomicType) or type.family == "variant":
        return None
    return AtomicType("string") if type.family in ("char", "varchar", COLLATED) else type


def arrow_value(value: TypedValue) -> pa.Array:
    """Return an array of this value alone. Raises InvalidInput if it is not a value of its type."""
    return to_arrow([value.value], value_type(AtomicType(value.type)) or pa.null())


def widened(value: TypedValue, type: Type) -> TypedValue:
    """Return a value in the type that its column has now.

    Raises InvalidInput if it is not a value of its type, or if that type does not widen to `type`.
    """
    target = single_type(type)
    if target is None or not is_widening(AtomicType(value.type), target):
        raise InvalidInput(f"a value of the type {value.type} is not a value of the type {type}")
    try:
        array = arrow_value(value).cast(value_type(target))
    except pa.ArrowException as error:
        raise InvalidInput(f"the value {value.value} is not a value of the type {type}: {error}") from None
    return TypedValue(type=target.name, value=from_arrow(array)[0])


def stored_value(value: TypedValue, type: Type) -> TypedValue | None:
    """Return a value from elsewhere as a column of `type` keeps it. None for NULL of any type.

    Raises InvalidInput if the column cannot hold it.
    """
    if value.value is None:
        return None
    single_value = widened(value, type)
    if not isinstance(single_value.value, str) or single_value.type != "string":
        return single_value
    assert isinstance(type, AtomicType), "others have no single values"
    text = _fitted_text(single_value.value, type)
    if text is None:
        raise InvalidInput(f"the text {single_value.value!r} is too long for {type}")
    return TypedValue(type=single_value.type, value=text)


def value_of(value: Any, type: Type) -> TypedValue | None:
    """Return a Python value as a value of a column of `type`. None if the column cannot hold it.

    A number may be of any class. A timestamp has a time zone if its column has.
    """
    match value:
        case bool():
            return fitted(value, type)
        case int():
            is_months = isinstance(type, AtomicType) and type.family == "interval year-month"
            return fitted(int(value) if is_months else Decimal(int(value)), type)
        case float():
            return fitted(Decimal(repr(float(value))) if math.isfinite(value) else value, type)
        case Decimal() if not value.is_finite():
            return None
        case _:
            return fitted(value, type)


def fitted(value: Any, type: Type) -> TypedValue | None:
    """Return a literal's Python value as a value of a column of `type`. None if the column cannot hold it.

    A finite number is a Decimal or a float. Months are an int. Other intervals are a timedelta.
    """
    target = single_type(type)
    if target is None or not isinstance(type, AtomicType):
        return None
    try:
        held = _FITS[type.family](value, type)
        if isinstance(held, timedelta):
            held = held // timedelta(microseconds=1)
        array = pa.array([held], value_type(target))
    except (ValueError, ArithmeticError, TypeError, pa.ArrowException):
        return None
    return None if held is None else TypedValue(type=target.name, value=from_arrow(array)[0])


def _fitted_text(text: str, type: AtomicType) -> str | None:
    """Return a text as a column of a type of texts holds it, or None if it is too long."""
    if type.family in ("string", COLLATED):
        return text
    content = text if len(text) <= type.length else text[: type.length] + text[type.length :].lstrip(" ")
    if len(content) > type.length:
        return None
    return content.ljust(type.length) if type.family == "char" else content


def moment_text(value: TypedValue) -> str:
    """Return a date, a time, or both as ISO 8601 writes them, with a blank between: `2020-01-31 12:00:00.500000`.

    Years below 0 and above 9999 have a sign. A `timestamp` is in UTC.
    """
    family, number = AtomicType(value.type).family, value.value
    assert isinstance(number, int), "the value is of its type"
    if family == "date":
        return _date_text(number)
    days, since_midnight_us = divmod(number, 86_400_000_000)
    seconds, micros = divmod(since_midnight_us, 1_000_000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}"
    return clock if family == "time" else f"{_date_text(days)} {clock}"


def _date_text(days: int) -> str:
    year, month, day = str(np.datetime64(days, "D")).rsplit("-", 2)
    number = int(year)
    return f"{number:04}-{month}-{day}" if 0 <= number <= 9999 else f"{number:+05}-{month}-{day}"


def _integer(value: Any, type: AtomicType) -> int | None:
    bits = _RANGES[type.family]
    if not isinstance(value, Decimal) or value != value.to_integral_value():
        return None
    return int(value) if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def _decimal(value: Any, type: AtomicType) -> Decimal | None:
    if not isinstance(value, Decimal):
        return None
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    whole = len(digits) + exponent
    excess_digits = digits[max(0, whole + type.scale) :]
    if any(excess_digits) or (any(digits) and whole > type.precision - type.scale):
        return None
    return value


def _text(value: Any, type: AtomicType) -> str | None:
    return _fitted_text(value, type) if isinstance(value, str) else None


def _float(value: Any, type: AtomicType) -> float | None:
    return float(value) if isinstance(value, Decimal | float) else None


def _timestamp(value: Any, type: AtomicType) -> datetime | None:
    return value if isinstance(value, datetime) and value.tzinfo is not None else None


def _timestamp_ntz(value: Any, type: AtomicType) -> datetime | None:
    if isinstance(value, datetime):
        return value if value.tzinfo is None else None
    return datetime(value.year, value.month, value.day) if isinstance(value, date) else None


def _time(value: Any, type: AtomicType) -> time | None:
    return value if isinstance(value, time) and value.tzinfo is None else None


def _exactly(kind: type) -> Callable[[Any, AtomicType], Any]:
    return lambda value, type_: value if type(value) is kind else None


def _duration(value: Any, type: AtomicType) -> timedelta | None:
    return value if isinstance(value, timedelta) else None


_FITS: dict[str, Callable[[Any, AtomicType], Any]] = {
    "boolean": _exactly(bool),
    "byte": _integer,
    "short": _integer,
    "integer": _integer,
    "long": _integer,
    "float": _float,
    "double": _float,
    "decimal": _decimal,
    "string": _text,
    COLLATED: _text,
    "char": _text,
    "varchar": _text,
    "binary": _exactly(bytes),
    "date": _exactly(date),
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp_ntz,
    "time": _time,
    "interval year-month": _exactly(int),
    "interval day-time": _duration,
}
