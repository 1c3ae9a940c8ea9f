"""Random queries over tables of many lives have the answers of plain Parquet tables; and where something that is handed
down to scans is broken, some query notices. `scripts/queries` runs any other seeds."""

from __future__ import annotations

import random

import pytest
from tests.spark.queries.lives import life
from tests.spark.queries.mutations import MUTATIONS
from tests.spark.queries.reproduction import Smaller
from tests.spark.queries.running import Found, Plan, Report, run
from tests.spark.queries.selects import Queries, Table
from tests.spark.queries.shrinking import shrunk
from tests.spark.queries.sql import TableRef, features
from tests.spark.queries.switches import Catalogs
from tests.spark.queries.world import World

pytestmark = pytest.mark.adapter

SHORT = Plan(seed=1, queries=160, a_world=80, tables=4, steps=7)
FULL = Plan(seed=1_000, queries=5_000)
MUTATED = Plan(seed=500, queries=1_000, a_world=100, tables=4, steps=8)

VALID = 0.85
"""So many queries have an answer, at least. Others fail on both sides, in the same way."""

COVERED = {"filters", "aggregates", "limit"}


def no_difference(spark, warm, folder, plan: Plan) -> Report:
    programs: list[str] = []

    def keep(world: World, catalogs: Catalogs, found: Found) -> None:
        programs.append(Smaller(world, found, world.catalog).program())

    report = run(spark, warm, folder, plan, found=keep, enough=1)
    assert not programs, f"this program shows it:\n{programs[0]}"
    assert report.queries == plan.queries
    assert report.valid > VALID, report.failed
    assert report.handed_down.keys() >= COVERED
    return report


def test_hundreds_of_queries_have_the_answers_of_plain_tables(spark, warm, tmp_path):
    no_difference(spark, warm, tmp_path, SHORT)


@pytest.mark.slow
def test_thousands_of_queries_have_the_answers_of_plain_tables(spark, warm, tmp_path):
    report = no_difference(spark, warm, tmp_path, FULL)
    print(*report.lines(), sep="\n")


@pytest.mark.slow
@pytest.mark.parametrize("mutation", sorted(MUTATIONS))
def test_some_query_differs_once_something_is_broken(spark, warm, tmp_path, mutation):
    assert run(spark, warm, tmp_path, MUTATED, python=MUTATIONS[mutation], enough=1).found


TABLES = [
    Table(TableRef("t0"), (("id", "bigint"), ("i", "int"), ("k", "string"), ("d", "date"), ("n", "struct<x:int,y:string>"))),
    Table(TableRef("t1", 3), (("id", "bigint"), ("i", "int"), ("ts", "timestamp"), ("m", "map<string,int>"))),
]  # fmt: skip


def test_a_seed_always_makes_the_same_queries_and_tables():
    def made(seed: int):
        chance = random.Random(seed)
        return [Queries(chance, TABLES).query() for _ in range(50)], life(chance, "t", 10)

    assert made(1) == made(1)
    assert made(1) != made(2)


def test_queries_have_all_that_is_wanted_of_them():
    chance = random.Random(7)
    found = set()
    for _ in range(3_000):
        found |= features(Queries(chance, TABLES).query().sql).keys()
    wanted = {
        "constant outputs", "having without group by", "exists", "not exists", "in subquery", "not in subquery", "not in list",
        "scalar subquery", "lateral", "distinct aggregate", "grouping sets", "rollup", "cube", "window", "union", "union all",
        "intersect", "intersect all", "except", "except all", "join", "left join", "right join", "full join", "cross join",
        "left semi join", "left anti join", "natural join", "join using", "limit", "order by limit", "offset", "sample",
        "time travel", "metadata column", "by metadata columns", "cte", "case", "cast", "like", "between", "field", "array",
        "null-safe equality", "or", "not", "transform function", "global aggregate of constants", "inner limit", "error",
    }  # fmt: skip
    assert not wanted - found


def test_a_query_is_made_smaller_as_long_as_it_differs():
    chance = random.Random(3)
    for _ in range(20):
        query = Queries(chance, TABLES).query()
        tables = {part.ref for part in query.sql.walk()} - {None}
        if len(tables) == 2:
            smaller = shrunk(query, lambda each: tables <= {part.ref for part in each.sql.walk()}, 1_000)
            assert smaller.sql.size < query.sql.size / 2
