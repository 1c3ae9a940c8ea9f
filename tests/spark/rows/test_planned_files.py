"""How the files of a scan come to Spark's driver: in parts, kept as numbers, and packed as Spark packs files."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter

import pytest

from lakelog.catalog import Catalog, engine
from lakelog.catalog.core.files import DataFile

pytestmark = pytest.mark.adapter

TWO_AT_A_TIME = """
from lakelog.spark import arrow_streams
arrow_streams.FILES_IN_PART = 2
"""

BETWEEN_PARTS = """
import os, pathlib, signal
from lakelog.spark.handlers import plans
real = plans.files_in_arrow
def disturbed(files, *keys):
    for number, part in enumerate(real(files, *keys)):
        if number == 2 and pathlib.Path({armed!r}).exists():
            pathlib.Path({armed!r}).unlink()
            {what}
        yield part
plans.files_in_arrow = disturbed
"""


def filled(lake):
    """Nine files of three days; some have deleted rows, some the names and constants of another writer."""
    lake.sql(
        "CREATE TABLE lake.t (id BIGINT, day INT) PARTITIONED BY (day) "
        "TBLPROPERTIES ('lakelog.write.delete.mode' = 'merge-on-read')"
    )
    for first in (0, 100):
        lake.sql(f"INSERT INTO lake.t SELECT {first} + id, int(id % 3) FROM range(30)")
    lake.sql("DELETE FROM lake.t WHERE id % 10 = 7")
    lake.sql("INSERT INTO lake.t SELECT 200 + id, int(id % 3) FROM range(30)")


QUERIES = (
    "SELECT day, count(*), sum(id), count(DISTINCT _file), max(_pos) FROM lake.t GROUP BY day",
    "SELECT sum(l.id), count(*) FROM lake.t l JOIN lake.t r ON l.day = r.day AND l.id = r.id + 100",
)


def test_files_that_come_in_parts_are_read_as_those_that_come_together(make_lake, warm, tmp_path):
    lake = make_lake()
    filled(lake)
    parted_lake = make_lake(python=warm.program(tmp_path, TWO_AT_A_TIME))
    for query in QUERIES:
        assert parted_lake.sorted(query) == lake.sorted(query)
    spark = parted_lake.spark
    spark.conf.set("spark.sql.sources.v2.bucketing.enabled", "true")
    try:
        assert parted_lake.sorted(QUERIES[0]) == lake.sorted(QUERIES[0])
        assert parted_lake.frame("SELECT * FROM lake.t").rdd.getNumPartitions() >= 3
    finally:
        spark.conf.unset("spark.sql.sources.v2.bucketing.enabled")
    parted_lake.sql("UPDATE lake.t SET id = id + 1000 WHERE id < 30")
    assert lake.sql("SELECT count(*), sum(int(id >= 1000)) FROM lake.t") == [(84, 27)]
    parted_lake.sql("CALL lake.system.compact('t')")
    assert lake.sql("SELECT count(*), sum(int(id >= 1000)) FROM lake.t") == [(84, 27)]


@pytest.mark.parametrize("what", ["os.kill(os.getpid(), signal.SIGKILL)", "raise OSError('no such luck')"])
def test_an_answer_that_ends_between_its_parts_is_requested_anew_or_is_an_error(
    make_lake, warm, tmp_path, what
):
    armed_path = tmp_path / "armed"
    text = TWO_AT_A_TIME + BETWEEN_PARTS.format(armed=str(armed_path), what=what)
    lake = make_lake(python=warm.program(tmp_path, text))
    filled(lake)
    armed_path.touch()
    if "kill" in what:
        assert lake.sql("SELECT count(*) FROM lake.t WHERE id >= 0") == [(84,)]
    else:
        with pytest.raises(Exception, match="no such luck"):
            lake.sql("SELECT count(*) FROM lake.t WHERE id >= 0")
        assert lake.sql("SELECT count(*) FROM lake.t WHERE id >= 0") == [(84,)]
    assert not armed_path.exists(), "it was never disturbed"


PART_IS_LOST = """
import pathlib
from lakelog.spark import bridge
write_frame = bridge.write_frame
def losing(stream, frame):
    if frame.text == b"+" and pathlib.Path({armed!r}).exists():
        pathlib.Path({armed!r}).unlink()
    else:
        write_frame(stream, frame)
