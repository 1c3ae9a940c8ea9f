"""Values of partitions of a Delta log, as its protocol spells them and as its writers do."""

from __future__ import annotations

from typing import Any

import pytest

from lakelog.catalog.core.schema import AtomicType
from lakelog.catalog.formats.imports.delta.partition_values import literal_of, time_zone_of
from lakelog.log.errors import InvalidInput, Unsupported

HOUR_US = 3_600_000_000


@pytest.mark.parametrize(
    ("type", "text", "expected"),
    [
        ("long", None, None),
        ("string", "", None),
        ("string", " a=b ", " a=b "),
        ("char(3)", "a", "a  "),
        ("varchar(3)", "a", "a"),
        ("boolean", "TRUE", True),
        ("byte", "-128", -128),
        ("long", "9223372036854775807", 2**63 - 1),
        ("float", "0.1", 0.10000000149011612),
        ("double", "1.0E10", 1e10),
        ("double", "NaN", "NaN"),
        ("double", "-Infinity", "-Infinity"),
        ("decimal(5,2)", "-1.5", "-1.50"),
        ("decimal(38,0)", "1" * 38, "1" * 38),
        ("date", "1969-12-31", -1),
        ("date", "2024-2-9", 19_762),
        ("timestamp", "1970-01-01T01:00:00.000001Z", HOUR_US + 1),
        ("timestamp", "1970-01-01T01:00:00+01:00", 0),
        ("timestamp_ntz", "1970-01-01 01:00:00.5", HOUR_US + 500_000),
        ("timestamp_ntz", "1969-12-31T23:59:59.999999", -1),
        # From when the column was a DATE.
        ("timestamp_ntz", "1970-01-02", 24 * HOUR_US),
        ("binary", "\x01\x02\x03", "AQID"),
    ],
)
def test_a_text_is_the_value_that_it_spells(type: str, text: str | None, expected: Any) -> None:
    assert literal_of(text, AtomicType(type), None) == expected


@pytest.mark.parametrize(
    ("type", "text"),
    [
        ("boolean", "yes"),
        ("byte", "128"),
        ("integer", "1_000"),
        ("integer", " 1"),
        ("integer", "٣"),
        ("long", "9223372036854775808"),
        ("double", "one"),
        ("decimal(5,2)", "1.234"),
        ("decimal(5,2)", "1000"),
        ("decimal(5,2)", "NaN"),
        ("decimal(10,2)", "-12.-30"),
        ("date", "2024-02-30"),
        ("date", "20240229"),
        ("timestamp_ntz", "1970-01-01T00:00:00Z"),
        ("timestamp_ntz", "1970-01-01 25:00:00"),
        ("timestamp", "now"),
        ("timestamp", "1970-01-02"),
        ("timestamp_ntz", "1970-02-30"),
        ("binary", "é"),
    ],
)
def test_a_text_that_is_not_of_the_type_is_refused(type: str, text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a valid"):
        literal_of(text, AtomicType(type), time_zone_of("UTC"))


def test_a_time_without_a_zone_is_one_of_its_writers_zone_only_where_that_is_given() -> None:
    type, text = AtomicType("timestamp"), "1970-07-01 02:00:00"
    with pytest.raises(Unsupported, match="has no time zone"):
        literal_of(text, type, None)
    in_summer = 181 * 24 * HOUR_US
    assert literal_of(text, type, time_zone_of("UTC")) == in_summer + 2 * HOUR_US
    assert literal_of(text, type, time_zone_of("America/New_York")) == in_summer + 6 * HOUR_US
    with pytest.raises(InvalidInput, match="is not a time zone"):
        time_zone_of("Mars")
