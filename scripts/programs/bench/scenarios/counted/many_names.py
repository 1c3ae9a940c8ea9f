"""The cost of names in a namespace of many tables, or of many namespaces: requests, bytes and CPU of a look-up, a
creation and a list, in memory. Background writes count too.

All objects but the first exist only as links, which are written many at once, because no operation here opens them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Annotated

import pyarrow as pa

from lakelog.catalog import Catalog
from lakelog.catalog.core.state import NAMESPACE, RELATION, TABLE
from lakelog.log import CountingStore, wait_for_background
from programs.bench.data.links import link
from programs.bench.measure import cost
from programs.bench.places import counted, memory
from programs.bench.scenario import Row, Rows

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})
COLUMNS = ("requests", "rounds", "KB read", "KB written", "CPU ms")


def measure(
    tables: Sequence[int] = (1_000, 10_000),
    namespaces: Sequence[int] = (1, 1_000, 10_000),
    rounds: Annotated[int, "of changes"] = 20,
) -> Rows:
    yield "A namespace of many tables"
    for names in tables:
        yield from _tables(names, rounds)
    yield "A namespace of many namespaces"
    for names in namespaces:
        yield from _namespaces(names, rounds)


def _tables(names: int, rounds: int) -> Iterator[Row]:
    catalog, store = _made(RELATION, TABLE, names)
    yield _row("first look-up, cold", names, store, lambda: catalog.load_table("a.t"))
    yield _row("look-up, warm", names, store, lambda: catalog.load_table("a.t"))
    yield _row("list, warm", names, store, lambda: catalog.list_tables("a"))
    yield _middle("create", names, store, rounds, lambda n: catalog.create_table(f"a.new{n}", SCHEMA))


def _namespaces(names: int, rounds: int) -> Iterator[Row]:
    """Yield the costs of namespaces, and of tables in them, whose names lead through the list of namespaces."""
    catalog, store = _made(NAMESPACE, NAMESPACE, names)
    yield _row("first look-up of a table in one, cold", names, store, lambda: catalog.load_table("a.n.t"))
    yield _row("the same, warm", names, store, lambda: catalog.load_table("a.n.t"))
    yield _row("list, the first time", names, store, lambda: catalog.list_namespaces("a"))
    yield _row("list, warm", names, store, lambda: catalog.list_namespaces("a"))
    changes: dict[str, Callable[[int], object]] = {
        "create": lambda n: catalog.create_namespace(f"a.new{n}"),
        "create a table in one": lambda n: catalog.create_table(f"a.new{n}.t", SCHEMA),
        "rename a table from one to another": lambda n: catalog.rename_table(f"a.new{n}.t", f"a.n.t{n}"),
        "drop": lambda n: catalog.drop_namespace(f"a.new{n}"),
    }
    for name, change in changes.items():
        yield _middle(name, names, store, rounds, change)


def _row(operation: str, names: int, store: CountingStore, work: Callable[[], object]) -> Row:
    def whole() -> None:
        work()
        wait_for_background()

    return {"operation": operation, "names": names, **cost(whole, *COLUMNS, store=store)}


def _middle(
    operation: str, names: int, store: CountingStore, rounds: int, change: Callable[[int], object]
) -> Row:
    """Return the cost of a change, with the snapshots and hints that follow some changes."""
    rows = [_row(operation, names, store, lambda n=number: change(n)) for number in range(rounds)]  # type: ignore[misc]
    middle = {column: median(row[column] for row in rows) for column in COLUMNS}
    return {"operation": f"{operation}, median of {rounds}", "names": names, **middle}


def _made(space: str, kind: str, names: int) -> tuple[Catalog, CountingStore]:
    """Return a client that has read nothing of a warehouse with so many names in `a`."""
    url = memory()
    catalog = Catalog(url)
    catalog.create_namespace("a")
    if space == NAMESPACE:
        catalog.create_namespace("a.n")
    catalog.create_table("a.t" if space == RELATION else "a.n.t", SCHEMA)
    link(catalog, "a", names - 1, space=space, kind=kind)
    wait_for_background()
    return counted(url)
