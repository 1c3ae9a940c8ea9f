"""The statements about views, beside Spark's in-memory catalog of views and its session catalog."""

from __future__ import annotations

import pyspark
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.errors.exceptions.captured import UnsupportedOperationException
from tests.spark.conftest import Place
from tests.spark.sessions import another_session
from tests.spark.sql.reference import outcome
from tests.spark.versions import evolving_insert

pytestmark = pytest.mark.adapter


def refused(place, statement):
    with pytest.raises(PySparkException) as error:
        place.sql(statement)
    return error.value.getCondition()


@pytest.fixture
def places(lake, memory_views):
    """The catalog and Spark's own one of views, each with a namespace, a table and a view."""
    for place in (lake, memory_views):
        place.sql("CREATE NAMESPACE lake.a")
        place.sql("CREATE TABLE lake.a.t (id INT, s STRING)")
        place.sql("CREATE VIEW lake.a.v AS SELECT * FROM lake.a.t")
    return lake, memory_views


@pytest.fixture
def session_catalog(spark):
    """Spark's session catalog, whose `a` is there for one test."""
    place = Place(spark, "spark_catalog")
    place.sql("DROP NAMESPACE IF EXISTS lake.a CASCADE")
    place.sql("CREATE NAMESPACE lake.a")
    yield place
    place.sql("DROP NAMESPACE lake.a CASCADE")


