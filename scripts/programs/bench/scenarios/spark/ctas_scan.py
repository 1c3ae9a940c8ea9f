"""CREATE TABLE … AS SELECT and a full scan through Spark, lakelog against plain Parquet, in alternating rounds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from pyspark.sql import DataFrame

from programs.bench.measure import beside, turns
from programs.bench.places import folder
from programs.bench.scenario import Row
from programs.bench.sparks import spark_on

COLUMNS = """
    id, id % 1000 AS small, CAST(id * 7919 % 1000003 AS INT) AS number,
    (id * 16807 % 2147483647) / 21474836.47D AS price, concat('customer-', id % 5000) AS customer,
    date_add(DATE'2020-01-01', CAST(id % 1500 AS INT)) AS day, timestamp_micros(1600000000000000 + id * 1000003) AS at,
    CAST(id % 100000 AS DECIMAL(12, 2)) AS amount
"""


def measure(rows: int = 5_000_000, rounds: int = 5) -> Iterator[Row]:
    with folder() as place:
        # This is lakelog's default. Spark's is snappy, and a comparison of codecs would say nothing about catalogs.
        spark = spark_on(place / "warehouse", {"spark.sql.parquet.compression.codec": "zstd"})
        parquet = str(place / "parquet")
        source = f"SELECT {COLUMNS} FROM range(0, {rows}, 1, 8)"

        def lakelog_ctas() -> None:
            spark.sql("DROP TABLE IF EXISTS lake.t")
            spark.sql(f"CREATE TABLE lake.t AS {source}")

        def parquet_write() -> None:
            shutil.rmtree(parquet, ignore_errors=True)
            spark.sql(source).write.parquet(parquet)

        def drain(data: DataFrame) -> None:
            data.write.format("noop").mode("overwrite").save()

        writers = {"lakelog": lakelog_ctas, "Parquet": parquet_write}
        scans = {
            "lakelog": lambda: drain(spark.table("lake.t")),
            "Parquet": lambda: drain(spark.read.parquet(parquet)),
        }
        yield from beside(turns(writers, rounds), "Parquet", step="CTAS")
        yield from beside(turns(scans, rounds), "Parquet", step="scan")
        spark.stop()
