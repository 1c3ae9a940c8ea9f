"""The forms in which tables are created, dropped and renamed, beside Spark's in-memory catalog."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException, UnsupportedOperationException
from tests.spark.sessions import another_session
from tests.spark.sql.reference import outcome
from tests.spark.versions import SPARK_4_2

pytestmark = pytest.mark.adapter

SOURCE = """
    CREATE TABLE lake.a.src (id INT DEFAULT 3 COMMENT 'the key', name STRING NOT NULL, c CHAR(3), v VARCHAR(5))
    USING some PARTITIONED BY (id) COMMENT 'of things' TBLPROPERTIES ('k' = 'v')"""


def parquet_files(place: str | Path) -> list[Path]:
    return list(Path(place).rglob("*.parquet"))


@pytest.fixture
def log(spark):
    """What Spark's log says, as a Java writer."""
    jvm = spark._jvm
    log4j = jvm.org.apache.logging.log4j
    written = jvm.java.io.StringWriter()
    appender = log4j.core.appender.WriterAppender.createAppender(None, None, written, "test", False, False)
    appender.start()
    root = log4j.LogManager.getContext(False).getConfiguration().getRootLogger()
    root.addAppender(appender, log4j.Level.WARN, None)
    spark.sparkContext.setLogLevel("WARN")
    yield written
    spark.sparkContext.setLogLevel("OFF")
    root.removeAppender("test")


def test_options_of_a_file_source_are_kept_and_warned_of(lake, log):
    lake.sql("CREATE TABLE lake.t (a INT) USING csv OPTIONS (header 'true', sep ';')")
    lake.sql("INSERT INTO lake.t VALUES (1)")
    assert lake.sql("SELECT * FROM lake.t") == [(1,)] and lake.catalog.load_table("t").provider == "csv"
    text = "The options header, sep are kept as properties and have no effect: they are for files of csv"
    assert text in log.toString()


def test_what_has_no_effect_is_said_once(lake, log):
    for statement in (
        "CREATE TABLE lake.t (a INT) USING nosuchformat TBLPROPERTIES ('write.merge.mode' = 'copy-on-write')",
        "CREATE TABLE lake.u (a INT) USING NoSuchFormat TBLPROPERTIES ('delta.checkpointInterval' = '9')",
        "ALTER TABLE lake.u SET TBLPROPERTIES ('write.merge.mode' = 'copy-on-write')",
        "CREATE TABLE lake.v (a INT) USING Parquet",
    ):
        lake.sql(statement)
    lake.spark.range(1).writeTo(f"{lake.name}.w").using("typo").create()
    with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):  # Spark looks there itself.
        lake.spark.range(1).write.format("typo").saveAsTable(f"{lake.name}.w")
    lake.spark.range(1).write.saveAsTable(f"{lake.name}.x")
    said = log.toString()
    assert said.count("kept as a word") == 2
    assert (
        said.count("USING nosuchformat is kept as a word") == said.count("USING typo is kept as a word") == 1
    )
    assert "the property delta.checkpointInterval is Delta's, and has no effect on a lakelog table" in said
    assert "lakelog's word for it is lakelog.write.merge.mode" in said


def test_properties_that_must_not_be_ignored_are_refused_in_each_statement(lake):
    bad = "'delta.appendOnly' = 'true'"
    rows = lake.spark.range(1)
    lake.sql("CREATE TABLE lake.t (id BIGINT)")
    for act in (
        lambda: lake.sql(f"CREATE TABLE lake.u (a INT) TBLPROPERTIES ({bad})"),
        lambda: lake.sql(f"CREATE TABLE lake.u (a INT) USING delta OPTIONS ({bad})"),
        lambda: lake.sql(f"CREATE TABLE lake.u TBLPROPERTIES ({bad}) AS SELECT 1 AS a"),
        lambda: lake.sql(f"CREATE OR REPLACE TABLE lake.t (a INT) TBLPROPERTIES ({bad})"),
        lambda: lake.sql(f"REPLACE TABLE lake.t TBLPROPERTIES ({bad}) AS SELECT 1 AS a"),
        lambda: lake.sql(f"CREATE TABLE lake.u LIKE lake.t TBLPROPERTIES ({bad})"),
        lambda: lake.sql(f"ALTER TABLE lake.t SET TBLPROPERTIES ({bad})"),
        lambda: rows.writeTo(f"{lake.name}.u").tableProperty("delta.appendOnly", "true").create(),
        lambda: rows.write.option("delta.appendOnly", "true").saveAsTable(f"{lake.name}.u"),
    ):
        with pytest.raises(PySparkException, match=r"delta\.appendOnly"):
            act()
    assert not lake.catalog.table_exists("u") and lake.catalog.load_table("t").version == 1
    with pytest.raises(AnalysisException, match="rows with equal keys all stay"):
        lake.sql("CREATE TABLE lake.u (a INT) USING hudi TBLPROPERTIES (primaryKey = 'a')")


