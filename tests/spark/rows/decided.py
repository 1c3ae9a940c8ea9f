"""Decisions of lakelog about files, by conditions as Spark hands them down, beside Spark's answer for each row.

No statement changes anything here: one SELECT says of hundreds of conditions at once what they are of each row, and
Spark's translation of them is decided by the functions that deletes, overwrites and scans decide by.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from tests.spark.conftest import Lake

from lakelog.catalog import Table
from lakelog.catalog.core.planning import bind, evaluate, match, unknown_parts
from lakelog.catalog.core.schema.predicate import Predicate
from lakelog.catalog.errors import NoSuchColumn

Truth = bool | None

AT_ONCE = 40


@dataclass
class Decided:
    conditions: int = 0
    handed_down: int = 0
    understood: int = 0
    files: int = 0
    proven: int = 0
    """How many files of all were proven to match, or not to."""

    found: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Files:
    """The files of a table, and the keys of the rows that each has."""

    table: Table
    plan: pa.Table
    keys: list[list[int]]

    @staticmethod
    def of(lake: Lake, name: str) -> Files:
        table = lake.catalog.load_table(name)
        plan = table.table_head.all_files()
        rows = lake.sql(f"SELECT k, _file FROM lake.{name}")
        keys = [[k for k, file in rows if file.endswith(path)] for path in plan["path"].to_pylist()]
        assert sorted(k for key in keys for k in key) == sorted(k for k, _ in rows)
        return Files(table, plan, keys)


def decide(lake: Lake, plain: str, names: Sequence[str], conditions: Sequence[str], report: Decided) -> None:
    tables = [Files.of(lake, name) for name in names]
    rows = tables[0].table.to_arrow()
    keys = rows["k"].to_pylist()
    for some_texts, truths, predicates in _asked(lake, plain, names[0], list(conditions)):
        for condition, truth, predicate in zip(some_texts, truths, predicates, strict=True):
            report.conditions += 1
            if predicate is None:
                continue
            try:
                bound_condition = bind(predicate, tables[0].table.schema)
            except NoSuchColumn:
                continue  # of a plan: see `LakeTable.knows`
            report.handed_down += 1
            if not unknown_parts(bound_condition):
                report.understood += 1
                reported_rows = evaluate(bound_condition, rows).to_pylist()
                if reported_rows != [truth[k] for k in keys]:
                    report.found.append(
                        f"{condition}\n    is {predicate}, of which rows say {reported_rows}, and Spark {truth}"
                    )
            for files in tables:
                report.files += files.plan.num_rows
                found_match = match(files.plan, bound_condition, files.table.specs, in_part=True)
                for inside, every, row in zip(
                    files.keys, found_match.all.to_pylist(), found_match.none.to_pylist(), strict=True
                ):
                    report.proven += every or row
                    true = [truth[k] is True for k in inside]
                    if every and not all(true) or row and any(true):
                        report.found.append(
                            f"{condition}\n    is {predicate}: of a file of {files.table} with {inside} it is "
                            f"{'all' if every else 'none'}, and Spark says {[truth[k] for k in inside]}"
                        )


def _asked(
    lake: Lake, plain: str, name: str, conditions: list[str]
) -> Iterator[tuple[list[str], list[dict[int, Truth]], list[Predicate | None]]]:
    """Yield conditions with what they are of each row, by its key, and as Spark hands them down. What Spark refuses is
    left out."""
    conditions = [condition for condition in conditions if _is_condition(lake, plain, condition)]
    waiting_conditions = [conditions[at : at + AT_ONCE] for at in range(0, len(conditions), AT_ONCE)]
    while waiting_conditions:
        some_texts = waiting_conditions.pop()
        columns = ", ".join(
            f"CAST(({text}) AS BOOLEAN) AS p{number}" for number, text in enumerate(some_texts)
        )
        try:
            by_row = lake.sql(f"SELECT k, {columns} FROM {plain}")
            predicates = _handed_down(lake, f"SELECT {columns} FROM lake.{name}")
        except (PySparkException, Py4JJavaError):
            if len(some_texts) > 1:
                waiting_conditions += [some_texts[: len(some_texts) // 2], some_texts[len(some_texts) // 2 :]]
            continue
        truths = [{row[0]: row[number + 1] for row in by_row} for number in range(len(some_texts))]
        yield some_texts, truths, predicates


def _is_condition(lake: Lake, plain: str, condition: str) -> bool:
    try:
        lake.frame(f"SELECT k FROM {plain} WHERE {condition}")
    except PySparkException:
        return False
    return True


def _handed_down(lake: Lake, query: str) -> list[Predicate | None]:
    """Return the outputs of a query as Spark hands conditions down, None if it fails."""
    adapter: Any = lake.spark._jvm.org.apache.spark.sql.lakelog
    outputs = lake.frame(query)._jdf.queryExecution().optimizedPlan().expressions()
    predicate: list[Predicate | None] = []
    for number in range(outputs.length()):
        try:
            handed = adapter.internals.plans.OverwriteInternals.handedDown(outputs.apply(number).child())
        except Py4JJavaError:
            predicate.append(None)  # it has no name for an AND of what is no condition
            continue
        known_json = Predicate.from_json(adapter.expressions.Predicates.toPython(handed._1()).asText())
        predicate.append(
            known_json
            if handed._2().isEmpty()
            else known_json & Predicate("SPARK:what it does not hand down")
        )
    return predicate
