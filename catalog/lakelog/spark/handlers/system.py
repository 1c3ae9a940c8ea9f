"""Tables in the namespace `system`, which lakelog makes when they are read: `SELECT … FROM lake.system.audit`.

A query says what of their time it wants, as far as Spark has found that out; Spark applies the whole condition itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from lakelog.catalog import Catalog
from lakelog.log.errors import NotFound
from lakelog.spark.arrow_streams import in_streams, schema_json
from lakelog.spark.open_catalog import OpenCatalog
from lakelog.spark.requests import system as ask


@dataclass(frozen=True, slots=True)
class SystemTable:
    """`read` gets the bounds of the column `time`, in microseconds, both inclusive or None, since not above until.

    It gives the very rows that it would give without bounds, at least those whose time is within them.
    """

    schema: Callable[[], pa.Schema]
    read: Callable[[Catalog, int | None, int | None], pa.RecordBatchReader]


def _audit_schema() -> pa.Schema:
    from lakelog.catalog.looking.audit import AUDIT_SCHEMA

    return AUDIT_SCHEMA


def _audit(catalog: Catalog, since_us: int | None, until_us: int | None) -> pa.RecordBatchReader:
    from lakelog.catalog.looking.audit import audit_table

    return audit_table(catalog.audit(since=since_us, until=until_us, whole_ranges=True))


TABLES = {"audit": SystemTable(schema=_audit_schema, read=_audit)}


def list_tables(at: OpenCatalog, asked: ask.ListSystemTables) -> ask.SystemTables:
    declared = (ask.DeclaredTable(name=name, schema=schema_json(of.schema())) for name, of in TABLES.items())
    return ask.SystemTables(tables=tuple(declared))


def read(at: OpenCatalog, asked: ask.ReadSystemTable) -> tuple[ask.Streams, bytes]:
    """Answer what others have committed, not what a transaction is about to."""
    table = TABLES.get(asked.name)
    if table is None:
        raise NotFound(f"there is no table system.{asked.name}")
    rows = table.read(at.outside, asked.since_us, asked.until_us)
    wanted = pa.schema([rows.schema.field(column) for column in asked.columns])
    return in_streams(
        pa.RecordBatchReader.from_batches(wanted, (batch.select(wanted.names) for batch in rows))
    )
