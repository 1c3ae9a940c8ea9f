"""Streams that write: each has a checkpoint and retries the batch that it does not know of; two may run at once.

One stream writes to a table that others roll back, append to and replace; another one writes each batch to two tables,
in a transaction, with a note in a third one that is no batch by itself. Whatever happens, a table takes every batch
once, and in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from tests.sim_catalog.stores import Row, read_rows
from tests.sim_catalog.world import CatalogWorld

from lakelog.catalog import Catalog, StreamBatch, engine
from lakelog.catalog.core.state.decoded_events import table_events
from lakelog.catalog.core.state.events import FilesChanged, StreamCommitted
from lakelog.catalog.engine import CatalogNames
from lakelog.catalog.errors import BatchCommitted
from lakelog.catalog.transaction import Transaction
from lakelog.log import InvalidInput
from lakelog.log.changes import each_change

ALONE, LEFT, RIGHT, NOTES = TABLES = ("sink.alone", "sink.left", "sink.right", "sink.notes")
PAIR = (LEFT, RIGHT)
SINGLE, DOUBLE = "single", "double"
STREAMS = {SINGLE: 1, DOUBLE: 2}
OTHERS = 0
SCHEMA = pa.schema([("stream", pa.int64()), ("batch", pa.int64())])


def row(stream: int, batch: int) -> pa.Table:
    return pa.table({"stream": [stream], "batch": [batch]}, schema=SCHEMA)


def found(catalog: Catalog) -> None:
    catalog.create_namespace("sink")
    for name in TABLES:
        catalog.create_table(name, SCHEMA)


def deed(world: CatalogWorld, catalog: Catalog) -> None:
    choice = world.rng.random()
    if choice < 0.35:
        single(world, catalog)
    elif choice < 0.7:
        double(world, catalog)
    else:
        disturb(world, catalog)


def next_batch(world: CatalogWorld, stream: str) -> int:
    """Return what the checkpoint of a stream says that it is to write next, as far as it knows."""
    return world.checkpoints.get(stream, 0)


def written(world: CatalogWorld, stream: str, batch: int) -> None:
    """Take note in the checkpoint, unless the stream is killed just before that."""
    if world.rng.random() < 0.7:
        world.checkpoints[stream] = max(next_batch(world, stream), batch + 1)
    else:
        world.count("sink: killed before its checkpoint")
    world.count(f"sink: {stream}")


def single(world: CatalogWorld, catalog: Catalog) -> None:
    batch = next_batch(world, SINGLE)
    name = StreamBatch(stream=SINGLE, number=batch, from_checkpoint=True)
    try:
        catalog.load_table(ALONE).append(row(STREAMS[SINGLE], batch), batch=name)
    except InvalidInput:
        # Another client runs the same stream, and is further.
        if next_batch(world, SINGLE) == batch:
            world.fail("a checkpoint is older than its table")
        world.count("sink: overtaken")
        return
    written(world, SINGLE, batch)


def double(world: CatalogWorld, catalog: Catalog) -> None:
    batch = next_batch(world, DOUBLE)

    def write(tx: Transaction) -> None:
        new = row(STREAMS[DOUBLE], batch)
        tables_before = [tx.load_table(name) for name in PAIR]
        tables_after = [
            table.append(new, batch=StreamBatch(stream=DOUBLE, number=batch)) for table in tables_before
        ]
        if [table.row_count for table in tables_before] == [table.row_count for table in tables_after]:
            raise BatchCommitted("a transaction of nothing is not looked for")
        tx.load_table(NOTES).append(new)

    try:
        request = world.transact(catalog, "batch of two tables", world.isolation, write)
    except BatchCommitted:
        world.count("sink: retried")
        written(world, DOUBLE, batch)
        return
    if request is not None and request.acknowledged:
        written(world, DOUBLE, batch)


def disturb(world: CatalogWorld, catalog: Catalog) -> None:
    """Do to the tables what others do to them."""
    rng = world.rng
    choice = rng.random()
    if choice < 0.4:
        catalog.load_table(rng.choice((ALONE, *PAIR))).append(row(OTHERS, world.tick()))
    elif choice < 0.6:
        catalog.load_table(ALONE).truncate()
    elif choice < 0.8:
        table = catalog.load_table(ALONE)
        table.rollback_to_version(rng.randint(1, table.version))
        world.count("sink: rollbacks")
    else:
        replaced_table = engine.stage(catalog, "replace", ALONE, SCHEMA)
        engine.commit_stage(catalog, replaced_table, ())
        world.count("sink: replaces")


def look(catalog: CatalogNames) -> dict[str, list[Row]]:
    return {name: read_rows(catalog.load_table(name)) for name in TABLES}


def judge(tables: Mapping[str, Sequence[Row]]) -> str | None:
    """Return what is wrong if these are the rows of the tables."""
    for name in TABLES:
        rows = [each for each in tables[name] if each[0] != OTHERS]
        if len(set(rows)) < len(rows):
            return f"{name} has a batch twice: {sorted(rows)}"
    left_table, right, notes = (
        sorted(each for each in tables[name] if each[0] != OTHERS) for name in (*PAIR, NOTES)
    )
    if not left_table == right == notes:
        return f"tables that are written together have other batches: {left_table}, {right}, {notes}"
    if [batch for _, batch in left_table] != list(range(len(left_table))):
        return f"batches are missing: {left_table}"
    return None


def never_twice(world: CatalogWorld) -> list[str]:
    """Return which batches were committed twice, or not at all although a checkpoint has them."""
    problems: list[str] = []
    for log in world.truth.logs().values():
        batches: dict[str, list[int]] = {}
        changes = [change for commit in log.commits for change in each_change(commit)]
        for commit in changes if log.namespace is None else ():
            events = table_events(commit)
            own = [event for event in events if isinstance(event, StreamCommitted)]
            rows = sum(event.added_rows for event in events if isinstance(event, FilesChanged))
            if own and rows != len(own):
                problems.append(f"version {commit.version} of {log.location} has {own}, and {rows} rows")
            for event in own:
                batches.setdefault(event.stream, []).append(event.batch)
        for stream, numbers in batches.items():
            if numbers != list(range(len(numbers))):
                problems.append(f"{log.location} took the batches {numbers} of {stream}")
            if len(numbers) < next_batch(world, stream):
                problems.append(f"{log.location} lacks batches of {stream}: it has {numbers}")
    return problems
