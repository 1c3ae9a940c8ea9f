"""A table that a stream commits to for a week, with and without upkeep: files, bytes written, and what a reader pays.

A commit of a few rows every 30 seconds, in memory, by a clock that is moved: nothing waits. `off` is never compacted,
`auto` by its writer after commits, `daily` by `lakelog compact` once a day. Bytes are those of data files: written
by the stream, and written again by upkeep. Requests are those of a process that knows nothing. Exact on any machine,
except for seconds of CPU, and for which commits `auto` works after, as that follows its own CPU time.
"""

from __future__ import annotations

import argparse
import random
import time
import uuid
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from lakelog.catalog import Catalog, Table
from lakelog.catalog.keeping.upkeep.automatic import wait_for_upkeep
from lakelog.log import CountingStore, LogOptions, wait_for_background
from programs import story

SCHEMA = pa.schema({"id": pa.int64(), "at": pa.int64(), "what": pa.string()})
EVERY_S = 30.0
DAY = round(86_400 / EVERY_S)
ROWS = 20


class Moved:
    """A clock that goes on with the process, and by 30 seconds with each commit."""

    def __init__(self) -> None:
        self.by_s = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.by_s


def batches(count: int, rows: int) -> Iterator[pa.Table]:
    chance = random.Random(1)
    for number in range(count):
        ids = range(number * rows, (number + 1) * rows)
        texts = [f"{chance.getrandbits(64):016x}" for _ in ids]
        yield pa.table({"id": list(ids), "at": [number * 30] * rows, "what": texts}, schema=SCHEMA)


def run(mode: str, commits: int, rows: int, point: int) -> list[str]:
    clock = Moved()
    warehouse = f"memory://{uuid.uuid4().hex}"
    catalog = Catalog(warehouse, log_options=LogOptions(monotonic_s=clock))
    catalog.create_namespace("a")
    properties = {"lakelog.maintenance": "auto" if mode == "auto" else "off"}
    table = catalog.create_table("a.t", SCHEMA, properties=properties)
    spent_s = time.process_time()
    for number, batch in enumerate(batches(commits, rows), start=1):
        table = table.append(batch)
        clock.by_s += EVERY_S
        wait_for_upkeep()
        if mode == "daily" and number % DAY == 0:
            table = table.refresh().compact()
    spent_s = time.process_time() - spent_s
    wait_for_background()
    table = table.refresh()
    asked, again = 0, 0
    compactions = 0
    for entry in table.history():
        added = entry.details.get("added_bytes", 0)
        assert isinstance(added, int)
        if entry.operation == "compact":
            again, compactions = again + added, compactions + 1
        else:
            asked += added
    return [
        mode,
        f"{table.file_count:,}",
        f"{compactions:,}",
        f"{asked / 1e6:.1f}",
        f"{again / 1e6:.1f}",
        f"{1 + again / asked:.2f}",
        f"{spent_s:.0f}",
        *_read(warehouse, None),
        *_read(warehouse, point),
    ]


def _read(warehouse: str, id: int | None) -> list[str]:
    """Return the requests and CPU seconds of a cold reader of all rows, or of the one with an id."""
    catalog = Catalog(warehouse, log_options=LogOptions(in_parallel=_one_by_one))
    places = catalog.places
    store = places.stores[places.warehouse] = CountingStore(places.store(places.warehouse))
    start_s = time.process_time()
    found: Table = catalog.load_table("a.t")
    read = found.scan(filter=None if id is None else f"id = {id}").to_arrow()
    assert read.num_rows == (found.row_count if id is None else 1)
    return [f"{store.requests:,}", f"{time.process_time() - start_s:.2f}"]


def _one_by_one(works: Sequence[Callable[[], None]]) -> None:
    for work in works:
        work()


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench upkeep", description=__doc__)
    parser.add_argument("--commits", type=int, default=20_000)
    parser.add_argument("--rows", type=int, default=ROWS, help="of each commit")
    arguments = parser.parse_args()
    columns = [
        "", "files", "compactions", "MB by the stream", "MB again", "written / asked", "CPU s of the writer",
        "requests of a read of all", "CPU s", "requests for one id", "CPU s",
    ]  # fmt: skip
    point = arguments.commits * arguments.rows // 3
    lines = [run(mode, arguments.commits, arguments.rows, point) for mode in ("off", "auto", "daily")]
    story.table(columns, lines, title=__doc__)


if __name__ == "__main__":
    main()
