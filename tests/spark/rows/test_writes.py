"""Appending, overwriting, deleting: the rows of the table afterwards, and the facts in its commits."""

import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.functions import col

from lakelog.catalog import col as table_col

pytestmark = pytest.mark.adapter


@pytest.fixture
def parts(lake):
    """A table of nine rows in the partitions k0, k1 and k2."""
    lake.sql("CREATE TABLE lake.t (id BIGINT, k STRING) PARTITIONED BY (k)")
    lake.sql("INSERT INTO lake.t SELECT id, concat('k', id % 3) FROM range(9)")
    return lake


def operations(lake, table="t"):
    return [entry.operation for entry in lake.catalog.load_table(table).history()]


def test_each_partition_gets_a_file_of_its_own_with_its_value(parts):
    files = parts.catalog.load_table("t").plan()
    assert files.num_rows == 3
    assert sorted(files["p1000"].to_pylist()) == ["k0", "k1", "k2"]
    assert files["rows"].to_pylist() == [3, 3, 3]


def test_rows_are_appended_in_one_commit(parts):
    version = parts.catalog.load_table("t").version
    parts.frame("SELECT id + 100 AS id, k FROM lake.t").writeTo(f"{parts.name}.t").append()
    parts.frame("SELECT id + 200 AS id, k FROM lake.t WHERE id < 1").write.mode("append").saveAsTable(
        f"{parts.name}.t"
    )
    parts.frame("SELECT id + 300 AS id, k FROM lake.t WHERE id < 1").write.insertInto(f"{parts.name}.t")
    assert parts.catalog.load_table("t").version == version + 3
    assert parts.sql("SELECT count(*) FROM lake.t") == [(20,)]


def test_columns_are_matched_by_name_and_left_out_ones_get_their_default(lake):
    lake.sql("CREATE TABLE lake.t (a INT, b STRING DEFAULT 'bb', c DATE)")
    lake.sql("INSERT INTO lake.t (c, a) VALUES (DATE'2020-01-01', 1)")
    lake.sql("INSERT INTO lake.t BY NAME SELECT 'x' AS b, 2 AS a")
    assert lake.sorted("SELECT a, b, CAST(c AS STRING) FROM lake.t") == [
        (1, "bb", "2020-01-01"),
        (2, "x", None),
    ]


def test_null_is_refused_where_the_table_says_not_null(lake):
    lake.sql("CREATE TABLE lake.t (a INT NOT NULL)")
    for insert in ("INTO", "OVERWRITE"):
        with pytest.raises(PySparkException) as error:
            lake.sql(f"INSERT {insert} lake.t SELECT CAST(NULL AS INT)")
        assert error.value.getCondition() == "NOT_NULL_ASSERT_VIOLATION"
    assert lake.sql("SELECT * FROM lake.t") == []


def test_texts_that_are_too_long_for_varchar_are_refused_and_char_is_padded(lake):
    lake.sql("CREATE TABLE lake.t (v VARCHAR(3), c CHAR(3))")
    with pytest.raises(Exception, match="EXCEED_LIMIT_LENGTH"):
        lake.sql("INSERT INTO lake.t VALUES ('long', 'x')")
    lake.sql("INSERT INTO lake.t VALUES ('abc', 'x')")
    assert lake.sql("SELECT v, c FROM lake.t WHERE c = 'x'") == [("abc", "x  ")]


def test_a_static_partition_is_overwritten_and_no_other(parts):
    parts.sql("INSERT OVERWRITE lake.t PARTITION (k = 'k1') SELECT 100")
    assert parts.sql("SELECT k, count(*), sum(id) FROM lake.t GROUP BY k ORDER BY k") == [
        ("k0", 3, 9),
        ("k1", 1, 100),
        ("k2", 3, 15),
    ]


def test_without_a_partition_everything_is_overwritten(parts):
    parts.sql("INSERT OVERWRITE lake.t VALUES (1, 'new')")
    assert parts.sql("SELECT * FROM lake.t") == [(1, "new")]


