"""Bounds and partition values in the forms of Iceberg's manifests. Pure.

Source: the specification of Iceberg's table format, appendix D (binary single-value serialization).
"""

from __future__ import annotations

import base64
import datetime as dt
import struct
from decimal import Decimal
from typing import Any

from lakelog.catalog.core.schema import AtomicType, Scalar, float_from_json, float_to_json
from lakelog.log.errors import FormatError

_EPOCH = dt.datetime(1970, 1, 1)
_PACKED = {
    "byte": "<i",
    "short": "<i",
    "integer": "<i",
    "long": "<q",
    "float": "<f",
    "double": "<d",
    "date": "<i",
    "time": "<q",
    "timestamp": "<q",
    "timestamp_ntz": "<q",
}


def binary(value: Scalar, type: AtomicType) -> bytes:
    """Return a JSON literal of a column (see `literals`) as Iceberg's bytes."""
    family = type.family
    if family == "boolean":
        return b"\1" if value else b"\0"
    if family == "binary":
        return base64.b64decode(str(value))
    if family == "decimal":
        return _whole(_unscaled(Decimal(str(value)), type.scale))
    if family in ("float", "double"):
        assert isinstance(value, int | float | str)
        return struct.pack(_PACKED[family], float_from_json(value))
    if family in _PACKED:
        return struct.pack(_PACKED[family], value)
    return str(value).encode()


def _unscaled(value: Decimal, scale: int) -> int:
    """Return the digits as a whole number, exactly. Decimal's own arithmetic rounds to 28 digits."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    number: int = int("".join(map(str, digits))) * 10 ** (exponent + scale)
    return -number if sign else number


def _whole(number: int) -> bytes:
    """Return a whole number, big-endian, in the fewest bytes that hold it with its sign."""
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


def as_number(value: Any, type: AtomicType) -> Any:
    """Return a partition value of Avro's writer or reader as a value that can be compared."""
    match value:
        case Decimal():
            return _unscaled(value, type.scale)
        case dt.datetime():
            since = value.replace(tzinfo=None) - _EPOCH
            return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        case dt.date():
            return (value - _EPOCH.date()).days
        case dt.time():
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        case _:
            return value


def from_partition(value: Any, type: AtomicType) -> Scalar:
    """Return a partition value from Avro's reader as a JSON literal of its type."""
    match value:
        case None | bool():
            return value
        case Decimal():
            return format(value, "f")
        case float() if type.family in ("float", "double"):
            return float_to_json(value)
        case bytes() if type.family == "binary":
            return base64.b64encode(value).decode()
        case str() if type.family == "string":
            return value
        case _:
            number = as_number(value, type)
            if not isinstance(number, int):
                raise FormatError(f"a manifest has the value {value!r} for a partition field of type {type}")
            return number


def bound(value: Any, type: AtomicType) -> bytes:
    """Return a result of `as_number` as Iceberg's bytes."""
    match type.family:
        case "decimal":
            return _whole(value)
        case "binary":
            return bytes(value)
        case "float" | "double":
            return struct.pack(_PACKED[type.family], value)
        case _:
            return binary(value, type)


def in_partition(value: Scalar, type: AtomicType) -> Any:
    """Return a partition value for Avro's writer."""
    if value is None:
        return None
    match type.family:
        case "binary":
            return base64.b64decode(str(value))
        case "decimal":
            return Decimal(str(value))
        case "float" | "double":
            assert isinstance(value, int | float | str)
            return float_from_json(value)
        case _:
            return value


def avro_type(type: AtomicType) -> Any:
    """Return the Avro type of a partition value."""
    match type.family:
        case "boolean" | "float" | "double" | "long":
            return type.family
        case "byte" | "short" | "integer":
            return "int"
        case "binary":
            return "bytes"
        case "date":
            return {"type": "int", "logicalType": "date"}
        case "time":
            return {"type": "long", "logicalType": "time-micros"}
        case "timestamp":
            return {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True}
        case "timestamp_ntz":
            return {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False}
        case "decimal":
            size = _decimal_bytes(type.precision)
            return {
                "type": "fixed",
                "size": size,
                "name": f"decimal_{type.precision}_{type.scale}",
                "logicalType": "decimal",
                "precision": type.precision,
                "scale": type.scale,
            }
        case _:
            return "string"


def _decimal_bytes(precision: int) -> int:
    """Return the number of bytes that hold every number of so many digits, with its sign."""
    largest: int = 10**precision - 1
    return (largest.bit_length() + 8) // 8
