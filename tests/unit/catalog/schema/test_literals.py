from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from lakelog.catalog.core.schema.literals import moment_text, stored_value, value_of, widened
from lakelog.catalog.core.schema.sql_literals import literal_of
from lakelog.catalog.core.schema.types import AtomicType, ListType, TypedValue
from lakelog.log.errors import InvalidInput


def typed_value(type: str, value: Any) -> TypedValue:
    return TypedValue(type=type, value=value)


@pytest.mark.parametrize(
    ("given", "type", "value"),
    [
        (True, "boolean", True),
        (7, "long", 7),
        (7.0, "long", 7),
        (7, "decimal(5,2)", "7.00"),
        (1.5, "decimal(5,2)", "1.50"),
        (Decimal("-0.5"), "double", -0.5),
        (np.float64(0.1), "double", 0.1),
        (0.1, "float", 0.10000000149011612),
        (float("nan"), "float", "NaN"),
        ("a", "char(3)", "a  "),
        (b"\0\xff", "binary", "AP8="),
        (dt.date(1969, 12, 31), "date", -1),
        (dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=dt.UTC), "timestamp", -1_000_000),
        (dt.date(1970, 1, 2), "timestamp_ntz", 86_400_000_000),
        (dt.time(0, 0, 1), "time(6)", 1_000_000),
        (14, "interval year to month", 14),
        (dt.timedelta(days=-1), "interval day to second", -86_400_000_000),
    ],
)
def test_a_python_value_becomes_the_value_of_a_column(given: Any, type: str, value: Any) -> None:
    result = value_of(given, AtomicType(type))
    assert result is not None and result.value == value and result.value.__class__ is value.__class__


@pytest.mark.parametrize(
    ("given", "type"),
    [
        (1, "boolean"),
        (True, "integer"),
        (128, "byte"),
        (1.5, "long"),
        ("1", "long"),
        (Decimal("NaN"), "double"),
        (Decimal("1.005"), "decimal(5,2)"),
        ("abcd", "varchar(3)"),
        ("a", "binary"),
        (dt.datetime(2020, 1, 1), "date"),
        (dt.datetime(2020, 1, 1), "timestamp"),
        (dt.datetime(2020, 1, 1, tzinfo=dt.UTC), "timestamp_ntz"),
        (dt.time(1, tzinfo=dt.UTC), "time(6)"),
        (1.5, "interval year"),
        (7, "variant"),
    ],
)
def test_a_value_that_the_column_cannot_hold_is_none(given: Any, type: str) -> None:
    assert value_of(given, AtomicType(type)) is None
    assert value_of([1], ListType(element=AtomicType("long"))) is None


@pytest.mark.parametrize(
    ("stored", "type", "value"),
    [
        (typed_value("byte", -128), "long", typed_value("long", -128)),
        (typed_value("integer", 5), "decimal(12,2)", typed_value("decimal(12,2)", "5.00")),
        (typed_value("decimal(5,2)", "1.25"), "decimal(30,4)", typed_value("decimal(30,4)", "1.2500")),
        (typed_value("float", 0.10000000149011612), "double", typed_value("double", 0.10000000149011612)),
        (typed_value("float", "NaN"), "double", typed_value("double", "NaN")),
        (typed_value("date", 18_292), "timestamp_ntz", typed_value("timestamp_ntz", 1_580_428_800_000_000)),
        (typed_value("string", "a  "), "varchar(5)", typed_value("string", "a  ")),
        (typed_value("string", "A"), "string collate UTF8_LCASE", typed_value("string", "A")),
        (typed_value("time(3)", 1000), "time(6)", typed_value("time(6)", 1000)),
    ],
)
def test_a_value_becomes_what_its_column_became(stored: TypedValue, type: str, value: TypedValue) -> None:
    assert widened(stored, AtomicType(type)) == value


@pytest.mark.parametrize(
    ("stored", "type"),
    [
        (typed_value("long", 5), "integer"),
        (typed_value("string", "5"), "integer"),
        (typed_value("integer", 1 << 40), "integer"),
        (typed_value("decimal(5,2)", "1.255"), "decimal(5,2)"),
        (typed_value("binary", "*"), "binary"),
        (typed_value("long", 5), "variant"),
    ],
)
def test_a_value_of_another_type_is_refused(stored: TypedValue, type: str) -> None:
    with pytest.raises(InvalidInput):
        widened(stored, AtomicType(type))


