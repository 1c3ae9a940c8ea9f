"""Tables in the namespace `system`, which lakelog makes when they are read: `SELECT … FROM lake.system.audit`.

Spark learns of a table here by the bridge's request `system_tables`, and reads it by `read_system_table`, which says
what of its time a query wants, as far as Spark has found that out; Spark applies the whole condition itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.log.errors import NotFound
from lakelog.spark.arrow_streams import in_streams, schema_json
from lakelog.spark.asking import Answer, Params
from lakelog.spark.catalogs import Catalogs

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelog.catalog import Catalog


@dataclass(frozen=True, slots=True)
class SystemTable:
    """`read` gets the bounds of the column `time`, in microseconds, both inclusive or None, since not above until.

    It gives the very rows that it would give without bounds, at least those whose time is within them.
    """

    schema: Callable[[], pa.Schema]
    read: Callable[[Catalog, int | None, int | None], pa.RecordBatchReader]


def _audit_schema() -> pa.Schema:
    from lakelog.catalog.audit import AUDIT_SCHEMA

    return AUDIT_SCHEMA


def _audit(catalog: Catalog, since_us: int | None, until_us: int | None) -> pa.RecordBatchReader:
    from lakelog.catalog.audit import audit_table

    return audit_table(catalog.audit(since=since_us, until=until_us, whole_ranges=True))


TABLES = {"audit": SystemTable(schema=_audit_schema, read=_audit)}


def declarations() -> Params:
    return {
        "tables": [{"name": name, "schema": schema_json(table.schema())} for name, table in TABLES.items()]
    }


def read(catalogs: Catalogs, params: Params) -> Answer:
    """Answer the wanted columns of all rows. What others have committed is told, not what a transaction is about to."""
    import pyarrow as pa

    table = TABLES.get(params["name"])
    if table is None:
        raise NotFound(f"there is no table system.{params['name']}")
    rows = table.read(catalogs.outside, params["since_us"], params["until_us"])
    wanted = pa.schema([rows.schema.field(column) for column in params["columns"]])
    return in_streams(
        pa.RecordBatchReader.from_batches(wanted, (batch.select(wanted.names) for batch in rows))
    )
