"""Other Spark sessions on the same catalog, and Python sides that die."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from tests.spark.conftest import Lake
from tests.spark.test_child import wrapper

__all__ = ["another_session", "descriptions_of_jobs", "wrapper"]


def another_session(lake: Lake, *others: Lake) -> Lake:
    """The same catalog, and others, in a session of its own."""
    spark: SparkSession = lake.spark.newSession()
    prefixes = [f"spark.sql.catalog.{each.name}" for each in (lake, *others)]
    for key, value in lake.spark.sparkContext._jvm.scala.jdk.javaapi.CollectionConverters.asJava(
        lake.spark._jsparkSession.sessionState().conf().getAllConfs()
    ).items():
        if any(key == prefix or key.startswith(prefix + ".") for prefix in prefixes):
            spark.conf.set(key, value)
    return Lake(spark, lake.name, lake.warehouse)


def descriptions_of_jobs(spark: SparkSession) -> list[str]:
    """Return what Spark's page of jobs says of each job that it keeps."""
    jobs = spark._jsparkSession.sparkContext().statusStore().jobsList(None)
    return [str(jobs.apply(at).description()) for at in range(jobs.length())]


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
