"""Functions that are classes in a jar: of Spark's interface for catalogs, and of those that its own catalog takes."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, UnsupportedOperationException
from tests.spark.sessions import another_session

pytestmark = pytest.mark.adapter

CLASSES = {
    "plus": "Plus",
    "length": "Length",
    "longest": "Longest",
    "shout": "Shout",
    "product": "Product",
    "nothing": "Nothing",
    "needs_more": "NeedsMore",
}


@pytest.fixture
def lake(make_lake, classes_jar):
    lake = make_lake(stored_code="all")
    lake.sql("CREATE NAMESPACE lake.a")
    for name, found in CLASSES.items():
        lake.sql(f"CREATE FUNCTION lake.a.{name} AS 'lakelog.tests.{found}' USING JAR '{classes_jar}'")
    return lake


@pytest.mark.parametrize("own", [False, True], ids=["same session", "another session"])
def test_classes_of_a_jar_are_functions(lake, own):
    place = another_session(lake) if own else lake
    assert place.sql(
        "SELECT lake.a.plus(1, CAST(2 AS SMALLINT)), lake.a.length('four'), lake.a.shout('hey')"
    ) == [(3, 4, "HEY!")]
    rows = "VALUES ('a', 2L), ('ccc', 3L), ('bb', 7L) AS t(s, n)"
    assert place.sql(f"SELECT lake.a.longest(s), lake.a.product(n) FROM {rows}") == [("ccc", 42)]
    assert place.sql(f"SELECT lake.a.plus(n, n) FROM {rows} WHERE lake.a.length(s) > 1") == [(6,), (14,)]
    place.sql(f"CREATE TABLE lake.a.t AS SELECT lake.a.plus(n, 1) AS n FROM {rows}")
    place.sql("CREATE FUNCTION lake.a.wrapped(x BIGINT) RETURNS BIGINT RETURN lake.a.plus(x, 100)")
    assert place.sorted("SELECT lake.a.wrapped(n) FROM lake.a.t") == [(103,), (104,), (108,)]


def test_what_a_class_does_not_take_is_refused(lake):
    for call in (
        "lake.a.plus(1)",
        "lake.a.plus('x', array(1))",
        "lake.a.length(1)",
        "lake.a.nothing(1)",
        "lake.a.needs_more(1, 2)",
    ):
        with pytest.raises((AnalysisException, UnsupportedOperationException)) as error:
            lake.sql(f"SELECT {call}")
        assert "INTERNAL_ERROR" not in str(error.value), call
    with pytest.raises(AnalysisException) as error:
        lake.sql("SELECT * FROM lake.a.plus(1, 2)")
    assert error.value.getCondition() == "NOT_A_TABLE_FUNCTION"


def test_a_class_is_described_and_stored_with_its_jar(lake, classes_jar):
    assert lake.sql("DESCRIBE FUNCTION lake.a.plus")[:2] == [
        (f"Function: {lake.name}.a.plus",),
        ("Class: lakelog.tests.Plus",),
    ]
    stored_function = lake.catalog.load_function("a.plus")
    assert (stored_function.language, stored_function.body, stored_function.resources) == (
        "java",
        "lakelog.tests.Plus",
        (("jar", str(classes_jar)),),
    )


def test_a_jar_that_is_not_there_fails_the_call_only(lake):
    lake.sql("CREATE FUNCTION lake.a.lost AS 'lakelog.tests.Lost' USING JAR '/nowhere/lost.jar'")
    with pytest.raises(AnalysisException) as error:
        lake.sql("SELECT lake.a.lost(1)")
    assert error.value.getCondition() == "CANNOT_LOAD_FUNCTION_CLASS"
    assert lake.sql("DESCRIBE FUNCTION lake.a.lost")[1] == ("Class: lakelog.tests.Lost",)
    assert (f"{lake.name}.a.lost",) in lake.sql("SHOW USER FUNCTIONS IN lake.a")
    lake.sql("DROP FUNCTION lake.a.lost")


def test_a_class_runs_only_in_a_session_that_trusts_the_warehouse(lake, make_lake, classes_jar):
    """Neither called, nor explained, nor by a view, a function of SQL, a default or a CHECK."""
    lake.sql("CREATE FUNCTION lake.a.one() RETURNS INT RETURN 1")
    lake.sql("USE lake.a")
    lake.sql("CREATE FUNCTION wrapped(x BIGINT) RETURNS BIGINT RETURN plus(x, 100)")
    lake.sql("CREATE VIEW lake.a.v AS SELECT plus(1, 2) AS n")
    lake.sql("CREATE VIEW lake.a.safe AS SELECT one() AS n")
    lake.sql("CREATE VIEW lake.a.method AS SELECT reflect('java.lang.Math', 'abs', -1) AS n")
    careful = make_lake()  # as sessions are by default
    for statement in (
        "SELECT lake.a.plus(1, 2)",
        "SELECT lake.a.wrapped(1)",
        "SELECT * FROM lake.a.v",
        "SELECT * FROM VALUES (1) AS t(n) WHERE lake.a.plus(n, 1) > 0",
        "SELECT n FROM lake.a.method",
        "CREATE TABLE lake.a.u (id BIGINT DEFAULT lake.a.plus(1, 2))",
    ):
        with pytest.raises(
            UnsupportedOperationException, match=r"stored-code is sql.*written by .*stored-code to all"
        ):
            careful.sql(statement)
    # Spark plans what it explains, and shows why it cannot.
    for query in ("SELECT lake.a.plus(1, 2)", "SELECT * FROM lake.a.v"):
        assert "stored-code is sql" in str(careful.sql(f"EXPLAIN {query}"))
    assert careful.sql("SELECT n FROM lake.a.safe") == [(1,)]
    assert careful.sql("DESCRIBE FUNCTION lake.a.plus")[1] == ("Class: lakelog.tests.Plus",)
    careful.sql("CREATE OR REPLACE FUNCTION lake.a.plus AS 'lakelog.tests.Plus'")


def test_without_stored_code_a_session_uses_none_of_any_kind(make_lake):
    lake = make_lake(stored_code="none")
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE FUNCTION lake.a.one() RETURNS INT RETURN 1")
    lake.sql("CREATE FUNCTION lake.a.rows() RETURNS TABLE (n INT) RETURN SELECT 1")
    lake.sql("CREATE VIEW lake.a.v AS SELECT 1 AS n")
    for statement in ("SELECT lake.a.one()", "SELECT * FROM lake.a.v", "SELECT * FROM lake.a.rows()"):
        with pytest.raises(UnsupportedOperationException, match=r"stored-code is none.*to sql or all"):
            lake.sql(statement)
    lake.sql("CREATE TABLE lake.a.c (id BIGINT, day DATE DEFAULT current_date(), CHECK (id > 0))")
    assert lake.sql("SELECT * FROM lake.a.c") == []
    for statement in (
        "INSERT INTO lake.a.c (id) VALUES (1)",
        "UPDATE lake.a.c SET id = 2",
        "MERGE INTO lake.a.c USING (SELECT 1L AS id) s ON c.id = s.id WHEN MATCHED THEN UPDATE SET id = 3",
    ):
        with pytest.raises(UnsupportedOperationException, match=r"has the CHECK .*\(stored-code is none\)"):
            lake.sql(statement)
    lake.sql("DELETE FROM lake.a.c WHERE id = 1")
    lake.sql("DROP VIEW lake.a.v")