# Each on what the ones before it made. Where both refuse, they do by the same condition.
STATEMENTS = [
    "CREATE VIEW lake.a.v AS SELECT 1 AS x",
    "CREATE VIEW IF NOT EXISTS lake.a.v AS SELECT 1 AS x",
    "CREATE OR REPLACE VIEW IF NOT EXISTS lake.a.v AS SELECT 1 AS x",
    "CREATE VIEW lake.a.t AS SELECT 1 AS x",
    "CREATE OR REPLACE VIEW lake.a.t AS SELECT 1 AS x",
    "CREATE VIEW IF NOT EXISTS lake.a.t AS SELECT 1 AS x",
    "CREATE VIEW lake.a.bad AS SELECT nope FROM lake.a.t",
    "CREATE VIEW lake.a.bad (a, b) AS SELECT 1 AS x",
    "CREATE VIEW lake.a.bad (a) AS SELECT 1 AS x, 2 AS y",
    "CREATE VIEW lake.a.bad AS SELECT 1 AS x, 2 AS x",
    "CREATE VIEW lake.a.bad (a, a) AS SELECT 1 AS x, 2 AS y",
    "CREATE VIEW lake.a.bad AS SELECT 1 + 1",
    "CREATE TEMPORARY VIEW lake.a.bad AS SELECT 1 AS x",
    "CREATE VIEW lake.a.c (n COMMENT 'number', m) COMMENT 'noted' TBLPROPERTIES ('k' = 'v', 'l' = '2')"
    " WITH SCHEMA TYPE EVOLUTION AS SELECT id, s FROM lake.a.t",
    "DESCRIBE TABLE lake.a.c",
    "DESCRIBE TABLE EXTENDED lake.a.c",
    "DESCRIBE TABLE lake.a.c n",
    "SHOW CREATE TABLE lake.a.c",
    "SHOW COLUMNS IN lake.a.c",
    "SHOW TBLPROPERTIES lake.a.c",
    "SHOW TBLPROPERTIES lake.a.c ('k')",
    "SHOW TBLPROPERTIES lake.a.c ('nope')",
    "SHOW VIEWS IN lake.a",
    "SHOW VIEWS IN lake.a LIKE 'c*|nope'",
    "SHOW TABLES IN lake.a",
    "SHOW TABLES IN lake.a LIKE 'c|v'",
    "SHOW PARTITIONS lake.a.c",
    "ALTER VIEW lake.a.c SET TBLPROPERTIES ('k' = 'w', 'new' = '3')",
    "SHOW TBLPROPERTIES lake.a.c",
    "ALTER VIEW lake.a.c UNSET TBLPROPERTIES ('new')",
    "ALTER VIEW lake.a.c UNSET TBLPROPERTIES IF EXISTS ('nope')",
    "SHOW TBLPROPERTIES lake.a.c",
    "ALTER VIEW lake.a.c WITH SCHEMA BINDING",
    "SHOW CREATE TABLE lake.a.c",
    "ALTER VIEW lake.a.c AS SELECT id + 1 AS plus FROM lake.a.t",
    "DESCRIBE TABLE EXTENDED lake.a.c",
    "ALTER VIEW lake.a.c AS SELECT 1 + 1",
    "ALTER VIEW lake.a.nope SET TBLPROPERTIES ('k' = 'w')",
    "ALTER VIEW lake.a.nope AS SELECT 1 AS x",
    "ALTER VIEW lake.a.nope WITH SCHEMA EVOLUTION",
    "ALTER VIEW lake.a.nope RENAME TO a.x",
    "ALTER VIEW lake.a.t SET TBLPROPERTIES ('k' = 'w')",
    "ALTER VIEW lake.a.t UNSET TBLPROPERTIES ('k')",
    "ALTER VIEW lake.a.t AS SELECT 1 AS x",
    "ALTER VIEW lake.a.t WITH SCHEMA EVOLUTION",
    "ALTER VIEW lake.a.t RENAME TO a.x",
    "ALTER TABLE lake.a.c SET TBLPROPERTIES ('k' = 'w')",
    "ALTER TABLE lake.a.c ADD COLUMN z INT",
    "ALTER TABLE lake.a.c DROP COLUMN plus",
    "COMMENT ON TABLE lake.a.c IS 'x'",
    "DROP TABLE lake.a.v",
    "DROP TABLE IF EXISTS lake.a.v",
    "DROP VIEW lake.a.t",
    "DROP VIEW IF EXISTS lake.a.t",
    "DROP VIEW lake.a.nope",
    "DROP VIEW IF EXISTS lake.a.nope",
    "DROP VIEW lake.nope.v",
    "INSERT INTO lake.a.v VALUES (1, 'a')",
    "INSERT OVERWRITE lake.a.v VALUES (1, 'a')",
    "DELETE FROM lake.a.v WHERE id = 1",
    "UPDATE lake.a.v SET id = 1",
    "MERGE INTO lake.a.v USING (SELECT 1 AS id) s ON v.id = s.id WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE lake.a.v",
    "SELECT * FROM lake.a.v VERSION AS OF 1",
    "SELECT * FROM lake.a.v TIMESTAMP AS OF '2020-01-01'",
    "CREATE TABLE lake.a.v (id INT)",
    "CREATE TABLE IF NOT EXISTS lake.a.v (id INT)",
    "CREATE TABLE lake.a.v AS SELECT 1 AS id",
    "CREATE OR REPLACE TABLE lake.a.v (id INT)",
    "REPLACE TABLE lake.a.v (id INT)",
    "CREATE OR REPLACE TABLE lake.a.v AS SELECT 1 AS id",
    "DROP NAMESPACE lake.a",
    "CREATE VIEW lake.a.`quo.ted` (`a b`, `c``d`) AS SELECT 1 AS x, 2 AS y",
    "SELECT * FROM lake.a.`quo.ted`",
    "SHOW CREATE TABLE lake.a.`quo.ted`",
    "DROP VIEW lake.a.`quo.ted`",
    "DROP VIEW lake.a.v",
    "SHOW VIEWS IN lake.a",
]


def result(place, statement):
    """What comes of a statement, without the words in which catalogs name a relation."""
    came = outcome(place, statement)
    return came.columns, came.rows, came.condition


def test_statements_do_and_show_what_those_of_sparks_own_catalog_do(places):
    lake, memory = places
    both = [(statement, result(lake, statement), result(memory, statement)) for statement in STATEMENTS]
    assert [(statement, ours, theirs) for statement, ours, theirs in both if ours != theirs] == []


