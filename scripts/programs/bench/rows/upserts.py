"""Upserts and look-ups of few keys in Spark, with Bloom filters and without: requests for data files on an S3 server.

Nothing orders the keys of the table: any file has some of the whole range. An upsert is a MERGE of --keys keys from a
small table: of keys that are all new, of keys of one file, and of keys anywhere. Filters are made for each rate of
--fpp; 0 stands for none. The rows are written from Python, and everything else is Spark's. The server is versitygw,
which logs its requests: those for data files are counted, and the files that were opened.
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

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from lakelog.catalog import Catalog
from lakelog.spark import configure
from lakelog.testing.s3a import s3a_settings
from lakelog.testing.versitygw import versitygw
from programs import story

GET, HEAD = GETS = ("s3_GetObject", "s3_HeadObject")
WAREHOUSE = "s3://lake/warehouse"
SCHEMA = pa.schema({"k": pa.int64(), "v": pa.int64()})


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
    parser.add_argument(
        "--input-stream",
        help="fs.s3a.input.stream.type: S3A's own default, which reads ahead and keeps what it has read, or classic",
    )
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lakelog-bench-")))
        server = stack.enter_context(versitygw(folder / "s3", access_log=folder / "access.log"))
        stack.enter_context(server.credentials())
        spark = _session(WAREHOUSE, server.options, arguments.input_stream)
        stack.callback(spark.stop)
        catalog = Catalog(WAREHOUSE, options=server.options)
        for rate in arguments.fpp.split(","):
            _measured(spark, catalog, folder / "access.log", arguments, rate)


def _session(warehouse: str, options: Mapping[str, Any], input_stream: str | None) -> SparkSession:
    settings = s3a_settings()
    if input_stream is not None:
        settings["spark.hadoop.fs.s3a.input.stream.type"] = input_stream
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


def _rows(ids: Any) -> pa.Table:
    """Return rows with keys that lie in no order: each id has one, and no other id has it."""
    numbers = np.asarray(ids, np.uint64)
    with np.errstate(over="ignore"):
        keys = (numbers ^ (numbers >> np.uint64(13))) * np.uint64(0x9E3779B97F4A7C15)
        keys = (keys ^ (keys >> np.uint64(31))) * np.uint64(0xD6E8FEB86659FD93)
    return pa.table([pa.array(keys.view(np.int64)), pa.array(numbers.view(np.int64))], schema=SCHEMA)


def _measured(
    spark: SparkSession, catalog: Catalog, log: Path, arguments: argparse.Namespace, rate: str
) -> None:
    rows, files, keys = arguments.rows, arguments.files, arguments.keys
    name = f"t{rate.replace('.', '_')}"
    table = f"lake.{name}"
    start = time.perf_counter()
    filters = {"lakelog.bloom-filter.columns": "k", "lakelog.bloom-filter.fpp": rate} if float(rate) else {}
    made = catalog.create_table(name, SCHEMA, properties=filters)
    for number in range(files):
        made = made.append(_rows(np.arange(number * rows // files, (number + 1) * rows // files)))
    taken = time.perf_counter() - start
    story.say(
        f"{table}: {rows:,} rows in {made.file_count} files of {made.size_bytes / 1e6:,.0f} MB, in {taken:.0f} s"
    )
    in_a_file = rows // files
    # Of each: the ids whose keys are wanted.
    upserts = {
        f"upsert of {keys:,} new keys": np.arange(2 * rows, 2 * rows + keys),
        f"upsert of {keys:,} keys of one file": np.arange(3 * in_a_file, 3 * in_a_file + keys),
        f"upsert of 10 keys anywhere, {keys - 10:,} new": np.concatenate(
            [np.arange(10) * (rows // 10) + 7, np.arange(3 * rows, 3 * rows + keys - 10)]
        ),
        f"upsert of {keys:,} keys anywhere": np.arange(keys) * (rows // keys),
        "upsert of 10 new keys": np.arange(5 * rows, 5 * rows + 10),
    }
    for name, wanted in {"look-up": rows // 2, "look-up of nothing": 9 * rows}.items():
        key = _rows([wanted])["k"][0].as_py()
        _say(name, *_costs(spark, log, f"SELECT v FROM {table} WHERE k = {key}L"))
    for number, (name, ids) in enumerate(upserts.items()):
        source = f"s{rate.replace('.', '_')}_{number}"
        catalog.create_table(source, SCHEMA).append(_rows(ids))
        merge = (
            f"MERGE INTO {table} AS t USING lake.{source} AS s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v "
            "WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, s.v)"
        )
        _say(name, *_costs(spark, log, merge))
    found, sum_ = spark.sql(f"SELECT count(*), sum(v) FROM {table}").collect()[0]
    story.say(f"    afterwards {found:,} rows, the sum of v is {sum_}")


def _say(name: str, seconds: float, files: int, gets: int, heads: int) -> None:
    story.say(f"    {name:44} {seconds:7.1f} s {files:6,} files {gets:8,} GET {heads:8,} HEAD")


def _costs(spark: SparkSession, log: Path, statement: str) -> tuple[float, int, int, int]:
    """Return the seconds of a statement, of how many data files it got bytes, and its GETs and HEADs of such files."""
    seen, start = log.stat().st_size, time.perf_counter()
    spark.sql(statement).collect()
    seconds = time.perf_counter() - start
    time.sleep(1)  # until the server has written its log
    with log.open(encoding="utf-8") as lines:
        lines.seek(seen)
        asked = [line.split() for line in lines if ".parquet" in line]
    counts = Counter(word for words in asked for word in words if word in GETS)
    paths = (word for words in asked if GET in words for word in words if word.endswith(".parquet"))
    opened = {path.rsplit("/", 1)[-1] for path in paths}
    return seconds, len(opened), counts[GET], counts[HEAD]


if __name__ == "__main__":
    main()
