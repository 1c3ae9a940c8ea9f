"""SQL literals, as defaults of columns and filters are written: read into Python values without an SQL engine.

Only literals of one value are read: NULL, TRUE, numbers, strings, X'…', DATE, TIMESTAMP, TIMESTAMP_NTZ,
TIME and interval literals, a sign, and CAST of one of these to an atomic type, which is how Spark writes
floats and typed NULLs. An expression is refused: its value for old rows would depend on the reader and the
time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from lakelog.catalog.core.schema.types import COLLATED, AtomicType, Type
from lakelog.log.errors import InvalidInput

_EPOCH = datetime(1970, 1, 1)
_NUMBER = re.compile(r"([+-]?)\s*((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(bd|[ysldf])?", re.I)
_STRING = re.compile(r"(r?)('(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\")", re.I | re.S)
_TYPED = re.compile(r"(date|timestamp_ntz|timestamp_ltz|timestamp|time)\s*(['\"].*['\"])", re.I | re.S)
_BINARY = re.compile(r"x\s*'([0-9a-f]*)'", re.I)
_INTERVAL = re.compile(r"interval\s+([+-]?)\s*'([^']*)'\s+(\w+)(?:\s+to\s+(\w+))?", re.I)
_CAST = re.compile(
    r"cast\s*\((.*)\sas\s+([a-z_]+(?:\s*\([\d\s,]+\))?(?:\s+collate\s+\w+)?)\s*\)", re.I | re.S
)
_COLLATED_LITERAL = re.compile(r"(.*['\"])\s*collate\s+[\w.`]+", re.I | re.S)
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}|[01][0-7]{2}|.)", re.S)
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_RANGES = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_UNITS_US = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}


def parse_literal(sql: str, type: Type) -> Any:
    """Return the value of the literal `sql` for a column of `type`, as Python (and Arrow) hold it, or None
    for NULL.

    Dates are `date`, timestamps `datetime` (aware for `timestamp`), times `time`, intervals a number of
    months or a `timedelta`. InvalidInput when it is not a plain literal or does not fit the type.
    """
    value = _parse(sql.strip(), f"the default {sql!r}")
    if value is None:
        return None
    if not isinstance(type, AtomicType):
        raise InvalidInput(f"the default {sql!r} cannot be given to a column of type {type}: only NULL can")
    try:
        fitted = _FITS[type.family](value, type)
    except (KeyError, ValueError, ArithmeticError, TypeError):
        fitted = None
    if fitted is None:
        raise InvalidInput(f"the default {sql!r} is not a value of the type {type}")
    return fitted


def _parse(text: str, whole: str) -> Any:
    lowered = text.lower()
    if lowered in ("null", "true", "false"):
        return {"null": None, "true": True, "false": False}[lowered]
    if match := _NUMBER.fullmatch(text):
        number = Decimal(match[1] + match[2])
        suffix = (match[3] or "").lower()
        return _rounded(float(number), suffix == "f") if suffix in ("d", "f") else number
    if match := _STRING.fullmatch(text):
        return unquoted(match[0])
    if (collated := _COLLATED_LITERAL.fullmatch(text)) and (match := _STRING.fullmatch(collated[1])):
        return unquoted(match[0])
    if match := _TYPED.fullmatch(text):
        return typed_value(match[1].lower(), match[2][1:-1].strip(), whole)
    if match := _BINARY.fullmatch(text):
        return binary_value(match[1])
    if _INTERVAL.fullmatch(text):
        return interval_value(text, whole)
    if match := _CAST.fullmatch(text):
        inner = _parse(match[1].strip(), whole)
        return None if inner is None else _cast(inner, match[2], whole)
    raise InvalidInput(
        f"{whole} is not a plain literal: existing rows need one value, such "
        "as 0, 'x', DATE '2020-01-31' or NULL"
    )


def unquoted(text: str) -> str:
    """Return the text that a string literal stands for: `'…'`, `"…"`, or `r'…'`, which has no escapes."""
    raw = text[0] in "rR"
    quoted = text[1:] if raw else text
    quote, body = quoted[0], quoted[1:-1]
    if raw:
        return body
    written = re.sub(_ESCAPED, _escape, body.replace(quote * 2, quote))
    # Two escapes may be the two halves of one character.
    return written.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def text_literal(text: str) -> str:
    """Return the string literal that stands for `text`."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _escape(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 3:
        return chr(int(code, 8))
    return chr(int(code[1:], 16)) if len(code) > 1 else _ESCAPES.get(code, code)


def binary_value(digits: str) -> bytes:
    """Return the bytes of `X'…'`, by its digits; a zero goes before an odd number of them."""
    return bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2))


