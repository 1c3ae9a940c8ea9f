"""INSERT of a row: lakelog with upkeep by writers, which is the default, and without, against Spark's Parquet table.

They take turns. `files` is the number of files in the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from programs.bench.measure import turns, within
from programs.bench.places import folder
from programs.bench.scenario import Row
from programs.bench.sparks import OWN_CATALOG, add_catalog, spark_on


def measure(rounds: int = 40) -> Iterator[Row]:
    with folder() as place:
        own = {key: value.format(folder=place) for key, value in OWN_CATALOG.items()}
        spark = spark_on(place / "lake", own)
        add_catalog(spark, place / "other", "other", maintenance="off")
        tables = {
            "lakelog": "lake.one",
            "lakelog without upkeep": "other.one",
            "Spark's Parquet table": "spark_catalog.default.one",
        }
        for name, table in tables.items():
            provider = "USING parquet" if "Parquet" in name else ""
            spark.sql(f"CREATE TABLE {table} (id BIGINT, name STRING) {provider}")
        inserts = {
            name: partial(spark.sql, f"INSERT INTO {table} VALUES (1, 'one')")
            for name, table in tables.items()
        }
        for name, durations in turns(inserts, rounds, warm_up=10).items():
            live = f"{tables[name]}.files" if "lakelog" in name else f"{tables[name]}"
            files = spark.table(live).count() if "lakelog" in name else len(spark.table(live).inputFiles())
            yield {
                "": name,
                "ms": [duration * 1e3 for duration in durations],
                **within(durations),
                "files": files,
            }
        spark.stop()
