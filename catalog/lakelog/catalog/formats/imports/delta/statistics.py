"""Statistics of a Delta log as lakelog's.

Only certain facts are kept because a bound that is too narrow loses rows.

Some bounds are left out: of floating-point numbers, of binaries, and of texts with a collation or padding.
For floating-point numbers, some writers count NaN as the highest value, and others ignore it. Upper bounds
of texts that may have been cut are left out, too. Bounds of times are widened by the millisecond to which
Delta may cut them, or by the minute to which it cuts old offsets. Bounds of long decimals are widened by the
rounding of a double. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

import msgspec

from lakelog.catalog.core.files import ColumnStats, lower_text, upper_text
from lakelog.catalog.core.schema import AtomicType, Field, Schema, StructType
from lakelog.log.decoding import UNREADABLE

_DECODER = msgspec.json.Decoder(float_hook=Decimal)
_RANGES = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_MILLISECOND_US, _MINUTE_US = 1000, 60_000_000
_TIME = re.compile(r"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(?:\.(\d{1,6})\d*)?(Z|[+-]\d{2}:\d{2})?")
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME_RANGE_US = 2**62
_WHOLE_MINUTES_FROM = "1972-02-01"
"""Since then, no time zone has seconds in its offset. Liberia's was the last."""

_CUT_FROM_CHARACTERS, _CUT_FROM_BYTES = 32, 64
"""No known writer cuts shorter texts, in UTF-16 or in UTF-8."""
_RAISED_BY = ("\x7f", "\U0010ffff")
"""Delta appends these characters to a text that it cut, so that no text with that beginning is higher."""
_NOT_RAISED_BY = "\ufffd"
"""Older versions append this character, at any configured length. Characters of four bytes are higher."""

_EXACT_DIGITS = 15
"""Decimals of at most so many digits equal the text of their double."""
_ROUNDED = Decimal("1e-15")
_CONTEXT = Context(prec=80)


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """The log's statistics of a file: its rows, including deleted rows, and its columns' statistics by id."""

    rows: int | None
    columns: dict[int, ColumnStats]


class StatisticsReader:
    """Reads the statistics of files. Their columns are `schema`, and `names` has the names in files by id."""

    def __init__(self, schema: Schema, names: Mapping[int, str]) -> None:
        self._leaves = list(_leaves(schema.fields, names, ()))

    def of(self, stats: str | None, parsed: Mapping[str, Any] | None, *, has_vector: bool) -> FileStatistics:
        """Return the statistics in `stats`, or in `parsed`, the literals of a checkpoint.

        Empty if these are damaged.
        """
        has_typed_stats = stats is None
        if stats is None:
            members: Any = parsed
        else:
            try:
                members = _DECODER.decode(stats)
            except UNREADABLE:
                members = None
        if not isinstance(members, dict):
            return FileStatistics(None, {})
        record_count = members.get("numRecords")
        rows: int | None = (
            record_count
            if isinstance(record_count, int) and _is_whole(record_count) and record_count >= 0
            else None
        )
        is_tight = members.get("tightBounds") is not False
        # Tight bounds of a file with deleted rows are bounds of its live rows, and not of the file.
        if has_vector and is_tight:
            return FileStatistics(rows, {})
        columns: dict[int, ColumnStats] = {}
        for id, path, type in self._leaves:
            nulls = _at(members.get("nullCount"), path)
            if not _is_whole(nulls) or nulls < 0 or (rows is not None and nulls > rows):
                nulls = None
            if not is_tight and nulls != 0 and (nulls is None or nulls != rows):
                nulls = None
            low = high = None
            if rows is None or nulls != rows:
                low = _bound(_at(members.get("minValues"), path), type, has_typed_stats, upper=False)
                high = _bound(_at(members.get("maxValues"), path), type, has_typed_stats, upper=True)
            stats_of = ColumnStats(nulls=nulls, min=low, max=high)
            if stats_of != ColumnStats():
                columns[id] = stats_of
        return FileStatistics(rows, columns)


