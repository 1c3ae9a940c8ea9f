"""Run dbt on a folder: seeds, models, snapshots, tests, documentation; then again with more rows and a changed seed."""

from __future__ import annotations

import sys
from pathlib import Path

from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

from lakelog.spark import configure

HERE = Path(__file__).parent


def session(warehouse: str) -> SparkSession:
    """Return the session that dbt finds. It names tables by schema and table, so lakelog's catalog is the default."""
    builder = configure(SparkSession.builder.master("local[2]"), warehouse=warehouse)
    builder = builder.config("spark.sql.defaultCatalog", "lake").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.catalogImplementation", "in-memory").getOrCreate()
    # The first write makes the warehouse; dbt begins by listing it.
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
    return spark


def dbt(*arguments: str) -> None:
    done = dbtRunner().invoke([*arguments, "--project-dir", str(HERE), "--profiles-dir", str(HERE)])
    if not done.success:
        sys.exit(f"dbt {' '.join(arguments)} failed: {done.exception or ''}")


def main(warehouse: str) -> None:
    spark = session(warehouse)
    for arguments in (["seed"], ["run"], ["snapshot"], ["test"], ["docs", "generate"]):
        dbt(*arguments)
    spark.sql("UPDATE lake.shop.customers SET city = 'Berlin' WHERE id = 3")
    dbt("run", "--vars", "orders: 20")
    dbt("snapshot")
    spark.table("lake.shop.totals").orderBy("customer").show()
    spark.table("lake.shop.customers_history").orderBy("id", "dbt_valid_from").show()
    spark.sql("SELECT version, operation FROM lake.shop.totals.history").show()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "/tmp/warehouse")
