"""What a plan of a table of many files costs: requests, rounds, bytes, time of the processor and memory. Each question
is asked cold in a process of its own, then again. With `--spark` from Spark's driver."""

from __future__ import annotations

import argparse
import gc
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from lakelog.catalog import Catalog, Filter, Table, col
from lakelog.catalog.core.files import ColumnStats, DataFile
from lakelog.log import CountingStore, LogOptions, wait_for_background
from lakelog.spark import spark_conf
from programs import story
from programs.bench.measure import median, seconds, spark_on

STEP = 10_000
ROWS = 1000
SIZE_BYTES = 50_000_000
MEASURED = ("id", "customer", "amount", "name")
CUSTOMERS = 1_000_000
PLACE = "t"
SPARK_ROUNDS, SPARK_WARM_UP = 5, 200


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench plans", description=__doc__)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--days", type=int, default=1000)
    parser.add_argument(
        "--columns",
        type=int,
        default=4,
        help="columns of which files have statistics, at least 4: the log keeps those of the first 32",
    )
    parser.add_argument(
        "--arrival", choices=("by-day", "mixed"), default="by-day", help="the order of commits"
    )
    parser.add_argument("--warehouse", help="a folder that is kept; made where it is not there")
    parser.add_argument("--spark", action="store_true", help="how long Spark plans, in place of that")
    parser.add_argument("--ask", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ask:
        print(json.dumps(_asked(arguments.warehouse, arguments.ask, arguments)))
        return
    with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as folder:
        warehouse = arguments.warehouse or str(Path(folder) / "warehouse")
        if not Path(warehouse).exists():
            make(warehouse, arguments)
        if arguments.spark:
            texts = {
                name: "true" if each is None else str(each) for name, each in _filters(arguments).items()
            }
            found = from_spark(Path(warehouse), Path(folder), texts, SPARK_ROUNDS)
            title = f"{arguments.files:,} files, {arguments.days:,} days, from Spark with 1 GB"
            lines = [
                [name, f"{each['tasks']:,}", spread(each["cold"]), spread(each["again"])]
                for name, each in found.items()
            ]
            story.table(["", "tasks", "cold: ms", "again: ms"], lines, title=title)
            return
        size = sum(path.stat().st_size for path in Path(warehouse, PLACE, "_log", "manifests").glob("*"))
        lines = [_line(name, warehouse) for name in _filters(arguments)]
        lines.append(_commit(warehouse))
    story.table(
        [
            "",
            "files",
            "GETs",
            "rounds",
            "MB",
            "cold: ms of processor",
            "peak MB more",
            "again: ms",
            "then: ms",
            "GETs",
        ],
        lines,
        title=f"{arguments.files:,} files, {arguments.days:,} days, statistics of {arguments.columns} columns, "
        f"{arguments.arrival}; all manifests ever written: {size / 1e6:.1f} MB",
    )


def schema(columns: int) -> pa.Schema:
    named = [("day", pa.int32()), ("id", pa.int64()), ("customer", pa.int64()), ("amount", pa.float64())]
    more = [(f"c{number}", pa.int64()) for number in range(len(MEASURED), columns)]
    return pa.schema([*named, ("name", pa.string()), *more])


def questions(arguments: argparse.Namespace) -> dict[str, tuple[str, int]]:
    """Return column and value of the questions that take some of the files."""
    return {
        "one day": ("day", arguments.days // 2),
        "one id": ("id", arguments.files // 2 * ROWS + 500),
        "one customer": ("customer", CUSTOMERS // 2 + 500),
    }


def _filters(arguments: argparse.Namespace) -> dict[str, Filter | None]:
    some = {name: col(column) == value for name, (column, value) in questions(arguments).items()}
    return some | {"all files": None}


def make(warehouse: str, arguments: argparse.Namespace) -> None:
    catalog = Catalog(warehouse, options={"fsync": "off"})
    table = catalog.create_table(
        PLACE,
        schema(arguments.columns),
        partition_by=["day"],
        location=f"{warehouse}/{PLACE}",
    )
    chance = random.Random(7)
    for first in range(0, arguments.files, STEP):
        table = _committed(table, range(first, min(first + STEP, arguments.files)), arguments, chance)
    wait_for_background()
    table.head.tracked.log.snapshot(table.head.view)


def files_of(
    numbers: range, arguments: argparse.Namespace, chance: random.Random
) -> Iterator[tuple[int, int, dict[str, tuple[Any, Any]]]]:
    """Yield number, day and bounds of files."""
    by_day = arguments.arrival == "by-day"
    for at in numbers:
        customer, amount = chance.randrange(CUSTOMERS), chance.random()
        bounds: dict[str, tuple[Any, Any]] = {
            "id": (at * ROWS, at * ROWS + ROWS - 1),
            "customer": (customer, customer + 999),
            "amount": (amount, amount + 100),
            "name": (f"name-{customer:09}", f"name-{customer:09}-z"),
        }
        for number in range(len(MEASURED), arguments.columns):
            low = chance.randrange(CUSTOMERS)
            bounds[f"c{number}"] = low, low + 999
        yield at, at * arguments.days // arguments.files if by_day else at % arguments.days, bounds


def _committed(table: Table, numbers: range, arguments: argparse.Namespace, chance: random.Random) -> Table:
    write = table.begin_write()
    ids = {field.name: field.id for field in table.schema.fields}
    nans = {name: 0 if name == "amount" else None for name in ids}
    partition, spec = table.spec.fields[0].id, table.spec.id
    files = [
        DataFile(
            path=f"data/{write.version:020d}-{write.id}-{at}.parquet",
            size_bytes=SIZE_BYTES,
            rows=ROWS,
            spec_id=spec,
            partition={partition: day},
            stats={
                ids[name]: ColumnStats(nulls=0, nans=nans[name], min=low, max=high)
                for name, (low, high) in bounds.items()
            },
            write_id=write.id,
        )
        for at, day, bounds in files_of(numbers, arguments, chance)
    ]
    return table.commit_write(write, "append", files)


def from_spark(
    warehouse: Path, folder: Path, texts: dict[str, str], rounds: int
) -> dict[str, dict[str, Any]]:
    """Ask catalogs that have read nothing yet, each another path to the same warehouse, in a session and in a Python
    process that have planned before. Return of each question the tasks, and milliseconds `cold` and `again`."""
    spark = spark_on(str(folder / "none"), **{"spark.driver.memory": "1g"})

    def planned(catalog: str, text: str) -> tuple[float, int]:
        gc.collect()  # Python's references keep plans in the JVM.
        counted: list[int] = []

        def plan() -> None:
            frame: Any = spark.sql(f"SELECT * FROM {catalog}.{PLACE} WHERE {text}")
            counted.append(frame._jdf.queryExecution().toRdd().getNumPartitions())

        return seconds(plan) * 1000, counted[0]

    _ready_in_spark(spark, planned)
    found: dict[str, dict[str, Any]] = {}
    for name, text in texts.items():
        times: dict[str, Any] = {"cold": [], "again": [], "tasks": 0}
        for number in range(1 + rounds):
            catalog = f"c{name.replace(' ', '_')}{number}"
            path = folder / catalog
            path.symlink_to(warehouse.resolve())
            for key, value in spark_conf(str(path), name=catalog, jar="unused", fsync=False).items():
                if key.startswith("spark.sql.catalog."):
                    spark.conf.set(key, value)
            (first, times["tasks"]), (again, _) = planned(catalog, text), planned(catalog, text)
            if number:
                times["cold"].append(first)
                times["again"].append(again)
        found[name] = times
    spark.stop()
    return found


def _ready_in_spark(spark: SparkSession, planned: Callable[[str, str], object]) -> None:
    """Have the JVM compile what plans with, as one does that has run for a while."""
    spark.sql(f"CREATE TABLE lake.{PLACE} (day INT, id BIGINT, customer BIGINT) PARTITIONED BY (day)")
    spark.sql(f"INSERT INTO lake.{PLACE} SELECT int(id % 10), id, id FROM range(100)")
    for number in range(SPARK_WARM_UP):
        planned("lake", f"day = {number % 10}")


def spread(found: list[float]) -> str:
    """Say the median of some, the least and the most."""
    return f"{median(found):.0f} ({min(found):.0f}–{max(found):.0f})"


def _line(name: str, warehouse: str) -> list[str]:
    command = [sys.executable, "-W", "ignore", "-m", "programs.bench.plans", *sys.argv[1:]]
    found = subprocess.run(
        [*command, "--warehouse", warehouse, "--ask", name], check=True, capture_output=True, text=True
    )
    return [name, *json.loads(found.stdout)]


class _Client:
    """A catalog whose requests are counted."""

    def __init__(self, warehouse: str) -> None:
        options = LogOptions(in_parallel=lambda works: self.store.side_by_side(works))
        self.catalog = Catalog(warehouse, log_options=options, options={"fsync": "off"})
        places = self.catalog.places
        self.store = places.stores[places.warehouse] = CountingStore(places.store(places.warehouse))

    def table(self) -> Table:
        return self.catalog.table_at(f"{self.store.url}/{PLACE}")


def _asked(warehouse: str, name: str, arguments: argparse.Namespace) -> list[str]:
    question = _filters(arguments)[name]
    ready()
    client = _Client(warehouse)
    before = peak_mb()
    table, planned, cold_ms = _timed(lambda: (table := client.table(), table.plan(question)))
    counted = [str(client.store.requests), str(client.store.rounds), f"{client.store.bytes_read / 1e6:.2f}"]
    more = peak_mb() - before
    client.store.reset()
    warm = [_timed(lambda: (0, table.plan(question)))[2] for _ in range(5)]
    return [
        f"{planned.num_rows:,}",
        *counted,
        f"{cold_ms:.0f}",
        f"{more:.0f}",
        f"{warm[0]:.1f}",
        f"{min(warm):.1f}",
        str(client.store.requests),
    ]


def ready() -> None:
    """Have what a process loads on its first plan loaded: it is the same for every table."""
    table = Catalog("memory://ready").create_table(PLACE, schema(4), partition_by=["day"])
    table.append(pa.table({name: [None] for name in table.schema.names}, schema=schema(4))).plan(
        col("day") == 1
    )


def _commit(warehouse: str) -> list[str]:
    """Append one file as often as it takes to write a snapshot."""
    client = _Client(warehouse)
    table, most = client.table(), 0
    arguments = argparse.Namespace(days=1, files=10**9, columns=4, arrival="mixed")
    for _ in range(20):
        client.store.reset()
        table = _committed(table, range(1), arguments, random.Random(7))
        wait_for_background()
        most = max(most, client.store.bytes_written)
    return [
        "the largest of 20 small commits: MB written",
        "",
        "",
        "",
        f"{most / 1e6:.2f}",
        "",
        "",
        "",
        "",
        "",
    ]


def _timed(work: Callable[[], tuple[Any, Any]]) -> tuple[Any, Any, float]:
    start = time.process_time()
    one, other = work()
    return one, other, (time.process_time() - start) * 1000


def peak_mb() -> float:
    # Not `getrusage`, which counts what the parent had when it forked.
    line = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