def _leaves(
    fields: tuple[Field, ...], names: Mapping[int, str], parent: tuple[str, ...]
) -> Iterator[tuple[int, tuple[str, ...], AtomicType]]:
    """Yield columns and struct fields that have single values. Fields in lists and maps have no statistics."""
    for field in fields:
        path = (*parent, names[field.id])
        if isinstance(field.type, AtomicType):
            yield field.id, path, field.type
        elif isinstance(field.type, StructType):
            yield from _leaves(field.type.fields, names, path)


def _at(values: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(values, dict):
            return None
        values = values.get(name)
    return values


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _bound(value: Any, type: AtomicType, is_typed: bool, *, upper: bool) -> Any:
    """Return a bound as a JSON literal of the type. None if it is not certain to be a bound."""
    if value is None:
        return None
    try:
        match type.family:
            case "byte" | "short" | "integer" | "long" as family:
                limit = 2 ** (_RANGES[family] - 1)
                return value if _is_whole(value) and -limit <= value < limit else None
            case "string" | "varchar":
                return _text(value, upper=upper)
            case "date":
                return _day(value)
            case "timestamp" | "timestamp_ntz" as family:
                if is_typed and _is_whole(value):
                    us, off = value, _MILLISECOND_US
                else:
                    us, off = _time_us(value, family == "timestamp")
                us += off if upper else -off
                return us if abs(us) < _TIME_RANGE_US else None
            case "decimal":
                return _decimal(value, type, is_typed, upper=upper)
    except (ValueError, ArithmeticError, TypeError):
        return None
    return None


def _text(value: Any, *, upper: bool) -> str | None:
    if not isinstance(value, str):
        return None
    if not upper:
        return lower_text(value)
    if value.endswith(_NOT_RAISED_BY):
        return None
    is_whole = (
        len(value.encode("utf-16-le")) // 2 < _CUT_FROM_CHARACTERS and len(value.encode()) < _CUT_FROM_BYTES
    )
    return upper_text(value) if is_whole or value.endswith(_RAISED_BY) else None


def _day(value: str) -> int:
    return date.fromisoformat(value).toordinal() - _EPOCH_DAY


def _time_us(value: str, has_zone: bool) -> tuple[int, int]:
    """Return a time, and by how much the true time may differ.

    Offsets are written without seconds, which some had.
    """
    match = _TIME.fullmatch(value)
    if match is None or (match[4] is not None) != has_zone:
        raise ValueError(value)
    fraction = (match[3] or "").ljust(6, "0")
    zone = "+00:00" if match[4] in (None, "Z") else match[4]
    since_epoch = datetime.fromisoformat(f"{match[1]}T{match[2]}.{fraction}{zone}") - _EPOCH
    us = (since_epoch.days * 86_400 + since_epoch.seconds) * 1_000_000 + since_epoch.microseconds
    has_seconds = match[4] not in (None, "Z") and match[1] < _WHOLE_MINUTES_FROM
    return us, _MINUTE_US if has_seconds else _MILLISECOND_US


def _decimal(value: Any, type: AtomicType, is_typed: bool, *, upper: bool) -> str | None:
    if (
        isinstance(value, bool)
        or not isinstance(value, Decimal | int | str)
        or (isinstance(value, str) and not is_typed)
    ):
        return None
    number = Decimal(value)
    if not number.is_finite():
        return None
    unit = Decimal(1).scaleb(-type.scale)
    if type.precision > _EXACT_DIGITS:
        off = _CONTEXT.multiply(abs(number), _ROUNDED)
        number = _CONTEXT.add(number, off) if upper else _CONTEXT.subtract(number, off)
        number = number.quantize(unit, ROUND_CEILING if upper else ROUND_FLOOR, _CONTEXT)
    elif number != number.quantize(unit, context=_CONTEXT):
        return None
    else:
        number = number.quantize(unit, context=_CONTEXT)
    return format(number, "f") if number.adjusted() < type.precision - type.scale else None
