"""Statements that read several tables read them at the same moment. They change schema and data in a single commit."""

import threading
import time

import pytest
from tests.spark.hooks import HOOK
from tests.spark.sessions import another_session
from tests.spark.versions import evolving_writes

import lakelog.spark

# A Python side that, once the file `armed` appeared, moves a row from one table to the other after so many loads of
# tables as that says: just between what Spark takes as one.
MOVING = (
    HOOK
    + """
import pathlib
from lakelog.catalog import Catalog
armed, loads = pathlib.Path({armed!r}), []
def load(original):
    def call(at, asked):
        answer = original(at, asked)
        if armed.exists():
            loads.append(asked.identifier)
            if len(loads) == int(armed.read_text()):
                armed.unlink()
                loads.clear()
                with Catalog({warehouse!r}).transaction() as tx:
                    row = tx.load_table("t").to_arrow()
                    tx.load_table("t").truncate()
                    tx.load_table("u").append(row)
        return answer
    return call
hook("load_relation", load)
"""
)

QUERIES = {
    "union": "SELECT count(*) FROM (SELECT * FROM lake.t UNION ALL SELECT * FROM lake.u)",
    "join": "SELECT count(*) FROM lake.t FULL OUTER JOIN lake.u USING (id)",
    "subquery": "SELECT (SELECT count(*) FROM lake.t) + (SELECT count(*) FROM lake.u)",
    "cte": "WITH a AS (SELECT * FROM lake.t), b AS (SELECT * FROM lake.u) "
    "SELECT (SELECT count(*) FROM a) + count(*) FROM b",
}


@pytest.mark.adapter
@pytest.mark.parametrize("loads", [1, 3])
@pytest.mark.parametrize("query", QUERIES)
def test_a_select_sees_a_row_that_moves_between_its_tables_exactly_once(
    make_lake, warm, tmp_path, query, loads
):
    armed_path, warehouse = tmp_path / "armed", str(tmp_path / "warehouse")
    lake = make_lake(
        warehouse, python=warm.program(tmp_path, MOVING.format(armed=str(armed_path), warehouse=warehouse))
    )
    lake.sql("CREATE NAMESPACE lake.ns")
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.sql("CREATE TABLE lake.u (id INT)")
    armed_path.write_text(str(loads))
    assert lake.sql(QUERIES[query]) == [(1,)]
    assert not armed_path.exists(), "nothing moved meanwhile"
    assert lake.sql("SELECT count(*) FROM lake.u") == [(1,)]


