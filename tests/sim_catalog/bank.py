"""A bank: accounts in tables of two namespaces. Transactions move amounts between them, so the sum never changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from tests.sim_catalog.stores import Row, read_rows
from tests.sim_catalog.world import CatalogWorld

from lakelog.catalog import Catalog, col
from lakelog.catalog.engine import CatalogNames
from lakelog.catalog.transaction import Transaction

TABLES = ("north.savings", "north.checking", "south.savings")
ACCOUNTS = (1, 2)
OPENING = 100
SUM = OPENING * len(TABLES) * len(ACCOUNTS)
SCHEMA = pa.schema([("account", pa.int64()), ("amount", pa.int64())])


def row(account: int, amount: int) -> pa.Table:
    return pa.table({"account": [account], "amount": [amount]}, schema=SCHEMA)


def found(catalog: Catalog) -> None:
    for namespace in ("north", "south"):
        catalog.create_namespace(namespace)
    for name in TABLES:
        table = catalog.create_table(name, SCHEMA, partition_by=["account"])
        for account in ACCOUNTS:
            table = table.append(row(account, OPENING))


def balance(catalog: CatalogNames, name: str, account: int) -> int:
    rows = read_rows(catalog.load_table(name), col("account") == account)
    return sum(amount for number, amount in rows if number == account)


def deed(world: CatalogWorld, catalog: Catalog) -> None:
    """Move an amount: by rows that say the difference, or by rows that say the new balance."""
    rng = world.rng
    amount = rng.randint(1, 9)
    payer, payee = rng.sample([(name, account) for name in TABLES for account in ACCOUNTS], 2)
    absolute = rng.random() < 0.5

    def transfer(tx: Transaction) -> None:
        for (name, account), difference in ((payer, -amount), (payee, amount)):
            if absolute:
                new = row(account, balance(tx, name, account) + difference)
                tx.load_table(name).overwrite(new, filter=col("account") == account)
            else:
                tx.load_table(name).append(row(account, difference))

    world.transact(catalog, "transfer", world.isolation, transfer)


def look(catalog: CatalogNames) -> dict[str, list[Row]]:
    return {name: read_rows(catalog.load_table(name)) for name in TABLES}


def judge(tables: Mapping[str, Sequence[Row]]) -> str | None:
    """Return what is wrong with the bank if these are the rows of its tables."""
    total = sum(amount for name in TABLES for _, amount in tables[name])
    return None if total == SUM else f"the bank has {total} instead of {SUM}"
