"""What a name means: catalog before namespace, the current catalog and namespace, dots and backticks, the root.

The examples are those of Spark's own tests of catalogs (`DataSourceV2SQLSuite`, `CatalogManagerSuite`).
"""

from contextlib import contextmanager

import pytest
from pyspark.sql.functions import expr
from tests.spark.sessions import another_session
from tests.spark.sql.reference import outcome
from tests.spark.versions import read_changes

pytestmark = pytest.mark.adapter

SETUP = (
    "CREATE NAMESPACE lake.a",
    "CREATE NAMESPACE lake.a.b",
    "CREATE NAMESPACE lake.`dot.ted`",
    "CREATE NAMESPACE lake.dot",
    "CREATE NAMESPACE lake.lake",
    "CREATE TABLE lake.t (id STRING)",
    "CREATE TABLE lake.a.t (id STRING)",
    "CREATE TABLE lake.a.b.t (id STRING)",
    "CREATE TABLE lake.`dot.ted`.`t.t` (id STRING)",
    "CREATE TABLE lake.lake.t (id STRING)",
    "INSERT INTO lake.t VALUES ('root')",
    "INSERT INTO lake.a.t VALUES ('a')",
    "INSERT INTO lake.a.b.t VALUES ('a.b')",
    "INSERT INTO lake.`dot.ted`.`t.t` VALUES ('dotted')",
    "INSERT INTO lake.lake.t VALUES ('named as the catalog')",
)

# From top to bottom, as one session says them; the last ones leave it where it began.
SAID = (
    "SELECT current_catalog(), current_database()",
    "SELECT * FROM lake.t",
    "SELECT * FROM lake.a.t",
    "SELECT * FROM lake.a.b.t",
    "SELECT * FROM a.t",
    "USE lake",
    "SELECT current_catalog(), current_database(), current_schema()",
    "SHOW CURRENT NAMESPACE",
    "SELECT * FROM t",
    "SELECT * FROM a.t",
    "SELECT * FROM a.b.t",
    "SELECT * FROM lake.t",  # the catalog's, not the namespace's of the same name
    "SELECT * FROM lake.lake.t",
    "SELECT * FROM `dot.ted`.`t.t`",
    "SELECT * FROM dot.ted.`t.t`",
    "SELECT * FROM `dot.ted.t.t`",
    "SELECT t.id FROM t",
    "SELECT a.t.id FROM a.t",
    "SELECT lake.a.t.id FROM lake.a.t",
    "SHOW TABLES",
    "SHOW TABLES IN a",
    "SHOW TABLES IN a.b",
    "SHOW TABLES IN `dot.ted`",
    "SHOW TABLES IN dot.ted",
    "SHOW COLUMNS IN t",
    "USE a",
    "SELECT current_catalog(), current_database()",
    "SELECT * FROM t",
    "SELECT * FROM b.t",  # a namespace is named from the catalog on, not from the current one
    "SELECT * FROM a.b.t",
    "USE a.b",
    "SELECT current_database()",
    "SELECT * FROM t",
    "SHOW CURRENT SCHEMA",
    "USE `dot.ted`",
    "SELECT current_database()",
    "SELECT * FROM `t.t`",
    "SHOW TABLES",
    "USE lake.a",
    "SELECT * FROM t",
    "USE NAMESPACE lake",  # the namespace of that name in the current catalog
    "SELECT * FROM t",
    "USE lake.lake",
    "SELECT * FROM t",
    "USE gone",
    "USE lake.gone",
    "USE lake.a.gone",
    "USE DATABASE gone",
    "SELECT current_catalog(), current_database()",
    "DESCRIBE t",
    "SET CATALOG lake",
    "SELECT current_catalog(), current_database()",
    "SET CATALOG 'spark_catalog'",
    "SELECT current_catalog(), current_database()",
    "USE lake.a",
    "CREATE TABLE made (id STRING)",
    "INSERT INTO made VALUES ('made')",
    "SELECT * FROM lake.a.made",
    "ALTER TABLE made RENAME TO a.renamed",
    "SELECT * FROM renamed",
    "CREATE NAMESPACE a.new",
    "SHOW NAMESPACES IN lake.a",
    "DROP NAMESPACE a.new",
    "DROP TABLE renamed",
    "SHOW TABLES IN lake.a",
    "CREATE TEMPORARY VIEW t AS SELECT 'temporary' AS id",
    "SELECT * FROM t",  # a temporary view hides the table
    "SELECT * FROM lake.a.t",
    "DROP VIEW t",
    "WITH t AS (SELECT 'common' AS id) SELECT * FROM t",
    "USE spark_catalog.default",
    "SELECT current_catalog(), current_database()",
    "SELECT * FROM t",
)


