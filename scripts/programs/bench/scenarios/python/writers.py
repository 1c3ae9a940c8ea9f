"""Writers that append to a table at the same time: appends a second, waits, and each writer's share of the appends.

Each line is a run of its own: so many processes, each with so many threads. Each thread appends small Arrow tables in
sequence for some seconds. With `--warming`, appends in the first seconds do not count, nor do appends after the first
writers have ended. On S3 (versitygw) a proxy delays each PUT by 60 ms, each GET by 25 ms and each LIST by 50 ms. At the
end the table is counted: every acknowledged append has to be there once.

`--creates` creates tables in a namespace instead of appending. `--appends` goes on until there are so many appends.
Then it reports how long a new client takes to count the rows, through the same proxy.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, Literal

import pyarrow as pa

from lakelog.catalog import Aggregate, Catalog, LogOptions
from lakelog.log import wait_for_background
from programs.bench.measure import all_ready, seconds, together
from programs.bench.places import HELD_MS, folder, held_up, s3
from programs.bench.scenario import Row

SCHEMA = pa.schema({"id": pa.int64(), "text": pa.string()})
NAMES = "names"
COOLING_S = 2.0


@dataclass(frozen=True, kw_only=True)
class Order:
    """The work of each process. `appends` counts the appends of each thread."""

    place: str
    settings: Mapping[str, str]
    threads: int
    warming_s: float
    seconds: float
    rows: int
    proposals: bool
    creates: bool
    appends: int


@dataclass(frozen=True)
class Answer:
    waits: list[list[float]]
    done: int
    failed: int
    cpu_s: float
    took_s: float


def measure(
    runs: Annotated[Sequence[str], "processes x threads of each run"] = (
        "1x1",
        "4x1",
        "8x1",
        "1x8",
        "4x8",
        "1x100",
        "20x5",
    ),
    seconds: Annotated[float, "of each run"] = 10,
    warming: Annotated[float, "seconds before these"] = 0,
    rows: Annotated[int, "of an append, 100 bytes each"] = 10,
    proposals: Annotated[bool, "processes propose appends to each other, and combine them"] = False,
    creates: Annotated[bool, "tables in one namespace, in place of appends"] = False,
    appends: Annotated[int, "of all writers, in place of --seconds"] = 0,
    on: Literal["folder", "s3"] = "s3",
    held: Annotated[Sequence[float], "ms of a PUT, a GET and a LIST"] = HELD_MS,
) -> Iterator[Row]:
    with ExitStack() as stack:
        place = stack.enter_context(folder())
        server = stack.enter_context(s3(place)) if on == "s3" else None
        for number, run in enumerate(runs):
            processes, threads = map(int, run.split("x"))
            with ExitStack() as proxy:
                settings, counts = proxy.enter_context(held_up(server, held)) if server else ({}, {})
                order = Order(
                    place=f"s3://lake/w{number}" if server else str(place / f"w{number}"),
                    settings=settings,
                    threads=threads,
                    warming_s=warming,
                    seconds=seconds,
                    rows=rows,
                    proposals=proposals,
                    creates=creates,
                    appends=-(-appends // (processes * threads)),
                )
                row = _run(order, server.options if server else {}, processes)
            yield {"processes x threads": run, **row, **counts}


def _run(order: Order, direct: Mapping[str, str], processes: int) -> Row:
    catalog = Catalog(order.place, options=direct)
    catalog.create_table("t", SCHEMA)
    catalog.create_namespace(NAMES)
    for number in range(processes):
        catalog.create_table(f"other_{number}", SCHEMA)
    wait_for_background()
    answers = together(_work, [(order, number) for number in range(processes)])
    waits = sorted(wait for answer in answers for own in answer.waits for wait in own)
    if not waits:
        raise SystemExit("no append was done in this time: give more --seconds")
    acknowledged_count = sum(answer.done for answer in answers)
    failed_count = sum(answer.failed for answer in answers)
    write_count, versions = (_names if order.creates else _appends)(catalog, order.rows)
    if not acknowledged_count <= write_count <= acknowledged_count + failed_count:
        raise SystemExit(
            f"{write_count} are there, and {acknowledged_count} were acknowledged: some are lost, or there twice"
        )
    took_s = max(answer.took_s for answer in answers) if order.appends else order.seconds
    thread_counts = [len(own) for answer in answers for own in answer.waits]
    middle, late = waits[len(waits) // 2], waits[int(len(waits) * 0.99)]
    return {
        "appends/s": len(waits) / took_s,
        "failed": failed_count,
        "median, p99, longest ms": f"{middle * 1000:.0f}, {late * 1000:.0f}, {waits[-1] * 1000:.0f}",
        "least, most of one": f"{min(thread_counts)}, {max(thread_counts)}",
        "versions": versions,
        "CPU s": sum(answer.cpu_s for answer in answers),
        **({"s": took_s, "count, ms": _count_s(order) * 1000} if order.appends else {}),
    }


def _appends(catalog: Catalog, rows: int) -> tuple[int, int]:
    """Return the number of appends, each with all of its rows once, and of the versions that contain them."""
    table = catalog.load_table("t")
    ids = table.scan().to_arrow()["id"].to_pylist()
    if len(set(ids)) != len(ids):
        raise SystemExit(f"of {len(ids)} rows some are there twice")
    if len(ids) % rows:
        raise SystemExit(f"{len(ids)} rows are there: an append is there in part")
    return len(ids) // rows, table.version - 1


def _names(catalog: Catalog, rows: int) -> tuple[int, int]:
    """Return the number of tables, and of the versions that link them."""
    link_versions = {
        entry.version for entry in catalog.audit() if entry.name == (NAMES,) and "link" in entry.operations
    }
    return len(catalog.list_tables(NAMES)), len(link_versions)


def _count_s(order: Order) -> float:
    """Return how long a cold client takes to count the rows."""
    catalog = Catalog(order.place, options=order.settings)
    catalog.load_table("other_0")
    return seconds(lambda: catalog.load_table("t").scan().aggregate([Aggregate("count")]))


def _work(order: Order, number: int) -> Answer:
    """Append according to the order, once all processes are ready."""
    catalog = Catalog(order.place, options=order.settings, log_options=LogOptions(proposals=order.proposals))
    # The imports of a process, and its requests to S3 for the first write, do not belong to an append.
    catalog.load_table(f"other_{number}").append(pa.table({"id": [number], "text": [""]}, schema=SCHEMA))
    catalog.load_table("t")
    all_ready()
    waits: list[list[float]] = [[] for _ in range(order.threads)]
    done_counts = [0] * order.threads
    failed_counts = [0] * order.threads
    start = time.monotonic() + order.warming_s
    end = start + order.seconds
    last = end + (COOLING_S if order.warming_s else 0.0)
    used_s: list[float] = []
    for after_s in () if order.appends else (order.warming_s, order.warming_s + order.seconds):
        threading.Timer(after_s, lambda: used_s.append(time.process_time())).start()

    def append(thread: int) -> None:
        table = catalog.load_table("t")
        ids = (number * order.threads + thread) * 1_000_000
        text = pa.array(
            ["x" * 92] * order.rows
        )  # The data is made once, because making it does not belong to an append.
        while (append_start := time.monotonic()) < last or order.appends:
            if order.appends and done_counts[thread] + failed_counts[thread] >= order.appends:
                break
            rows = range(ids, ids := ids + order.rows)
            data = pa.table({"id": pa.array(rows, pa.int64()), "text": text}, schema=SCHEMA)
            try:
                if order.creates:
                    catalog.create_table(f"{NAMES}.t_{ids}", SCHEMA)
                else:
                    table = table.append(data)
            except Exception as error:
                print(error, file=sys.stderr)
                failed_counts[thread] += 1
            else:
                done_counts[thread] += 1
                if start <= append_start < end or order.appends:
                    waits[thread].append(time.monotonic() - append_start)

    threads = [threading.Thread(target=append, args=(thread,)) for thread in range(order.threads)]
    for worker in threads:
        worker.start()
    for worker in threads:
        worker.join()
    cpu_s = used_s[1] - used_s[0] if len(used_s) == 2 else time.process_time()
    return Answer(waits, sum(done_counts), sum(failed_counts), cpu_s, time.monotonic() - start)
