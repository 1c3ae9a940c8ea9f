"""INSERT of one row: lakelog against Spark's own Parquet table."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from programs import story
from programs.bench.measure import median, spark_on, taking_turns


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench insert_one_row", description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as folder:
        spark = spark_on(
            str(Path(folder) / "warehouse"),
            **{
                "spark.sql.warehouse.dir": str(Path(folder) / "spark"),
                "spark.sql.catalogImplementation": "in-memory",
            },
        )
        spark.sql("CREATE NAMESPACE lake.bench")
        spark.sql("CREATE TABLE lake.bench.one (id BIGINT, name STRING)")
        spark.sql("CREATE TABLE spark_catalog.default.one (id BIGINT, name STRING) USING parquet")
        times = taking_turns(
            {
                "lakelog": lambda: spark.sql("INSERT INTO lake.bench.one VALUES (1, 'one')"),
                "Spark's Parquet table": lambda: spark.sql(
                    "INSERT INTO spark_catalog.default.one VALUES (1, 'one')"
                ),
            },
            arguments.rounds,
            warm_up=10,
        )
        lines = [
            [
                name,
                f"{median(spent) * 1000:.0f}",
                f"{min(spent) * 1000:.0f}",
                f"{sorted(spent)[-3] * 1000:.0f}",
            ]
            for name, spent in times.items()
        ]
        title = f"INSERT of one row, {arguments.rounds} alternating rounds"
        story.table(["", "median ms", "best ms", "third worst ms"], lines, title=title)
        spark.stop()


if __name__ == "__main__":
    main()
