"""lakelog's tables in Spark's session catalog, beside tables of other formats, views and functions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException, UnsupportedOperationException
from pyspark.sql.types import IntegerType, StructField, StructType
from tests.spark.session_catalog import Shared, shared_database
from tests.spark.sql.reference import outcome
from tests.spark.versions import SPARK_4_3, evolving_insert

pytestmark = pytest.mark.adapter


@pytest.fixture
def shared(spark, python, tmp_path) -> Iterator[Shared]:
    with shared_database(spark, tmp_path, python) as database:
        yield database


def fails(shared: Shared, statement: str, condition: str) -> None:
    with pytest.raises(PySparkException) as error:
        shared.sql(statement)
    assert error.value.getCondition() == condition, str(error.value)


# ---- lakelog's tables


def test_a_table_is_there_for_every_session_for_the_named_catalog_and_for_python(shared):
    shared.sql("CREATE TABLE t (id BIGINT, k STRING) USING lakelog PARTITIONED BY (bucket(2, id))")
    shared.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    shared.sql("INSERT INTO lake.t VALUES (3, 'c')")
    rows = [(1, "a"), (2, "b"), (3, "c")]
    for name in ("t", "lake.t", f"spark_catalog.{shared.database}.t"):
        assert shared.sorted(f"SELECT * FROM {name}") == rows
    session = shared.spark
    assert sorted(map(tuple, session.table(f"lake.{shared.database}.t").collect())) == rows
    assert shared.again().sorted("SELECT * FROM lake.t") == rows
    assert shared.catalog.load_table((shared.database, "t")).row_count == 3
    session.sql(f"INSERT INTO lake.{shared.database}.t VALUES (4, 'd')")
    assert len(shared.sql("SELECT * FROM t")) == 4
    assert shared.sql("SELECT id FROM t VERSION AS OF 1") == []
    assert shared.sql("SELECT id FROM t CHANGES FROM VERSION 4") == [(4,)]
    assert [row[0] for row in shared.sql("DESCRIBE t")][:2] == ["id", "k"]


def test_what_is_shown_of_a_table_makes_it_again(shared):
    shared.sql(
        "CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY, s STRUCT<x: VARCHAR(3)>) USING lakelog"
    )
    shared.sql("ALTER TABLE t ALTER COLUMN s.x TYPE STRING")
    table_before = shared.catalog.load_table((shared.database, "t"))
    [(shown,)] = shared.sql("SHOW CREATE TABLE t")
    shared.sql("DROP TABLE t")
    shared.sql(shown)
    table_after = shared.catalog.load_table((shared.database, "t"))
    assert table_after.schema.find(["id"]).identity is not None
    assert (table_after.schema, table_after.provider) == (table_before.schema, table_before.provider)


def test_every_statement_about_a_table_reaches_lakelog(shared):
    for statement in (
        "CREATE TABLE t USING lakelog AS SELECT 1L AS id, 'a' AS k",
        "ALTER TABLE t ADD COLUMN c INT DEFAULT 3",
        "ALTER TABLE t ALTER COLUMN id SET NOT NULL",
        "ALTER TABLE t ADD CONSTRAINT positive CHECK (id > 0)",
        "ALTER TABLE t ADD PARTITION FIELD k",
        "ALTER TABLE t SET TBLPROPERTIES ('p' = 'v')",
        "COMMENT ON TABLE t IS 'about t'",
        "INSERT INTO t VALUES (2, 'b', 4)",
        *evolving_insert(
            "INTO t SELECT 3L AS id, 'c' AS k, 5 AS c, true AS more", "ALTER TABLE t ADD COLUMN more BOOLEAN"
        ),
        "ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS",
        "DELETE FROM t WHERE k = 'b'",
        "ALTER TABLE t RENAME TO u",
        "REFRESH TABLE u",
    ):
        shared.sql(statement)
    assert shared.sorted("SELECT * FROM u") == [(1, "a", 3, None), (3, "c", 5, True)]
    fails(shared, "INSERT INTO u VALUES (-1, 'x', 1, NULL)", "CHECK_CONSTRAINT_VIOLATION")
    table = shared.catalog.load_table((shared.database, "u"))
    assert (table.comment, table.properties["p"], len(table.constraints)) == ("about t", "v", 1)
    shared.sql(f"CALL spark_catalog.system.rollback_to_version('{shared.database}.u', 1)")
    assert shared.sql("SELECT * FROM u") == [(1, "a")]
    assert shared.sql("SELECT count(*) > 0 FROM spark_catalog.system.audit") == [(True,)]
    shared.sql("CREATE OR REPLACE TABLE u USING lakelog AS SELECT id + 1 AS next FROM u")
    assert shared.sql("SELECT next FROM u") == [(2,)]
    shared.sql("TRUNCATE TABLE u")
    shared.sql("DROP TABLE u")
    fails(shared, "SELECT * FROM u", "TABLE_OR_VIEW_NOT_FOUND")
    assert shared.sql(f"CALL spark_catalog.system.undrop_table('{shared.database}.u')") != []
    assert shared.sql("SELECT * FROM u") == []
    shared.sql("DROP TABLE u PURGE")


def test_a_transaction_holds_lakelogs_tables(shared):
    shared.sql("CREATE TABLE t USING lakelog AS SELECT 1 AS id")
    shared.sql("CALL spark_catalog.system.begin_transaction()")
    shared.sql("INSERT INTO t VALUES (2)")
    shared.sql("CREATE TABLE u USING lakelog AS SELECT * FROM t")
    shared.spark.sql("SELECT 3 AS id").write.mode("append").saveAsTable("t")
    assert shared.sorted("SELECT * FROM t") == [(1,), (2,), (3,)]
    assert shared.again().sql("SELECT * FROM lake.t") == [(1,)]
    with pytest.raises(UnsupportedOperationException, match="not part of a transaction"):
        shared.sql(f"DROP NAMESPACE {shared.database} CASCADE")
    shared.sql("CALL spark_catalog.system.rollback_transaction()")
    assert shared.sql("SELECT * FROM t") == [(1,)]
    fails(shared, "SELECT * FROM u", "TABLE_OR_VIEW_NOT_FOUND")


def test_without_using_a_table_is_what_spark_makes_of_it(shared):
    shared.sql("CREATE TABLE p AS SELECT 1 AS id")
    shared.spark.conf.set("spark.sql.sources.default", "lakelog")
    shared.sql("CREATE TABLE t AS SELECT 2 AS id")
    shared.sql("CREATE TABLE u (id INT)")
    shared.spark.sql("SELECT 3 AS id").write.mode("append").saveAsTable("v")
    shared.spark.sql("SELECT 4 AS id").write.mode("overwrite").saveAsTable("v")
    shared.spark.sql("SELECT 5 AS id").writeTo("w").create()
    assert shared.catalog.list_tables(shared.database) == [(shared.database, name) for name in "tuvw"]
    assert shared.sql("SELECT * FROM v") == [(4,)]
    assert shared.without_lakelog().sql("SELECT * FROM lake.p") == [(1,)]


# ---- the session catalog's own

BESIDE = [
    "CREATE TABLE lake.p (id INT, k STRING) USING parquet PARTITIONED BY (k)",
    "INSERT INTO lake.p VALUES (1, 'a'), (2, 'b')",
    "INSERT OVERWRITE lake.p PARTITION (k = 'b') VALUES (3)",
    "SELECT * FROM lake.p",
    "ALTER TABLE lake.p ADD COLUMN c INT",
    "ALTER TABLE lake.p ADD PARTITION (k = 'z')",
    "SHOW PARTITIONS lake.p",
    "ALTER TABLE lake.p RENAME COLUMN c TO d",
    "ALTER TABLE lake.p DROP COLUMN c",
    "ALTER TABLE lake.p SET TBLPROPERTIES ('a' = 'b')",
    "SHOW TBLPROPERTIES lake.p ('a')",
    "SHOW COLUMNS IN lake.p",
    "DESCRIBE lake.p",
    "DELETE FROM lake.p WHERE id = 1",
    "UPDATE lake.p SET id = 1",
    "SELECT * FROM lake.p VERSION AS OF 1",
    "ALTER TABLE lake.p ADD CONSTRAINT c CHECK (id > 0)",
    "ANALYZE TABLE lake.p COMPUTE STATISTICS",
    "REFRESH TABLE lake.p",
    "MSCK REPAIR TABLE lake.p",
    "TRUNCATE TABLE lake.p",
    "CREATE TABLE lake.p (id INT) USING parquet",
    "CREATE TABLE IF NOT EXISTS lake.p (id INT) USING parquet",
    "CREATE OR REPLACE TABLE lake.p (id INT) USING parquet",
    "REPLACE TABLE lake.p AS SELECT 1 AS id",
    "CREATE TABLE lake.j USING json AS SELECT 1 AS id",
    "CREATE TABLE lake.c USING csv AS SELECT 1 AS id",
    "CREATE TABLE lake.b (id INT) USING parquet CLUSTERED BY (id) INTO 2 BUCKETS",
    "CREATE TABLE lake.x (id INT CHECK (id > 0)) USING parquet",
    "CREATE TABLE lake.x (id INT PRIMARY KEY) USING parquet",
    "CREATE TABLE lake.x (id INT, g INT GENERATED ALWAYS AS (id + 1)) USING parquet",
    "CREATE TABLE lake.x (id INT GENERATED ALWAYS AS IDENTITY) USING parquet",
    "CREATE TABLE lake.df (id INT, k INT DEFAULT 5) USING parquet",
    "INSERT INTO lake.df (id) VALUES (1)",
    "SELECT * FROM lake.df",
    "CREATE TABLE lake.l LIKE lake.p",
    "CREATE TABLE lake.l LIKE lake.p",
    "CREATE TABLE IF NOT EXISTS lake.l LIKE lake.p",
    "ALTER TABLE lake.l RENAME TO lake.j",
    "ALTER TABLE lake.l RENAME TO lake.l2",
    "CREATE VIEW lake.v AS SELECT 1 AS id",
    "CREATE VIEW lake.v AS SELECT 1 AS id",
    "CREATE VIEW IF NOT EXISTS lake.v AS SELECT 2 AS id",
    "CREATE OR REPLACE VIEW lake.v AS SELECT 3 AS id",
    "CREATE OR REPLACE VIEW lake.p AS SELECT 3 AS id",
    "CREATE VIEW lake.p AS SELECT 3 AS id",
    "SELECT * FROM lake.v",
    "INSERT INTO lake.v VALUES (1)",
    "ALTER VIEW lake.v AS SELECT 4 AS id",
    "ALTER VIEW lake.v RENAME TO lake.p",
    "ALTER VIEW lake.v RENAME TO lake.v2",
    "DESCRIBE lake.v2",
    "SHOW VIEWS IN lake",
    "DROP VIEW lake.p",
    "CREATE FUNCTION lake.f(x INT) RETURNS INT RETURN x + 1",
    "SELECT lake.f(1) AS x",
    "CREATE FUNCTION lake.g() RETURNS TABLE(a INT) RETURN SELECT 1",
    "SELECT * FROM lake.g()",
    "SHOW USER FUNCTIONS IN lake",
    "DROP FUNCTION lake.f",
    "DROP FUNCTION lake.f",
    "SHOW TABLES IN lake",
    "SHOW TABLES IN lake LIKE 'j|p'",
    "SHOW TABLES IN nowhere",
    "SELECT * FROM nowhere.t",
    "SELECT * FROM lake.nothing",
    "INSERT INTO lake.nothing VALUES (1)",
    "DROP TABLE lake.nothing",
    "DROP TABLE IF EXISTS lake.nothing",
    "DROP VIEW lake.nothing",
    "DROP TABLE nowhere.t",
    "CREATE TABLE nowhere.t (id INT) USING parquet",
    "CREATE NAMESPACE lake",
    "CREATE NAMESPACE IF NOT EXISTS lake",
    "DROP NAMESPACE nowhere",
    "DROP NAMESPACE lake",
    "DROP NAMESPACE default",
    "COMMENT ON NAMESPACE lake IS 'about'",
    "ALTER NAMESPACE lake SET PROPERTIES ('a' = 'b')",
    "CREATE TABLE a.b.c (id INT) USING parquet",
    "DROP TABLE lake.v2",
    "DROP TABLE lake.p",
    "DROP NAMESPACE lake CASCADE",
    "SHOW TABLES IN lake",
]


def test_what_is_not_lakelogs_is_as_without_it(shared):
    """The same statements in a session whose spark_catalog is Spark's own, on a database of its own."""
    reference = shared.reference()
    for session in (reference.spark, shared.spark):
        session.sql("USE default")
    differing = []
    for statement in BESIDE:
        ours, theirs = outcome(shared.here, statement), outcome(reference, statement)
        if ours != theirs:
            differing.append((statement, ours, theirs))
    assert differing == []
    assert ("default",) in [tuple(row) for row in shared.spark.sql("SHOW NAMESPACES").collect()]
    assert not Path(shared.warehouse).exists()