@contextmanager
def active(session):
    """Make a session the one of this thread: writers of DataFrames ask that one where they are."""
    sessions = session._jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        sessions.setActiveSession(before.get()) if before.isDefined() else sessions.clearActiveSession()


def test_names_mean_what_they_mean_with_a_catalog_of_sparks_own(lake, memory):
    places = (another_session(lake), memory)
    for place in places:
        for statement in SETUP:
            assert outcome(place, statement).condition is None, statement
    ours = [outcome(places[0], statement) for statement in SAID]
    theirs = [outcome(places[1], statement) for statement in SAID]
    for statement, one, other in zip(SAID, ours, theirs, strict=True):
        assert one == other, statement
    assert sum(each.condition is None for each in ours) > 50


def test_a_dropped_namespace_stays_current_until_another_is_chosen(lake, memory):
    for place in (another_session(lake), memory):
        for statement, condition in (
            ("CREATE NAMESPACE lake.gone", None),
            ("USE lake.gone", None),
            ("DROP NAMESPACE lake.gone", None),
            ("SELECT current_database()", None),
            ("SHOW TABLES", "SCHEMA_NOT_FOUND"),
            ("SELECT * FROM t", "TABLE_OR_VIEW_NOT_FOUND"),
            ("CREATE TABLE t (id INT)", "SCHEMA_NOT_FOUND" if place is not memory else None),
            ("USE spark_catalog.default", None),
        ):
            assert outcome(place, statement).condition == condition, statement


