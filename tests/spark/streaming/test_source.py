"""A table as the source of a streaming query."""

from __future__ import annotations

import os
import shutil
import signal

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from tests.spark.conftest import children
from tests.spark.versions import read_changes


@pytest.fixture
def table(lake):
    """Three versions: the second has 1 and 2 in a file, the third 3."""
    lake.sql("CREATE NAMESPACE lake.a")
    lake.sql("CREATE TABLE lake.a.t (x INT)")
    lake.sql("INSERT INTO lake.a.t SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (2)")
    add(lake, 3)
    return lake


def add(lake, *values: int) -> None:
    for value in values:
        lake.sql(f"INSERT INTO lake.a.t VALUES ({value})")


@pytest.mark.adapter
def test_a_stream_has_the_contents_and_then_what_is_added(table, streams):
    frame = streams.table("a.t")
    assert streams.batches(frame, "c") == [[1, 2, 3]]
    assert streams.batches(frame, "c") == []
    add(table, 4, 5)
    assert streams.batches(frame, "c") == [[4, 5]]


def test_the_contents_have_no_rows_that_were_deleted_before(table, streams):
    table.sql("INSERT INTO lake.a.t SELECT /*+ COALESCE(1) */ CAST(id AS INT) FROM range(10, 2010)")
    table.sql("DELETE FROM lake.a.t WHERE x % 2 = 0 AND x >= 2")
    table.sql("UPDATE lake.a.t SET x = -x WHERE x = 11")
    assert "deletes" in table.catalog.load_table("a.t").plan().column_names
    expected = sorted(row[0] for row in table.sql("SELECT x FROM lake.a.t"))
    assert len(expected) == 1002
    assert streams.batches(streams.table("a.t")) == [expected]
    batches = streams.batches(streams.table("a.t", maxFilesPerTrigger=1))
    assert len(batches) > 2 and sorted(sum(batches, [])) == expected


def test_a_query_that_goes_on_sees_what_others_add(table, streams):
    query = streams.kept(streams.table("a.t").writeStream.format("memory").queryName("seen").start())
    query.processAllAvailable()
    add(table, 4)
    query.processAllAvailable()
    table.catalog.load_table("a.t").append(table.catalog.load_table("a.t").scan(limit=1).to_arrow())
    query.processAllAvailable()
    seen = sorted(row[0] for row in table.spark.table("seen").collect())
    assert seen == sorted(row[0] for row in table.sql("SELECT x FROM lake.a.t"))
    assert len(seen) == 5
    query.stop()


@pytest.mark.adapter
def test_a_stream_reads_texts_of_stated_lengths(table, streams):
    table.sql("CREATE TABLE lake.a.c (c CHAR(3), v VARCHAR(4), s STRUCT<c: CHAR(2), v: ARRAY<VARCHAR(3)>>)")
    table.sql("INSERT INTO lake.a.c VALUES ('a', 'b', struct('c', array('d')))")
    spark, name = table.spark, f"{table.name}.a.c"
    place = table.catalog.load_table("a.c").location
    [whole] = table.sql("SELECT * FROM lake.a.c")
    for frame in (
        streams.table("a.c"),
        read_changes(spark.readStream.option("startingVersion", 1), name),
        spark.readStream.format("lakelog").option("catalog", table.name).load(place),
        spark.sql(f"SELECT * FROM STREAM {name} WHERE c = 'a  ' AND upper(v) = 'B'"),
    ):
        assert frame.select("c", "v").dtypes == spark.table(name).select("c", "v").dtypes
        assert streams.batches(frame.selectExpr("struct(c, v, s)")) == [[whole]]


@pytest.mark.adapter
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [[1, 2, 3, 4]]),
        ({"startingVersion": 3}, [[3, 4]]),
        ({"startingVersion": "4"}, [[4]]),
        ({"startingVersion": "latest"}, []),
        ({"startingTimestamp": "2020-01-01"}, [[1, 2, 3, 4]]),
        ({"maxFilesPerTrigger": 1}, [[1, 2], [3], [4]]),
        ({"maxFilesPerTrigger": 2}, [[1, 2, 3], [4]]),
        ({"maxRowsPerTrigger": 3, "startingVersion": 1}, [[1, 2, 3], [4]]),
        ({"maxBytesPerTrigger": "1b"}, [[1, 2], [3], [4]]),
        ({"maxBytesPerTrigger": "1g", "maxFilesPerTrigger": 2, "maxRowsPerTrigger": 2}, [[1, 2], [3, 4]]),
    ],
    ids=str,
)
def test_options_say_where_it_begins_and_how_much_a_batch_has(table, streams, options, expected):
    add(table, 4)
    assert streams.batches(streams.table("a.t", **options)) == expected


