"""Streams of changes of a version that only inserts, with and without a comparison: processor time of the JVM.

The first batch of each stream reads the contents of a table. The contenders take turns in a session, so that the ratio
to `none` counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from programs.bench.measure import beside, cpu_s_of, turns
from programs.bench.places import folder
from programs.bench.scenario import Row
from programs.bench.sparks import spark_on

CONTENDERS: dict[str, dict[str, str]] = {
    "none": {"deduplicationMode": "none"},
    "dropCarryovers (default)": {},
    "computeUpdates": {"computeUpdates": "true"},
    "netChanges": {"deduplicationMode": "netChanges"},
}
# Spark needs this version if it nets the changes of a stream itself.
STATES = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def measure(rows: int = 200_000, rounds: int = 3) -> Iterator[Row]:
    with folder() as place:
        settings = {
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.stateStore.providerClass": STATES,
        }
        spark = spark_on(place / "warehouse", settings)
        spark.sql("CREATE TABLE lake.t (id BIGINT, v STRING)")
        spark.sql(f"INSERT INTO lake.t SELECT id, CAST(id AS STRING) FROM range({rows})")
        checkpoints = (place / f"checkpoint {number}" for number in itertools.count())
        streams = {
            name: partial(_stream, spark, options, checkpoints) for name, options in CONTENDERS.items()
        }
        pid = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]

        def processor_s(work: Callable[[], object]) -> float:
            cpu_start_s = cpu_s_of(pid)
            work()
            return cpu_s_of(pid) - cpu_start_s

        yield from beside(turns(streams, rounds, spent=processor_s), "none")
        spark.stop()


def _stream(spark: SparkSession, options: dict[str, str], checkpoints: Iterator[Path]) -> None:
    changes = spark.readStream.options(**options).changes("lake.t")
    writer = changes.writeStream.format("noop").option("checkpointLocation", str(next(checkpoints)))
    writer.trigger(availableNow=True).start().awaitTermination()
