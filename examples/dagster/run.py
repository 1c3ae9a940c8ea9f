"""Two assets in lakelog's tables, one of them by days: run, run again for a day, and read as they were before."""

import sys

import pyarrow as pa
import pyarrow.compute as pc
from dagster import (
    AssetCheckResult,
    AssetExecutionContext,
    AssetIn,
    DagsterInstance,
    DailyPartitionsDefinition,
    asset,
    asset_check,
    materialize,
)  # fmt: skip
from lake import LakeIOManager

from lakelog.catalog import Catalog

DAYS = DailyPartitionsDefinition(start_date="2026-01-01", end_date="2026-01-04")
LATE = {"2026-01-02": 3}
"""Orders that were not there yet when their day ran for the first time."""


@asset(partitions_def=DAYS, metadata={"partition_column": "day"})
def orders(context: AssetExecutionContext) -> pa.Table:
    day = context.partition_key
    count = 2 + (LATE[day] if context.run.tags.get("late") == "yes" else 0)
    return pa.table(
        {
            "day": [day] * count,
            "customer": ["ada", "grace", "joan", "ada", "alan"][:count],
            "amount": [10.0] * count,
        }
    )


@asset(ins={"orders": AssetIn()})
def totals(orders: pa.Table) -> pa.Table:
    summed = orders.group_by("customer").aggregate([("amount", "sum"), ("day", "count")])
    return summed.rename_columns({"amount_sum": "amount", "day_count": "orders"}).sort_by("customer")


@asset_check(asset=totals)
def no_total_is_negative(totals: pa.Table) -> AssetCheckResult:
    return AssetCheckResult(passed=bool(pc.all(pc.greater_equal(totals["amount"], 0)).as_py()))


def run(what: list, resources: dict, **more: object) -> None:
    with DagsterInstance.ephemeral() as instance:
        done = materialize(what, resources=resources, instance=instance, **more)
        for event in done.get_asset_materialization_events():
            facts = event.materialization.metadata
            key = event.partition or "all"
            print(f"{facts['table'].value} {key}: version {facts['lakelog_version'].value}")
        for check in done.get_asset_check_evaluations():
            print(f"{check.check_name}: {'passed' if check.passed else 'failed'}")


def main(warehouse: str) -> None:
    resources = {"io_manager": LakeIOManager(warehouse=warehouse, namespace="shop")}
    for day in DAYS.get_partition_keys():
        run([orders], resources, partition_key=day)
    # Not materialized here: read from its table.
    everything = [totals, orders.to_source_asset(), no_total_is_negative]
    run(everything, resources, selection=[totals])
    run([orders], resources, partition_key="2026-01-02", tags={"late": "yes"})
    run(everything, resources, selection=[totals])
    table = Catalog(warehouse).load_table("shop.totals")
    for version in (table.version - 1, table.version):
        print(f"version {version}: {table.at(version=version).to_arrow().to_pylist()}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "/tmp/warehouse")
