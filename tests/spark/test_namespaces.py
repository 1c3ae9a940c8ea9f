"""Namespaces through Spark's statements."""

import pytest
from pyspark.errors import AnalysisException

pytestmark = pytest.mark.adapter


def test_namespaces_are_created_nested_listed_and_dropped(lake):
    lake.sql("CREATE NAMESPACE lake.a COMMENT 'first' WITH DBPROPERTIES ('k' = 'v')")
    lake.sql("CREATE NAMESPACE lake.a.b")
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.a.b")
    assert lake.sql(f"SHOW NAMESPACES IN {lake.name}") == [("a",)]
    assert lake.sql("SHOW NAMESPACES IN lake.a") == [("a.b",)]
    assert lake.catalog.list_namespaces("a") == [("a", "b")]
    lake.sql("DROP NAMESPACE lake.a.b")
    assert lake.sql("SHOW NAMESPACES IN lake.a") == []


def test_properties_of_a_namespace_are_shown_and_changed(lake):
    lake.sql("CREATE NAMESPACE lake.a COMMENT 'first' WITH DBPROPERTIES ('k' = 'v')")
    lake.sql("ALTER NAMESPACE lake.a SET PROPERTIES ('more' = 'w')")
    lake.sql("ALTER NAMESPACE lake.a UNSET PROPERTIES ('k')")
    rows = dict(lake.sql("DESCRIBE NAMESPACE EXTENDED lake.a"))
    assert rows["Comment"] == "first"
    assert rows["Properties"] == "((more,w))"


@pytest.mark.parametrize(
    ("statement", "condition", "named"),
    [
        ("CREATE NAMESPACE lake.there", "SCHEMA_ALREADY_EXISTS", "`there`"),
        ("CREATE NAMESPACE lake.gone.child", "SCHEMA_NOT_FOUND", "`gone`"),
        ("SHOW NAMESPACES IN lake.gone", "SCHEMA_NOT_FOUND", "`gone`"),
        ("SHOW TABLES IN lake.gone", "SCHEMA_NOT_FOUND", "`gone`"),
        ("DESCRIBE NAMESPACE lake.gone", "SCHEMA_NOT_FOUND", "`gone`"),
        ("DROP NAMESPACE lake.gone", "SCHEMA_NOT_FOUND", "`gone`"),
        ("DROP NAMESPACE lake.there", "SCHEMA_NOT_EMPTY", "`there`"),
        ("CREATE TABLE lake.gone.t (a INT)", "SCHEMA_NOT_FOUND", "`gone`"),
    ],
)
def test_errors_about_namespaces_are_sparks_own_and_name_them(lake, statement, condition, named):
    lake.sql("CREATE NAMESPACE lake.there")
    lake.sql("CREATE TABLE lake.there.t (a INT)")
    with pytest.raises(AnalysisException) as error:
        lake.sql(statement)
    assert error.value.getCondition() == condition
    assert named in str(error.value)


def test_drop_cascade_drops_what_is_inside(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE NAMESPACE lake.a.b")
    lake.sql("CREATE TABLE lake.a.b.t AS SELECT 1 AS id")
    lake.sql("DROP NAMESPACE lake.a CASCADE")
    assert lake.sql(f"SHOW NAMESPACES IN {lake.name}") == []


@pytest.mark.parametrize("name", ["with space", "dot.ted", "ünïcode", "a/b", "CaSe", "percent%20", "quo`te"])
def test_names_may_contain_almost_anything(lake, name):
    quoted_text = "`" + name.replace("`", "``") + "`"
    lake.sql(f"CREATE NAMESPACE lake.{quoted_text}")
    lake.sql(f"CREATE TABLE lake.{quoted_text}.{quoted_text} AS SELECT 7 AS {quoted_text}")
    assert lake.sql(f"SELECT {quoted_text} FROM lake.{quoted_text}.{quoted_text}") == [(7,)]
    assert lake.catalog.list_tables((name,)) == [(name, name)]
