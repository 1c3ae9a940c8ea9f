"""What lakelog does not do yet is refused by name: never accepted and then ignored."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyspark.errors import AnalysisException, UnsupportedOperationException
from pyspark.sql import SparkSession

from lakelog.log.errors import InvalidInput
from lakelog.spark import configure

pytestmark = pytest.mark.adapter


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE lake.u (a INT GENERATED ALWAYS AS IDENTITY)",
        "CREATE TABLE lake.u (a INT, b INT) PARTITIONED BY (bucket(3, a, b))",
        "CREATE TABLE lake.u (a INT, b INT) PARTITIONED BY (zorder(a, b))",
        "CREATE TABLE lake.u (a INT, b INT) CLUSTERED BY (a) SORTED BY (b) INTO 4 BUCKETS",
        "CREATE TABLE lake.u (a CHAR(3) COLLATE UNICODE_CI)",
        "CREATE TABLE lake.u AS SELECT NULL AS nothing",
        "CREATE EXTERNAL TABLE lake.u (a INT)",
        "CREATE TABLE lake.u (a INT) LOCATION 'rel/path'",
        "CREATE TABLE lake.u LOCATION 'rel/path' AS SELECT 1 AS a",
        "ALTER TABLE lake.t SET LOCATION '/elsewhere'",
        "ALTER TABLE lake.t ADD PARTITION (a = 1)",
        "ALTER TABLE lake.t SET TBLPROPERTIES ('location' = '/elsewhere')",
        "ALTER TABLE lake.t SET TBLPROPERTIES ('provider' = 'other')",
        "UPDATE lake.t VERSION AS OF 1 SET a = 3",
        "ANALYZE TABLE lake.t PARTITION (a = 1) COMPUTE STATISTICS",
    ],
)
def test_what_is_not_there_is_refused_and_changes_nothing(lake, statement):
    lake.sql("CREATE TABLE lake.t AS SELECT EXPLODE(array(1, 2)) AS a")
    version = lake.catalog.load_table("t").version
    with pytest.raises((AnalysisException, UnsupportedOperationException)) as error:
        lake.sql(statement)
    assert "INTERNAL_ERROR" not in str(error.value)
    assert lake.catalog.list_tables() == [("t",)]
    assert lake.catalog.load_table("t").version == version
    assert lake.sorted("SELECT * FROM lake.t") == [(1,), (2,)]


NOT_THERE = {
    "SELECT * FROM lake.t VERSION AS OF 99": "has no version 99",
    "SELECT * FROM lake.t VERSION AS OF 'none'": "no tag or branch none",
    "SELECT * FROM lake.t TIMESTAMP AS OF '2001-01-01'": "no version of 2001-01-01",
    "SELECT * FROM lake.t CHANGES FROM VERSION 99": "has no version 99",
    "CALL lake.system.set_current_version('t', 99)": "has no version 99",
    "ALTER TABLE lake.t CREATE TAG x AS OF VERSION 99": "no version 99",
    "SELECT * FROM lake.t VERSION AS OF 2": "version 2 .*has expired",
    "SELECT * FROM lake.t TIMESTAMP AS OF {then}": "expired|no version of",
    "SELECT * FROM lake.t CHANGES FROM VERSION 2": "no longer known: .*have expired",
    "INSERT INTO lake.t SELECT * FROM lake.t VERSION AS OF 2": "version 2 .*has expired",
    "CALL lake.system.rollback_to_version('t', 2)": "version 2 .*has expired",
    "CALL lake.system.set_current_version('t', 2)": "version 2 .*has expired",
    "ALTER TABLE lake.t CREATE TAG x AS OF VERSION 2": "version 2 .*has expired",
}


def test_versions_that_are_not_there_or_not_any_more_are_refused_and_nothing_changes(lake):
    lake.sql("CREATE TABLE lake.t (a INT)")
    lake.sql("INSERT INTO lake.t VALUES (1)")
    later_text = f"timestamp_micros({lake.catalog.load_table('t').table_head.time_us})"
    lake.sql("INSERT INTO lake.t VALUES (2)")
    lake.sql("CALL lake.system.expire('t', retain_last => 1, dry_run => false)")
    version = lake.catalog.load_table("t").version
    for statement, words in NOT_THERE.items():
        with pytest.raises(AnalysisException, match=words):
            lake.sql(statement.format(then=later_text))
    for option, value in (("versionAsOf", 99), ("versionAsOf", 2), ("timestampAsOf", "2001-01-01")):
        with pytest.raises(AnalysisException, match="has no version|has expired"):
            lake.spark.read.option(option, value).table(f"{lake.name}.t").collect()
    for timed_text, condition in (("'soon'", "INPUT"), ("rand()", "NON_DETERMINISTIC")):
        with pytest.raises(AnalysisException) as error:
            lake.sql(f"SELECT * FROM lake.t TIMESTAMP AS OF {timed_text}")
        assert error.value.getCondition() == f"INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.{condition}"
    assert lake.catalog.load_table("t").version == version
    assert lake.sorted("SELECT * FROM lake.t") == [(1,), (2,)]


def test_options_that_would_be_ignored_are_refused_by_name(lake):
    lake.sql("CREATE TABLE lake.t PARTITIONED BY (k) AS SELECT 1L AS id, 'a' AS k")
    frame = lake.spark.sql("SELECT 2L AS id, 'b' AS k")
    with pytest.raises(UnsupportedOperationException, match="(?i)partitionOverwriteMode"):
        frame.write.option("partitionOverwriteMode", "dynamic").mode("overwrite").insertInto(f"{lake.name}.t")
    with pytest.raises(UnsupportedOperationException, match="(?i)fanout-enabled"):
        frame.writeTo(f"{lake.name}.t").option("fanout-enabled", "true").append()
    with pytest.raises(UnsupportedOperationException, match="(?i)start-snapshot-id"):
        lake.spark.read.option("start-snapshot-id", "5").table(f"{lake.name}.t").collect()
    assert lake.sql("SELECT * FROM lake.t") == [(1, "a")]


def test_options_are_refused_when_a_query_makes_the_table_too(lake, tmp_path):
    frame = lake.spark.sql("SELECT 1 AS id")
    with pytest.raises(UnsupportedOperationException, match="(?i)fanout-enabled"):
        frame.write.option("fanout-enabled", "true").saveAsTable(f"{lake.name}.t")
    with pytest.raises(UnsupportedOperationException, match="(?i)fanout-enabled"):
        frame.writeTo(f"{lake.name}.t").option("fanout-enabled", "true").createOrReplace()
    assert lake.catalog.list_tables() == []
    lake.sql("CREATE TABLE lake.t OPTIONS ('Kept' = 'v') AS SELECT 1 AS id")
    assert lake.catalog.load_table("t").properties["option.Kept"] == "v"
    frame.write.option("path", str(tmp_path / "own")).saveAsTable(f"{lake.name}.u")
    assert lake.catalog.load_table("u").location.rstrip("/").endswith(str(tmp_path / "own"))


def test_what_is_wrong_with_a_place_is_said(lake):
    with pytest.raises(AnalysisException, match="'?rel/path'? is relative.*absolute path"):
        lake.sql("CREATE TABLE lake.t (a INT) LOCATION 'rel/path'")
    with pytest.raises(AnalysisException, match="rel/path"):
        lake.spark.range(1).write.option("path", "rel/path").saveAsTable(f"{lake.name}.t")
    with pytest.raises(AnalysisException, match="EXTERNAL TABLE must be accompanied by LOCATION"):
        lake.sql("CREATE EXTERNAL TABLE lake.t (a INT)")


def test_writes_do_not_change_the_schema_by_themselves(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT)")
    with pytest.raises(AnalysisException):
        lake.spark.sql("SELECT 1L AS id, 2 AS more").writeTo(f"{lake.name}.t").append()
    with pytest.raises(AnalysisException):
        lake.sql("INSERT INTO lake.t SELECT 1L AS id, 2 AS more")
    assert lake.frame("SELECT * FROM lake.t").columns == ["id"]


def test_a_setting_of_the_catalog_that_is_not_known_is_refused_by_name(lake):
    lake.spark.conf.set(f"spark.sql.catalog.{lake.name}.endpiont", "http://127.0.0.1:1")
    with pytest.raises(Exception, match="endpiont"):
        lake.sql(f"SHOW TABLES IN {lake.name}")


def test_a_warehouse_that_does_not_exist_is_an_error_until_something_is_written(make_lake, tmp_path):
    lake = make_lake(str(tmp_path / "wharehouse"), is_there=False)
    for statement in (
        f"SHOW NAMESPACES IN {lake.name}",
        f"SHOW TABLES IN {lake.name}",
        "CALL lake.system.fsck()",
        "CALL lake.system.vacuum()",
        "SELECT * FROM lake.system.audit",
    ):
        with pytest.raises(Exception, match=f"there is no warehouse at {lake.warehouse}: check the path"):
            lake.sql(statement)
    assert not (tmp_path / "wharehouse").exists()
    lake.sql("CREATE NAMESPACE lake.a")
    assert lake.sql(f"SHOW NAMESPACES IN {lake.name}") == [("a",)]


def test_a_running_session_is_not_configured_for_another_warehouse_under_the_same_name(lake, tmp_path):
    known = {"name": lake.name, "fsync": False, "jar": "unused", "maintenance": "on-demand"}
    same = configure(SparkSession.builder, lake.warehouse, **known)
    assert same._options[f"spark.sql.catalog.{lake.name}.python"] == lake.spark.conf.get(
        f"spark.sql.catalog.{lake.name}.python"
    )
    other = str(tmp_path / "other")
    with pytest.raises(
        InvalidInput, match=rf"{lake.name} .*there: {lake.warehouse}, here: {other}.*another name"
    ):
        configure(SparkSession.builder, other, **known)
    with pytest.raises(InvalidInput, match="statement-text .there: not set, here: full"):
        configure(SparkSession.builder, lake.warehouse, statement_text="full", **known)
    assert configure(SparkSession.builder, other, **known | {"name": f"{lake.name}_too"})


def test_of_two_builders_that_were_configured_before_either_has_a_session_the_second_is_refused(
    lake, tmp_path
):
    name = f"{lake.name}_of_two"
    known: dict[str, Any] = {"fsync": False, "jar": "unused"}
    first, same, second = (
        configure(SparkSession.builder, str(tmp_path / folder), name=name, **known)
        for folder in ("first", "first", "second")
    )
    renamed = configure(SparkSession.builder, str(tmp_path / "second"), name=f"{name}_too", **known)
    changed = configure(SparkSession.builder, str(tmp_path / "first"), name=name, **known)
    changed.config(f"spark.sql.catalog.{name}.statement-text", "full")
    try:
        assert first.getOrCreate() is same.getOrCreate() is renamed.getOrCreate() is lake.spark
        with pytest.raises(InvalidInput, match=rf"{name} .*there: {tmp_path}/first, here: {tmp_path}/second"):
            second.getOrCreate()
        with pytest.raises(InvalidInput, match=r"statement-text .there: not set, here: full"):
            changed.getOrCreate()
        assert lake.spark.conf.get(f"spark.sql.catalog.{name}.warehouse") == str(tmp_path / "first")
    finally:
        for key in lake.spark.conf.getAll:
            if key.startswith(f"spark.sql.catalog.{name}"):
                lake.spark.conf.unset(key)


def test_a_running_session_is_seen_from_other_threads(lake, tmp_path):
    """Where Spark says that none is active, and getOrCreate returns it all the same."""
    with ThreadPoolExecutor(1) as pool:
        refused_future = pool.submit(
            configure, SparkSession.builder, str(tmp_path), name=lake.name, jar="unused"
        )
        with pytest.raises(InvalidInput, match=f"there: {lake.warehouse}, here: {tmp_path}"):
            refused_future.result()


def test_a_catalog_that_is_open_refuses_what_was_meant_for_other_settings(lake, tmp_path):
    warehouse = f"spark.sql.catalog.{lake.name}.warehouse"
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.spark.conf.set(warehouse, str(tmp_path / "other"))
    for statement in (
        "INSERT INTO lake.t VALUES (2)",
        "SELECT * FROM lake.t",
        "CREATE TABLE lake.u (id INT)",
        "CALL lake.system.begin_transaction()",
    ):
        with pytest.raises(
            AnalysisException, match=f"then: {lake.warehouse}, now: {tmp_path}/other.*newSession"
        ):
            lake.sql(statement)
    lake.spark.conf.set(warehouse, lake.warehouse)
    lake.spark.conf.set(f"spark.sql.catalog.{lake.name}.as-of", "2026-01-01")
    with pytest.raises(AnalysisException, match=r"as-of .then: not set, now: 2026-01-01"):
        lake.sql("INSERT INTO lake.t VALUES (2)")
    lake.spark.conf.unset(f"spark.sql.catalog.{lake.name}.as-of")
    lake.sql("INSERT INTO lake.t VALUES (2)")
    assert lake.sorted("SELECT * FROM lake.t") == [(1,), (2,)]
    assert not (tmp_path / "other").exists()
