"""A chain of causes: a client that adds a number has read the one before it, in whichever table, and each by itself.

No transaction ties them together; but a cut that shows a number without the one before it shows an effect without its
cause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from tests.sim_catalog.stores import Row, read_rows
from tests.sim_catalog.world import CatalogWorld

from lakelog.catalog import Catalog
from lakelog.catalog.engine import CatalogNames

TABLES = ("chain.odd", "chain.even", "chain.any")
SCHEMA = pa.schema([("number", pa.int64())])


def row(number: int) -> pa.Table:
    return pa.table({"number": [number]}, schema=SCHEMA)


def found(catalog: Catalog) -> None:
    catalog.create_namespace("chain")
    for name in TABLES:
        catalog.create_table(name, SCHEMA).append(row(0))


def deed(world: CatalogWorld, catalog: Catalog) -> None:
    """Read the largest number of one table, and add the next one to another."""
    source, target = world.rng.sample(TABLES, 2)
    largest = max(number for (number,) in read_rows(catalog.load_table(source)))
    table = catalog.load_table(target)
    table.append(row(largest + 1))
    world.count("done: link of a chain")


def look(catalog: CatalogNames) -> dict[str, list[Row]]:
    return {name: read_rows(catalog.load_table(name)) for name in TABLES}


def judge(tables: Mapping[str, Sequence[Row]]) -> str | None:
    numbers = {number for name in TABLES for (number,) in tables[name]}
    missing = set(range(max(numbers))) - numbers
    return f"of the chain up to {max(numbers)} the causes {sorted(missing)} are missing" if missing else None
