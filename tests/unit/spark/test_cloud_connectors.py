"""The settings that bring connectors to a Spark whose warehouse is on Google Cloud Storage or on Azure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakelog.cli.main import run
from lakelog.log.errors import InvalidInput, NotFound
from lakelog.spark import cloud_connectors, configure, s3a, spark_conf
from lakelog.spark.cloud_connectors import (
    AZURE_EXCLUDED,
    GCS_JAR,
    GCS_JAR_PATH,
    GOOGLE_CLASS,
    azure_packages,
    connector_settings,
    google_jar,
)
from lakelog.spark.s3a import EXCLUDES_KEY, NEWEST_HADOOP, PACKAGES_KEY

AZURE = "abfss://c@account.dfs.core.windows.net/w"
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def jar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The jar of Google's connector, in a cache of the test's, with no defaults of Spark."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "lakelog" / GCS_JAR
    path.parent.mkdir(mode=0o700)
    path.touch(mode=0o644)
    return path


def test_a_warehouse_on_google_brings_googles_connector(jar: Path) -> None:
    settings = spark_conf("gs://b/w", jar="/a.jar")
    assert settings["spark.jars"] == f"/a.jar,{jar}"
    assert settings["spark.hadoop.fs.gs.impl"] == GOOGLE_CLASS
    assert settings["spark.hadoop.fs.gs.auth.type"] == "APPLICATION_DEFAULT"
    assert spark_conf("gs://b/w", jar="")["spark.jars"] == str(jar)
    without_connector = spark_conf("gs://b/w", jar="/a.jar", s3a=False)
    assert without_connector["spark.jars"] == "/a.jar" and not any(
        "fs.gs" in key for key in without_connector
    )


def test_no_real_token_goes_to_a_server_without_encryption() -> None:
    plain = spark_conf("gs://b/w", jar="", gcs_endpoint="http://127.0.0.1:9")
    assert plain["spark.hadoop.fs.gs.auth.type"] == "UNAUTHENTICATED"
    assert plain["spark.hadoop.fs.gs.storage.root.url"] == "http://127.0.0.1:9/"
    assert plain["spark.sql.catalog.lake.gcs_endpoint"] == "http://127.0.0.1:9"
    tls = spark_conf("gs://b/w", jar="", gcs_endpoint="https://private/")
    assert tls["spark.hadoop.fs.gs.auth.type"] == "APPLICATION_DEFAULT"
    assert tls["spark.hadoop.fs.gs.storage.root.url"] == "https://private/"


def test_a_warehouse_on_azure_brings_abfs_of_the_same_hadoop() -> None:
    hadoop = s3a.hadoop_of_spark() or NEWEST_HADOOP
    settings = spark_conf(AZURE, jar="", azure_endpoint="http://127.0.0.1:9/account")
    assert settings[PACKAGES_KEY] == f"org.apache.hadoop:hadoop-azure:{hadoop}"
    assert settings[EXCLUDES_KEY] == ",".join(AZURE_EXCLUDED)
    assert settings["spark.sql.catalog.lake.azure_endpoint"] == "http://127.0.0.1:9/account"
    assert settings["spark.hadoop.fs.azure.abfs.endpoint"] == "127.0.0.1:9"
    with pytest.raises(InvalidInput, match="with the account as its path"):
        spark_conf(AZURE, jar="", azure_endpoint="https://account.privatelink.blob.core.windows.net")
    assert azure_packages("3.4.2") == ("org.apache.hadoop:hadoop-azure:3.4.2",)


def test_jars_and_packages_of_the_users_stay_and_are_enough(jar: Path) -> None:
    builder = SparkSession.Builder()
    builder._options = {"spark.jars": "/x.jar", "spark.hadoop.fs.gs.block.size": "1"}
    configure(builder, "gs://b/w", jar="/a.jar")
    configure(builder, "gs://b/w", jar="/a.jar")
    assert sorted(builder._options["spark.jars"].split(",")) == sorted(["/x.jar", "/a.jar", str(jar)])
    assert builder._options["spark.hadoop.fs.gs.block.size"] == "1"
    jar.unlink()
    for present in ({"spark.jars": "/x/gcs-connector-3.jar"}, {PACKAGES_KEY: "com.x:gcs-connector:3"}):
        assert "spark.jars" not in connector_settings("gs://b/w", {}, present)
    packages = {PACKAGES_KEY: "org.apache.hadoop:hadoop-azure:3.5.0"}
    assert connector_settings(AZURE, {}, packages) == {}


def test_the_command_has_the_server_and_the_jars_of_the_users(
    jar: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = ["spark-conf", "--adapter-jar", "", "--json", "--warehouse"]
    assert run([*shared, "gs://b/w", "--endpoint", "http://127.0.0.1:9"]) == 0
    assert json.loads(capsys.readouterr().out) == spark_conf(
        "gs://b/w", jar="", gcs_endpoint="http://127.0.0.1:9"
    )
    jar.unlink()
    assert run([*shared, "gs://b/w", "--jars", "/x/gcs-connector-3.jar"]) == 0
    assert json.loads(capsys.readouterr().out)["spark.jars"] == "/x/gcs-connector-3.jar"
    assert run([*shared, AZURE, "--packages", "a:b:1"]) == 0
    packages = json.loads(capsys.readouterr().out)[PACKAGES_KEY].split(",")
    assert packages[0] == "a:b:1" and packages[1].startswith("org.apache.hadoop:hadoop-azure:")


def test_only_the_expected_jar_is_kept(jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar.unlink()
    with pytest.raises(NotFound, match=r"could not be fetched.*put it into spark\.jars"):
        google_jar((tmp_path / "nowhere").as_uri())
    other_jar = tmp_path / "repository" / GCS_JAR_PATH
    other_jar.parent.mkdir(parents=True)
    other_jar.write_bytes(b"other")
    with pytest.raises(InvalidInput, match="is not the expected jar"):
        google_jar((tmp_path / "repository").as_uri())
    assert list(jar.parent.iterdir()) == []
    digest = "d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa"
    monkeypatch.setattr(cloud_connectors, "GCS_JAR_SHA256", digest)
    assert google_jar((tmp_path / "repository").as_uri()).read_bytes() == b"other"
    assert [path.name for path in jar.parent.iterdir()] == [GCS_JAR]


def test_the_adapter_names_the_same_connectors() -> None:
    scala = (ROOT / "catalog/spark/internals/CloudAccess.scala").read_text(encoding="utf-8")
    assert f'"{GOOGLE_CLASS}"' in scala and GCS_JAR in scala
    for setting, value in cloud_connectors.google_settings({}).items():
        key = setting.removeprefix("spark.hadoop.")
        # AbstractFileSystem is for Spark's own files, and the class is a value of its own.
        assert "Abstract" in key or value == GOOGLE_CLASS or f'"{key}" -> "{value}"' in scala
    emulator = {"azure_endpoint": "http://h:1/account"}
    for setting in cloud_connectors.azure_settings(emulator):
        assert f'"{setting.removeprefix("spark.hadoop.")}" ->' in scala
