"""Tables as definitions: create, describe, alter, rename, drop."""

import pytest
from pyspark.errors import AnalysisException
from tests.spark.sessions import another_session

from lakelog.catalog.core.schema.types import TypedValue

pytestmark = pytest.mark.adapter


def described(lake, table="lake.t"):
    return {row[0]: row[1] for row in lake.sql(f"DESCRIBE TABLE EXTENDED {table}") if row[0]}


def test_a_table_is_described_as_it_was_created(lake):
    lake.sql(
        "CREATE TABLE lake.t (id BIGINT NOT NULL COMMENT 'key', at TIMESTAMP, name VARCHAR(5) DEFAULT "
        "'x') USING parquet "
        "PARTITIONED BY (days(at), bucket(4, id), truncate(2, name), name) COMMENT 'of things' "
        "TBLPROPERTIES ('p' = 'q')"
    )
    text = lake.sql("SHOW CREATE TABLE lake.t")[0][0]
    assert "id BIGINT NOT NULL COMMENT 'key'" in text
    assert "USING parquet" in text and "COMMENT 'of things'" in text and "'p' = 'q'" in text
    assert "PARTITIONED BY (days(at), bucket(4, id), truncate(2, name), name)" in text
    assert "LOCATION" not in text and "lakelog" not in text
    shown = described(lake)
    assert shown["Provider"] == "parquet"
    assert shown["name"] == "varchar(5)"
    assert shown["Type"] == "MANAGED"
    assert lake.sql("SHOW TBLPROPERTIES lake.t") == [("p", "q")]


def test_show_create_table_makes_the_same_table_again(lake):
    lake.sql("CREATE TABLE lake.t (a INT, b STRING DEFAULT 'x', c DATE) PARTITIONED BY (months(c), a)")
    text = lake.sql("SHOW CREATE TABLE lake.t")[0][0]
    lake.spark.sql(text.replace(f"{lake.name}.t", f"{lake.name}.u"))
    assert lake.sql("SHOW CREATE TABLE lake.u")[0][0].replace(".u ", ".t ") == text


@pytest.mark.parametrize("provider", ["lakelog", "delta", "Parquet", "whatever"])
def test_any_provider_is_kept_word_for_word(lake, provider):
    lake.sql(f"CREATE TABLE lake.t (a INT) USING {provider}")
    assert described(lake)["Provider"] == provider


def test_a_schema_shows_no_metadata_of_lakelogs(lake):
    lake.sql("CREATE TABLE lake.t (a INT, s STRUCT<b: ARRAY<STRUCT<c: INT>>>)")
    assert "lakelog" not in lake.frame("SELECT * FROM lake.t").schema.json()
    lake.sql("CREATE TABLE lake.u AS SELECT * FROM lake.t")
    assert "lakelog" not in lake.frame("SELECT * FROM lake.u").schema.json()


def test_all_types_that_parquet_holds_make_the_round_trip(lake):
    select = (
        "SELECT CAST(1 AS TINYINT) AS b, CAST(2 AS SMALLINT) AS s, 3 AS i, 4L AS l, CAST(1.5 AS FLOAT) "
        "AS f, 2.5D AS d, "
        "1.23BD AS small, CAST(12345678901234567890.5 AS DECIMAL(38, 3)) AS large, true AS t, 'text' AS "
        "str, X'00FF' AS bin, "
        "DATE'2020-02-29' AS dt, TIMESTAMP'1969-12-31 23:59:59.999999' AS ts, TIMESTAMP_NTZ'2020-01-01 "
        "00:00:00.5' AS ntz, "
        "array(1, NULL) AS arr, map('k', array('v')) AS m, named_struct('x', 1, 'y', named_struct('z', "
        "'deep')) AS st, "
        "INTERVAL '1-2' YEAR TO MONTH AS ym, INTERVAL '1 02:03:04.5' DAY TO SECOND AS ds, NULL AS nothing"
    ).replace("NULL AS nothing", "CAST(NULL AS INT) AS nothing")
    lake.sql(f"CREATE TABLE lake.t AS {select}")
    expected = [
        tuple(row)
        for row in lake.spark.sql(select.replace("ym,", "ym,")).selectExpr("* EXCEPT (ym)").collect()
    ]
    assert lake.sql("SELECT * EXCEPT (ym) FROM lake.t") == expected
    assert lake.sql("SELECT CAST(ym AS STRING) FROM lake.t") == [("INTERVAL '1-2' YEAR TO MONTH",)]


