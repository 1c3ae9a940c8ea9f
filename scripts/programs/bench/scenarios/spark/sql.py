"""Statements about tables, lakelog against Spark's in-memory catalog, which stores nothing, by turns.

Rows show the milliseconds of both, the ratio of their medians, and lakelog's warm requests. The goal is a ratio of at
most 1.5, except for a drop.
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Annotated

from pyspark.sql import SparkSession

from lakelog.testing.memory_catalog import TABLES, memory_catalog_jars
from programs.bench.measure import rotated, seconds
from programs.bench.places import folder
from programs.bench.scenario import Row
from programs.bench.sparks import add_catalog, spark_on

LAKE, MEMORY = "lake", "memory"

# Each statement runs once for each table, in this order.
ONCE = {
    "CREATE TABLE": "CREATE TABLE {c}.bench.t{n} (id BIGINT NOT NULL COMMENT 'key', name STRING, at TIMESTAMP) "
    "PARTITIONED BY (days(at)) TBLPROPERTIES ('k' = 'v')",
    "ALTER TABLE ADD COLUMN": "ALTER TABLE {c}.bench.t{n} ADD COLUMN more STRING COMMENT 'new'",
    "ALTER TABLE SET TBLPROPERTIES": "ALTER TABLE {c}.bench.t{n} SET TBLPROPERTIES ('k' = 'w')",
    "DESCRIBE TABLE": "DESCRIBE TABLE {c}.bench.t{n}",
    "DESCRIBE TABLE EXTENDED": "DESCRIBE TABLE EXTENDED {c}.bench.t{n}",
    "SHOW CREATE TABLE": "SHOW CREATE TABLE {c}.bench.t{n}",
    "SHOW TBLPROPERTIES": "SHOW TBLPROPERTIES {c}.bench.t{n}",
}
LISTS = {
    "SHOW TABLES": "SHOW TABLES IN {c}.bench",
    "SHOW TABLES LIKE": "SHOW TABLES IN {c}.bench LIKE '*99'",
}
DROP = {"DROP TABLE": "DROP TABLE {c}.bench.t{n}"}

# The Python side of a catalog that records each request to its store.
COUNTING = """#!{python}
from lakelog.log.stores.local_store import LocalStore
def counted(name):
    original = getattr(LocalStore, name)
    def call(self, *args, **kwargs):
        with open({log!r}, "a") as log:
            log.write(name + chr(10))
        return original(self, *args, **kwargs)
    setattr(LocalStore, name, call)
for name in ("get", "put", "put_if_absent", "list_after", "list_sizes"):
    counted(name)
from lakelog.spark.bridge import main
main()
"""

Times = dict[str, dict[str, list[float]]]


def measure(
    tables: int = 1000,
    warm_up: Annotated[int, "tables that are not measured"] = 100,
    lists: Annotated[int, "how often each list is asked for"] = 50,
) -> Iterator[Row]:
    with folder() as place:
        settings = {
            "spark.jars": ",".join(str(jar) for jar in memory_catalog_jars()),
            f"spark.sql.catalog.{MEMORY}": TABLES,
        }
        spark = spark_on(place / "warehouse", settings, fsync=False)
        for catalog in (LAKE, MEMORY):
            spark.sql(f"CREATE NAMESPACE {catalog}.bench")
        requests = _requests(spark, place)
        _measured(spark, warm_up, min(lists, 10))
        for name, times in _measured(spark, tables, lists).items():
            ours, theirs = (median(times[catalog]) * 1000 for catalog in (LAKE, MEMORY))
            yield {
                "statement": name,
                "lakelog, ms": ours,
                "in memory, ms": theirs,
                "ratio": ours / theirs,
                "lakelog's requests": requests[name],
            }
        spark.stop()


def _statements(tables: int, lists: int) -> Iterator[tuple[str, str, int]]:
    for number in range(tables):
        yield from ((name, text, number) for name, text in ONCE.items())
    for number in range(lists):
        yield from ((name, text, number) for name, text in LISTS.items())
    for number in range(tables):
        yield from ((name, text, number) for name, text in DROP.items())


def _measured(spark: SparkSession, tables: int, lists: int) -> Times:
    """Run every statement on both catalogs, by turns. Return the seconds of each statement."""
    times: Times = {}
    for name, statement, number in _statements(tables, lists):
        for catalog in rotated([LAKE, MEMORY], number):
            text = statement.format(c=catalog, n=number)
            duration = seconds(lambda text=text: spark.sql(text).collect())  # type: ignore[misc]
            times.setdefault(name, {}).setdefault(catalog, []).append(duration)
    return times


def _requests(spark: SparkSession, place: Path) -> dict[str, str]:
    """Return the warm requests of each statement: those for the second table, when the namespace is known."""
    log, python = place / "requests", place / "python"
    python.write_text(COUNTING.format(python=sys.executable, log=str(log)))
    python.chmod(0o755)
    add_catalog(spark, place / "counted", "counted", fsync=False, python=str(python))
    spark.sql("CREATE NAMESPACE counted.bench")
    requests = {}
    for name, statement, number in _statements(2, 2):
        log.write_text("")
        spark.sql(statement.format(c="counted", n=number)).collect()
        kinds = collections.Counter(log.read_text().split())
        requests[name] = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "–"
    return requests
