"""The cost of operations on tables with long histories: requests, CPU and memory, by the number of versions.

Each table is written directly (see `long_log`). Each operation runs in a process of its own, so that its memory is its
own. Requests and round trips are exact on any machine. A LIST counts once for each 1,000 keys that its caller takes.
"""

from __future__ import annotations

import datetime as dt
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from lakelog.catalog import Catalog
from lakelog.log import CountingStore
from programs.bench.data import long_log
from programs.bench.data.long_log import NAME, STEP_US
from programs.bench.measure import apart, cost, seconds
from programs.bench.places import counted, folder
from programs.bench.scenario import Row, say

PAGE = 1000
DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class History:
    """A table with `of` versions, the last at `end_us`."""

    catalog: Catalog
    of: int
    end_us: int

    @property
    def day(self) -> int:
        return self.end_us - self.of // 3 * STEP_US

    def changes(self) -> object:
        table = self.catalog.load_table(NAME)
        return table.changes(table.version - 99).to_arrow().num_rows

    def audit(self) -> object:
        return len(list(self.catalog.audit(table=NAME, since=self.day, until=self.day + DAY_US - 1)))

    def expire(self, dry_run: bool) -> object:
        return self.catalog.expire(NAME, version=self.of // 10, dry_run=dry_run, trust_clock=True)

    def vacuum(self) -> object:
        return self.catalog.vacuum(NAME, older_than=dt.timedelta(0), dry_run=False, trust_clock=True)


OPERATIONS: dict[str, tuple[str, Callable[[History], object]]] = {
    "cold_load": ("load by name, cold", lambda it: it.catalog.load_table(NAME)),
    "first_page": (
        "load, and 20 entries of history",
        lambda it: list(it.catalog.load_table(NAME).history(limit=20)),
    ),
    "as_of": ("load AS OF a time", lambda it: it.catalog.load_table(NAME, timestamp=it.day).row_count),
    "changes": ("rows changed by the last 100 versions", History.changes),
    "audit_day": ("audit of a day", History.audit),
    "history": ("all of the history", lambda it: deque(it.catalog.load_table(NAME).history(), maxlen=1)),
    "fsck": ("fsck", lambda it: it.catalog.fsck(NAME).worst),
    "expire_plan": ("expire a tenth, dry run", lambda it: it.expire(dry_run=True)),
    "expire": ("expire a tenth", lambda it: it.expire(dry_run=False)),
    "vacuum": ("vacuum after that", History.vacuum),
}


class PagedStore(CountingStore):
    """A store that counts a LIST again for each further page that its caller takes."""

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


def measure(
    versions: Sequence[int] = (10_000, 100_000),
    only: Annotated[Sequence[str], "operations"] = tuple(OPERATIONS),
    tables: Annotated[str, "a folder of tables that are kept; made if they are missing"] = "",
) -> Iterator[Row]:
    with folder() as temporary:
        for number in sorted(versions):
            warehouse, end_us = _made(Path(tables or temporary), number)
            for operation in only:
                yield {
                    "operation": OPERATIONS[operation][0],
                    "versions": number,
                    **apart(_cost, warehouse, number, end_us, operation),
                }


def _made(place: Path, versions: int) -> tuple[Path, int]:
    warehouse, stamp = place / f"of-{versions}", place / f"of-{versions}.end"
    if not stamp.exists():
        end_us = int(time.time() * 1e6) - DAY_US // 24

        def progress(done: int) -> None:
            say(f"{done:,} of {versions:,} versions") if done % 100_000 == 0 else None

        write_s = seconds(lambda: long_log.write_history(str(warehouse), versions, progress, end_us=end_us))
        say(f"made {versions:,} versions in {write_s:.0f} s")
        stamp.write_text(str(end_us))
    return warehouse, int(stamp.read_text())


def _cost(warehouse: Path, versions: int, end_us: int, operation: str) -> dict[str, Any]:
    catalog, store = counted(warehouse, PagedStore, options={"fsync": "off"})
    work, history = OPERATIONS[operation][1], History(catalog, versions, end_us)
    columns = ("requests", "rounds", "MB read", "CPU s", "s", "peak MB", "of which")
    return cost(lambda: work(history), *columns, store=store)
