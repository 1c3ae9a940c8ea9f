"""Statements about namespaces, beside Spark's in-memory catalog."""

from dataclasses import replace

import pytest
from tests.spark.sessions import another_session
from tests.spark.sql.reference import outcome

SETUP = (
    "CREATE NAMESPACE lake.a COMMENT 'first' WITH DBPROPERTIES ('k' = 'v', 'l' = 'w')",
    "CREATE NAMESPACE lake.a.b",
    "CREATE NAMESPACE lake.other WITH PROPERTIES ('x' = 'y')",
    "CREATE TABLE lake.a.t (id INT)",
)

SAME = (
    "CREATE NAMESPACE IF NOT EXISTS lake.a COMMENT 'not taken'",
    "CREATE SCHEMA lake.schema",
    "CREATE DATABASE IF NOT EXISTS lake.database COMMENT 'of it' WITH DBPROPERTIES ('p' = 'q')",
    "CREATE NAMESPACE lake.x WITH DBPROPERTIES ('location' = '/x')",
    "CREATE NAMESPACE lake.x WITH DBPROPERTIES ('owner' = 'me')",
    "CREATE NAMESPACE lake.x LOCATION ''",
    "CREATE NAMESPACE lake.x COMMENT 'one' COMMENT 'two'",
    "ALTER NAMESPACE lake.a SET PROPERTIES ('k' = 'v2', 'm' = 'x')",
    "ALTER SCHEMA lake.a SET DBPROPERTIES ('n' = 'z')",
    "ALTER DATABASE lake.a UNSET DBPROPERTIES ('l', 'never there')",
    "ALTER NAMESPACE lake.a SET PROPERTIES ('owner' = 'me')",
    "ALTER NAMESPACE lake.a SET PROPERTIES ('location' = '/x')",
    "ALTER NAMESPACE lake.a SET LOCATION ''",
    "ALTER NAMESPACE lake.gone SET PROPERTIES ('k' = 'v')",
    "ALTER NAMESPACE lake.gone UNSET PROPERTIES ('k')",
    "ALTER NAMESPACE lake.gone SET LOCATION '/x'",
    "COMMENT ON NAMESPACE lake.a IS 'second'",
    "COMMENT ON NAMESPACE lake.a IS NULL",
    "COMMENT ON NAMESPACE lake.gone IS 'x'",
    "DESCRIBE NAMESPACE lake.a.b",
    "DESCRIBE NAMESPACE EXTENDED lake.other",
    "DESC SCHEMA EXTENDED lake.a",
    "DESCRIBE DATABASE lake.gone",
    "SHOW NAMESPACES IN lake",
    "SHOW SCHEMAS FROM lake.a",
    "SHOW DATABASES IN lake LIKE 'a*'",
    "SHOW NAMESPACES IN lake LIKE 'A|OTH*'",
    "SHOW NAMESPACES IN lake 'none*'",
    "SHOW CATALOGS LIKE 'lake'",
    "DROP NAMESPACE lake.gone",
    "DROP NAMESPACE IF EXISTS lake.gone",
    "DROP NAMESPACE lake.other RESTRICT",
    "DROP NAMESPACE lake.a.b",
    "DROP SCHEMA lake.a CASCADE",
    "DROP DATABASE IF EXISTS lake.other",
)


@pytest.fixture
def places(lake, memory_views):
    """lakelog's catalog and the one of Spark's that lists namespaces in full."""
    for place in (lake, memory_views):
        for statement in SETUP:
            place.sql(statement)
    return lake, memory_views


def distinct_outcome(place, statement):
    """The outcome; Spark's own catalog lists a namespace once for each that is in it."""
    found_outcome = outcome(place, statement)
    return replace(found_outcome, rows=tuple(sorted(set(found_outcome.rows))))


def test_statements_do_what_they_do_on_sparks_own_catalog(places):
    lake, memory = places
    other_session = another_session(lake)
    for statement in SAME:
        assert distinct_outcome(lake, statement) == distinct_outcome(memory, statement), statement
        for name in ("a", "other", "schema", "database"):
            text_after = f"DESCRIBE NAMESPACE EXTENDED lake.{name}"
            assert (found_outcome := outcome(lake, text_after)) == outcome(memory, text_after), statement
            assert outcome(other_session, text_after) == found_outcome, statement
        shown_distinct_outcome = distinct_outcome(lake, "SHOW NAMESPACES IN lake")
        assert shown_distinct_outcome == distinct_outcome(memory, "SHOW NAMESPACES IN lake"), statement
        assert shown_distinct_outcome.rows == tuple(lake.catalog.list_namespaces()), statement
    assert lake.catalog.list_namespaces() == [("database",), ("schema",)]


