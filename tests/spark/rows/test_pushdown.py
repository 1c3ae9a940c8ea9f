"""What Spark hands down to a scan: filters choose files, columns are read as far as they are wanted."""

from __future__ import annotations

from contextlib import contextmanager

import msgspec
import pytest
from tests.spark.versions import SPARK_4_3

from lakelog.catalog.core.schema import Expression, Predicate

pytestmark = pytest.mark.adapter

ROWS = 48


def leaf(frame):
    return frame._jdf.queryExecution().optimizedPlan().collectLeaves().head()


def planned(lake, query):
    """How many rows the files have that a query reads."""
    return leaf(lake.frame(query)).scan().estimateStatistics().numRows().getAsLong()


def same(lake, query):
    """Run a query as it is and where nothing is handed down; return the rows."""
    found_rows = lake.sql(query)
    rows = "FROM (SELECT * FROM lake.t WHERE monotonically_increasing_id() >= 0) "
    assert found_rows == lake.sql(query.replace("FROM lake.t ", rows))
    return found_rows


@pytest.fixture
def partitioned(lake):
    lake.sql(
        "CREATE TABLE lake.t (id BIGINT, k STRING, ts TIMESTAMP, d DATE, n STRUCT<x: INT, y: STRUCT<z: STRING>>) "
        "PARTITIONED BY (bucket(4, id), truncate(1, k), days(ts), months(d))"
    )
    lake.sql(
        "INSERT INTO lake.t SELECT id, nullif(concat(if(id % 2 = 0, 'a', 'b'), id), 'a4'), "
        "timestamp_seconds(1767225600 + id % 3 * 86400), DATE'2026-01-15' + int(id % 2 * 31), "
        f"named_struct('x', int(id), 'y', named_struct('z', string(id))) FROM range({ROWS})"
    )
    return lake


CONDITIONS = [
    ("lake.bucket(4, id) = 1", 0.5),
    ("lake.bucket(4, id) IN (1, 2)", 0.9),
    ("lake.days(ts) = DATE'2026-01-02'", 0.34),
    ("lake.days(ts) > DATE'2026-01-02'", 0.34),
    ("NOT lake.days(ts) <= DATE'2026-01-02'", 0.34),
    ("lake.months(d) = 673", 0.5),
    ("lake.years(d) = 57", 0.0),
    ("lake.truncate(1, k) = 'a'", 0.5),
    ("lake.truncate(1, k) IS NULL", 0.05),
    ("lake.days(ts) = DATE'2026-01-02' OR lake.truncate(1, k) = 'a'", 0.7),
    ("ts >= TIMESTAMP'2026-01-03 00:00:00Z'", 0.34),
    ("k LIKE 'a%'", 0.55),
    ("id = 17", 0.3),
]
"""Filters, and which part of the rows the files have at most that may match."""


def test_a_filter_on_what_a_table_is_partitioned_by_chooses_files(partitioned):
    for condition, part in CONDITIONS:
        query = f"SELECT id, k, ts, d FROM lake.t WHERE {condition} ORDER BY id"
        same(partitioned, query)
        assert planned(partitioned, query) <= ROWS * part, condition


def test_a_filter_by_a_transform_that_a_table_is_not_partitioned_by_is_right(partitioned):
    for condition in ("lake.bucket(8, id) = 1", "lake.truncate(2, k) = 'a1'", "lake.hours(ts) = 490897"):
        same(partitioned, f"SELECT id FROM lake.t WHERE {condition} ORDER BY id")


def test_fields_of_structs_are_read_alone_and_choose_files(lake):
    lake.sql("CREATE TABLE lake.t (id INT, n STRUCT<x: INT, y: STRUCT<z: STRING, w: INT>>)")
    for part in range(3):
        lake.sql(
            "INSERT INTO lake.t SELECT int(id), named_struct('x', int(id), 'y', named_struct('z', string(id), 'w', 1)) "
            f"FROM range({part * 10}, {part * 10 + 10})"
        )
    frame = lake.frame("SELECT n.y.z FROM lake.t WHERE n.x > 25")
    assert leaf(frame).schema().simpleString() == "struct<n:struct<x:int,y:struct<z:string>>>"
    assert sorted(row[0] for row in frame.collect()) == ["26", "27", "28", "29"]
    assert planned(lake, "SELECT n.y.z FROM lake.t WHERE n.x > 25") <= 10
    lake.sql("ALTER TABLE lake.t RENAME COLUMN n.x TO q")
    lake.sql("ALTER TABLE lake.t ADD COLUMN n.x INT")
    assert lake.sql("SELECT count(*) FROM lake.t WHERE n.x > 25") == [(0,)]
    assert lake.sql("SELECT count(*) FROM lake.t WHERE n.q > 25") == [(4,)]


def test_a_limit_reads_as_many_files_as_it_takes(lake):
    lake.sql("CREATE TABLE lake.t (id INT)")
    for part in range(5):
        lake.sql(f"INSERT INTO lake.t SELECT int(id) FROM range({part * 10}, {part * 10 + 10})")
    frame = lake.frame("SELECT * FROM lake.t LIMIT 15")
    assert "limit 15" in frame._jdf.queryExecution().executedPlan().toString()
    assert len(frame.collect()) == 15
    assert lake.sql("SELECT count(*) FROM (SELECT * FROM lake.t LIMIT 45)") == [(45,)]
    assert lake.sql("SELECT count(*) FROM (SELECT * FROM lake.t WHERE id > 44 LIMIT 45)") == [(5,)]


