"""What statements cost in requests to the store, warm and undisturbed."""

import collections

import pytest
from tests.spark.versions import evolving_writes

import lakelog.spark

pytestmark = pytest.mark.adapter

COUNTING = """
from lakelog.log.stores.local_store import LocalStore
def counted(name):
    original = getattr(LocalStore, name)
    def call(self, *args, **kwargs):
        with open({log!r}, "a") as log:
            log.write(name + chr(10))
        return original(self, *args, **kwargs)
    setattr(LocalStore, name, call)
for name in ("get", "put_if_absent", "list_after"):
    counted(name)
"""

ASKED = """
from lakelog.spark.dispatch import RequestDispatch
answer = RequestDispatch.answer
def call(self, method, *args, **kwargs):
    with open({log!r}, "a") as log:
        log.write(method + chr(10))
    return answer(self, method, *args, **kwargs)
RequestDispatch.answer = call
"""


@pytest.fixture
def cost(make_lake, warm, tmp_path):
    log = tmp_path / "requests"
    lake = make_lake(python=warm.program(tmp_path, COUNTING.format(log=str(log))))
    lake.sql("CREATE NAMESPACE lake.a")
    for name in "tuv":
        lake.sql(f"CREATE TABLE lake.a.{name} AS SELECT 1 AS id")

    def measure(run):
        """The requests of the second run; what a commit writes after it was acknowledged is no part of it."""
        run()
        log.write_text("")
        run()
        parts = collections.Counter(log.read_text().split())
        return parts["get"], parts["put_if_absent"], parts["list_after"]

    return lake, measure


# The levels of a name (root, namespace, table) are read in one round for each time that Spark loads the table.
LEVELS = 3


def test_a_statement_on_one_table_costs_what_its_loads_cost(cost):
    lake, measure = cost
    assert measure(lambda: lake.sql("INSERT INTO lake.a.t VALUES (1)")) == (LEVELS, 1, 0)
    assert measure(lambda: lake.sql("SELECT * FROM lake.a.t")) == (2 * LEVELS, 0, 0)
    assert measure(lambda: lake.sql("SELECT t.id FROM lake.a.t JOIN lake.a.t s USING (id)")) == (
        2 * LEVELS,
        0,
        0,
    )


def test_a_statement_on_several_tables_costs_one_more_round(cost):
    lake, measure = cost
    join = "SELECT * FROM lake.a.t JOIN lake.a.u USING (id)"
    assert measure(lambda: lake.sql(join)) == (2 * 2 * LEVELS + 2, 0, 0)
    assert measure(lambda: lake.sql(f"{join} JOIN lake.a.v USING (id)")) == (3 * 2 * LEVELS + 3, 0, 0)


def test_creating_a_table_looks_at_its_namespace_once_for_each_question_of_spark(cost):
    lake, measure = cost
    names = iter("xy")
    asked_number = 3  # for the namespace's default collation, for the table's absence, for the table itself
    assert measure(lambda: lake.sql(f"CREATE TABLE lake.a.{next(names)} (id INT)")) == (
        asked_number * (LEVELS - 1),
        2,
        0,
    )


def test_a_transaction_costs_a_put_for_each_log_and_one_for_the_decision(cost):
    lake, measure = cost

    def transaction(tables):
        def run():
            with lakelog.spark.transaction(lake.spark, lake.name):
                for name in tables:
                    lake.sql(f"INSERT INTO lake.a.{name} VALUES (1)")

        return run

    assert measure(transaction("")) == (0, 0, 0)
    assert measure(transaction("t")) == (LEVELS, 1, 0)
    gets, puts, lists = measure(transaction("tu"))
    assert (puts, lists) == (3, 0) and gets <= 12
    gets, puts, lists = measure(transaction("tuv"))
    assert (puts, lists) == (4, 0) and gets <= 18


@evolving_writes
def test_a_schema_change_and_its_data_cost_one_put(cost):
    lake, measure = cost
    numbers = iter(range(9))
    # One GET more than in one process: the process of transactions reads what the common one has read too.
    insert = "INSERT WITH SCHEMA EVOLUTION INTO lake.a.t BY NAME SELECT 1 AS id, 2 AS c{}"
    gets, puts, lists = measure(lambda: lake.sql(insert.format(next(numbers))))
    assert (puts, lists) == (1, 0) and gets <= 13


def test_a_scan_is_planned_once_whatever_spark_wants_to_know_of_it(make_lake, warm, tmp_path):
    log = tmp_path / "asked"
    lake = make_lake(python=warm.program(tmp_path, ASKED.format(log=str(log))))
    for name in "tu":
        lake.sql(f"CREATE TABLE lake.{name} (id BIGINT, k STRING) PARTITIONED BY (k)")
        lake.sql(f"INSERT INTO lake.{name} SELECT id, concat('k', id % 3) FROM range(9)")

    def asked(query):
        log.write_text("")
        rows = lake.sql(query)
        looks = ("plan", "aggregate", "partition_keys")
        return rows, [method for method in log.read_text().split() if method in looks]

    assert asked("SELECT k, id FROM lake.t WHERE id = 4") == ([("k1", 4)], ["plan"])
    assert asked("SELECT k, sum(id) FROM lake.t GROUP BY k ORDER BY k LIMIT 1") == ([("k0", 9)], ["plan"])
    rows, looks = asked("SELECT sum(t.id * u.id) FROM lake.t JOIN lake.u USING (k)")
    assert (rows, looks) == ([(450,)], ["plan", "plan"])
    # A count that metadata knows needs no plan, and one that it does not know is asked for once, too.
    assert asked("SELECT k, count(*) FROM lake.t GROUP BY k ORDER BY k")[1] == ["aggregate"]
    assert asked("SELECT id, count(*) FROM lake.t GROUP BY id ORDER BY id LIMIT 1")[1] == [
        "aggregate",
        "plan",
    ]
