"""Bounds of a Delta log: what is certain becomes a bound, and all else is left out."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.catalog.core.files import ColumnStats
from lakelog.catalog.core.schema import AtomicType, Field, Schema, StructType
from lakelog.catalog.formats.imports.delta.statistics import FileStatistics, StatisticsReader

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_US = 86_400_000_000
MINUTE_US = 60_000_000


def of_column(type: str, stats: dict[str, Any], *, has_vector: bool = False) -> ColumnStats | None:
    schema = Schema(fields=(Field(id=1, name="a", type=AtomicType(type)),), last_id=1)
    text = json.dumps(stats)
    return StatisticsReader(schema, {1: "a"}).of(text, None, has_vector=has_vector).columns.get(1)


def bounds(type: str, low: str, high: str) -> tuple[Any, Any]:
    """Return the bounds of a column for those of the log, which are JSON."""
    schema = Schema(fields=(Field(id=1, name="a", type=AtomicType(type)),), last_id=1)
    text = f'{{"numRecords": 9, "minValues": {{"a": {low}}}, "maxValues": {{"a": {high}}}}}'
    found_column = (
        StatisticsReader(schema, {1: "a"}).of(text, None, has_vector=False).columns.get(1, ColumnStats())
    )
    return found_column.min, found_column.max


@pytest.mark.parametrize(
    ("type", "low", "high", "expected"),
    [
        ("long", "-9223372036854775808", "9223372036854775807", (-(2**63), 2**63 - 1)),
        ("byte", "-129", "127", (None, 127)),
        ("integer", "1.0", "true", (None, None)),
        ("integer", '"1"', "null", (None, None)),
        ("double", "1.5", "2.5", (None, None)),
        ("float", "1.5", '"NaN"', (None, None)),
        ("boolean", "false", "true", (None, None)),
        ("binary", '"a"', '"b"', (None, None)),
        ("char(3)", '"a"', '"b"', (None, None)),
        ("string collate UTF8_LCASE", '"a"', '"b"', (None, None)),
        ("string", '""', '"b"', ("", "b")),
        ("varchar(9)", '"a"', '"b"', ("a", "b")),
        ("date", '"1969-12-31"', '"2024-02-29"', (-1, 19_782)),
        ("date", '"0000-00-00"', '"12024-02-29"', (None, None)),
        ("timestamp", '"1970-01-01T00:00:00.000Z"', '"1970-01-01T00:00:01.5Z"', (-1000, 1_501_000)),
        ("timestamp", '"2000-01-01T01:00:00.000+01:00"', '"1970-01-01T00:00:00"', (946_684_799_999_000, None)),
        # Of the offset, -00:44:30, the writer has cut the seconds.
        ("timestamp", '"1970-01-01T00:00:00-00:44"', '"1969-12-31T23:16:00-00:44"', (43 * MINUTE_US, MINUTE_US)),
        ("timestamp_ntz", '"1970-01-02T00:00:00.123456"', '"1970-01-02 00:00:00"', (DAY_US + 122_456, DAY_US + 1000)),
        ("timestamp_ntz", '"1970-01-02T00:00:00.000Z"', '"1970-01-02"', (None, None)),
        ("decimal(5,2)", "-1.5", "12.30", ("-1.50", "12.30")),
        ("decimal(5,2)", "-1.505", "1e3", (None, None)),
        ("decimal(5,2)", '"1.5"', "12", (None, "12.00")),
        ("decimal(38,0)", "-12345678901234567", "12345678901234567", ("-12345678901234580", "12345678901234580")),
        ("decimal(16,0)", "-9999999999999999", "9999999999999999", (None, None)),
    ],
)  # fmt: skip
def test_bounds_of_each_type(type: str, low: str, high: str, expected: tuple[Any, Any]) -> None:
    assert bounds(type, low, high) == expected


@pytest.mark.parametrize(
    ("high", "expected"),
    [
        ("z" * 31, "z" * 31),
        # A writer may have cut it here, without raising it.
        ("z" * 32, None),
        ("é" * 31, "é" * 31),
        ("é" * 32, None),
        ("\U0001f600" * 16, None),
        # Delta puts one of these two behind a text that it has cut.
        ("z" * 32 + "\x7f", "z" * 31 + "{"),
        ("é" * 32 + "\U0010ffff", "é" * 31 + "ê"),
        # The one of older versions is not higher than all characters.
        ("z" * 32 + "\ufffd", None),
        ("z" * 5 + "\ufffd", None),
    ],
)
def test_a_highest_text_is_one_only_where_it_cannot_have_been_cut(high: str, expected: str | None) -> None:
    low, found = bounds("string", json.dumps("a" * 40), json.dumps(high))
    assert (low, found) == ("a" * 32, expected)


@given(st.integers(-(10**17), 10**17))
def test_a_time_that_was_cut_to_milliseconds_is_within_its_bounds(us: int) -> None:
    time = EPOCH + timedelta(microseconds=us % (200 * 365 * DAY_US) - 100 * 365 * DAY_US)
    us = (time - EPOCH) // timedelta(microseconds=1)
    for cut in (time.isoformat(timespec="milliseconds"), time.isoformat(timespec="microseconds")):
        text = json.dumps(cut.replace("+00:00", "Z"))
        low, high = bounds("timestamp", text, text)
        assert low <= us <= high and high - low <= 3000


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**20), max_value=10**20))
def test_a_decimal_that_went_through_a_double_is_within_its_bounds(value: Decimal) -> None:
    for text in (format(value, "f"), repr(float(value))):
        low, high = bounds("decimal(38,6)", text, text)
        assert Decimal(low) <= value <= Decimal(high)


@given(st.text(max_size=80))
def test_a_text_that_delta_cut_is_within_its_bounds(text: str) -> None:
    prefix = text[:32]
    low, high = bounds("string", json.dumps(prefix), json.dumps(prefix + "\U0010ffff"))
    assert low.encode("utf-8", "surrogatepass") <= text.encode("utf-8", "surrogatepass")
    if not text[32:].startswith("\U0010ffff"):
        assert high is None or text.encode("utf-8", "surrogatepass") <= high.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize(
    ("tight", "has_vector", "nulls", "expected"),
    [
        (None, False, 3, ColumnStats(nulls=3, min=1, max=2)),
        (True, False, 3, ColumnStats(nulls=3, min=1, max=2)),
        (False, False, 3, ColumnStats(min=1, max=2)),
        (False, True, 3, ColumnStats(min=1, max=2)),
        (False, True, 0, ColumnStats(nulls=0, min=1, max=2)),
        # All are NULL: what stands as bounds says nothing.
        (False, True, 9, ColumnStats(nulls=9)),
        (None, False, 9, ColumnStats(nulls=9)),
        (None, False, 10, ColumnStats(min=1, max=2)),
        (None, False, -1, ColumnStats(min=1, max=2)),
        # Tight bounds are those of live rows, and rows that are deleted may come back.
        (True, True, 0, None),
        (None, True, 0, None),
    ],
)
def test_counts_and_bounds_beside_deleted_rows(
    tight: bool | None, has_vector: bool, nulls: int, expected: ColumnStats | None
) -> None:
    stats = {"numRecords": 9, "minValues": {"a": 1}, "maxValues": {"a": 2}, "nullCount": {"a": nulls}}
    if tight is not None:
        stats["tightBounds"] = tight
    assert of_column("long", stats, has_vector=has_vector) == expected


def test_fields_of_structs_have_bounds_by_their_names_in_files() -> None:
    inner = StructType((Field(id=2, name="b", type=AtomicType("long")),))
    schema = Schema(fields=(Field(id=1, name="a", type=inner),), last_id=2)
    stats = {"numRecords": 1, "minValues": {"x": {"y": 3}, "a": {"b": 9}}, "nullCount": {"x": {"y": 0}}}
    statistics = StatisticsReader(schema, {1: "x", 2: "y"}).of(json.dumps(stats), None, has_vector=False)
    assert statistics == FileStatistics(1, {2: ColumnStats(nulls=0, min=3)})


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "[" * 2000, '{"numRecords": "3"}', '{"numRecords": 1.5}']
)
def test_broken_statistics_say_nothing(text: str) -> None:
    schema = Schema(fields=(Field(id=1, name="a", type=AtomicType("long")),), last_id=1)
    assert StatisticsReader(schema, {1: "a"}).of(text, None, has_vector=False) == FileStatistics(None, {})
