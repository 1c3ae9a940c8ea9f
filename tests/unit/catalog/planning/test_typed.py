"""Bound conditions as predicates for engines: each literal in the type that lakelog compares, or none at all."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from lakelog.catalog.core.planning import bind, evaluate, typed
from lakelog.catalog.core.schema import FilterLiteral, Predicate, as_predicate, schema_from_arrow

ROWS = pa.table(
    {
        "whole": pa.array([1, 2, 3, None], pa.int32()),
        "real": pa.array([0.5, math.nan, -1.0, None]),
        "text": pa.array(["a", "ab", "b", None]),
        "exact": pa.array(["1.00", "2.50", "3.00", None], pa.string()).cast(pa.decimal128(9, 2)),
    }
)
SCHEMA = schema_from_arrow(ROWS.schema)


@pytest.mark.parametrize(
    "condition",
    [
        "whole < 2.5",
        "whole <> 300",
        "whole IN (1, 3, NULL)",
        "NOT (whole IN (2, NULL))",
        "real > 0.25",
        "exact = 2.5",
        "exact < 2.4999",
        "text LIKE 'a%'",
        "NOT (text = 'a' AND whole = 1)",
    ],
)
def test_it_means_the_same(condition: str) -> None:
    bound_condition = bind(as_predicate(condition), SCHEMA)
    predicate = typed(bound_condition)
    assert predicate is not None and all(literal.type is not None for literal in literals(predicate))
    assert evaluate(bind(predicate, SCHEMA), ROWS).to_pylist() == evaluate(bound_condition, ROWS).to_pylist()


def literals(predicate: Predicate) -> list[FilterLiteral]:
    args = [arg for arg in predicate.args if isinstance(arg, FilterLiteral)]
    return args + [
        literal for part in predicate.args if isinstance(part, Predicate) for literal in literals(part)
    ]


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("whole = 2.5", "NOT whole = whole"),
        ("whole < 99999999999", "whole = whole"),
        ("whole = NULL", "NULL = NULL"),
        ("whole IN (99999999999, 2.5)", "NOT whole = whole"),
    ],
)
def test_what_is_known_of_all_values_is_said_by_the_column_itself(condition: str, said: str) -> None:
    assert str(typed(bind(as_predicate(condition), SCHEMA))) == said


def test_what_engines_compare_otherwise_is_not_said() -> None:
    schema = schema_from_arrow(pa.schema({"at": pa.time64("us")}))
    assert typed(bind(as_predicate("at IS NULL"), schema)) is None
