"""Filters as text, and as expressions of pyarrow and of Polars: the rows that the predicate or the library finds."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.property.catalog.filter_forms import NotSaid, arrow_of, duckdb_of, polars_of, text_of
from tests.property.catalog.filter_model import TYPES, predicates, rows, schema_of
from tests.property.examples import examples

from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.planning.foreign import handed_down
from lakelog.catalog.core.planning.row_filter import evaluate
from lakelog.catalog.core.schema.arrow_types import schema_from_arrow, schema_to_arrow
from lakelog.catalog.core.schema.filter_arrow import from_arrow_expression
from lakelog.catalog.core.schema.filter_polars import conjuncts, from_polars_expression
from lakelog.catalog.core.schema.filters import as_predicate
from lakelog.catalog.core.schema.predicate import Predicate
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.tools.duckdb_relation import to_relation
from lakelog.log.errors import InvalidInput

every_column = pytest.mark.parametrize("column", sorted(TYPES))
some = settings(max_examples=examples(12, full=500))


TOKENS = [
    "a", "`b c`", ".", "1", "-", "1.5D", "9L", "'x'", "'%x'", "r'\\'", "X'1'", "DATE", "'2020-01-01'", "TIMESTAMP",
    "INTERVAL", "DAY", "TO", "CAST", "(", ")", ",", "AS", "DOUBLE", "NULL", "TRUE", "AND", "OR", "NOT", "!", "=", "<=>",
    "<>", "IN", "BETWEEN", "LIKE", "ESCAPE", "IS", "DISTINCT", "FROM", "UNKNOWN", "%", "1e5",
]  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """Rows in memory, of which a library reads a part, as of a table."""

    _row_schema: Schema
    table: pa.Table

    @property
    def arrow_schema(self) -> pa.Schema:
        return self.table.schema

    def _narrowed(
        self, columns: Sequence[str] | None, conditions: Sequence[Predicate], limit: int | None
    ) -> pa.RecordBatchReader:
        table = self.table
        for condition in conditions:
            bound_condition = handed_down(condition, self._row_schema)
            table = table if bound_condition is None else table.filter(evaluate(bound_condition, table))
        table = table if columns is None else table.select(columns)
        return (table if limit is None else table.slice(0, limit)).to_reader()


@functools.cache
def connection() -> duckdb.DuckDBPyConnection:
    """Return one connection for all examples: to open one takes longer than an example."""
    found_connection = duckdb.connect(":memory:")
    found_connection.execute("SET TimeZone = 'UTC'; SET threads = 1")
    return found_connection


@st.composite
def cases(draw: st.DrawFn, column: str) -> tuple[Schema, pa.Table, Predicate]:
    names = (column, "number" if column != "number" else "text")
    schema = schema_of({name: TYPES[name] for name in names})
    table = pa.Table.from_pylist(draw(rows(names)), schema=schema_to_arrow(schema))
    return schema, table, draw(predicates(names))


def results(predicate: Predicate, schema: Schema, table: pa.Table) -> list[bool | None]:
    rows: list[bool | None] = evaluate(bind(predicate, schema), table).to_pylist()
    return rows


def said(form: Any, predicate: Predicate) -> Any:
    """Return the predicate in a form, or give the example up if the form cannot say it."""
    try:
        return form(predicate)
    except (NotSaid, TypeError, OverflowError, pl.exceptions.PolarsError):
        assume(False)


@every_column
@some
@given(data=st.data())
def test_a_text_means_what_the_same_predicate_means(column: str, data: st.DataObject) -> None:
    schema, table, predicate = data.draw(cases(column))
    text = said(text_of, predicate)
    assert results(as_predicate(text), schema, table) == results(predicate, schema, table), text


@given(st.lists(st.sampled_from(TOKENS), max_size=12).map(" ".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidInput):
        assert isinstance(as_predicate(text), Predicate)


@every_column
@some
@given(data=st.data())
def test_an_expression_of_pyarrow_finds_the_rows_that_arrow_finds(column: str, data: st.DataObject) -> None:
    schema, table, predicate = data.draw(cases(column))
    expression = said(arrow_of, predicate)
    counted_column = table.append_column("row", pa.array(range(table.num_rows)))
    try:
        expected = [
            counted_column.filter(each_expression)["row"].to_pylist()
            for each_expression in (expression, ~expression)
        ]
    except pa.ArrowException:
        assume(False)
    try:
        found_predicate = from_arrow_expression(expression)
        masks = [results(predicate, schema, table) for predicate in (found_predicate, ~found_predicate)]
    except InvalidInput:
        return
    assert [[row for row, is_kept in enumerate(mask) if is_kept] for mask in masks] == expected


@every_column
@some
@given(data=st.data())
def test_an_expression_of_polars_finds_the_rows_that_polars_finds(column: str, data: st.DataObject) -> None:
    """Also under NOT; a condition that is handed down to a scan loses none of them."""
    schema, table, predicate = data.draw(cases(column))
    expression = said(polars_of, predicate)
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    try:
        expected = frame.select(found=expression)["found"].to_list()
    except pl.exceptions.PolarsError:
        assume(False)
    for condition in conjuncts(expression):
        bound_condition = handed_down(condition, schema)
        if bound_condition is not None:
            kept_rows = evaluate(bound_condition, table).to_pylist()
            assert not [row for row, wanted in enumerate(expected) if wanted and not kept_rows[row]]
    try:
        found_results = results(from_polars_expression(expression), schema, table)
    except InvalidInput:
        return
    if handed_down(predicate, schema) is not None:
        assert found_results == expected


@every_column
@some
@given(data=st.data())
def test_duckdb_finds_in_a_relation_what_it_finds_in_a_table_of_its_own(
    column: str, data: st.DataObject
) -> None:
    schema, table, predicate = data.draw(cases(column))
    condition = said(duckdb_of, predicate)
    numbered = table.append_column("row", pa.array(range(table.num_rows)))
    relation = to_relation(Rows(schema, numbered), connection())
    connection().execute("CREATE OR REPLACE TEMP TABLE own AS FROM relation")
    query = f"SELECT row FROM {{}} WHERE {condition} ORDER BY row"
    try:
        expected = connection().sql(query.format("own")).fetchall()
        of_arrow = connection().sql(query.format("numbered")).fetchall()
    except duckdb.Error:
        assume(False)
    # Over anything of Arrow, DuckDB refuses IS NOT DISTINCT FROM in an OR, and finds NULL where `x <= NaN`.
    assume(of_arrow == expected)
    assert connection().sql(query.format("relation")).fetchall() == expected, relation.columns


@pytest.mark.parametrize(
    ("values", "looked_up"),
    [
        (pa.array([2**53, 2**53 + 1, None]), 2.0**53),
        (pa.array([-(2**63), -(2**63) + 1]), -(2.0**63)),
        (pa.array([2**63, 2**63 + 1], pa.decimal128(38, 0)), 2.0**63),
        (pa.array([Decimal(1), Decimal("1.00000000000000000001")], pa.decimal128(38, 20)), 1.0),
    ],
)
def test_a_whole_number_as_double_in_a_list_is_found_exactly_as_arrow_finds_it(
    values: pa.Array, looked_up: float
) -> None:
    table = pa.table({"big": values})
    expression = pc.field("big").isin([looked_up])
    mask = results(from_arrow_expression(expression), schema_from_arrow(table.schema), table)
    assert [row for row, is_kept in enumerate(mask) if is_kept] == [0]
    assert table.filter(expression)["big"].to_pylist() == [int(looked_up)]
