"""Partition values in a Delta log: texts in Delta's spelling become JSON literals of a column's type.

Rule: a text that could mean two values is refused, and so is a text that is not a value of the type. Pure.
"""

from __future__ import annotations

import base64
import re
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from lakelog.catalog.core.schema import AtomicType, from_arrow, value_type
from lakelog.log.errors import InvalidInput, Unsupported

_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})[ T](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6})0*)?)?(Z|[+-]\d{2}:?\d{2})?"
)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1)
_DAY_US = 86_400_000_000
_BOOLEANS = {"true": True, "false": False}
_RANGES = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_NUMBER = re.compile(r"[+-]?[0-9]+")


def time_zone_of(name: str) -> tzinfo:
    """Return the zone of that name. Raises InvalidInput."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise InvalidInput(f"{name!r} is not a time zone: write one as UTC or Europe/Berlin") from None


def literal_of(text: str | None, type: AtomicType, zone: tzinfo | None) -> Any:
    """Return the JSON literal of a text; None for NULL.

    Raises InvalidInput for a text that is not a value of the type.

    `zone` is the writer's zone, if it is known. It decides the meaning of a timestamp without a zone. Raises
    Unsupported if the zone matters and is not known.
    """
    if text is None or text == "":
        return None
    try:
        return _literal(text, type, zone)
    except (ValueError, ArithmeticError, KeyError, UnicodeError, pa.ArrowException) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{text!r} is not a valid {type}") from None


def _literal(text: str, type: AtomicType, zone: tzinfo | None) -> Any:
    match type.family:
        case "string" | "varchar":
            return text
        case "char":
            return text.ljust(type.length)
        case "boolean":
            return _BOOLEANS[text.lower()]
        case "byte" | "short" | "integer" | "long" as family:
            return _whole(text, _RANGES[family])
        case "float" | "double":
            number = pa.array([float(text)], pa.float64()).cast(value_type(type))
            return from_arrow(number)[0]
        case "decimal":
            return from_arrow(pa.array([Decimal(text)], value_type(type)))[0]
        case "date":
            return _day(text)
        case "timestamp" | "timestamp_ntz":
            return _time_us(text, type, zone)
        case "binary":
            # Delta writes bytes as characters, of one byte each or as UTF-8. For ASCII both are the same.
            return base64.b64encode(text.encode("ascii")).decode()
    raise Unsupported(f"lakelog does not know partitions by {type}")


def _whole(text: str, bits: int) -> int:
    if not _NUMBER.fullmatch(text) or not -(2 ** (bits - 1)) <= int(text) < 2 ** (bits - 1):
        raise ValueError(text)
    return int(text)


def _day(text: str) -> int:
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return date(int(match[1]), int(match[2]), int(match[3])).toordinal() - _EPOCH_DAY


def _time_us(text: str, type: AtomicType, zone: tzinfo | None) -> int:
    match = _TIME.fullmatch(text)
    if match is None and type.family == "timestamp_ntz":
        # The column had the type date when the file was written.
        return _day(text) * _DAY_US
    if match is None:
        raise ValueError(text)
    fraction = (match[5] or "").ljust(6, "0")
    local = datetime.fromisoformat(f"{match[1]}T{match[2]}:{match[3]}:{match[4] or '00'}.{fraction}")
    offset = match[6]
    if type.family == "timestamp_ntz":
        if offset is not None:
            raise ValueError(text)
        return _us(local)
    if offset is not None:
        return _us(datetime.fromisoformat(f"{local.isoformat()}{offset}").astimezone(UTC))
    if zone is None:
        raise Unsupported(
            f"{text!r} has no time zone: it is a time in the zone of the program that wrote it, which the log does not "
            "name; give that zone (as UTC or Europe/Berlin)"
        )
    return _us(local.replace(tzinfo=zone).astimezone(UTC))


def _us(time: datetime) -> int:
    since_epoch = time.replace(tzinfo=None) - _EPOCH
    return (since_epoch.days * 86_400 + since_epoch.seconds) * 1_000_000 + since_epoch.microseconds