def test_what_is_refused_changes_nothing(places):
    lake, _ = places
    entries_before = lake.catalog.audit(namespace="a")
    for statement in (
        "CREATE VIEW lake.a.v AS SELECT 1 AS x",
        "CREATE OR REPLACE VIEW lake.a.t AS SELECT 1 AS x",
        "ALTER VIEW lake.a.v AS SELECT * FROM lake.a.v",
        "ALTER VIEW lake.a.v SET TBLPROPERTIES ('lakelog.isolation' = 'serializable')",
        "DROP TABLE lake.a.v",
        "INSERT INTO lake.a.v VALUES (1, 'a')",
        "CREATE OR REPLACE TABLE lake.a.v AS SELECT 1 AS id",
    ):
        with pytest.raises(AnalysisException):
            lake.sql(statement)
    assert list(lake.catalog.audit(namespace="a")) == list(entries_before)


def test_a_view_is_the_same_for_another_session_and_for_python(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE TABLE lake.a.t AS SELECT 1 AS id, 'x' AS s")
    lake.sql(
        "CREATE VIEW lake.a.v (n COMMENT 'number', m) COMMENT 'noted' TBLPROPERTIES ('k' = 'v') "
        "AS SELECT * FROM lake.a.t"
    )
    other_session = another_session(lake)
    assert other_session.sql("SELECT m, n FROM lake.a.v") == [("x", 1)]
    assert other_session.sql("SHOW VIEWS IN lake.a") == [("a", "v", False)]
    view = lake.catalog.load_view("a.v")
    assert view.text == f"SELECT * FROM {lake.name}.a.t"
    assert [(column.name, column.type, column.comment) for column in view.columns] == [
        ("n", "integer", "number"),
        ("m", "string", None),
    ]
    assert view.query_columns == ("id", "s")
    assert view.properties["k"] == "v" and view.properties["comment"] == "noted"
    other_session.sql("ALTER VIEW lake.a.v AS SELECT id * 2 AS twice FROM lake.a.t")
    assert lake.sql("SELECT * FROM lake.a.v") == [(2,)]
    lake.sql("ALTER VIEW lake.a.v RENAME TO w")
    assert refused(other_session, "SELECT * FROM lake.a.v") == "TABLE_OR_VIEW_NOT_FOUND"
    assert other_session.sql("SELECT * FROM lake.a.w") == [(2,)]
    other_session.sql("DROP VIEW lake.a.w")
    assert lake.catalog.list_views("a") == []
    assert lake.sql("SHOW VIEWS IN lake.a") == []


def test_what_show_create_shows_creates_the_same_view(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE TABLE lake.a.t (id INT, s STRING)")
    for mode in ("BINDING", "COMPENSATION", "TYPE EVOLUTION", "EVOLUTION"):
        columns = "(`a b` COMMENT 'it''s', `c.d`)" if mode != "EVOLUTION" else ""
        lake.sql(
            f"CREATE VIEW lake.a.`v w` {columns} COMMENT 'noted' TBLPROPERTIES ('k' = 'it''s') WITH SCHEMA {mode}"
            " AS SELECT * FROM lake.a.t WHERE s LIKE 'x%'"
        )
        view_before = lake.catalog.load_view(("a", "v w"))
        ((shown,),) = lake.sql("SHOW CREATE TABLE lake.a.`v w`")
        lake.sql("DROP VIEW lake.a.`v w`")
        lake.sql(shown)
        view_after = lake.catalog.load_view(("a", "v w"))
        # The columns that are shown are names that were chosen, which nothing evolves: as in the session catalog.
        assert view_after.schema_mode == ("TYPE EVOLUTION" if mode == "EVOLUTION" else mode)
        assert (view_after.text, view_after.columns) == (view_before.text, view_before.columns)
        assert view_after.query_columns == (view_before.query_columns or ("id", "s"))
        assert view_after.properties == view_before.properties
        lake.sql("DROP VIEW lake.a.`v w`")


def test_renames_move_a_view_within_a_namespace_and_across(lake):
    for name in ("a", "b"):
        lake.sql(f"CREATE NAMESPACE lake.{name}")
    lake.sql("CREATE NAMESPACE lake.b.deep")
    lake.sql("CREATE TABLE lake.a.t (id INT)")
    lake.sql("CREATE VIEW lake.a.v AS SELECT 1 AS x")
    for old, new, current_text in (
        ("a.v", "w", "a.w"),
        ("a.w", "b.w", "b.w"),
        ("b.w", "b.deep.`w.x`", "b.deep.`w.x`"),
        ("b.deep.`w.x`", "lake.a.v", "a.v"),
    ):
        lake.sql(f"ALTER VIEW lake.{old} RENAME TO {new}")
        assert another_session(lake).sql(f"SELECT * FROM lake.{current_text}") == [(1,)]
        assert refused(lake, f"SELECT * FROM lake.{old}") == "TABLE_OR_VIEW_NOT_FOUND"
    lake.sql("CREATE VIEW lake.b.v AS SELECT 2 AS x")
    for target, condition, text in (
        ("a.t", "VIEW_ALREADY_EXISTS", "a.t"),
        ("b.v", "VIEW_ALREADY_EXISTS", "b.v"),
        ("nope.v", "SCHEMA_NOT_FOUND", "`nope`"),
    ):
        came = outcome(lake, f"ALTER VIEW lake.a.v RENAME TO {target}")
        assert came.condition == condition
        assert [value for _, value in came.parameters if value.endswith(text)]
    came = outcome(lake, "ALTER TABLE lake.a.t RENAME TO b.v")
    assert (came.condition, dict(came.parameters)["relationName"]) == (
        "TABLE_OR_VIEW_ALREADY_EXISTS",
        "`lake`.`b`.`v`",
    )
    came = outcome(lake, "ALTER TABLE lake.a.t RENAME TO nope.t")
    assert (came.condition, dict(came.parameters)["schemaName"]) == ("SCHEMA_NOT_FOUND", "`lake`.`nope`")
    assert another_session(lake).sql("SELECT * FROM lake.a.v") == [(1,)]


CYCLES = [
    "ALTER VIEW lake.a.v AS SELECT * FROM lake.a.v",
    "ALTER VIEW lake.a.v AS SELECT * FROM lake.a.w",
    "ALTER VIEW lake.a.v AS SELECT (SELECT max(id) FROM lake.a.w) AS id",
    "ALTER VIEW lake.a.v AS WITH q AS (SELECT * FROM lake.a.w) SELECT * FROM q",
    "CREATE OR REPLACE VIEW lake.a.v AS SELECT * FROM lake.a.v",
    "CREATE OR REPLACE VIEW lake.a.v AS SELECT * FROM lake.a.w",
    "CREATE OR REPLACE VIEW lake.a.v AS SELECT 1 AS id WHERE EXISTS (SELECT * FROM lake.a.w)",
]


@pytest.mark.parametrize("statement", CYCLES)
def test_a_view_cannot_be_made_of_itself(lake, session_catalog, statement):
    for place in (lake, session_catalog):
        if place is lake:
            place.sql("CREATE NAMESPACE lake.a")
        elif pyspark.__version__ < "4.3" and statement == CYCLES[2]:
            continue  # Spark 4.2 overlooks it
        place.sql("CREATE VIEW lake.a.v AS SELECT 1 AS id")
        place.sql("CREATE VIEW lake.a.w AS SELECT * FROM lake.a.v")
        assert refused(place, statement) == "RECURSIVE_VIEW"
    assert lake.sql("SELECT * FROM lake.a.w") == [(1,)]


# What a SELECT from the view gives after its table became (id BIGINT, s STRING, extra INT), and then (id BIGINT).
BINDINGS = {
    "BINDING": ("CANNOT_UP_CAST_DATATYPE", "INCOMPATIBLE_VIEW_SCHEMA_CHANGE"),
    "COMPENSATION": ([("id", "int"), ("s", "string")], "INCOMPATIBLE_VIEW_SCHEMA_CHANGE"),
    "TYPE EVOLUTION": ([("id", "bigint"), ("s", "string")], "INCOMPATIBLE_VIEW_SCHEMA_CHANGE"),
    "EVOLUTION": ([("id", "bigint"), ("s", "string"), ("extra", "int")], [("id", "bigint")]),
}


@pytest.mark.parametrize("mode", BINDINGS)
def test_a_view_follows_its_table_as_far_as_its_binding_says(lake, session_catalog, mode):
    lake.sql("CREATE NAMESPACE lake.a")
    for place in (lake, session_catalog):
        place.sql("CREATE TABLE lake.a.t (id INT, s STRING)")
        place.sql(f"CREATE VIEW lake.a.v WITH SCHEMA {mode} AS SELECT * FROM lake.a.t")
        for columns, expected in zip(
            ("id BIGINT, s STRING, extra INT", "id BIGINT"), BINDINGS[mode], strict=True
        ):
            place.sql("DROP TABLE lake.a.t")
            place.sql(f"CREATE TABLE lake.a.t ({columns})")
            if isinstance(expected, str):
                assert refused(place, "SELECT * FROM lake.a.v") == expected
            else:
                assert place.frame("SELECT * FROM lake.a.v").dtypes == expected


def test_a_view_reads_what_its_table_has_now(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE TABLE lake.a.t AS SELECT 1 AS id")
    lake.sql("CREATE VIEW lake.a.v AS SELECT * FROM lake.a.t")
    lake.sql("INSERT INTO lake.a.t VALUES (2)")
    lake.sql("ALTER TABLE lake.a.t ADD COLUMN more INT FIRST")
    assert lake.sorted("SELECT * FROM lake.a.v") == [(1,), (2,)]
    lake.sql("ALTER TABLE lake.a.t RENAME COLUMN id TO other")
    assert refused(lake, "SELECT * FROM lake.a.v") == "INCOMPATIBLE_VIEW_SCHEMA_CHANGE"
    lake.sql("ALTER TABLE lake.a.t RENAME COLUMN other TO id")
    assert lake.sorted("SELECT * FROM lake.a.v") == [(1,), (2,)]
    lake.sql("DROP TABLE lake.a.t")
    assert refused(lake, "SELECT * FROM lake.a.v") == "TABLE_OR_VIEW_NOT_FOUND"
    assert lake.sql("SHOW VIEWS IN lake.a") == [("a", "v", False)]
    lake.sql("DROP VIEW lake.a.v")


def test_a_view_means_the_names_of_the_catalog_and_namespace_of_its_creation(lake, make_lake):
    for name in ("a", "a.deep", "b"):
        lake.sql(f"CREATE NAMESPACE lake.{name}")
        lake.sql(f"CREATE TABLE lake.{name}.t AS SELECT '{name}' AS place")
    session = another_session(lake)
    try:
        session.sql(f"USE {lake.name}.a.deep")
        session.sql("CREATE VIEW v AS SELECT * FROM t")
        session.sql("CREATE VIEW lake.b.v AS SELECT * FROM v")
    finally:
        session.sql("USE spark_catalog.default")
    other_session = another_session(lake)
    other_session.spark.conf.set("spark.sql.defaultCatalog", lake.name)
    other_session.sql(f"USE {lake.name}.b")
    assert other_session.sql("SELECT * FROM t") == [("b",)]
    assert other_session.sql("SELECT * FROM v") == [("a.deep",)]
    assert other_session.sql("SELECT * FROM a.deep.v") == [("a.deep",)]
    assert lake.sql("SELECT * FROM lake.a.deep.v") == [("a.deep",)]
    assert lake.sql("SHOW VIEWS IN lake.a.deep") == [("a.deep", "v", False)]
    described = {row[0]: row[1] for row in lake.sql("DESCRIBE EXTENDED lake.a.deep.v")}
    assert described["View Current Catalog"] == lake.name
    assert described["View Current Namespace"] == "a.deep"


def test_a_view_is_understood_with_the_settings_of_its_creation(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    session = another_session(lake)
    session.spark.conf.set("spark.sql.ansi.enabled", "false")
    session.sql("CREATE VIEW lake.a.v AS SELECT CAST('x' AS INT) AS n")
    other_session = another_session(lake)
    other_session.spark.conf.set("spark.sql.ansi.enabled", "true")
    assert other_session.sql("SELECT * FROM lake.a.v") == [(None,)]


def test_views_join_tables_of_other_catalogs_and_other_views(lake, make_lake, memory):
    other_lake = make_lake(lake.warehouse + "-2")
    memory.sql("CREATE TABLE lake.m AS SELECT 1 AS id, 'memory' AS place")
    for place in (lake, other_lake):
        place.sql("CREATE NAMESPACE lake.a")
    other_lake.sql("CREATE TABLE lake.a.t AS SELECT 1 AS id, 'other' AS place")
    lake.sql(
        f"CREATE VIEW lake.a.v AS SELECT * FROM {other_lake.name}.a.t UNION ALL SELECT * FROM {memory.name}.m"
    )
    lake.sql("CREATE VIEW lake.a.w AS SELECT place FROM lake.a.v WHERE id = 1")
    assert lake.sorted("SELECT * FROM lake.a.w") == [("memory",), ("other",)]


def test_nothing_temporary_is_part_of_a_view(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE VIEW lake.a.v AS SELECT 1 AS x")
    lake.sql("CREATE OR REPLACE TEMPORARY VIEW passing AS SELECT 1 AS x")
    lake.sql("CREATE OR REPLACE TEMPORARY FUNCTION passing_f() RETURNS INT RETURN 1")
    try:
        for query in (
            "SELECT * FROM passing",
            "SELECT (SELECT x FROM passing) AS x",
            "SELECT passing_f() AS x",
        ):
            for statement in (
                "CREATE VIEW lake.a.w AS",
                "CREATE OR REPLACE VIEW lake.a.v AS",
                "ALTER VIEW lake.a.v AS",
            ):
                assert refused(lake, f"{statement} {query}") == "INVALID_TEMP_OBJ_REFERENCE"
    finally:
        lake.sql("DROP VIEW passing")
        lake.sql("DROP TEMPORARY FUNCTION passing_f")
    assert lake.sql("SHOW VIEWS IN lake.a") == [("a", "v", False)]


def test_a_view_of_every_type_and_of_nothing_is_kept_as_it_is(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    query = (
        "SELECT CAST(1.5 AS DECIMAL(10, 2)) AS d, DATE'2020-01-01' AS day, array(1, NULL) AS a, map('k', 1) AS m,"
        " named_struct('x', 1, 'y', named_struct('z', 'w')) AS s, CAST('c' AS CHAR(3)) AS c, X'00' AS b,"
        " INTERVAL '1' DAY AS i, TIMESTAMP_NTZ'2020-01-01 00:00:00' AS ntz, CAST(NULL AS VOID) AS v"
    )
    lake.sql(f"CREATE VIEW lake.a.v AS {query}")
    other_session = another_session(lake)
    assert (
        other_session.frame("SELECT * FROM lake.a.v").schema.simpleString()
        == lake.frame(query).schema.simpleString()
    )
    assert other_session.sql("SELECT * FROM lake.a.v") == lake.sql(query)


def test_texts_of_stated_lengths_are_in_a_view_what_they_are_in_its_table(lake, session_catalog):
    lake.sql("CREATE NAMESPACE lake.a")
    looks = (
        "SELECT *, typeof(c) FROM lake.a.v WHERE c = 'b' AND c IN ('b', 'c') AND v = 'x'",
        "SELECT count(*) FROM lake.a.v JOIN lake.a.t ON t.c = v.c AND t.s.n = v.s.n",
        "DESCRIBE lake.a.v",
        "DESCRIBE lake.a.v c",
        "DESCRIBE lake.a.v s",
    )
    for place in (lake, session_catalog):
        place.sql("CREATE TABLE lake.a.t (c CHAR(3), v VARCHAR(4), s STRUCT<n: CHAR(2)>)")
        place.sql("INSERT INTO lake.a.t VALUES ('b', 'x', named_struct('n', 'y'))")
        place.sql("CREATE VIEW lake.a.v AS SELECT * FROM lake.a.t")
    rows = [lake.sql(look) for look in looks]
    assert rows[0] == [("b  ", "x", ("y ",), "string")] and rows[1] == [(1,)]
    lake.sql("ALTER VIEW lake.a.v SET TBLPROPERTIES ('k' = 'v')")
    assert rows == [lake.sql(look) for look in looks] == [session_catalog.sql(look) for look in looks]
    lake.sql("CREATE TABLE lake.a.u LIKE lake.a.v")
    lake.sql("CREATE TABLE lake.a.w AS SELECT * FROM lake.a.v")
    assert rows[2] == lake.sql("DESCRIBE lake.a.u") == lake.sql("DESCRIBE lake.a.w")
    insert = "INTO lake.a.t BY NAME SELECT *, 1 AS more FROM lake.a.v"
    for statement in evolving_insert(insert, "ALTER TABLE lake.a.t ADD COLUMN more INT"):
        lake.sql(statement)
    assert lake.sorted("SELECT * FROM lake.a.t") == [("b  ", "x", ("y ",), 1), ("b  ", "x", ("y ",), None)]


def test_tables_are_made_of_views(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE VIEW lake.a.v (n COMMENT 'number') AS SELECT 1 AS id")
    lake.sql("CREATE TABLE lake.a.t AS SELECT * FROM lake.a.v")
    lake.sql("CREATE TABLE lake.a.u LIKE lake.a.v")
    lake.sql("INSERT INTO lake.a.t SELECT n + 1 FROM lake.a.v")
    assert lake.sorted("SELECT n FROM lake.a.t") == [(1,), (2,)]
    assert lake.sql("DESCRIBE lake.a.u") == [("n", "int", "number")]
    assert lake.sql("SELECT * FROM lake.a.u") == []


def test_the_catalog_api_shows_views(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE TABLE lake.a.t (id INT)")
    lake.sql("CREATE VIEW lake.a.v COMMENT 'noted' AS SELECT 1 AS id")
    api = lake.spark.catalog
    assert {(each.name, each.tableType) for each in api.listTables(f"{lake.name}.a")} == {
        ("t", "MANAGED"),
        ("v", "VIEW"),
    }
    assert api.tableExists(f"{lake.name}.a.v") and not api.tableExists(f"{lake.name}.a.w")
    found = api.getTable(f"{lake.name}.a.v")
    assert (found.catalog, found.namespace, found.name, found.tableType) == (lake.name, ["a"], "v", "VIEW")
    assert [each.name for each in api.listColumns(f"{lake.name}.a.v")] == ["id"]
    assert [tuple(row) for row in lake.spark.table(f"{lake.name}.a.v").collect()] == [(1,)]
    with pytest.raises(AnalysisException):
        lake.spark.range(1).writeTo(f"{lake.name}.a.v").append()
    with pytest.raises(AnalysisException):
        lake.spark.range(1).write.saveAsTable(f"{lake.name}.a.v")
    with pytest.raises(AnalysisException):
        lake.spark.range(1).write.insertInto(f"{lake.name}.a.v")


def test_a_cached_view_is_read_again_when_it_is_another_one(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE TABLE lake.a.t AS SELECT 1 AS id")
    lake.sql("CREATE VIEW lake.a.v AS SELECT id FROM lake.a.t")
    lake.sql("CACHE TABLE lake.a.v")
    assert lake.spark.catalog.isCached(f"{lake.name}.a.v")
    lake.sql("INSERT INTO lake.a.t VALUES (2)")
    assert lake.sorted("SELECT * FROM lake.a.v") == [(1,), (2,)]
    lake.sql("ALTER VIEW lake.a.v RENAME TO a.w")
    assert lake.sorted("SELECT * FROM lake.a.w") == [(1,), (2,)]
    lake.sql("CREATE OR REPLACE VIEW lake.a.w AS SELECT id + 10 AS id FROM lake.a.t")
    assert lake.sorted("SELECT * FROM lake.a.w") == [(11,), (12,)]
    lake.sql("CACHE TABLE lake.a.w")
    lake.sql("ALTER VIEW lake.a.w AS SELECT id + 20 AS id FROM lake.a.t")
    assert lake.sorted("SELECT * FROM lake.a.w") == [(21,), (22,)]
    lake.sql("DROP VIEW lake.a.w")
    assert refused(lake, "SELECT * FROM lake.a.w") == "TABLE_OR_VIEW_NOT_FOUND"


def test_properties_under_lakelogs_name_are_refused(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    with pytest.raises(AnalysisException, match=r"lakelog\.isolation is not known"):
        lake.sql("CREATE VIEW lake.a.v TBLPROPERTIES ('lakelog.isolation' = 'snapshot') AS SELECT 1 AS x")
    assert lake.catalog.list_views("a") == []


def test_a_view_has_no_place_and_none_in_the_namespace_of_procedures(lake, tmp_path):
    with pytest.raises(AnalysisException, match="cannot be created at a path"):
        lake.sql(f"CREATE VIEW lake.`{tmp_path}/v` AS SELECT 1 AS x")
    with pytest.raises(AnalysisException, match="choose another name"):
        lake.sql("CREATE VIEW lake.system.v AS SELECT 1 AS x")
    assert lake.sql("SHOW VIEWS IN lake.system") == []


def test_a_view_needs_a_namespace_as_spark_cannot_read_it_without(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE VIEW lake.a.v AS SELECT 1 AS x")
    for statement in ("CREATE VIEW lake.v AS SELECT 1 AS x", f"ALTER VIEW lake.a.v RENAME TO {lake.name}.v"):
        with pytest.raises(UnsupportedOperationException, match="outside of a namespace"):
            lake.sql(statement)
    assert lake.catalog.list_views() == []
    assert lake.sql("SELECT * FROM lake.a.v") == [(1,)]


@pytest.mark.parametrize("mode", ["TYPE EVOLUTION", "EVOLUTION"])
def test_reading_a_view_that_evolves_changes_no_catalog(lake, session_catalog, mode):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE TABLE lake.a.t AS SELECT 1 AS id")
    lake.sql(f"CREATE VIEW lake.a.v WITH SCHEMA {mode} AS SELECT * FROM lake.a.t")
    session_catalog.sql("CREATE VIEW lake.a.v AS SELECT 'session' AS place")
    lake.sql("ALTER TABLE lake.a.t ALTER COLUMN id TYPE BIGINT")
    lake.sql("ALTER TABLE lake.a.t ADD COLUMN more INT")
    view_before = lake.catalog.load_view("a.v")
    more = [("more", "int")] if mode == "EVOLUTION" else []
    assert lake.frame("SELECT * FROM lake.a.v").dtypes == [("id", "bigint"), *more]
    assert lake.sql(
        "SELECT (SELECT max(id) FROM lake.a.v), count(*) FROM lake.a.v WHERE id IN (SELECT id FROM lake.a.v)"
    ) == [(1, 1)]
    lake.sql("CREATE VIEW lake.a.w AS SELECT id FROM lake.a.v")
    lake.sql("CREATE TABLE lake.a.u AS SELECT id FROM lake.a.w")
    assert [
        tuple(row) for row in lake.spark.table(f"{lake.name}.a.v").filter("id = 1").select("id").collect()
    ] == [(1,)]
    assert lake.catalog.load_view("a.v") == view_before
    assert session_catalog.sql("SELECT * FROM lake.a.v") == [("session",)]
    assert session_catalog.sql("DESCRIBE lake.a.v") == [("place", "string", None)]
