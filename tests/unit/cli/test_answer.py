"""Sizes, times and partition values as people read them."""

from __future__ import annotations

from datetime import date

import pytest

from lakelog.catalog.core.schema.partitioning import Transform
from lakelog.catalog.looking.pictures import partition_value
from lakelog.catalog.times import moment_of, time_us
from lakelog.cli import answer


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1_250_000, "1.2 MB"),
        (99_960_000, "100 MB"),
        (999_600, "1.0 MB"),
    ],
)
def test_a_size_is_shown_in_the_unit_that_fits(size_bytes: int, text: str) -> None:
    assert answer.size(size_bytes) == text


def test_a_time_is_shown_in_utc_and_can_be_read_back() -> None:
    assert answer.time(moment_of(1_700_000_000_123_456)) == "2023-11-14 22:13:20.123456Z"
    for us in (1_700_000_000_000_000, 1_700_000_000_000_001, 1_700_000_000_999_999):
        assert time_us(answer.time(moment_of(us))) == us


@pytest.mark.parametrize(
    ("value", "transform", "shown"),
    [
        (43, "year", "2013"),
        (516, "month", "2013-01"),
        (-1, "month", "1969-12"),
        (24, "hour", "1970-01-02 00:00"),
        (date(2013, 1, 5), "day", "2013-01-05"),
        (7, "bucket[16]", 7),
        (None, "month", None),
        (b"\x00\xff", "identity", "00ff"),
    ],
)
def test_a_partition_value_is_shown_as_people_write_it(value: object, transform: str, shown: object) -> None:
    assert partition_value(value, Transform.parse(transform)) == shown
