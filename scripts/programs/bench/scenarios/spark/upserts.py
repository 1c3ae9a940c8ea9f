"""Upserts and look-ups of few keys in Spark, with Bloom filters and without: requests for data files on an S3 server.

The keys of the table are in no order, so any file has keys of the whole range. An upsert is a MERGE of --keys keys from
a small table: all new keys, keys of a single file, or keys anywhere. Filters are made for each rate of --fpp, and 0
stands for none. Python writes the rows, and Spark does everything else. The server is versitygw, which logs its
requests. The requests for data files are counted, and the files that they open.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from lakelog.catalog import Catalog
from lakelog.testing.s3a import s3a_settings
from programs.bench.measure import seconds
from programs.bench.places import folder, s3
from programs.bench.scenario import Row, Rows
from programs.bench.sparks import spark_on

GET, HEAD = GETS = ("s3_GetObject", "s3_HeadObject")
WAREHOUSE = "s3://lake/warehouse"
SCHEMA = pa.schema({"k": pa.int64(), "v": pa.int64()})
LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
}


def measure(
    rows: Annotated[int, "of the table"] = 20_000_000,
    files: Annotated[int, "of the table"] = 200,
    keys: Annotated[int, "of an upsert"] = 1000,
    fpp: Annotated[Sequence[str], "rates of false positives"] = ("0", "0.01", "0.0001"),
    input_stream: Annotated[
        str, "fs.s3a.input.stream.type: S3A's own default, which reads ahead and keeps that, or classic"
    ] = "",
) -> Rows:
    with folder() as place, s3(place, access_log=place / "access.log") as server:
        stream = {"spark.hadoop.fs.s3a.input.stream.type": input_stream} if input_stream else {}
        settings = {**s3a_settings(), **stream, **LOCAL}
        spark = spark_on(WAREHOUSE, settings, maintenance="on-demand", **server.options)
        catalog = Catalog(WAREHOUSE, options=server.options)
        for rate in fpp:
            yield from _of_rate(spark, catalog, place / "access.log", rate, rows, files, keys)
        spark.stop()


def _rows(ids: Any) -> pa.Table:
    """Return rows with unordered keys. Each id has a key of its own."""
    numbers = np.asarray(ids, np.uint64)
    with np.errstate(over="ignore"):
        keys = (numbers ^ (numbers >> np.uint64(13))) * np.uint64(0x9E3779B97F4A7C15)
        keys = (keys ^ (keys >> np.uint64(31))) * np.uint64(0xD6E8FEB86659FD93)
    return pa.table([pa.array(keys.view(np.int64)), pa.array(numbers.view(np.int64))], schema=SCHEMA)


def _of_rate(
    spark: SparkSession, catalog: Catalog, log: Path, rate: str, rows: int, files: int, keys: int
) -> Rows:
    name = f"t{rate.replace('.', '_')}"
    filters = {"lakelog.bloom-filter.columns": "k", "lakelog.bloom-filter.fpp": rate} if float(rate) else {}
    table = catalog.create_table(name, SCHEMA, properties=filters)
    for number in range(files):
        table = table.append(_rows(np.arange(number * rows // files, (number + 1) * rows // files)))
    yield f"fpp {rate}: {rows:,} rows in {table.file_count} files of {table.size_bytes / 1e6:,.0f} MB"
    in_a_file = rows // files
    # For each upsert, the ids of its keys.
    upserts = {
        f"upsert of {keys:,} new keys": np.arange(2 * rows, 2 * rows + keys),
        f"upsert of {keys:,} keys of one file": np.arange(3 * in_a_file, 3 * in_a_file + keys),
        f"upsert of 10 keys anywhere, {keys - 10:,} new": np.concatenate(
            [np.arange(10) * (rows // 10) + 7, np.arange(3 * rows, 3 * rows + keys - 10)]
        ),
        f"upsert of {keys:,} keys anywhere": np.arange(keys) * (rows // keys),
        "upsert of 10 new keys": np.arange(5 * rows, 5 * rows + 10),
    }
    for label, row_id in {"look-up": rows // 2, "look-up of nothing": 9 * rows}.items():
        key = _rows([row_id])["k"][0].as_py()
        yield {"fpp": rate, "": label, **_cost(spark, log, f"SELECT v FROM lake.{name} WHERE k = {key}L")}
    for number, (label, ids) in enumerate(upserts.items()):
        catalog.create_table(f"s{name}_{number}", SCHEMA).append(_rows(ids))
        merge = (
            f"MERGE INTO lake.{name} AS t USING lake.s{name}_{number} AS s ON t.k = s.k "
            "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, s.v)"
        )
        yield {"fpp": rate, "": label, **_cost(spark, log, merge)}
    row_count, total = spark.sql(f"SELECT count(*), sum(v) FROM lake.{name}").collect()[0]
    yield f"afterwards {row_count:,} rows, the sum of v is {total}"


def _cost(spark: SparkSession, log: Path, statement: str) -> Row:
    """Return a statement's seconds, the number of data files that it read, and its requests for such files."""
    log_size = log.stat().st_size
    spent_s = seconds(lambda: spark.sql(statement).collect())
    time.sleep(1)  # Waits until the server has written its log.
    with log.open(encoding="utf-8") as lines:
        lines.seek(log_size)
        requests = [line.split() for line in lines if ".parquet" in line]
    counts = Counter(word for words in requests for word in words if word in GETS)
    paths = (word for words in requests if GET in words for word in words if word.endswith(".parquet"))
    opened_files = {path.rsplit("/", 1)[-1] for path in paths}
    return {"s": spent_s, "files": len(opened_files), "GETs": counts[GET], "HEADs": counts[HEAD]}
