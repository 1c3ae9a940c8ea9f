"""Iceberg's own Spark finds what lakelog has: in exports, before the server of a warehouse, and in a published tree.

It is a process of its own, in an environment with the Spark that Iceberg supports, which is set up when it is missing.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.integration.iceberg.lives import TYPES
from tests.integration.iceberg.matrix import OF_SPARK, PAGE, table_of
from tests.integration.iceberg.readers import Reader
from tests.integration.iceberg.serving import readable_by_all, served
from tests.integration.iceberg.test_lives import live

from lakelog.catalog import Catalog, Table, col
from lakelog.cli.main import run
from lakelog.testing.moto_server import moto_server
from programs.bench.sparks import ENGINES, Worker

pytestmark = pytest.mark.slow
ID = pa.schema({"id": pa.int64()})
LIVES = range(1000, 1030)
READ_BY_SPARK = TYPES.keys() - {"time(6)"}
"""Iceberg's Spark refuses a column of the type time."""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    folder = tmp_path_factory.mktemp("spark")
    types = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
    engine = ENGINES["iceberg"]
    engine = replace(engine, packages=(*engine.packages, "org.apache.iceberg:iceberg-aws-bundle:1.12.0"))
    worker = Worker(engine, folder, **types)
    yield worker
    worker.close()


@pytest.fixture
def read(spark: Worker, tmp_path: Path) -> Reader:
    def by_spark(url: str, snapshot: int | None = None, *, columns: Sequence[str] = ("*",)) -> pa.Table:
        options = {} if snapshot is None else {"versionAsOf": str(snapshot)}
        spark.view("exported", "iceberg", url, columns, **options)
        path = tmp_path / uuid.uuid4().hex
        spark.check(f"INSERT OVERWRITE DIRECTORY '{path}' USING parquet SELECT * FROM exported")
        return pq.read_table(path)

    return by_spark


def test_readers_find_what_lakelog_has_in_lives(read: Reader, tmp_path: Path) -> None:
    for seed in LIVES:
        live(tmp_path / str(seed), seed, {"spark": read}, READ_BY_SPARK)


def test_the_page_says_what_it_makes_of_each_feature(spark: Worker, read: Reader) -> None:
    name = f"Spark {spark.spark_version} with {spark.engine.version}"
    table = table_of({name: read}, [name])
    assert PAGE.read_text().endswith(f"{OF_SPARK}{table}"), table


def test_it_reads_before_a_server_of_a_warehouse(spark: Worker, tmp_path: Path) -> None:
    warehouse = str(tmp_path / "w")
    table = filled_table(Catalog(warehouse)).create_branch("side")
    with served(warehouse) as url:
        named(spark, "served", uri=url)
        assert [row[0] for row in spark.check("SHOW NAMESPACES IN served")] == ["shop"]
        assert [row[0] for row in spark.check("SHOW NAMESPACES IN served.shop")] == ["shop.old"]
        holds(spark, "served")
        table.at(ref="side").append(pa.table({"id": [9]}))
        spark.check("REFRESH TABLE served.shop.orders")
        assert ids(spark, "served.shop.orders VERSION AS OF 'side'") == [1, 3, 9]
        with pytest.raises(RuntimeError, match="does not support endpoint"):
            spark.check("CREATE TABLE served.shop.more (id BIGINT) USING iceberg")
        with pytest.raises(RuntimeError, match="does not support endpoint"):
            spark.check("INSERT INTO served.shop.orders VALUES (5)")
        with pytest.raises(RuntimeError, match="does not support endpoint"):
            spark.check("DROP TABLE served.shop.orders")
    assert Catalog(warehouse).load_table("shop.orders").row_count == 2


def test_it_reads_a_published_tree(spark: Worker) -> None:
    with moto_server() as server, server.credentials():
        warehouse = f"s3://lake/{uuid.uuid4().hex}"
        filled_table(Catalog(warehouse, options=server.options))
        place = ["--warehouse", warehouse, "--endpoint", server.endpoint, "--region", server.region]
        assert run(["publish", *place, "--path-style"]) == 0
        files = {
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "s3.endpoint": server.endpoint,
            "s3.path-style-access": "true",
            "s3.access-key-id": server.access_key,
            "s3.secret-access-key": server.secret_key,
            "client.region": server.region,
        }
        named(spark, "published", uri=f"{server.endpoint}/{warehouse.removeprefix('s3://')}/_rest", **files)
        with readable_by_all(server, "lake"):
            # The tree does not see which level is asked for.
            texts = [row[0] for row in spark.check("SHOW NAMESPACES IN published")]
            assert texts == ["shop", "shop.old"]
            holds(spark, "published")
            with pytest.raises(RuntimeError, match="does not support endpoint|Forbidden"):
                spark.check("DROP TABLE published.shop.orders")
        assert Catalog(warehouse, options=server.options).load_table("shop.orders").row_count == 2


def filled_table(catalog: Catalog) -> Table:
    catalog.create_namespace("shop", properties={"comment": "of tea"})
    catalog.create_namespace(("shop", "old"))
    table = catalog.create_table("shop.orders", ID).append(pa.table({"id": [1, 2, 3]}))
    catalog.create_table("shop.old.t", ID).append(pa.table({"id": [7]}))
    return table.delete(col("id") == 2)


def holds(spark: Worker, name: str) -> None:
    assert [row[1] for row in spark.check(f"SHOW TABLES IN {name}.shop")] == ["orders"]
    assert ids(spark, f"{name}.shop.orders") == [1, 3]
    assert ids(spark, f"{name}.shop.old.t") == [7]


def ids(spark: Worker, source: str) -> list[int]:
    return [int(row[0]) for row in spark.check(f"SELECT id FROM {source} ORDER BY id")]


def named(spark: Worker, name: str, **options: str) -> None:
    """Make a catalog that Iceberg's REST client reads."""
    spark.check(f"SET spark.sql.catalog.{name}=org.apache.iceberg.spark.SparkCatalog")
    for key, value in {"type": "rest", "cache-enabled": "false", **options}.items():
        spark.check(f"SET `spark.sql.catalog.{name}.{key}`=`{value}`")