def test_it_begins_at_the_time_of_a_version(table, streams):
    time_us = table.catalog.load_table("a.t").at(version=3).table_head.time_us
    [(time, later)] = table.sql(
        f"SELECT timestamp_micros({time_us})::STRING, timestamp_micros({time_us + 1})::STRING"
    )
    assert streams.batches(streams.table("a.t", startingTimestamp=time)) == [[3]]
    assert streams.batches(streams.table("a.t", startingTimestamp=later)) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"startingVersion": 1, "startingTimestamp": "2020-01-01"}, "not both"),
        ({"startingVersion": "soon"}, "the number of a version, or latest"),
        ({"startingVersion": 9}, "its versions are 1 to 3"),
        ({"startingTimestamp": "soon"}, "not a time"),
        ({"startingTimestamp": "2999-01-01"}, "in the future"),
        ({"maxFilesPerTrigger": 0}, "above 0"),
        ({"maxBytesPerTrigger": "much"}, "such as 64m"),
        ({"readChangeFeed": "true"}, "spark.readStream.changes"),
        ({"ignoreDeletes": "true"}, "does not know the read option 'ignoreDeletes': use skipChange"),
    ],
    ids=str,
)
def test_options_that_mean_nothing_are_refused(table, streams, options, words):
    with pytest.raises((StreamingQueryException, PySparkException), match=words):
        streams.batches(streams.table("a.t", **options))


def test_options_of_streams_are_refused_where_a_table_is_only_read(table):
    with pytest.raises(Exception, match="is for streams"):
        table.spark.read.option("startingVersion", 1).table(f"{table.name}.a.t").collect()


CHANGES = {
    "delete": "DELETE FROM lake.a.t WHERE x = 3",
    "overwrite": "INSERT OVERWRITE lake.a.t VALUES (9)",
    "truncate": "TRUNCATE TABLE lake.a.t",
}


@pytest.mark.adapter
@pytest.mark.parametrize("change", sorted(CHANGES))
def test_a_change_of_rows_fails_by_name_once_what_came_before_is_delivered(table, streams, change):
    frame = streams.table("a.t", startingVersion=1)
    table.sql(CHANGES[change])
    seen_numbers: list[int] = []
    query = frame.writeStream.foreachBatch(
        lambda rows, _: seen_numbers.extend(row[0] for row in rows.collect())
    )
    query = query.option("checkpointLocation", streams.checkpoint("c"))
    words = streams.failure(streams.kept(query.start()))
    assert f"version 4 of {table.name}.a.t ({change}" in words
    assert "user=" in words and "skipChangeCommits" in words
    assert sorted(seen_numbers) == [1, 2, 3]
    add(table, 10)
    skipping_table = streams.table("a.t", startingVersion=1, skipChangeCommits="true")
    assert streams.batches(skipping_table, "c") == [[10]]


def test_columns_that_change_stop_a_query_and_a_new_one_goes_on_with_them(table, streams):
    frame = streams.table("a.t")
    assert streams.batches(frame, "c") == [[1, 2, 3]]
    add(table, 4)
    table.sql("ALTER TABLE lake.a.t ADD COLUMN y INT")
    table.sql("INSERT INTO lake.a.t VALUES (5, 50)")
    with pytest.raises(StreamingQueryException, match="the columns of .* were changed in version 5"):
        streams.batches(frame, "c")
    frame = streams.table("a.t")
    assert frame.columns == ["x", "y"]
    seen_batches = streams.batches(frame.selectExpr("struct(x, y)"), "c")
    assert [tuple(row) for batch in seen_batches for row in batch] == [(5, 50)]


def test_a_table_that_was_replaced_dropped_or_created_anew_fails_by_name(table, streams):
    frame = streams.table("a.t")
    query = streams.kept(frame.writeStream.format("noop").start())
    query.processAllAvailable()
    table.sql("CREATE OR REPLACE TABLE lake.a.t (x INT)")
    assert "was replaced in version 4" in streams.failure(query)
    query = streams.kept(
        streams.table("a.t")
        .writeStream.format("noop")
        .option("checkpointLocation", streams.checkpoint("c"))
        .start()
    )
    query.processAllAvailable()
    table.sql("DROP TABLE lake.a.t")
    assert "cannot be found" in streams.failure(query)
    table.sql("CREATE TABLE lake.a.t (x INT)")
    with pytest.raises(StreamingQueryException, match="of another table"):
        streams.batches(streams.table("a.t"), "c")


