"""What names cost in a namespace of many tables, or of many namespaces: requests, bytes and CPU of a look-up, a
creation and a list.

All but one exist as links only, which are written many at once: no operation here opens them.
"""

from __future__ import annotations

import argparse
import time
import uuid
from collections.abc import Callable

import pyarrow as pa

from lakelog.catalog import Catalog
from lakelog.catalog.core.state import NAMESPACE, RELATION, TABLE
from lakelog.log import CountingStore, LogOptions, MemoryStore, wait_for_background
from programs import story
from programs.bench.measure import median
from programs.bench.names import link

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench many_names", description=__doc__)
    parser.add_argument("--tables", type=int, nargs="*", default=[1_000, 10_000])
    parser.add_argument("--namespaces", type=int, nargs="*", default=[1, 1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=20, help="of changes (default: %(default)s)")
    arguments = parser.parse_args()
    lines = [line for names in arguments.tables for line in _tables(names, arguments.rounds)]
    columns = ["operation", "names", "requests", "rounds", "KB read", "KB written", "CPU ms"]
    if lines:
        story.table(columns, lines, title="A namespace of many tables")
    lines = [line for names in arguments.namespaces for line in _namespaces(names, arguments.rounds)]
    if lines:
        story.table(columns, lines, title="A namespace of many namespaces")


def _tables(tables: int, rounds: int) -> list[list[str]]:
    catalog, store = _made(RELATION, TABLE, tables)
    lines = [_line("first look-up, cold", tables, store, lambda: catalog.load_table("a.t"))]
    lines.append(_line("look-up, warm", tables, store, lambda: catalog.load_table("a.t")))
    lines.append(_line("list, warm", tables, store, lambda: catalog.list_tables("a")))
    lines.append(
        _median("create", tables, store, rounds, lambda n: catalog.create_table(f"a.new{n}", SCHEMA))
    )
    return lines


def _namespaces(names: int, rounds: int) -> list[list[str]]:
    """Of tables in one of them, too, whose name leads through all of them."""
    catalog, store = _made(NAMESPACE, NAMESPACE, names)
    lines = [
        _line("first look-up of a table in one, cold", names, store, lambda: catalog.load_table("a.n.t"))
    ]
    lines.append(_line("the same, warm", names, store, lambda: catalog.load_table("a.n.t")))
    lines.append(_line("list, the first time", names, store, lambda: catalog.list_namespaces("a")))
    lines.append(_line("list, warm", names, store, lambda: catalog.list_namespaces("a")))
    changes: dict[str, Callable[[int], object]] = {
        "create": lambda n: catalog.create_namespace(f"a.new{n}"),
        "create a table in one": lambda n: catalog.create_table(f"a.new{n}.t", SCHEMA),
        "rename a table from one to another": lambda n: catalog.rename_table(f"a.new{n}.t", f"a.n.t{n}"),
        "drop": lambda n: catalog.drop_namespace(f"a.new{n}"),
    }
    return lines + [_median(name, names, store, rounds, change) for name, change in changes.items()]


def _median(
    name: str, names: int, store: CountingStore, rounds: int, change: Callable[[int], object]
) -> list[str]:
    """Return what a change costs, with the snapshots and hints that some are followed by."""
    lines = [_line(name, names, store, lambda n=number: change(n)) for number in range(rounds)]  # type: ignore[misc]
    middle = [f"{median([float(line[at].replace(',', '')) for line in lines]):,.1f}" for at in range(2, 7)]
    return [f"{name}, median of {rounds}", f"{names:,}", *middle]


def _made(space: str, kind: str, names: int) -> tuple[Catalog, CountingStore]:
    """Return a client that has read nothing yet of a warehouse with so many names in `a`."""
    url = f"memory://{uuid.uuid4().hex}"
    catalog = Catalog(url)
    catalog.create_namespace("a")
    if space == NAMESPACE:
        catalog.create_namespace("a.n")
    catalog.create_table("a.t" if space == RELATION else "a.n.t", SCHEMA)
    link(catalog, "a", names - 1, space=space, kind=kind)
    wait_for_background()
    return _client(url)


def _client(url: str) -> tuple[Catalog, CountingStore]:
    store = CountingStore(MemoryStore.named(url))
    catalog = Catalog(url, log_options=LogOptions(in_parallel=store.side_by_side))
    catalog.places.stores[catalog.places.warehouse] = store
    return catalog, store


def _line(name: str, names: int, store: CountingStore, work: Callable[[], object]) -> list[str]:
    store.reset()
    begun = time.process_time()
    work()
    wait_for_background()
    spent_ms = (time.process_time() - begun) * 1000
    amounts = (store.bytes_read / 1000, store.bytes_written / 1000, spent_ms)
    return [
        name,
        f"{names:,}",
        f"{store.requests:,}",
        f"{store.rounds:,}",
        *(f"{each:,.1f}" for each in amounts),
    ]


if __name__ == "__main__":
    main()