def test_variants_make_the_round_trip(lake):
    lake.sql("""CREATE TABLE lake.t AS SELECT parse_json('{"a": [1, "x"]}') AS v""")
    assert lake.sql("SELECT to_json(v), variant_get(v, '$.a[0]', 'int') FROM lake.t") == [
        ('{"a":[1,"x"]}', 1)
    ]


def test_a_list_of_changes_is_one_commit_and_old_rows_stay_readable(lake):
    lake.sql(
        "CREATE TABLE lake.t AS SELECT 1 AS id, 'a' AS name, named_struct('x', 1) AS st, "
        "array(named_struct('q', 5)) AS arr"
    )
    version_before = lake.catalog.load_table("t").version
    lake.sql("ALTER TABLE lake.t ADD COLUMNS (n INT DEFAULT 7 COMMENT 'new' AFTER id, `first` INT FIRST)")
    assert lake.catalog.load_table("t").version == version_before + 1
    lake.sql("ALTER TABLE lake.t RENAME COLUMN name TO label")
    lake.sql("ALTER TABLE lake.t ADD COLUMN name STRING")
    lake.sql("ALTER TABLE lake.t ADD COLUMN st.y STRING")
    lake.sql("ALTER TABLE lake.t RENAME COLUMN st.x TO xx")
    lake.sql("ALTER TABLE lake.t ADD COLUMN arr.element.w INT")
    lake.sql("ALTER TABLE lake.t ALTER COLUMN id TYPE BIGINT")
    assert lake.frame("SELECT * FROM lake.t").columns == ["first", "id", "n", "label", "st", "arr", "name"]
    assert lake.sql("SELECT id, n, label, name, st.xx, st.y, arr[0].q, arr[0].w FROM lake.t") == [
        (1, 7, "a", None, 1, None, 5, None)
    ]
    lake.sql("INSERT INTO lake.t (id, label) VALUES (5000000000, 'b')")
    assert lake.sorted("SELECT id, n, label FROM lake.t") == [(1, 7, "a"), (5000000000, 7, "b")]
    lake.sql("ALTER TABLE lake.t ALTER COLUMN n SET DEFAULT 8")
    lake.sql("INSERT INTO lake.t (id) VALUES (3)")
    assert lake.sorted("SELECT id, n FROM lake.t") == [(1, 7), (3, 8), (5000000000, 7)]
    lake.sql("ALTER TABLE lake.t DROP COLUMNS (label, n)")
    assert lake.frame("SELECT * FROM lake.t").columns == ["first", "id", "st", "arr", "name"]


