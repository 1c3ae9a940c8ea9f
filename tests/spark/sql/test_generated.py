"""Columns whose values are generated from others: Spark 4.3 computes and checks them, 4.2 is refused."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, SparkRuntimeException, UnsupportedOperationException
from tests.spark.sessions import another_session
from tests.spark.versions import SPARK_4_3, only_where_spark_computes

from lakelog.catalog import engine
from lakelog.log.errors import Unsupported

pytestmark = pytest.mark.adapter

TABLE = "CREATE TABLE lake.t (a INT, b INT GENERATED ALWAYS AS (a + 1), c STRING)"


@pytest.mark.first_use  # nothing else of this is there on the Spark that runs all tests
@pytest.mark.skipif(SPARK_4_3, reason="for the Spark that does not compute")
def test_a_spark_that_does_not_compute_neither_creates_nor_writes(lake):
    with pytest.raises(AnalysisException) as error:
        lake.sql(TABLE)
    assert error.value.getCondition() == "UNSUPPORTED_FEATURE.TABLE_OPERATION"
    made_elsewhere(lake)
    assert lake.sql("SELECT * FROM lake.t") == []
    for statement in ("INSERT INTO lake.t (a) VALUES (1)", "CREATE TABLE lake.u LIKE lake.t"):
        with pytest.raises(UnsupportedOperationException, match="4.3"):
            lake.sql(statement)
    lake.sql("CREATE TABLE lake.copied AS SELECT * FROM lake.t")
    lake.sql("INSERT INTO lake.copied VALUES (1, 9)")
    assert lake.sql("SELECT * FROM lake.copied") == [(1, 9)]


def made_elsewhere(lake):
    """A table as Spark 4.3 creates it."""
    from lakelog.catalog.core.schema.spark_types import schema_from_spark

    generated = {"lakelog.generated": {"sql": "a + 1", "columns": ["a"]}}
    fields = [
        {"name": name, "type": "integer", "nullable": True, "metadata": metadata}
        for name, metadata in (("a", {}), ("b", generated))
    ]
    catalog = lake.catalog
    engine.commit_stage(
        catalog, engine.stage(catalog, "create", "t", schema_from_spark({"type": "struct", "fields": fields}))
    )


@only_where_spark_computes
def test_values_are_computed_where_they_are_not_given(lake):
    lake.sql(TABLE)
    lake.sql("INSERT INTO lake.t (a) VALUES (1)")
    lake.sql("INSERT INTO lake.t (c, a) SELECT 'z', 7")
    lake.sql("INSERT INTO lake.t BY NAME SELECT 8 AS a")
    lake.spark.sql("SELECT 10 AS a, 'w' AS c").writeTo(f"{lake.name}.t").append()
    lake.spark.sql("SELECT 20 AS a, 'w' AS c").write.mode("append").saveAsTable(f"{lake.name}.t")
    expected = [(1, 2, None), (10, 11, "w"), (20, 21, "w"), (7, 8, "z"), (8, 9, None)]
    assert lake.sorted("SELECT * FROM lake.t") == expected
    assert another_session(lake).sorted("SELECT * FROM lake.t") == expected
    rows = lake.catalog.load_table("t").to_arrow().sort_by("a").to_pylist()
    assert [row["b"] for row in rows] == [2, 8, 9, 11, 21]
    lake.sql("INSERT OVERWRITE lake.t (a) VALUES (30)")
    assert lake.sql("SELECT * FROM lake.t") == [(30, 31, None)]


@only_where_spark_computes
def test_values_that_are_given_have_to_be_right(lake):
    lake.sql(TABLE)
    lake.sql("INSERT INTO lake.t VALUES (2, 3, 'x'), (NULL, NULL, 'y')")
    version = lake.catalog.load_table("t").version
    for values in ("2, 9, 'x'", "2, NULL, 'x'", "2, DEFAULT, 'x'", "NULL, 5, 'x'"):
        with pytest.raises(SparkRuntimeException) as error:
            lake.sql(f"INSERT INTO lake.t VALUES ({values})")
        assert error.value.getCondition() == "CHECK_CONSTRAINT_VIOLATION"
    assert lake.catalog.load_table("t").version == version
    assert lake.sorted("SELECT * FROM lake.t") == [(2, 3, "x"), (None, None, "y")]


@only_where_spark_computes
def test_copies_of_the_rows_are_not_generated_and_copies_of_the_definition_are(lake):
    lake.sql(TABLE)
    lake.sql("CREATE TABLE lake.rows AS SELECT * FROM lake.t")
    lake.sql("INSERT INTO lake.rows VALUES (1, 77, 'q')")
    lake.sql("CREATE TABLE lake.like LIKE lake.t")
    lake.sql("INSERT INTO lake.like (a) VALUES (1)")
    assert lake.sql("SELECT * FROM lake.rows") == [(1, 77, "q")]
    assert lake.sql("SELECT * FROM lake.like") == [(1, 2, None)]
    assert "generated" not in lake.frame("SELECT * FROM lake.t").schema.json().lower()


@only_where_spark_computes
def test_a_table_is_partitioned_by_a_generated_column(lake):
    lake.sql(
        "CREATE TABLE lake.t (at TIMESTAMP, n INT, day DATE GENERATED ALWAYS AS (CAST(at AS DATE))) "
        "PARTITIONED BY (day)"
    )
    lake.sql(
        "INSERT INTO lake.t (at, n) VALUES (TIMESTAMP'2020-01-02 03:04:05', 1), (TIMESTAMP'2021-01-02 03:04:05', 2)"
    )
    assert lake.sql("SELECT n, CAST(day AS STRING) FROM lake.t WHERE day = DATE'2020-01-02'") == [
        (1, "2020-01-02")
    ]
    table = lake.catalog.load_table("t")
    assert table.file_count == 2
    lake.sql("CREATE OR REPLACE TABLE lake.t (a INT, b INT GENERATED ALWAYS AS (a * 2) NOT NULL)")
    lake.sql("INSERT INTO lake.t (a) VALUES (4)")
    assert lake.sql("SELECT * FROM lake.t") == [(4, 8)]


@only_where_spark_computes
def test_what_a_column_is_generated_from_stays_as_it_is(lake):
    lake.sql(
        "CREATE TABLE lake.t (a INT, b INT GENERATED ALWAYS AS (A + 1), v INT, s STRUCT<x: INT>, "
        "arr ARRAY<INT>, c INT GENERATED ALWAYS AS (s.x + size(filter(arr, e -> e > v))))"
    )
    version = lake.catalog.load_table("t").version
    for change in (
        "RENAME COLUMN a TO aa",
        "DROP COLUMN a",
        "ALTER COLUMN a TYPE BIGINT",
        "ALTER COLUMN b TYPE BIGINT",
        "ALTER COLUMN b SET DEFAULT 4",
        "RENAME COLUMN v TO w",
        "RENAME COLUMN s.x TO y",
        "ADD COLUMN s.y INT",
    ):
        with pytest.raises(AnalysisException, match="generated from"):
            lake.sql(f"ALTER TABLE lake.t {change}")
    assert lake.catalog.load_table("t").version == version


@only_where_spark_computes
def test_a_generated_column_is_renamed_moved_and_dropped(lake):
    lake.sql(TABLE)
    lake.sql("ALTER TABLE lake.t RENAME COLUMN b TO plus")
    lake.sql("ALTER TABLE lake.t ALTER COLUMN plus FIRST")
    lake.sql("INSERT INTO lake.t (a) VALUES (1)")
    assert lake.sql("SELECT * FROM lake.t") == [(2, 1, None)]
    lake.sql("ALTER TABLE lake.t DROP COLUMN plus")
    lake.sql("ALTER TABLE lake.t RENAME COLUMN a TO aa")
    lake.sql("INSERT INTO lake.t VALUES (5, 'x')")
    assert lake.sorted("SELECT * FROM lake.t") == [(1, None), (5, "x")]


@only_where_spark_computes
def test_expressions_that_cannot_generate_are_refused(lake):
    for expression in ("b + 1", "gone + 1", "rand()", "DATE'2020-01-01'", "c", "(SELECT 1)", "struct(*).a"):
        with pytest.raises((AnalysisException, UnsupportedOperationException)) as error:
            lake.sql(
                f"CREATE TABLE lake.u (a INT, b INT GENERATED ALWAYS AS ({expression}), "
                "c INT GENERATED ALWAYS AS (a))"
            )
        assert "INTERNAL_ERROR" not in str(error.value)
    assert lake.catalog.list_tables() == []


@only_where_spark_computes
def test_python_does_not_write_what_it_cannot_compute(lake):
    lake.sql(TABLE)
    table = lake.catalog.load_table("t")
    with pytest.raises(Unsupported, match=r"b is generated from a \+ 1"):
        table.append(lake.frame("SELECT 1 AS a, 2 AS b, 'x' AS c").toArrow())
    assert lake.sql("SELECT * FROM lake.t") == []


@only_where_spark_computes
def test_a_write_that_knew_no_generated_column_conflicts_with_its_return(lake):
    lake.sql(TABLE)
    table_before = lake.catalog.load_table("t")
    lake.sql("ALTER TABLE lake.t DROP COLUMN b")
    lake.sql("INSERT INTO lake.t VALUES (1, 'x')")
    without = lake.catalog.load_table("t")
    lake.sql(f"CALL lake.system.rollback_to_version('t', {table_before.version})")
    with pytest.raises(Exception, match="generated now"):
        without.append(lake.frame("SELECT 1 AS a, 'x' AS c").toArrow())
    with pytest.raises(Exception, match="generated now"):
        lake.sql(f"CALL lake.system.set_current_version('t', {without.version})")
    assert lake.sql("SELECT * FROM lake.t") == []
