"""Requests and sequential round trips of each operation, from a counting store. They are exact on any machine.

The dollars are the price of a million operations at S3's list prices for requests (Standard, us-east-1, in 2025). A
million PUTs or LISTs cost 5, a million GETs or HEADs 0.40, and deletions nothing. Storage and traffic are not included.
Snapshots are written in the background, after the acknowledgement, so a caller does not wait for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from lakelog.catalog import Catalog, col
from lakelog.log import wait_for_background
from programs.bench.places import counted, memory
from programs.bench.scenario import Row

DOLLARS = {"put": 5.0, "put_if_absent": 5.0, "list": 5.0, "get": 0.4, "open": 0.4, "delete": 0.0}
"""The prices of a million requests."""

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})
ROWS = pa.table({"id": [1, 2], "name": ["one", "two"]}, schema=SCHEMA)
HUNDRED = 100


class Client:
    def __init__(self, warehouse: str) -> None:
        self.catalog, self.store = counted(warehouse)

    def row(self, operation: str, work: Callable[[], object], times: int = 1) -> Row:
        """Return the cost of `work`, which repeats an operation so many times."""
        wait_for_background()
        self.store.reset()
        work()
        by_kind = {kind: count / times for kind, count in sorted(self.store.by_kind.items())}
        return {
            "operation": operation,
            "requests": f"{self.store.requests / times:.3g}",
            "round trips": self.store.rounds if times == 1 else None,
            "$ a million": f"{sum(count * DOLLARS[kind] for kind, count in by_kind.items()):,.2f}",
            "of which": ", ".join(f"{count:.3g} {kind}" for kind, count in by_kind.items()) or "–",
        }


def measure() -> Iterator[Row]:
    warehouse = memory()
    other_client = Catalog(warehouse)
    other_client.create_namespace("a")
    client = Client(warehouse)
    catalog = client.catalog
    yield client.row("create a namespace a.b", lambda: catalog.create_namespace("a.b"))
    yield client.row("create a table a.b.t", lambda: catalog.create_table("a.b.t", SCHEMA))
    table = catalog.load_table("a.b.t")
    for _ in range(5):
        table = table.append(ROWS)
    yield client.row("append to a warm table (one is the data file)", lambda: table.append(ROWS))
    other_client.load_table("a.b.t").append(ROWS)
    yield client.row("append that loses a race (one is the data file)", lambda: table.append(ROWS))
    yield client.row("delete without rows to keep", lambda: table.delete([("id", "<", 100)]))
    yield client.row("load a.b.t warm, by name", lambda: catalog.load_table("a.b.t"))
    location = catalog.load_table("a.b.t").location
    catalog.table_at(location)
    yield client.row("load it warm, by path", lambda: catalog.table_at(location))
    fresh, path_client, new = (Client(warehouse) for _ in range(3))
    yield fresh.row("load it cold, by name", lambda: fresh.catalog.load_table("a.b.t"))
    yield path_client.row("load it cold, by path", lambda: path_client.catalog.table_at(location))
    for number in range(100):
        catalog.create_table(("a", "b", f"t{number}"), SCHEMA)
    yield client.row("list 101 tables, warm", lambda: catalog.list_tables("a.b"))
    yield new.row("list 101 tables, cold", lambda: new.catalog.list_tables("a.b"))
    yield client.row("rename a table", lambda: catalog.rename_table("a.b.t1", "a.b.u1"))
    yield client.row("drop a table", lambda: catalog.drop_table("a.b.t2"))
    yield from _of_rows(warehouse)


def _of_rows(warehouse: str) -> Iterator[Row]:
    """Yield the costs of changes of rows, of reads and of upkeep, on a table of a hundred appends."""
    client = Client(warehouse)
    catalog = client.catalog
    table = catalog.create_table("a.rows", SCHEMA).append(ROWS)

    def hundred() -> None:
        nonlocal table
        for _ in range(HUNDRED):
            table = table.append(ROWS)
        wait_for_background()

    yield client.row("append, with what is written in the background", hundred, HUNDRED)
    cold = Client(warehouse)
    cold_table = cold.catalog.load_table("a.rows")
    yield cold.row("plan of what was just loaded, cold", cold_table.plan)
    yield cold.row("the same again", cold_table.plan)
    small_table = table.append(pa.table({"id": [1000], "name": ["one"]}, schema=SCHEMA))
    yield client.row(
        "update a row of one file", lambda: small_table.update({"name": "upper(name)"}, col("id") == 1000)
    )

    def changes() -> object:
        return small_table.refresh().changes(small_table.refresh().version).to_arrow()

    yield client.row("rows changed by the last version", changes)
    yield from transactions(client, ["a.rows", "a.b.t"])
    yield client.row("compact 100 files into one", lambda: small_table.refresh().compact())
    yield client.row("expire of 105 versions: nothing goes", lambda: catalog.expire("a.rows", dry_run=False))
    yield client.row("vacuum of 105 versions: nothing goes", lambda: catalog.vacuum("a.rows", dry_run=False))


def transactions(client: Client, names: list[str]) -> Iterator[Row]:
    """Yield the cost of a transaction that appends to these warm tables, without another writer."""

    def append() -> None:
        with client.catalog.transaction() as transaction:
            for name in names:
                transaction.load_table(name).append(ROWS)

    for name in names:
        client.catalog.load_table(name)
    yield client.row(f"a transaction that appends to {len(names)} tables", append)