def test_all_columns_are_replaced_at_once(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS a, 2 AS b")
    lake.sql("ALTER TABLE lake.t REPLACE COLUMNS (b STRING, c INT)")
    assert lake.sql("SELECT * FROM lake.t") == [(None, None)]


def test_a_cached_table_is_found_and_refreshed_by_a_write(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.sql("CACHE TABLE lake.t")
    assert "InMemory" in lake.sql("EXPLAIN SELECT * FROM lake.t")[0][0]
    lake.sql("INSERT INTO lake.t VALUES (2)")
    assert lake.sorted("SELECT * FROM lake.t") == [(1,), (2,)]
    lake.sql("UNCACHE TABLE lake.t")


def test_what_a_session_has_cached_is_for_its_own_catalog_alone(lake):
    """In another session one name and one location may lead to another endpoint, with its own rows of a version."""
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.sql("CACHE TABLE lake.t")
    other_session = another_session(lake)
    assert "InMemory" not in other_session.sql("EXPLAIN SELECT * FROM lake.t")[0][0]
    lake.sql("UNCACHE TABLE lake.t")


def test_names_without_a_catalog_are_found_after_use(lake):
    session = lake.spark.newSession()
    for key in ("", ".warehouse", ".python", ".fsync"):
        setting = f"spark.sql.catalog.{lake.name}{key}"
        session.conf.set(setting, lake.spark.conf.get(setting))
    lake.sql("CREATE NAMESPACE lake.a")
    session.sql(f"USE {lake.name}.a")
    session.sql("CREATE TABLE t AS SELECT 1 AS id")
    assert session.table("t").count() == 1
    assert lake.catalog.list_tables("a") == [("a", "t")]


def test_times_of_day_make_the_round_trip_where_spark_has_them(lake):
    lake.spark.conf.set("spark.sql.timeType.enabled", "true")
    try:
        lake.sql("CREATE TABLE lake.t (a INT, t TIME) PARTITIONED BY (t)")
        lake.sql("INSERT INTO lake.t VALUES (1, TIME'12:00:00'), (2, TIME'13:00:00.123456'), (3, NULL)")
        assert lake.sql("SELECT a FROM lake.t WHERE t > TIME'12:30:00'") == [(2,)]
        assert lake.sql("SELECT a FROM lake.t WHERE t = TIME'12:00:00'") == [(1,)]
    finally:
        lake.spark.conf.unset("spark.sql.timeType.enabled")


def test_comments_and_properties_are_changed(lake):
    lake.sql("CREATE TABLE lake.t (a INT) COMMENT 'one' TBLPROPERTIES ('k' = 'v', 'l' = 'w')")
    lake.sql("ALTER TABLE lake.t SET TBLPROPERTIES ('k' = 'v2', 'm' = 'x')")
    lake.sql("ALTER TABLE lake.t UNSET TBLPROPERTIES ('l')")
    lake.sql("COMMENT ON TABLE lake.t IS 'two'")
    lake.sql("ALTER TABLE lake.t ALTER COLUMN a COMMENT 'the a'")
    assert lake.sorted("SHOW TBLPROPERTIES lake.t") == [("k", "v2"), ("m", "x")]
    assert described(lake)["Comment"] == "two"
    assert lake.sql("DESCRIBE TABLE lake.t") == [("a", "int", "the a")]


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("ALTER TABLE lake.t ALTER COLUMN b TYPE STRING", "b"),
        ("ALTER TABLE lake.t DROP COLUMN gone", "gone"),
        ("ALTER TABLE lake.t ADD COLUMN A INT", "a"),
        ("ALTER TABLE lake.t SET TBLPROPERTIES ('lakelog.nonsense' = '1')", "lakelog.nonsense"),
        ("CREATE TABLE lake.u (a INT) TBLPROPERTIES ('lakelog.nonsense' = '1')", "lakelog.nonsense"),
        ("CREATE TABLE lake.`` (a INT)", ""),
    ],
)
def test_changes_that_cannot_be_are_refused_in_one_clear_error(lake, statement, text):
    lake.sql("CREATE TABLE lake.t (a INT, b BIGINT)")
    version_before = lake.catalog.load_table("t").version
    with pytest.raises(AnalysisException) as error:
        lake.sql(statement)
    assert text.lower() in str(error.value).lower()
    assert "Traceback" not in str(error.value)
    assert lake.catalog.load_table("t").version == version_before


