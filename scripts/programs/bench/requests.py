"""Requests and sequential round trips of each operation, from a counting store. Exact, on any machine.

The dollars are what a million of each would cost at S3's list prices for requests (Standard, us-east-1, as known in
2025): 5 for a million PUTs or LISTs, 0.40 for a million GETs or HEADs, nothing for deletions. Storage and traffic are
not in them.
"""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Callable

import pyarrow as pa

from lakelog.catalog import Catalog, col
from lakelog.log import CountingStore, LogOptions, wait_for_background
from programs import story

DOLLARS = {"put": 5.0, "put_if_absent": 5.0, "list": 5.0, "get": 0.4, "open": 0.4, "delete": 0.0}
"""For a million requests."""

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})
ROWS = pa.table({"id": [1, 2], "name": ["one", "two"]}, schema=SCHEMA)
HUNDRED = 100


class Client:
    """A catalog whose requests are counted, and what was measured with it."""

    def __init__(self, warehouse: str) -> None:
        options = LogOptions(in_parallel=lambda works: self.store.side_by_side(works))
        self.catalog = Catalog(warehouse, log_options=options)
        places = self.catalog.places
        self.store = places.stores[places.warehouse] = CountingStore(places.store(places.warehouse))

    def measure(self, work: Callable[[], object], times: int = 1) -> list[str]:
        """Return what `work` costs, which does the same so many times."""
        wait_for_background()
        self.store.reset()
        work()
        # Snapshots are written after the acknowledgement, in the background: a caller does not wait for them.
        by_kind = {kind: count / times for kind, count in sorted(self.store.by_kind.items())}
        kinds = ", ".join(f"{count:.3g} {kind}" for kind, count in by_kind.items())
        dollars = sum(count * DOLLARS[kind] for kind, count in by_kind.items())
        rounds = str(self.store.rounds) if times == 1 else "–"
        return [f"{self.store.requests / times:.3g}", rounds, f"{dollars:,.2f}", kinds or "–"]


def main() -> None:
    argparse.ArgumentParser(prog="scripts/bench requests", description=__doc__).parse_args()
    warehouse = f"memory://{uuid.uuid4().hex}"
    Catalog(warehouse).create_namespace("a")
    lines = [[name, *counted] for name, counted in _measure(warehouse)]
    columns = ["operation", "requests", "round trips", "$ a million", "of which"]
    story.table(columns, lines, title=__doc__)


def _measure(warehouse: str) -> list[tuple[str, list[str]]]:
    other = Catalog(warehouse)
    client = Client(warehouse)
    measured = [
        ("create a namespace a.b", client.measure(lambda: client.catalog.create_namespace("a.b"))),
        ("create a table a.b.t", client.measure(lambda: client.catalog.create_table("a.b.t", SCHEMA))),
    ]
    table = client.catalog.load_table("a.b.t")
    for _ in range(5):
        table = table.append(ROWS)
    measured.append(
        ("append to a warm table (one is the data file)", client.measure(lambda: table.append(ROWS)))
    )
    other.load_table("a.b.t").append(ROWS)
    measured.append(
        ("append that loses a race (one is the data file)", client.measure(lambda: table.append(ROWS)))
    )
    measured.append(("delete without rows to keep", client.measure(lambda: table.delete([("id", "<", 100)]))))
    measured.append(("load a.b.t warm, by name", client.measure(lambda: client.catalog.load_table("a.b.t"))))
    location = client.catalog.load_table("a.b.t").location
    client.catalog.table_at(location)
    measured.append(("load it warm, by path", client.measure(lambda: client.catalog.table_at(location))))
    fresh = Client(warehouse)
    measured.append(("load it cold, by name", fresh.measure(lambda: fresh.catalog.load_table("a.b.t"))))
    pathed = Client(warehouse)
    measured.append(("load it cold, by path", pathed.measure(lambda: pathed.catalog.table_at(location))))
    for number in range(100):
        client.catalog.create_table(("a", "b", f"t{number}"), SCHEMA)
    measured.append(("list 101 tables, warm", client.measure(lambda: client.catalog.list_tables("a.b"))))
    new = Client(warehouse)
    measured.append(("list 101 tables, cold", new.measure(lambda: new.catalog.list_tables("a.b"))))
    measured.append(
        ("rename a table", client.measure(lambda: client.catalog.rename_table("a.b.t1", "a.b.u1")))
    )
    measured.append(("drop a table", client.measure(lambda: client.catalog.drop_table("a.b.t2"))))
    return measured + _of_rows(warehouse)


def _of_rows(warehouse: str) -> list[tuple[str, list[str]]]:
    """What changes of rows, reads and upkeep cost, on a table of a hundred appends."""
    client = Client(warehouse)
    held = [client.catalog.create_table("a.rows", SCHEMA)]

    def append() -> None:
        held.append(held.pop().append(ROWS))

    def hundred() -> None:
        for _ in range(HUNDRED):
            append()
        wait_for_background()

    append()
    measured = [("append, with what is written in the background", client.measure(hundred, HUNDRED))]
    cold = Client(warehouse)
    table = cold.catalog.load_table("a.rows")
    measured.append(("plan of what was just loaded, cold", cold.measure(lambda: table.plan())))
    measured.append(("the same again", cold.measure(lambda: table.plan())))
    one = held[0].append(pa.table({"id": [1000], "name": ["one"]}, schema=SCHEMA))
    changed = col("id") == 1000

    def changes() -> object:
        return one.refresh().changes(one.refresh().version).to_arrow()

    measured += [
        ("update a row of one file", client.measure(lambda: one.update({"name": "upper(name)"}, changed))),
        ("rows changed by the last version", client.measure(changes)),
    ]

    def both() -> None:
        with client.catalog.transaction() as transaction:
            for name in ("a.rows", "a.b.t"):
                transaction.load_table(name).append(ROWS)

    client.catalog.load_table("a.b.t")
    measured.append(("a transaction that appends to two tables", client.measure(both)))
    measured.append(("compact 100 files into one", client.measure(lambda: one.refresh().compact())))
    for name, work in (
        ("expire of 105 versions: nothing goes", lambda: client.catalog.expire("a.rows", dry_run=False)),
        ("vacuum of 105 versions: nothing goes", lambda: client.catalog.vacuum("a.rows", dry_run=False)),
    ):
        measured.append((name, client.measure(work)))
    return measured


if __name__ == "__main__":
    main()
