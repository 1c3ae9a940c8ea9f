"""What SHOW, DESCRIBE and spark.catalog show of tables, beside Spark's in-memory catalog."""

import pytest
from pyspark.errors import PySparkException
from tests.spark.sessions import another_session
from tests.spark.sql.reference import outcome

pytestmark = pytest.mark.adapter

TABLE = """CREATE TABLE lake.a.t (
    id BIGINT NOT NULL COMMENT 'key', at TIMESTAMP, name VARCHAR(5) DEFAULT 'x', ch CHAR(3), dec DECIMAL(10, 2),
    st STRUCT<a: INT COMMENT 'in', b: ARRAY<MAP<STRING, DATE>>>, v VARIANT)
    USING parquet OPTIONS ('o' = '1') PARTITIONED BY (name, days(at), bucket(4, id)) COMMENT 'of things'
    TBLPROPERTIES ('p' = 'q', 'password' = 's3cret')"""

SETUP = (
    "CREATE NAMESPACE lake.a",
    "CREATE NAMESPACE lake.a.b",
    TABLE,
    "CREATE TABLE lake.a.u (a INT, `b.c` STRING)",
    "CREATE TABLE lake.a.b.deep (a INT)",
    "CREATE TABLE lake.root (a INT)",
    "CREATE TABLE lake.a.parts (a INT, b STRING, c STRING NOT NULL COMMENT 'see') PARTITIONED BY (b, bucket(4, c))",
)

SAME = (
    "SHOW TABLES IN lake",
    "SHOW TABLES IN lake.a",
    "SHOW TABLES FROM lake.a LIKE 'u*|T'",
    "SHOW TABLES FROM lake.a LIKE 't%'",
    "SHOW TABLES IN lake.a 'none'",
    "SHOW TABLES IN lake.a.b",
    "SHOW TABLES IN lake.gone",
    "SHOW TABLE EXTENDED IN lake.a LIKE 'none'",
    "SHOW TABLE EXTENDED IN lake.gone LIKE '*'",
    "SHOW COLUMNS IN lake.a.t",
    "SHOW COLUMNS FROM lake.root",
    "SHOW COLUMNS IN t IN lake.a",
    "SHOW COLUMNS IN lake.a.gone",
    "SHOW TBLPROPERTIES lake.a.t",
    "SHOW TBLPROPERTIES lake.a.t ('p')",
    "SHOW TBLPROPERTIES lake.a.t ('gone')",
    "SHOW TBLPROPERTIES lake.a.u",
    "SHOW TBLPROPERTIES lake.a.gone",
    "SHOW CREATE TABLE lake.a.t",
    "SHOW CREATE TABLE lake.root",
    "SHOW CREATE TABLE lake.a.gone",
    "SHOW CREATE TABLE lake.a.t AS SERDE",
    "DESCRIBE lake.a.t",
    "DESCRIBE TABLE lake.root",
    "DESCRIBE TABLE lake.a.gone",
    "DESCRIBE TABLE lake.gone.t",
    "DESCRIBE lake.a.t id",
    "DESCRIBE EXTENDED lake.a.t id",
    "DESCRIBE lake.a.u `b.c`",
    "DESCRIBE lake.a.t gone",
    "DESCRIBE lake.a.t st.a",
    "DESCRIBE TABLE lake.a.t AS JSON",
    "DESCRIBE QUERY SELECT id, upper(name) AS n FROM lake.a.t",
    "DESCRIBE QUERY TABLE lake.a.t",
    "DESCRIBE QUERY SELECT gone FROM lake.a.t",
    "REFRESH TABLE lake.a.t",
    "REFRESH TABLE lake.a.gone",
)


@pytest.fixture
def places(lake, memory):
    for place in (lake, memory):
        for statement in SETUP:
            place.sql(statement)
    return lake, memory


# One session of both for all statements: none of them changes anything.
def test_statements_show_what_they_show_of_a_table_of_sparks_own(places):
    for statement in SAME:
        assert outcome(places[0], statement) == outcome(places[1], statement), statement
        assert outcome(another_session(places[0]), statement) == outcome(places[0], statement), statement


def without_metadata_columns(rows):
    start = rows.index(("# Metadata Columns", "", ""))
    end = rows.index(("", "", ""), start)
    return rows[:start] + rows[end + 1 :], rows[start:end]


def test_describe_extended_says_what_sparks_does_and_the_place(places):
    ours, theirs = (
        [row for row in place.sql("DESCRIBE TABLE EXTENDED lake.a.t") if row[0] not in ("Catalog", "Name")]
        for place in places
    )
    # Spark's in-memory tables have other metadata columns, and no place.
    (ours, own), (theirs, _) = without_metadata_columns(ours), without_metadata_columns(theirs)
    assert [row[:2] for row in own[1:]] == [
        ("_file", "string"),
        ("_pos", "bigint"),
        ("_row_id", "bigint"),
        ("_version", "bigint"),
    ]
    assert [row for row in ours if row not in theirs] == [
        ("Location", f"file:{places[0].catalog.load_table('a.t').location}", ""),
        ("Is_managed_location", "true", ""),
    ]
    assert [row for row in theirs if row not in ours] == []


