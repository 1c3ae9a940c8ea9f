"""Expiry of many versions and vacuum of many objects of one table at once, by two Python processes or in Spark.

Each way has a table of its own, with a history that is written directly, and empty objects in its folder that are named
as those of writes that began long ago. The peak is that of all memory of a process, of a Python of its own without what
it had before; in Spark both calls run in one session, and its executors in the JVM.
"""

from __future__ import annotations

import datetime as dt
import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lakelog.catalog import Catalog
from lakelog.log import CountingStore, LocalStore, LogOptions, new_id
from programs import story
from programs.bench.data import long_log

LATER = 10_000
"""Versions that stay."""

FILES_OF_A_WRITE = 1000


def compared(folder: Path, expired: int, objects: int, ways: list[str]) -> None:
    lines: list[list[str]] = []
    for way in ways:
        warehouse = str(folder / way)
        end_us = int(time.time() * 1e6) - 3_600_000_000
        long_log.write_history(warehouse, expired + LATER, lambda done: None, end_us=end_us)
        _litter(Path(Catalog(warehouse).load_table(long_log.NAME).location) / "data", objects)
        story.say(f"{way}: {expired + LATER:,} versions and {objects:,} objects made")
        lines += (_in_python if way == "python" else _in_spark)(warehouse, expired, objects)
        _check(warehouse, expired, objects)
    columns = ["way", "what", "s", "peak MB", "requests", "a version or object"]
    story.table(columns, lines, title=f"{expired:,} versions expire beside a vacuum of {objects:,} objects")


def _litter(data: Path, objects: int) -> None:
    for write in range(-(-objects // FILES_OF_A_WRITE)):
        id = new_id()
        for number in range(min(FILES_OF_A_WRITE, objects - write * FILES_OF_A_WRITE)):
            os.close(os.open(data / f"{1:020d}-{id}-{number:05d}.parquet", os.O_CREAT | os.O_WRONLY))


def _check(warehouse: str, expired: int, objects: int) -> None:
    table = Catalog(warehouse).load_table(long_log.NAME)
    assert table.head.view.state.expired == expired, table.head.view.state.expired
    left = sum(1 for _ in (Path(table.location) / "data").iterdir())
    assert left < objects and table.changes(table.version - 9).to_arrow().num_rows, left


def expire(warehouse: str, expired: int) -> tuple[float, float, str, float]:
    wish: dict[str, Any] = {"version": expired, "dry_run": False, "trust_clock": True}
    return _alone(warehouse, lambda catalog: catalog.expire(long_log.NAME, **wish))


def vacuum(warehouse: str, objects: int) -> tuple[float, float, str, float]:
    wish: dict[str, Any] = {"older_than": dt.timedelta(0), "dry_run": False, "trust_clock": True}
    return _alone(warehouse, lambda catalog: catalog.vacuum(long_log.NAME, **wish))


def _alone(warehouse: str, work: Callable[[Catalog], object]) -> tuple[float, float, str, float]:
    """Seconds, peak, requests by kind, and all of them, of work in this process."""
    store = CountingStore(LocalStore(warehouse, fsync=False))
    catalog = Catalog(warehouse, log_options=LogOptions(in_parallel=store.side_by_side))
    catalog.places.stores[catalog.places.warehouse] = store
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    work(catalog)
    took = time.perf_counter() - began
    peak_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb) / 1024
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(store.by_kind.items()))
    return took, peak_mb, kinds, store.requests


def _in_python(warehouse: str, expired: int, objects: int) -> list[list[str]]:
    # A process that was forked would begin with the memory of this one.
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = [
            pool.apply_async(expire, (warehouse, expired)),
            pool.apply_async(vacuum, (warehouse, objects)),
        ]
        done = [each.get() for each in found]
    return [
        ["Python", what, f"{took:.0f}", f"{peak_mb:.0f}", kinds, f"{requests / count:.2f}"]
        for what, count, (took, peak_mb, kinds, requests) in zip(
            ("expire", "vacuum"), (expired, objects), done, strict=True
        )
    ]


def _in_spark(warehouse: str, expired: int, objects: int) -> list[list[str]]:
    from programs.bench.measure import spark_on

    # Spark's default: with more, the JVM takes more before it collects.
    spark = spark_on(warehouse, **{"spark.sql.catalog.lake.fsync": "off", "spark.driver.memory": "1g"})
    process = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    both = f"table => '{long_log.NAME}', dry_run => false, trust_clock => true"
    calls = {
        "expire": f"expire({both}, version => {expired})",
        "vacuum": f"vacuum({both}, older_than => INTERVAL '0' DAY)",
    }
    spark.sql("SELECT 1").collect()

    def call(what: str) -> float:
        began = time.perf_counter()
        spark.sql(f"CALL lake.system.{calls[what]}").collect()
        return time.perf_counter() - began

    with _peaks(process) as peaks, ThreadPoolExecutor(2) as pool:
        took = dict(zip(calls, pool.map(call, calls), strict=True))
    spark.stop()
    peak = ", ".join(f"{name} {mb:.0f}" for name, mb in peaks.items())
    return [["Spark", what, f"{took[what]:.0f}", peak, "–", "–"] for what in calls]


@contextmanager
def _peaks(process: int) -> Iterator[dict[str, float]]:
    """Yield what has the peak of each of the processes below one, once the block has ended."""
    peaks: dict[str, float] = {}
    yield peaks
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            facts = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        except OSError:
            continue
        parents[int(status.parent.name)] = int(facts["PPid"])
        if "VmHWM" in facts:
            peaks[status.parent.name] = int(facts["VmHWM"].split()[0]) / 1024
    for id in list(peaks):
        above = int(id)
        while above not in (0, process):
            above = parents.get(above, 0)
        size = peaks.pop(id)
        if above == process:
            name = Path(f"/proc/{id}/comm").read_text().strip()
            peaks[name] = max(size, peaks.get(name, 0))
