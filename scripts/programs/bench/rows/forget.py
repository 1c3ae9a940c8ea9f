"""What a forget asks of the store, reads and writes, and how much memory its process needs, on a folder.

Two tables, of ten rows a commit: one of many versions (appends, then updates of a row each), and one of many files in a
few commits. One row matches, in the first file. The erasure runs in a process of its own: its memory is the peak of
that process, less what it had before it looked at the table.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelog.catalog import Catalog
from lakelog.log import CountingStore, wait_for_background
from programs import story

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string(), "day": pa.int32()})
WHERE = "name = 'name0'"
FILES_AT_ONCE = 500
ROWS = 10


def rows(number: int) -> pa.Table:
    numbers = range(number * ROWS, (number + 1) * ROWS)
    return pa.table(
        {"id": numbers, "name": [f"name{each}" for each in numbers], "day": [number] * ROWS}, SCHEMA
    )


def many_versions(catalog: Catalog, appends: int, updates: int) -> None:
    table = catalog.create_table("t", SCHEMA)
    for number in range(appends):
        table = table.append(rows(number))
    for number in range(updates):
        table = table.update({"name": "'changed'"}, f"id = {number * ROWS + 5}")


def many_files(catalog: Catalog, files: int) -> None:
    table = catalog.create_table("t", SCHEMA, partition_by=["day"])
    for start in range(0, files, FILES_AT_ONCE):
        table = table.append(
            pa.concat_tables(rows(each) for each in range(start, min(start + FILES_AT_ONCE, files)))
        )


def erase(warehouse: str, dry_run: bool, said: Any) -> None:
    catalog = Catalog(warehouse)
    places = catalog.places
    store = places.stores[places.warehouse] = CountingStore(places.store(places.warehouse))
    catalog.load_table("t")
    store.reset()
    before, began = _peak_mb(), time.perf_counter()
    done = catalog.forget("t", WHERE, dry_run=dry_run)
    took = time.perf_counter() - began
    assert done.is_needed and not done.left, done
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(store.by_kind.items()))
    megabytes = [f"{count / 1e6:.1f}" for count in (store.bytes_read, store.bytes_written)]
    said.send([f"{store.requests:,}", kinds, *megabytes, f"{_peak_mb() - before:.0f}", f"{took:.1f}"])


def _peak_mb() -> float:
    """Return the peak of this process alone: what `resource` says begins with that of the one which has started it."""
    (line,) = (
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    return int(line.split()[1]) / 1024


def measured(name: str, warehouse: str) -> Iterator[list[str]]:
    context = multiprocessing.get_context("spawn")
    for dry_run in (True, False):
        said, says = context.Pipe(duplex=False)
        process = context.Process(target=erase, args=(warehouse, dry_run, says))
        process.start()
        says.close()
        yield [name, "looks" if dry_run else "erases", *said.recv()]
        process.join()


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench rows.forget", description=__doc__)
    parser.add_argument("--appends", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--updates", type=int, default=200, help="default: %(default)s")
    parser.add_argument("--files", type=int, default=2000, help="default: %(default)s")
    arguments = parser.parse_args()
    lines: list[list[str]] = []
    for name in ("versions", "files"):
        with tempfile.TemporaryDirectory(prefix="lakelog-bench-") as warehouse:
            catalog = Catalog(warehouse)
            if name == "versions":
                many_versions(catalog, arguments.appends, arguments.updates)
            else:
                many_files(catalog, arguments.files)
            wait_for_background()
            lines += measured(f"many {name}", warehouse)
    columns = ["table", "it", "requests", "of which", "MB read of the log", "MB written", "MB of memory", "s"]
    story.table(columns, lines, title=__doc__)


if __name__ == "__main__":
    main()
