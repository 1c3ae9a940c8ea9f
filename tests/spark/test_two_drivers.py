"""Two Spark drivers, each with its JVM, append to one table on S3 at the same time: by default they propose there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from unittest.mock import patch

import pyarrow as pa
import pytest
from tests.processes.faulty_proxy import Chance, faulty_proxy

from lakelog.catalog import Catalog
from lakelog.log.changes import combined_ids
from lakelog.testing.moto_server import S3Server

pytestmark = [pytest.mark.s3, pytest.mark.slow]

THREADS, INSERTS = 6, 8
PUT_S = 0.06

DRIVER = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
from pyspark.sql import SparkSession
from lakelog.spark import spark_conf
from lakelog.testing.s3a import s3a_settings

asked = json.loads(sys.argv[1])
conf, s3a = spark_conf(asked["warehouse"], s3a=False, **asked["options"]), s3a_settings()
conf["spark.jars"] = ",".join(filter(None, [conf["spark.jars"], s3a.pop("spark.jars", "")]))
builder = SparkSession.builder.master("local[4]")
for key, value in {
    "spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1", "spark.sql.shuffle.partitions": "1", **conf, **s3a,
}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
spark.sql("SELECT count(*) FROM lake.t").collect()
print("ready", flush=True)
sys.stdin.readline()

def work(thread):
    for number in range(asked["inserts"]):
        id = asked["first"] + 100 * thread + number
        spark.sql(f"INSERT INTO lake.t VALUES ({id}, '{asked['name']}')")

with ThreadPoolExecutor(asked["threads"]) as threads:
    list(threads.map(work, range(asked["threads"])))
spark.stop()
"""


class SlowPuts(Chance):
    """Holds each conditional PUT for as long as S3 takes."""

    def fault(self, command: str, conditional: bool) -> str:
        return "latency" if command == "PUT" and conditional else ""

    def seconds(self, at_most: float) -> float:
        return PUT_S


def test_two_drivers_share_versions_of_one_table_on_s3(lakelog_s3: S3Server, tmp_path) -> None:
    warehouse = f"s3://lakelog/drivers-{tmp_path.name}"
    catalog = Catalog(warehouse, options=lakelog_s3.options)
    table = catalog.create_table("t", pa.schema({"id": pa.int64(), "by": pa.string()}))
    with patch("lakelog.log.placing.RACES_BEFORE_PROPOSING", 0):
        table.append(
            pa.table({"id": [-1], "by": ["first"]})
        )  # which marks the log: the test is not to wait for that
    with faulty_proxy(lakelog_s3.endpoint, SlowPuts(1)) as proxy:
        options = {
            "endpoint": proxy.endpoint,
            "region": lakelog_s3.options["region"],
            "path_style": lakelog_s3.options["path_style"] == "true",
        }
        drivers = [
            subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    DRIVER,
                    json.dumps(
                        {
                            "warehouse": warehouse,
                            "options": options,
                            "name": name,
                            "first": first,
                            "threads": THREADS,
                            "inserts": INSERTS,
                        }
                    ),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "SPARK_USER": name, "HADOOP_USER_NAME": name},
            )
            for name, first in (("one", 1_000), ("two", 2_000))
        ]
        try:
            for driver in drivers:
                assert driver.stdout is not None and driver.stdout.readline() == "ready\n"
            for driver in drivers:
                assert driver.stdin is not None
                driver.stdin.write("go\n")
                driver.stdin.flush()
            assert [driver.wait(240) for driver in drivers] == [0, 0]
        finally:
            for driver in drivers:
                driver.kill()
                driver.communicate()
    rows = Catalog(warehouse, options=lakelog_s3.options).load_table("t").to_arrow().to_pylist()
    firsts = [
        (first + 100 * thread + number, name)
        for name, first in (("one", 1_000), ("two", 2_000))
        for thread in range(THREADS)
        for number in range(INSERTS)
    ]
    assert sorted((row["id"], row["by"]) for row in rows) == sorted([(-1, "first"), *firsts])
    head = catalog.load_table("t").table_head
    assert head.version - 2 < len(firsts)
    combined_commits = [commit for commit in head.commits() if combined_ids(commit)]
    assert any(len({change.writer["user"] for change in commit.changes}) > 1 for commit in combined_commits)
    assert not [finding for finding in catalog.fsck().found if finding.severity.name != "NOTE"]
