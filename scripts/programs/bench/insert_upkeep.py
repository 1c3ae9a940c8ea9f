"""What upkeep by writers costs an INSERT in Spark: one-row statements in turns, into tables of two catalogs.

    scripts/bench insert_upkeep

One catalog has `maintenance` auto, the other one off. Each round is eight INSERTs into either: so each round of the
first has one look for files that are due. Printed are medians and means, and what is there in the end.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

from lakelog.spark import configure, spark_conf

ROUNDS = 16
EACH = 8


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as folder:
        place = str(Path(folder) / "lake")
        quiet = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        spark = configure(quiet, place, name="auto", maintenance="auto").getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        for key, value in spark_conf(place, name="without", maintenance="off").items():
            if key.startswith("spark.sql.catalog."):
                spark.conf.set(key, value)
        took: dict[str, list[float]] = {"auto": [], "without": []}
        for name in took:
            spark.sql(f"CREATE TABLE {name}.of_{name} (id BIGINT, name STRING)")
            for id in range(EACH):
                spark.sql(f"INSERT INTO {name}.of_{name} VALUES ({id}, 'warm')")
        for _ in range(ROUNDS):
            for name, found in took.items():
                for id in range(EACH):
                    began_s = time.perf_counter()
                    spark.sql(f"INSERT INTO {name}.of_{name} VALUES ({id}, 'n{id}')")
                    found.append(time.perf_counter() - began_s)
        for name, found in took.items():
            files = spark.sql(f"SELECT count(*) FROM {name}.of_{name}.files").first()
            print(
                f"{name}: {len(found)} INSERTs, median {statistics.median(found) * 1000:.1f} ms, "
                f"mean {statistics.mean(found) * 1000:.1f} ms, slowest {max(found) * 1000:.1f} ms, "
                f"{files[0] if files else '?'} files"
            )
        began_s = time.perf_counter()
        spark.stop()
        print(f"the session's end took {time.perf_counter() - began_s:.2f} s")


if __name__ == "__main__":
    main()