def test_a_version_that_is_asked_for_is_not_taken_for_the_newest_which_may_move(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")

    def scan(at: str):
        plan = lake.frame(f"SELECT * FROM lake.t {at}")._jdf.queryExecution().optimizedPlan()
        return plan.collectLeaves().head().scan()

    newest, asked_scan, again = scan(""), scan("VERSION AS OF 1"), scan("VERSION AS OF 1")
    assert asked_scan.equals(again) and not asked_scan.equals(newest) and not newest.equals(asked_scan)


@pytest.mark.adapter
@pytest.mark.parametrize("loads", [1, 2, 3])
def test_an_insert_reads_all_its_tables_at_one_moment(make_lake, warm, tmp_path, loads):
    armed_path, warehouse = tmp_path / "armed", str(tmp_path / "warehouse")
    lake = make_lake(
        warehouse, python=warm.program(tmp_path, MOVING.format(armed=str(armed_path), warehouse=warehouse))
    )
    lake.sql("CREATE NAMESPACE lake.ns")
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    for name in ("u", "sums"):
        lake.sql(f"CREATE TABLE lake.{name} (id BIGINT)")
    armed_path.write_text(str(loads))
    lake.sql(
        "INSERT INTO lake.sums SELECT count(*) FROM (SELECT id FROM lake.t UNION ALL SELECT id FROM lake.u)"
    )
    assert not armed_path.exists()
    assert lake.sql("SELECT * FROM lake.sums") == [(1,)]


def test_a_select_of_two_tables_that_change_all_the_time_is_never_torn(lake):
    lake.sql("CREATE NAMESPACE lake.ns")
    for name in ("t", "u"):
        lake.sql(f"CREATE TABLE lake.{name} AS SELECT CAST(0 AS BIGINT) AS n")
    stop = threading.Event()

    def write():
        catalog, n = lake.catalog, 0
        import pyarrow as pa

        while not stop.is_set():
            n += 1
            with catalog.transaction() as tx:
                for name in ("t", "u"):
                    tx.load_table(name).overwrite(pa.table({"n": [n]}))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(10):
            ((left, right),) = lake.sql("SELECT t.n, u.n FROM lake.t CROSS JOIN lake.u")
            assert left == right
    finally:
        stop.set()
        writer.join()


EVOLVING = "INSERT WITH SCHEMA EVOLUTION INTO lake.t BY NAME SELECT 2 AS id, 'b' AS more"


@pytest.mark.parametrize("way", ["saveAsTable", "insertInto"])
@evolving_writes
def test_a_writer_without_a_transaction_of_its_own_adds_columns_in_an_open_one(lake, way):
    lake.sql("CREATE TABLE lake.t (id INT, c CHAR(2))")
    lake.sql("INSERT INTO lake.t VALUES (1, 'x')")

    def write():
        # PySpark does not have this method of Spark's yet.
        rows = lake.spark.sql("SELECT 2 AS id, 'y' AS c, 'b' AS more")
        writer = rows.write.mode("append")._jwrite.withSchemaEvolution()
        getattr(writer, way)(f"{lake.name}.t")

    with pytest.raises(Exception, match="begin_transaction"):
        write()
    assert lake.catalog.load_table("t").version == 2
    lake.sql("CALL lake.system.begin_transaction()")
    lake.sql("EXPLAIN INSERT WITH SCHEMA EVOLUTION INTO lake.t BY NAME SELECT 5 AS other")
    write()
    assert lake.catalog.load_table("t").version == 2
    lake.sql("CALL lake.system.commit_transaction()")
    assert lake.frame("SELECT * FROM lake.t").columns == ["id", "c", "more"]
    assert lake.sorted("SELECT * FROM lake.t") == [(1, "x ", None), (2, "y ", "b")]


@pytest.mark.adapter
def test_a_schema_change_and_its_data_are_one_commit(lake):
    lake.sql("CREATE NAMESPACE lake.ns")
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.sql(EVOLVING)
    assert lake.sorted("SELECT * FROM lake.t") == [(1, None), (2, "b")]
    newest, first = lake.catalog.load_table("t").history()
    assert (newest.version, first.version) == (2, 1)
    assert newest.operation == "change schema, append"


@evolving_writes
def test_a_statement_that_fails_after_its_schema_change_changes_nothing(lake):
    lake.sql("CREATE NAMESPACE lake.ns")
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    with pytest.raises(Exception, match="this is wrong"):
        lake.sql(
            "INSERT WITH SCHEMA EVOLUTION INTO lake.t BY NAME "
            "SELECT 2 AS id, CAST(raise_error('this is wrong') AS INT) AS more FROM lake.t"
        )
    assert lake.catalog.load_table("t").version == 1
    assert lake.sql("SELECT * FROM lake.t") == [(1,)]


def test_a_schema_change_within_a_transaction_is_part_of_that(lake):
    lake.sql("CREATE NAMESPACE lake.ns")
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.sql("CALL lake.system.begin_transaction()")
    lake.sql(EVOLVING)
    assert lake.sorted("SELECT * FROM lake.t") == [(1, None), (2, "b")]
    assert lake.catalog.load_table("t").version == 1
    lake.sql("CALL lake.system.rollback_transaction()")
    assert lake.sql("SELECT * FROM lake.t") == [(1,)]


@pytest.mark.adapter
def test_to_explain_a_write_with_schema_evolution_changes_nothing(lake):
    lake.sql("CREATE NAMESPACE lake.ns")
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    ((plan,),) = lake.sql("EXPLAIN " + EVOLVING)[-1:]
    assert "EXPLAIN the write without it" in plan
    assert lake.catalog.load_table("t").version == 1


@pytest.mark.adapter
def test_a_cached_table_is_neither_stale_in_a_transaction_nor_shown_to_others_from_it(lake):
    lake.sql("CREATE NAMESPACE lake.ns")
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    other_session = another_session(lake)
    lake.sql("CACHE TABLE lake.t")
    frame = lake.frame("SELECT * FROM lake.t").cache()
    assert frame.count() == 1
    other_session.sql("INSERT INTO lake.t VALUES (2)")
    with lakelog.spark.transaction(lake.spark, lake.name):
        assert lake.sorted("SELECT * FROM lake.t") == [(1,), (2,)], "not what was cached before"
        lake.sql("CACHE TABLE lake.t")
        lake.sql("INSERT INTO lake.t VALUES (3)")
        assert lake.sorted("SELECT * FROM lake.t") == [(1,), (2,), (3,)]
        assert other_session.sorted("SELECT * FROM lake.t") == [(1,), (2,)]
        other_session.sql("CACHE TABLE lake.t")
        assert other_session.sorted("SELECT * FROM lake.t") == [(1,), (2,)]
        other_session.sql("UNCACHE TABLE lake.t")
        lake.sql("REFRESH TABLE lake.t")
        assert lake.sql("SELECT count(*) FROM lake.t") == [(3,)]
    other_session.sql("INSERT INTO lake.t VALUES (4)")
    assert lake.sorted("SELECT * FROM lake.t") == [(1,), (2,), (3,), (4,)], "not what was cached within"


def test_what_was_cached_in_a_transaction_that_is_rolled_back_is_forgotten(lake):
    lake.sql("CREATE NAMESPACE lake.ns")
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.sql("CALL lake.system.begin_transaction()")
    lake.sql("INSERT INTO lake.t VALUES (2)")
    lake.sql("CACHE TABLE lake.t")
    assert lake.sql("SELECT count(*) FROM lake.t") == [(2,)]
    lake.sql("CALL lake.system.rollback_transaction()")
    assert lake.sql("SELECT * FROM lake.t") == [(1,)]


def test_a_streaming_query_is_no_part_of_the_transaction_that_is_open_when_it_starts(lake):
    lake.sql("CREATE NAMESPACE lake.ns")
    lake.sql("CREATE TABLE lake.t AS SELECT CAST(0 AS BIGINT) AS value")
    with lakelog.spark.transaction(lake.spark, lake.name):
        lake.sql("INSERT INTO lake.t VALUES (1), (2), (3)")
        rows = lake.spark.readStream.format("rate").option("rowsPerSecond", 100).load().select("value")
        joined_text = rows.join(lake.spark.table(f"{lake.name}.t"), "value")
        query = joined_text.writeStream.format("memory").queryName("seen").start()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and sum(p["numInputRows"] for p in query.recentProgress) < 100:
            time.sleep(0.2)
        query.stop()
        assert query.exception() is None
        assert lake.sql("SELECT value FROM seen") == [(0,)]
        assert lake.spark.catalog.dropTempView("seen")


@pytest.mark.adapter
@evolving_writes
def test_a_write_that_changes_the_schema_of_what_it_reads_reads_it_as_it_was(lake):
    lake.sql("CREATE NAMESPACE lake.ns")
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    evolving_text = (
        "INSERT WITH SCHEMA EVOLUTION INTO lake.t BY NAME SELECT id + 1 AS id, {} AS {} FROM lake.t"
    )
    lake.sql(evolving_text.format("'b'", "more"))
    assert lake.sorted("SELECT * FROM lake.t") == [(1, None), (2, "b")]
    with lakelog.spark.transaction(lake.spark, lake.name):
        lake.sql(evolving_text.format("id", "third"))
    assert lake.sorted("SELECT id, third FROM lake.t") == [(1, None), (2, 1), (2, None), (3, 2)]
    assert lake.catalog.load_table("t").version == 3


# Adds a row to `t` once, after so many loads of tables as the file `armed` says.
ADDING = (
    HOOK
    + """
import pathlib
import pyarrow as pa
from lakelog.catalog import Catalog
armed, loads = pathlib.Path({armed!r}), []
def load(original):
    def call(at, asked):
        answer = original(at, asked)
        if armed.exists():
            loads.append(asked.identifier)
            if len(loads) == int(armed.read_text()):
                armed.unlink()
                Catalog({warehouse!r}).load_table("t").append(pa.table({{"id": pa.array([2], pa.int32())}}))
        return answer
    return call
hook("load_relation", load)
"""
)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE OR REPLACE TABLE lake.t AS SELECT id FROM lake.t",
        "REPLACE TABLE lake.t AS SELECT id + 0 AS id FROM lake.t",
        "INSERT OVERWRITE lake.t SELECT id FROM lake.t",
    ],
)
@pytest.mark.parametrize("loads", [1, pytest.param(2, marks=pytest.mark.slow), 3])
def test_what_replaces_a_table_by_its_own_rows_loses_none_that_is_added_meanwhile(
    make_lake, warm, tmp_path, statement, loads
):
    armed_path, warehouse = tmp_path / "armed", str(tmp_path / "warehouse")
    lake = make_lake(
        warehouse, python=warm.program(tmp_path, ADDING.format(armed=str(armed_path), warehouse=warehouse))
    )
    lake.sql("CREATE NAMESPACE lake.ns")
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    armed_path.write_text(str(loads))
    try:
        lake.sql(statement)
    except Exception as error:
        assert "conflict" in str(error)
    was_added = not armed_path.exists()
    armed_path.unlink(missing_ok=True)
    assert lake.sorted("SELECT * FROM lake.t") == ([(1,), (2,)] if was_added else [(1,)])
