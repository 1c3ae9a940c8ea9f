"""CREATE TABLE … AS SELECT and a full scan, lakelog against plain Parquet, both through Spark."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame

from programs import story
from programs.bench.measure import median, spark_on, taking_turns

COLUMNS = """
    id, id % 1000 AS small, CAST(id * 7919 % 1000003 AS INT) AS number,
    (id * 16807 % 2147483647) / 21474836.47D AS price, concat('customer-', id % 5000) AS customer,
    date_add(DATE'2020-01-01', CAST(id % 1500 AS INT)) AS day, timestamp_micros(1600000000000000 + id * 1000003) AS at,
    CAST(id % 100000 AS DECIMAL(12, 2)) AS amount
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench ctas_scan", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as folder:
        _run(Path(folder), arguments.rows, arguments.rounds)


def _run(folder: Path, rows: int, rounds: int) -> None:
    # lakelog's default; Spark's own is snappy, and comparing two codecs would say nothing about a catalog.
    spark = spark_on(str(folder / "warehouse"), **{"spark.sql.parquet.compression.codec": "zstd"})
    parquet = str(folder / "parquet")
    source = f"SELECT {COLUMNS} FROM range(0, {rows}, 1, 8)"
    spark.sql("CREATE NAMESPACE lake.bench")

    def lakelog_ctas() -> None:
        spark.sql("DROP TABLE IF EXISTS lake.bench.t")
        spark.sql(f"CREATE TABLE lake.bench.t AS {source}")

    def parquet_write() -> None:
        shutil.rmtree(parquet, ignore_errors=True)
        spark.sql(source).write.parquet(parquet)

    def drain(data: DataFrame) -> None:
        data.write.format("noop").mode("overwrite").save()

    written = taking_turns({"lakelog": lakelog_ctas, "parquet": parquet_write}, rounds)
    scanned = taking_turns(
        {
            "lakelog": lambda: drain(spark.table("lake.bench.t")),
            "parquet": lambda: drain(spark.read.parquet(parquet)),
        },
        rounds,
    )
    _report(rows, {"CTAS": written, "scan": scanned})
    spark.stop()


def _report(rows: int, results: dict[str, dict[str, list[float]]]) -> None:
    lines = []
    for name, times in results.items():
        ours, theirs = median(times["lakelog"]), median(times["parquet"])
        pairs = [one / other for one, other in zip(times["lakelog"], times["parquet"], strict=True)]
        lines.append(
            [
                name,
                f"{ours:.2f}",
                f"{theirs:.2f}",
                f"{ours / theirs:.2f}",
                f"{min(pairs):.2f}–{max(pairs):.2f}",
            ]
        )
    title = f"{rows:,} rows of 8 columns, medians of {len(results['scan']['lakelog'])} alternating rounds"
    story.table(["", "lakelog s", "Parquet s", "ratio", "ratios of single rounds"], lines, title=title)


if __name__ == "__main__":
    main()
