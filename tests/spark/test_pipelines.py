"""Runs of Spark's declarative pipelines refresh a materialized view in one version, or leave it as it is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from tests.spark.servers import answer_of_client

from lakelog.catalog import Catalog

pytest.importorskip("yaml", reason="pipelines need PySpark's extra: pip install 'pyspark[pipelines]'")
pytestmark = [
    pytest.mark.adapter,
    pytest.mark.skipif(
        tuple(int(part) for part in pyspark.__version__.split(".")[:2]) < (4, 2),
        reason="Spark 4.1 drops a view and creates it again in each run, and 4.0 has no pipelines",
    ),
]

CLIENT = """
    import json, threading
    from pathlib import Path
    from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
    from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph, handle_pipeline_events, start_run
    from pyspark.sql import SparkSession

    def started(sql, storage, full=False):
        spark = SparkSession.builder.remote({address!r}).create()
        try:
            graph = create_dataflow_graph(spark, default_catalog="lake", default_database="shop", sql_conf={{}})
            SparkConnectGraphElementRegistry(spark, graph).register_sql(sql, Path("shop.sql"))
            handle_pipeline_events(start_run(
                spark, graph, full_refresh=[], full_refresh_all=full, refresh=[], dry=False, storage=storage))
            return "done"
        except Exception as error:
            return str(error)
        finally:
            spark.stop()

    outcomes = []
    for step in json.loads({steps!r}):
        if step == "insert":
            spark = SparkSession.builder.remote({address!r}).create()
            spark.sql("INSERT INTO lake.shop.orders VALUES (4, 40)").collect()
            spark.stop()
        elif isinstance(step, list):
            threads = [threading.Thread(target=lambda s=s, n=n: outcomes.append(started(s, {storage!r} + str(n))))
                       for n, s in enumerate(step)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
        else:
            outcomes.append(started(step["sql"], {storage!r}, step.get("full", False)))
    print("OUT", json.dumps(outcomes))
"""

LARGE = "CREATE STREAMING TABLE large AS SELECT * FROM STREAM lake.shop.orders WHERE amount >= 20;\n"
TOTALS = "CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS orders, "
FIRST = f"{LARGE}{TOTALS}sum(amount) AS amount FROM large"
OTHER_COLUMNS = f"{LARGE}{TOTALS}max(amount) AS top, min(id) AS id FROM large"
FAILS = f"{LARGE}{TOTALS}max(amount) div (count(*) - 3) AS top FROM large"
OTHER_TYPES = f"{LARGE}{TOTALS}string(max(amount)) AS top, min(id) AS id FROM large"
CLUSTERED = "CREATE MATERIALIZED VIEW ordered CLUSTER BY (id) AS SELECT * FROM lake.shop.orders"
ALONE = f"{TOTALS}max(amount) AS top, min(id) AS id FROM lake.shop.orders"


def outcomes_of(tmp_path: Path, steps: list[object]) -> list[str]:
    """Run pipelines one after the other, or those of a list at once, on one server; return what became of each."""
    outcomes: list[str] = answer_of_client(
        CLIENT, tmp_path, steps=json.dumps(steps), storage=(tmp_path / "storage").as_uri()
    )
    return outcomes


def test_a_refresh_is_one_version_and_a_run_that_fails_leaves_the_view(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path / "lake"))
    catalog.create_namespace("shop")
    orders = catalog.create_table("shop.orders", pa.schema({"id": pa.int64(), "amount": pa.int64()}))
    orders.append(pa.table({"id": [1, 2, 3], "amount": [10, 20, 30]}))
    steps: list[object] = [
        {"sql": FIRST}, "insert", {"sql": FIRST}, {"sql": OTHER_COLUMNS}, {"sql": FAILS},
        {"sql": OTHER_COLUMNS, "full": True}, {"sql": OTHER_TYPES}, {"sql": CLUSTERED}, [ALONE, ALONE],
    ]  # fmt: skip
    outcomes = outcomes_of(tmp_path, steps)
    assert re.search("leave CLUSTER BY out|Invalid partitioning transform", outcomes.pop(6))
    assert "DIVIDE_BY_ZERO" in outcomes.pop(3)
    assert all(outcome == "done" or "has changed since" in outcome for outcome in outcomes), outcomes
    newest = catalog.load_table("shop.totals")
    rows_of_versions = [
        catalog.load_table("shop.totals", version=version).to_arrow().to_pylist()
        for version in range(2, newest.version + 1)
    ]
    row = {"orders": 3, "top": 40, "id": 2}
    last_row = {"orders": 4, "top": 40, "id": 1}
    assert rows_of_versions[:5] == [
        [{"orders": 2, "amount": 50}], [{"orders": 3, "amount": 90}], [row], [row], [row | {"top": "40"}],
    ]  # fmt: skip
    assert rows_of_versions[5:] and all(rows == [last_row] for rows in rows_of_versions[5:])
    # What a full refresh reads anew came by a stream of the run, in which nothing is left of the old rows.
    assert sorted(catalog.load_table("shop.large").to_arrow()["id"].to_pylist()) == [2, 3, 4]