def test_both_kinds_are_listed_together(shared):
    shared.sql("CREATE TABLE b USING lakelog AS SELECT 1 AS id")
    shared.sql("CREATE TABLE a USING parquet AS SELECT 1 AS id")
    shared.sql("CREATE TABLE c USING json AS SELECT 1 AS id")
    shared.sql("CREATE VIEW v AS SELECT b.id FROM a JOIN b USING (id)")
    shared.sql("CREATE TEMPORARY VIEW temporary AS SELECT 1 AS id")
    own_database = shared.database
    tables = [
        (own_database, "a", False),
        (own_database, "b", False),
        (own_database, "c", False),
        (own_database, "v", False),
    ]
    assert shared.sql("SHOW TABLES") == [*tables, ("", "temporary", True)]
    assert shared.sql("SHOW VIEWS") == [(own_database, "v", False), ("", "temporary", True)]
    assert shared.sql("SHOW TABLES LIKE 'b*'") == [(own_database, "b", False)]
    extended = {row[1]: row[3] for row in shared.sql(f"SHOW TABLE EXTENDED IN {own_database} LIKE '*'")}
    assert set(extended) == {"a", "b", "c", "v", "temporary"}
    assert [
        "Provider: " + kind in extended[name]
        for name, kind in zip("abc", ("parquet", "lakelog", "json"), strict=True)
    ]
    assert shared.sql("SELECT * FROM v") == [(1,)]
    catalog = shared.spark.catalog
    listed = {table.name: (table.tableType, table.isTemporary) for table in catalog.listTables()}
    assert listed == {
        "a": ("MANAGED", False), "b": ("MANAGED", False), "c": ("MANAGED", False), "v": ("VIEW", False),
        "temporary": ("TEMPORARY", True),
    }  # fmt: skip
    assert catalog.currentDatabase() == own_database
    assert own_database in [database.name for database in catalog.listDatabases()]


