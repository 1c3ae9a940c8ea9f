"""Runs many queries over many worlds, and reports coverage, differences, and the switch that ends each difference."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession
from tests.spark.queries.comparing import Answer, difference, handed_down, settings
from tests.spark.queries.forms import random_query
from tests.spark.queries.selects import Queries, Query
from tests.spark.queries.sql import features
from tests.spark.queries.switches import EVERYTHING, SWITCHES, Catalogs, switched
from tests.spark.queries.world import World, drawn
from tests.spark.warm import WarmPython

A_WORLD = 250
"""Tables cost as much as tens of queries."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is run: worlds from `seed` on, with so many queries each."""

    seed: int
    queries: int
    a_world: int = A_WORLD
    tables: int = 5
    steps: int = 10
    largest: int | None = None
    """Of how many parts a query may be: a tenth of all queries, the largest ones, takes a third of the time."""


@dataclass(frozen=True, slots=True)
class Found:
    """A difference: the query that has it, in which world, and which switches end it."""

    seed: int
    number: int
    query: Query
    what: str
    ended_by: tuple[str, ...]
    message: str
    plan: Plan

    @property
    def command(self) -> str:
        """What finds it again."""
        size = f"--tables {self.plan.tables} --steps {self.plan.steps}"
        if self.plan.largest is not None:
            size += f" --largest {self.plan.largest}"
        return f"scripts/queries --seed {self.seed} --query {self.number} {size}"

    @property
    def made_by(self) -> str:
        """What makes the difference: one kind of push-down alone, or kinds that all have to be there."""
        kinds = [name for name in self.ended_by if name != EVERYTHING]
        if kinds:
            return " with ".join(kinds)
        return "each of several kinds" if EVERYTHING in self.ended_by else "no push-down"


@dataclass
class Report:
    queries: int = 0
    worlds: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    """Queries that failed on both sides, by the class of the error."""

    examples: dict[str, str] = field(default_factory=dict)
    """Of each class one that was not meant to fail."""

    features: Counter[str] = field(default_factory=Counter)
    tables: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    handed_down: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    slowest: list[tuple[float, float, int, int]] = field(default_factory=list)
    lake_s: float = 0
    plain_s: float = 0
    empty: int = 0
    found: list[Found] = field(default_factory=list)
    took_s: float = 0
    building_s: float = 0

    @property
    def valid(self) -> float:
        return 1 - sum(self.failed.values()) / max(self.queries, 1)

    def lines(self) -> Iterator[str]:
        yield (
            f"{self.queries} queries over {self.worlds} worlds in {self.took_s:.0f} s "
            f"(of which {self.building_s:.0f} s for tables): {len(self.found)} differences; "
            f"{self.valid:.1%} have an answer, {self.empty} an empty one"
        )
        yield f"lakelog took {self.lake_s:.0f} s, the plain tables {self.plain_s:.0f} s"
        yield f"slowest: {self.slowest}"
        for title, counts in (
            ("differences, by what makes them", Counter(each.made_by for each in self.found)),
            ("handed down", self.handed_down), ("in queries", self.features), ("in the lives of tables", self.tables),
            ("errors on both sides", self.failed), ("steps that were refused", self.refused),
        ):  # fmt: skip
            if counts:
                yield f"{title}:"
                yield from (f"    {count:7} {label}" for label, count in counts.most_common())
        yield from self.examples.values()


@contextmanager
def world_of(
    spark: SparkSession, catalogs: Catalogs, warehouse: str, folder: Path, plan: Plan, seed: int
) -> Iterator[World]:
    lives, conf = drawn(seed, plan.tables, plan.steps)
    world = World(spark, catalogs.with_text(""), warehouse, folder / f"world-{seed}", f"q{seed}", conf)
    world.build(lives)
    try:
        with settings(spark, conf):
            yield world
    finally:
        world.drop()


def new_query(world: World, plan: Plan, seed: int, number: int) -> Query:
    """Return the query of that number; it depends on nothing but the world and the plan."""
    queries = Queries(random.Random(f"query {seed} {number}"), world.tables)
    query = random_query(queries)
    while plan.largest is not None and query.sql.size > plan.largest:
        query = random_query(queries)
    return query


def ended_by(
    world: World, catalogs: Catalogs, query: Query, expected: Answer, python: str
) -> tuple[str, ...]:
    """Return the switches with which a query that is different is so no more; what `python` breaks stays broken."""
    sides = {name: switched(world, catalogs, switch, python) for name, switch in SWITCHES.items()}
    return tuple(
        name for name, side in sides.items()
        if not difference(world.spark, side, world.plain(), query, expected)[0]
    )  # fmt: skip


def run(
    spark: SparkSession, warm: WarmPython, folder: Path, plan: Plan, *,
    python: str = "", say: Callable[[str], None] = lambda line: None,
    found: Callable[[World, Catalogs, Found], None] = lambda world, catalogs, found: None, only: int | None = None,
    enough: int | None = None,
) -> Report:  # fmt: skip
    """Run queries. `python` is run by lakelog's side first, to break something. `only` is the number of one query."""
    report, start_time = Report(), time.perf_counter()
    warehouse = str(folder / "warehouse")
    catalogs = Catalogs(spark, warm, folder, warehouse, f"q{time.monotonic_ns()}_")
    seed = plan.seed
    while report.queries < plan.queries:
        started_time = time.perf_counter()
        with world_of(spark, catalogs, warehouse, folder, plan, seed) as world:
            report.building_s += time.perf_counter() - started_time
            report.worlds += 1
            for life in world.lives.values():
                report.tables.update(life.features)
            report.refused.update(why for _, why in world.refused)
            for number in range(min(plan.a_world, plan.queries - report.queries)):
                if only is not None and number != only:
                    report.queries += 1
                    continue
                _one(report, world, catalogs, python, plan, seed, number, found)
                if enough is not None and len(report.found) >= enough:
                    return report
            report.took_s = time.perf_counter() - start_time
            say(
                f"seed {seed}: {report.queries} queries, {len(report.found)} differences, {report.took_s:.0f} s"
            )
        seed += 1
    return report


def _one(
    report: Report, world: World, catalogs: Catalogs, python: str, plan: Plan, seed: int, number: int,
    found: Callable[[World, Catalogs, Found], None],
) -> None:  # fmt: skip
    query = new_query(world, plan, seed, number)
    report.queries += 1
    report.features.update(features(query.sql).keys())
    side = world.lake(catalogs.with_text(python))
    label, answer, expected = difference(world.spark, side, world.plain(), query)
    report.handed_down.update(handed_down(answer.plan))
    report.lake_s += answer.took_s
    report.plain_s += expected.took_s
    report.slowest = sorted([*report.slowest, (answer.took_s, expected.took_s, number, len(expected.rows))])[
        -8:
    ]
    if expected.error:
        report.failed[expected.error] += 1
        if not features(query.sql)["error"]:
            report.examples.setdefault(
                expected.error, f"seed {seed} query {number}: {expected.message[:300]}"
            )
    else:
        report.rows += len(expected.rows)
        report.empty += not expected.rows
    if label:
        ended_texts = ended_by(world, catalogs, query, expected, python)
        different = Found(seed, number, query, label, ended_texts, answer.message or expected.message, plan)
        report.found.append(different)
        found(world, catalogs, different)