def test_rename_takes_any_spelling_and_other_namespaces(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE NAMESPACE lake.b")
    lake.sql("CREATE TABLE lake.a.t AS SELECT 1 AS id")
    lake.sql("ALTER TABLE lake.a.t RENAME TO a.u")
    lake.sql("ALTER TABLE lake.a.u RENAME TO lake.a.v")
    assert lake.sql("SELECT * FROM lake.a.v") == [(1,)]
    lake.sql("ALTER TABLE lake.a.v RENAME TO b.v")
    assert lake.sql("SELECT * FROM lake.b.v") == [(1,)]
    assert lake.sql("SHOW TABLES IN lake.a") == []
    lake.sql("CREATE TABLE lake.a.taken (a INT)")
    with pytest.raises(AnalysisException) as error:
        lake.sql("ALTER TABLE lake.b.v RENAME TO a.taken")
    assert error.value.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS"


def test_a_dropped_table_is_gone_for_all_statements(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.sql("DROP TABLE lake.t")
    lake.sql("DROP TABLE IF EXISTS lake.t")
    for statement in (
        "SELECT * FROM lake.t",
        "DROP TABLE lake.t",
        "INSERT INTO lake.t VALUES (1)",
        "DESCRIBE lake.t",
    ):
        with pytest.raises(AnalysisException) as error:
            lake.sql(statement)
        assert error.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
        assert f"`{lake.name}`.`t`" in str(error.value)


def test_a_location_of_ones_own_is_used_shown_and_never_emptied(lake, tmp_path):
    place = tmp_path / "elsewhere"
    lake.sql(f"CREATE TABLE lake.t (a INT) LOCATION '{place}'")
    lake.sql("INSERT INTO lake.t VALUES (1)")
    assert f"LOCATION 'file:{place}'" in lake.sql("SHOW CREATE TABLE lake.t")[0][0]
    assert described(lake)["Type"] == "EXTERNAL"
    files = list(place.rglob("*.parquet"))
    assert len(files) == 1
    lake.sql("DROP TABLE lake.t")
    assert list(place.rglob("*.parquet")) == files


def test_create_table_like_copies_the_definition_only(lake):
    lake.sql("CREATE TABLE lake.t (a INT DEFAULT 3, b STRING) PARTITIONED BY (a) TBLPROPERTIES ('k' = 'v')")
    lake.sql("INSERT INTO lake.t VALUES (1, 'x')")
    lake.sql("CREATE TABLE lake.u LIKE lake.t")
    assert lake.sql("SELECT * FROM lake.u") == []
    assert lake.frame("SELECT * FROM lake.u").schema == lake.frame("SELECT * FROM lake.t").schema
    assert lake.catalog.load_table("u").location != lake.catalog.load_table("t").location


def test_show_tables_and_catalog_functions_find_tables(lake):
    lake.sql("CREATE TABLE lake.t (a INT)")
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE TABLE lake.a.u (a INT)")
    assert [row[1] for row in lake.sql(f"SHOW TABLES IN {lake.name}")] == ["t"]
    assert [row[:2] for row in lake.sql("SHOW TABLES IN lake.a")] == [("a", "u")]
    assert lake.spark.catalog.tableExists(f"{lake.name}.a.u")
    assert not lake.spark.catalog.tableExists(f"{lake.name}.a.v")


def test_a_default_time_means_the_same_to_all_readers_in_every_zone(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS id")
    lake.spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        lake.sql("ALTER TABLE lake.t ADD COLUMN at TIMESTAMP DEFAULT TIMESTAMP '2020-01-31 12:00:00.5'")
        rows = lake.sql("SELECT CAST(at AS STRING) FROM lake.t")
        lake.sql("CREATE TABLE lake.u (id INT, at TIMESTAMP DEFAULT TIMESTAMP '1960-01-31 12:00:00')")
    finally:
        lake.spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert rows == [("2020-01-31 12:00:00.5",)]
    assert lake.sql("SELECT CAST(at AS STRING) FROM lake.t") == [("2020-01-31 17:00:00.5",)]
    read = lake.catalog.load_table("t").to_arrow()["at"][0].as_py()
    assert read.isoformat() == "2020-01-31T17:00:00.500000+00:00"
    exists = lake.catalog.load_table("u").schema.fields[1].default.exists
    assert exists == TypedValue(type="timestamp", value=-312_966_000_000_000)
