"""A table with branches and tags that clients make, change, join and drop: each line is a bank of its own.

On every line, every account has one row, and the sum of all never changes: what comes from another line breaks one or
the other. A client that has put a mark on a line finds it there in the end, whatever that line has become meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tests.sim_catalog.rows import SCHEMA, arrow, compact_table, positions, where
from tests.sim_catalog.stores import Row, read_rows
from tests.sim_catalog.world import CatalogWorld, Request

from lakelog.catalog import Catalog, Table, col, engine
from lakelog.catalog.core import parquet
from lakelog.catalog.engine import CatalogNames
from lakelog.catalog.errors import NoSuchRef, RefExists
from lakelog.catalog.transaction import Transaction
from lakelog.log import InvalidInput

TABLE = "lines.accounts"
NAMES = ("left", "right", "kept")
MAIN = "main"
OPENING, ACCOUNTS = 100, 4
SUM = OPENING * ACCOUNTS
FIRST_OPENED, FIRST_MARK = 100, 1000


def found(catalog: Catalog) -> None:
    catalog.create_namespace("lines")
    table = catalog.create_table(TABLE, SCHEMA)
    table.append(arrow([(account, OPENING) for account in range(ACCOUNTS)]))


def deed(world: CatalogWorld, catalog: Catalog) -> None:
    do, _ = DEEDS[world.chosen(WEIGHTS)]
    try:
        do(world, catalog)
    except (InvalidInput, RefExists) as error:
        world.count(f"lines: not possible: {type(error).__name__}")


def a_line(world: CatalogWorld, catalog: Catalog) -> Table:
    """Return the table on main, or on a branch."""
    table = catalog.load_table(TABLE)
    branches = [name for name, ref in sorted(table.refs.items()) if ref.kind == "branch"]
    return table.at(ref=world.rng.choice([MAIN, *branches, *branches]))


# What is done to lines


def make(world: CatalogWorld, catalog: Catalog) -> None:
    table, name = a_line(world, catalog), world.rng.choice(NAMES)
    version = None
    if table.version > 3 and world.rng.random() < 0.2:
        version = table.version - 1
    if name == "kept":
        table.create_tag(name, version, replace=True)
        world.count("lines: tags")
    else:
        table.create_branch(name, version, replace=world.rng.random() < 0.5, if_not_exists=False)
        world.count("lines: branches")


def drop(world: CatalogWorld, catalog: Catalog) -> None:
    table, name = catalog.load_table(TABLE), world.rng.choice(NAMES)
    if name == "kept":
        table.drop_tag(name, missing_ok=True)
    else:
        table.drop_branch(name, missing_ok=True)


def fast_forward(world: CatalogWorld, catalog: Catalog) -> None:
    table = catalog.load_table(TABLE)
    branches = [MAIN, *(name for name, ref in sorted(table.refs.items()) if ref.kind == "branch")]
    if len(branches) < 2:
        return
    text, other_text = world.rng.sample(branches, 2)
    if table.fast_forward(text, other_text).version > table.version:
        world.count("lines: fast-forwards")


# What is done on a line


def renew(world: CatalogWorld, catalog: Catalog) -> None:
    """Make a branch anew, with a mark that it did not have, and write what was read of the one before."""
    catalog.load_table(TABLE).create_branch("left", replace=True)
    table_before = catalog.load_table(TABLE, ref="left")
    rows = read_rows(table_before)
    mark(world, catalog.load_table(TABLE))
    table = catalog.load_table(TABLE).create_branch("left", replace=True)
    try:
        table_before.overwrite(arrow(sorted(rows)))
    except NoSuchRef:
        world.count("lines: branches that were others")
    table.fast_forward(MAIN, "left")


def mark_one(world: CatalogWorld, catalog: Catalog) -> None:
    mark(world, a_line(world, catalog))


def mark(world: CatalogWorld, table: Table) -> None:
    """Put a mark on a line, which stays there from when it is acknowledged."""
    write, number = engine.begin_write(table), FIRST_MARK + world.tick()
    files = parquet.written_files(table.table_head.tracked, table.metadata, write, arrow([(number, 0)]))
    request = Request(f"mark on {'main' if table.ref == MAIN else 'a branch'}", write.id)
    world.requests.append(request)
    world.ask(request, lambda: engine.commit_write(table, write, "append", files))
    if request.acknowledged:
        world.marks.add((MAIN if table.ref == MAIN else table.refs[table.ref].id, number))


def compact(world: CatalogWorld, catalog: Catalog) -> None:
    compact_table(world, a_line(world, catalog))


def rewrite(world: CatalogWorld, catalog: Catalog) -> None:
    """Write all rows of a line anew, as they were read."""
    table = a_line(world, catalog)
    rows = read_rows(table)
    if rows:
        table.overwrite(arrow(sorted(rows)))
        world.count("lines: rewrites")


def open_account(world: CatalogWorld, catalog: Catalog) -> None:
    """Open an account on a line if it is not open there."""
    table, account = a_line(world, catalog), FIRST_OPENED + world.rng.randrange(3)
    if account in where(table):
        return
    write = engine.begin_write(table)
    files = parquet.written_files(table.table_head.tracked, table.metadata, write, arrow([(account, 0)]))
    engine.commit_rows(table, write, "merge", files, condition=col("account") == account)
    world.count("lines: accounts opened")


def transfer(world: CatalogWorld, catalog: Catalog) -> None:
    """Move an amount between two accounts of a line."""
    table = a_line(world, catalog)
    accounts = {account: found for account, found in where(table).items() if account < FIRST_MARK}
    pair, amount = world.rng.sample(sorted(accounts), 2), world.rng.randint(1, 9)
    new = [(pair[0], accounts[pair[0]][2] - amount), (pair[1], accounts[pair[1]][2] + amount)]
    write = engine.begin_write(table)
    files = parquet.written_files(table.table_head.tracked, table.metadata, write, arrow(new))
    deletes = positions([accounts[account] for account in pair])
    engine.commit_rows(table, write, "update", files, deletes=deletes, condition=col("account").is_in(pair))
    world.count("lines: transfers")


def together(world: CatalogWorld, catalog: Catalog) -> None:
    """In a transaction: make a branch of main, mark it and main with the same mark, and maybe join them."""
    number, joins = FIRST_MARK + world.tick(), world.rng.random() < 0.5

    def both(tx: Transaction) -> None:
        table = tx.load_table(TABLE)
        table.create_branch("left", replace=True)
        tx.load_table(TABLE, ref="left").append(arrow([(number, 0)]))
        if joins:
            table.fast_forward(MAIN, "left")
        else:
            tx.load_table(TABLE).append(arrow([(number, 0)]))

    request = world.transact(catalog, "marks on two lines", world.isolation, both)
    if request is not None and request.acknowledged:
        world.marks.add((MAIN, number))


DEEDS = {
    "make": (make, 0.22),
    "drop": (drop, 0.06),
    "fast-forward": (fast_forward, 0.14),
    "renew": (renew, 0.05),
    "mark": (mark_one, 0.07),
    "rewrite": (rewrite, 0.12),
    "open": (open_account, 0.07),
    "compact": (compact, 0.05),
    "together": (together, 0.07),
    "transfer": (transfer, 0.15),
}
WEIGHTS = {name: weight for name, (_, weight) in DEEDS.items()}


# What must be so


def look(catalog: CatalogNames) -> dict[str, list[Row]]:
    table = catalog.load_table(TABLE)
    lines = {name: read_rows(table.at(ref=name)) for name in (MAIN, *sorted(table.refs))}
    return {TABLE if name == MAIN else f"{TABLE} on {name}": rows for name, rows in lines.items()}


def judge(tables: Mapping[str, Sequence[Row]]) -> str | None:
    for name, rows in tables.items():
        if name.startswith(TABLE):
            twice = [account for account, count in Counter(row[0] for row in rows).items() if count > 1]
            if twice:
                return f"accounts {twice} of {name} are there more than once: {rows}"
            if sum(amount for _, amount in rows) != SUM:
                return f"{name} has {sum(amount for _, amount in rows)} instead of {SUM}: {rows}"
    return None


def lost(world: CatalogWorld) -> list[str]:
    """Return marks on main and on branches that were acknowledged and are not there."""
    wrong, table = [], world.calm().load_table(TABLE)
    for name in (MAIN, *sorted(table.refs)):
        id = MAIN if name == MAIN else table.refs[name].id
        accounts = {account for account, _ in read_rows(table.at(ref=name))}
        removed_numbers = sorted(
            number for line, number in world.marks if line == id and number not in accounts
        )
        if removed_numbers:
            wrong.append(f"marks {removed_numbers} on {name} are lost")
    return wrong
