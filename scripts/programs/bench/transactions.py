"""Transactions over two tables a second, from processes that write at once to one folder; and the requests of one.

Every transaction appends a row to each of two tables: to the same two as all others, which queue up then, or to two of
its process's own. An attempt that conflicts with others is aborted; it is retried until the row is there.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from lakelog.catalog import Catalog, CommitConflict
from lakelog.log import ConflictError, CountingStore, LogOptions, wait_for_background
from programs import story

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})
ROW = pa.table({"id": [1], "name": ["one"]}, schema=SCHEMA)
SHARED, OWN = "the same two tables", "two tables of its own"


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench transactions", description=__doc__)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    lines = []
    for which in (OWN, SHARED):
        for fsync in ("off", "on"):
            measured = _throughput(which, fsync, arguments.processes, arguments.seconds)
            lines.append([f"{which}, fsync={fsync}", *measured])
    columns = ["", "committed/s", "aborted attempts", "conflicts", "p50 ms", "p95 ms"]
    title = f"transactions over 2 tables, {arguments.processes} processes for {arguments.seconds:.0f} s"
    story.table(columns, lines, title=title)
    columns = ["a transaction that appends to", "requests", "round trips", "of which"]
    story.table(columns, [_requests(count) for count in (1, 2, 5)], title="requests, data files included")


def _throughput(which: str, fsync: str, processes: int, seconds: float) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as folder:
        warehouse = f"{folder}/lake"
        catalog = Catalog(warehouse, options={"fsync": fsync})
        catalog.create_namespace("bench")
        names = [_names(which, number) for number in range(processes)]
        for name in {name for pair in names for name in pair}:
            catalog.create_table(name, SCHEMA)
        context = multiprocessing.get_context("spawn")
        results = context.SimpleQueue()
        ready = context.Barrier(processes)
        workers = [
            context.Process(target=_work, args=(warehouse, fsync, pair, seconds, ready, results))
            for pair in names
        ]
        for worker in workers:
            worker.start()
        found: list[tuple[list[float], int, float]] = [results.get() for _ in workers]
        for worker in workers:
            worker.join()
        times = sorted(spent for spents, _, _ in found for spent in spents)
        aborted = sum(
            b'"outcome":"aborted"' in path.read_bytes() for path in Path(warehouse, "_txn").iterdir()
        )
        rate = sum(len(spents) / took for spents, _, took in found)
    return [
        f"{rate:.0f}",
        str(aborted),
        str(sum(conflicts for _, conflicts, _ in found)),
        f"{statistics.median(times) * 1000:.0f}",
        f"{times[int(len(times) * 0.95)] * 1000:.0f}",
    ]


def _names(which: str, number: int) -> tuple[str, str]:
    return ("bench.a", "bench.b") if which == SHARED else (f"bench.a{number}", f"bench.b{number}")


def _work(
    warehouse: str, fsync: str, names: Sequence[str], seconds: float, ready: object, results: object
) -> None:
    """Commit transactions for a while; hand over how long each took, how often one was retried, and the time."""
    catalog = Catalog(warehouse, options={"fsync": fsync})
    for name in names:
        catalog.load_table(name)
    ready.wait()  # type: ignore[attr-defined]
    times: list[float] = []
    conflicts, begun = 0, time.perf_counter()
    while (start := time.perf_counter()) < begun + seconds:
        while True:
            try:
                with catalog.transaction() as transaction:
                    for name in names:
                        transaction.load_table(name).append(ROW)
                break
            except (CommitConflict, ConflictError):
                conflicts += 1
        times.append(time.perf_counter() - start)
    results.put((times, conflicts, time.perf_counter() - begun))  # type: ignore[attr-defined]


def _requests(tables: int) -> list[str]:
    """Count the requests of one transaction, when there is no other writer and every log is cached."""
    store: CountingStore | None = None

    def side_by_side(work: Sequence[Callable[[], None]]) -> None:
        """What runs at once takes as many round trips as the longest of it."""
        assert store is not None
        before, longest = store.rounds, 0
        for one in work:
            store.rounds = before
            one()
            longest = max(longest, store.rounds - before)
        store.rounds = before + longest

    catalog = Catalog(f"memory://{uuid.uuid4().hex}", log_options=LogOptions(in_parallel=side_by_side))
    places = catalog.places
    store = CountingStore(places.store(places.warehouse))
    places.stores[places.warehouse] = store
    catalog.create_namespace("a")
    names = [f"a.t{number}" for number in range(tables)]
    for name in names:
        catalog.create_table(name, SCHEMA).append(ROW)
    wait_for_background()
    store.reset()
    with catalog.transaction() as transaction:
        for name in names:
            transaction.load_table(name).append(ROW)
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(store.by_kind.items()))
    what = "1 table: a plain commit" if tables == 1 else f"{tables} tables"
    return [what, str(store.requests), str(store.rounds), kinds]


if __name__ == "__main__":
    main()
