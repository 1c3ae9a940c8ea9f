"""CALL lake.system.compute_statistics: a job that counts, and a table that keeps what it found for the optimizer."""

from __future__ import annotations

import datetime as dt

import pytest
from pyspark.errors import AnalysisException
from tests.spark.sessions import another_session, descriptions_of_jobs

from lakelog.catalog import engine

pytestmark = pytest.mark.adapter


@pytest.fixture
def counted(lake):
    lake.sql(
        "CREATE TABLE lake.t AS SELECT id, id % 10 AS kind, IF(id < 5, NULL, concat('n', id % 3)) AS name, "
        "DATE'2024-01-01' + CAST(id % 4 AS INT) AS day, CAST(id / 4 AS DECIMAL(9,2)) AS part, "
        "array(id) AS list FROM range(100)"
    )
    return lake


def expected_rows(lake, condition: str) -> int:
    """How many rows Spark's optimizer expects."""
    plan = lake.frame(f"SELECT * FROM lake.t WHERE {condition}")._jdf.queryExecution().optimizedPlan()
    return int(str(plan.stats().rowCount().get()))


def test_what_a_job_counts_is_kept_with_its_version_and_seen_by_all_clients(counted):
    lake = counted
    rows = {row[0]: row[1:] for row in lake.sql("CALL lake.system.compute_statistics('t')")}
    assert rows["kind"][:5] == (100, 10, 0, "0", "9")
    assert rows["name"][:5] == (100, 3, 5, None, None)
    assert rows["name"][5:] == (2, 2, 1)
    assert rows["day"][3:5] == ("19723", "19726")
    assert rows["part"][3:5] == ("0.00", "24.75")
    assert "list" not in rows
    table = lake.catalog.load_table("t")
    assert (table.version, engine.estimates(table).version, engine.estimates(table).rows) == (2, 1, 100)
    kind = engine.estimates(table).columns[table.schema.find(("kind",)).id]
    assert (kind.distinct, kind.nulls, kind.min, kind.max, kind.type) == (10, 0, 0, 9, "long")
    assert [entry.operation for entry in table.history()] == ["compute statistics", "create, append"]
    assert lake.sql("SELECT count(*) FROM lake.t") == [(100,)]
    assert any("lakelog statistics of " in text for text in descriptions_of_jobs(lake.spark))


def test_the_optimizer_goes_by_them_also_after_renames_and_in_other_sessions(counted):
    lake = counted
    settings = ("spark.sql.cbo.enabled", "spark.sql.cbo.planStats.enabled")
    other_session = another_session(lake)
    for spark in (lake.spark, other_session.spark):
        for setting in settings:
            spark.conf.set(setting, "true")
    try:
        assert expected_rows(lake, "kind = 3") > 10
        lake.sql("CALL lake.system.compute_statistics('t', array('kind'))")
        lake.sql("CALL lake.system.compute_statistics(table => 't', columns => array('DAY', 'name'))")
        assert expected_rows(lake, "kind = 3") == 10
        assert expected_rows(lake, "day = DATE'2024-01-02'") == 25
        assert expected_rows(lake, "name IS NULL") == 5
        lake.sql("ALTER TABLE lake.t RENAME COLUMN kind TO sort")
        lake.sql("ALTER TABLE lake.t ALTER COLUMN day TYPE TIMESTAMP_NTZ")
        lake.sql("ALTER TABLE lake.t ADD COLUMN kind BIGINT")
        assert expected_rows(other_session, "sort = 3") == 10
        assert (
            expected_rows(lake, "day = TIMESTAMP_NTZ'2024-01-02 00:00:00'") == 100
        )  # Spark has no estimate of these
        assert lake.sql("SELECT count(*) FROM lake.t WHERE sort = 3") == [(10,)]
        lake.sql("INSERT INTO lake.t (sort) VALUES (1000)")
        assert expected_rows(lake, "sort = 3") == 100  # of the file that may have such rows
        assert engine.estimates(lake.catalog.load_table("t")).added_since == 1
        lake.sql("CREATE OR REPLACE TABLE lake.t AS SELECT 1L AS sort")
        assert engine.estimates(lake.catalog.load_table("t")) is None
    finally:
        for setting in settings:
            lake.spark.conf.unset(setting)


def test_no_width_between_bounds_that_is_not_finite_fails_the_optimizer(lake):
    lake.sql(
        "CREATE TABLE lake.t AS SELECT * FROM VALUES "
        "(DOUBLE('NaN'), FLOAT('NaN'), -1.7e308D, DOUBLE('-Infinity'), 1D), "
        "(DOUBLE('NaN'), 1.0F, 1.7e308D, 2D, 2D) AS t(not_a_number, partly, wide, infinite, finite)"
    )
    lake.sql("CALL lake.system.compute_statistics('t')")
    lake.spark.conf.set("spark.sql.cbo.enabled", "true")
    try:
        for column in ("not_a_number", "partly", "wide", "infinite", "finite"):
            for condition in (
                "{} > 1",
                "{} < 1",
                "{} = 1",
                "{} BETWEEN 1e300D AND 1.5D",
                "{} NOT BETWEEN 3.4e38D AND 0",
            ):
                condition = condition.format(column)
                assert expected_rows(lake, condition) <= 2, condition
        assert expected_rows(lake, "finite > 1.5") == 1
    finally:
        lake.spark.conf.unset("spark.sql.cbo.enabled")


def test_columns_that_there_are_not_or_that_cannot_be_counted_are_refused(counted):
    for columns, message in {
        "array('nothing')": "no column nothing",
        "array('list')": "list is .*, for which Spark computes no statistics",
        "array()": "name columns",
        "array(CAST(NULL AS STRING))": "has a NULL",
    }.items():
        with pytest.raises(AnalysisException, match=message):
            counted.sql(f"CALL lake.system.compute_statistics('t', {columns})")
    assert counted.catalog.load_table("t").version == 1


def test_statistics_are_computed_in_the_sessions_transaction_too(counted):
    lake = counted
    lake.sql("CALL lake.system.begin_transaction()")
    lake.sql("INSERT INTO lake.t (id, day) VALUES (100, DATE'2030-01-01')")
    [row] = lake.sql("CALL lake.system.compute_statistics('t', array('id'))")
    assert row[1:5] == (101, pytest.approx(101, rel=0.1), 0, "0")
    assert engine.estimates(lake.catalog.load_table("t")) is None
    lake.sql("CALL lake.system.commit_transaction()")
    assert engine.estimates(lake.catalog.load_table("t")).rows == 101
    assert dt.date(2030, 1, 1) in lake.catalog.load_table("t").to_arrow()["day"].to_pylist()
