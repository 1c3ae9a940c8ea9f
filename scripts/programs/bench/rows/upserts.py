"""Upserts and look-ups of few keys in Spark, with Bloom filters and without: requests for data files on an S3 server.

Nothing orders the keys of the table: any file has some of the whole range. An upsert is a MERGE of --keys keys from a
small table: of keys that are all new, of keys of one file, and of keys anywhere. Filters are made for each rate of
--fpp; 0 stands for none. The server is versitygw, which logs its requests; those for data files are counted.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lakelog.spark import configure
from lakelog.testing.s3a import s3a_settings
from lakelog.testing.versitygw import versitygw
from programs import story

GETS = ("s3_GetObject", "s3_HeadObject")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/bench rows.upserts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=int, default=20_000_000, help="rows of the table (%(default)s)")
    parser.add_argument("--files", type=int, default=200, help="its files (%(default)s)")
    parser.add_argument("--keys", type=int, default=1000, help="keys of an upsert (%(default)s)")
    parser.add_argument("--fpp", default="0,0.01,0.0001", help="rates, with commas (%(default)s)")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lakelog-bench-")))
        server = stack.enter_context(versitygw(folder / "s3", access_log=folder / "access.log"))
        stack.enter_context(server.credentials())
        spark = _session("s3://lake/warehouse", server.options)
        stack.callback(spark.stop)
        for rate in arguments.fpp.split(","):
            _measured(spark, folder / "access.log", arguments, rate)


def _session(warehouse: str, options: Mapping[str, Any]) -> SparkSession:
    settings = s3a_settings()
    builder = SparkSession.builder.master("local[2]").appName("lakelog bench")
    builder = builder.config("spark.jars", settings.pop("spark.jars", ""))
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "4g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        **settings,
    }.items():
        builder = builder.config(name, value)
    session = configure(builder, warehouse=warehouse, maintenance="on-demand", **options).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def _measured(spark: SparkSession, log: Path, arguments: argparse.Namespace, rate: str) -> None:
    rows, files, keys = arguments.rows, arguments.files, arguments.keys
    table = f"lake.t{rate.replace('.', '_')}"
    properties = (
        f"TBLPROPERTIES ('lakelog.bloom-filter.columns' = 'k', 'lakelog.bloom-filter.fpp' = '{rate}')"
        if float(rate)
        else ""
    )
    source = f"SELECT xxhash64(id) AS k, id AS v FROM range(0, {rows}, 1, {files})"
    taken, _, _ = _costs(spark, log, f"CREATE TABLE {table} {properties} AS {source}")
    size = spark.sql(f"SELECT sum(file_size_in_bytes), count(*) FROM {table}.files").collect()[0]
    story.say(f"{table}: {rows:,} rows in {size[1]} files of {size[0] / 1e6:,.0f} MB, in {taken:.0f} s")
    in_a_file = rows // files
    # Of each: the ids whose keys are wanted.
    upserts = {
        f"upsert of {keys:,} new keys": f"range({2 * rows}, {2 * rows + keys})",
        f"upsert of {keys:,} keys of one file": f"range({3 * in_a_file}, {3 * in_a_file + keys})",
        f"upsert of 10 keys anywhere, {keys - 10:,} new": (
            f"(SELECT IF(id < 10, id * {rows // 10} + 7, {3 * rows} + id) AS id FROM range({keys}))"
        ),
        f"upsert of {keys:,} keys anywhere": f"(SELECT id * {rows // keys} AS id FROM range({keys}))",
        "upsert of 10 new keys": f"range({5 * rows}, {5 * rows + 10})",
    }
    for name, wanted in {"look-up": rows // 2, "look-up of nothing": 9 * rows}.items():
        query = f"SELECT v FROM {table} WHERE k = {spark.sql(f'SELECT xxhash64({wanted}L)').collect()[0][0]}L"
        _say(name, *_costs(spark, log, query))
    for name, ids in upserts.items():
        spark.sql(f"CREATE OR REPLACE TABLE lake.s AS SELECT xxhash64(id) AS k, id AS v FROM {ids}").collect()
        merge = (
            f"MERGE INTO {table} AS t USING lake.s AS s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v "
            "WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, s.v)"
        )
        _say(name, *_costs(spark, log, merge))
    found, sum_ = spark.sql(f"SELECT count(*), sum(v) FROM {table}").collect()[0]
    story.say(f"    afterwards {found:,} rows, the sum of v is {sum_}")


def _say(name: str, seconds: float, gets: int, heads: int) -> None:
    story.say(f"    {name:44} {seconds:7.1f} s {gets:8,} GET {heads:8,} HEAD")


def _costs(spark: SparkSession, log: Path, statement: str) -> tuple[float, int, int]:
    """Return seconds, and GETs and HEADs of data files, of a statement."""
    before, start = _counted(log), time.perf_counter()
    spark.sql(statement).collect()
    seconds, after = time.perf_counter() - start, _counted(log)
    gets, heads = (after[name] - before[name] for name in GETS)
    return seconds, gets, heads


def _counted(log: Path) -> Counter[str]:
    lines = (line.split() for line in log.read_text().splitlines() if ".parquet" in line)
    return Counter(word for line in lines for word in line if word in GETS)


if __name__ == "__main__":
    main()
