"""Times as people say them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from lakelog.catalog.times import is_time, last_us, time_us
from lakelog.log.errors import InvalidInput

DAY = int(datetime(2026, 11, 20, tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("2026-11-20", DAY),
        (" 20261120 ", DAY),
        ("2026-11-20 00:00:01", DAY + 1_000_000),
        ("2026-11-20T01:00:00Z", DAY + 3_600_000_000),
        ("2026-11-20 01:00:00.000001+01:00", DAY + 1),
        (str(DAY), DAY),
        (datetime(2026, 11, 20, tzinfo=UTC), DAY),
        (datetime(2026, 11, 20, 2, tzinfo=timezone(timedelta(hours=2))), DAY),
        (DAY, DAY),
    ],
)
def test_a_time_is_in_utc_unless_it_names_its_zone(said: Any, expected: int) -> None:
    assert time_us(said) == expected


def test_a_day_ends_a_microsecond_before_the_next() -> None:
    assert last_us("2026-11-20") == time_us("2026-11-21") - 1
    assert last_us("2026-11-20 12:00:00") == DAY + 12 * 3_600_000_000
    assert last_us(DAY) == DAY and last_us(datetime(2026, 11, 20, tzinfo=UTC)) == DAY


@pytest.mark.parametrize("said", ["", "yesterday", "2026-13-01", "2026-11-20 25:00", "-1"])
def test_what_is_no_time_is_refused(said: str) -> None:
    assert not is_time(said)
    with pytest.raises(InvalidInput):
        last_us(said)


def test_the_missing_time_of_pandas_is_no_time() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InvalidInput, match="NaT is not a time"):
        time_us(pandas.NaT)
