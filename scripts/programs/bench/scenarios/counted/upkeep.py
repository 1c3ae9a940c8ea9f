"""A table that a stream commits to for a week, with and without upkeep: files, bytes written, and the cost of reads.

The stream commits a few rows every 30 seconds, in memory, by a simulated clock, so nothing waits. `off` is never
compacted. The writer compacts `auto` after commits, and `lakelog compact` compacts `daily` once a day. Bytes are those
of data files: the stream writes them, and upkeep writes them again. Requests are those of a cold process. They are
exact on any machine, except for CPU seconds, and for the commits that trigger `auto`, which follows its own CPU time.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Annotated

import pyarrow as pa

from lakelog.catalog import Catalog, Table
from lakelog.catalog.keeping.upkeep.automatic import wait_for_upkeep
from lakelog.log import LogOptions, wait_for_background
from programs.bench.measure import cost, seconds
from programs.bench.places import counted, memory
from programs.bench.scenario import Row

SCHEMA = pa.schema({"id": pa.int64(), "at": pa.int64(), "what": pa.string()})
EVERY_S = 30.0
DAY = round(86_400 / EVERY_S)


class MovedClock:
    """A clock that runs with the process, and jumps by 30 seconds with each commit."""

    by_s = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.by_s


def measure(commits: int = 20_000, rows: Annotated[int, "of each commit"] = 20) -> Iterator[Row]:
    for mode in ("off", "auto", "daily"):
        yield _of_mode(mode, commits, rows)


def batches(count: int, rows: int) -> Iterator[pa.Table]:
    chance = random.Random(1)
    for number in range(count):
        ids = range(number * rows, (number + 1) * rows)
        texts = [f"{chance.getrandbits(64):016x}" for _ in ids]
        yield pa.table({"id": list(ids), "at": [number * 30] * rows, "what": texts}, schema=SCHEMA)


def _of_mode(mode: str, commits: int, rows: int) -> Row:
    clock, warehouse = MovedClock(), memory()
    catalog = Catalog(warehouse, log_options=LogOptions(monotonic_s=clock))
    catalog.create_namespace("a")
    properties = {"lakelog.maintenance": "auto" if mode == "auto" else "off"}
    table = catalog.create_table("a.t", SCHEMA, properties=properties)

    def write() -> None:
        nonlocal table
        for number, batch in enumerate(batches(commits, rows), start=1):
            table = table.append(batch)
            clock.by_s += EVERY_S
            wait_for_upkeep()
            if mode == "daily" and number % DAY == 0:
                table = table.refresh().compact()

    spent_s = seconds(write, time.process_time)
    wait_for_background()
    table = table.refresh()
    stream_bytes = upkeep_bytes = compactions = 0
    for entry in table.history():
        added_bytes = entry.details.get("added_bytes", 0)
        assert isinstance(added_bytes, int)
        if entry.operation == "compact":
            upkeep_bytes, compactions = upkeep_bytes + added_bytes, compactions + 1
        else:
            stream_bytes += added_bytes
    return {
        "": mode,
        "files": table.file_count,
        "compactions": compactions,
        "MB by the stream": stream_bytes / 1e6,
        "MB again": upkeep_bytes / 1e6,
        "written / asked": 1 + upkeep_bytes / stream_bytes,
        "CPU s of the writer": spent_s,
        **{f"{column} of a read of all": value for column, value in _read(warehouse, None).items()},
        **{f"{column} for one id": value for column, value in _read(warehouse, commits * rows // 3).items()},
    }


def _read(warehouse: str, id: int | None) -> Row:
    """Return the cost of a cold read of all rows, or of the row with an id."""
    catalog, store = counted(warehouse)

    def read() -> None:
        table: Table = catalog.load_table("a.t")
        result = table.scan(filter=None if id is None else f"id = {id}").to_arrow()
        assert result.num_rows == (table.row_count if id is None else 1)

    return cost(read, "requests", "CPU s", store=store)