def typed_value(kind: str, text: str, whole: str) -> Any:
    """Return the value of a literal such as DATE '…', by its kind and text. InvalidInput, about `whole`."""
    try:
        if kind == "date":
            return date.fromisoformat(text)
        if kind == "time":
            return time.fromisoformat(text)
        moment = datetime.fromisoformat(re.sub(r"\s*(UTC|Z)$", "+00:00", text))
    except ValueError:
        raise InvalidInput(f"{whole} is not a {kind} of years 1 to 9999 in ISO form") from None
    if kind == "timestamp_ntz":
        return moment.replace(tzinfo=None)
    if moment.tzinfo is None:
        raise InvalidInput(
            f"{whole} has no time zone, so that readers would disagree: write it "
            "as in TIMESTAMP '2020-01-31 12:00:00Z'"
        )
    return moment.astimezone(UTC)


def interval_value(text: str, whole: str) -> Any:
    """Return the value of `INTERVAL '…' unit [TO unit]`: months or a timedelta. InvalidInput, about `whole`."""
    match = _INTERVAL.fullmatch(text)
    if match is None:
        raise InvalidInput(f"{whole} is not an interval literal")
    sign = -1 if match[1] == "-" else 1
    numbers_text, start, end = (
        match[2].strip(),
        match[3].lower().rstrip("s"),
        (match[4] or match[3]).lower().rstrip("s"),
    )
    if numbers_text.startswith("-"):
        sign, numbers_text = -sign, numbers_text[1:]
    try:
        if start in ("year", "month"):
            parts = [int(part) for part in numbers_text.split("-")]
            months = (
                parts[0] * 12 + parts[1] if len(parts) == 2 else parts[0] * (12 if start == "year" else 1)
            )
            return sign * months
        names = list(_UNITS_US)
        units = names[names.index(start) : names.index(end) + 1]
        numbers = re.split(r"[ :]", numbers_text)
        if len(numbers) != len(units):
            raise ValueError
        total = sum(Decimal(part) * _UNITS_US[unit] for part, unit in zip(numbers, units, strict=True))
        return timedelta(microseconds=sign * int(total))
    except (ValueError, InvalidOperation):
        raise InvalidInput(f"{whole} is not an interval literal") from None


def _cast(value: Any, name: str, whole: str) -> Any:
    """Return what Spark's CAST makes of a literal in its own rendering of defaults."""
    name = re.sub(r"\s", "", name.lower())
    if isinstance(value, str | Decimal) and name in ("float", "double"):
        number = float(value.replace("Infinity", "inf") if isinstance(value, str) else value)
        return _rounded(number, name == "float")
    if isinstance(value, str) and name in ("date", "timestamp", "timestamp_ntz", "time"):
        return typed_value(name, value, whole)
    if isinstance(value, str) and name == "binary":
        return value.encode()
    return value


def _rounded(number: float, is_single: bool) -> float:
    """Return a number as its own type holds it, whatever wider type the column has since."""
    with np.errstate(over="ignore"):
        return float(np.float32(number)) if is_single else number


def _integer(value: Any, type: AtomicType) -> int | None:
    bits = _RANGES[type.family]
    if not isinstance(value, Decimal) or value != value.to_integral_value():
        return None
    return int(value) if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def _decimal(value: Any, type: AtomicType) -> Decimal | None:
    if not isinstance(value, Decimal):
        return None
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    whole = len(digits) + exponent
    dropped = digits[max(0, whole + type.scale) :]
    if any(dropped) or (any(digits) and whole > type.precision - type.scale):
        return None
    return value


def _text(value: Any, type: AtomicType) -> str | None:
    if not isinstance(value, str):
        return None
    if type.family in ("string", COLLATED):
        return value
    kept = value if len(value) <= type.length else value[: type.length] + value[type.length :].lstrip(" ")
    if len(kept) > type.length:
        return None
    return kept.ljust(type.length) if type.family == "char" else kept


def _timestamp_ntz(value: Any, type: AtomicType) -> datetime | None:
    if isinstance(value, datetime):
        return value if value.tzinfo is None else None
    return datetime(value.year, value.month, value.day) if isinstance(value, date) else None


def _exactly(*kinds: type) -> Callable[[Any, AtomicType], Any]:
    return lambda value, type_: value if type(value) in kinds else None


_FITS: dict[str, Callable[[Any, AtomicType], Any]] = {
    "boolean": _exactly(bool),
    "byte": _integer,
    "short": _integer,
    "integer": _integer,
    "long": _integer,
    "float": lambda value, _: float(value) if type(value) in (Decimal, float) else None,
    "double": lambda value, _: float(value) if type(value) in (Decimal, float) else None,
    "decimal": _decimal,
    "string": _text,
    COLLATED: _text,
    "char": _text,
    "varchar": _text,
    "binary": _exactly(bytes),
    "date": _exactly(date),
    "timestamp": lambda value, _: value if isinstance(value, datetime) and value.tzinfo else None,
    "timestamp_ntz": _timestamp_ntz,
    "time": _exactly(time),
    "interval year-month": _exactly(int),
    "interval day-time": _exactly(timedelta),
}
