"""Times as people give them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from lakelog.catalog.instants import instant_us
from lakelog.log.errors import InvalidInput

DAY = int(datetime(2026, 11, 20, tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-11-20", DAY),
        (" 2026-11-20 ", DAY),
        ("2026-11-20 00:00:01", DAY + 1_000_000),
        ("2026-11-20T01:00:00Z", DAY + 3_600_000_000),
        ("2026-11-20 01:00:00.000001+01:00", DAY + 1),
        ("2026-11-20 01:00", DAY + 3_600_000_000),
        (datetime(2026, 11, 20, tzinfo=UTC), DAY),
        (datetime(2026, 11, 20, 2, tzinfo=timezone(timedelta(hours=2))), DAY),
        (DAY, DAY),
    ],
)
def test_a_time_is_read_in_utc_unless_it_names_its_zone(value: Any, expected: int) -> None:
    assert instant_us(value) == expected


def test_a_day_ends_a_microsecond_before_the_next() -> None:
    assert instant_us("2026-11-20", end_of_day=True) == instant_us("2026-11-21") - 1
    assert instant_us("2026-11-20 12:00:00", end_of_day=True) == DAY + 12 * 3_600_000_000


@pytest.mark.parametrize(
    "value",
    [
        "",
        "yesterday",
        "2026-13-01",
        "2026-11-20 25:00",
        "9999-12-32",
        datetime(2026, 11, 20),
        1.5,
        None,
        True,
    ],
)
def test_what_is_no_time_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput):
        instant_us(value)
