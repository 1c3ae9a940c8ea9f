"""What lakelog decides about files from conditions as Spark hands them down, beside what Spark says of each row.

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
        found = lake.sql(f"SELECT k, _file FROM lake.{name}")
        keys = [[k for k, file in found if file.endswith(path)] for path in plan["path"].to_pylist()]
        assert sorted(k for some in keys for k in some) == sorted(k for k, _ in found)
        return Files(table, plan, keys)


def decide(lake: Lake, plain: str, names: Sequence[str], conditions: Sequence[str], report: Decided) -> None:
    tables = [Files.of(lake, name) for name in names]
    rows = tables[0].table.to_arrow()
    keys = rows["k"].to_pylist()
    for some, truths, predicates in _asked(lake, plain, names[0], list(conditions)):
        for condition, truth, predicate in zip(some, truths, predicates, strict=True):
            report.conditions += 1
            if predicate is None:
                continue
            try:
                bound = bind(predicate, tables[0].table.schema)
            except NoSuchColumn:
                continue  # of a plan: see `LakeTable.knows`
            report.handed_down += 1
            if not unknown_parts(bound):
                report.understood += 1
                said = evaluate(bound, rows).to_pylist()
                if said != [truth[k] for k in keys]:
                    report.found.append(
                        f"{condition}\n    is {predicate}, of which rows say {said}, and Spark {truth}"
                    )
            for files in tables:
                report.files += files.plan.num_rows
                found = match(files.plan, bound, files.table.specs, in_part=True)
                for inside, every, none in zip(
                    files.keys, found.all.to_pylist(), found.none.to_pylist(), strict=True
                ):
                    report.proven += every or none
                    true = [truth[k] is True for k in inside]
                    if every and not all(true) or none and any(true):
                        report.found.append(
                            f"{condition}\n    is {predicate}: of a file of {files.table} with {inside} it is "
                            f"{'all' if every else 'none'}, and Spark says {[truth[k] for k in inside]}"
                        )


def _asked(
    lake: Lake, plain: str, name: str, conditions: list[str]
) -> Iterator[tuple[list[str], list[dict[int, Truth]], list[Predicate | None]]]:
    """Yield conditions with what they are of each row, by its key, and as Spark hands them down. What Spark refuses is
    left out."""
    conditions = [each for each in conditions if _is_condition(lake, plain, each)]
    waiting = [conditions[at : at + AT_ONCE] for at in range(0, len(conditions), AT_ONCE)]
    while waiting:
        some = waiting.pop()
        columns = ", ".join(f"CAST(({each}) AS BOOLEAN) AS p{number}" for number, each in enumerate(some))
        try:
            by_row = lake.sql(f"SELECT k, {columns} FROM {plain}")
            predicates = _handed_down(lake, f"SELECT {columns} FROM lake.{name}")
        except (PySparkException, Py4JJavaError):
            if len(some) > 1:
                waiting += [some[: len(some) // 2], some[len(some) // 2 :]]
            continue
        truths = [{row[0]: row[number + 1] for row in by_row} for number in range(len(some))]
        yield some, truths, predicates


def _is_condition(lake: Lake, plain: str, condition: str) -> bool:
    try:
        lake.frame(f"SELECT k FROM {plain} WHERE {condition}")
    except PySparkException:
        return False
    return True


def _handed_down(lake: Lake, query: str) -> list[Predicate | None]:
    """Return the outputs of a query as Spark hands conditions down, None where it fails."""
    adapter: Any = lake.spark._jvm.org.apache.spark.sql.lakelog
    outputs = lake.frame(query)._jdf.queryExecution().optimizedPlan().expressions()
    found: list[Predicate | None] = []
    for number in range(outputs.length()):
        try:
            handed = adapter.internals.plans.OverwriteInternals.handedDown(outputs.apply(number).child())
        except Py4JJavaError:
            found.append(None)  # it has no name for an AND of what is no condition
            continue
        known = Predicate.from_json(adapter.expressions.Predicates.toPython(handed._1()).asText())
        found.append(
            known if handed._2().isEmpty() else known & Predicate("SPARK:what it does not hand down")
        )
    return found
