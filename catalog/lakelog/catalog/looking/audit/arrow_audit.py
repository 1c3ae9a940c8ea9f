"""An audit as Arrow, for engines that show it as a table. The schema is stable: see catalog/README.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec
import pyarrow as pa

from lakelog.catalog.looking.audit.audit import AuditEntry
from lakelog.catalog.names import quoted

ROWS_PER_BATCH = 1024

AUDIT_SCHEMA = pa.schema(
    [
        pa.field("what", pa.string(), nullable=False),
        pa.field("committed_at", pa.timestamp("us", "UTC")),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("dropped", pa.bool_(), nullable=False),
        pa.field("location", pa.string(), nullable=False),
        pa.field("log_id", pa.string()),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("first_version", pa.int64()),
        pa.field("operation", pa.string()),
        pa.field("details", pa.string()),
        pa.field("user", pa.string()),
        pa.field("engine", pa.string()),
        pa.field("client", pa.string()),
        pa.field("application", pa.string()),
        pa.field("host", pa.string()),
        pa.field("query", pa.string()),
        pa.field("statement", pa.string()),
        pa.field("commit_id", pa.string()),
        pa.field("transaction", pa.string()),
        pa.field("base", pa.int64()),
        pa.field("hash", pa.string()),
        pa.field("note", pa.string()),
    ]
)
"""A row for each AuditEntry.

`name` is quoted as in SQL, and empty for the root namespace. `details` is JSON.
"""


def audit_table(entries: Iterable[AuditEntry]) -> pa.RecordBatchReader:
    """Return `entries` as rows of AUDIT_SCHEMA. Reads lazily, batch by batch, and never holds all of them."""
    return pa.RecordBatchReader.from_batches(AUDIT_SCHEMA, _batches(iter(entries)))


def _batches(entries: Iterator[AuditEntry]) -> Iterator[pa.RecordBatch]:
    while rows := [_row(entry) for entry in islice(entries, ROWS_PER_BATCH)]:
        yield pa.RecordBatch.from_pylist(rows, AUDIT_SCHEMA)


def _row(entry: AuditEntry) -> dict[str, object]:
    row = {name: getattr(entry, name, None) for name in AUDIT_SCHEMA.names}
    row["name"] = None if entry.name is None else quoted(entry.name)
    row["operation"] = ", ".join(entry.operations) or None
    row["details"] = msgspec.json.encode(entry.details).decode() if entry.details else None
    return row
