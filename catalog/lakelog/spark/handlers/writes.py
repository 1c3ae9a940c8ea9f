"""Writing to a loaded table."""

from __future__ import annotations

import msgspec

from lakelog.catalog import StreamBatch, Table, Token, engine
from lakelog.catalog.engine import check_takes
from lakelog.catalog.errors import BatchCommitted
from lakelog.log.costs import CostTally, tallied
from lakelog.spark.open_catalog import ServedCatalog
from lakelog.spark.requests import writes as ask
from lakelog.spark.requests.base import EmptyAnswer


def delete(at: ServedCatalog, asked: ask.DeleteRows) -> EmptyAnswer:
    at.writable(asked).delete(asked.predicate, token=asked.token)
    return EmptyAnswer()


def truncate(at: ServedCatalog, asked: ask.TruncateTable) -> EmptyAnswer:
    at.writable(asked).truncate(token=asked.token)
    return EmptyAnswer()


def begin(at: ServedCatalog, asked: ask.BeginWrite) -> ask.BegunWrite:
    """Begin a write. Write and token name the loaded version, so later commits may conflict."""
    table = at.writable(asked)
    write = engine.begin_write(table)
    values = _next_values(engine.identity_values(table))
    if asked.transaction is not None:
        return ask.BegunWrite(write=write, token=None, identities=values)
    token = engine.token_at(at.outside, asked.location)
    bases = {log: min(base, asked.version) for log, base in token.bases.items()}
    return ask.BegunWrite(
        write=msgspec.structs.replace(write, version=asked.version),
        token=msgspec.structs.replace(token, bases=bases),
        identities=values,
    )


def begin_batch(at: ServedCatalog, asked: ask.BeginBatch) -> ask.BegunWrite:
    """Begin a write of a batch. Its id is the id of its commit, so a retry needs no token."""
    table = at.loaded(asked).refresh()
    for version in {asked.version, asked.written_as}:
        older = at.loaded(msgspec.structs.replace(asked, version=version))
        check_takes(older.metadata, table.metadata, asked.name)
    at.handles.remember(table, asked.transaction, past=False, step=asked.step)
    return ask.BegunWrite(
        write=engine.begin_write(table),
        token=None,
        version=table.version,
        identities=_next_values(engine.identity_values(table)),
    )


def commit_write(at: ServedCatalog, asked: ask.CommitWrite) -> ask.WriteResult:
    cost = CostTally()
    try:
        with tallied(cost):
            table = at.writable(asked)
            new_table = engine.commit_write(
                table,
                asked.write,
                asked.operation,
                asked.files,
                filter=asked.filter,
                deletes=asked.deletes,
                copies=asked.copies,
                batch=asked.batch,
                values=asked.values,
                token=asked.token,
            )
    except BatchCommitted:
        return ask.WriteResult(written=False, mark=_mark(table.refresh(), asked.batch), cost=_cost(cost))
    return ask.WriteResult(
        written=True, rows=_rows_changed(new_table), mark=_mark(new_table, asked.batch), cost=_cost(cost)
    )


def _mark(table: Table, batch: StreamBatch | None) -> str | None:
    """Return the text that a streaming query keeps in its checkpoint."""
    return table.stream_mark(batch.stream) if batch is not None and batch.from_checkpoint else None


def commit_rows(at: ServedCatalog, asked: ask.CommitRows) -> ask.CommittedRows:
    cost = CostTally()
    with tallied(cost):
        new_table = engine.commit_rows(
            at.writable(asked),
            asked.write,
            asked.operation,
            asked.files,
            removed=asked.removed,
            deletes=asked.deletes,
            condition=asked.condition,
            values=asked.values,
            reads_others=asked.reads_others,
            inserted=asked.inserted,
            updated=asked.updated,
            token=asked.token,
        )
    return ask.CommittedRows(rows=_rows_changed(new_table), cost=_cost(cost))


def make_token(at: ServedCatalog, asked: ask.MakeToken) -> Token:
    catalog = at.of(asked.transaction)
    if asked.location is not None:
        return engine.token_at(catalog, asked.location)
    return catalog.token(asked.identifier or asked.namespace or ())


def _rows_changed(done: Table) -> ask.RowsChanged | None:
    counts = done.rows_changed
    return None if counts is None else ask.RowsChanged(**msgspec.structs.asdict(counts))


def _cost(tally: CostTally) -> ask.CommitCost:
    return ask.CommitCost(
        attempts=tally.attempts,
        rebases=tally.rebases,
        waits=tally.waits,
        waited_ms=round(tally.waited_s * 1000),
        requests=tally.requests.total(),
        bytes_read=tally.bytes_read,
        bytes_written=tally.bytes_written,
    )


def _next_values(values: list[dict[str, int]]) -> tuple[ask.NextValue, ...]:
    return tuple(ask.NextValue(**value) for value in values)
