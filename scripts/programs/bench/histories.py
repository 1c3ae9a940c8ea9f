"""What operations cost on tables with long histories: requests, CPU and memory, by the number of versions.

Each table is written directly (see `long_log`), and each operation runs in a process of its own, so that its memory is
its own. Requests and round trips are exact on any machine; a LIST counts once for each 1,000 keys that are taken of it.
"""

from __future__ import annotations

import argparse
import datetime as dt
import multiprocessing
import resource
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lakelog.catalog import Catalog
from lakelog.log import CountingStore, LocalStore, LogOptions, ObjectStore, wait_for_background
from programs import story
from programs.bench.data import long_log
from programs.bench.data.long_log import NAME, STEP_US
from programs.bench.workers.side_by_side import compared

PAGE = 1000
DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Cost:
    """What one operation cost. `peak_mb` is of the process, without what it had before."""

    requests: int
    rounds: int
    kinds: str
    read_mb: float
    cpu_s: float
    wall_s: float
    peak_mb: float


@dataclass(frozen=True, slots=True)
class Bench:
    """A table, and what is asked of it: `of` versions, the last at `end_us`."""

    catalog: Catalog
    of: int
    end_us: int

    def cold_load(self) -> object:
        return self.catalog.load_table(NAME)

    def first_page(self) -> object:
        return list(self.catalog.load_table(NAME).history(limit=20))

    def history(self) -> object:
        return deque(self.catalog.load_table(NAME).history(), maxlen=1)

    def as_of(self) -> object:
        return self.catalog.load_table(NAME, timestamp_us=self.end_us - self.of // 3 * STEP_US).row_count

    def changes(self) -> object:
        table = self.catalog.load_table(NAME)
        return table.changes(table.version - 99).to_arrow().num_rows

    def audit_day(self) -> object:
        day = self.end_us - self.of // 3 * STEP_US
        return len(list(self.catalog.audit(table=NAME, since=day, until=day + DAY_US - 1)))

    def fsck(self) -> object:
        return self.catalog.fsck(NAME).worst

    def expire_plan(self) -> object:
        return self.catalog.expire(NAME, version=self.of // 10, trust_clock=True)

    def expire(self) -> object:
        return self.catalog.expire(NAME, version=self.of // 10, dry_run=False, trust_clock=True)

    def vacuum(self) -> object:
        return self.catalog.vacuum(NAME, older_than=dt.timedelta(0), dry_run=False, trust_clock=True)


OPERATIONS: dict[str, str] = {
    "cold_load": "load by name, cold",
    "first_page": "load, and 20 entries of history",
    "as_of": "load AS OF a time",
    "changes": "rows changed by the last 100 versions",
    "audit_day": "audit of a day",
    "history": "all of the history",
    "fsck": "fsck",
    "expire_plan": "expire a tenth, dry run",
    "expire": "expire a tenth",
    "vacuum": "vacuum after that",
}


class PagedStore(CountingStore):
    """Counts a LIST again for each further page that is taken of it."""

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        keys = super().list_after(prefix, after)
        return (key for key, _ in self._paged((key, 0) for key in keys))

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        return self._paged(super().list_sizes(prefix, after))

    def _paged(self, entries: Iterator[tuple[str, int]]) -> Iterator[tuple[str, int]]:
        for number, entry in enumerate(entries):
            if number and number % PAGE == 0:
                self._count("list")
            yield entry


def measured(warehouse: str, versions: int, end_us: int, operation: str) -> Cost:
    """Run one operation in this process and return what it cost."""
    store = PagedStore(LocalStore(warehouse, fsync=False))
    catalog = opened(warehouse, store)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cpu, wall = time.process_time(), time.perf_counter()
    getattr(Bench(catalog, versions, end_us), operation)()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    wait_for_background()
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(store.by_kind.items()))
    return Cost(store.requests, store.rounds, kinds, store.bytes_read / 1e6, cpu, wall, peak_kb / 1024)


def opened(warehouse: str, store: ObjectStore) -> Catalog:
    options = LogOptions(
        in_parallel=store.side_by_side if isinstance(store, CountingStore) else LogOptions().in_parallel
    )
    catalog = Catalog(warehouse, log_options=options)
    catalog.places.stores[catalog.places.warehouse] = store
    return catalog


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench histories", description=__doc__)
    parser.add_argument("--versions", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--only", nargs="+", choices=list(OPERATIONS), default=list(OPERATIONS))
    parser.add_argument("--folder", help="make the tables here, or use those that are here, and keep them")
    parser.add_argument(
        "--side-by-side",
        nargs="+",
        choices=("python", "spark"),
        help="expire --expired versions of a table while a vacuum deletes --objects of it, in these ways; nothing else",
    )
    parser.add_argument("--expired", type=int, default=100_000, help="default: %(default)s")
    parser.add_argument("--objects", type=int, default=1_000_000, help="default: %(default)s")
    arguments = parser.parse_args()
    if arguments.side_by_side:
        with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as place:
            compared(Path(place), arguments.expired, arguments.objects, arguments.side_by_side)
        return
    with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as temporary:
        folder = Path(arguments.folder or temporary)
        found = {
            versions: _costs(folder, versions, arguments.only) for versions in sorted(arguments.versions)
        }
    lines = [
        [OPERATIONS[operation], f"{versions:,}", *_cells(costs[operation])]
        for operation in arguments.only
        for versions, costs in found.items()
    ]
    columns = ["operation", "versions", "requests", "rounds", "MB read", "CPU s", "s", "peak MB", "of which"]
    story.table(columns, lines, title="Long histories")


def _costs(folder: Path, versions: int, operations: list[str]) -> dict[str, Cost]:
    warehouse, stamp = folder / f"of-{versions}", folder / f"of-{versions}.end"
    if not stamp.exists():
        end_us = int(time.time() * 1e6) - DAY_US // 24
        begun = time.perf_counter()
        long_log.write_history(str(warehouse), versions, _say(versions), end_us=end_us)
        story.say(f"made {versions:,} versions in {time.perf_counter() - begun:.0f} s")
        stamp.write_text(str(end_us))
    end_us = int(stamp.read_text())
    costs = {}
    # A process that was forked would begin with the memory of this one.
    context = multiprocessing.get_context("spawn")
    for operation in operations:
        with context.Pool(1) as pool:
            costs[operation] = pool.apply(measured, (str(warehouse), versions, end_us, operation))
        story.say(f"{versions:,} versions: {OPERATIONS[operation]}: {', '.join(_cells(costs[operation]))}")
    return costs


def _say(versions: int) -> Callable[[int], None]:
    return lambda done: story.say(f"{done:,} of {versions:,} versions") if done % 100_000 == 0 else None


def _cells(cost: Cost) -> list[str]:
    return [
        f"{cost.requests:,}",
        f"{cost.rounds:,}",
        f"{cost.read_mb:,.1f}",
        f"{cost.cpu_s:,.2f}",
        f"{cost.wall_s:,.2f}",
        f"{cost.peak_mb:,.0f}",
        cost.kinds or "–",
    ]


if __name__ == "__main__":
    main()