def test_like_copies_what_sparks_own_catalog_copies(lake, memory, tmp_path):
    for place in (lake, memory):
        place.sql("CREATE NAMESPACE lake.a")
        place.sql(SOURCE)
    for place in (lake, memory) if SPARK_4_2 else (lake,):
        place.sql("CREATE TABLE lake.a.t LIKE lake.a.src")
        place.sql("CREATE TABLE lake.a.u LIKE lake.a.src USING other TBLPROPERTIES ('k' = 'w', 'l' = 'x')")
    for name in ("t", "u") if SPARK_4_2 else ():
        show = f"SHOW CREATE TABLE lake.a.{name}"
        assert outcome(lake, show) == outcome(memory, show)
    lake.sql(f"CREATE TABLE lake.a.e LIKE lake.a.src LOCATION '{tmp_path}/e'")
    lake.sql("CREATE TABLE lake.a.managed LIKE lake.a.e")
    assert f"LOCATION 'file:{tmp_path}/e'" in lake.sql("SHOW CREATE TABLE lake.a.e")[0][0]
    assert "LOCATION" not in lake.sql("SHOW CREATE TABLE lake.a.managed")[0][0]
    other_session = another_session(lake)
    other_session.sql("INSERT INTO lake.a.t (name, c) VALUES ('n', 'x')")
    assert other_session.sql("SELECT * FROM lake.a.t") == [(3, "n", "x  ", None)]
    assert lake.catalog.load_table("a.u").provider == "other"


def test_like_copies_clustering_and_order_and_no_rows(lake):
    lake.sql("CREATE TABLE lake.src CLUSTER BY (b) AS SELECT 1 AS a, 2 AS b")
    lake.catalog.load_table("src").alter([{"change": "set-sort-order", "fields": ["a"]}])
    lake.sql("CREATE TABLE lake.t LIKE lake.src")
    table = lake.catalog.load_table("t")
    assert table.clustering == (("b",),)
    assert [field.source_id for field in table.sort_order.fields] == [table.schema.find(["a"]).id]
    assert lake.sql("SELECT * FROM lake.t") == []


def test_like_of_other_catalogs_and_views(lake, memory, tmp_path):
    spark = lake.spark
    spark.sql(
        "CREATE TABLE spark_catalog.default.theirs (a INT DEFAULT 3, b CHAR(3), p INT) USING parquet "
        f"PARTITIONED BY (p) COMMENT 'cs' TBLPROPERTIES ('q' = 'w') LOCATION '{tmp_path}/theirs'"
    )
    try:
        for place in (lake, memory) if SPARK_4_2 else (lake,):
            place.sql("CREATE TABLE lake.t LIKE spark_catalog.default.theirs")
        ours = lake.sql("SHOW CREATE TABLE lake.t")[0][0]
        if SPARK_4_2:
            # The reference takes over the location too, so that two tables would have one.
            theirs = re.sub(r"LOCATION .*\n", "", memory.sql("SHOW CREATE TABLE lake.t")[0][0])
            assert ours == theirs.replace(memory.name, lake.name)
        assert "DEFAULT 3" in ours and "PARTITIONED BY (p)" in ours
    finally:
        spark.sql("DROP TABLE spark_catalog.default.theirs")
    lake.sql("CREATE NAMESPACE lake.a")  # Spark itself fails over a view that is in none
    lake.sql("CREATE VIEW lake.a.v COMMENT 'seen' AS SELECT 1 AS x, 'y' AS y")
    lake.sql("CREATE TABLE lake.u LIKE lake.a.v")
    table = lake.catalog.load_table("u")
    assert table.schema.names == ("x", "y")
    assert set(table.properties) <= {"owner"}


STATEMENTS = (
    "CREATE TABLE lake.a.src LIKE lake.a.src",
    "CREATE TABLE IF NOT EXISTS lake.a.src LIKE lake.a.src",
    "CREATE TABLE lake.a.t LIKE lake.a.gone",
    "DROP TABLE lake.a.gone PURGE",
    "DROP TABLE IF EXISTS lake.a.gone PURGE",
    "REFRESH TABLE lake.a.src",
    "REFRESH TABLE lake.a.gone",
    "CACHE TABLE lake.a.gone",
    "UNCACHE TABLE lake.a.gone",
    "UNCACHE TABLE IF EXISTS lake.a.gone",
    "ALTER TABLE lake.a.gone RENAME TO a.t",
    "ALTER VIEW lake.a.src RENAME TO a.src2",
    "CREATE TABLE lake.a.t (a INT) PARTITIONED BY (a) CLUSTER BY (a)",
    "CREATE TABLE lake.a.t (a INT) CLUSTER BY (gone)",
    "ALTER TABLE lake.a.src RENAME TO src2",
    "SHOW TABLES IN lake.a",
)


