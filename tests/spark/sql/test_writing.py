"""INSERT and what writes DataFrames, beside Spark's own in-memory catalogs; seen by another session and Python too."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row
from pyspark.sql.functions import col
from tests.spark.sessions import another_session
from tests.spark.sql.reference import outcome

pytestmark = pytest.mark.adapter

STATEMENTS = [
    "CREATE TABLE lake.t (id BIGINT, k STRING DEFAULT 'd', v INT, s STRUCT<a: INT, b: STRING>)",
    "CREATE TABLE lake.u (id BIGINT, k STRING)",
    "INSERT INTO lake.u VALUES (100, 'u'), (101, NULL)",
    "INSERT INTO lake.t VALUES (1, 'x', 1, named_struct('a', 1, 'b', 'b')), (2, DEFAULT, NULL, NULL)",
    "INSERT INTO TABLE lake.t (v, id) VALUES (3, 3), (DEFAULT, 4)",
    "INSERT INTO lake.t (ID, S) SELECT 5, named_struct('a', 5L, 'b', 5)",
    "INSERT INTO lake.t BY NAME SELECT named_struct('b', 'late', 'a', 6) AS s, 6 AS id",
    "INSERT INTO lake.t BY NAME SELECT 7 AS id, 'more' AS other",
    "INSERT INTO lake.t BY NAME SELECT 7 AS id, named_struct('a', 7) AS s",
    "INSERT INTO lake.t BY NAME SELECT 7 AS id, 8 AS id",
    "INSERT INTO lake.t (id, id) VALUES (8, 8)",
    "INSERT INTO lake.t (id, nothing) VALUES (8, 8)",
    "INSERT INTO lake.t VALUES (9)",
    "INSERT INTO lake.t VALUES (9, 'x', 1, NULL, 2)",
    "INSERT INTO lake.t SELECT 9, 'x', 3000000000L, NULL",
    "INSERT INTO lake.t SELECT 9, 'x', 'nine', NULL",
    "INSERT INTO lake.t SELECT 9, 'x', true, NULL",
    "INSERT INTO lake.t SELECT 9, 'x', 1, 'no struct'",
    "INSERT INTO lake.u TABLE lake.u",
    "WITH c AS (SELECT max(id) + 1 AS id FROM lake.u) INSERT INTO lake.u SELECT id, 'with' FROM c",
    "FROM lake.u INSERT INTO lake.t (id, k) SELECT id, k WHERE k = 'with' INSERT INTO lake.u SELECT id, 'both' LIMIT 1",
    "INSERT INTO lake.t SELECT * FROM lake.t WHERE id = 1",
    "INSERT INTO lake.u SELECT * FROM lake.u WHERE false",
    "INSERT OVERWRITE lake.u SELECT id + 1, k FROM lake.u",
    "INSERT OVERWRITE TABLE lake.u (k, id) VALUES ('first', 1)",
    "INSERT OVERWRITE lake.u BY NAME SELECT 'named' AS k, 2 AS id",
    "INSERT INTO lake.u REPLACE WHERE true SELECT 3, 'all'",
    "INSERT INTO lake.u AS u REPLACE ON u.id = s.id (SELECT 3 AS id, 'on' AS k) AS s",
    "INSERT INTO lake.u REPLACE USING (id) (SELECT 3 AS id, 'using' AS k)",
    "INSERT WITH SCHEMA EVOLUTION INTO lake.u BY NAME SELECT 4 AS id, 'new' AS k, 1.5D AS n",
    "INSERT WITH SCHEMA EVOLUTION INTO lake.u REPLACE WHERE true SELECT 5 AS id, 'again' AS k, 2.5D AS n, 1 AS m",
    "INSERT WITH SCHEMA EVOLUTION OVERWRITE lake.u BY NAME SELECT 6 AS id, 'over' AS k, true AS more",
    "INSERT OVERWRITE lake.u BY NAME SELECT 7 AS id, 'k' AS k, 3000000000 AS m",
    "INSERT INTO lake.nothing VALUES (1)",
    "INSERT OVERWRITE lake.u SELECT * FROM lake.u WHERE false",
    "INSERT OVERWRITE lake.t SELECT id, k, v, s FROM lake.t WHERE id > 1",
]  # fmt: skip


def plain(value):
    return value.asDict(recursive=True) if isinstance(value, Row) else value


def seen(other, table):
    """What comes of a query of all rows in another session. The Python client has to see the same."""
    found_outcome = outcome(other, f"SELECT * FROM lake.{table}")
    if found_outcome.condition is None:
        python = [tuple(row.values()) for row in other.catalog.load_table(table).to_arrow().to_pylist()]
        rows = [tuple(plain(value) for value in row) for row in found_outcome.rows]
        assert sorted(map(repr, python)) == sorted(map(repr, rows))
    return found_outcome


def test_inserts_do_what_they_do_in_sparks_own_catalog(lake, memory):
    other_session = another_session(lake)
    for statement in STATEMENTS:
        assert outcome(lake, statement) == outcome(memory, statement), statement
        for table in "tu":
            if f"lake.{table}" in statement:
                assert seen(other_session, table) == outcome(memory, f"SELECT * FROM lake.{table}"), statement
    assert lake.sql("SELECT count(*) FROM lake.u") == [(0,)]
    assert lake.sql("SELECT count(*) FROM lake.t") == [(6,)]


WRITERS = {
    "a table that is not there": lambda rows, t: rows.writeTo(t).append(),
    "replace nothing": lambda rows, t: rows.writeTo(t).replace(),
    "insert into nothing": lambda rows, t: rows.write.insertInto(t),
    "create": lambda rows, t: rows.writeTo(t).partitionedBy("k").create(),
    "create again": lambda rows, t: rows.writeTo(t).create(),
    "append by name": lambda rows, t: rows.selectExpr("k", "id + 10 AS id").writeTo(t).append(),
    "append too few": lambda rows, t: rows.select("k").writeTo(t).append(),
    "append too many": lambda rows, t: rows.withColumn("x", col("id")).writeTo(t).append(),
    "append another type": lambda rows, t: rows.selectExpr("'id' AS id", "k").writeTo(t).append(),
    "append nothing": lambda rows, t: rows.where("false").writeTo(t).append(),
    "overwrite": lambda rows, t: rows.where("id = 1").writeTo(t).overwrite(col("k") == "b"),
    "overwrite by no column": lambda rows, t: rows.writeTo(t).overwrite(col("nothing") == 1),
    "overwrite partitions": lambda rows, t: rows.where("id = 3").writeTo(t).overwritePartitions(),
    "overwrite no partition": lambda rows, t: rows.where("false").writeTo(t).overwritePartitions(),
    "insert by place": lambda rows, t: rows.selectExpr("id + 20", "'c'").write.insertInto(t),
    "insert over": lambda rows, t: rows.write.insertInto(t, overwrite=True),
    "save": lambda rows, t: rows.write.saveAsTable(t),
    "save and append": lambda rows, t: rows.selectExpr("k", "id").write.mode("append").saveAsTable(t),
    "save and ignore": lambda rows, t: rows.write.mode("ignore").saveAsTable(t),
    "save over": lambda rows, t: rows.selectExpr("k").write.mode("overwrite").saveAsTable(t),
    "create or replace": lambda rows, t: rows.writeTo(t).clusterBy("id").createOrReplace(),
    "replace": lambda rows, t: rows.selectExpr("id * 2 AS id", "k").writeTo(t).replace(),
}


def test_data_frames_are_written_as_to_sparks_own_catalog(lake, memory):
    rows = lake.spark.createDataFrame([(1, "a"), (2, "b"), (3, None)], "id BIGINT, k STRING")

    other_session = another_session(lake)

    def condition(place, write):
        try:
            write(rows, f"{place.name}.t")
        except PySparkException as error:
            return error.getCondition()
        return None

    for name, write in WRITERS.items():
        assert condition(lake, write) == condition(memory, write), name
        assert seen(other_session, "t") == outcome(memory, "SELECT * FROM lake.t"), name
    assert lake.sorted("SELECT * FROM lake.t") == [(2, "a"), (4, "b"), (6, None)]


@pytest.mark.parametrize("in_plans", [False, True])
def test_statements_take_parameters_in_both_of_sparks_ways(lake, in_plans):
    lake.sql("CREATE TABLE lake.t (k INT, v STRING)")
    name, spark = f"{lake.name}.t", lake.spark
    merge = f"USING (SELECT * FROM {name} WHERE k = :k) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = :v"
    legacy = "spark.sql.legacy.parameterSubstitution.constantsOnly"
    spark.conf.set(legacy, str(in_plans).lower())
    try:
        spark.sql(f"INSERT INTO {name} VALUES (:k, :v)", {"k": 1, "v": "a"})
        spark.sql(f"WITH c AS (SELECT ? AS k) INSERT INTO {name} SELECT k, ? FROM c", [2, "b"])
        spark.sql(f"MERGE INTO {name} t {merge}", {"k": 1, "v": "m"})
        spark.sql(f"INSERT INTO IDENTIFIER(:t) SELECT k + :k, v FROM {name}", {"t": name, "k": 10})
        spark.sql(f"UPDATE {name} SET v = :v WHERE k = :k", {"k": 11, "v": "u"})
        spark.sql(
            f"EXECUTE IMMEDIATE 'INSERT INTO {name} SELECT k + ?, v FROM {name} WHERE k = ?' USING 20, 1"
        )
    finally:
        spark.conf.unset(legacy)
    assert lake.sorted("SELECT * FROM lake.t") == [(1, "m"), (11, "u"), (12, "b"), (2, "b"), (21, "m")]
