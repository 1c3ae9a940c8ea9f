"""Planning over many files, and how long it delays another session's table load, in milliseconds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from lakelog.catalog import Catalog, col
from programs.bench.data.file_lists import SMALL_SCHEMA, plain_table
from programs.bench.measure import seconds, within
from programs.bench.places import folder
from programs.bench.scenario import Row
from programs.bench.sparks import spark_on

QUESTIONS = {"all files": None, "one id": col("id") == 5_000_500, "one day": col("day") == 7}


def measure(files: int = 100_000, rounds: int = 10) -> Iterator[Row]:
    with folder() as place:
        catalog = Catalog(place / "warehouse", options={"fsync": "off"})
        catalog.create_namespace("bench")
        catalog.create_table("bench.small", SMALL_SCHEMA)
        table = plain_table(catalog, files)
        for name, question in QUESTIONS.items():
            durations = [seconds(partial(table.plan, question)) for _ in range(rounds)]
            yield {"": f"plan in Python, {name}", **within(durations)}
        for name, durations in _spark(place / "warehouse", rounds).items():
            yield {"": name, **within(durations)}


def _spark(warehouse: Path, rounds: int) -> dict[str, list[float]]:
    spark = spark_on(warehouse, {"spark.sql.files.maxPartitionBytes": "128m"})
    other_session = spark.newSession()
    # The catalog itself is called, because Spark's parsing and analysis are not measured here.
    gateway: Any = spark.sparkContext._gateway
    catalog = other_session._jsparkSession.sessionState().catalogManager().catalog("lake")
    namespace = gateway.new_array(gateway.jvm.java.lang.String, 1)
    namespace[0] = "bench"
    small = gateway.jvm.org.apache.spark.sql.connector.catalog.Identifier.of(namespace, "small")
    collectors = list(gateway.jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans())

    def plan() -> None:
        spark.sql("SELECT * FROM lake.bench.big").rdd.getNumPartitions()

    def paused_s() -> float:
        return sum(float(collector.getCollectionTime()) for collector in collectors) / 1000

    def load_s() -> float:
        return seconds(lambda: catalog.loadTable(small))

    plan()
    alone = [load_s() for _ in range(rounds * 3)][rounds:]
    plans: list[float] = []
    planner = threading.Thread(target=lambda: plans.extend(seconds(plan) for _ in range(rounds)))
    planner.start()
    parallel_times, without_pauses = [], []
    while planner.is_alive():
        before_s = paused_s()
        parallel_times.append(load_s())
        # Spark's own objects for 100,000 splits keep the collector busy, which stops the whole JVM.
        without_pauses.append(max(0.0, parallel_times[-1] - (paused_s() - before_s)))
    planner.join()
    spark.stop()
    return {
        "plan through Spark, all files": plans,
        "load another table through Spark, alone": alone,
        "load another table through Spark, beside those plans": parallel_times,
        "the same, less the pauses of the JVM's collector": without_pauses,
    }
