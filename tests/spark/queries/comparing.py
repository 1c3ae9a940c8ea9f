"""Runs a query on two sides and holds the answers against each other: rows, names, types, or errors."""

from __future__ import annotations

import datetime as dt
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import ArrayType, DataType, StructType
from tests.spark.queries.selects import Query
from tests.spark.queries.sql import Sql, TableRef, features

# Errors are answers here.
logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)


Conf = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Side:
    """Where a query runs: how tables are written, which catalog `lake.` stands for, and settings beside the world's."""

    kind: str
    written: Callable[[TableRef], str]
    catalog: str
    conf: Conf = ()

    def table(self, ref: TableRef) -> str:
        return self.written(ref)

    def text(self, sql: Sql) -> str:
        return re.sub(r"\blake\.", f"{self.catalog}.", sql.write(self))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query returned: columns with types and rows that can be compared, or the class of its error."""

    columns: tuple[tuple[str, str], ...] = ()
    rows: tuple[Any, ...] = ()
    alike: tuple[Any, ...] = ()
    """The rows, with one text for all that its collation holds equal."""

    error: str = ""
    message: str = field(default="", compare=False)
    plan: str = field(default="", compare=False)
    took_s: float = field(default=0, compare=False)


def run(spark: SparkSession, side: Side, sql: Sql) -> Answer:
    start_time = time.perf_counter()
    with settings(spark, side.conf):
        try:
            frame = spark.sql(side.text(sql))
            columns = tuple((field.name, field.dataType.simpleString()) for field in frame.schema.fields)
            rows = tuple(plain(row) for row in frame.collect())
            took_s = time.perf_counter() - start_time
            plan = frame._jdf.queryExecution().executedPlan().toString()
            alike = tuple(folded(row, frame.schema) for row in rows)
            return Answer(columns, rows, alike, plan=plan, took_s=took_s)
        except PySparkException as error:
            return Answer(error=error.getCondition() or type(error).__name__, message=str(error))
        except Py4JJavaError as error:
            return Answer(error=error.java_exception.getClass().getName(), message=str(error.java_exception))


@contextmanager
def settings(spark: SparkSession, conf: Conf) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key, _ in conf}
    for key, setting in conf:
        spark.conf.set(key, setting)
    try:
        yield
    finally:
        for key, setting in before.items():
            spark.conf.unset(key) if setting is None else spark.conf.set(key, setting)


def plain(value: Any) -> Any:
    """Return a value that is equal and hashable if Spark's is the same: NaN too, and the two zeros are two."""
    match value:
        case Row() | tuple() | list():
            return tuple(plain(each) for each in value)
        case dict():
            return tuple(sorted(((plain(key), plain(each)) for key, each in value.items()), key=repr))
        case float():
            return repr(value)
        case bytearray():
            return bytes(value)
        case dt.datetime() | dt.date():
            return value.isoformat()
    return value


def folded(value: Any, type: DataType) -> Any:
    """Return a plain value with one text in the place of all texts that are equal by the collation of its type."""
    match type:
        case _ if value is None or "collate" not in type.simpleString():
            return value
        case StructType():
            return tuple(folded(each, field.dataType) for each, field in zip(value, type.fields, strict=True))
        case ArrayType():
            return tuple(folded(each, type.elementType) for each in value)
    text = value.rstrip(" ") if type.simpleString().endswith("_RTRIM") else value
    return text.lower() if "_LCASE" in type.simpleString() or "_CI" in type.simpleString() else text


CHOOSING = {
    "min and max", "group by", "grouping sets", "rollup", "cube", "distinct", "inner limit", "join using",
    "natural join", "union", "intersect", "intersect all", "except", "except all", "window",
}  # fmt: skip
"""What a query may have that takes one of several equal values, and does not say which one."""

OF_SPARK = ("INTERNAL_ERROR", "MISSING_ATTRIBUTES", "PLAN_VALIDATION_FAILED")
"""What Spark fails with where its own rules break a plan. Plain tables then have no answer to compare with."""


def difference(
    spark: SparkSession, one: Side, other: Side, query: Query, expected: Answer | None = None
) -> tuple[str, Answer, Answer]:
    """Return what is different, or nothing, and both answers. `other` is the side that is right."""
    found_answer, expected = run(spark, one, query.sql), expected or run(spark, other, query.sql)
    if found_answer.error or expected.error:
        if found_answer.error == expected.error or (expected.error or "").startswith(OF_SPARK):
            return "", found_answer, expected
        return (
            f"errors: {found_answer.error or 'none'}, where {expected.error or 'none'} is due",
            found_answer,
            expected,
        )
    if found_answer.columns != expected.columns:
        return f"columns: {found_answer.columns}, where {expected.columns} are due", found_answer, expected
    chooses = not CHOOSING.isdisjoint(features(query.sql))

    def rows(answer: Answer) -> tuple[Any, ...]:
        return answer.alike if chooses else answer.rows

    if query.whole is not None:
        of = run(spark, other, query.whole)
        return _within(found_answer.rows, of.rows) or _within(expected.rows, of.rows), found_answer, expected
    if query.total:
        is_same = found_answer.alike == expected.alike
        return (
            "" if is_same else _multisets(found_answer.alike, expected.alike) or "the order of rows",
            found_answer,
            expected,
        )
    if query.limit is None and query.offset is None:
        return (
            _multisets(rows(found_answer), rows(expected)) or _order(query, found_answer, expected),
            found_answer,
            expected,
        )
    # Which of the rows that are equal by the order come first is not said. How many, and their keys, are.
    if len(found_answer.rows) != len(expected.rows):
        return f"{len(found_answer.rows)} rows, where {len(expected.rows)} are due", found_answer, expected
    every = run(spark, other, query.body)
    return (
        _within(rows(found_answer), rows(every)) or _order(query, found_answer, expected),
        found_answer,
        expected,
    )


def _multisets(found: tuple[Any, ...], expected: tuple[Any, ...]) -> str:
    more, less = Counter(found) - Counter(expected), Counter(expected) - Counter(found)
    if not more and not less:
        return ""
    return f"rows: {list(more.elements())[:3]} too many, {list(less.elements())[:3]} are missing"


def _within(found: tuple[Any, ...], every: tuple[Any, ...]) -> str:
    more = Counter(found) - Counter(every)
    return f"rows that there are not: {list(more.elements())[:3]}" if more else ""


def _order(query: Query, found: Answer, expected: Answer) -> str:
    """Compare the sequence of what a query is ordered by. The two zeros have one place in an order."""
    places = [int(name[1:]) for name, _ in query.order if name.startswith("c")]

    def keys(answer: Answer) -> list[Any]:
        return [
            tuple("0.0" if row[place] == "-0.0" else row[place] for place in places) for row in answer.alike
        ]

    return "" if keys(found) == keys(expected) else f"the order by {query.order}"


def handed_down(plan: str) -> set[str]:
    """Return the kinds of push-down that a plan of lakelog's side shows."""
    shown = {
        "filters": ", filters: ",
        "limit": ", limit ",
        "top-n": ", first ",
        "aggregates": "LocalTableScan",
        "runtime filters": "dynamicpruning",
    }
    found_kinds = {kind for kind, text in shown.items() if text in plan}
    if plan.count("BatchScan") > 1 and "SortMergeJoin" in plan and "Exchange hashpartitioning" not in plan:
        found_kinds.add("partitioning")
    return found_kinds
