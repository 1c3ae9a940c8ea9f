"""Random queries over tables of many lives have the answers of plain Parquet tables; and if something that is handed
down to scans is broken, some query notices. `scripts/queries` runs any other seeds."""

from __future__ import annotations

import random

import pytest
from tests.spark.queries.comparing import difference
from tests.spark.queries.forms import focused_query, random_query
from tests.spark.queries.lives import life
from tests.spark.queries.mutations import MUTATIONS
from tests.spark.queries.noticing import noticed
from tests.spark.queries.reproduction import Smaller
from tests.spark.queries.running import Found, Plan, Report, run, world_of
from tests.spark.queries.selects import Queries, Query, Table
from tests.spark.queries.shrinking import shrunk, size
from tests.spark.queries.sql import TableRef, features
from tests.spark.queries.switches import SWITCHES, Catalogs, switched
from tests.spark.queries.world import World

pytestmark = pytest.mark.adapter

SHORT = {14: 16, 31: 24, 38: 24}
"""How many queries over worlds that have, between them, all ways in which Spark reads, joins and hands down: `SETTINGS`
says which; and columns with each collation, and some whose collation changes. With generated code, as the first one has
it, queries take twice as long."""
FULL = Plan(seed=1_000, queries=2_500)
BROKEN = Plan(seed=2_595, queries=100, a_world=50, tables=4, steps=8)
"""Worlds with files of others, deleted rows, and tables that are partitioned alike."""

VALID = 0.85
"""So many queries have an answer, at least. Others fail on both sides, in the same way."""


def no_difference(spark, warm, folder, plan: Plan) -> Report:
    programs: list[str] = []

    def keep(world: World, catalogs: Catalogs, found: Found) -> None:
        programs.append(Smaller(world, found, world.catalog).program())

    report = run(spark, warm, folder, plan, found=keep, enough=1)
    assert not programs, f"this program shows it:\n{programs[0]}"
    assert report.queries == plan.queries
    assert report.valid > VALID, report.failed
    # Where little is handed down, and few rows come back, no difference says little.
    assert min(report.handed_down[kind] for kind in ("filters", "aggregates")) > plan.queries / 20
    assert report.empty < plan.queries / 2
    return report


@pytest.mark.parametrize(("seed", "queries"), SHORT.items())
def test_hundreds_of_queries_have_the_answers_of_plain_tables(spark, warm, tmp_path, seed, queries):
    no_difference(spark, warm, tmp_path, Plan(seed, queries, a_world=queries, tables=3, steps=6, largest=24))


@pytest.mark.slow
def test_thousands_of_queries_have_the_answers_of_plain_tables(spark, warm, tmp_path):
    report = no_difference(spark, warm, tmp_path, FULL)
    assert report.handed_down.keys() >= {"limit", "top-n", "runtime filters", "partitioning"}


@pytest.mark.slow
def test_each_break_of_what_is_handed_down_makes_some_query_differ(spark, warm, tmp_path):
    found = noticed(spark, warm, tmp_path, BROKEN, MUTATIONS)
    assert found.keys() == MUTATIONS.keys()


def test_lines_that_fail_are_no_break_that_a_query_notices(spark, warm, tmp_path):
    plan = Plan(seed=1, queries=1, a_world=1, tables=1, steps=2)
    assert not noticed(spark, warm, tmp_path, plan, {"columns: the lines fail": "raise RuntimeError"})


def test_a_switch_by_itself_changes_no_answer(spark, warm, tmp_path):
    catalogs = Catalogs(spark, warm, tmp_path, str(tmp_path / "warehouse"), "switched")
    plan = Plan(seed=1, queries=len(SWITCHES), tables=1, steps=3)
    own_form = {"limit", "top-n", "aggregates", "runtime filters", "partitioning"}
    row_count = 0
    with world_of(spark, catalogs, str(tmp_path / "warehouse"), tmp_path, plan, plan.seed) as world:
        queries = Queries(random.Random(1), world.tables)
        for name, switch in SWITCHES.items():
            query = focused_query(queries, name if name in own_form else "filters")
            label, answer, _ = difference(spark, switched(world, catalogs, switch), world.plain(), query)
            assert not label, f"without {name}: {label}"
            row_count += len(answer.rows)
    assert row_count


def test_the_report_says_which_kind_of_push_down_makes_each_difference():
    query = random_query(Queries(random.Random(1), TABLES))

    def found(number: int, *ended_by: str) -> Found:
        return Found(1, number, query, "rows", ended_by, "", BROKEN)

    ended_texts = [
        ("top-n", "everything"), ("top-n",), ("filters", "everything"), ("limit", "top-n", "everything"),
        ("everything",), (),
    ]  # fmt: skip
    report = Report(found=[found(number, *each) for number, each in enumerate(ended_texts)])
    lines = list(report.lines())
    at = lines.index("differences, by what makes them:")
    assert {tuple(line.split(maxsplit=1)) for line in lines[at + 1 : at + 6]} == {
        ("2", "top-n"), ("1", "filters"), ("1", "limit with top-n"), ("1", "each of several kinds"),
        ("1", "no push-down"),
    }  # fmt: skip


COLUMNS = (("id", "bigint"), ("i", "int"), ("k", "string"), ("n", "struct<x:int,y:string>"), ("x", "double"))
TABLES = [
    Table(TableRef("t0"), (*COLUMNS, ("kl", "string collate UTF8_LCASE")), ("i", "k")),
    Table(TableRef("t1", 3), (("id", "bigint"), ("i", "int"), ("ts", "timestamp"), ("m", "map<string,int>"))),
]
WANTED = """
and; array; between; by metadata columns; case; cast; collation; comparison; constant outputs; correlated; count;
cross join; cte; cte used; cube; derived table; distinct; distinct aggregate; error; except; except all;
exists; field; filter of aggregate; full join; global aggregate of constants; group by; grouping sets;
having with group by; having without group by; in list; in subquery; inner limit; intersect; intersect
all; is null; join; join using; lateral; left anti join; left join; left semi join; like; limit; metadata
column; natural join; not; not exists; not in list; not in subquery; null-safe equality; offset; or;
order by limit; right join; rollup; sample; scalar subquery; text test by a collation; time travel; transform
function; union; union all; where; window
"""


def test_a_seed_always_makes_the_same_queries_and_tables():
    def made(seed: int):
        chance = random.Random(seed)
        return [random_query(Queries(chance, TABLES)) for _ in range(50)], life(chance, "t", 10)

    assert made(1) == made(1)
    assert made(1) != made(2)


def test_queries_have_all_that_is_wanted_of_them():
    chance = random.Random(7)
    texts: set[str] = set()
    for _ in range(3_000):
        texts |= features(random_query(Queries(chance, TABLES)).sql).keys()
    assert not {" ".join(part.split()) for part in WANTED.split(";")} - texts


def test_a_query_is_made_smaller_as_long_as_it_differs():
    chance = random.Random(3)
    numbers_before: list[int] = []
    numbers_after: list[int] = []
    while len(numbers_before) < 20:
        query = random_query(Queries(chance, TABLES))
        if refs(query) == {table.ref for table in TABLES}:
            smaller = shrunk(query, lambda each: len(refs(each)) == 2, 1_000)
            assert len(refs(smaller)) == 2
            numbers_before.append(size(query))
            numbers_after.append(size(smaller))
    assert sum(numbers_after) < sum(numbers_before) / 2


def refs(query: Query) -> set[TableRef]:
    return {part.ref for part in query.sql.walk() if part.ref is not None}