def test_dynamic_overwrite_replaces_the_partitions_that_the_new_rows_are_in(parts):
    parts.frame("SELECT 100L AS id, 'k1' AS k UNION ALL SELECT 101L, 'k3'").writeTo(
        f"{parts.name}.t"
    ).overwritePartitions()
    assert parts.sql("SELECT k, sum(id) FROM lake.t GROUP BY k ORDER BY k") == [
        ("k0", 9),
        ("k1", 100),
        ("k2", 15),
        ("k3", 101),
    ]


def test_dynamic_overwrite_by_the_sessions_setting(parts):
    parts.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        parts.sql("INSERT OVERWRITE lake.t VALUES (100, 'k0')")
        parts.sql("INSERT OVERWRITE lake.t PARTITION (k) VALUES (200, 'k1')")
    finally:
        parts.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert parts.sql("SELECT k, sum(id) FROM lake.t GROUP BY k ORDER BY k") == [
        ("k0", 100),
        ("k1", 200),
        ("k2", 15),
    ]


def test_overwrite_by_a_filter_replaces_the_rows_that_match(parts):
    frame = parts.frame("SELECT 77L AS id, 'k1' AS k")
    frame.writeTo(f"{parts.name}.t").overwrite(col("k") == "k1")
    parts.sql("INSERT INTO lake.t REPLACE WHERE k IN ('k0', 'gone') VALUES (88, 'k0')")
    assert parts.sorted("SELECT * FROM lake.t WHERE k <> 'k2'") == [(77, "k1"), (88, "k0")]
    frame.writeTo(f"{parts.name}.t").overwrite(col("id") == 5)
    assert parts.sorted("SELECT id FROM lake.t") == [(2,), (77,), (77,), (8,), (88,)]


def test_a_delete_that_whole_files_decide_is_a_commit_without_new_files(parts):
    rows_before = set(parts.catalog.load_table("t").plan()["path"].to_pylist())
    parts.sql("DELETE FROM lake.t WHERE k = 'k1'")
    parts.sql("DELETE FROM lake.t WHERE id > 1000")
    assert parts.sql("SELECT DISTINCT k FROM lake.t ORDER BY k") == [("k0",), ("k2",)]
    remaining_plan = parts.catalog.load_table("t").plan()
    assert set(remaining_plan["path"].to_pylist()) < rows_before
    assert "deletes" not in remaining_plan.column_names and remaining_plan.num_rows == 2
    parts.sql("TRUNCATE TABLE lake.t")
    assert parts.sql("SELECT * FROM lake.t") == []
    parts.sql("INSERT INTO lake.t VALUES (1, 'k')")
    parts.sql("DELETE FROM lake.t")
    assert parts.sql("SELECT * FROM lake.t") == []


def test_a_write_that_fails_leaves_no_commit_and_no_files(parts, tmp_path):
    paths_before = sorted((tmp_path / "warehouse").rglob("*"))
    version = parts.catalog.load_table("t").version
    with pytest.raises(Exception, match="boom"):
        parts.sql(
            "INSERT INTO lake.t SELECT id, IF(id > 50, raise_error('boom'), 'k0') FROM range(0, 100, 1, 1)"
        )
    with pytest.raises(Exception, match="boom"):
        parts.sql(
            "CREATE TABLE lake.u AS SELECT id, IF(id > 50, raise_error('boom'), 'k0') AS k FROM range(0, 100, 1, 1)"
        )
    assert parts.catalog.load_table("t").version == version
    assert [path for path in sorted((tmp_path / "warehouse").rglob("*")) if path.is_file()] == [
        path for path in paths_before if path.is_file()
    ]


