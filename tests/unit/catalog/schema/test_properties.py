"""Known properties: each has a kind, whose values are checked as texts and read as what they stand for."""

from __future__ import annotations

import datetime as dt

import pytest

from lakelog.catalog.core.schema.properties.kinds import TableProperty
from lakelog.catalog.core.schema.properties.known import (
    BLOOM_COLUMNS,
    BLOOM_FPP,
    BLOOM_NDV,
    DELETED_RATIO,
    ISOLATION,
    KEEP_FOR,
    KNOWN,
    TARGET_FILE_SIZE,
)
from lakelog.log.errors import InvalidInput


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_a_default_is_a_value_and_is_what_a_table_without_the_property_has(known: TableProperty) -> None:
    known.check(known.default)
    assert known.of({}) == known.of({known.name: known.default}) == known.meaning(known.default)


@pytest.mark.parametrize(
    ("known", "text", "value"),
    [
        (TARGET_FILE_SIZE, "1024", 1024),
        (DELETED_RATIO, "0.25", 0.25),
        (DELETED_RATIO, "1", 1.0),
        (BLOOM_FPP, "0.001", 0.001),
        (ISOLATION, "serializable", "serializable"),
        (KEEP_FOR, "7d", dt.timedelta(days=7)),
        (KEEP_FOR, "never", None),
        (BLOOM_COLUMNS, " a, b.c ,,", ["a", "b.c"]),
    ],
)
def test_a_value_is_read_as_what_it_stands_for(known: TableProperty, text: str, value: object) -> None:
    known.check(text)
    assert known.of({"other": "x", known.name: text}) == value


@pytest.mark.parametrize(
    ("known", "text", "wanted"),
    [
        (TARGET_FILE_SIZE, "1023", "a whole number of at least 1024"),
        (TARGET_FILE_SIZE, "²", "a whole number of at least 1024"),
        (TARGET_FILE_SIZE, "9223372036854775807", "at most 1125899906842624"),
        (TARGET_FILE_SIZE, "9" * 5000, "at most 1125899906842624"),
        (BLOOM_NDV, "20000001", "at most 20000000"),
        (DELETED_RATIO, "1.1", "a number from 0 to 1"),
        (BLOOM_FPP, "0.0", "a number between 0 and 1, of at most six digits, as 0.01"),
        (BLOOM_FPP, "1", "a number between 0 and 1, of at most six digits, as 0.01"),
        (ISOLATION, "none", "one of snapshot, serializable"),
        (KEEP_FOR, "7", r"an age \(90s, 30m, 12h, 7d or 2w\), or never"),
    ],
)
def test_a_bad_value_is_refused_and_the_message_says_what_it_has_to_be(
    known: TableProperty, text: str, wanted: str
) -> None:
    with pytest.raises(InvalidInput, match=f"the property {known.name} is '{text}': it must be {wanted}$"):
        known.check(text)