def test_what_cannot_be_fails_with_sparks_own_error_and_changes_nothing(places):
    lake, _ = places
    for statement, condition in (
        ("CREATE NAMESPACE lake.a", "SCHEMA_ALREADY_EXISTS"),
        ("CREATE NAMESPACE lake.gone.child", "SCHEMA_NOT_FOUND"),
        ("CREATE NAMESPACE lake", "SCHEMA_ALREADY_EXISTS"),
        ("SHOW NAMESPACES IN lake.gone", "SCHEMA_NOT_FOUND"),
        ("DROP NAMESPACE lake.a", "SCHEMA_NOT_EMPTY"),
        ("DROP NAMESPACE lake.a RESTRICT", "SCHEMA_NOT_EMPTY"),
        ("DROP NAMESPACE lake", "UNSUPPORTED_FEATURE.DROP_DATABASE"),
        ("DROP NAMESPACE IF EXISTS lake CASCADE", "UNSUPPORTED_FEATURE.DROP_DATABASE"),
        ("ALTER NAMESPACE lake.a OWNER TO me", "PARSE_SYNTAX_ERROR"),
    ):
        assert outcome(lake, statement).condition == condition, statement
    assert lake.catalog.list_namespaces() == [("a",), ("other",)]
    assert lake.catalog.list_tables("a") == [("a", "t")]
    assert lake.catalog.load_namespace("a")["comment"] == "first"


def test_properties_and_owner_are_seen_by_others(places):
    lake, _ = places
    lake.sql("ALTER NAMESPACE lake.a SET PROPERTIES ('k' = 'v2')")
    for place in (lake, another_session(lake)):
        rows = dict(place.sql("DESCRIBE NAMESPACE EXTENDED lake.a"))
        assert rows["Properties"] == "((k,v2), (l,w))"
        assert rows["Owner"] == lake.spark.sparkContext.sparkUser()
    properties = lake.catalog.load_namespace("a")
    assert (properties["k"], properties["comment"]) == ("v2", "first")


def test_the_root_has_properties_too(lake):
    lake.sql(f"ALTER NAMESPACE {lake.name} SET PROPERTIES ('k' = 'v')")
    lake.sql(f"COMMENT ON NAMESPACE {lake.name} IS 'of everything'")
    rows = dict(lake.sql(f"DESCRIBE NAMESPACE EXTENDED {lake.name}"))
    assert (rows["Comment"], rows["Properties"]) == ("of everything", "((k,v))")
    assert lake.catalog.load_namespace(()) == {"k": "v", "comment": "of everything"}


def test_a_location_is_where_the_tables_of_a_namespace_go(lake, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    lake.sql(f"CREATE NAMESPACE lake.a LOCATION '{first}'")
    lake.sql("CREATE TABLE lake.a.t AS SELECT 1 AS id")
    lake.sql(f"ALTER NAMESPACE lake.a SET LOCATION 'file:{second}'")
    lake.sql("CREATE TABLE lake.a.u AS SELECT 2 AS id")
    lake.sql("INSERT INTO lake.a.t VALUES (3)")
    assert len(list(first.rglob("*.parquet"))) == 2 and len(list(second.rglob("*.parquet"))) == 1
    for place in (lake, another_session(lake)):
        assert dict(place.sql("DESCRIBE NAMESPACE lake.a"))["Location"] == f"file:{second}"
        assert place.sorted("SELECT id FROM lake.a.t UNION ALL SELECT id FROM lake.a.u") == [(1,), (2,), (3,)]
        assert "LOCATION" not in place.sql("SHOW CREATE TABLE lake.a.t")[0][0]
    assert lake.spark.catalog.getDatabase(f"{lake.name}.a").locationUri == f"file:{second}"
    assert lake.catalog.load_table("a.t").location.startswith(str(first))
    lake.sql("DROP NAMESPACE lake.a CASCADE")
    lake.sql("CALL lake.system.undrop_namespace('a')")
    assert lake.sorted("SELECT id FROM lake.a.t") == [(1,), (3,)]


@pytest.mark.parametrize(
    "statement", ["CREATE NAMESPACE lake.b LOCATION", "ALTER NAMESPACE lake.a SET LOCATION"]
)
def test_a_location_inside_of_the_warehouses_own_folders_is_refused(lake, statement):
    lake.sql("CREATE NAMESPACE lake.a")
    failed_outcome = outcome(lake, f"{statement} '{lake.warehouse}/_log'")
    assert failed_outcome.condition == "AnalysisException"
    assert lake.catalog.list_namespaces() == [("a",)]
    assert "location" not in lake.catalog.load_namespace("a")
