"""Filters as text have the meaning of Spark's SQL, or are refused by name."""

from __future__ import annotations

from decimal import Decimal

import pytest

from lakelog.catalog.core.schema.filter_text import parse_filter
from lakelog.catalog.core.schema.filters import as_predicate
from lakelog.catalog.core.schema.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Column,
    FilterLiteral,
    Predicate,
    col,
    literal,
)
from lakelog.log.errors import InvalidInput

A, B = Column(("a",)), Column(("b",))


def that(op: str, *args: Column | FilterLiteral | Predicate) -> Predicate:
    return Predicate(op, args)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a > 5", col("a") > 5),
        ("a == 5 and b != 'x'", (col("a") == 5) & (col("b") != "x")),
        ("A <=> NULL", Predicate("<=>", (Column(("A",)), FilterLiteral(None)))),
        ("5 >= a", that(">=", literal(5), A)),
        ("a < b", col("a") < col("b")),
        ("NOT a = 1 AND b = 2", ~(col("a") == 1) & (col("b") == 2)),
        ("!(a = 1 OR b = 2)", ~((col("a") == 1) | (col("b") == 2))),
        ("a = 1 OR b = 2 AND a = 3", (col("a") == 1) | ((col("b") == 2) & (col("a") == 3))),
        ("((a)) = ((1))", col("a") == 1),
        ("a IN (1, NULL, -2)", that("IN", A, literal(1), FilterLiteral(None), literal(-2))),
        ("a NOT IN (1)", ~col("a").is_in([1])),
        ("a BETWEEN 1 AND 2 AND b", (col("a") >= 1) & (col("a") <= 2) & (col("b") == True)),  # noqa: E712
        ("a NOT BETWEEN 1 AND 2", ~((col("a") >= 1) & (col("a") <= 2))),
        ("a IS NULL", col("a").is_null()),
        ("a IS NOT NULL", col("a").is_not_null()),
        ("a IS TRUE", col("a").null_safe_equals(True)),
        ("a IS NOT FALSE", ~col("a").null_safe_equals(False)),
        ("a IS UNKNOWN", col("a").is_null()),
        ("a IS NOT DISTINCT FROM 1", col("a").null_safe_equals(1)),
        ("a IS DISTINCT FROM 1", ~col("a").null_safe_equals(1)),
        ("a", that("=", A, literal(True))),
        ("TRUE", ALWAYS_TRUE),
        ("false", ALWAYS_FALSE),
        ("NULL", that("AND", FilterLiteral(None))),
        ("`a b`.`c``d`.e = 1", col("a b", "c`d", "e") == 1),
        ("date = 1 AND timestamp.x = 2", (col("date") == 1) & (col("timestamp", "x") == 2)),
        ("`and` = 1", col("and") == 1),
        ("größe = 1", col("größe") == 1),
    ],
)
def test_a_text_is_read_as_spark_reads_it(text: str, expected: Predicate) -> None:
    assert str(parse_filter(text)) == str(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", literal(1)), ("-9223372036854775808", literal(-(2**63))), ("+ 7", literal(7)), ("1L", literal(1)),
        ("-128Y", literal(-128)), ("9223372036854775808", literal(Decimal(2**63))),
        ("1.50", literal(Decimal("1.50"))), (".5", literal(Decimal("0.5"))), ("1e3", literal(1000.0)),
        ("1.5D", literal(1.5)), ("0.1F", FilterLiteral(0.1, "float")), ("1.5BD", literal(Decimal("1.5"))),
        ("1E2BD", literal(Decimal(100))), ("''", literal("")), ("'it''s'", literal("it's")),
        ("'it\\'s'", literal("it's")), ('"a""b\'c"', literal("a\"b'c")),
        ("'a\\\\b\\n\\t\\0\\d'", literal("a\\b\n\t\0d")), ("'\\u00e9\\U0001F600\\101'", literal("é😀A")),
        ("'\\ud83d\\ude00'", literal("😀")), ("'100\\%'", literal("100\\%")), ("r'a\\nb'", literal("a\\nb")),
        ("X'1Ff'", literal(b"\x01\xff")), ("DATE'1970-01-02'", FilterLiteral(1, "date")),
        ("timestamp '1970-01-01 01:00:00+01:00'", FilterLiteral(0, "timestamp")),
        ("TIMESTAMP'1970-01-01 00:00:00.000001Z'", FilterLiteral(1, "timestamp")),
        ("TIMESTAMP_NTZ'1970-01-01 00:00:01'", FilterLiteral(1_000_000, "timestamp_ntz")),
        ("TIME'00:00:01'", FilterLiteral(1_000_000, "time")),
        ("INTERVAL '1' DAY", FilterLiteral(86_400_000_000, "interval day to second")),
        ("INTERVAL -'1-2' YEAR TO MONTH", literal(-14)), ("CAST('NaN' AS DOUBLE)", FilterLiteral("NaN", "double")),
        ("cast('-inf' as float)", FilterLiteral("-Infinity", "double")),
        ("CAST(NULL AS DECIMAL(10, 2))", FilterLiteral(None)),
        ("TRUE", literal(True)), ("NULL", FilterLiteral(None)),
    ],
)  # fmt: skip
def test_a_literal_has_the_value_and_type_that_it_has_in_spark(text: str, expected: FilterLiteral) -> None:
    assert parse_filter(f"a = {text}") == that("=", A, expected)
    assert parse_filter(f"a IN ({text},{text})") == that("IN", A, expected, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'ab%'", that("STARTS_WITH", A, literal("ab"))),
        ("'%ab'", that("ENDS_WITH", A, literal("ab"))),
        ("'%%ab%%'", that("CONTAINS", A, literal("ab"))),
        ("'%'", that("STARTS_WITH", A, literal(""))),
        ("'ab'", that("=", A, FilterLiteral("ab", "varchar(2)"))),
        ("'5\\%'", that("=", A, FilterLiteral("5%", "varchar(2)"))),
        ("'5!%!_!!%' ESCAPE '!'", that("STARTS_WITH", A, literal("5%_!"))),
        ("NULL", that("=", A, FilterLiteral(None))),
    ],
)
def test_like_becomes_the_test_that_it_is(text: str, expected: Predicate) -> None:
    assert parse_filter(f"a LIKE {text}") == expected
    assert parse_filter(f"a NOT LIKE {text}") == ~expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no text"), ("  ", "no text"),
        ("a >", "has nothing more at character 4: expected a column or a literal"), ("a > > 1", "'>' at character 5"),
        ("a = 1 b = 2", "has 'b' at character 7: expected the end, AND or OR"),
        ("(a = 1", r"nothing more at character 7: expected \)"), ("a = 'x", "\"'\" at character 5"),
        ("a @ 1", "'@' at character 3"), ("a = 1; DELETE", "';' at character 6"), ("a -- x", "'-' at character 3"),
        ("1a = 1", "'1' at character 1"), ("year(a) = 1", "calls the function year at character 1"),
        ("a + 1 = 2", r"has '\+' at character 3"), ("a % 2 = 0", "'%' at character 3"),
        ("a = -b", "'-' at character 5"), ("a LIKE 'x_'", "LIKE with _"), ("a LIKE 'x%y'", "LIKE with % between"),
        ("a LIKE b", "LIKE with something other than a text"), ("a LIKE 'a\\\\b'", "LIKE that escapes 'b'"),
        ("a LIKE 'x' ESCAPE 'ab'", "ESCAPE that is not one character"), ("a RLIKE 'x'", "'RLIKE'"),
        ("a ILIKE 'x'", "'ILIKE'"), ("a NOT 1", "expected IN, BETWEEN or LIKE"),
        ("a IN (b)", "IN with something other than literals"), ("a IN ()", r"'\)' at character 7"),
        ("a IN (SELECT 1)", "'SELECT'"), ("a IN 1", r"expected \("), ("a IN (1", r"expected a comma or \)"),
        ("5 IN (1)", "other than a column"), ("(a, b) = (1, 2)", "several values in parentheses"),
        ("1 = 1", "compares two literals"), ("a = 1 = b", "tests the result of a test"),
        ("(a = 1) = TRUE", "compares a condition"), ("(a = 1) IS NULL", "tests a condition by IS"),
        ("a IS 5", "has '5' at character 6: expected NULL, TRUE"), ("a IS NOT", "nothing more"),
        ("5", "in place of a condition"), ("a AND 5", "in place of a condition"),
        ("'x' OR a", "in place of a condition"), ("a BETWEEN 1 OR 2", "expected AND"),
        ("IN = 1", "stands in backquotes"), ("CASE WHEN a THEN b END", "'CASE'"),
        ("a. = 1", "expected the name of a field"), ("a = 'x' 'y'", "two texts in a row"),
        ("a = CAST('5' AS INT)", "has a CAST"), ("a = CAST(5 AS DOUBLE)", "has a CAST"),
        ("a = CAST(NULL INT)", "expected AS"), ("a = 300Y", "not a TINYINT"), ("a = 1.5L", "not a BIGINT"),
        ("a = 1e400", "beyond the type"), ("a = 1e39F", "beyond the type"),
        ("a = 1e999999999BD", "more than 38 digits"), ("a = TIMESTAMP'2020-01-01 00:00:00'", "has no time zone"),
        ("a = DATE'2020-02-30'", "is not a date"), ("a = INTERVAL 'x' DAY", "is not an interval"),
        ("a = INTERVAL '1' FORTNIGHT", "is not an interval"), ("a = '\\ud800'", "half a surrogate pair"),
        ("(" * 5000 + "a" + ")" * 5000, "nested deeper"), ("NOT " * 5000 + "a", "nested deeper"),
    ],
)  # fmt: skip
def test_what_is_wrong_or_cannot_be_said_is_refused_by_its_name(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        as_predicate(text)


def test_many_conditions_are_one_level_deep() -> None:
    predicate = as_predicate(" AND ".join(f"a <> {number}" for number in range(5000)))
    assert len(predicate.args) == 5000


def test_texts_stand_in_lists_as_other_filters_do() -> None:
    assert as_predicate(["a > 1", ("b", "=", 2)]) == (col("a") > 1) & (col("b") == 2)
    assert as_predicate([["a > 1"], ["b = 2"]]) == (col("a") > 1) | (col("b") == 2)
