"""Input of users may be as deep and as large as forged objects. It is refused, with the limit in the message."""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, col, engine
from lakelog.catalog.core.schema import ViewDefinition
from lakelog.catalog.core.schema.predicate import Predicate
from lakelog.catalog.core.schema.spark_types import schema_from_spark
from lakelog.log import InvalidInput


def joined(op: Callable[[Any, Any], Any], count: int) -> Any:
    return functools.reduce(op, [col("id") == n for n in range(count)])


def nested(wrap: Callable[[Any], Any], depth: int, inner: Any) -> Any:
    for _ in range(depth):
        inner = wrap(inner)
    return inner


@pytest.fixture
def catalog() -> Catalog:
    return Catalog("memory://deep-input")


@pytest.fixture
def table(catalog: Catalog) -> Any:
    if catalog.table_exists("t"):
        return catalog.load_table("t")
    return catalog.create_table("t", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1, 2]}))


@pytest.mark.parametrize("op", [operator.or_, operator.and_])
def test_a_filter_of_many_conditions_is_answered_up_to_a_limit(table: Any, op: Any) -> None:
    """Python nests each condition in the next."""
    filter = joined(op, 1_000)
    assert table.scan(filter=filter).to_arrow().num_rows == (2 if op is operator.or_ else 0)
    assert table.plan(filter).num_rows == (1 if op is operator.or_ else 0)
    assert len(filter.to_json()["args"]) == 1_000 and str(filter).count(" = ") == 1_000
    filter = joined(op, 20_000)
    for use in (lambda: table.scan(filter=filter), lambda: table.delete(filter), filter.to_json):
        with pytest.raises(InvalidInput, match="has 20,000 conditions, and the limit is 10,000"):
            use()
    assert "too many conditions" in str(filter)


def test_many_conditions_are_written_as_a_list_too(table: Any) -> None:
    assert table.scan(filter=[[("id", "=", n)] for n in range(1_000)]).to_arrow().num_rows == 2
    assert table.scan(filter=col("id").is_in(range(1_000))).to_arrow().num_rows == 2
    assert table.scan(filter=joined(operator.or_, 190)).to_arrow().num_rows == 2


def test_other_deep_filters_name_the_limit(table: Any) -> None:
    deep = '{"op":"NOT","args":[' * 5_000 + '{"op":"x"}' + "]}" * 5_000
    for use in (
        lambda: table.scan(filter=nested(lambda one: [one], 1_000, ("id", "=", 1))),
        lambda: table.scan(filter=nested(operator.invert, 1_000, col("id") == 1)),
        lambda: table.delete(nested(lambda one: ~(one | (col("id") == 2)), 1_000, col("id") == 1)),
        lambda: Predicate.from_json(deep),
    ):
        with pytest.raises(InvalidInput, match="deeper than the limit of 200 levels"):
            use()
    with pytest.raises(InvalidInput, match="half a surrogate pair"):
        table.scan(filter=col("id") == "\ud800")


@pytest.mark.parametrize("depth", [65, 500, 3_000])
def test_deep_columns_name_the_limit(catalog: Catalog, depth: int) -> None:
    wraps: list[Callable[[Any], Any]] = [
        lambda type: pa.struct([("x", type)]),
        pa.list_,
        lambda type: pa.map_(pa.string(), type),
    ]
    for wrap in wraps:
        with pytest.raises(InvalidInput, match="nested deeper than the limit of 64 levels"):
            catalog.create_table("deep", pa.schema([("x", nested(wrap, depth, pa.int64()))]))


def test_deep_types_of_spark_name_the_limit() -> None:
    def struct(type: Any) -> Any:
        return {"type": "struct", "fields": [{"name": "x", "type": type, "nullable": True, "metadata": {}}]}

    for schema in (nested(struct, 500, "long"), json.dumps(nested(struct, 200, "long"))):
        with pytest.raises(InvalidInput, match="nested deeper than the limit of 64 levels"):
            schema_from_spark(schema)
    with pytest.raises(InvalidInput, match="nested too deeply"):
        schema_from_spark('{"type":' * 5_000 + '"long"' + "}" * 5_000)


def test_other_input_is_refused_in_one_short_line(catalog: Catalog, table: Any) -> None:
    deep = nested(lambda one: [one], 2_000, 1)
    view = ViewDefinition(text="SELECT 1", columns=(), dependencies=deep)
    uses: list[Callable[[], Any]] = [
        lambda: catalog.load_table(["x"] * 100_000),
        lambda: catalog.load_table("x" * 1_000_000),
        lambda: catalog.load_table("\ud800"),
        lambda: engine.create_view(catalog, "v", view),
        lambda: Catalog("memory://deep-writer", writer={"x": deep}).create_namespace("n"),
        lambda: Catalog(
            "memory://deep-writer", writer={"x": nested(lambda one: [one], 300, 1)}
        ).create_namespace("n"),
        lambda: catalog.create_namespace("p", {"x": "y" * 9_000_000}),
        lambda: table.at(version=10**30),
    ]
    for use in uses:
        with pytest.raises(InvalidInput) as error:
            use()
        assert len(str(error.value)) < 400 and "\n" not in str(error.value)
    assert not Catalog("memory://deep-writer").namespace_exists("n")
