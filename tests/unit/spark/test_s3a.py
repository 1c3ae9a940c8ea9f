"""The settings that bring S3A to a Spark whose warehouse is on S3."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakelog.log.errors import NotFound
from lakelog.spark import configure, s3a, spark_conf
from lakelog.spark.s3a import (
    EXCLUDED,
    EXCLUDES_KEY,
    NEWEST_HADOOP,
    PACKAGES_KEY,
    SDKS,
    packages,
    packages_line,
    s3_settings,
)

PACKAGES = packages(s3a.hadoop_of_spark() or NEWEST_HADOOP)
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file of Spark's defaults, which is not there yet."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    return tmp_path / "spark-defaults.conf"


@pytest.fixture
def spark_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of jars of some Spark."""
    folder = tmp_path / "jars"
    folder.mkdir()
    monkeypatch.setattr(s3a, "spark_jars", lambda: folder)
    return folder


def test_spark_fetches_s3a_for_a_warehouse_on_s3_only(tmp_path: Path) -> None:
    settings = spark_conf(
        "s3a://b/w", jar="/a.jar", endpoint="http://127.0.0.1:9", region="r", path_style=True
    )
    assert {
        key: value for key, value in settings.items() if "s3" in key or key.startswith("spark.jars.")
    } == {
        PACKAGES_KEY: ",".join(PACKAGES),
        EXCLUDES_KEY: ",".join(EXCLUDED),
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.hadoop.fs.AbstractFileSystem.s3.impl": "org.apache.hadoop.fs.s3a.S3A",
        "spark.hadoop.fs.s3a.bucket.b.endpoint": "http://127.0.0.1:9",
        "spark.hadoop.fs.s3a.bucket.b.endpoint.region": "r",
        "spark.hadoop.fs.s3a.bucket.b.path.style.access": "true",
    }
    for settings in (spark_conf(tmp_path, jar="/a.jar"), spark_conf("s3://b/w", jar="/a.jar", s3a=False)):
        assert not any("s3a" in key or key == PACKAGES_KEY for key in settings)


def test_packages_of_the_users_stay_from_the_builder_or_else_from_the_defaults(defaults: Path) -> None:
    defaults.write_text(
        f"# of the cluster\n\n{PACKAGES_KEY}   org.a:a:1,org.b:b:2\n  {EXCLUDES_KEY} = org.c:c\n"
    )
    settings = spark_conf("s3://b/w", jar="")
    assert settings[PACKAGES_KEY].split(",") == ["org.a:a:1", "org.b:b:2", *PACKAGES]
    assert settings[EXCLUDES_KEY].split(",") == ["org.c:c", *EXCLUDED]
    builder = SparkSession.Builder()
    builder._options = {PACKAGES_KEY: "org.d:d:3", "spark.hadoop.fs.s3.impl": "of.the.Users"}
    configure(builder, "s3://b/w", jar="")
    assert builder._options[PACKAGES_KEY].split(",") == ["org.d:d:3", *PACKAGES]
    assert builder._options["spark.hadoop.fs.s3.impl"] == "of.the.Users"


@pytest.mark.parametrize(
    "present",
    [{PACKAGES_KEY: "org.apache.hadoop:hadoop-aws:3.5.0"}, {"spark.jars": "/x/hadoop-aws-3.5.0.jar"}],
)
def test_s3a_of_the_users_is_enough(present: dict[str, str]) -> None:
    assert not {PACKAGES_KEY, EXCLUDES_KEY} & s3_settings("s3://b/w", {}, present).keys()


@pytest.mark.parametrize(
    "jars", [["hadoop-client-api-3.5.0.jar", "hadoop-aws-3.5.0.jar"], ["hadoop-client-api-3.3.6.jar"]]
)
def test_a_spark_with_s3a_or_another_hadoop_gets_no_packages(spark_folder: Path, jars: list[str]) -> None:
    for name in jars:
        (spark_folder / name).touch()
    assert PACKAGES_KEY not in s3_settings("s3://b/w", {}, {})


def test_settings_for_another_machine_need_no_spark_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Path:
        raise NotFound("no Spark")

    monkeypatch.setattr(s3a, "spark_jars", missing)
    assert s3_settings("s3://b/w", {}, s3a.spark_defaults())[PACKAGES_KEY] == ",".join(packages())


@pytest.mark.parametrize("hadoop", SDKS)
def test_packages_fit_the_hadoop_of_spark(spark_folder: Path, hadoop: str) -> None:
    (spark_folder / f"hadoop-client-api-{hadoop}.jar").touch()
    settings = s3_settings("s3://b/w", {}, {})
    assert settings[PACKAGES_KEY].split(",") == list(packages(hadoop))
    assert settings[PACKAGES_KEY].startswith(f"org.apache.hadoop:hadoop-aws:{hadoop},")


@pytest.mark.parametrize("hadoop", SDKS)
def test_the_adapter_names_the_same_packages(hadoop: str) -> None:
    scala = (ROOT / "catalog/spark/internals/S3Access.scala").read_text(encoding="utf-8")
    assert f'"{hadoop}" -> "{SDKS[hadoop]}"' in scala
    text = "".join(scala.split('"')[index] for index in range(1, scala.count('"'), 2))
    assert packages_line(hadoop) in text.replace("$hadoop", hadoop).replace("$sdk", SDKS[hadoop])
