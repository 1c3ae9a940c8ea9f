"""Cases of long lives: many versions, expiry that was interrupted, a table that was dropped and restored."""

from __future__ import annotations

import contextlib
from unittest.mock import patch

from tests.conformance.cases.logs import Death
from tests.conformance.cases.tables import NAMED, named
from tests.conformance.making import Bench, Case

from lakelog.catalog import col
from lakelog.log.stores.local_store import LocalStore


def long_life(bench: Bench) -> None:
    """300 versions; an expiry that died among its tombstones; a table dropped and restored under another name."""
    catalog = bench.catalog
    table = catalog.create_table("t", NAMED)
    while table.version < 299:
        if table.version % 25 == 0:
            table = table.append(named(table.version))
        elif table.version % 60 == 59:
            table = table.delete(col("id") == table.version // 25 * 25)
        else:
            table = table.set_properties({"turn": str(table.version)})
    table.append(named(1000))
    put, tombstones = LocalStore.put, 0

    def put_some(self: LocalStore, key: str, data: bytes) -> None:
        nonlocal tombstones
        if b'"kind":"tombstone"' in data[:30]:
            tombstones += 1
            if tombstones > 90:
                raise Death
        put(self, key, data)

    with patch.object(LocalStore, "put", put_some), contextlib.suppress(Death):
        catalog.expire("t", version=150, dry_run=False)
    catalog.create_namespace("n")
    catalog.create_table("n.gone", NAMED).append(named(1)).append(named(2))
    catalog.drop_table("n.gone")
    catalog.undrop_table("n.gone", to="n.back")
    catalog.load_table("n.back").append(named(3))
    catalog.create_table("n.dropped", NAMED).append(named(4))
    catalog.drop_table("n.dropped")


CASES = (Case("long-life", "300 versions, an interrupted expiry, a restored table", long_life),)