@pytest.mark.parametrize(
    ("type", "value"),
    [
        ("integer", "5"),
        ("integer", True),
        ("boolean", 1),
        ("decimal(5,2)", 1.5),
        ("string", 5),
        ("date", "2020-01-31"),
        ("variant", "1"),
        ("char(3)", "a  "),
        ("nonsense", 5),
    ],
)
def test_a_value_in_another_form_than_its_types_is_refused(type: str, value: Any) -> None:
    with pytest.raises(InvalidInput):
        typed_value(type, value)


def test_a_column_keeps_a_value_from_elsewhere_in_its_own_type() -> None:
    assert stored_value(typed_value("integer", 5), AtomicType("long")) == typed_value("long", 5)
    assert stored_value(typed_value("string", "ab"), AtomicType("char(4)")) == typed_value("string", "ab  ")
    assert stored_value(typed_value("string", "ab  "), AtomicType("varchar(3)")) == typed_value(
        "string", "ab "
    )
    assert stored_value(typed_value("decimal(5,2)", "1.5"), AtomicType("decimal(5,2)")) == typed_value(
        "decimal(5,2)", "1.50"
    )
    assert stored_value(typed_value("string", None), ListType(element=AtomicType("long"))) is None
    with pytest.raises(InvalidInput, match="too long"):
        stored_value(typed_value("string", "abcd"), AtomicType("varchar(3)"))
    with pytest.raises(InvalidInput, match="not a value of the type array<long>"):
        stored_value(typed_value("long", 1), ListType(element=AtomicType("long")))


@pytest.mark.parametrize(
    ("value", "sql"),
    [
        (typed_value("boolean", False), "false"),
        (typed_value("long", -(2**63)), "-9223372036854775808"),
        (typed_value("float", 1e-45), "1e-45F"),
        (typed_value("double", -0.0), "-0.0D"),
        (typed_value("double", "-Infinity"), "CAST('-Infinity' AS DOUBLE)"),
        (typed_value("decimal(5,2)", "-1.50"), "-1.50"),
        (typed_value("string", "it's \\ \n\"ä😀"), "'it\\'s \\\\ \n\"ä😀'"),
        (typed_value("binary", "AP8="), "X'00ff'"),
        (typed_value("date", -719_529), "DATE '-0001-12-31'"),
        (typed_value("date", 2_932_897), "DATE '+10000-01-01'"),
        (typed_value("timestamp", -1), "TIMESTAMP '1969-12-31 23:59:59.999999Z'"),
        (typed_value("timestamp_ntz", 0), "TIMESTAMP_NTZ '1970-01-01 00:00:00.000000'"),
        (typed_value("time(6)", 86_399_999_999), "TIME '23:59:59.999999'"),
        (typed_value("interval year", -36), "INTERVAL '-3' YEAR"),
        (typed_value("interval year to month", -14), "INTERVAL '-1-2' YEAR TO MONTH"),
        (typed_value("interval month", 14), "INTERVAL '14' MONTH"),
        (typed_value("interval day", 172_800_000_000), "INTERVAL '2' DAY"),
        (
            typed_value("interval day to second", -93_784_500_000),
            "INTERVAL '-1 02:03:04.500000' DAY TO SECOND",
        ),
        (typed_value("interval hour to minute", 360_060_000_000), "INTERVAL '100:01' HOUR TO MINUTE"),
        (typed_value("interval second", 61_000_001), "INTERVAL '61.000001' SECOND"),
    ],
)
def test_a_value_is_written_as_sparks_literal(value: TypedValue, sql: str) -> None:
    assert literal_of(value) == sql


def test_years_of_iso_have_four_digits_or_a_sign() -> None:
    texts = [moment_text(typed_value("date", days)) for days in (-719_528, -719_529, 2_932_896, 2_932_897)]
    assert texts == ["0000-01-01", "-0001-12-31", "9999-12-31", "+10000-01-01"]
