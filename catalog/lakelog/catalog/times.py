"""Times as users write them."""

from __future__ import annotations

import datetime as dt
import re
from typing import TypeAlias

from lakelog.log.errors import InvalidInput

Moment: TypeAlias = str | dt.datetime | int

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGE = re.compile(r"([0-9]{1,6})([smhdw])")


def time_us(said: Moment) -> int:
    """Return a time in microseconds since 1970 (UTC).

    A text is ISO 8601, a date, or a whole number of microseconds; a text or datetime without a zone is in UTC.
    InvalidInput for anything else.
    """
    if isinstance(said, bool):
        raise InvalidInput(f"{said!r} is not a time")
    if isinstance(said, int):
        return said
    if isinstance(said, str):
        text = said.strip()
        if text.isascii() and text.isdigit() and len(text) > 8:
            return int(text)
        try:
            said = dt.datetime.fromisoformat(text)
        except ValueError:
            raise InvalidInput(
                f"{text!r} is not a time: write it as 2026-11-20, 2026-11-20 23:59:00 or 2026-11-20T23:59:00+01:00 "
                "(UTC where no zone is given)"
            ) from None
    if isinstance(said, dt.date) and not isinstance(said, dt.datetime):
        said = dt.datetime(said.year, said.month, said.day)
    if not isinstance(said, dt.datetime):
        raise InvalidInput(f"{said!r} is not a time: give a datetime, or a text such as 2026-11-20 23:59:00")
    moment = said if said.tzinfo is not None else said.replace(tzinfo=dt.UTC)
    return (moment - dt.datetime.fromtimestamp(0, dt.UTC)) // dt.timedelta(microseconds=1)


def last_us(said: Moment) -> int:
    """Return the last microsecond of what `time_us` understands: a date alone means the whole day here."""
    first_us = time_us(said)
    if not isinstance(said, str):
        return first_us
    try:
        dt.date.fromisoformat(said.strip())
    except ValueError:
        return first_us
    return first_us + 86_400_000_000 - 1


def time_text(time_us: int) -> str:
    """Return a time as messages say it, to the second; as a number where Python's dates do not reach."""
    try:
        moment = dt.datetime.fromtimestamp(time_us // 1_000_000, dt.UTC)
    except (ValueError, OverflowError, OSError):
        return f"{time_us} µs since 1970"
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def is_time(text: str) -> bool:
    """Return whether a text is read as a time."""
    try:
        time_us(text)
    except InvalidInput:
        return False
    return True


def age_of(text: str) -> dt.timedelta | None:
    """Return an age as people write it: 90s, 30m, 12h, 7d, 2w. None for another text."""
    match = _AGE.fullmatch(text)
    return None if match is None else dt.timedelta(**{_UNITS[match[2]]: int(match[1])})


def age_text(age: dt.timedelta) -> str:
    """Return an age of whole seconds as `age_of` reads it, in the largest unit that says it exactly."""
    seconds = round(age.total_seconds())
    for unit, size in (("w", 604_800), ("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