def test_show_table_extended_says_what_sparks_does_and_the_place(places):
    def information(text):
        # Spark's in-memory tables of this kind manage no partitions; see test_partitions for one that does.
        own = ("Catalog", "Location", "Is_", "Partition")
        return [line for line in text.splitlines() if not line.startswith(own)]

    def shown(place):
        rows = place.sql("SHOW TABLE EXTENDED IN lake.a LIKE '*'")
        return sorted((*row[:3], information(row[3])) for row in rows)

    assert shown(places[0]) == shown(places[1])
    assert "Owner: " in places[0].sql("SHOW TABLE EXTENDED IN lake.a LIKE 't'")[0][3]


def test_describe_as_json_is_not_for_tables_of_catalogs_in_spark(places):
    for place in places:
        failed_outcome = outcome(place, "DESCRIBE TABLE EXTENDED lake.a.t AS JSON")
        assert failed_outcome.condition == "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"


def test_the_owner_of_a_table_is_the_user_that_created_it(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.sql("CREATE TABLE lake.u LIKE lake.t")
    user = lake.spark.sparkContext.sparkUser()
    for place in (lake, another_session(lake)):
        for name in "tu":
            shown = {row[0]: row[1] for row in place.sql(f"DESCRIBE TABLE EXTENDED lake.{name}")}
            assert shown["Owner"] == user
            assert "owner" not in dict(place.sql(f"SHOW TBLPROPERTIES lake.{name}"))
    lake.sql("ALTER TABLE lake.t SET TBLPROPERTIES ('k' = 'v')")
    assert lake.catalog.load_table("t").properties == {"owner": user, "k": "v"}


def test_show_create_table_makes_the_very_table(lake):
    lake.sql("CREATE NAMESPACE lake.`a b`")
    lake.sql("""CREATE TABLE lake.`a b`.`t.x` (
        b TINYINT, s SMALLINT, i INT NOT NULL, l BIGINT COMMENT 'it''s "quoted"', f FLOAT, d DOUBLE,
        dec DECIMAL(38, 10) DEFAULT 1.5, t BOOLEAN DEFAULT true, str STRING DEFAULT 'a''b', vc VARCHAR(7), ch CHAR(3),
        bin BINARY, dt DATE DEFAULT DATE'2020-02-29', ts TIMESTAMP DEFAULT TIMESTAMP'2020-01-01 00:00:00',
        ntz TIMESTAMP_NTZ, ym INTERVAL YEAR TO MONTH, ds INTERVAL DAY TO SECOND, v VARIANT,
        arr ARRAY<STRUCT<`x y`: INT COMMENT 'deep', m: MAP<STRING, ARRAY<DECIMAL(3, 1)>>>>,
        st STRUCT<a: INT NOT NULL, `b.c`: STRUCT<d: VARCHAR(4)>>, `odd ``name` INT, dated DATE)
        USING parquet OPTIONS ('Kept' = 'v', 'two' = '2')
        PARTITIONED BY (i, years(dt), months(dated), days(ntz), hours(ts), bucket(4, l), truncate(2, str), `odd ``name`)
        COMMENT 'all of ''it'''
        TBLPROPERTIES ('p' = 'q''r', 'with.dots' = '1', 'empty' = '')""")
    made = lake.sql("SHOW CREATE TABLE lake.`a b`.`t.x`")[0][0]
    table_before = lake.catalog.load_table(("a b", "t.x"))
    lake.sql("DROP TABLE lake.`a b`.`t.x`")
    lake.spark.sql(made)
    table_after = lake.catalog.load_table(("a b", "t.x"))
    assert lake.sql("SHOW CREATE TABLE lake.`a b`.`t.x`")[0][0] == made
    assert table_after.id != table_before.id
    assert (
        table_after.schema,
        table_after.spec,
        table_after.comment,
        table_after.provider,
        table_after.properties,
    ) == (
        table_before.schema,
        table_before.spec,
        table_before.comment,
        table_before.provider,
        table_before.properties,
    )


def test_show_create_table_of_a_table_at_a_place_of_its_own_names_the_place(lake, tmp_path):
    lake.sql(f"CREATE TABLE lake.t (a INT) LOCATION '{tmp_path}/own'")
    made = lake.sql("SHOW CREATE TABLE lake.t")[0][0]
    assert f"LOCATION 'file:{tmp_path}/own'" in made
    lake.sql("INSERT INTO lake.t VALUES (1)")
    lake.sql("DROP TABLE lake.t")
    lake.spark.sql(made)
    assert lake.catalog.load_table("t").location == f"{tmp_path}/own"


def test_the_catalog_interface_shows_tables_columns_and_namespaces(places):
    def shown(place):
        catalog = place.spark.catalog
        name = place.name
        found = [
            sorted(catalog.listTables(f"{name}.a")),
            catalog.listTables(f"{name}.a.b"),
            catalog.listTables(f"{name}.a", "u*"),
            catalog.listColumns(f"{name}.a.parts"),
            catalog.listColumns(f"{name}.root"),
            catalog.getTable(f"{name}.a.t"),
            catalog.getTable(f"{name}.root"),
            catalog.getTable(f"{name}.a.b.deep"),
            catalog.getDatabase(f"{name}.a"),
            catalog.getDatabase(f"{name}.a.b"),
            [
                catalog.tableExists(f"{name}.{table}")
                for table in ("a.t", "root", "a.b.deep", "a.gone", "gone.t")
            ],
            [catalog.databaseExists(f"{name}.{space}") for space in ("a", "a.b", "gone")],
            [each.name for each in catalog.listCatalogs(name)],
        ]
        return str(found).replace(name, "lake")

    assert shown(places[0]) == shown(places[1])


def test_the_catalog_interface_fails_as_it_does_for_sparks_own(places):
    for place in places:
        for method, name, condition in (
            ("listTables", "gone", "SCHEMA_NOT_FOUND"),
            ("listColumns", "gone", "TABLE_OR_VIEW_NOT_FOUND"),
            ("getTable", "gone", "TABLE_OR_VIEW_NOT_FOUND"),
            ("getDatabase", "gone", "SCHEMA_NOT_FOUND"),
            ("refreshTable", "gone", "TABLE_OR_VIEW_NOT_FOUND"),
            ("listColumns", "a.t", "UNSUPPORTED_PARTITION_TRANSFORM"),  # Spark knows no days(at) there
            ("recoverPartitions", "a.t", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"),
        ):
            with pytest.raises(PySparkException) as error:
                getattr(place.spark.catalog, method)(f"{place.name}.{name}")
            assert error.value.getCondition() == condition


def test_the_catalog_interface_creates_and_caches_tables(lake, tmp_path):
    catalog, name = lake.spark.catalog, lake.name
    schema = lake.spark.sql("SELECT 1 AS x, 'y' AS y").schema
    catalog.createTable(f"{name}.made", schema=schema, source="parquet", description="of it", k="v")
    catalog.createTable(f"{name}.placed", path=str(tmp_path / "own"), schema=schema)
    assert catalog.getTable(f"{name}.made").description == "of it"
    assert catalog.getTable(f"{name}.placed").tableType == "EXTERNAL"
    assert lake.catalog.load_table("made").properties["option.k"] == "v"
    catalog.cacheTable(f"{name}.made")
    assert catalog.isCached(f"{name}.made")
    lake.sql("INSERT INTO lake.made VALUES (1, 'a')")
    assert lake.sql("SELECT * FROM lake.made") == [(1, "a")]
    catalog.uncacheTable(f"{name}.made")
    assert not catalog.isCached(f"{name}.made")


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_plans_name_the_table_that_a_statement_writes_to(lake, mode):
    modes = ", ".join(
        f"'lakelog.write.{operation}.mode' = '{mode}'" for operation in ("update", "merge", "delete")
    )
    lake.sql(f"CREATE TABLE lake.t (a INT, b STRING) TBLPROPERTIES ({modes})")
    merge = "MERGE INTO lake.t USING (SELECT 1 AS a) s ON t.a = s.a WHEN MATCHED THEN UPDATE SET b = 'm'"
    for statement, words in (
        ("INSERT INTO lake.t VALUES (1, 'x')", "lakelog append to"),
        ("INSERT OVERWRITE lake.t VALUES (1, 'x')", "lakelog truncate to"),
        ("UPDATE lake.t SET b = 'u' WHERE a % 2 = 1", "lakelog"),
        ("DELETE FROM lake.t WHERE a % 2 = 1", "DeleteFromTable"),
        (merge, "lakelog"),
    ):
        [plan] = lake.sql(f"EXPLAIN {statement}")[0]
        assert any(words in line and f"{lake.name}.t" in line for line in plan.splitlines()), plan
    for statement in ("CREATE TABLE lake.u", "REPLACE TABLE lake.t", "CREATE OR REPLACE TABLE lake.u"):
        [plan] = lake.sql(f"EXPLAIN EXTENDED {statement} AS SELECT 1 AS a")[0]
        assert plan.count(f"LakeCatalog({lake.name}), {statement[-1]}") >= 3 and "LakeCatalog@" not in plan, (
            plan
        )
