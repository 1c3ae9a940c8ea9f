"""Spark with a warehouse on Google Cloud Storage and on Azure, by Google's connector and by Hadoop's ABFS.

Each has a JVM of its own, which takes the connector at its start. ABFS speaks Azurite's Blob interface. Azurite has no
Data Lake interface.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests import cloud_servers
from tests.cloud_jars import connector_jars
from tests.cloud_servers import CloudServer
from tests.spark import first_sessions

from lakelog.catalog import Catalog, NoSuchWarehouse
from lakelog.spark.s3a import hadoop_of_spark

pytestmark = pytest.mark.s3

TABLE = """
spark = started(maintenance="off")
def rows(query):
    return [tuple(row) for row in spark.sql(query).collect()]

spark.sql("CREATE NAMESPACE lake.n")
spark.sql("CREATE TABLE lake.n.t (id BIGINT, name STRING) PARTITIONED BY (name)")
spark.sql("INSERT INTO lake.n.t SELECT id, if(id % 2 = 0, 'a/ü', 'b c') FROM range(10)")
spark.sql("INSERT INTO lake.n.t VALUES (100, 'a/ü')")
spark.sql("DELETE FROM lake.n.t WHERE id = 3")
spark.sql("UPDATE lake.n.t SET id = id + 1000 WHERE id = 4")
spark.sql("MERGE INTO lake.n.t t USING (SELECT 5L id, 'b c' name UNION SELECT 6000L, 'new') s "
          "ON t.id = s.id AND t.name = s.name "
          "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *")
assert rows("SELECT count(*), sum(id) FROM lake.n.t") == [(10, 7137)], rows("SELECT * FROM lake.n.t")
spark.sql("CALL lake.system.compact(table => 'n.t')")
assert rows("SELECT count(*), sum(id) FROM lake.n.t") == [(10, 7137)]
assert rows("SELECT count(*) FROM lake.n.t VERSION AS OF 2") == [(10,)]
try:
    spark.sql("INSERT INTO lake.n.t SELECT assert_true(id < 2) IS NULL, 'x' FROM range(5)")
except Exception:
    pass
stream = spark.readStream.table("lake.n.t").writeStream.trigger(availableNow=True)
spark.sql("CREATE TABLE lake.n.s (id BIGINT, name STRING)")
stream.option("checkpointLocation", given["checkpoints"]).toTable("lake.n.s").awaitTermination()
assert rows("SELECT count(*), sum(id) FROM lake.n.s") == [(10, 7137)]
spark.sql("CREATE TABLE lake.n.gone AS SELECT id FROM range(3)")
spark.sql("DROP TABLE lake.n.gone")
spark.sql("CALL lake.system.expire(older_than => INTERVAL 0 SECONDS)")
spark.sql("CALL lake.system.vacuum(older_than => INTERVAL 0 SECONDS, dropped_older_than => INTERVAL 0 SECONDS)")
assert rows("SELECT count(*), sum(id) FROM lake.n.t") == [(10, 7137)]
print(rows("SELECT id, name FROM lake.n.t ORDER BY id"))
"""

WITHOUT_CONNECTOR = """
spark = started(s3a=False)
for statement in ("CREATE TABLE lake.t (id INT)", "CREATE NAMESPACE lake.n"):
    try:
        spark.sql(statement)
    except Exception as error:
        print(error)
"""


@pytest.fixture(scope="module", params=cloud_servers.NAMES)
def cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudServer]:
    with cloud_servers.running(request.param, tmp_path_factory.mktemp("objects")) as server:
        yield server


def printed(program: str, folder: Path, server: CloudServer, **given: Any) -> str:
    """Return what a program prints that has a warehouse on the cloud."""
    program_input = {
        "warehouse": f"{server.url}/{folder.name}/w",
        "settings": {},
        "options": server.options,
        **given,
    }
    return first_sessions.printed(program, folder, program_input)


def test_a_table_lives_there_from_its_first_row_to_its_vacuum(cloud: CloudServer, tmp_path: Path) -> None:
    scheme = cloud.url.partition("://")[0]
    settings = {"spark.jars": connector_jars(scheme)}
    checkpoints = str(tmp_path / "checkpoints")  # fake-gcs-server cannot move objects, as checkpoints need it
    if scheme == "abfss":
        if hadoop_of_spark() == "3.4.1":
            pytest.skip("ABFS of Hadoop 3.4.1 speaks the Data Lake interface alone, which Azurite lacks")
        # Hadoop's class for checkpoints at abfss:// always takes TLS.
        checkpoints = f"{cloud.url}/{tmp_path.name}/checkpoints".replace("abfss:", "abfs:")
        settings["spark.hadoop.fs.azure.account.key"] = "${env.AZURE_STORAGE_ACCOUNT_KEY}"
    text = printed(TABLE, tmp_path, cloud, settings=settings, checkpoints=checkpoints)
    catalog = Catalog(f"{cloud.url}/{tmp_path.name}/w", options=cloud.options)
    table = catalog.load_table("n.t")
    assert sorted(zip(*table.to_arrow().to_pydict().values(), strict=True)) == eval(text.splitlines()[-1])
    assert not catalog.fsck().found
    catalog.vacuum()
    assert table.append(table.to_arrow()).to_arrow().num_rows == 20


def test_credentials_for_azure_are_named_by_their_variables(spark: SparkSession) -> None:
    """In the order of Python's library. No value of a variable is in the settings."""
    assert spark._jvm is not None
    access = spark._jvm.org.apache.spark.sql.lakelog.internals.CloudAccess
    provider = "fs.azure.account.oauth.provider.type"
    cases: list[tuple[list[str], str, str]] = [
        (["AZURE_STORAGE_ACCOUNT_KEY", "AZURE_CLIENT_ID"], "fs.azure.account.key", "STORAGE_ACCOUNT_KEY"),
        (["AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET"], provider, "ClientCredsTokenProvider"),
        (
            ["AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE"],
            provider,
            "WorkloadIdentityTokenProvider",
        ),
        (["AZURE_STORAGE_SAS_TOKEN"], "fs.azure.sas.fixed.token", "${env.AZURE_STORAGE_SAS_TOKEN}"),
        ([], provider, "MsiTokenProvider"),
    ]
    for variables, key, value in cases:
        settings = access.azureCredentials(_scala_set(spark, variables))
        assert value in str(settings.apply(key))


def _scala_set(spark: SparkSession, values: list[str]) -> Any:
    assert spark._jvm is not None
    return spark._jvm.scala.jdk.javaapi.CollectionConverters.asScala(
        spark._jvm.java.util.List.of(*values)
    ).toSet()


def test_without_the_connector_nothing_is_created(cloud: CloudServer, tmp_path: Path) -> None:
    text = printed(WITHOUT_CONNECTOR, tmp_path, cloud)
    needed = "gcs-connector-3.1.18-shaded.jar" if cloud.url.startswith("gs:") else "hadoop-azure:3"
    assert text.count(needed) == 2
    with pytest.raises(NoSuchWarehouse):
        Catalog(f"{cloud.url}/{tmp_path.name}/w", options=cloud.options).list_namespaces(())
