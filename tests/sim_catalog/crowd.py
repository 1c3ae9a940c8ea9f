"""Clients that all want the same two logs: rows and files for a table with numbers, new names in its namespace.

Nothing is ever taken away. So each append that was acknowledged is there once, with numbers of its own, and one that
failed is nowhere. With proposals, many of their versions have changes of several clients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa
from tests.sim_catalog import numbers
from tests.sim_catalog.stores import Row, read_rows
from tests.sim_catalog.world import CatalogWorld, Request

from lakelog.catalog import Catalog, StreamBatch, engine
from lakelog.catalog.core import parquet
from lakelog.catalog.core.parquet.numbering import IdentityNumbering
from lakelog.catalog.core.schema.spark_types import schema_from_spark
from lakelog.catalog.core.writes.identity_values import known_taken
from lakelog.catalog.engine import CatalogNames
from lakelog.log import AlreadyExists

NAME = "crowd.t"
SCHEMA = pa.schema([("of", pa.int64())])


def found(catalog: Catalog) -> None:
    catalog.create_namespace("crowd")
    engine.commit_stage(catalog, engine.stage(catalog, "create", NAME, schema_from_spark(numbers.COLUMNS)))


def deed(world: CatalogWorld, catalog: Catalog) -> None:
    WAYS[world.chosen(WEIGHTS)](world, catalog)


def append(world: CatalogWorld, catalog: Catalog) -> None:
    """Append a few rows under an id that is retried; sometimes without one, once."""
    rows, table = numbers.some(world), catalog.load_table(NAME)
    if world.rng.random() < 0.3:
        table.append(rows)
        _mark(world, rows)
        return
    token = catalog.token(NAME)
    request = Request("append in the crowd", token.commit_id)
    _ask(world, request, rows, lambda: table.append(rows, token=token))


def append_files(world: CatalogWorld, catalog: Catalog) -> None:
    """Append files as an engine does, perhaps as the batch of a stream."""
    rows, table = numbers.some(world), catalog.load_table(NAME)
    head, write = table.table_head, engine.begin_write(table)
    numbering = IdentityNumbering(table.schema, known_taken(head))
    files = parquet.written_files(head.tracked, table.metadata, write, rows, numbering)
    batch = StreamBatch(stream=write.id, number=0) if rows.num_rows == 1 else None
    world.scheduler.stall(world.rng.randint(1, 30))
    request = Request("files in the crowd", write.id)
    _ask(
        world,
        request,
        rows,
        lambda: engine.commit_write(table, write, "append", files, values=numbering.taken(), batch=batch),
    )


def append_twice(world: CatalogWorld, catalog: Catalog) -> None:
    rows = numbers.some(world), numbers.some(world)
    request = world.transact(
        catalog, "transaction in the crowd", world.isolation, lambda tx: numbers.twice(tx, NAME, *rows)
    )
    if request is not None and request.acknowledged:
        _mark(world, *rows)


def create(world: CatalogWorld, catalog: Catalog) -> None:
    """Create a table; now and then, another client takes the name."""
    name = f"crowd.x{world.rng.choice((world.tick(), 1, 2))}"
    try:
        stage = engine.stage(catalog, "create", name, SCHEMA)
    except AlreadyExists:
        return
    request = Request("create in the crowd", stage.commit_id)
    world.requests.append(request)
    world.ask(request, lambda: engine.commit_stage(catalog, stage))


def alter_namespace(world: CatalogWorld, catalog: Catalog) -> None:
    token = catalog.token("crowd")
    request = Request("property of the crowd", token.commit_id)
    world.requests.append(request)
    world.ask(request, lambda: catalog.alter_namespace("crowd", set={"p": str(world.tick())}, token=token))


def alter_table(world: CatalogWorld, catalog: Catalog) -> None:
    """Change what no proposal from before passes."""
    change = {"change": "set-property", "key": "p", "value": str(world.tick())}
    catalog.load_table(NAME).alter([change])


WAYS = {
    "append": append,
    "append files": append_files,
    "append twice": append_twice,
    "create": create,
    "alter namespace": alter_namespace,
    "alter table": alter_table,
}
WEIGHTS = {
    "append": 0.45,
    "append files": 0.2,
    "append twice": 0.05,
    "create": 0.15,
    "alter namespace": 0.05,
    "alter table": 0.1,
}


def _ask(world: CatalogWorld, request: Request, rows: pa.Table, commit: object) -> None:
    world.requests.append(request)
    world.ask(request, commit)  # type: ignore[arg-type]
    if request.acknowledged:
        _mark(world, rows)
    elif request.refused:
        world.marks |= {(REFUSED, of) for of in rows["of"].to_pylist()}


REFUSED, ADDED = "refused", "added"


def _mark(world: CatalogWorld, *several: pa.Table) -> None:
    world.marks |= {(ADDED, of) for rows in several for of in rows["of"].to_pylist()}


def look(catalog: CatalogNames) -> dict[str, list[Row]]:
    return {NAME: read_rows(catalog.load_table(NAME))}


def judge(tables: Mapping[str, Sequence[Row]]) -> str | None:
    for column in (0, 1):
        counts = Counter(row[column] for row in tables[NAME])
        twice = [value for value, count in counts.items() if count > 1]
        if twice:
            return f"{NAME} has {('numbers', 'rows')[column]} {twice} twice: {sorted(tables[NAME])}"
    return None


def lost(world: CatalogWorld) -> list[str]:
    """Return what was acknowledged and is not there, and what was refused and is."""
    there = {of for _, of in look(world.calm())[NAME]}
    missing = sorted(of for label, of in world.marks if label == ADDED and of not in there)
    applied_numbers = sorted(of for label, of in world.marks if label == REFUSED and of in there)
    return [
        *([f"rows {missing} were acknowledged, and are not there"] if missing else []),
        *([f"rows {applied_numbers} were refused, and are there"] if applied_numbers else []),
    ]
