"""A list of many values is taken at once where that gives what comparing them one by one does."""

from __future__ import annotations

import pytest

from lakelog.catalog.core.planning import binding
from lakelog.catalog.core.planning.bound import InCondition
from lakelog.catalog.core.schema.predicate import Column, FilterLiteral, Predicate
from lakelog.catalog.core.schema.schema import assign_ids
from lakelog.catalog.core.schema.types import AtomicType, Field

TAKEN = [
    ("long", "long", [1, 2**63, -(2**63), -(2**63) - 1, None]),
    ("long", "integer", [7, -7]),
    ("byte", "long", [127, 128, -128, -129]),
    ("integer", None, [5, 2**31, None]),
    ("date", "date", [0, 3_000_000, 2**31]),
    ("timestamp", "timestamp", [0, -1, 2**62]),
    ("timestamp_ntz", "timestamp_ntz", [12]),
    ("string", "string", ["a", "", "b ", None]),
    ("string", "varchar(2147483647)", ["a"]),
    ("varchar(3)", "char(3)", ["a  "]),
    ("string", None, ["é"]),
]
"""Types of columns and of literals, and values whose number does not matter."""

COMPARED = [
    ("long", "double", [1.5, 2.0]),
    ("long", "decimal(3,1)", ["1.0", "1.5"]),
    ("long", None, ["12"]),
    ("double", "double", [0.5, "NaN"]),
    ("decimal(5,2)", "decimal(5,2)", ["1.50"]),
    ("char(3)", "string", ["a"]),
    ("date", "timestamp_ntz", [0]),
    ("date", None, ["2026-01-01"]),
    ("time(6)", "time(6)", [5]),
    ("binary", "binary", ["AA=="]),
    ("boolean", "boolean", [True]),
]
"""Those that are compared one by one: they become other values, or are found between others."""


def bound(column, kind, values):
    literals = tuple(FilterLiteral(value, kind) for value in values)
    schema = assign_ids([Field(name="x", type=AtomicType(column))])
    return binding.bind(Predicate("IN", (Column(("x",)), *literals)), schema)


@pytest.mark.parametrize(("column", "kind", "values"), TAKEN)
def test_values_of_the_columns_own_type_are_taken_at_once(monkeypatch, column, kind, values):
    with monkeypatch.context() as patch:
        patch.setattr(binding, "compared", None)
        found = bound(column, kind, values)
    with monkeypatch.context() as patch:
        patch.setattr(binding, "_plain_values", lambda term, literals: None)
        assert found == bound(column, kind, values)
    assert isinstance(found, InCondition)


@pytest.mark.parametrize(("column", "kind", "values"), COMPARED)
def test_other_values_are_compared_one_by_one(monkeypatch, column, kind, values):
    found = bound(column, kind, values)
    with monkeypatch.context() as patch:
        patch.setattr(binding, "_plain_values", lambda term, literals: None)
        assert found == bound(column, kind, values)
    monkeypatch.setattr(binding, "compared", None)
    with pytest.raises(TypeError):
        bound(column, kind, values)
