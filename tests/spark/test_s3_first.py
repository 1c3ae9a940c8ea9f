"""A first session with a warehouse on S3: the settings of configure, and the error if they do not suffice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark import first_sessions

from lakelog.catalog import Catalog, NoSuchWarehouse
from lakelog.spark.s3a import packages_line
from lakelog.testing.moto_server import S3Server
from lakelog.testing.s3a import s3a_settings

pytestmark = pytest.mark.s3

CHECKPOINTS = """
spark = started()
spark.sql("CREATE TABLE lake.t AS SELECT id FROM range(3)")
for scheme in ("s3", "s3a"):
    spark.sql(f"CREATE TABLE lake.{scheme} (id BIGINT)")
    place = f"{scheme}://lakelog/{given['checkpoints']}-{scheme}"
    for _ in range(2):
        rows = spark.readStream.table("lake.t").writeStream.trigger(availableNow=True)
        rows.option("checkpointLocation", place).toTable(f"lake.{scheme}").awaitTermination()
    assert spark.table(f"lake.{scheme}").count() == 3
    spark.range(5).write.parquet(f"{place}-files")
    assert spark.read.parquet(f"{place}-files").count() == 5
"""

WITHOUT_S3A = """
spark = started()
for statement in ("CREATE TABLE lake.t (id INT)", "CREATE NAMESPACE lake.n"):
    try:
        spark.sql(statement)
    except Exception as error:
        print(error)
"""

TOO_LATE = """
spark = configure(builder, given["folder"]).getOrCreate()
for again in (False, True):
    try:
        configure(SparkSession.builder, given["warehouse"], name="late")
    except InvalidInput as error:
        print(error)
    spark.stop()
"""

OFFLINE = """
try:
    started()
except InvalidInput as error:
    print(error)
"""


def done_text(
    program: str, tmp_path: Path, server: S3Server, *, env: dict[str, str] | None = None, **given: Any
) -> str:
    """Return what a program prints that has a warehouse on S3."""
    options = {name: server.options[name] for name in ("endpoint", "region")}
    options |= {"path_style": True} | given.pop("options", {})
    asked = {"warehouse": f"s3://lakelog/line-{tmp_path.name}", "settings": {}, "options": options, **given}
    return first_sessions.printed(program, tmp_path, asked, env)


def test_checkpoints_need_no_setting_of_their_own(tmp_path: Path, lakelog_s3: S3Server) -> None:
    done_text(
        CHECKPOINTS, tmp_path, lakelog_s3, settings=s3a_settings(), checkpoints=f"checkpoints-{tmp_path.name}"
    )


def test_without_s3a_nothing_is_created(tmp_path: Path, lakelog_s3: S3Server) -> None:
    text = done_text(WITHOUT_S3A, tmp_path, lakelog_s3, options={"s3a": False})
    assert text.count(packages_line()) == 2
    catalog = Catalog(f"s3://lakelog/line-{tmp_path.name}", options=lakelog_s3.options)
    with pytest.raises(NoSuchWarehouse):
        catalog.list_namespaces(())


def test_a_spark_that_started_without_s3a_is_refused(tmp_path: Path, lakelog_s3: S3Server) -> None:
    text = done_text(TOO_LATE, tmp_path, lakelog_s3, folder=str(tmp_path / "lake"))
    assert text.count(packages_line()) == 2


def test_a_machine_without_a_network_gets_the_packages_by_name(tmp_path: Path, lakelog_s3: S3Server) -> None:
    nowhere = " ".join(
        f"-D{scheme}.proxyHost=127.0.0.1 -D{scheme}.proxyPort=9" for scheme in ("http", "https")
    )
    env = {"JAVA_TOOL_OPTIONS": f"{nowhere} -Duser.home={tmp_path}"}
    text = done_text(
        OFFLINE, tmp_path, lakelog_s3, env=env, settings={"spark.jars.ivy": str(tmp_path / "ivy")}
    )
    assert packages_line() in text and "s3a=False" in text


def test_two_catalogs_have_their_own_servers_for_one_bucket(
    spark: SparkSession, make_lake: Any, lakelog_s3: S3Server, tmp_path: Path
) -> None:
    """Also if Spark has a server for the bucket, which it has for its own files there."""
    options = {**lakelog_s3.options, "path_style": True}
    key = "fs.s3a.bucket.lakelog.endpoint"
    spark.conf.set(key, "http://127.0.0.1:9")
    try:
        lake = make_lake(f"s3://lakelog/two-{tmp_path.name}", **options)
        lake.sql("CREATE TABLE lake.t AS SELECT id FROM range(3)")
        assert lake.sql("SELECT count(*) FROM lake.t") == [(3,)]
    finally:
        spark.conf.unset(key)
