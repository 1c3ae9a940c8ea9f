"""Points in time as people give them. Pure: there is no "now" here."""

from __future__ import annotations

import datetime as dt
from typing import TypeAlias

from lakelog.log.errors import InvalidInput

Instant: TypeAlias = str | dt.datetime | int
"""ISO 8601 text, in UTC where it names no zone, as lakelog shows times; a datetime with a zone; µs since 1970 (UTC)."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


def instant_us(value: Instant, *, end_of_day: bool = False) -> int:
    """Return `value` as µs since 1970 (UTC). A date alone is its first moment, or with `end_of_day` its last.

    InvalidInput for what is no time.
    """
    if type(value) is int:
        return value
    if isinstance(value, str):
        return _of_text(value.strip(), end_of_day)
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            raise InvalidInput(f"the time {value} has no time zone: give it one, as with datetime.now(UTC)")
        return (value - _EPOCH) // _MICROSECOND
    raise InvalidInput(f"{value!r} is not a time: give text, a datetime, or microseconds since 1970")


def _of_text(text: str, end_of_day: bool) -> int:
    try:
        if len(text) <= len("2026-11-20"):
            day = dt.datetime.combine(dt.date.fromisoformat(text), dt.time(), dt.UTC)
            return ((day - _EPOCH) + dt.timedelta(days=end_of_day)) // _MICROSECOND - end_of_day
        moment = dt.datetime.fromisoformat(text)
        return (moment.replace(tzinfo=moment.tzinfo or dt.UTC) - _EPOCH) // _MICROSECOND
    except (ValueError, OverflowError) as error:
        raise InvalidInput(
            f"{text!r} is not a time: write 2026-11-20, 2026-11-20 23:59:00 (in UTC) or 2026-11-20T23:59:00+01:00"
        ) from error
