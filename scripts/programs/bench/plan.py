"""Planning over 100,000 files, and how long it holds up another session's table load."""

from __future__ import annotations

import argparse
import tempfile
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelog.catalog import Catalog, Table, col
from lakelog.catalog.core.files import ColumnStats, DataFile
from programs import story
from programs.bench.measure import median, seconds, spark_on

SCHEMA = pa.schema({"id": pa.int64(), "day": pa.int32(), "name": pa.string()})


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench plan", description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as folder:
        warehouse = str(Path(folder) / "warehouse")
        catalog = Catalog(warehouse, options={"fsync": "off"})
        catalog.create_namespace("bench")
        catalog.create_table("bench.small", SCHEMA)
        table = big_table(catalog, arguments.files)
        lines = _python(table, arguments.rounds) + _spark(warehouse, arguments.rounds)
    story.table(
        ["", "median ms", "95 % within ms", "worst ms"], lines, title=f"A table of {arguments.files:,} files"
    )


def big_table(catalog: Catalog, number: int) -> Table:
    """Make a table whose files exist in its log only: planning never opens them."""
    table = catalog.create_table("bench.big", SCHEMA, partition_by=["day"])
    ids = {field.name: field.id for field in table.schema.fields}
    partition = table.spec.fields[0].id
    step = 10_000
    for first in range(0, number, step):
        write = table.begin_write()
        files = [
            DataFile(
                path=f"data/{write.id}-{at}.parquet",
                size_bytes=50_000_000,
                rows=1000,
                spec_id=table.spec.id,
                partition={partition: at % 1000},
                stats={
                    ids["id"]: ColumnStats(nulls=0, min=at * 1000, max=at * 1000 + 999),
                    ids["name"]: ColumnStats(nulls=0, min=f"name-{at:09}", max=f"name-{at:09}-z"),
                },
                write_id=write.id,
            )
            for at in range(first, min(first + step, number))
        ]
        table = table.commit_write(write, "append", files)
    return table


def _python(table: Table, rounds: int) -> list[list[str]]:
    questions = {
        "plan in Python, all files": None,
        "plan in Python, one id": col("id") == 5_000_500,
        "plan in Python, one day": col("day") == 7,
    }
    return [
        _line(name, [seconds(partial(table.plan, question)) for _ in range(rounds)])
        for name, question in questions.items()
    ]


def _spark(warehouse: str, rounds: int) -> list[list[str]]:
    spark = spark_on(warehouse, **{"spark.sql.files.maxPartitionBytes": "128m"})
    other = spark.newSession()
    # Called on the catalog itself: what Spark does around it (parsing, analysis) is not measured here.
    gateway: Any = spark.sparkContext._gateway
    catalog = other._jsparkSession.sessionState().catalogManager().catalog("lake")
    namespace = gateway.new_array(gateway.jvm.java.lang.String, 1)
    namespace[0] = "bench"
    small = gateway.jvm.org.apache.spark.sql.connector.catalog.Identifier.of(namespace, "small")
    spark.sql("SELECT * FROM lake.bench.big").rdd.getNumPartitions()

    collectors = list(gateway.jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans())

    def paused() -> float:
        return sum(float(collector.getCollectionTime()) for collector in collectors) / 1000

    def load() -> float:
        return seconds(lambda: catalog.loadTable(small))

    alone = [load() for _ in range(rounds * 3)][rounds:]
    plans: list[float] = []
    done = threading.Event()

    def keep_planning() -> None:
        for _ in range(rounds):
            plans.append(seconds(lambda: spark.sql("SELECT * FROM lake.bench.big").rdd.getNumPartitions()))
        done.set()

    planner = threading.Thread(target=keep_planning)
    planner.start()
    beside, without_pauses = [], []
    while not done.is_set():
        before = paused()
        beside.append(load())
        # Spark's own objects for 100,000 splits keep the JVM's collector busy, which stops everything in it.
        without_pauses.append(max(0.0, beside[-1] - (paused() - before)))
    planner.join()
    spark.stop()
    return [
        _line("plan through Spark, all files", plans),
        _line("load another table through Spark, alone", alone),
        _line("load another table through Spark, beside those plans", beside),
        _line("the same, less the pauses of the JVM's collector", without_pauses),
    ]


def _line(name: str, spent: list[float]) -> list[str]:
    slow = sorted(spent)[int(len(spent) * 0.95)]
    return [name, *(f"{value * 1000:.1f}" for value in (median(spent), slow, max(spent)))]


if __name__ == "__main__":
    main()
