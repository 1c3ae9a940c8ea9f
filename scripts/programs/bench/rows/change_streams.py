"""Streams of changes of a version that only inserts, with changes compared and not: processor time of the JVM.

Each stream reads the contents of a table as its first batch. The contenders take turns in one session, so that the
ratio to `none` counts.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from programs import story
from programs.bench.measure import median, spark_on

CONTENDERS: dict[str, dict[str, str]] = {
    "none": {"deduplicationMode": "none"},
    "dropCarryovers (default)": {},
    "computeUpdates": {"computeUpdates": "true"},
    "netChanges": {"deduplicationMode": "netChanges"},
}
# Where Spark itself nets the changes of a stream, it needs this one.
STATES = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/bench rows.change_streams",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=int, default=200_000, help="rows of each version (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; the median counts (%(default)s)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as name:
        spark = spark_on(
            str(Path(name) / "warehouse"),
            **{"spark.sql.shuffle.partitions": "2", "spark.sql.streaming.stateStore.providerClass": STATES},
        )
        spark.sql("CREATE TABLE lake.t (id BIGINT, v STRING)")
        rows = f"SELECT id, CAST(id AS STRING) FROM range({arguments.rows})"
        spark.sql(f"INSERT INTO lake.t {rows}")
        spent: dict[str, list[float]] = {contender: [] for contender in CONTENDERS}
        for number in range(arguments.rounds + 1):
            for contender, options in CONTENDERS.items():
                used = _stream(spark, options, Path(name) / f"{contender} {number}")
                if number:
                    spent[contender].append(used)
        plain = median(spent["none"])
        lines = [
            [contender, f"{median(times):.2f}", f"{median(times) / plain:.2f}"]
            for contender, times in spent.items()
        ]
        title = f"A stream's first {arguments.rows:,} rows, as changes; seconds of processor"
        story.table(["compared", "s", "of none"], lines, title=title)
        spark.stop()


def _stream(spark: SparkSession, options: dict[str, str], checkpoint: Path) -> float:
    changes = spark.readStream.options(**options).changes("lake.t")
    writer = changes.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    begun = _processor_s(spark)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return _processor_s(spark) - begun


def _processor_s(spark: SparkSession) -> float:
    """Return the processor time that the JVM has used."""
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
