"""A bank whose accounts share files: rows are changed by their positions, files are rewritten and compacted.

Every account has one row, in one of two tables, and the sum of all never changes. A change that is lost, a row that
comes back or is there twice breaks one or the other.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyroaring import BitMap
from tests.sim_catalog.stores import Row, live_rows, read_rows
from tests.sim_catalog.world import CatalogWorld, Request

from lakelog.catalog import Catalog, Table, col, engine
from lakelog.catalog.core import parquet
from lakelog.catalog.core.schema.predicate import Predicate
from lakelog.catalog.engine import CatalogNames
from lakelog.catalog.transaction import Transaction
from lakelog.log import NotFound, WriteRef

TABLES = ("pots.left", "pots.right")
OPENING = 100
EACH = 4
SUM = OPENING * EACH * len(TABLES)
SCHEMA = pa.schema([("account", pa.int64()), ("amount", pa.int64())])

Found = dict[int, tuple[str, int, int]]
"""Of an account: its file, its position there, and its amount."""


def arrow(rows: Sequence[Row]) -> pa.Table:
    accounts, amounts = zip(*rows, strict=True) if rows else ((), ())
    return pa.table({"account": list(accounts), "amount": list(amounts)}, schema=SCHEMA)


def found(catalog: Catalog) -> None:
    catalog.create_namespace("pots")
    for number, name in enumerate(TABLES):
        first = number * EACH
        catalog.create_table(name, SCHEMA).append(
            arrow([(account, OPENING) for account in range(first, first + EACH)])
        )


def deed(world: CatalogWorld, catalog: Catalog) -> None:
    do, _ = DEEDS[world.chosen(WEIGHTS)]
    do(world, catalog)


# What one statement does


def transfer(world: CatalogWorld, catalog: Catalog) -> None:
    """Move an amount between two accounts of a table, by positions or by rewriting files."""
    table = catalog.load_table(world.rng.choice(TABLES))
    accounts = where(table)
    if len(accounts) < 2:
        return
    pair = world.rng.sample(sorted(accounts), 2)
    amount = world.rng.choice((world.rng.randint(1, 9), accounts[pair[0]][2]))
    new = [(pair[0], accounts[pair[0]][2] - amount), (pair[1], accounts[pair[1]][2] + amount)]
    condition = col("account").is_in(pair)
    how = world.chosen({"by overwriting": 0.2, "by positions": 0.4, "by files": 0.4})
    if how == "by overwriting":
        overwrite(world, table, new, condition)
        return
    if how == "by positions":
        changed_accounts = [accounts[account] for account in pair]
        commit(world, table, "update", new, condition, deletes=changed_accounts)
        return
    removed_texts = {accounts[account][0] for account in pair}
    kept_pairs = [
        (a, held_number)
        for a, (path, _, held_number) in accounts.items()
        if path in removed_texts and a not in pair
    ]
    commit(world, table, "update", new + kept_pairs, condition, removed=sorted(removed_texts))


def compact(world: CatalogWorld, catalog: Catalog) -> None:
    compact_table(world, catalog.load_table(world.rng.choice(TABLES)))


def compact_table(world: CatalogWorld, table: Table) -> None:
    """Write files anew as one: those that a plan chooses, or any."""
    if world.chosen({"planned": 0.4, "any files": 0.6}) == "planned":
        table.compact(deleted_ratio=world.rng.choice((0.0, 0.5)))
        world.count("rows: planned compactions")
        return
    accounts = where(table)
    paths = sorted({path for path, _, _ in accounts.values()})
    if not paths:
        return
    removed_paths = world.rng.sample(paths, world.rng.randint(1, len(paths)))
    rows = [
        (account, amount) for account, (path, _, amount) in sorted(accounts.items()) if path in removed_paths
    ]
    commit(world, table, "compact", rows, None, removed=removed_paths)


def open_account(world: CatalogWorld, catalog: Catalog) -> None:
    """Open an account where it is not open yet: the number has one table where it may be opened."""
    side = world.rng.randrange(len(TABLES))
    account = 100 + side * 10 + world.rng.randrange(3)
    tables = [catalog.load_table(name) for name in TABLES]
    if any(account in where(table) for table in tables):
        return
    # Only where it is opened is looked at when others came: so no client moves such an account.
    commit(world, tables[side], "merge", [(account, 0)], col("account") == account)


def close_account(world: CatalogWorld, catalog: Catalog) -> None:
    """Close an account that is empty: by its position, or by a filter."""
    table = catalog.load_table(world.rng.choice(TABLES))
    empty = {account: found for account, found in where(table).items() if not found[2]}
    if not empty:
        return
    account = world.rng.choice(sorted(empty))
    condition = (col("account") == account) & (col("amount") == 0)
    if world.chosen({"by positions": 0.5, "by filter": 0.5}) == "by positions":
        request, new_table = commit(world, table, "delete", [], condition, deletes=[empty[account]])
        if new_table is not None and not world.truth.is_applied(request.commit_id):
            # Another client has closed it, or filled it: then there is nothing to commit, which is success.
            request.acknowledged = False
            there = where(new_table).get(account)
            if account < 100 and there is not None and not there[2]:
                world.fail(f"the delete of account {account} was acknowledged, and it is still there, empty")
            world.count("rows: deletes of what others deleted")
    else:
        table.delete(condition)
        world.count("rows: deletes by filter")


# What a transaction does


def move_one(world: CatalogWorld, catalog: Catalog) -> None:
    """Move some accounts to the other table."""
    own_text, other_text = world.rng.sample(TABLES, 2)
    by_filter = world.chosen({"by filter": 0.5, "by positions": 0.5}) == "by filter"

    def move(tx: Transaction) -> None:
        table = tx.load_table(own_text)
        accounts = {account: found for account, found in where(table).items() if account < 100}
        if not accounts:
            raise NotFound("there is no account to be moved")
        chosen_accounts = world.rng.sample(
            sorted(accounts), min(len(accounts), world.rng.choice((1, 2, 2, 3)))
        )
        tx.load_table(other_text).append(
            arrow([(account, accounts[account][2]) for account in chosen_accounts])
        )
        condition = col("account").is_in(chosen_accounts)
        if by_filter:
            table.delete(condition)
        else:
            deletes = positions([accounts[account] for account in chosen_accounts])
            engine.commit_rows(
                table, engine.begin_write(table), "delete", deletes=deletes, condition=condition
            )

    world.transact(catalog, "move of an account", world.isolation, move)


def move_all(world: CatalogWorld, catalog: Catalog) -> None:
    """Move all accounts that may be moved to the other table, and nothing else."""
    own_text, other_text = world.rng.sample(TABLES, 2)

    def move(tx: Transaction) -> None:
        table = tx.load_table(own_text)
        accounts = where(table)
        if not accounts or any(account >= 100 for account in accounts):
            raise NotFound("there are other accounts, or none")
        rows = [(account, amount) for account, (_, _, amount) in sorted(accounts.items())]
        tx.load_table(other_text).append(arrow(rows))
        table.truncate()

    world.transact(catalog, "move of all accounts", world.isolation, move)


DEEDS = {
    "transfer": (transfer, 0.25),
    "compact": (compact, 0.1),
    "open": (open_account, 0.08),
    "close": (close_account, 0.09),
    "move all": (move_all, 0.05),
    "move one": (move_one, 0.43),
}
WEIGHTS = {name: weight for name, (_, weight) in DEEDS.items()}


# How


def where(table: Table) -> Found:
    return {
        account: (path, position, amount)
        for path, rows in live_rows(table).items()
        for position, (account, amount) in rows.items()
    }


def positions(rows: Sequence[tuple[str, int, int]]) -> list[dict[str, str]]:
    of: dict[str, BitMap] = {}
    for path, position, _ in rows:
        of.setdefault(path, BitMap()).add(position)
    return [
        {"path": path, "positions": base64.b64encode(map_.serialize()).decode()} for path, map_ in of.items()
    ]


def commit(
    world: CatalogWorld,
    table: Table,
    operation: str,
    rows: Sequence[Row],
    condition: Predicate | None,
    *,
    removed: Sequence[str] = (),
    deletes: Sequence[tuple[str, int, int]] = (),
) -> tuple[Request, Table | None]:
    """Return the request, and the table after it if it was acknowledged."""
    write: WriteRef = engine.begin_write(table)
    files = (
        parquet.written_files(table.table_head.tracked, table.metadata, write, arrow(rows)) if rows else []
    )
    request = Request(f"{operation} of rows", write.id)
    world.requests.append(request)
    tables: list[Table] = []
    world.ask(
        request,
        lambda: tables.append(
            engine.commit_rows(
                table,
                write,
                operation,
                files,
                removed=removed,
                deletes=positions(deletes),
                condition=condition,
            )
        ),
    )
    return request, tables[-1] if request.acknowledged else None


def overwrite(world: CatalogWorld, table: Table, rows: Sequence[Row], condition: Predicate) -> None:
    """Replace the rows that match, most often some of those in a file."""
    write: WriteRef = engine.begin_write(table)
    files = parquet.written_files(table.table_head.tracked, table.metadata, write, arrow(rows))
    request = Request("overwrite of rows", write.id)
    world.requests.append(request)
    world.ask(request, lambda: engine.commit_write(table, write, "overwrite", files, filter=condition))
    world.count("rows: overwrites that cut through files")


def look(catalog: CatalogNames) -> dict[str, list[Row]]:
    return {name: read_rows(catalog.load_table(name)) for name in TABLES}


def judge(tables: Mapping[str, Sequence[Row]]) -> str | None:
    rows = [row for name in TABLES for row in tables[name]]
    twice = [account for account, count in Counter(account for account, _ in rows).items() if count > 1]
    if twice:
        return f"accounts {twice} are there more than once: {dict(tables)}"
    if sum(amount for _, amount in rows) != SUM:
        return f"the accounts have {sum(amount for _, amount in rows)} instead of {SUM}: {dict(tables)}"
    return None