def test_a_namespace_that_neither_has_is_not_listed(shared):
    for statement in ("SHOW TABLES IN none", "SHOW TABLE EXTENDED IN none LIKE '*'", "SHOW VIEWS IN none"):
        fails(shared, statement, "SCHEMA_NOT_FOUND")


def test_the_catalog_api_knows_tables_of_both_kinds(shared):
    catalog = shared.spark.catalog
    catalog.createTable("t", source="lakelog", schema=StructType([StructField("id", IntegerType())]))
    catalog.createTable("p", source="parquet", schema=StructType([StructField("id", IntegerType())]))
    for name in ("t", "p"):
        assert catalog.tableExists(name)
        assert catalog.tableExists(f"{shared.database}.{name}")
        assert catalog.getTable(name).namespace == [shared.database]
        assert [(column.name, column.dataType) for column in catalog.listColumns(name)] == [("id", "int")]
        catalog.cacheTable(name)
        assert catalog.isCached(name)
        shared.sql(f"INSERT INTO {name} VALUES (1)")
        assert shared.sql(f"SELECT * FROM {name}") == [(1,)]
        catalog.uncacheTable(name)
        catalog.refreshTable(name)
    assert not catalog.tableExists("nothing")
    assert shared.catalog.list_tables(shared.database) == [(shared.database, "t")]


