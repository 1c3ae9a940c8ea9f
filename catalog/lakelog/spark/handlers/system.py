"""Tables in the namespace `system`, which lakelog makes when they are read: `SELECT … FROM
lake.system.audit`.

A query gives bounds of their time if Spark has found any. Spark applies the whole condition itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from lakelog.catalog import Catalog
from lakelog.log.errors import NotFound
from lakelog.spark.arrow_streams import in_streams, schema_json
from lakelog.spark.open_catalog import ServedCatalog
from lakelog.spark.requests import system as ask


@dataclass(frozen=True, slots=True)
class SystemTable:
    """A table of the namespace `system`.

    `read` gets the bounds of the column `committed_at`, in microseconds. Both are inclusive or None, and since
    is not above until. It returns a part of the rows that it would return without bounds: at least all rows
    within them.
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


def list_tables(at: ServedCatalog, asked: ask.ListSystemTables) -> ask.SystemTables:
    declared_tables = (
        ask.DeclaredTable(name=name, schema=schema_json(system_table.schema()))
        for name, system_table in TABLES.items()
    )
    return ask.SystemTables(tables=tuple(declared_tables))


def read(at: ServedCatalog, asked: ask.ReadSystemTable) -> tuple[ask.StreamLengths, bytes]:
    """Return rows about commits. The changes of an open transaction are not among them."""
    table = TABLES.get(asked.name)
    if table is None:
        raise NotFound(f"there is no table system.{asked.name}")
    rows = table.read(at.outside, asked.since_us, asked.until_us)
    columns_schema = pa.schema([rows.schema.field(column) for column in asked.columns])
    return in_streams(
        pa.RecordBatchReader.from_batches(
            columns_schema, (batch.select(columns_schema.names) for batch in rows)
        )
    )
