"""Spark Connect: a server with lakelog, and clients that have nothing of it but SQL and DataFrames."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.servers import answer_of_client

from lakelog.catalog import Catalog

pytestmark = [pytest.mark.adapter, pytest.mark.slow]

CLIENT = """
    import json
    from pyspark.errors import AnalysisException
    from pyspark.sql import SparkSession
    from lakelog.spark import transaction

    one, other = (SparkSession.builder.remote({address!r}).create() for _ in range(2))
    one.sql("CREATE NAMESPACE lake.shop")
    one.sql("CREATE TABLE lake.shop.orders (id BIGINT, name STRING)")
    one.createDataFrame([(1, "ada"), (2, "grace")], "id BIGINT, name STRING").writeTo("lake.shop.orders").append()
    one.sql("DELETE FROM lake.shop.orders WHERE id = 1")
    table = "lake.shop.orders"
    found = {{"rows": [tuple(row) for row in one.table(table).collect()]}}
    found["before"] = one.sql(f"SELECT * FROM {{table}} VERSION AS OF 2").count()
    found["changes"] = one.sql(f"SELECT count(*) FROM {{table}} CHANGES FROM VERSION 1 TO VERSION 3").collect()[0][0]
    with transaction(one, "lake"):
        one.sql(f"INSERT INTO {{table}} VALUES (3, 'joan')")
        found["inside"] = [session.table(table).count() for session in (one, other)]
    found["after"] = other.table(table).count()
    found["compacted"] = len(other.sql("CALL lake.system.compact('shop.orders')").collect())
    try:
        other.table("lake.shop.nothing").collect()
    except AnalysisException as error:
        found["error"] = error.getCondition()
    print("OUT", json.dumps(found))
    other.stop()
    one.stop()
"""


def test_clients_of_connect_read_write_and_have_transactions_of_their_own(tmp_path: Path) -> None:
    assert answer_of_client(CLIENT, tmp_path) == {
        "rows": [[2, "grace"]], "before": 2, "changes": 3, "inside": [2, 1], "after": 2, "compacted": 1,
        "error": "TABLE_OR_VIEW_NOT_FOUND",
    }  # fmt: skip
    assert Catalog(str(tmp_path / "lake")).load_table("shop.orders").row_count == 2
