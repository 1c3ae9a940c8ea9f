"""Sessions whose `spark_catalog` has lakelog's tables, beside sessions whose has none, on the same databases."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from tests.spark.conftest import Lake, Place, add_catalog, children

from lakelog.catalog import Catalog

_numbers = itertools.count()


@dataclass(frozen=True)
class Shared:
    """A session with lakelog's tables in spark_catalog, on the same warehouse in the catalog `lake` too.

    Sessions of one JVM share the session catalog's tables and views; each test has a database of its own.
    """

    spark: SparkSession
    warehouse: str
    database: str
    folder: Path
    python: str

    @property
    def here(self) -> Lake:
        """`lake.t` in its statements is the table t of the database."""
        return Lake(self.spark, self.database, self.warehouse)

    def sql(self, sql: str) -> list[tuple]:
        return self.here.sql(sql)

    def sorted(self, sql: str) -> list[tuple]:
        return self.here.sorted(sql)

    @property
    def catalog(self) -> Catalog:
        return Catalog(self.warehouse)

    def again(self) -> Shared:
        """Another session on the same."""
        session = with_lakelog(self.spark, self.warehouse, self.python)
        return Shared(session, self.warehouse, self.database, self.folder, self.python)

    def without_lakelog(self) -> Place:
        """A session with Spark's own session catalog, on the same database."""
        return Place(self.spark.newSession(), self.database)

    def reference(self) -> Place:
        """The same, on a database of its own."""
        session = self.spark.newSession()
        database = f"{self.database}_reference"
        session.sql(f"CREATE DATABASE IF NOT EXISTS {database} LOCATION '{self.folder}/{database}'")
        return Place(session, database)


def with_lakelog(spark: SparkSession, warehouse: str, python: str) -> SparkSession:
    session = spark.newSession()
    add_catalog(session, warehouse, session_catalog=True, python=python)
    return session


@contextmanager
def shared_database(spark: SparkSession, folder: Path, python: str) -> Iterator[Shared]:
    """A fresh warehouse and database; both the current one of a new session."""
    database = f"shop{next(_numbers)}"
    session = with_lakelog(spark, str(folder / "warehouse"), python)
    session.sql(f"CREATE DATABASE {database} LOCATION '{folder}/{database}'")
    session.sql(f"USE {database}")
    # Which class spark_catalog has, Spark asks of the active session, whichever one writes a DataFrame.
    sessions = spark.sparkContext._jvm.org.apache.spark.sql.classic.SparkSession
    sessions.setActiveSession(session._jsparkSession)
    yield Shared(session, str(folder / "warehouse"), database, folder, python)
    sessions.setActiveSession(spark._jsparkSession)
    for name in (database, f"{database}_reference"):
        spark.sql(f"DROP DATABASE IF EXISTS {name} CASCADE")
    for child in children(spark):
        os.kill(child, signal.SIGKILL)
