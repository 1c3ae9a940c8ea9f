"""Transactions over two tables a second, from processes that write at once to a folder; and a transaction's requests.

Every transaction appends a row to each of two tables. Either all processes share two tables, and queue up, or each
process has two tables of its own. A conflict aborts an attempt, which is retried until the row is there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from lakelog.catalog import Catalog, CommitConflict
from lakelog.log import ConflictError
from programs.bench.measure import all_ready, together, within
from programs.bench.places import folder, memory
from programs.bench.scenario import Row, Rows
from programs.bench.scenarios.counted.requests import Client
from programs.bench.scenarios.counted.requests import transactions as counted_transactions

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})
ROW = pa.table({"id": [1], "name": ["one"]}, schema=SCHEMA)
SHARED, OWN = "the same two tables", "two tables of its own"


def measure(processes: int = 8, seconds: float = 10.0) -> Rows:
    for sharing in (OWN, SHARED):
        for fsync in ("off", "on"):
            with folder() as place:
                yield {
                    "each": sharing,
                    "fsync": fsync,
                    **_throughput(place, sharing, fsync, processes, seconds),
                }
    yield "Requests, data files included"
    for count in (1, 2, 5):
        client = Client(memory())
        names = [f"t{number}" for number in range(count)]
        for name in names:
            client.catalog.create_table(name, SCHEMA).append(ROW)
        yield from counted_transactions(client, names)


def _throughput(place: Path, which: str, fsync: str, processes: int, seconds: float) -> Row:
    catalog = Catalog(place, options={"fsync": fsync})
    names = [("a", "b") if which == SHARED else (f"a{number}", f"b{number}") for number in range(processes)]
    for name in {name for pair in names for name in pair}:
        catalog.create_table(name, SCHEMA)
    results = together(_work, [(place, fsync, pair, seconds) for pair in names])
    abort_count = sum(b'"outcome":"aborted"' in path.read_bytes() for path in (place / "_txn").iterdir())
    return {
        "committed a second": sum(len(times) / took for times, _, took in results),
        "aborted attempts": abort_count,
        "conflicts": sum(conflicts for _, conflicts, _ in results),
        **within([duration for times, _, _ in results for duration in times]),
    }


def _work(place: Path, fsync: str, names: Sequence[str], seconds: float) -> tuple[list[float], int, float]:
    """Commit transactions for a while. Return the time of each, the number of retries, and the total time."""
    catalog = Catalog(place, options={"fsync": fsync})
    for name in names:
        catalog.load_table(name)
    all_ready()
    times: list[float] = []
    conflicts, work_start = 0, time.perf_counter()
    while (start := time.perf_counter()) < work_start + seconds:
        while True:
            try:
                with catalog.transaction() as transaction:
                    for name in names:
                        transaction.load_table(name).append(ROW)
                break
            except (CommitConflict, ConflictError):
                conflicts += 1
        times.append(time.perf_counter() - start)
    return times, conflicts, time.perf_counter() - work_start
