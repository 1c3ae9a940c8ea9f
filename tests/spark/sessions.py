"""Other Spark sessions on the same catalog, and Python sides that die."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.spark.conftest import Lake
from tests.spark.test_child import wrapper

__all__ = ["another_session", "descriptions_of_jobs", "last_job", "wrapper"]


def another_session(lake: Lake, *others: Lake) -> Lake:
    """The same catalog, and others, in a session of its own."""
    spark: SparkSession = lake.spark.newSession()
    prefixes = [f"spark.sql.catalog.{each_lake.name}" for each_lake in (lake, *others)]
    for key, value in lake.spark.sparkContext._jvm.scala.jdk.javaapi.CollectionConverters.asJava(
        lake.spark._jsparkSession.sessionState().conf().getAllConfs()
    ).items():
        if any(key == prefix or key.startswith(prefix + ".") for prefix in prefixes):
            spark.conf.set(key, value)
    return Lake(spark, lake.name, lake.warehouse)


def descriptions_of_jobs(spark: SparkSession, *, after: int = -1) -> list[str]:
    """Return what Spark's page of jobs says of each job that it keeps, or of those after the job with that id."""
    jobs = _jobs(spark)
    return [str(job.description()) for job in jobs if job.jobId() > after]


def last_job(spark: SparkSession) -> int:
    """Return the id of the newest job, -1 if there is none. Spark keeps some jobs only: their count says little."""
    return max((job.jobId() for job in _jobs(spark)), default=-1)


def _jobs(spark: SparkSession) -> list[Any]:
    jobs = spark._jsparkSession.sparkContext().statusStore().jobsList(None)
    return [jobs.apply(at) for at in range(jobs.length())]


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
