"""The cost of a plan of a table of many files: requests, rounds, bytes, processor time and memory.

Each question is planned cold in a process of its own, then five times again. Rows of a commit show the most bytes that
any of 20 small commits writes. With `--spark`, rows show how long Spark's driver plans instead, in milliseconds. There,
a catalog that has read nothing makes each cold plan, in a session that has planned before.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa

from lakelog.catalog import Catalog, Filter, Table, col
from lakelog.log import wait_for_background
from programs.bench.data.file_lists import PLACE, FileList, committed, lakelog
from programs.bench.measure import apart, cost, seconds
from programs.bench.places import counted, folder
from programs.bench.scenario import Rows
from programs.bench.spark_plans import lakelog_plans


def measure(
    files: int = 1_000_000,
    days: int = 1000,
    columns: Annotated[int, "of which files have statistics, at least 4: the log keeps the first 32"] = 4,
    arrival: Annotated[Literal["by-day", "mixed"], "the order of commits"] = "by-day",
    warehouse: Annotated[str, "a folder that is kept; made if it is missing"] = "",
    spark: Annotated[bool, "how long Spark plans"] = False,
    rounds: Annotated[int, "in Spark"] = 5,
) -> Rows:
    of = FileList(files, days, columns, by_day=arrival == "by-day")
    with folder() as temporary:
        place = Path(warehouse or temporary / "warehouse")
        if not place.exists():
            lakelog(place, of)
        if spark:
            texts = {name: f"{column} = {value}" for name, (column, value) in of.questions.items()}
            for name, row in lakelog_plans(place, temporary, {**texts, "all files": "true"}, rounds).items():
                yield {"": name, **row}
            return
        size = sum(path.stat().st_size for path in Path(place, PLACE, "_log", "manifests").glob("*"))
        yield f"all manifests ever written: {size / 1e6:.1f} MB"
        filters: dict[str, Filter | None] = {
            name: col(column) == value for name, (column, value) in of.questions.items()
        }
        for name, filter in (filters | {"all files": None}).items():
            yield {"": name, **apart(_plan, place, filter)}
        yield {"commits": 20, "most MB written by one": _most_written_mb(place, of)}


def ready() -> None:
    """Load the code that a process loads on its first plan, because it is the same for every table."""
    schema = FileList(0).schema
    table = Catalog("memory://ready").create_table(PLACE, schema, partition_by=["day"])
    table.append(pa.table({name: [None] for name in schema.names}, schema)).plan(col("day") == 1)


def _plan(place: Path, filter: Filter | None) -> dict[str, Any]:
    ready()
    catalog, store = counted(place, options={"fsync": "off"})
    tables: list[Table] = []
    files: list[int] = []

    def cold() -> None:
        tables.append(catalog.table_at(f"{store.url}/{PLACE}"))
        files.append(tables[0].plan(filter).num_rows)

    plan_cost = cost(cold, "GETs", "rounds", "MB read", "CPU ms", "peak MB", store=store)
    store.reset()
    again_s = [seconds(lambda: tables[0].plan(filter), time.process_time) for _ in range(5)]
    return {
        "files": files[0],
        **plan_cost,
        "again, CPU ms": [duration * 1e3 for duration in again_s],
        "requests again": store.requests,
    }


def _most_written_mb(place: Path, of: FileList) -> float:
    """Append a file as often as it takes to write a snapshot, and return the most megabytes of an append."""
    catalog, store = counted(place, options={"fsync": "off"})
    table, most = catalog.table_at(f"{store.url}/{PLACE}"), 0
    for _ in range(20):
        store.reset()
        table = committed(table, next(FileList(1, columns=of.columns).commits()))
        wait_for_background()
        most = max(most, store.bytes_written)
    return most / 1e6