def test_every_transform_partitions_rows_and_prunes_files(lake):
    lake.sql(
        "CREATE TABLE lake.t (id BIGINT, s STRING, d DATE, ts TIMESTAMP, st STRUCT<x: INT>) PARTITIONED BY "
        "(bucket(4, id), truncate(1, s), years(d), hours(ts), st.x)"
    )
    lake.sql(
        "INSERT INTO lake.t SELECT id, concat(id % 2, '-', id), date_add(DATE'2019-12-30', CAST(id AS INT)), "
        "timestamp_seconds(id * 1800 - 3600), named_struct('x', CAST(id % 2 AS INT)) FROM range(10)"
    )
    lake.sql("INSERT INTO lake.t VALUES (NULL, NULL, NULL, NULL, NULL)")
    assert lake.sql("SELECT count(*), count(id), sum(st.x) FROM lake.t") == [(11, 10, 5)]
    wanted_texts: list[tuple[str, list[int | None]]] = [
        ("id = 3", [3]),
        ("s LIKE '1-%'", [1, 3, 5, 7, 9]),
        ("d < DATE'2020-01-01'", [0, 1]),
        ("st.x = 1 AND id < 4", [1, 3]),
        ("ts < TIMESTAMP'1970-01-01 00:00:00'", [0, 1]),
        ("id IS NULL", [None]),
    ]
    for condition, ids in wanted_texts:
        assert lake.sorted(f"SELECT id FROM lake.t WHERE {condition}") == [(id,) for id in ids]
    every = lake.catalog.load_table("t")
    assert every.plan([("id", "=", 3)]).num_rows < every.file_count


def test_files_are_closed_when_they_are_large_enough(lake):
    lake.sql(
        "CREATE TABLE lake.t (id BIGINT, x STRING) TBLPROPERTIES ('lakelog.write.target-file-size-bytes' = '20000')"
    )
    lake.sql("INSERT INTO lake.t SELECT id, sha2(CAST(id AS STRING), 256) FROM range(0, 20000, 1, 1)")
    files = lake.catalog.load_table("t").plan()
    assert files.num_rows > 10
    assert lake.sql("SELECT count(*), count(DISTINCT x) FROM lake.t") == [(20000, 20000)]


