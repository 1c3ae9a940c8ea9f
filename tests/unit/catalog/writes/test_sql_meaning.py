"""Expressions in DuckDB's SQL whose text means something else in Spark: refused, with what to write instead."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from lakelog.catalog.core.schema import AtomicType, Field, ListType, Schema
from lakelog.catalog.core.schema.schema import assign_ids
from lakelog.catalog.core.writes.sql.engine import SqlEngine
from lakelog.catalog.core.writes.sql.expressions import ExpressionScope, parsed
from lakelog.log.errors import InvalidInput, Unsupported

TYPES = {
    "n": "long", "d": "double", "f": "float", "w": "string", "x": "binary", "day": "date", "m": "timestamp",
    "price": "decimal(10,2)",
}  # fmt: skip
SCHEMA: Schema = assign_ids(
    [
        *(Field(name=name, type=AtomicType(type)) for name, type in TYPES.items()),
        Field(name="l", type=ListType(element=AtomicType("long"))),
    ]
)


@pytest.fixture(scope="module")
def engine() -> Iterator[SqlEngine]:
    with SqlEngine.opened() as engine:
        yield engine


REFUSED = {
    "n ^ 2": r"the operator \^",
    "n + l[1]": r"a position in \[ \]",
    "w LIKE e'a\\\\_'": "LIKE with a backslash",
    "w NOT LIKE w": "LIKE with a backslash, or with a pattern that is computed",
    "w = 'a\\b'": "a text with a backslash",
    "x = x'ff'": "bytes in hexadecimals",
    '"w" = 1': "a name in double quotes",
    "concat(w, 'x')": "the function concat, and it is NULL",
    "log(d)": "the natural logarithm",
    "dayofweek(day)": "isodow",
    "extract(dow FROM day)": "use isodow",
    "extract(second FROM m)": "it has a fraction",
    "substring(w, 0, 2)": "has the number 1",
    "regexp_replace(w, 'a', 'b')": "all matches",
    "regexp_extract(w, '(a)')": "group 1",
    "trim(w, 'a')": "the other way round",
    "array_contains(l, 1)": "write list_contains",
    "isnan(d)": "false for NULL",
    "CAST(d AS VARCHAR)": "a double that becomes a text",
    "w || m": r"a timestamp\[us, tz=UTC\] that becomes a text",
    "concat_ws('-', w, d)": "a double that becomes a text",
    "CAST(price AS DECIMAL)": "a DECIMAL without its digits",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_means_something_else_in_spark_is_refused(engine: SqlEngine, text: str) -> None:
    with pytest.raises(Unsupported, match=REFUSED[text]):
        parsed(engine, text, ExpressionScope(target=SCHEMA, is_bare=True))


@pytest.mark.parametrize(
    "text",
    [
        "w LIKE 'a!_' ESCAPE '!'", "w = e'a\\\\b'", "w = $$a\\b$$", 'target."w"', "w || n || price || day", "ln(d)",
        "log(2, d)", "n ** 2", "list_extract(l, 1)", "trim(BOTH 'a' FROM w)", "substring(w, -1)", "repeat(w, 2)",
        "regexp_replace(w, 'a', 'b', 'g')", "CAST(price AS DECIMAL(18, 3))", "l['1'] IS NULL", "xor(n, 1)",
    ],
)  # fmt: skip
def test_what_to_write_instead_is_taken(engine: SqlEngine, text: str) -> None:
    parsed(engine, text, ExpressionScope(target=SCHEMA, is_bare=True))


@pytest.mark.parametrize("text", ["n", "d + 1", "w", "CASE WHEN n > 1 THEN 2 END"])
def test_a_condition_is_a_boolean(engine: SqlEngine, text: str) -> None:
    with pytest.raises(Unsupported, match="is a condition of type .*, not a boolean"):
        parsed(engine, text, ExpressionScope(target=SCHEMA, is_bare=True), is_condition=True)
    with pytest.raises(InvalidInput, match="is not a text"):
        parsed(engine, pa.scalar(text), ExpressionScope(target=SCHEMA), is_condition=True)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("CAST(2.7 AS INT)", 2), ("CAST(-2.5 AS BIGINT)", -2), ("CAST(CAST(1.5 AS DOUBLE) AS TINYINT)", 1),
        ("TRY_CAST('1.7' AS INT)", None), ("TRY_CAST(' -7 ' AS INT)", -7), ("CAST(0.1 AS FLOAT) = 0.1", False),
        ("7 / 2", 3.5), ("-7 % 3", -1), ("CAST(round(2.5) AS INT)", 3),
    ],
)  # fmt: skip
def test_casts_and_divisions_are_sparks(engine: SqlEngine, text: str, found: object) -> None:
    assert engine.value(f"SELECT {parsed(engine, text, ExpressionScope()).sql}") == found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1 / 0", "division by zero"),
        ("mod(5, 1 - 1)", "division by zero"),
        ("CAST('1.7' AS INT)", "not an integer: 1.7"),
    ],
)
def test_what_is_an_error_in_spark_is_one_here(engine: SqlEngine, text: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        engine.value(f"SELECT {parsed(engine, text, ExpressionScope()).sql}")
