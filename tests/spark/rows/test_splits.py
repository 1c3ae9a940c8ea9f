"""How files are split: by all files of a scan, however Spark wants them apart."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

pytestmark = pytest.mark.adapter

BY_KEYS = "spark.sql.sources.v2.bucketing.enabled"
FILES = 12


@contextmanager
def settings(spark, **values):
    """Four tasks at least for the files of a scan, whose opening is taken to cost nothing."""
    wanted = {"filesMinPartitionNum": "4", "openCostInBytes": "1", "maxPartitionBytes": "1g", **values}
    names = {
        "filesMinPartitionNum": "spark.sql.files.minPartitionNum",
        "openCostInBytes": "spark.sql.files.openCostInBytes",
        "maxPartitionBytes": "spark.sql.files.maxPartitionBytes",
        "byKeys": BY_KEYS,
        "broadcast": "spark.sql.autoBroadcastJoinThreshold",
        "adaptive": "spark.sql.adaptive.enabled",
    }
    for key, value in wanted.items():
        spark.conf.set(names[key], value)
    try:
        yield
    finally:
        for key in wanted:
            spark.conf.unset(names[key])


def tasks(frame):
    return frame.rdd.getNumPartitions()


@pytest.fixture
def days(lake):
    """Twelve files of about the same size, one a day."""
    lake.sql(
        "CREATE TABLE lake.t (id BIGINT, day INT) PARTITIONED BY (day) "
        "TBLPROPERTIES ('lakelog.write.delete.mode' = 'merge-on-read')"
    )
    lake.sql(f"INSERT INTO lake.t SELECT id, int(id % {FILES}) FROM range({FILES * 100})")
    return lake


def test_many_partitions_make_no_more_parts_of_a_file_than_one_would(days):
    with settings(days.spark, byKeys="false"):
        assert tasks(days.frame("SELECT * FROM lake.t")) in (4, 5)
    with settings(days.spark, byKeys="true"):
        assert tasks(days.frame("SELECT * FROM lake.t")) == FILES
        # Of one file alone, each task reads a part.
        assert tasks(days.frame("SELECT * FROM lake.t WHERE day = 3")) in (4, 5)


def test_files_with_deleted_rows_are_split_as_the_others_are(days):
    days.sql("DELETE FROM lake.t WHERE day < 6 AND id % 5 = 0")
    with settings(days.spark, byKeys="false"):
        frame = days.frame("SELECT id FROM lake.t")
        assert tasks(frame) <= 6
        assert frame.count() == 1200 - 120


def test_parts_of_one_partition_are_joined_with_parts_of_the_same_one(days):
    days.sql("CREATE TABLE lake.u (id BIGINT, day INT) PARTITIONED BY (day)")
    days.sql("INSERT INTO lake.u SELECT * FROM lake.t")
    size = min(row[0] for row in days.sql("SELECT file_size_in_bytes FROM lake.t.files"))
    query = "SELECT count(*), sum(t.id), sum(u.id) FROM lake.t JOIN lake.u USING (day)"
    rows = days.sql(query)
    with settings(
        days.spark, maxPartitionBytes=str(size // 3), byKeys="true", broadcast="-1", adaptive="false"
    ):
        assert tasks(days.frame("SELECT * FROM lake.t")) >= 3 * FILES
        frame = days.frame(query)
        assert "Exchange hashpartitioning" not in frame._jdf.queryExecution().executedPlan().toString()
        assert [tuple(row) for row in frame.collect()] == rows
