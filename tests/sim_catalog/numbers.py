"""A table whose rows are numbered by an identity column, written by clients who know nothing of each other.

A number is given once: to no two rows that were ever committed, whatever became of either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from tests.sim_catalog.stores import Row, read_rows, rows_at
from tests.sim_catalog.world import CatalogWorld, Request

from lakelog.catalog import Catalog, engine
from lakelog.catalog.core.schema.spark_types import schema_from_spark
from lakelog.catalog.core.state.decoded_events import table_events
from lakelog.catalog.core.state.events import FilesChanged, IdentityTaken
from lakelog.catalog.engine import CatalogNames

NAME = "numbers.t"
IDENTITY = {"identity.start": 1, "identity.step": 2, "identity.allowExplicitInsert": False}
COLUMNS = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": False, "metadata": IDENTITY},
        {"name": "of", "type": "long", "nullable": True, "metadata": {}},
    ],
}


def some(world: CatalogWorld) -> pa.Table:
    """Rows that no other client writes."""
    count = world.rng.randint(1, 3)
    return pa.table({"id": pa.nulls(count, pa.int64()), "of": [world.tick() for _ in range(count)]})


def found(catalog: Catalog) -> None:
    catalog.create_namespace("numbers")
    engine.commit_stage(catalog, engine.stage(catalog, "create", NAME, schema_from_spark(COLUMNS)))


def deed(world: CatalogWorld, catalog: Catalog) -> None:
    choice = world.rng.random()
    rows = some(world)
    if choice < 0.3:
        isolation = world.isolation
        world.transact(
            catalog, "numbers in a transaction", isolation, lambda tx: twice(tx, NAME, rows, some(world))
        )
        return
    table = catalog.load_table(NAME)
    token = catalog.token(NAME)
    request = Request("numbers", token.commit_id)
    world.requests.append(request)
    if choice < 0.7:
        world.ask(request, lambda: table.append(rows, token=token))
    elif choice < 0.85:
        world.ask(request, lambda: table.overwrite(rows, token=token))
    else:
        version = world.rng.randint(1, table.version)
        world.requests.remove(request)  # it may have nothing to do
        world.ask(request, lambda: table.rollback_to_version(version, token=token))


def twice(catalog: CatalogNames, name: str, *several: pa.Table) -> None:
    for rows in several:
        catalog.load_table(name).append(rows)


def look(catalog: CatalogNames) -> dict[str, list[Row]]:
    return {NAME: read_rows(catalog.load_table(NAME))}


def judge(tables: Mapping[str, Sequence[Row]]) -> str | None:
    numbers = [number for number, _ in tables[NAME]]
    return (
        None if len(set(numbers)) == len(numbers) else f"rows have the same numbers: {sorted(tables[NAME])}"
    )


def given_twice(world: CatalogWorld) -> list[str]:
    """Return the numbers that two rows got, of all that were ever committed."""
    wrong = []
    for log in world.truth.logs().values():
        if log.namespace is not None:
            continue
        paths, is_numbered = set[str](), False
        for commit in log.commits:
            for event in table_events(commit):
                if isinstance(event, FilesChanged):
                    paths |= {f"{log.location}/{file.path}" for file in event.added}
                is_numbered = is_numbered or isinstance(event, IdentityTaken)
            if {type(event) for event in table_events(commit)} == {IdentityTaken}:
                world.count("numbers reserved")
        rows = sorted(row for path in paths for row in rows_at[path]) if is_numbered else []
        wrong += [
            f"{row} and {other_row} have the same number"
            for row, other_row in zip(rows, rows[1:], strict=False)
            if row[0] == other_row[0]
        ]
    return wrong
