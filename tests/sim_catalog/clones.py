"""Tables that are cloned, clones that are cloned, and all of them changed, compacted, materialized, dropped and purged.

Each table is a bank of its own: every account has one row in it, and the sum of all never changes. A clone begins with
the rows of its source, so it is a bank too, as long as its files are there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from tests.sim_catalog.rows import SCHEMA, arrow, commit, compact_table, where
from tests.sim_catalog.stores import Row, read_rows, rows_at
from tests.sim_catalog.world import CatalogWorld

from lakelog.catalog import Catalog, col
from lakelog.catalog.engine import CatalogNames
from lakelog.catalog.errors import TableExists
from lakelog.catalog.keeping.clones import materializing
from lakelog.log import InvalidInput

SPACE = "copies"
NAMES = ("a", "b", "c", "d")
OPENING, ACCOUNTS = 100, 3
SUM = OPENING * ACCOUNTS

_real_copy = materializing._copy


def found(catalog: Catalog) -> None:
    catalog.create_namespace(SPACE)
    table = catalog.create_table(f"{SPACE}.a", SCHEMA)
    table.append(arrow([(account, OPENING) for account in range(ACCOUNTS)]))


def deed(world: CatalogWorld, catalog: Catalog) -> None:
    do, _ = DEEDS[world.chosen(WEIGHTS)]
    try:
        do(world, catalog)
    except (InvalidInput, TableExists) as error:
        world.count(f"clones: not possible: {type(error).__name__}")


def any_table(world: CatalogWorld, catalog: Catalog) -> str:
    tables = [name for _, name in catalog.list_tables(SPACE)]
    return f"{SPACE}.{world.rng.choice(sorted(tables))}" if tables else f"{SPACE}.a"


def clone(world: CatalogWorld, catalog: Catalog) -> None:
    """Clone a table as it is now, or was a while ago, under a name that may be taken."""
    source, target = any_table(world, catalog), f"{SPACE}.{world.rng.choice(NAMES)}"
    version = None
    newest = catalog.load_table(source).version
    if newest > 3 and world.rng.random() < 0.3:
        version = world.rng.randint(2, newest)
    catalog.clone(source, target, version=version)
    world.count("clones: made")


def drop(world: CatalogWorld, catalog: Catalog) -> None:
    if len(catalog.list_tables(SPACE)) > 1:
        catalog.drop_table(any_table(world, catalog), missing_ok=True)
        world.count("clones: drops")


def materialize(world: CatalogWorld, catalog: Catalog) -> None:
    done = catalog.load_table(any_table(world, catalog)).materialize()
    world.count("clones: materialized" if done.files else "clones: nothing to materialize")


def compact(world: CatalogWorld, catalog: Catalog) -> None:
    compact_table(world, catalog.load_table(any_table(world, catalog)))


def rewrite(world: CatalogWorld, catalog: Catalog) -> None:
    """Write all rows anew, so that the files of before are needed by clones alone."""
    table = catalog.load_table(any_table(world, catalog))
    rows = read_rows(table)
    if rows:
        table.overwrite(arrow(sorted(rows)))


def transfer(world: CatalogWorld, catalog: Catalog) -> None:
    """Move an amount between two accounts, by their positions, so that files get vectors."""
    table = catalog.load_table(any_table(world, catalog))
    accounts = where(table)
    if len(accounts) < 2:
        return
    pair, amount = world.rng.sample(sorted(accounts), 2), world.rng.randint(1, 9)
    new = [(pair[0], accounts[pair[0]][2] - amount), (pair[1], accounts[pair[1]][2] + amount)]
    changed_accounts = [accounts[account] for account in pair]
    commit(world, table, "update", new, col("account").is_in(pair), deletes=changed_accounts)


DEEDS = {
    "clone": (clone, 0.35),
    "drop": (drop, 0.15),
    "materialize": (materialize, 0.1),
    "rewrite": (rewrite, 0.1),
    "compact": (compact, 0.1),
    "transfer": (transfer, 0.2),
}
WEIGHTS = {name: weight for name, (_, weight) in DEEDS.items()}


def look(catalog: CatalogNames) -> dict[str, list[Row]]:
    return {
        f"{SPACE}.{name}": read_rows(catalog.load_table((SPACE, name)))
        for _, name in catalog.list_tables(SPACE)
    }


def judge(tables: Mapping[str, Sequence[Row]]) -> str | None:
    for name, rows in tables.items():
        if name.startswith(f"{SPACE}.") and rows:
            twice = [account for account, count in Counter(row[0] for row in rows).items() if count > 1]
            if twice:
                return f"accounts {twice} of {name} are there more than once: {rows}"
            if sum(amount for _, amount in rows) != SUM:
                return f"{name} has {sum(amount for _, amount in rows)} instead of {SUM}: {rows}"
    return None


@contextmanager
def known_copies() -> Iterator[None]:
    """Inside, the rows of copies are known, as those of all files that are written here."""

    def copied(line: Any, places: Mapping[str, str], *more: Any) -> None:
        _real_copy(line, places, *more)
        for path, place in places.items():
            rows_at[f"{line.tracked.prefix}/{place}"] = rows_at[
                line.tracked.log.replay.open_url(path)[1].lstrip("/")
            ]

    with patch.object(materializing, "_copy", copied):
        yield