def test_versions_that_have_expired_fail_with_what_to_do(table, streams):
    frame = streams.table("a.t", startingVersion=1, maxFilesPerTrigger=1)
    query = frame.writeStream.format("noop").option("checkpointLocation", streams.checkpoint("c"))
    query.trigger(once=True).start().awaitTermination()
    add(table, 4)
    table.catalog.expire("a.t", retain_last=2, dry_run=False)
    # Trigger.Once has read all that there was, so that it only has to go on.
    assert streams.batches(frame, "c") == [[4]]
    add(table, 5, 6)
    table.catalog.expire("a.t", retain_last=1, dry_run=False)
    with pytest.raises(StreamingQueryException, match="has expired before it was read.*a new checkpoint"):
        streams.batches(frame, "c")
    going_on = streams.table("a.t", failOnDataLoss="false")
    add(table, 30)
    assert streams.batches(going_on, "c") == [[30]]
    with pytest.raises(Exception, match="failOnDataLoss is 'perhaps'"):
        streams.batches(streams.table("a.t", failOnDataLoss="perhaps"), "d")


@pytest.mark.adapter
def test_a_checkpoint_past_a_moment_that_was_restored_is_refused(table, streams, tmp_path):
    shutil.copytree(table.warehouse, tmp_path / "then")
    add(table, 4)
    assert streams.batches(streams.table("a.t"), "c") == [[1, 2, 3, 4]]
    for child in children(table.spark):
        os.kill(child, signal.SIGKILL)
    shutil.rmtree(table.warehouse)
    shutil.copytree(tmp_path / "then", table.warehouse)
    with pytest.raises(StreamingQueryException, match="has read version 4 of .*, whose newest is 3"):
        streams.batches(streams.table("a.t"), "c")
    add(table, 5, 6)
    with pytest.raises(StreamingQueryException, match="is another commit now.*with a new checkpoint"):
        streams.batches(streams.table("a.t"), "c")
    assert streams.batches(streams.table("a.t", startingVersion=4), "d") == [[5, 6]]


def test_a_stream_is_joined_with_another_table_as_that_is_then(table, streams):
    table.sql("CREATE TABLE lake.a.names AS SELECT 1 AS x, 'one' AS name")
    names = table.spark.table(f"{table.name}.a.names")
    joined_text = streams.table("a.t").join(names, "x").select("name")
    assert streams.batches(joined_text) == [["one"]]


@pytest.mark.parametrize("options", [{}, {"startingVersion": "latest"}])
def test_a_first_batch_that_failed_is_the_same_when_it_is_retried(table, streams, options):
    def fail(batch, number):
        assert not batch.collect()  # fails where there is anything

    frame = streams.table("a.t", **options)
    query = frame.writeStream.foreachBatch(fail).option("checkpointLocation", streams.checkpoint("c"))
    running = streams.kept(query.start())
    if options:
        running.processAllAvailable()
        add(table, 3)
    streams.failure(running)
    add(table, 4)
    assert streams.batches(frame, "c") == [[3] if options else [1, 2, 3], [4]]


def test_a_table_is_read_twice_and_filtered_in_one_query(table, streams):
    frame = streams.table("a.t", maxFilesPerTrigger=1)
    both = frame.where("x < 3").union(streams.table("a.t", startingVersion=3).selectExpr("x * 10"))
    assert sorted(x for batch in streams.batches(both) for x in batch) == [1, 2, 30]
    again = frame.where("x = 1").union(frame.where("x = 3"))
    assert sorted(x for batch in streams.batches(again) for x in batch) == [1, 3]


@pytest.mark.adapter
def test_a_table_is_named_by_its_place(table, streams):
    place = table.catalog.load_table("a.t").location
    frame = table.spark.readStream.table(f"{table.name}.`{place}`")
    assert streams.batches(frame, "c") == [[1, 2, 3]]
    table.sql("ALTER TABLE lake.a.t RENAME TO a.u")
    table.sql("INSERT INTO lake.a.u VALUES (4)")
    assert streams.batches(frame, "c") == [[4]]


@pytest.mark.adapter
def test_sql_reads_a_table_as_a_stream(table, streams):
    frame = table.frame("SELECT x * 10 FROM STREAM lake.a.t WHERE x > 1")
    assert frame.isStreaming
    assert streams.batches(frame) == [[20, 30]]


def test_files_of_other_writers_are_part_of_a_stream(table, streams, tmp_path):
    table.spark.sql("SELECT 7 AS X").write.parquet(str(tmp_path / "other"))
    table.sql(f"CALL lake.system.add_files(table => 'a.t', source => '{tmp_path}/other')")
    assert streams.batches(streams.table("a.t")) == [[1, 2, 3, 7]]
    assert streams.batches(streams.table("a.t", startingVersion=4)) == [[7]]


@pytest.mark.adapter
def test_a_stream_reports_how_far_it_is_behind(table, streams):
    frame = streams.table("a.t", maxFilesPerTrigger=1, startingVersion=1)
    query = frame.writeStream.format("noop").trigger(availableNow=True).start()
    query.awaitTermination()
    source = query.recentProgress[0].sources[0]
    assert '"version":3' in source.endOffset.replace(" ", "")
    assert '"version":4' in source.latestOffset.replace(" ", "")
