"""Tests whether queries notice each break. Each break has queries of its own kind until a query differs by it.

A query counts if it has another answer with the break, and not with that kind switched off as well. An error is no
answer. What the sound side hands down does not choose the queries: some breaks hand down what must not be.

Without the break the query must not differ, with or without that kind. If it does, lakelog or the switch is wrong, and
no answer of this module has a meaning: `noticed` raises.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from tests.spark.queries.comparing import Answer, Conf, Side, difference
from tests.spark.queries.forms import focused_query
from tests.spark.queries.running import Plan, world_of
from tests.spark.queries.selects import Queries, Query
from tests.spark.queries.switches import SWITCHES, Catalogs, switched
from tests.spark.queries.world import World
from tests.spark.warm import WarmPython

CONF: Mapping[str, Conf] = {
    "runtime filters": (("spark.sql.autoBroadcastJoinThreshold", "10485760"),),
    "partitioning": (
        ("spark.sql.autoBroadcastJoinThreshold", "-1"),
        ("spark.sql.sources.v2.bucketing.enabled", "true"),
    ),
}
"""Without this, Spark hands nothing of that kind down, or not between tables of some rows."""


@dataclass(frozen=True, slots=True)
class Noticed:
    """By which query of which seed. `tries` counts the queries of the kind, from the first seed on."""

    seed: int
    number: int
    tries: int
    what: str


def kind_of(mutation: str) -> str:
    """Return what a mutation breaks, with which its name begins."""
    return mutation.partition(":")[0]


def noticed(
    spark: SparkSession, warm: WarmPython, folder: Path, plan: Plan, mutations: Mapping[str, str],
    say: Callable[[str], None] = lambda line: print(line, flush=True),
) -> dict[str, Noticed]:  # fmt: skip
    """Return for each text that breaks something the first query that differs by it; `plan.queries` of each kind are
    tried. Raises AssertionError if a query differs without a break."""
    warehouse = str(folder / "warehouse")
    catalogs = Catalogs(spark, warm, folder, warehouse, f"m{time.monotonic_ns()}_")
    first: dict[str, Noticed] = {}
    tries = 0
    for seed in range(plan.seed, plan.seed + plan.queries // plan.a_world):
        with world_of(spark, catalogs, warehouse, folder, plan, seed) as world:
            for number in range(plan.a_world):
                tries += 1
                remaining_texts = {name: text for name, text in mutations.items() if name not in first}
                for name, label in _differences(world, catalogs, seed, number, remaining_texts):
                    first[name] = Noticed(seed, number, tries, label)
                    say(f"{name}: noticed by query {number} of seed {seed}: {label[:200]}")
                if len(first) == len(mutations):
                    return first
            say(f"seed {seed}: {len(first)} of {len(mutations)} noticed")
    return first


def _differences(
    world: World, catalogs: Catalogs, seed: int, number: int, mutations: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Return the mutations that a query of their kind notices, and what is different."""
    found = []
    queries: dict[str, Query] = {}
    answers: dict[str, Answer] = {}
    for name, text in mutations.items():
        kind = kind_of(name)
        if kind not in queries:
            chance = random.Random(f"query {seed} {number} {kind}")
            queries[kind] = focused_query(Queries(chance, world.tables), kind)
        query, conf = queries[kind], CONF.get(kind, ())
        broken_lake = world.lake(catalogs.with_text(text), conf)
        label, _, answers[kind] = difference(
            world.spark, broken_lake, world.plain(), query, answers.get(kind)
        )
        # Lines that fail by themselves would be noticed by every query of a kind that has no switch.
        is_answered = not label.startswith("errors")
        if label and is_answered and _is_of_its_kind(world, catalogs, query, answers[kind], name, text):
            found.append((name, label))
    return found


def _is_of_its_kind(
    world: World, catalogs: Catalogs, query: Query, expected: Answer, name: str, text: str
) -> bool:
    """Return whether a query that differs with a break differs no more once the break's kind is switched off."""
    kind = kind_of(name)
    conf = CONF.get(kind, ())

    def difference_of(side: Side) -> str:
        return difference(world.spark, side, world.plain(), query, expected)[0]

    sound_sides = {"without a break": world.lake(conf=conf)}
    if kind in SWITCHES:
        # A switch that fails by itself would hide each break of its kind.
        sound_sides[f"with {kind} switched off"] = switched(world, catalogs, SWITCHES[kind], conf=conf)
    for how, side in sound_sides.items():
        wrong = difference_of(side)
        assert not wrong, f"{world.lake().text(query.sql)} in world {world.name} differs {how}: {wrong}"
    return kind not in SWITCHES or not difference_of(switched(world, catalogs, SWITCHES[kind], text, conf))
