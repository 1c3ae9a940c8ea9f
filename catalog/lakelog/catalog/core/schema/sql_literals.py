"""SQL literals in column defaults and filters: read into values, and written from them, without an SQL engine.

Only single-valued literals are read: NULL, TRUE, numbers, strings, X'…', DATE, TIMESTAMP, TIMESTAMP_NTZ, TIME
and interval literals, a sign, and CAST of such a literal to an atomic type, which is how Spark writes floats
and typed NULLs. An expression is refused, because its value for old rows would depend on the reader and the
time.
"""

from __future__ import annotations

import base64
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from lakelog.catalog.core.schema.literals import fitted, moment_text, single_type
from lakelog.catalog.core.schema.types import AtomicType, Type, TypedValue
from lakelog.log.errors import InvalidInput

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
_UNITS_MONTHS = {"year": 12, "month": 1}
_UNITS_US = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
_BEFORE_UNIT = {"month": "-", "hour": " ", "minute": ":", "second": ":"}


def parse_literal(sql: str, type: Type) -> TypedValue | None:
    """Return the value of the literal `sql` for a column of `type`, or None for NULL.

    Raises InvalidInput if it is not a plain literal or does not fit the type.
    """
    if single_type(type) is None and sql.strip().upper() != "NULL":
        raise InvalidInput(f"the default {sql!r} cannot be given to a column of type {type}: only NULL can")
    value = _parse(sql.strip(), f"the default {sql!r}")
    if value is None:
        return None
    result = fitted(value, type)
    if result is None:
        raise InvalidInput(f"the default {sql!r} is not a value of the type {type}")
    return result


def _parse(text: str, whole: str) -> Any:
    lower_text = text.lower()
    if lower_text in ("null", "true", "false"):
        return {"null": None, "true": True, "false": False}[lower_text]
    if match := _NUMBER.fullmatch(text):
        number = Decimal(match[1] + match[2])
        suffix = (match[3] or "").lower()
        return _rounded(float(number), suffix == "f") if suffix in ("d", "f") else number
    if match := _STRING.fullmatch(text):
        return unquoted(match[0])
    if (collated_match := _COLLATED_LITERAL.fullmatch(text)) and (
        match := _STRING.fullmatch(collated_match[1])
    ):
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
    """Return the text of a string literal: `'…'`, `"…"`, or `r'…'`, which has no escapes."""
    raw = text[0] in "rR"
    literal = text[1:] if raw else text
    quote, body = literal[0], literal[1:-1]
    if raw:
        return body
    characters = re.sub(_ESCAPED, _escape, body.replace(quote * 2, quote))
    # Two escapes may be the two halves of one character.
    return characters.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def text_literal(text: str) -> str:
    """Return the string literal of `text`."""
    content = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{content}'"


def literal_of(value: TypedValue) -> str:
    """Return the SQL literal of a value. The value is not NULL. Spark reads the same value from it."""
    type, content = AtomicType(value.type), value.value
    match type.family:
        case "string":
            return text_literal(str(content))
        case "boolean":
            return str(content).lower()
        case "float" | "double":
            name = type.name.upper()
            return f"CAST('{content}' AS {name})" if isinstance(content, str) else f"{content!r}{name[0]}"
        case "binary":
            return f"X'{base64.b64decode(str(content)).hex()}'"
        case "timestamp":
            return f"TIMESTAMP '{moment_text(value)}Z'"
        case "date" | "timestamp_ntz" | "time":
            return f"{type.family.upper()} '{moment_text(value)}'"
        case "interval year-month" | "interval day-time":
            return _interval_literal(int(content or 0), type)
        case _:
            return str(content)


def _interval_literal(value: int, type: AtomicType) -> str:
    """Return the literal of months or microseconds in the units of an interval's type."""
    range_words = type.name.removeprefix("interval ")
    start, _, end = range_words.partition(" to ")
    sizes = _UNITS_MONTHS if start in _UNITS_MONTHS else _UNITS_US
    units = list(sizes)
    text, rest = "", abs(value)
    for unit in units[units.index(start) : units.index(end or start) + 1]:
        number, rest = divmod(rest, sizes[unit])
        width = 2 if text and unit != "month" else 1
        text += f"{_BEFORE_UNIT[unit] if text else ''}{number:0{width}}"
    fraction = f".{rest:06}" if (end or start) == "second" else ""
    return f"INTERVAL '{'-' if value < 0 else ''}{text}{fraction}' {range_words.upper()}"


def _escape(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 3:
        return chr(int(code, 8))
    return chr(int(code[1:], 16)) if len(code) > 1 else _ESCAPES.get(code, code)


def binary_value(digits: str) -> bytes:
    """Return the bytes of `X'…'` from its digits. An odd number of digits gets a leading zero."""
    return bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2))


def typed_value(kind: str, text: str, whole: str) -> Any:
    """Return the value of a literal such as DATE '…', by its kind and text. Raises InvalidInput, which quotes
    `whole`."""
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
    """Return the value of `INTERVAL '…' unit [TO unit]`: months or a timedelta. Raises InvalidInput, which
    quotes `whole`."""
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
    """Return the value of Spark's CAST of a literal, in its own rendering of defaults."""
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
    """Return a number with its own type's precision. The column may have a wider type since."""
    with np.errstate(over="ignore"):
        return float(np.float32(number)) if is_single else number
