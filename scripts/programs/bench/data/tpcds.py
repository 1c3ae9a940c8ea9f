"""TPC-DS by DuckDB's extension: its rows, its 99 queries for Spark, and its tables in a catalog.

Two things change in the queries. Names in double quotes get Spark's backticks. Each order goes on with all columns of
the answer. A query with a LIMIT then has the same answer wherever it runs.
"""

from __future__ import annotations

import importlib.metadata
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import DataFrame

FACTS = {
    "catalog_returns": ("cr_returned_date_sk", "cr_item_sk"),
    "catalog_sales": ("cs_sold_date_sk", "cs_item_sk"),
    "inventory": ("inv_date_sk", "inv_item_sk"),
    "store_returns": ("sr_returned_date_sk", "sr_item_sk"),
    "store_sales": ("ss_sold_date_sk", "ss_item_sk"),
    "web_returns": ("wr_returned_date_sk", "wr_item_sk"),
    "web_sales": ("ws_sold_date_sk", "ws_item_sk"),
}
"""The day that a fact table is partitioned by, and the key of its item."""

DELETES = ("{item} % 25 = 3", "{item} % 25 = 4 AND {day} < 2451500")
"""Rows that each fact table loses by two DELETEs: about 6 % of all, in all files."""

TOLERANCE = 1e-12
"""The relative difference of doubles that counts as none: the order of their rows decides how sums are rounded."""


def load(connection: duckdb.DuckDBPyConnection) -> None:
    """Load the extension. It comes as a package, so nothing is downloaded here."""
    files = importlib.metadata.files("duckdb-extension-tpcds") or []
    (path,) = (file.locate() for file in files if file.name.endswith(".duckdb_extension"))
    connection.execute(f"LOAD '{path}'")


def generate(folder: Path, scale: float) -> dict[str, Path]:
    """Write all tables as Parquet files, and return the file of each table."""
    folder.mkdir(parents=True)
    with duckdb.connect() as connection:
        load(connection)
        connection.execute(f"CALL dsdgen(sf = {scale:g})")
        names = [name for (name,) in connection.execute("SHOW TABLES").fetchall()]
        for name in names:
            connection.execute(f"COPY {name} TO '{folder / name}.parquet'")
    return {name: folder / f"{name}.parquet" for name in names}


def queries(numbers: Sequence[int] = ()) -> dict[int, str]:
    """Return the text of these queries by number, or of all."""
    with duckdb.connect() as connection:
        load(connection)
        texts = connection.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall()
    return {number: in_spark(text) for number, text in texts if not numbers or number in numbers}


def in_spark(text: str) -> str:
    return text.strip().rstrip("; ").replace('"', "`")


def in_total_order(text: str, columns: int) -> str:
    """Order the answer of a query by all of its columns, after the query's own order."""
    body, limit = re.fullmatch(r"(.*?)(\s+LIMIT\s+\d+)?", text, re.DOTALL | re.IGNORECASE).groups("")  # type: ignore[union-attr]
    places = ", ".join(str(place) for place in range(1, columns + 1))
    last_order = list(re.finditer(r"\bORDER\s+BY\b", body, re.IGNORECASE))[-1:]
    is_ordered = any(
        body[: order.start()].count("(") == body[: order.start()].count(")") for order in last_order
    )
    return f"{body}{', ' if is_ordered else ' ORDER BY '}{places}{limit}"


def create_tables(
    run: Callable[[str], object],
    place: str,
    sources: Mapping[str, Path],
    clauses: str,
    *,
    by: str = "{day}",
    deleted: bool = False,
) -> None:
    """Create all tables in a namespace. `clauses` are those of CREATE TABLE for the format.

    Fact tables are partitioned `by` an expression over their day, or not if it is empty. `deleted` leaves out the rows
    that `delete_rows` deletes.
    """
    for name, path in sources.items():
        partitions, where, spread = "", "", ""
        if name in FACTS and by:
            day = FACTS[name][0]
            partitions, spread = f"PARTITIONED BY ({by.format(day=day)})", f"DISTRIBUTE BY {day}"
        if name in FACTS and deleted:
            condition = " OR ".join(f"({condition})" for condition in conditions(name))
            where = f"WHERE ({condition}) IS NOT TRUE"
        run(
            f"CREATE TABLE {place}.{name} {clauses} {partitions} AS SELECT * FROM parquet.`{path}` {where} {spread}"
        )


def delete_rows(run: Callable[[str], object], place: str) -> None:
    for name in FACTS:
        for condition in conditions(name):
            run(f"DELETE FROM {place}.{name} WHERE {condition}")


def conditions(fact: str) -> Iterator[str]:
    day, item = FACTS[fact]
    return (condition.format(day=day, item=item) for condition in DELETES)


@dataclass(frozen=True)
class Answer:
    """The columns of an answer with their types, and its rows in the order of the query."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...]


def answer(frame: DataFrame) -> Answer:
    columns = tuple((field.name, field.dataType.simpleString()) for field in frame.schema.fields)
    return Answer(columns, tuple(tuple(row) for row in frame.collect()))


def difference(found: Answer, expected: Answer) -> str:
    """Return the first difference of two answers, or nothing. All values but doubles have to be the same."""
    if found.columns != expected.columns:
        return f"columns {found.columns}, not {expected.columns}"
    if len(found.rows) != len(expected.rows):
        return f"{len(found.rows)} rows, not {len(expected.rows)}"
    for number, (row, expected_row) in enumerate(zip(found.rows, expected.rows, strict=True)):
        if not all(map(_same, row, expected_row)):
            return f"row {number} is {row}, not {expected_row}"
    return ""


def _same(value: object, expected: object) -> bool:
    if isinstance(value, float) and isinstance(expected, float):
        return math.isclose(value, expected, rel_tol=TOLERANCE) or value != value and expected != expected
    return value == expected
