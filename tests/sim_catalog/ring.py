"""A ring of tables, each of which has the name of the next one in a row.

Serializable transactions rename, move, drop and restore tables and mend the ring at once, so that a reader of one
cut always finds a whole ring, of exactly the tables that there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from tests.sim_catalog.stores import Row, read_rows
from tests.sim_catalog.world import CatalogWorld

from lakelog.catalog import Catalog, Transaction
from lakelog.catalog.core.schema import SERIALIZABLE
from lakelog.catalog.engine import CatalogNames

NAMESPACES = ("ring", "circle")
FIRST = ("ring.a", "ring.b", "circle.c")
NAMES = [f"{namespace}.{name}" for namespace in NAMESPACES for name in "abcd"]
SCHEMA = pa.schema([("next", pa.string())])


def row(following: str) -> pa.Table:
    return pa.table({"next": [following]}, schema=SCHEMA)


def found(catalog: Catalog) -> None:
    for namespace in NAMESPACES:
        catalog.create_namespace(namespace)
    for name, next_text in zip(FIRST, (*FIRST[1:], FIRST[0]), strict=True):
        catalog.create_table(name, SCHEMA).append(row(next_text))


def look(catalog: CatalogNames) -> dict[str, list[Row]]:
    """Return what each table of the ring names as the next."""
    names = [".".join(path) for namespace in NAMESPACES for path in catalog.list_tables(namespace)]
    return {name: read_rows(catalog.load_table(name)) for name in names}


def deed(world: CatalogWorld, catalog: Catalog) -> None:
    rng = world.rng
    choice = rng.random()

    def mend(tx: Transaction) -> None:
        following = {name: named for name, ((named,),) in look(tx).items()}
        names_before = {named: name for name, named in following.items()}
        at = rng.choice(sorted(following))
        free = [name for name in NAMES if name not in following]
        restorable = [first_entry for namespace in NAMESPACES for first_entry in tx.dropped(namespace)]
        if not free or (choice < 0.25 and len(following) > 2):
            tx.drop_table(at, missing_ok=True)
            tx.load_table(names_before[at]).overwrite(row(following[at]))
            world.count("ring: drops")
            return
        new = rng.choice(free)
        if choice < 0.5 and restorable:
            entry = rng.choice(restorable)
            tx.undrop_table(entry.name, id=entry.id, to=new)
            tx.load_table(new).overwrite(row(following[at]))
            world.count("ring: restores")
        elif choice < 0.65:
            tx.create_table(new, SCHEMA).append(row(following[at]))
        else:
            tx.rename_table(at, new)
            tx.load_table(names_before[at] if names_before[at] != at else new).overwrite(row(new))
            world.count("ring: renames")
            return
        tx.load_table(at).overwrite(row(new))

    world.transact(catalog, "change of the ring", SERIALIZABLE, mend)


def judge(tables: Mapping[str, Sequence[Row]]) -> str | None:
    named_rows = {name: rows for name, rows in tables.items() if name.startswith(NAMESPACES)}
    at, seen_texts = min(named_rows, default=""), set[str]()
    while at in named_rows and at not in seen_texts:
        seen_texts.add(at)
        if len(named_rows[at]) != 1:
            return f"{at} of the ring has the rows {named_rows[at]}"
        ((at,),) = named_rows[at]
    is_whole = seen_texts == named_rows.keys() and at == min(named_rows)
    return None if is_whole else f"the ring is broken: {named_rows}"
