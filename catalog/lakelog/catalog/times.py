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

    A text is ISO 8601, a date, or a whole number of microseconds. A text or datetime without a zone is in
    UTC. Raises InvalidInput for anything else.
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
    if not isinstance(said, dt.datetime) or said != said:  # as pandas's NaT
        raise InvalidInput(f"{said!r} is not a time: give a datetime, or a text such as 2026-11-20 23:59:00")
    moment = said if said.tzinfo is not None else said.replace(tzinfo=dt.UTC)
    return (moment - dt.datetime.fromtimestamp(0, dt.UTC)) // dt.timedelta(microseconds=1)


def moment_of(time_us: int) -> dt.datetime:
    """Return a time in microseconds since 1970 as a datetime in UTC.

    The nearest datetime if Python's do not reach it.
    """
    try:
        return dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=time_us)
    except OverflowError:
        return (dt.datetime.max if time_us > 0 else dt.datetime.min).replace(tzinfo=dt.UTC)


def last_us(said: Moment) -> int:
    """Return the last microsecond of a time that `time_us` understands.

    A date alone means the whole day here.
    """
    first_us = time_us(said)
    if not isinstance(said, str):
        return first_us
    try:
        dt.date.fromisoformat(said.strip())
    except ValueError:
        return first_us
    return first_us + 86_400_000_000 - 1


def time_text(time_us: int) -> str:
    """Return a time as in messages, to the second, or as a number if Python's dates do not reach it."""
    try:
        moment = dt.datetime.fromtimestamp(time_us // 1_000_000, dt.UTC)
    except (ValueError, OverflowError, OSError):
        return f"{time_us} µs since 1970"
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def exact_text(time_us: int) -> str:
    """Return a time as in messages, to the microsecond, or as a number if Python's dates do not reach it."""
    try:
        return (dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=time_us)).isoformat(" ")
    except OverflowError:
        return f"{time_us} µs since 1970"


def is_time(text: str) -> bool:
    """Return whether a text is a time."""
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