def test_statements_end_as_in_sparks_own_catalog(lake, memory):
    for place in (lake, memory):
        place.sql("CREATE NAMESPACE lake.a")
        place.sql("CREATE TABLE lake.a.src (a INT)")
    # Spark 4.1 copies tables of its session catalog only, and no other catalog has views.
    unlike = () if SPARK_4_2 else (*STATEMENTS[:3], "ALTER VIEW lake.a.src RENAME TO a.src2")
    for statement in (each for each in STATEMENTS if each not in unlike):
        ours, theirs = outcome(lake, statement), outcome(memory, statement)
        assert (ours.condition, ours.columns, ours.rows) == (
            theirs.condition,
            theirs.columns,
            theirs.rows,
        ), statement


def test_an_external_table_has_to_have_a_location(lake):
    with pytest.raises(AnalysisException, match="must be accompanied by LOCATION"):
        lake.sql("CREATE EXTERNAL TABLE lake.t (a INT)")
    assert lake.catalog.list_tables() == []


def test_renames_end_as_the_names_say(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE NAMESPACE lake.b")
    lake.sql("CREATE TABLE lake.a.t AS SELECT 1 AS id")
    lake.sql("CREATE TABLE lake.b.taken (id INT)")
    for target, condition, named_text in (
        ("gone.t", "SCHEMA_NOT_FOUND", "gone"),
        ("b.taken", "TABLE_OR_VIEW_ALREADY_EXISTS", "taken"),
        ("a.t", "TABLE_OR_VIEW_ALREADY_EXISTS", "t"),
    ):
        with pytest.raises(AnalysisException) as error:
            lake.sql(f"ALTER TABLE lake.a.t RENAME TO {target}")
        assert error.value.getCondition() == condition
        assert f"`{named_text}`" in str(error.value)
    lake.sql("ALTER TABLE lake.a.t RENAME TO b.u")
    assert another_session(lake).sql("SELECT * FROM lake.b.u") == [(1,)]
    assert lake.catalog.list_tables("a") == []


def test_a_purged_table_cannot_come_back(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE TABLE lake.a.t AS SELECT 1 AS id")
    lake.sql("CREATE TABLE lake.a.kept AS SELECT 1 AS id")
    place = lake.catalog.load_table("a.t").location
    assert parquet_files(place)
    lake.sql("DROP TABLE lake.a.t PURGE")
    assert not parquet_files(place)
    assert lake.catalog.dropped("a") == []
    assert another_session(lake).sql("SELECT * FROM lake.a.kept") == [(1,)]
    lake.sql("CREATE TABLE lake.a.t AS SELECT 2 AS id")
    assert lake.sql("SELECT * FROM lake.a.t") == [(2,)]
    # What a purge leaves are the keys of its commits, which are reported as a note.
    assert {finding.severity.value for finding in lake.catalog.fsck().found} <= {"note"}


def test_a_purge_keeps_what_is_not_lakelogs_alone(lake, tmp_path):
    lake.sql(f"CREATE TABLE lake.t (a INT) LOCATION '{tmp_path}/own'")
    lake.sql("INSERT INTO lake.t VALUES (1)")
    lake.sql("DROP TABLE lake.t PURGE")
    assert len(parquet_files(tmp_path / "own")) == 1
    assert lake.catalog.dropped() == []
    lake.sql(f"CREATE TABLE lake.`{tmp_path}/path` (a INT)")
    with pytest.raises(UnsupportedOperationException, match="keeps its files"):
        lake.sql(f"DROP TABLE lake.`{tmp_path}/path` PURGE")
    lake.sql("CREATE TABLE lake.u AS SELECT 1 AS id")
    lake.sql("CALL lake.system.save_cut('then')")
    with pytest.raises(UnsupportedOperationException, match="saved cut"):
        lake.sql("DROP TABLE lake.u PURGE")
    assert lake.sql("SELECT * FROM lake.u") == [(1,)]
    lake.sql("CALL lake.system.begin_transaction()")
    with pytest.raises(UnsupportedOperationException, match="transaction"):
        lake.sql("DROP TABLE lake.u PURGE")
    lake.sql("CALL lake.system.rollback_transaction()")


def test_a_place_that_has_a_log_names_what_to_do(lake, tmp_path):
    lake.sql(f"CREATE EXTERNAL TABLE lake.t (a INT) LOCATION '{tmp_path}/own'")
    lake.sql("CREATE TABLE lake.src (a INT)")
    for statement in (
        f"CREATE TABLE lake.u (a INT) LOCATION '{tmp_path}/own'",
        f"CREATE TABLE lake.u LIKE lake.src LOCATION '{tmp_path}/own'",
        f"CREATE TABLE lake.u LOCATION '{tmp_path}/own' AS SELECT 1 AS a",
    ):
        with pytest.raises(AnalysisException, match=r"system\.register_table"):
            lake.sql(statement)
    assert lake.catalog.list_tables() == [("src",), ("t",)]
    with pytest.raises(UnsupportedOperationException, match="CREATE TABLE … LOCATION"):
        lake.sql(f"ALTER TABLE lake.t SET LOCATION '{tmp_path}/other'")


def test_tables_are_cached_and_refreshed_by_sql_and_by_the_catalog_functions(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    functions, name = lake.spark.catalog, f"{lake.name}.t"
    functions.cacheTable(name)
    assert functions.isCached(name)
    lake.catalog.load_table("t").truncate()
    lake.sql("REFRESH TABLE lake.t")
    assert lake.sql("SELECT * FROM lake.t") == []
    functions.refreshTable(name)
    functions.uncacheTable(name)
    assert not functions.isCached(name)
    lake.sql("CACHE LAZY TABLE lake.t")
    assert functions.isCached(name)
    lake.sql("UNCACHE TABLE lake.t")
    assert not functions.isCached(name)


def test_clustering_is_shown_changed_and_ended_as_in_sparks_own_catalog(lake, memory):
    looks = ("SHOW CREATE TABLE lake.t", "DESCRIBE TABLE lake.t")
    statements = (
        "CREATE TABLE lake.t (a INT, b STRING, s STRUCT<x: INT>) CLUSTER BY (a, s.x)",
        "ALTER TABLE lake.t CLUSTER BY (b)",
        "CREATE OR REPLACE TABLE lake.t CLUSTER BY (b) AS SELECT 1 AS a, 'x' AS b",
    )
    for statement in statements:
        assert outcome(lake, statement).condition is None
        memory.sql(statement)
        for look in looks:
            mine, theirs = outcome(lake, look, ordered=True), outcome(memory, look, ordered=True)
            assert (
                mine.rows == tuple(row for row in theirs.rows if "Metadata" not in row[0])[: len(mine.rows)]
            )
    lake.spark.sql(lake.sql("SHOW CREATE TABLE lake.t")[0][0].replace(f"{lake.name}.t", f"{lake.name}.again"))
    assert lake.catalog.load_table("again").clustering == (("b",),)
    with pytest.raises(AnalysisException, match="clustered by it"):
        lake.sql("ALTER TABLE lake.t DROP COLUMN b")
    lake.sql("ALTER TABLE lake.t RENAME COLUMN b TO c")
    assert lake.catalog.load_table("t").clustering == (("c",),)
    lake.sql("ALTER TABLE lake.t CLUSTER BY NONE")
    assert "cluster_by" not in another_session(lake).sql("SHOW CREATE TABLE lake.t")[0][0]
    lake.sql("ALTER TABLE lake.t DROP COLUMN c")
    for wrong in ("gone", "a, a"):
        with pytest.raises(AnalysisException):
            lake.sql(f"ALTER TABLE lake.t CLUSTER BY ({wrong})")


def test_clustered_rows_are_spread_over_files_by_range_and_sorted_in_them(lake):
    lake.sql("CREATE TABLE lake.t (k INT, p INT) CLUSTER BY (k)")
    lake.spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        lake.sql("INSERT INTO lake.t SELECT (id * 7919) % 1000, id % 3 FROM range(0, 1000, 1, 4)")
    finally:
        lake.spark.conf.unset("spark.sql.adaptive.enabled")
    table = lake.catalog.load_table("t")
    ranges = []
    for path in table.plan()["path"].to_pylist():
        rows = lake.spark.read.parquet(f"{table.location}/{path}").collect()
        keys = [row[0] for row in rows]
        assert keys == sorted(keys)
        ranges.append((keys[0], keys[-1]))
    ranges.sort()
    assert len(ranges) == 2
    assert ranges[0][1] < ranges[1][0]


@pytest.mark.parametrize(
    ("clause", "instead"),
    [
        ("CLUSTERED BY (a) SORTED BY (b) INTO 4 BUCKETS", "SORTED BY"),
        ("CLUSTERED BY (a, b) INTO 4 BUCKETS", r"bucket\(4, a\), bucket\(4, b\)"),
        ("PARTITIONED BY (bucket(3, a, b))", "several together"),
    ],
)
def test_buckets_that_iceberg_does_not_have_are_refused_with_what_to_do(lake, clause, instead):
    with pytest.raises(UnsupportedOperationException, match=instead):
        lake.sql(f"CREATE TABLE lake.t (a INT, b INT) {clause}")
    assert lake.catalog.list_tables() == []
    lake.sql("CREATE TABLE lake.t (a INT, b INT) CLUSTERED BY (a) INTO 4 BUCKETS")
    assert str(lake.catalog.load_table("t").spec.fields[0].transform) == "bucket[4]"