def test_spark_and_python_read_what_the_other_wrote(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, k STRING) PARTITIONED BY (k)")
    lake.sql("INSERT INTO lake.t VALUES (1, 'spark')")
    lake.catalog.load_table("t").append(pa.table({"id": [2, 3], "k": ["python", None]}))
    assert lake.sql("SELECT * FROM lake.t ORDER BY id") == [(1, "spark"), (2, "python"), (3, None)]
    assert sorted(lake.catalog.load_table("t").to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_files_of_spark_and_python_have_the_ids_of_all_that_columns_hold(lake):
    lake.sql(
        "CREATE TABLE lake.t (id BIGINT, l ARRAY<STRUCT<x: INT, m: MAP<STRING, ARRAY<INT>>>>, "
        "m MAP<STRUCT<a: INT>, ARRAY<ARRAY<STRING>>>, s STRUCT<l: ARRAY<INT>>, v VARIANT)"
    )
    lake.sql("INSERT INTO lake.t (id) VALUES (1)")
    table = lake.catalog.load_table("t")
    table = table.append(table.to_arrow())
    schemas = [pq.read_schema(f"{table.location}/{path}") for path in table.plan()["path"].to_pylist()]
    ids = [dict(field_ids(schema)) for schema in schemas]
    assert ids[0] == ids[1]
    assert sorted(ids[0].values()) == list(range(1, table.schema.last_id + 1))


def field_ids(type, path=""):
    """The ids of columns and of what they hold, in a file, by their paths."""
    if isinstance(type, pa.MapType):
        fields = [type.key_field, type.item_field]
    else:
        fields = [type.field(i) for i in range(len(type) if isinstance(type, pa.Schema) else type.num_fields)]
    for field in fields:
        name = f"{path}.{field.name}"
        if b"PARQUET:field_id" in (field.metadata or {}):
            yield name, int(field.metadata[b"PARQUET:field_id"])
        yield from field_ids(field.type, name)


def test_the_sessions_settings_do_not_change_what_files_hold(lake):
    strange = {
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.parquet.writeLegacyFormat": "true",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.fieldId.write.enabled": "false",
    }
    for key, value in strange.items():
        lake.spark.conf.set(key, value)
    try:
        lake.sql(
            "CREATE TABLE lake.t AS SELECT TIMESTAMP'1500-01-01 00:00:00' AS ts, DATE'1500-01-01' AS d, 1.5BD AS x"
        )
    finally:
        for key in strange:
            lake.spark.conf.unset(key)
    assert lake.sql("SELECT CAST(ts AS STRING), CAST(d AS STRING) FROM lake.t") == [
        ("1500-01-01 00:00:00", "1500-01-01")
    ]
    read = lake.catalog.load_table("t").to_arrow()
    assert str(read["d"][0].as_py()) == "1500-01-01"
    table = lake.catalog.load_table("t")
    assert table.plan(table_col("ts") > datetime.datetime(1500, 1, 1, tzinfo=datetime.UTC)).num_rows == 0
    assert table.plan(table_col("ts") >= datetime.datetime(1500, 1, 1, tzinfo=datetime.UTC)).num_rows == 1


def test_a_partition_that_is_not_valid_utf8_is_refused_with_the_columns_name(lake, tmp_path):
    lake.sql("CREATE TABLE lake.t (id BIGINT, kind STRING) PARTITIONED BY (kind)")
    with pytest.raises(Exception, match="column kind .*not valid UTF-8"):
        lake.sql("INSERT INTO lake.t VALUES (1, CAST(X'61FF' AS STRING))")
    assert lake.sql("SELECT * FROM lake.t") == []
    assert list(tmp_path.rglob("*.parquet")) == []


def test_texts_that_are_not_valid_utf8_are_found_and_deleted_by(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, s STRING)")
    lake.sql("INSERT INTO lake.t VALUES (1, CAST(X'FF' AS STRING)), (2, 'z')")
    lake.sql("INSERT INTO lake.t VALUES (3, CAST(X'EFBFBD' AS STRING))")
    assert lake.sql("SELECT id FROM lake.t WHERE s = CAST(X'FF' AS STRING)") == [(1,)]
    assert lake.sql("SELECT id FROM lake.t WHERE s > CAST(X'FE' AS STRING)") == [(1,)]
    assert lake.sorted("SELECT id FROM lake.t WHERE s IN (CAST(X'FF' AS STRING), 'z')") == [(1,), (2,)]
    assert lake.sql("SELECT id FROM lake.t WHERE startswith(s, CAST(X'FF' AS STRING))") == [(1,)]
    assert lake.sql("SELECT id FROM lake.t WHERE s > concat('z', repeat('y', 50))") != []
    lake.sql("DELETE FROM lake.t WHERE s = CAST(X'FF' AS STRING)")
    assert lake.sorted("SELECT id FROM lake.t") == [(2,), (3,)]


def test_old_dates_that_python_wrote_are_the_same_whatever_the_session_rebases(lake):
    import pyarrow as pa

    lake.sql("CREATE TABLE lake.t (d DATE, ts TIMESTAMP)")
    moment = datetime.datetime(1500, 1, 1, tzinfo=datetime.UTC)
    lake.catalog.load_table("t").append(pa.table({"d": [moment.date()], "ts": [moment]}))
    modes = ("spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.int96RebaseModeInRead")
    for key in modes:
        lake.spark.conf.set(key, "LEGACY")
    try:
        read = lake.sql("SELECT CAST(d AS STRING), CAST(ts AS STRING) FROM lake.t")
    finally:
        for key in modes:
            lake.spark.conf.unset(key)
    assert read == [("1500-01-01", "1500-01-01 00:00:00")]
