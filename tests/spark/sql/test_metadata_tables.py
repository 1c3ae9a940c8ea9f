"""`lake.a.t.files` and its likes: they show what is there, and stand behind everything that users have made."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, PySparkException

import lakelog.spark
from lakelog.catalog import engine


@pytest.fixture
def shop(lake):
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql(
        "CREATE TABLE lake.a.t (id BIGINT, k STRING, d DATE, x DOUBLE) PARTITIONED BY (k, bucket(4, id))"
    )
    lake.sql(
        "INSERT INTO lake.a.t SELECT id, if(id % 2 = 0, 'even', 'odd'), DATE'2026-01-01' + id, "
        "if(id = 3, double('NaN'), id / 2) FROM (SELECT int(id) AS id FROM range(20))"
    )
    lake.sql("INSERT INTO lake.a.t VALUES (100, NULL, NULL, NULL)")
    return lake


@pytest.mark.adapter
def test_files_are_those_on_disk_with_what_their_footers_say(shop):
    files = shop.frame("SELECT * FROM lake.a.t.files").collect()
    folder = Path(shop.catalog.load_table("a.t").location)
    assert {row.file_path for row in files} == {str(path) for path in (folder / "data").glob("*.parquet")}
    for row in files:
        file = pq.read_table(row.file_path)
        id, k, d, x = (file.column(place).to_pylist() for place in range(4))
        assert (row.record_count, row.file_size_in_bytes) == (len(id), Path(row.file_path).stat().st_size)
        assert (row.deleted_record_count, row.file_format, row.spec_id) == (0, "PARQUET", 0)
        assert row.partition.k == k[0] and set(k) == {row.partition.k}
        metrics = row.readable_metrics
        assert (metrics.id.lower_bound, metrics.id.upper_bound) == (min(id), max(id))
        assert metrics.d.null_value_count == d.count(None)
        if None not in d:
            assert (metrics.d.lower_bound, metrics.d.upper_bound) == (min(d), max(d))


def test_partitions_sum_up_what_is_in_them(shop):
    partitions = shop.frame(
        "SELECT partition.k, partition.id_bucket, record_count, file_count FROM lake.a.t.partitions"
    ).collect()
    buckets = f"{shop.name}.bucket(4, id)"
    counted = Counter({(r[0], r[1]): r[2] for r in shop.sql(
        f"SELECT k, {buckets}, count(*) FROM lake.a.t GROUP BY k, {buckets}")})  # fmt: skip
    assert {(row.k, row.id_bucket): row.record_count for row in partitions} == counted
    assert sum(row.file_count for row in partitions) == shop.sql("SELECT count(*) FROM lake.a.t.files")[0][0]


def test_an_unpartitioned_table_has_no_partition_column_and_one_row_of_sums(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT id FROM range(10)")
    assert lake.frame("SELECT * FROM lake.t.partitions").columns == [
        "record_count", "file_count", "total_data_file_size_in_bytes"]  # fmt: skip
    assert lake.sql("SELECT record_count FROM lake.t.partitions") == [(10,)]
    assert "partition" not in lake.frame("SELECT * FROM lake.t.files").columns
    lake.sql("TRUNCATE TABLE lake.t")
    assert lake.sql("SELECT * FROM lake.t.partitions") == []
    assert lake.sql("SELECT count(*), count(file_path) FROM lake.t.files") == [(0, 0)]


def test_a_table_of_several_partitionings_shows_the_fields_of_all(shop):
    shop.sql("ALTER TABLE lake.a.t DROP PARTITION FIELD bucket(4, id)")
    shop.sql("ALTER TABLE lake.a.t ADD PARTITION FIELD months(d)")
    shop.sql("INSERT INTO lake.a.t VALUES (200, 'even', DATE'2026-03-01', 1.0)")
    files = shop.frame("SELECT spec_id, partition.* FROM lake.a.t.files")
    assert files.columns == ["spec_id", "k", "d_month", "id_bucket"]
    new = [row for row in files.collect() if row.spec_id != 0]
    assert [(row.k, row.d_month, row.id_bucket) for row in new] == [("even", 56 * 12 + 2, None)]
    assert sum(row[0] for row in shop.sql("SELECT record_count FROM lake.a.t.partitions")) == 22


@pytest.mark.adapter
def test_snapshots_and_history_list_every_version(shop):
    shop.sql("DELETE FROM lake.a.t WHERE k IS NULL OR id = 5")
    shop.sql(f"CALL {shop.name}.system.rollback_to_version('a.t', 3)")
    versions = shop.sql("SELECT version, operation, summary['total-records'] FROM lake.a.t.snapshots")
    assert [(version, operation) for version, operation, _ in versions] == [
        (1, "create"), (2, "append"), (3, "append"), (4, "delete"), (5, "rollback")]  # fmt: skip
    for version, _, total in versions:
        counted = shop.sql(f"SELECT count(id) FROM lake.a.t VERSION AS OF {version}")[0][0]
        assert int(total) == counted
    history = shop.frame("SELECT * FROM lake.a.t.history").collect()
    assert [row.version for row in history] == [5, 4, 3, 2, 1]
    assert [row.is_current_ancestor for row in history] == [True, False, True, True, True]
    assert history[1].statement == f"DELETE FROM {shop.name}.a.t WHERE k IS NULL OR id = ?"
    times = shop.sql("SELECT committed_at FROM lake.a.t.snapshots")
    assert [row.made_current_at for row in reversed(history)] == [time for (time,) in times]
    assert sorted(shop.sql("SELECT committed_at FROM lake.a.t.history")) == times


def test_a_replace_leaves_all_versions_before_behind(lake):
    lake.sql("CREATE TABLE lake.t AS SELECT 1 AS a")
    lake.sql("INSERT INTO lake.t VALUES (2)")
    lake.sql("CREATE OR REPLACE TABLE lake.t AS SELECT 'x' AS b")
    assert lake.sql("SELECT version, is_current_ancestor FROM lake.t.history") == [
        (3, True), (2, False), (1, False)]  # fmt: skip
    totals = "SELECT int(summary['total-records']) FROM lake.t.snapshots"
    assert lake.sql(totals) == [(1,), (2,), (1,)]


def test_the_log_has_every_commit_as_it_is_written(shop):
    place = Path(shop.catalog.load_table("a.t").location) / "_log"
    for row in shop.frame("SELECT * FROM lake.a.t.log").collect():
        written = json.loads((place / f"{row.version:020d}.json").read_bytes())
        assert json.loads(row.events) == written["events"]
        assert (row.commit_id, row.base) == (written["commit_id"], written["base"])
        assert json.loads(row.writer) == written["writer"]


def test_expired_versions_are_in_no_list(shop):
    shop.sql(f"CALL {shop.name}.system.expire(table => 'a.t', version => 3, dry_run => false)")
    assert shop.sql("SELECT version, operation FROM lake.a.t.snapshots") == [(3, None), (4, "expire")]
    assert shop.sql("SELECT version FROM lake.a.t.snapshots VERSION AS OF 3") == [(3,)]
    assert shop.sql("SELECT version FROM lake.a.t.history") == [(4,)]
    for version in (3, 4):
        assert shop.sql(f"SELECT count(*) FROM lake.a.t VERSION AS OF {version}") == [(21,)]
    with pytest.raises(PySparkException):
        shop.sql("SELECT * FROM lake.a.t VERSION AS OF 2")
    assert {row[0] for row in shop.sql("SELECT summary['total-records'] FROM lake.a.t.snapshots")} == {"21"}


def test_manifests_list_the_files(shop):
    table = shop.catalog.load_table("a.t")
    table.table_head.tracked.log.snapshot(table.table_head.view)
    fresh = shop.catalog.load_table("a.t").inspect("manifests").read_all().to_pylist()
    files = shop.sql("SELECT count(*) FROM lake.a.t.files")[0][0]
    assert [row["entries_count"] for row in fresh] == [files]
    assert Path(fresh[0]["path"]).is_file() and fresh[0]["added_version"] == 3
    rows = shop.sql(
        "SELECT sum(if(content = 'added', entries_count, -entries_count)) FROM lake.a.t.manifests"
    )
    assert rows == [(files,)]


def test_refs_has_main_as_of_every_version(shop):
    assert shop.sql("SELECT * FROM lake.a.t.refs") == [("main", "BRANCH", 3)]
    assert shop.sql("SELECT * FROM lake.a.t.refs VERSION AS OF 2") == [("main", "BRANCH", 2)]


@pytest.mark.adapter
def test_metadata_travels_in_time(shop):
    def paths(suffix):
        return {row[0] for row in shop.sql(f"SELECT file_path FROM lake.a.t.files {suffix}")}

    assert paths("VERSION AS OF 1") == set()
    assert paths("VERSION AS OF 2") < paths("") == paths("VERSION AS OF 3")
    assert shop.sql("SELECT max(version) FROM lake.a.t.history VERSION AS OF 2") == [(2,)]
    assert shop.sql("SELECT sum(record_count) FROM lake.a.t.partitions VERSION AS OF 2") == [(20,)]
    shop.spark.conf.set("spark.sql.session.timeZone", "UTC")
    when = shop.sql("SELECT string(committed_at) FROM lake.a.t.snapshots WHERE version = 2")[0][0]
    assert paths(f"TIMESTAMP AS OF '{when}'") == paths("VERSION AS OF 2")


def test_a_place_has_metadata_tables_too(shop):
    place = shop.catalog.load_table("a.t").location
    named_text = shop.sorted("SELECT file_path FROM lake.a.t.files")
    assert shop.sorted(f"SELECT file_path FROM lake.`{place}`.files") == named_text
    assert shop.sql(f"SELECT count(*) FROM lake.`{place}`.history") == [(3,)]


def test_capitals_and_backticks_do_not_matter(shop):
    assert shop.sql("SELECT count(*) FROM lake.a.t.HISTORY") == [(3,)]
    assert shop.sql("SELECT count(*) FROM lake.`a`.`t`.`history`") == [(3,)]


@pytest.mark.adapter
def test_what_a_user_has_made_comes_first(shop):
    shop.sql("CREATE NAMESPACE lake.a.t")
    assert shop.sql("SELECT count(*) FROM lake.a.t.history") == [(3,)]
    shop.sql("CREATE TABLE lake.a.t.history AS SELECT 'mine' AS whose")
    assert shop.sql("SELECT * FROM lake.a.t.history") == [("mine",)]
    assert shop.sql("SELECT count(*) FROM lake.a.t.snapshots") == [(3,)]
    shop.sql("CREATE VIEW lake.a.t.snapshots AS SELECT 'a view' AS what")
    assert shop.sql("SELECT * FROM lake.a.t.snapshots") == [("a view",)]
    shop.sql("DROP TABLE lake.a.t.history")
    assert shop.sql("SELECT count(*) FROM lake.a.t.history") == [(3,)]


def test_what_is_not_there_is_reported_by_the_name_that_was_asked_for(shop):
    for name in ("a.nothing.files", "a.t.nothing", "files", "a.files", "a.t.files.files"):
        with pytest.raises(AnalysisException) as error:
            shop.sql(f"SELECT * FROM lake.{name}")
        assert error.value.getCondition() in ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND"), name
    shop.sql("CREATE VIEW lake.a.v AS SELECT 1 AS one")
    with pytest.raises(AnalysisException):
        shop.sql("SELECT * FROM lake.a.v.files")


@pytest.mark.adapter
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO lake.a.t.files SELECT * FROM lake.a.t.files",
        "DELETE FROM lake.a.t.files",
        "DROP TABLE lake.a.t.files",
        "ALTER TABLE lake.a.t.files ADD COLUMN x INT",
        "TRUNCATE TABLE lake.a.t.files",
    ],
)
def test_metadata_is_changed_by_changing_the_table_only(shop, statement):
    text_before = shop.sorted("SELECT * FROM lake.a.t.files")
    with pytest.raises(PySparkException):
        shop.sql(statement)
    assert shop.sorted("SELECT * FROM lake.a.t.files") == text_before


def test_a_transaction_sees_its_own_files(shop):
    count = "SELECT count(*) FROM lake.a.t.files"
    rows_before = shop.sql(count)
    with lakelog.spark.transaction(shop.spark, shop.name):
        shop.sql("INSERT INTO lake.a.t VALUES (7, 'new', NULL, NULL)")
        shop.sql("CREATE TABLE lake.a.n AS SELECT 1 AS one")
        assert shop.sql(count) == [(rows_before[0][0] + 1,)]
        assert shop.sql("SELECT record_count FROM lake.a.n.files") == [(1,)]
        assert shop.sql("SELECT record_count, created_at FROM lake.a.n.detail") == [(1, None)]
        assert shop.sql("SELECT * FROM lake.a.n.history") == shop.sql("SELECT * FROM lake.a.n.refs") == []
        assert shop.sql("SELECT max(version) FROM lake.a.t.history") == [(3,)]
    assert shop.sql(count) == [(rows_before[0][0] + 1,)]
    assert shop.sql("SELECT max(version) FROM lake.a.t.history") == [(4,)]


@pytest.mark.adapter
def test_metadata_feeds_views_joins_and_tables(shop):
    shop.sql("CREATE VIEW lake.a.sizes AS SELECT file_path, file_size_in_bytes AS size FROM lake.a.t.files")
    assert shop.sql(
        "SELECT count(*) FROM lake.a.sizes s JOIN lake.a.t.files f USING (file_path)"
    ) == shop.sql("SELECT count(*) FROM lake.a.t.files")
    shop.sql("CREATE TABLE lake.a.kept AS SELECT * FROM lake.a.t.snapshots")
    assert shop.sorted("SELECT version, map_keys(summary) FROM lake.a.kept") == shop.sorted(
        "SELECT version, map_keys(summary) FROM lake.a.t.snapshots"
    )
    described_rows = dict(row[:2] for row in shop.sql("DESCRIBE lake.a.t.refs"))
    assert described_rows["name"] == "string" and described_rows["version"] == "bigint"


def test_all_types_have_metrics(lake):
    lake.sql(
        "CREATE TABLE lake.t (a BOOLEAN, b TINYINT, c SMALLINT, d INT, e FLOAT, f DECIMAL(20, 3), g BINARY, "
        "h TIMESTAMP_NTZ, i INTERVAL DAY TO SECOND, j STRUCT<x: INT>, l ARRAY<INT>, m CHAR(3), n VARIANT) "
        "PARTITIONED BY (f, truncate(2, g), hours(h))"
    )
    lake.sql(
        "INSERT INTO lake.t VALUES (true, 1, 2, 3, 1.5, 1.25, X'0102', TIMESTAMP_NTZ'2026-01-01 01:00:00', "
        "INTERVAL '1 00:00:00' DAY TO SECOND, struct(1), array(1), 'abc', parse_json('1'))"
    )
    [row] = lake.frame("SELECT * FROM lake.t.files").collect()
    metrics = row.readable_metrics.asDict(recursive=True)
    assert sorted(metrics) == ["a", "b", "c", "d", "e", "f", "g", "h", "i", "m"]
    for name, expected in lake.frame("SELECT a, b, c, d, e, f, h, m FROM lake.t").first().asDict().items():
        assert metrics[name]["lower_bound"] == metrics[name]["upper_bound"] == expected, name
    assert bytes(metrics["g"]["lower_bound"]) == b"\1\2"
    assert str(row.partition.f) == "1.250"


def test_many_files_come_in_several_tasks(lake):
    lake.sql("CREATE TABLE lake.t (id BIGINT, x STRING)")
    table = lake.catalog.load_table("t")
    from lakelog.catalog.core.files.data_file import ColumnStats, DataFile

    files = [
        DataFile(path=f"/nowhere/{i}.parquet", size_bytes=1, rows=1, names={1: "id", 2: "x"},
                 stats={1: ColumnStats(nulls=0, min=i, max=i), 2: ColumnStats(nulls=0, min=f"{i:032}", max=f"{i:032}")})
        for i in range(60_000)
    ]  # fmt: skip
    engine.commit_write(table, engine.begin_write(table), "append", files)
    frame = lake.frame(
        "SELECT count(DISTINCT file_path), sum(readable_metrics.id.lower_bound) FROM lake.t.files"
    )
    assert frame.collect()[0][:] == (60_000, sum(range(60_000)))
    assert lake.frame("SELECT * FROM lake.t.files").rdd.getNumPartitions() > 1
