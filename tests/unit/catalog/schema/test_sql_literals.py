from __future__ import annotations

import re
from typing import Any

import pytest

from lakelog.catalog.core.schema.sql_literals import parse_literal
from lakelog.catalog.core.schema.types import AtomicType, ListType, TypedValue
from lakelog.log.errors import InvalidInput


@pytest.mark.parametrize(
    ("sql", "type", "value"),
    [
        ("5", "integer", 5),
        ("-128Y", "byte", -128),
        ("42L", "long", 42),
        ("1e2", "long", 100),
        ("- 3", "short", -3),
        ("1.5D", "double", 1.5),
        ("3", "double", 3.0),
        ("CAST('1.5' AS FLOAT)", "float", 1.5),
        ("CAST('-Infinity' AS DOUBLE)", "double", "-Infinity"),
        ("1.50BD", "decimal(5,2)", "1.50"),
        ("7", "decimal(5,2)", "7.00"),
        ("cast(7 as decimal(5, 2))", "decimal(5,2)", "7.00"),
        ("true", "boolean", True),
        ("'it''s \\'so\\'\\n\\u00e4'", "string", "it's 'so'\nä"),
        ('"double"', "string", "double"),
        ("r'a\\n'", "string", "a\\n"),
        ("'ab'", "char(4)", "ab  "),
        ("'ab   '", "varchar(3)", "ab "),
        ("X'1Fa'", "binary", "Afo="),
        ("DATE '2020-01-31'", "date", 18_292),
        ("DATE '2020-01-31'", "timestamp_ntz", 1_580_428_800_000_000),
        ("TIMESTAMP_NTZ '2020-01-31 12:00:00.5'", "timestamp_ntz", 1_580_472_000_500_000),
        ("TIMESTAMP '2020-01-31 12:00:00+02:00'", "timestamp", 1_580_464_800_000_000),
        ("TIMESTAMP '2020-01-31 12:00:00 UTC'", "timestamp", 1_580_472_000_000_000),
        ("TIME '12:30:00'", "time(6)", 45_000_000_000),
        ("INTERVAL '1-2' YEAR TO MONTH", "interval year to month", 14),
        ("INTERVAL '-3' YEAR", "interval year", -36),
        ("INTERVAL '1 02:03:04.5' DAY TO SECOND", "interval day to second",
         93_784_500_000),
    ],
)  # fmt: skip
def test_a_literal_is_read_as_its_type_holds_it(sql: str, type: str, value: Any) -> None:
    parsed_literal = parse_literal(sql, AtomicType(type))
    assert parsed_literal == TypedValue(type=re.sub(r"(var)?char\(\d\)", "string", type), value=value)
    assert parsed_literal.value.__class__ is value.__class__


@pytest.mark.parametrize("sql", ["NULL", "null", "CAST(NULL AS INT)"])
def test_null_is_no_value(sql: str) -> None:
    assert parse_literal(sql, AtomicType("integer")) is None


@pytest.mark.parametrize(
    ("sql", "type"),
    [("128", "byte"), ("1.5", "integer"), ("'5'", "integer"), ("1.505", "decimal(5,2)"), ("0.000120", "decimal(5,2)"),
     ("1000", "decimal(5,2)"), ("'abcd'", "varchar(3)"), ("true", "integer"), ("DATE '2020-01-31'", "timestamp"),
     ("1", "string"), ("X'00'", "string"), ("INTERVAL '1' DAY", "interval year"), ("5", "interval year"),
     ("INTERVAL '5' MONTH", "long")],
)  # fmt: skip
def test_a_literal_of_another_type_or_out_of_range_is_refused(sql: str, type: str) -> None:
    with pytest.raises(InvalidInput, match="is not a value of the type"):
        parse_literal(sql, AtomicType(type))


@pytest.mark.parametrize(
    "sql", ["now()", "1 + 1", "a", "", "'open", "CURRENT_DATE", "ARRAY(1)", "CAST(now() AS DATE)"]
)
def test_an_expression_is_refused(sql: str) -> None:
    with pytest.raises(InvalidInput, match="not a plain literal"):
        parse_literal(sql, AtomicType("long"))


@pytest.mark.parametrize("sql", ["DATE '2020-02-30'", "TIMESTAMP '2020-01-31 12:00:00'", "INTERVAL 'x' DAY"])
def test_a_literal_that_means_nothing_or_different_things_is_refused(sql: str) -> None:
    with pytest.raises(InvalidInput):
        parse_literal(sql, AtomicType("timestamp"))


def test_nested_columns_have_no_default_but_null() -> None:
    for type in (ListType(element=AtomicType("long")), AtomicType("variant")):
        assert parse_literal("NULL", type) is None
        for sql in ("1", "array(1)"):
            with pytest.raises(InvalidInput, match="only NULL can"):
                parse_literal(sql, type)