def test_the_first_rows_of_an_order_take_a_look_at_the_files_that_may_have_them(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, k STRING)")
    for part in (3, 1, 4, 0, 2):
        first = part * 100
        lake.sql(f"INSERT INTO lake.t SELECT id, string(id) FROM range({first}, {first + 100})")
    lake.sql("INSERT INTO lake.t VALUES (NULL, NULL)")
    for order in ("id", "id DESC", "id DESC NULLS FIRST", "id NULLS LAST", "id, k", "k DESC, id"):
        query = f"SELECT * FROM lake.t ORDER BY {order} LIMIT 7"
        assert len(same(lake, query)) == 7
        assert planned(lake, query) <= (101 if order[0] == "i" else 501), order
        assert len(same(lake, f"SELECT * FROM lake.t WHERE id % 100 = 99 ORDER BY {order} LIMIT 4")) == 4
    assert len(lake.sql("SELECT * FROM lake.t ORDER BY id LIMIT 501")) == 501


SHARED = [
    ("(SELECT count(*) FROM lake.t WHERE id > 5), (SELECT avg(v) FROM lake.t WHERE id > 5)", 1),
    (
        "(SELECT sum(id) FROM lake.t), (SELECT count(k) FROM lake.t WHERE v < 3), (SELECT avg(v) FROM lake.t)",
        1,
    ),
    ("* FROM (SELECT sum(v) FROM lake.t), (SELECT sum(id), count(k) FROM lake.t)", 1),
    ("(SELECT sum(v) FROM lake.t), (SELECT max(n.x) FROM lake.t)", 2),
    ("(SELECT max(_pos) FROM lake.t WHERE k = 'a'), (SELECT sum(_pos + v) FROM lake.t WHERE k = 'a')", 1),
    ("(SELECT sum(id) FROM lake.t WHERE c = 'x'), (SELECT count(c) FROM lake.t WHERE c = 'x')", 1),
    ("(SELECT count(v) FROM lake.t WHERE id > 5), (SELECT avg(v) FROM lake.t WHERE id > 6)", 2),
    ("(SELECT sum(v) FROM lake.t), (SELECT avg(v) FROM lake.t VERSION AS OF 2)", 2),
    ("(SELECT sum(v) FROM lake.t WHERE id > 5), (SELECT avg(v) FROM lake.u WHERE id > 5)", 2),
]
"""Subqueries of one row, and how often they read a table together."""

MERGING = "org.apache.spark.sql.execution.planmerging.MergeSubplans"


@contextmanager
def setting(spark, key, value):
    spark.conf.set(key, value)
    try:
        yield
    finally:
        spark.conf.unset(key)


def scans(frame):
    return frame._jdf.queryExecution().executedPlan().toString().count("BatchScan")


@pytest.mark.skipif(not SPARK_4_3, reason="Spark merges scans of tables of other formats from 4.3 on")
@pytest.mark.parametrize(
    ("mode", "by"),
    [("copy-on-write", "PARTITIONED BY (k, bucket(2, id))"), ("merge-on-read", "")],
)
def test_subqueries_of_one_row_read_their_table_once(lake, mode, by):
    for name in "tu":
        lake.sql(
            f"CREATE TABLE lake.{name} (id BIGINT, k STRING, v INT, c CHAR(3), n STRUCT<x: INT, y: STRING>) "
            f"{by} TBLPROPERTIES ('lakelog.write.delete.mode' = '{mode}')"
        )
        lake.sql(
            f"INSERT INTO lake.{name} SELECT id, if(id % 3 = 0, 'a', 'b'), id % 7, if(id % 2 = 0, 'x', 'y'), "
            f"named_struct('x', int(id), 'y', string(id)) FROM range({ROWS})"
        )
        lake.sql(f"DELETE FROM lake.{name} WHERE id % 5 = 2")
    with setting(lake.spark, "spark.sql.adaptive.enabled", "false"):
        for words, expected in SHARED:
            query = f"SELECT {words}"
            frame = lake.frame(query)
            assert scans(frame) == expected, (
                f"{query}: {frame._jdf.queryExecution().executedPlan().toString()}"
            )
            with setting(lake.spark, "spark.sql.optimizer.excludedRules", MERGING):
                apart = lake.frame(query)
                assert scans(apart) > 1, query
                assert apart.collect() == frame.collect(), query


def test_a_condition_of_many_levels_is_one_that_may_match(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT id FROM range(4)")
    # Each is inside of the one before: no list of operands, whose length would not matter.
    deep = "id" + " + id" * 250
    assert lake.sql(f"SELECT id FROM lake.t WHERE {deep} > 251 AND id < 3") == [(2,)]
    lake.sql(f"DELETE FROM lake.t WHERE {deep} > 251")
    assert lake.sorted("SELECT id FROM lake.t") == [(0,), (1,)]


def test_a_condition_of_more_levels_than_python_can_parse_is_cut(spark):
    # Spark has a stack for them only where it was given a larger one.
    jvm = spark.sparkContext._jvm
    expressions = jvm.org.apache.spark.sql.connector.expressions
    sides = spark.sparkContext._gateway.new_array(expressions.Expression, 1)
    sides[0] = expressions.FieldReference.apply("id")
    for _ in range(2000):
        sides[0] = expressions.GeneralScalarExpression("-", sides)
    predicate = expressions.filter.Predicate("BOOLEAN_EXPRESSION", sides)
    both = jvm.scala.jdk.javaapi.CollectionConverters.asScala([predicate, predicate]).toSeq()
    sent = jvm.org.apache.spark.sql.lakelog.expressions.Predicates.toPython(both).asText()
    read = Predicate.from_json(msgspec.json.decode(sent, type=Expression))
    assert str(read).count("nested deeper than the limit of 200 levels") == 2
