"""Single values of columns: their JSON form and their Arrow form.

In JSON, integers, booleans and strings are themselves; a date is its days and a timestamp its microseconds since 1970,
a time its microseconds since midnight, an interval its months or microseconds; a decimal is its digits as a string;
binary is base64; a float is a number or "NaN", "Infinity", "-Infinity". In Arrow, each type has one value type, chosen
so that Arrow compares it as Spark does (except for NaN). Types without an order (variant) and nested ones have none.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa

from lakelog.catalog.core.schema.types import AtomicType, Type
from lakelog.log.errors import InvalidInput

Scalar: TypeAlias = bool | int | float | str | None
"""A value in its JSON form."""

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
    """Return the Arrow type of single values of `type`, or None where values have no order."""
    return _atomic(type.name) if isinstance(type, AtomicType) else None


@lru_cache(maxsize=4096)
def _atomic(name: str) -> pa.DataType | None:
    type = AtomicType(name)
    if type.family == "decimal":
        return pa.decimal128(type.precision, type.scale)
    return VALUE_TYPES.get(type.family)


def to_arrow(values: Sequence[Any], type: pa.DataType) -> pa.Array:
    """Return JSON values as an array of the value type `type`. InvalidInput for a value that is not of that type."""
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
            return pa.array([None if value is None else base64.b64decode(value) for value in values], type)
        return pa.array(values, type)
    except (pa.ArrowException, TypeError, ValueError, ArithmeticError, KeyError) as error:
        raise InvalidInput(f"a partition value or statistic is not of the type {type}: {error}") from None


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
    """Return a float as JSON can hold it."""
    if value is None or math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def float_from_json(value: float | str) -> float:
    """Return the float that `float_to_json` wrote. InvalidInput for another string."""
    if isinstance(value, str):
        if value not in _FLOATS:
            raise InvalidInput(f"{value!r} is not a number: write NaN, Infinity or -Infinity")
        return _FLOATS[value]
    return float(value)


def _plain(array: pa.Array) -> list[Any]:
    values: list[Any] = array.to_pylist()
    return values