# ---- names


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("CREATE TABLE t (id INT) USING parquet", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE TABLE t (id INT)", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE TABLE T USING json AS SELECT 1 AS id", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE TABLE t LIKE p", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE TABLE t LIKE p USING lakelog", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE OR REPLACE TABLE t USING parquet AS SELECT 1 AS id", "UNSUPPORTED_FEATURE.TABLE_OPERATION"),
        ("CREATE VIEW t AS SELECT 1 AS id", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE OR REPLACE VIEW t AS SELECT 1 AS id", "EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE"),
        ("ALTER TABLE p RENAME TO t", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("ALTER VIEW v RENAME TO t", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE TABLE p (id INT) USING lakelog", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE TABLE p USING lakelog AS SELECT 1 AS id", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE OR REPLACE TABLE p USING lakelog AS SELECT 1 AS id", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE OR REPLACE TABLE p (id INT) USING lakelog", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("REPLACE TABLE p (id INT) USING lakelog", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE TABLE v (id INT) USING lakelog", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE TABLE p LIKE t", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("ALTER TABLE t RENAME TO p", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("ALTER TABLE t RENAME TO v", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("DROP VIEW t", "TABLE_OR_VIEW_NOT_FOUND"),
    ],
)
def test_a_name_of_the_one_is_refused_in_the_other(shared, statement, condition):
    shared.sql("CREATE TABLE t USING lakelog AS SELECT 1 AS id")
    shared.sql("CREATE TABLE p USING parquet AS SELECT 2 AS id")
    shared.sql("CREATE VIEW v AS SELECT 3 AS id")
    fails(shared, statement, condition)
    assert shared.sql("SELECT t.id, p.id, v.id FROM t, p, v") == [(1, 2, 3)]
    plain = shared.without_lakelog()
    assert plain.sorted(f"SHOW TABLES IN {shared.database}") == [
        (shared.database, "p", False),
        (shared.database, "v", False),
    ]


def test_if_not_exists_is_content_with_what_the_other_has(shared):
    shared.sql("CREATE TABLE t USING lakelog AS SELECT 1 AS id")
    shared.sql("CREATE TABLE p USING parquet AS SELECT 2 AS id")
    for statement in (
        "CREATE TABLE IF NOT EXISTS t (id INT) USING parquet",
        "CREATE TABLE IF NOT EXISTS t USING parquet AS SELECT 5 AS id",
        "CREATE TABLE IF NOT EXISTS t LIKE p",
        "CREATE VIEW IF NOT EXISTS t AS SELECT 5 AS id",
        "CREATE TABLE IF NOT EXISTS p (id INT) USING lakelog",
        "CREATE TABLE IF NOT EXISTS p USING lakelog AS SELECT 5 AS id",
        "CREATE TABLE IF NOT EXISTS p LIKE t",
    ):
        shared.sql(statement)
    assert shared.sql("SELECT t.id, p.id FROM t, p") == [(1, 2)]
    assert [row[1] for row in shared.without_lakelog().sql(f"SHOW TABLES IN {shared.database}")] == ["p"]


def test_a_name_that_both_have_is_refused_wherever_it_is_used(shared):
    shared.sql("CREATE TABLE t USING lakelog AS SELECT 1 AS id")
    shared.without_lakelog().sql("CREATE TABLE lake.t USING parquet AS SELECT 2 AS id")
    for statement in (
        "SELECT * FROM t", "INSERT INTO t VALUES (3)", "DROP TABLE t", "ALTER TABLE t RENAME TO u", "TRUNCATE TABLE t",
        "CREATE TABLE t USING lakelog AS SELECT 1 AS id", "CREATE OR REPLACE TABLE t USING lakelog AS SELECT 1 AS id",
        "ALTER TABLE t ADD COLUMN c INT", "SELECT * FROM t VERSION AS OF 1",
    ):  # fmt: skip
        with pytest.raises(AnalysisException, match="and a table of the session catalog"):
            shared.sql(statement)
    assert shared.sql("SHOW TABLES") == [(shared.database, "t", False)]
    assert shared.spark.sql(f"SELECT * FROM lake.{shared.database}.t").collect()[0][0] == 1
    shared.spark.sql(f"ALTER TABLE lake.{shared.database}.t RENAME TO {shared.database}.ours")
    assert shared.sql("SELECT ours.id, t.id FROM ours, t") == [(1, 2)]


def test_names_are_in_small_letters_unless_the_session_minds_case(shared):
    shared.sql("CREATE TABLE Orders (Id INT) USING lakelog")
    shared.sql("INSERT INTO ORDERS VALUES (1)")
    assert shared.sql("SELECT iD FROM oRDERS") == [(1,)]
    assert shared.catalog.list_tables(shared.database) == [(shared.database, "orders")]
    shared.catalog.rename_table((shared.database, "orders"), (shared.database, "Orders"))
    assert shared.sql("SELECT id FROM Orders") == [(1,)]
    fails(shared, "SELECT id FROM orders", "TABLE_OR_VIEW_NOT_FOUND")
    fails(shared, "CREATE TABLE Orders (id INT) USING parquet", "TABLE_OR_VIEW_ALREADY_EXISTS")
    shared.sql("CREATE TABLE orders USING lakelog AS SELECT 2 AS id")
    assert (shared.sql("SELECT id FROM Orders"), shared.sql("SELECT id FROM orders")) == ([(1,)], [(2,)])
    minding = shared.again()
    minding.spark.conf.set("spark.sql.caseSensitive", "true")
    minding.sql("CREATE TABLE lake.Mine USING lakelog AS SELECT 1 AS id")
    fails(minding, "SELECT * FROM lake.mine", "TABLE_OR_VIEW_NOT_FOUND")


# ---- copies


def test_tables_are_copied_by_like_between_the_kinds(shared):
    shared.sql(
        "CREATE TABLE t (id BIGINT NOT NULL, k CHAR(3)) USING lakelog PARTITIONED BY (k) TBLPROPERTIES ('a' = 'b')"
    )
    shared.sql(
        "CREATE TABLE p (id BIGINT, k VARCHAR(3)) USING parquet PARTITIONED BY (k) COMMENT 'about p' "
        "TBLPROPERTIES ('c' = 'd')"
    )
    shared.sql("CREATE VIEW v AS SELECT 1 AS id")
    shared.sql("CREATE TABLE t_of_t LIKE t")
    shared.sql("CREATE TABLE t_of_p LIKE p USING lakelog TBLPROPERTIES ('e' = 'f')")
    shared.sql("CREATE TABLE t_of_v LIKE v USING lakelog")
    shared.sql("CREATE TABLE p_of_t LIKE t USING parquet")
    shared.sql("CREATE TABLE p_of_p LIKE p")
    tables = {name for _, name in shared.catalog.list_tables(shared.database)}
    assert tables == {"t", "t_of_t", "t_of_p", "t_of_v"}
    copy = shared.catalog.load_table((shared.database, "t_of_p"))
    assert (copy.properties["e"], "c" in copy.properties, copy.comment) == ("f", False, "about p")
    assert shared.sql("SHOW PARTITIONS t_of_p") == []
    assert [row[:2] for row in shared.sql("DESCRIBE t_of_p")][:2] == [("id", "bigint"), ("k", "varchar(3)")]
    assert [row[:2] for row in shared.sql("DESCRIBE p_of_t")][:2] == [("id", "bigint"), ("k", "char(3)")]
    with pytest.raises(UnsupportedOperationException, match="USING"):
        shared.sql("CREATE TABLE h LIKE t STORED AS parquet")


# ---- DataFrames


@pytest.mark.parametrize("source", ["lakelog", None])
def test_save_as_table_and_insert_into_have_all_modes(shared, source):
    def writer(value: int, mode: str):
        new_mode = shared.spark.sql(f"SELECT {value} AS id").write.mode(mode)
        return new_mode.format(source) if source else new_mode

    shared.sql("CREATE TABLE t USING lakelog AS SELECT 1 AS id")
    writer(2, "append").saveAsTable("t")
    writer(3, "ignore").saveAsTable("t")
    writer(4, "append").insertInto("t")
    assert shared.sorted("SELECT * FROM t") == [(1,), (2,), (4,)]
    with pytest.raises(AnalysisException) as error:
        writer(5, "error").saveAsTable("t")
    assert error.value.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS"
    if source:
        writer(6, "overwrite").saveAsTable("t")
    else:
        with pytest.raises(AnalysisException, match=r'format\("lakelog"\)'):
            writer(6, "overwrite").saveAsTable("t")
        writer(6, "overwrite").insertInto("t")
    assert shared.again().sql("SELECT * FROM lake.t") == [(6,)]
    assert shared.catalog.load_table((shared.database, "t")).to_arrow()["id"].to_pylist() == [6]
    with pytest.raises(AnalysisException, match="json"):
        shared.spark.sql("SELECT 7 AS id").write.format("json").mode("append").saveAsTable("t")
    with pytest.raises((AnalysisException, UnsupportedOperationException)):
        writer(8, "append").option("fanout-enabled", "true").saveAsTable("t")
    assert shared.sql("SELECT * FROM t") == [(6,)]
    assert shared.without_lakelog().sql(f"SHOW TABLES IN {shared.database}") == []


def test_a_frame_makes_no_table_of_lakelogs_over_one_of_another_format(shared):
    shared.sql("CREATE TABLE p USING parquet AS SELECT 1 AS id")
    for mode in ("append", "overwrite", "error"):
        with pytest.raises(AnalysisException):
            shared.spark.sql("SELECT 2 AS id").write.format("lakelog").mode(mode).saveAsTable("p")
    shared.spark.sql("SELECT 2 AS id").write.format("lakelog").mode("append").insertInto("p")
    assert shared.sorted("SELECT * FROM p") == [(1,), (2,)]


def test_a_place_is_read_and_written_by_the_session_catalog(shared):
    place = str(shared.folder / "elsewhere")
    for mode in ("error", "append", "ignore", "overwrite", "append"):
        shared.spark.sql("SELECT 1 AS id").write.format("lakelog").mode(mode).save(place)
    assert shared.spark.read.format("lakelog").load(place).count() == 2
    assert shared.sql(f"SELECT * FROM lakelog.`{place}`") == [(1,), (1,)]
    shared.sql(f"INSERT INTO lakelog.`{place}` VALUES (2)")
    shared.sql(f"ALTER TABLE lakelog.`{place}` ADD COLUMN c INT")
    assert shared.sql(f"SELECT * FROM lakelog.`{place}` VERSION AS OF 1") == [(1,)]
    shared.spark.sql("SELECT 1 AS id, 'a' AS k").write.format("lakelog").partitionBy("k").save(place + "2")
    assert shared.spark.read.format("lakelog").load(place + "2").collect()[0][:] == (1, "a")
    shared.sql("CALL spark_catalog.system.begin_transaction()")
    shared.spark.sql("SELECT 5 AS id, 'b' AS k").write.format("lakelog").mode("append").save(place + "2")
    shared.sql("CALL spark_catalog.system.rollback_transaction()")
    assert shared.catalog.table_at(place + "2").row_count == 1
    assert not Path(shared.warehouse).exists()


# ---- namespaces


def test_a_namespace_of_lakelogs_alone_is_there_and_becomes_a_database_when_needed(shared):
    name = f"{shared.database}_reference"  # which the fixture drops
    shared.catalog.create_namespace(name)
    shared.spark.sql(f"CREATE TABLE lake.{name}.t AS SELECT 1 AS id")
    assert (name,) in shared.sql("SHOW NAMESPACES")
    assert shared.sql(f"SELECT * FROM {name}.t") == [(1,)]
    shared.sql(f"USE {name}")
    assert shared.sql("SELECT current_database(), t.id FROM t") == [(name, 1)]
    plain = shared.without_lakelog()
    assert (name,) not in plain.sql("SHOW NAMESPACES")
    shared.sql("CREATE TABLE p USING parquet AS SELECT 2 AS id")
    assert plain.sql(f"SELECT * FROM {name}.p") == [(2,)]
    assert shared.sql("SHOW TABLES") == [(name, "p", False), (name, "t", False)]
    fails(shared, f"CREATE NAMESPACE {name}", "SCHEMA_ALREADY_EXISTS")
    shared.sql(f"CREATE NAMESPACE IF NOT EXISTS {name}")


def test_a_namespace_is_dropped_with_all_that_both_have_in_it(shared):
    name = f"{shared.database}_reference"
    shared.sql(f"CREATE NAMESPACE {name} LOCATION '{shared.folder}/{name}'")
    assert not Path(shared.warehouse).exists()
    shared.sql(f"CREATE TABLE {name}.t USING lakelog AS SELECT 1 AS id")
    assert shared.catalog.list_namespaces() == [(name,)]
    fails(shared, f"DROP NAMESPACE {name}", "SCHEMA_NOT_EMPTY")
    shared.sql(f"CREATE TABLE {name}.p USING parquet AS SELECT 1 AS id")
    fails(shared, f"DROP NAMESPACE {name}", "SCHEMA_NOT_EMPTY")
    assert shared.sql(f"SELECT t.id FROM {name}.t JOIN {name}.p USING (id)") == [(1,)]
    shared.sql(f"DROP NAMESPACE {name} CASCADE")
    assert shared.catalog.list_namespaces() == []
    assert (name,) not in shared.sql("SHOW NAMESPACES")
    assert (name,) not in shared.without_lakelog().sql("SHOW NAMESPACES")
    fails(shared, f"DROP NAMESPACE {name}", "SCHEMA_NOT_FOUND")
    shared.sql("USE default")
    shared.sql(f"CALL spark_catalog.system.undrop_namespace('{name}')")
    assert shared.sql(f"SELECT * FROM {name}.t") == [(1,)]
    shared.sql(f"DROP NAMESPACE {name} CASCADE")


# ---- views and functions of the session catalog over lakelog's tables


def test_views_and_functions_of_the_session_catalog_read_lakelogs_tables(shared):
    shared.sql("CREATE TABLE t USING lakelog AS SELECT 1 AS id")
    shared.sql("CREATE VIEW v AS SELECT id + 1 AS next FROM t")
    shared.sql("CREATE TEMPORARY VIEW tv AS SELECT id + 2 AS later FROM t")
    shared.sql("CREATE GLOBAL TEMPORARY VIEW gv AS SELECT 1 AS one")
    shared.sql("CREATE FUNCTION f() RETURNS BIGINT RETURN (SELECT count(*) FROM t)")
    shared.sql("CREATE FUNCTION g() RETURNS TABLE(a INT) RETURN SELECT id FROM t")
    shared.sql("INSERT INTO t VALUES (2)")
    assert shared.sorted("SELECT * FROM v") == [(2,), (3,)]
    assert shared.sorted("SELECT * FROM tv") == [(3,), (4,)]
    assert shared.sql("SELECT f()") == [(2,)]
    assert shared.sorted("SELECT * FROM g()") == [(1,), (2,)]
    assert shared.sql("SELECT * FROM global_temp.gv") == [(1,)]
    shared.sql("CREATE TEMPORARY VIEW t AS SELECT 9 AS id")
    assert shared.sql("SELECT * FROM t") == [(9,)]
    assert len(shared.sql("SELECT * FROM lake.t")) == 2
    shared.sql("DROP VIEW t")
    shared.sql("DROP VIEW global_temp.gv")
    assert shared.again().sorted("SELECT * FROM lake.v") == [(2,), (3,)]
    assert shared.catalog.list_views(shared.database) == []


@pytest.mark.skipif(not SPARK_4_3, reason="metric views come with Spark 4.3")
def test_a_metric_view_takes_no_name_of_lakelogs(shared):
    shared.sql("CREATE TABLE t USING lakelog AS SELECT 1 AS id")
    body = (
        "version: 0.1\nsource: t\ndimensions:\n  - name: id\n    expr: id\n"
        "measures:\n  - name: c\n    expr: count(id)\n"
    )
    fails(shared, f"CREATE VIEW t WITH METRICS LANGUAGE YAML AS $$\n{body}$$", "TABLE_OR_VIEW_ALREADY_EXISTS")
    shared.sql(f"CREATE VIEW m WITH METRICS LANGUAGE YAML AS $$\n{body}$$")
    assert shared.sql("SELECT measure(c) FROM m GROUP BY id") == [(1,)]


# ---- settings


def test_it_is_for_spark_catalog_only_and_needs_a_warehouse(spark, tmp_path):
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.elsewhere", "org.apache.spark.sql.lakelog.LakeSessionCatalog")
    with pytest.raises(Exception, match="is for spark_catalog"):
        session.sql("SHOW NAMESPACES IN elsewhere")
    session.conf.set("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.lakelog.LakeSessionCatalog")
    with pytest.raises(Exception, match=r"spark\.sql\.catalog\.spark_catalog\.warehouse"):
        session.sql("SHOW NAMESPACES")


def test_the_tables_of_a_statement_are_of_one_moment_by_whichever_name(shared):
    """Python adds to both tables in one transaction whenever one of them has been planned."""
    shared.sql("CREATE TABLE t USING lakelog AS SELECT 1 AS id")
    shared.sql("CREATE TABLE u USING lakelog AS SELECT 1 AS id")
    frame = shared.spark.sql(
        f"SELECT count(*) FROM t UNION ALL SELECT count(*) FROM lake.{shared.database}.u"
    )
    with shared.catalog.transaction() as tx:
        for name in ("t", "u"):
            tx.load_table((shared.database, name)).append(pa.table({"id": pa.array([2], pa.int32())}))
    counts = [tuple(row) for row in frame.collect()]
    assert counts in ([(1,), (1,)], [(2,), (2,)])


def test_metadata_of_a_table_is_named_below_it(shared):
    shared.sql("CREATE TABLE t USING lakelog AS SELECT 1 AS id")
    ours = shared.sql("SELECT version FROM lake.t.history")
    assert ours == [
        tuple(row)
        for row in shared.spark.sql(f"SELECT version FROM lake.{shared.database}.t.history").collect()
    ]
    assert ours != []
