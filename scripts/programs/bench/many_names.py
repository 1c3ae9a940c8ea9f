"""What names cost in a namespace of many tables: requests, bytes and CPU of a look-up, a creation and a list.

All tables but one exist as links only, which are written many at once: no operation here opens them.
"""

from __future__ import annotations

import argparse
import time
import uuid
from collections.abc import Callable

import pyarrow as pa

from lakelog.catalog import Catalog
from lakelog.log import CountingStore, LogOptions, MemoryStore, wait_for_background
from programs import story
from programs.bench.measure import median
from programs.bench.names import link

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench many_names", description=__doc__)
    parser.add_argument("--tables", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=20, help="of creations (default: %(default)s)")
    arguments = parser.parse_args()
    lines = [line for tables in arguments.tables for line in _measured(tables, arguments.rounds)]
    columns = ["operation", "tables", "requests", "rounds", "KB read", "KB written", "CPU ms"]
    story.table(columns, lines, title="A namespace of many tables")


def _measured(tables: int, rounds: int) -> list[list[str]]:
    url = f"memory://{uuid.uuid4().hex}"
    _make(url, tables)
    catalog, store = _client(url)
    lines = [_line("first look-up, cold", tables, store, lambda: catalog.load_table("a.t"))]
    lines.append(_line("look-up, warm", tables, store, lambda: catalog.load_table("a.t")))
    lines.append(_line("list, warm", tables, store, lambda: catalog.list_tables("a")))
    created = [
        _line("create", tables, store, lambda n=number: catalog.create_table(f"a.new{n}", SCHEMA))  # type: ignore[misc]
        for number in range(rounds)
    ]
    # With the snapshots and hints that some of them are followed by.
    middle = [f"{median([float(line[at].replace(',', '')) for line in created]):,.1f}" for at in range(2, 7)]
    return [*lines, [f"create, median of {rounds}", f"{tables:,}", *middle]]


def _make(url: str, tables: int) -> None:
    catalog = Catalog(url)
    catalog.create_namespace("a")
    catalog.create_table("a.t", SCHEMA)
    link(catalog, "a", tables - 1)
    wait_for_background()


def _client(url: str) -> tuple[Catalog, CountingStore]:
    store = CountingStore(MemoryStore.named(url))
    catalog = Catalog(url, log_options=LogOptions(in_parallel=store.side_by_side))
    catalog.places.stores[catalog.places.warehouse] = store
    return catalog, store


def _line(name: str, tables: int, store: CountingStore, work: Callable[[], object]) -> list[str]:
    store.reset()
    begun = time.process_time()
    work()
    wait_for_background()
    spent_ms = (time.process_time() - begun) * 1000
    amounts = (store.bytes_read / 1000, store.bytes_written / 1000, spent_ms)
    return [
        name,
        f"{tables:,}",
        f"{store.requests:,}",
        f"{store.rounds:,}",
        *(f"{each:,.1f}" for each in amounts),
    ]


if __name__ == "__main__":
    main()