def test_the_default_catalog_is_where_names_without_one_are(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    default = another_session(lake)
    default.spark.conf.set("spark.sql.defaultCatalog", lake.name)
    with active(default.spark):
        assert default.sql("SELECT current_catalog(), current_database()") == [(lake.name, "")]
        default.sql("CREATE TABLE t AS SELECT 1 AS id")
        default.sql("CREATE TABLE a.u AS SELECT 2 AS id")
        assert default.sql("SELECT * FROM t JOIN a.u ON t.id < u.id") == [(1, 2)]
        assert default.sql("SHOW TABLES") == [("", "t", False)]
        assert default.sql("SHOW NAMESPACES") == [("a",)]
        assert default.spark.table("a.u").count() == 1
        default.spark.sql("SELECT 3 AS id").write.mode("append").saveAsTable("a.u")
        default.spark.sql("SELECT 4 AS id").writeTo("t").append()
        default.sql("USE a")
        default.spark.sql("SELECT 5 AS id").write.insertInto("u")
        assert default.sql("SHOW TABLES") == [("a", "u", False)]
        catalog = default.spark.catalog
        assert (catalog.currentCatalog(), catalog.currentDatabase()) == (lake.name, "a")
        assert [table.name for table in catalog.listTables()] == ["u"]
        assert [database.name for database in catalog.listDatabases()] == ["a"]
        assert catalog.tableExists("u") and not catalog.tableExists("t")
        # Spark's own is still there under its name.
        assert default.sql("SHOW NAMESPACES IN spark_catalog") == [("default",)]
    assert lake.sorted("SELECT * FROM lake.a.u") == [(2,), (3,), (5,)]
    assert sorted(lake.catalog.load_table("t").to_arrow()["id"].to_pylist()) == [1, 4]


def test_all_that_works_by_full_names_works_where_the_catalog_is_the_default_one(lake, tmp_path):
    for namespace in ("a", "a.b"):
        lake.sql(f"CREATE NAMESPACE lake.{namespace}")
    default = another_session(lake)
    default.spark.conf.set("spark.sql.defaultCatalog", lake.name)
    with active(default.spark):
        for statement in (
            f"USE {lake.name}.a.b",
            "CREATE TABLE t (id BIGINT, k STRING)",
            "INSERT INTO t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c')",
            "DELETE FROM t WHERE id = 1",
            "UPDATE t SET k = 'u' WHERE id = (SELECT min(id) FROM t)",
            "MERGE INTO t USING (SELECT 3 AS id UNION ALL SELECT 4) AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET k = 'm' WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.id, 'n')",
        ):
            default.sql(statement)
        # A place of files is no target in Spark, and is not looked at for one.
        assert (
            outcome(default, f"INSERT INTO parquet.`{tmp_path}/no` VALUES (1)").condition
            == "TABLE_OR_VIEW_NOT_FOUND"
        )
        assert default.sql("SELECT * FROM t ORDER BY id") == [(2, "u"), (3, "m"), (4, "n")]
        assert default.sql("SELECT count(*) FROM t VERSION AS OF 2") == [(3,)]
        assert default.spark.read.option("versionAsOf", 2).table("t").count() == 3
        assert default.sql("SELECT id, _change_type FROM t CHANGES FROM VERSION 3 TO VERSION 3") == [
            (1, "delete")
        ]
        assert read_changes(default.spark.read.options(startingVersion=3, endingVersion=3), "t").count() == 1
        assert default.sql("SELECT max(_version) FROM t") == [(5,)]
        # What stands behind a table is named from the catalog on, as all that is in a namespace.
        assert default.sql("SELECT count(*) FROM a.b.t.history") == [(5,)]
        default.sql("ALTER TABLE t CREATE BRANCH trial")
        default.sql("INSERT INTO a.b.t.branch_trial VALUES (5, 'o')")
        assert default.sql("SELECT count(*) FROM t VERSION AS OF 'trial'") == [(4,)]
        assert default.sql("CALL system.fast_forward('t', 'main', 'trial')")[0][0] == "main"
        assert default.sql("CALL system.compact('a.b.t')")[0][0] > 0
        changed_rows = default.spark.sql("SELECT 5L AS new, 'end' AS k")
        changed_rows.mergeInto("t", expr("t.id = new")).whenMatched().update({"k": expr("'end'")}).merge()
        copy = default.spark.readStream.table("t").writeStream.option(
            "checkpointLocation", str(tmp_path / "c")
        )
        copy.trigger(availableNow=True).toTable("copy").awaitTermination()
    rows = [(2, "u"), (3, "m"), (4, "n"), (5, "end")]
    assert lake.sorted("SELECT * FROM lake.a.b.t") == lake.sorted("SELECT * FROM lake.a.b.copy") == rows
    python = lake.catalog.load_table("a.b.t").to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in python) == rows


@pytest.mark.parametrize(
    "name", ["a.b.c", "with space", "quo`te", "ünïcode", "UPPER", "1st", "select", "a/b", "-"]
)
def test_a_name_in_backticks_is_one_part_whatever_is_in_it(lake, name):
    quoted_text = "`" + name.replace("`", "``") + "`"
    session = another_session(lake)
    session.sql(f"CREATE NAMESPACE lake.{quoted_text}")
    session.sql(f"CREATE NAMESPACE lake.{quoted_text}.{quoted_text}")
    session.sql(f"CREATE TABLE lake.{quoted_text}.{quoted_text}.{quoted_text} AS SELECT 1 AS {quoted_text}")
    session.sql(f"USE lake.{quoted_text}.{quoted_text}")
    assert session.sql(f"SELECT {quoted_text} FROM {quoted_text}") == [(1,)]
    assert [row[1] for row in session.sql("SHOW TABLES")] == [name]
    assert session.sql(
        f"SELECT x.{quoted_text} FROM {session.name}.{quoted_text}.{quoted_text}.{quoted_text} AS x"
    ) == [(1,)]
    assert lake.catalog.list_tables((name, name)) == [(name, name, name)]
    session.sql("USE spark_catalog.default")


def test_a_name_of_another_case_is_another_name(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE NAMESPACE lake.A")
    lake.sql("CREATE TABLE lake.a.t (id INT)")
    assert outcome(lake, "SELECT * FROM lake.A.t").condition == "TABLE_OR_VIEW_NOT_FOUND"
    assert outcome(lake, "SELECT * FROM lake.a.T").condition == "TABLE_OR_VIEW_NOT_FOUND"
    assert lake.sql("SHOW TABLES IN lake.A") == []