bridge.write_frame = losing
"""


def test_a_part_that_is_lost_is_an_error_and_not_rows_passed_over(make_lake, warm, tmp_path):
    armed_path = tmp_path / "armed"
    text = TWO_AT_A_TIME + PART_IS_LOST.format(armed=str(armed_path))
    lake = make_lake(python=warm.program(tmp_path, text))
    lake.sql("CREATE TABLE lake.t PARTITIONED BY (day) AS SELECT id, int(id % 9) AS day FROM range(90)")
    armed_path.touch()
    with pytest.raises(Exception, match="3 of 4 parts came before the answer to 'plan'"):
        lake.sql("SELECT count(*) FROM lake.t WHERE id >= 0")
    assert lake.sql("SELECT count(*) FROM lake.t WHERE id >= 0") == [(90,)]


def in_the_log_only(warehouse, sizes):
    """Make a table whose files are in its log only: planning opens none."""
    table = Catalog(warehouse, options={"fsync": "off"}).load_table("t")
    write = engine.begin_write(table)
    files = [
        DataFile(
            path=f"data/{write.version:020d}-{write.id}-{at}.parquet",
            size_bytes=size,
            rows=10,
            spec_id=table.spec.id,
            partition={},
            stats={},
            write_id=write.id,
        )
        for at, size in enumerate(sizes)
    ]
    engine.commit_write(table, write, "append", files)


@pytest.mark.parametrize("most", [None, 5])
def test_parts_of_files_are_those_that_spark_makes(lake, most):
    lake.sql("CREATE TABLE lake.t (id BIGINT)")
    chance = random.Random(4)
    sizes = [int(2 ** chance.uniform(0, 12)) for _ in range(60)] + [700] * 20 + [100_000]
    in_the_log_only(lake.warehouse, sizes)
    split_number = 1500
    settings = {
        "spark.sql.files.maxPartitionBytes": split_number,
        "spark.sql.files.openCostInBytes": 40,
        "spark.sql.files.minPartitionNum": 1,
        "spark.sql.files.maxPartitionNum": most,
    }
    spark = lake.spark
    for key, value in settings.items():
        if value is not None:
            spark.conf.set(key, str(value))
    try:
        leaf = lake.frame("SELECT id FROM lake.t")._jdf.queryExecution().sparkPlan().collectLeaves().head()
        ours = [each.files().files() for each in leaf.scan().toBatch().planInputPartitions()]
        split_by_spark = spark._jvm.org.apache.spark.sql.execution.datasources.FilePartition
        parts = [part for files in ours for part in files]
        theirs = split_by_spark.getFilePartitions(
            spark._jsparkSession, spark._jvm.PythonUtils.toSeq(parts), split_number
        )
        theirs = [theirs.apply(at).files() for at in range(theirs.size())]
    finally:
        for key in settings:
            spark.conf.unset(key)

    def lengths(partitions):
        return [[part.length() for part in files] for files in partitions]

    assert lengths(ours) == lengths(theirs)
    assert len(ours) < 10 if most else len(ours) > 60
    flat = [length for files in lengths(ours) for length in files]
    assert flat == sorted(flat, reverse=True)
    assert max(flat) == split_number
    covered_counts: Counter[tuple[str, int]] = Counter()
    for part in parts:
        assert part.start() % split_number == 0
        covered_counts[part.toPath().toString(), part.fileSize()] += part.length()
    assert sorted(covered_counts.values()) == sorted(sizes)
    assert all(size == length for (_, size), length in covered_counts.items())


PROGRAM = """
import sys
from pyspark.sql import SparkSession
from lakelog.spark import configure
warehouse, size = sys.argv[1:]
builder = configure(SparkSession.builder.master("local[2]"), warehouse=warehouse, fsync=False, maintenance="on-demand")
spark = builder.config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
assert spark._jvm.java.lang.Runtime.getRuntime().maxMemory() <= 1 << 30
frame = spark.sql("SELECT id FROM lake.t")
print(frame.rdd.getNumPartitions())
if size == "100":
    print(frame.where("rand() >= 0").take(1))
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.parametrize("size", [100, 50_000_000])
def test_more_than_a_million_files_fit_into_the_memory_that_a_driver_has_by_default(lake, tmp_path, size):
    lake.sql("CREATE TABLE lake.t (id BIGINT)")
    lake.sql("INSERT INTO lake.t VALUES (7)")
    for _ in range(12):
        in_the_log_only(lake.warehouse, [size] * 100_000)
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, lake.warehouse, str(size)], capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    lines = ended.stdout.splitlines()
    # With 4 MiB for opening each, 32 files are read by a task; of those of 50 MB, two.
    assert int(lines[0]) == pytest.approx(1_200_000 / (32 if size == 100 else 2), rel=0.05)
    if size == 100:
        # The only file that there is, is the largest.
        assert lines[1] == "[Row(id=7)]"
