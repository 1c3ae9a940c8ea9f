"""Iceberg's part of `scripts/bench plans_beside --spark`: plans of a table by the place of its metadata.

It runs in the peers' environment and imports nothing of lakelog. Standard input is one object: `settings` of the
session, `place`, `questions` as texts by name, `rounds` and `warm_up`. The answer is one, too: of each question the
tasks, and milliseconds `cold`, of a table loaded anew, and `again`, of the same one.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession


def main() -> None:
    answers = sys.stdout
    sys.stdout = sys.stderr
    asked = json.load(sys.stdin)
    builder = SparkSession.builder.master("local[2]").appName("lakelog bench")
    for name, value in asked["settings"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.sql(
        "CREATE TABLE ice.bench.t (day INT, id BIGINT, customer BIGINT) USING iceberg PARTITIONED BY (day)"
    )
    spark.sql("INSERT INTO ice.bench.t SELECT int(id % 10), id, id FROM range(100)")
    for number in range(asked["warm_up"]):
        _planned(spark.table("ice.bench.t").where(f"day = {number % 10}"))
    found: dict[str, dict[str, Any]] = {}
    for question, text in asked["questions"].items():
        times: dict[str, Any] = {"cold": [], "again": [], "tasks": 0}
        for number in range(1 + asked["rounds"]):
            gc.collect()
            begun = time.perf_counter()
            table = spark.read.format("iceberg").load(asked["place"])
            times["tasks"] = _planned(table.where(text))
            cold = time.perf_counter() - begun
            begun = time.perf_counter()
            _planned(table.where(text))
            again = time.perf_counter() - begun
            if number:
                times["cold"].append(cold * 1000)
                times["again"].append(again * 1000)
        found[question] = times
    print(json.dumps(found), file=answers, flush=True)
    spark.stop()


def _planned(frame: DataFrame) -> int:
    jvm: Any = frame._jdf
    return int(jvm.queryExecution().toRdd().getNumPartitions())


if __name__ == "__main__":
    main()
