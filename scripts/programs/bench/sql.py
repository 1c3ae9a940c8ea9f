"""Statements about tables, lakelog against Spark's in-memory catalog: p50 of each, and lakelog's requests."""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from lakelog.spark import spark_conf
from lakelog.testing.memory_catalog import TABLES, memory_catalog_jars
from programs import story
from programs.bench.measure import median, seconds, spark_on

LAKE, MEMORY = "lake", "memory"
GOAL = 1.5

# Each is said once for each table, in this order.
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

# The Python side of a catalog that takes down each request to its store.
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench sql", description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--warm-up", type=int, default=100, help="tables that are not measured")
    parser.add_argument("--lists", type=int, default=50, help="how often each list is asked for")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as folder:
        spark = spark_on(
            str(Path(folder) / "warehouse"),
            **{
                "spark.jars": ",".join(str(jar) for jar in memory_catalog_jars()),
                f"spark.sql.catalog.{MEMORY}": TABLES,
                f"spark.sql.catalog.{LAKE}.fsync": "off",
            },
        )
        for catalog in (LAKE, MEMORY):
            spark.sql(f"CREATE NAMESPACE {catalog}.bench")
        requests = _requests(spark, Path(folder))
        _measured(spark, arguments.warm_up, min(arguments.lists, 10))
        times = _measured(spark, arguments.tables, arguments.lists)
        lines = []
        for name in times:
            ours, theirs = (median(times[name][catalog]) * 1000 for catalog in (LAKE, MEMORY))
            mark = "" if ours <= GOAL * theirs or name in DROP else "  above the goal"
            lines.append([name, f"{ours:.1f}", f"{theirs:.1f}", f"{ours / theirs:.2f}{mark}", requests[name]])
        title = f"{arguments.tables:,} tables created, altered, described, listed and dropped; p50 in ms"
        story.table(["statement", "lakelog", "in memory", "ratio", "lakelog's requests"], lines, title=title)
        spark.stop()


def _measured(spark: SparkSession, tables: int, lists: int) -> dict[str, dict[str, list[float]]]:
    """Run every statement on both catalogs, by turns; return the seconds of each statement."""
    times: dict[str, dict[str, list[float]]] = {
        name: {LAKE: [], MEMORY: []} for name in (*ONCE, *LISTS, *DROP)
    }

    def both(name: str, statement: str, number: int) -> None:
        order = (LAKE, MEMORY) if number % 2 else (MEMORY, LAKE)
        for catalog in order:
            text = statement.format(c=catalog, n=number)
            times[name][catalog].append(seconds(lambda text=text: spark.sql(text).collect()))  # type: ignore[misc]

    for number in range(tables):
        for name, statement in ONCE.items():
            both(name, statement, number)
    for number in range(lists):
        for name, statement in LISTS.items():
            both(name, statement, number)
    for number in range(tables):
        both("DROP TABLE", DROP["DROP TABLE"], number)
    return times


def _requests(spark: SparkSession, folder: Path) -> dict[str, str]:
    """Return the requests of each statement, warm: those of the second table, whose namespace is known."""
    log, python = folder / "requests", folder / "python"
    python.write_text(COUNTING.format(python=sys.executable, log=str(log)))
    python.chmod(0o755)
    settings = spark_conf(
        str(folder / "counted"), name="counted", jar="unused", fsync=False, python=str(python)
    )
    for key, value in settings.items():
        if key.startswith("spark.sql.catalog."):
            spark.conf.set(key, value)
    spark.sql("CREATE NAMESPACE counted.bench")

    def counted(work: Callable[[], object]) -> str:
        log.write_text("")
        work()
        kinds = collections.Counter(log.read_text().split())
        return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "–"

    found = {}
    for number in range(2):
        for name, statement in (ONCE | LISTS).items():
            text = statement.format(c="counted", n=number)
            found[name] = counted(lambda text=text: spark.sql(text).collect())  # type: ignore[misc]
    for number in range(2):
        text = DROP["DROP TABLE"].format(c="counted", n=number)
        found["DROP TABLE"] = counted(lambda text=text: spark.sql(text).collect())  # type: ignore[misc]
    return found


if __name__ == "__main__":
    main()
