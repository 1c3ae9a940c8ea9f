"""A streaming query whose Spark is killed in the middle of a batch, and another that goes on from its checkpoint."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import pytest
from tests.spark.hooks import HOOK
from tests.spark.sessions import wrapper

# Kills Spark, of which this is a child, when the second batch is to be committed: before or after that happens.
DEADLY = (
    HOOK
    + """
import os, signal, time
def deadly(commit):
    def call(at, asked):
        if asked.batch and asked.batch.number == 1:
            if {after!r}:
                commit(at, asked)
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(600)
        return commit(at, asked)
    return call
hook("commit_write", deadly)
"""
)

COPY = """
import sys
from pyspark.sql import SparkSession
from lakelog.spark import spark_conf
from lakelog.spark.jar import jar_path
warehouse, python, checkpoint = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
how = {"python": python, "fsync": False, "maintenance": "on-demand"}
for key, value in spark_conf(warehouse, jar=str(jar_path()), **how).items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
frame = spark.readStream.option("maxFilesPerTrigger", 1).table("lake.a.s")
writer = frame.writeStream.option("checkpointLocation", checkpoint).trigger(availableNow=True)
writer.toTable("lake.a.t").awaitTermination()
"""


@pytest.mark.parametrize("after", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_spark_that_is_killed_around_a_commit_leaves_no_batch_out_and_none_twice(
    lake, streams, tmp_path, after
):
    lake.sql("CREATE NAMESPACE lake.a")
    for table in "st":
        lake.sql(f"CREATE TABLE lake.a.{table} (x INT)")
    for value in range(4):
        lake.sql(f"INSERT INTO lake.a.s VALUES ({value})")
    python = wrapper(tmp_path, DEADLY.format(after=after))
    # In a group of its own, for a Spark that is killed leaves a driver behind that waits for it.
    process = subprocess.Popen(
        [sys.executable, "-c", COPY, lake.warehouse, python, streams.checkpoint("c")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, words = process.communicate(timeout=240)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode != 0, words
    rows = sorted(lake.catalog.load_table("a.t").to_arrow()["x"].to_pylist())
    assert rows == ([0, 1] if after else [0])
    streams.copy(streams.table("a.s", maxFilesPerTrigger=1), "a.t")
    assert lake.sorted("SELECT * FROM lake.a.t") == lake.sorted("SELECT * FROM lake.a.s")
