"""Statements about partitions: their effects, Spark's own catalog as a reference, and the view of other sessions."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from pyspark.errors import UnsupportedOperationException
from tests.spark.sessions import another_session, descriptions_of_jobs, last_job
from tests.spark.sql.reference import outcome
from tests.spark.sql.rows import in_mode, in_one_mode
from tests.spark.versions import only_where_spark_computes

from lakelog.catalog import engine

pytestmark = pytest.mark.adapter

CREATE = "CREATE TABLE lake.t (id BIGINT, a INT, b STRING) PARTITIONED BY (a, b)"
FILL = "INSERT INTO lake.t VALUES (1, 1, 'x'), (2, 1, 'y'), (3, 2, 'x y/='), (4, NULL, NULL)"


def same(lake, memory, statements):
    """Run statements on both catalogs and compare what comes of each."""
    for statement in statements:
        assert outcome(lake, statement) == outcome(memory, statement), statement


def seen(lake, version=None):
    """The rows as another session and the Python client see them, which have to be the same."""
    rows = another_session(lake).sorted("SELECT * FROM lake.t")
    python = lake.catalog.load_table("t").to_arrow().to_pylist()
    assert sorted((tuple(row.values()) for row in python), key=repr) == rows
    return rows


def partitions(lake, table="t"):
    return [row[0] for row in lake.sql(f"SHOW PARTITIONS lake.{table}")]


@pytest.fixture
def parts(lake):
    lake.sql(CREATE)
    lake.sql(FILL)
    return lake


def test_partitions_are_shown_as_sparks_own_catalog_does(lake, memory_partitions):
    same(lake, memory_partitions, [
        CREATE, "SHOW PARTITIONS lake.t", FILL, "SHOW PARTITIONS lake.t",
        "SHOW PARTITIONS lake.t PARTITION (a = 1)", "SHOW PARTITIONS lake.t PARTITION (A = 1, b = 'y')",
        "SHOW PARTITIONS lake.t PARTITION (b = 'y')", "SHOW PARTITIONS lake.t PARTITION (a = null)",
        "SHOW PARTITIONS lake.t PARTITION (a = 9)", "SHOW PARTITIONS lake.t PARTITION (a = 'q')",
        "SHOW PARTITIONS lake.t PARTITION (c = 1)", "SHOW PARTITIONS lake.t PARTITION (id = 1)",
        "SHOW PARTITIONS lake.nope",
        "CREATE TABLE lake.u (id BIGINT)", "SHOW PARTITIONS lake.u", "ALTER TABLE lake.u ADD PARTITION (id = 1)",
    ])  # fmt: skip


def test_partitions_are_added_dropped_renamed_and_truncated_as_in_sparks_own_catalog(lake, memory_partitions):
    same(lake, memory_partitions, [
        CREATE, FILL,
        "ALTER TABLE lake.t ADD PARTITION (a = 5, b = 'n')", "SHOW PARTITIONS lake.t", "SELECT * FROM lake.t",
        "ALTER TABLE lake.t ADD PARTITION (a = 5, b = 'n')",
        "ALTER TABLE lake.t ADD IF NOT EXISTS PARTITION (a = 5, b = 'n')",
        "ALTER TABLE lake.t ADD PARTITION (a = 5)", "ALTER TABLE lake.t ADD PARTITION (a = 5, c = 1)",
        "ALTER TABLE lake.t ADD PARTITION (a = 6, b = 'n') PARTITION (a = 7, b = null)",
        "ALTER TABLE lake.t ADD PARTITION (a = 6, b = 'n') PARTITION (a = 8, b = 'n')", "SHOW PARTITIONS lake.t",
        "ALTER TABLE lake.t DROP PARTITION (a = 5, b = 'n')", "ALTER TABLE lake.t DROP PARTITION (a = 5, b = 'n')",
        "ALTER TABLE lake.t DROP IF EXISTS PARTITION (a = 5, b = 'n')", "ALTER TABLE lake.t DROP PARTITION (a = 1)",
        "ALTER TABLE lake.t DROP PARTITION (a = 6, b = 'n') PURGE",
        "ALTER TABLE lake.t DROP PARTITION (a = 1, b = 'x'), PARTITION (a = 2, b = 'x y/=')", "SELECT * FROM lake.t",
        "ALTER TABLE lake.t PARTITION (a = 1, b = 'y') RENAME TO PARTITION (a = 11, b = 'yy')",
        "ALTER TABLE lake.t PARTITION (a = 1, b = 'y') RENAME TO PARTITION (a = 12, b = 'yy')",
        "ALTER TABLE lake.t PARTITION (a = 7, b = null) RENAME TO PARTITION (a = 11, b = 'yy')",
        "ALTER TABLE lake.t PARTITION (a = 7, b = null) RENAME TO PARTITION (a = 8, b = 'e')",
        "ALTER TABLE lake.t PARTITION (a = 1) RENAME TO PARTITION (a = 12, b = 'yy')",
        "SELECT * FROM lake.t", "SHOW PARTITIONS lake.t",
        "TRUNCATE TABLE lake.t PARTITION (a = 11, b = 'yy')", "SHOW PARTITIONS lake.t", "SELECT * FROM lake.t",
        "INSERT INTO lake.t VALUES (5, 11, 'yy'), (6, 11, 'z')", "TRUNCATE TABLE lake.t PARTITION (a = 11)",
        "TRUNCATE TABLE lake.t PARTITION (a = 99)", "TRUNCATE TABLE lake.t PARTITION (a = 99, b = 'x')",
        "TRUNCATE TABLE lake.t PARTITION (c = 99)", "SHOW PARTITIONS lake.t", "SELECT * FROM lake.t",
        "DESCRIBE TABLE lake.t PARTITION (a = 11, b = 'yy')",
        "SHOW TABLE EXTENDED IN lake LIKE 't' PARTITION (a = 77, b = 'yy')",
        "ALTER TABLE lake.t RECOVER PARTITIONS", "MSCK REPAIR TABLE lake.t",
    ])  # fmt: skip


@in_one_mode
def test_partitions_that_were_added_stay_where_rows_are_changed(lake, mode):
    lake.sql(f"CREATE TABLE lake.t (id BIGINT, k STRING) PARTITIONED BY (k) {in_mode(mode)}")
    lake.sql("INSERT INTO lake.t VALUES (1, 'a'), (2, 'a'), (3, 'b')")
    lake.sql("ALTER TABLE lake.t ADD PARTITION (k = 'x') PARTITION (k = 'y')")
    for statement, remaining_text in (
        ("DELETE FROM lake.t WHERE id = 99", "abxy"),
        ("DELETE FROM lake.t WHERE k = 'zz'", "abxy"),
        ("DELETE FROM lake.t WHERE id % 7 = 6", "abxy"),
        ("DELETE FROM lake.t WHERE id % 7 = 1", "abxy"),
        ("UPDATE lake.t SET id = id + 10 WHERE id >= 0", "abxy"),
        ("MERGE INTO lake.t USING (SELECT 13L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE", "axy"),
        ("DELETE FROM lake.t WHERE k = 'x'", "axy"),
        ("DELETE FROM lake.t", "xy"),
        ("INSERT INTO lake.t VALUES (5, 'x')", "xy"),
        ("TRUNCATE TABLE lake.t", "xy"),
        ("ALTER TABLE lake.t DROP PARTITION (k = 'x')", "y"),
    ):
        table_before = lake.catalog.load_table("t")
        lake.sql(statement)
        assert sorted(partitions(lake)) == [f"k={k}" for k in remaining_text], statement
        table_after = lake.catalog.load_table("t")
        nothing = statement.endswith(("= 99", "'zz'", "= 6", "'x'")) and "DELETE" in statement
        assert (table_after.version == table_before.version) == nothing, statement
    assert seen(lake) == []


def test_the_rows_of_a_renamed_partition_are_checked_and_rewritten_by_a_job(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, k STRING)")
    lake.sql("INSERT INTO lake.t VALUES (1, 'a'), (2, 'b')")
    lake.sql("ALTER TABLE lake.t ADD PARTITION FIELD k")
    lake.sql("INSERT INTO lake.t VALUES (3, 'a'), (4, 'b')")
    lake.sql("ALTER TABLE lake.t PARTITION (k = 'a') RENAME TO PARTITION (k = 'c')")
    assert lake.sorted("SELECT * FROM lake.t") == [(1, "c"), (2, "b"), (3, "c"), (4, "b")]
    jobs = [text for text in descriptions_of_jobs(lake.spark) if "lakelog rename of a partition" in text]
    assert jobs
    lake.sql("ALTER TABLE lake.t ADD CONSTRAINT c CHECK (k <> 'd' AND length(k) < id + 1)")
    lake.sql("ALTER TABLE lake.t ALTER COLUMN k SET NOT NULL")
    last_job_before, files = last_job(lake.spark), set(Path(lake.warehouse).rglob("*.parquet"))
    for wrong, why in (("'d'", "CHECK_CONSTRAINT_VIOLATION"), ("'long'", "length"), ("NULL", "NULL")):
        with pytest.raises(Exception, match=why) as error:
            lake.sql(f"ALTER TABLE lake.t PARTITION (k = 'c') RENAME TO PARTITION (k = {wrong})")
        assert "Job aborted" not in str(error.value)
    assert set(Path(lake.warehouse).rglob("*.parquet")) == files
    lake.sql("ALTER TABLE lake.t PARTITION (k = 'c') RENAME TO PARTITION (k = 'e')")
    assert lake.sorted("SELECT * FROM lake.t") == [(1, "e"), (2, "b"), (3, "e"), (4, "b")]
    jobs = [
        text
        for text in descriptions_of_jobs(lake.spark, after=last_job_before)
        if "rename of a partition" in text
    ]
    assert len(jobs) == 3
    assert not lake.catalog.fsck(deep=True).found


def test_how_much_there_is_of_a_partition_is_shown(parts):
    [row] = parts.sql(f"SHOW TABLE EXTENDED IN {parts.name} LIKE 't' PARTITION (a = 1, b = 'x')")
    assert "Partition Values: [a=1, b=x]" in row[3] and "numFiles: 1, numRows: 1, totalSize: " in row[3]


def test_every_statement_is_one_commit_that_others_see_and_whose_past_stays(parts):
    versions = [parts.catalog.load_table("t").version]
    for statement, rows in [
        ("ALTER TABLE lake.t ADD PARTITION (a = 5, b = 'n') PARTITION (a = 6, b = 'n')", {1, 2, 3, 4}),
        ("ALTER TABLE lake.t PARTITION (a = 1, b = 'y') RENAME TO PARTITION (a = 9, b = 'y')", {1, 2, 3, 4}),
        ("TRUNCATE TABLE lake.t PARTITION (a = 1)", {2, 3, 4}),
        ("ALTER TABLE lake.t DROP PARTITION (a = 2, b = 'x y/='), PARTITION (a = 5, b = 'n')", {2, 4}),
    ]:
        parts.sql(statement)
        assert {row[0] for row in seen(parts)} == rows
        versions.append(parts.catalog.load_table("t").version)
    assert versions == [versions[0] + i for i in range(5)]
    assert (2, 9, "y") in seen(parts)
    assert parts.sorted(f"SELECT * FROM lake.t VERSION AS OF {versions[0]}") == [
        (1, 1, "x"), (2, 1, "y"), (3, 2, "x y/="), (4, None, None),
    ]  # fmt: skip
    found_rows = engine.partitions(parts.catalog.load_table("t")).to_pylist()
    assert {(row["a"], row["b"], row["rows"]) for row in found_rows} == {
        (9, "y", 1), (1, "x", 0), (6, "n", 0), (None, None, 1),
    }  # fmt: skip
    reported_rows = parts.sql(
        f"SELECT operation FROM {parts.name}.system.audit WHERE kind = 'table' ORDER BY version DESC LIMIT 4"
    )
    assert [row[0] for row in reported_rows] == ["delete", "delete", "overwrite", "append"]


def test_partition_statements_are_part_of_a_transaction(parts):
    parts.sql("CALL lake.system.begin_transaction()")
    parts.sql("ALTER TABLE lake.t DROP PARTITION (a = 1, b = 'x')")
    parts.sql("ALTER TABLE lake.t ADD PARTITION (a = 7, b = 'x')")
    parts.sql("ALTER TABLE lake.t PARTITION (a = 1, b = 'y') RENAME TO PARTITION (a = 8, b = 'x')")
    assert partitions(parts) == ["a=2/b=x y%2F%3D", "a=7/b=x", "a=8/b=x", "a=null/b=null"]
    assert len(seen(parts)) == 4
    parts.sql("CALL lake.system.rollback_transaction()")
    assert len(partitions(parts)) == 4
    parts.sql("CALL lake.system.begin_transaction()")
    parts.sql("TRUNCATE TABLE lake.t PARTITION (a = 1)")
    parts.sql("CALL lake.system.commit_transaction()")
    assert len(seen(parts)) == 2


def test_transforms_are_partitions_under_the_names_of_their_fields(lake):
    lake.sql(
        "CREATE TABLE lake.t (id BIGINT, ts TIMESTAMP, c CHAR(3), s STRING) "
        "PARTITIONED BY (days(ts), c, bucket(4, id), truncate(2, s))"
    )
    lake.sql("INSERT INTO lake.t VALUES (1, TIMESTAMP'2020-01-02 03:04:05', 'x', 'abcdef')")
    lake.sql("INSERT INTO lake.t PARTITION (c = 'y') SELECT 1, TIMESTAMP'2020-01-02 03:04:05', 'ab'")
    both = [f"ts_day=2020-01-02/c={c}  /id_bucket=0/s_trunc=ab" for c in "xy"]
    assert partitions(lake) == both
    assert lake.sql("SHOW PARTITIONS lake.t PARTITION (c = 'x', ts_day = DATE'2020-01-02')") == [(both[0],)]
    with pytest.raises(Exception, match="7 is not a value of the partition field id_bucket"):
        lake.sql(
            "ALTER TABLE lake.t ADD PARTITION (ts_day = '2020-01-03', c = 'x', id_bucket = 7, s_trunc = 'ab')"
        )
    with pytest.raises(UnsupportedOperationException, match="id_bucket, which is bucket"):
        lake.sql(
            "ALTER TABLE lake.t PARTITION (ts_day = '2020-01-02', c = 'x', id_bucket = 0, s_trunc = 'ab') "
            "RENAME TO PARTITION (ts_day = '2020-01-02', c = 'x', id_bucket = 1, s_trunc = 'ab')"
        )
    lake.sql(
        "ALTER TABLE lake.t DROP PARTITION (ts_day = DATE'2020-01-02', c = 'x', id_bucket = 0, s_trunc = 'ab')"
    )
    assert lake.sql("SELECT s FROM lake.t") == [("ab",)]


def test_partitions_may_be_of_every_type_that_has_values(lake, memory_partitions):
    columns = {
        "d": ("DATE", "DATE'2020-01-02'"), "ts": ("TIMESTAMP", "TIMESTAMP'2020-01-02 03:04:05.678'"),
        "n": ("DECIMAL(5,2)", "1.5"), "f": ("DOUBLE", "2.5"), "bo": ("BOOLEAN", "true"), "bi": ("BINARY", "X'0141'"),
        "nt": ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ'2020-01-02 03:04:05'"), "sm": ("SMALLINT", "3"),
        "v": ("VARCHAR(4)", "'ab'"),
        "ch": ("CHAR(3)", "'ab'"), "e": ("STRING", "''"),
    }  # fmt: skip
    types = ", ".join(f"{name} {type}" for name, (type, _) in columns.items())
    some_text = ", ".join(
        f"{name} = {value}" for name, (_, value) in columns.items() if name not in ("bi", "ch")
    )
    same(lake, memory_partitions, [
        f"CREATE TABLE lake.t (id BIGINT, {types}) PARTITIONED BY ({', '.join(columns)})",
        f"INSERT INTO lake.t VALUES (1, {', '.join(value for _, value in columns.values())})",
        "SHOW PARTITIONS lake.t",
        f"SHOW PARTITIONS lake.t PARTITION ({some_text})",
    ])  # fmt: skip
    lake.spark.conf.set("spark.sql.timeType.enabled", "true")
    try:
        _check_times(lake)
    finally:
        lake.spark.conf.unset("spark.sql.timeType.enabled")


def _check_times(lake):
    lake.sql("CREATE TABLE lake.u (id BIGINT, f FLOAT, ti TIME) PARTITIONED BY (f, ti)")
    lake.sql("INSERT INTO lake.u VALUES (1, float('NaN'), TIME'01:02:03.000004')")
    assert lake.catalog.load_table("u").to_arrow().to_pylist()[0]["ti"] == dt.time(1, 2, 3, 4)
    assert partitions(lake, "u") == ["f=NaN/ti=01%3A02%3A03.000004"]
    lake.sql("ALTER TABLE lake.u DROP PARTITION (f = 'NaN', ti = TIME'01:02:03.000004')")
    assert partitions(lake, "u") == []


def test_what_partitions_cannot_be_is_refused_by_name(parts):
    version = parts.catalog.load_table("t").version
    with pytest.raises(UnsupportedOperationException, match="location.*add_files"):
        parts.sql("ALTER TABLE lake.t ADD PARTITION (a = 9, b = 'n') LOCATION '/tmp/x'")
    with pytest.raises(Exception, match="(?i)past is read-only|VERSION"):
        parts.sql("ALTER TABLE lake.t VERSION AS OF 1 DROP PARTITION (a = 1, b = 'x')")
    assert parts.catalog.load_table("t").version == version


def test_rows_are_inserted_into_partitions_as_in_sparks_own_catalog(lake, memory_partitions):
    same(lake, memory_partitions, [
        CREATE,
        "INSERT INTO lake.t PARTITION (a = 1, b = 'p') SELECT 10",
        "INSERT INTO lake.t PARTITION (a = 1, b = 'p') VALUES (11)",
        "INSERT INTO lake.t PARTITION (a = 1, b) SELECT 12, 'q'",
        "INSERT INTO lake.t PARTITION (a, b) SELECT 13, 2, 'r'",
        "INSERT INTO lake.t PARTITION (a, b = 'z') SELECT 14, 3",
        "INSERT INTO lake.t PARTITION (a = 1, b = 'p') (id) VALUES (15)",
        "INSERT INTO lake.t PARTITION (a = 1, b) (b, id) VALUES ('cc', 17)",
        "INSERT INTO lake.t PARTITION (b = 'p', a = 1) BY NAME SELECT 18 AS id",
        "INSERT INTO lake.t PARTITION (a = null, b = 'p') SELECT 20",
        "INSERT INTO lake.t PARTITION (a = 'x', b = 'p') SELECT 1",
        "INSERT INTO lake.t PARTITION (id = 1) SELECT 1, 'x'",
        "INSERT INTO lake.t PARTITION (nope = 1) SELECT 1, 'x'",
        "INSERT INTO lake.t PARTITION (a = 1, b = 'p') SELECT 1, 2",
        "INSERT OVERWRITE lake.t PARTITION (a = 1, b = 'p') IF NOT EXISTS SELECT 1", "SELECT * FROM lake.t",
        "INSERT OVERWRITE lake.t PARTITION (a = 1, b = 'p') SELECT 100", "SELECT * FROM lake.t",
        "INSERT OVERWRITE lake.t PARTITION (a = 1, b) SELECT 101, 'q'", "SELECT * FROM lake.t",
        "INSERT OVERWRITE lake.t PARTITION (a = null, b = 'p') SELECT 21", "SELECT * FROM lake.t",
        "INSERT OVERWRITE lake.t PARTITION (a, b) SELECT 22, 8, 's'", "SELECT * FROM lake.t",
    ])  # fmt: skip
    assert seen(lake) == [(22, 8, "s")]


def test_partitions_that_a_query_has_rows_of_are_overwritten_as_in_sparks_own_catalog(
    lake, memory_partitions
):
    lake.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        same(lake, memory_partitions, [
            CREATE, "INSERT INTO lake.t VALUES (1, 1, 'w'), (2, 1, 'q'), (3, 2, 'r'), (4, 2, 's')",
            "INSERT OVERWRITE lake.t PARTITION (a = 1, b) SELECT 102, 'q'", "SELECT * FROM lake.t",
            "INSERT OVERWRITE lake.t PARTITION (a, b = 'r') SELECT 103, 2", "SELECT * FROM lake.t",
            "INSERT OVERWRITE lake.t PARTITION (a = 1, b = 'q') (id) VALUES (104)",
            "INSERT OVERWRITE lake.t PARTITION (a, b) (b, id, a) VALUES ('new', 105, 7)", "SELECT * FROM lake.t",
            "INSERT OVERWRITE lake.t SELECT 106, 2, 's'", "SELECT * FROM lake.t",
        ])  # fmt: skip
    finally:
        lake.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert [row[0] for row in seen(lake)] == [1, 103, 104, 105, 106]


@only_where_spark_computes
def test_rows_that_only_spark_can_write_keep_their_partition_and_move_by_update(lake):
    lake.sql(
        "CREATE TABLE lake.t (id INT, k STRING, u STRING GENERATED ALWAYS AS (upper(k))) PARTITIONED BY (k)"
    )
    lake.sql("INSERT INTO lake.t (id, k) VALUES (1, 'a')")
    with pytest.raises(UnsupportedOperationException, match="by INSERT, UPDATE or MERGE in Spark"):
        lake.sql("ALTER TABLE lake.t PARTITION (k = 'a') RENAME TO PARTITION (k = 'b')")
    assert seen(lake) == [(1, "a", "A")]
    lake.sql("UPDATE lake.t SET k = 'b' WHERE k = 'a'")
    assert seen(lake) == [(1, "b", "B")]
