"""OpenLineage's listener in a Spark session: events of statements, with lakelog's tables as datasets, in a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from lakelog.spark import configure

PACKAGE = "io.openlineage:openlineage-spark_2.13:1.53.0"


def session(warehouse: str, events: str) -> SparkSession:
    builder = configure(SparkSession.builder.master("local[2]"), warehouse=warehouse)
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.jars.packages": PACKAGE,
        "spark.extraListeners": "io.openlineage.spark.agent.OpenLineageSparkListener",
        "spark.openlineage.namespace": "shop",
        "spark.openlineage.transport.type": "file",
        "spark.openlineage.transport.location": events,
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main(warehouse: str, events: str) -> None:
    spark = session(warehouse, events)
    spark.sql("CREATE NAMESPACE lake.shop")
    spark.sql("CREATE TABLE lake.shop.orders AS SELECT id, id % 3 AS customer FROM range(100)")
    spark.sql("CREATE TABLE lake.shop.totals (customer BIGINT, orders BIGINT)")
    spark.sql(
        "INSERT INTO lake.shop.totals SELECT customer, count(*) FROM lake.shop.orders GROUP BY customer"
    )
    spark.stop()
    for line in Path(events).read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["eventType"] == "COMPLETE" and (event["inputs"] or event["outputs"]):
            read, written = (
                sorted({f"{each['namespace']} {each['name']}" for each in event[which]})
                for which in ("inputs", "outputs")
            )
            print(f"{event['job']['name']}: {read} -> {written}")


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["/tmp/warehouse", "/tmp/events.jsonl"]))
