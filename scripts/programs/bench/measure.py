"""How the benchmarks measure: contenders take turns in one run, so that a busy machine hits all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from lakelog.spark import configure
from programs.story import errors_to


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def taking_turns(
    contenders: Mapping[str, Callable[[], object]], rounds: int, warm_up: int = 1
) -> dict[str, list[float]]:
    """Run every contender once a round, each round beginning with another one; return the seconds of each.

    The first `warm_up` rounds are not counted.
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    for number in range(warm_up + rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            spent = seconds(contenders[name])
            if number >= warm_up:
                times[name].append(spent)
    return times


def median(values: list[float]) -> float:
    return statistics.median(values)


def spark_on(warehouse: str, **settings: str) -> SparkSession:
    """Return a session on two cores with the catalog `lake`, and quiet. `spark.jars` are those beside the adapter's."""
    plain = SparkSession.builder.master("local[2]").appName("lakelog bench")
    builder = configure(plain.config("spark.jars", settings.pop("spark.jars", "")), warehouse=warehouse)
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "4g",
        "spark.sql.session.timeZone": "UTC",
        **settings,
    }.items():
        builder = builder.config(name, value)
    with errors_to(Path(warehouse).parent / "spark.log"):
        return builder.getOrCreate()
