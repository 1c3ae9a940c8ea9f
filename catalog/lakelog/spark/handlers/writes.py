"""Writing to a table that was loaded."""

from __future__ import annotations

import msgspec

from lakelog.catalog import Table
from lakelog.catalog.core.logs import Token
from lakelog.catalog.core.writes import StreamBatch, check_takes
from lakelog.catalog.errors import BatchCommitted
from lakelog.log.costs import Tally, tallied
from lakelog.spark.open_catalog import OpenCatalog
from lakelog.spark.requests import writes as ask
from lakelog.spark.requests.base import Done


def delete(at: OpenCatalog, asked: ask.Delete) -> Done:
    at.writable(asked).delete(asked.predicate, token=asked.token)
    return Done()


def truncate(at: OpenCatalog, asked: ask.Truncate) -> Done:
    at.writable(asked).truncate(token=asked.token)
    return Done()


def begin(at: OpenCatalog, asked: ask.BeginWrite) -> ask.Begun:
    """Write and token name the version that was loaded: what was committed since may conflict."""
    table = at.writable(asked)
    write = table.begin_write()
    values = _next_values(table.identity_values())
    if asked.transaction is not None:
        return ask.Begun(write=write, token=None, identities=values)
    token = at.outside.token_at(asked.location)
    bases = {log: min(base, asked.version) for log, base in token.bases.items()}
    return ask.Begun(
        write=msgspec.structs.replace(write, version=asked.version),
        token=msgspec.structs.replace(token, bases=bases),
        identities=values,
    )


def begin_batch(at: OpenCatalog, asked: ask.BeginBatch) -> ask.Begun:
    """The id of the write is that of its commit, so that a retry needs no token."""
    table = at.loaded(asked).refresh()
    for version in {asked.version, asked.written_as}:
        older = at.loaded(msgspec.structs.replace(asked, version=version))
        check_takes(older.metadata, table.metadata, asked.name)
    at.handles.remember(table, asked.transaction, past=False, step=asked.step)
    return ask.Begun(
        write=table.begin_write(),
        token=None,
        version=table.version,
        identities=_next_values(table.identity_values()),
    )


def commit_write(at: OpenCatalog, asked: ask.CommitWrite) -> ask.Written:
    cost = Tally()
    try:
        with tallied(cost):
            table = at.writable(asked)
            done = table.commit_write(
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
        return ask.Written(written=False, mark=_mark(table.refresh(), asked.batch), cost=_cost(cost))
    return ask.Written(
        written=True, rows=_rows_changed(done), mark=_mark(done, asked.batch), cost=_cost(cost)
    )


def _mark(table: Table, batch: StreamBatch | None) -> str | None:
    """What a streaming query keeps in its checkpoint."""
    return table.stream_mark(batch.stream) if batch is not None and batch.from_checkpoint else None


def commit_rows(at: OpenCatalog, asked: ask.CommitRows) -> ask.CommittedRows:
    cost = Tally()
    with tallied(cost):
        done = at.writable(asked).commit_rows(
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
    return ask.CommittedRows(rows=_rows_changed(done), cost=_cost(cost))


def make_token(at: OpenCatalog, asked: ask.MakeToken) -> Token:
    catalog = at.of(asked.transaction)
    if asked.location is not None:
        return catalog.token_at(asked.location)
    return catalog.token(asked.identifier or asked.namespace or ())


def _rows_changed(done: Table) -> ask.RowsChanged | None:
    counts = done.rows_changed
    return None if counts is None else ask.RowsChanged(**msgspec.structs.asdict(counts))


def _cost(tally: Tally) -> ask.CommitCost:
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
