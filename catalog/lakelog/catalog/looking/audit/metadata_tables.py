"""The metadata tables of a table: its versions, files, partitions, manifests and commits, as rows to query.

Their columns are stable (see docs/sql/metadata.md), and named like Iceberg's where they mean the same.
`history`, `snapshots` and `log` show what is committed, up to the version at hand; `files`, `partitions` and
`manifests` show that version as it is, in a transaction with the changes made in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.looking.audit import metadata_files, metadata_versions
from lakelog.log.errors import InvalidInput, NotFound

Chunks = Iterator[pa.Table]


@dataclass(frozen=True, slots=True)
class MetadataTable:
    """`read` gets the wanted part of the schema, and yields tables of just these columns.

    One that is not `of_a_line` covers the table with all its tags and branches, also when read through one of them.
    """

    schema: Callable[[TableHead], pa.Schema]
    read: Callable[[TableHead, pa.Schema], Chunks]
    of_a_line: bool = False


METADATA_TABLES = {
    "detail": MetadataTable(lambda table: metadata_versions.DETAIL, metadata_versions.detail, True),
    "files": MetadataTable(metadata_files.files_schema, metadata_files.files, True),
    "history": MetadataTable(lambda table: metadata_versions.HISTORY, metadata_versions.history),
    "log": MetadataTable(lambda table: metadata_versions.LOG, metadata_versions.log),
    "manifests": MetadataTable(lambda table: metadata_files.MANIFESTS, metadata_files.manifests, True),
    "partitions": MetadataTable(metadata_files.partitions_schema, metadata_files.partitions, True),
    "refs": MetadataTable(lambda table: metadata_versions.REFS, metadata_versions.refs),
    "snapshots": MetadataTable(lambda table: metadata_versions.SNAPSHOTS, metadata_versions.snapshots),
}
"""All metadata tables by their names."""

_ALIASES = {(name, "snapshot_id"): "version" for name in ("history", "refs", "snapshots")}
"""Iceberg's words for columns, by the metadata table: who asks for one gets it, and `SELECT *` does not show it."""


def read_metadata(table: TableHead, name: str, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
    """Return the rows of the metadata table `name`, all columns or these in their order.

    Rows are made lazily. NotFound, InvalidInput for a column that does not exist.
    """
    found = _named(name)
    whole = found.schema(table)
    if columns is None:
        return pa.RecordBatchReader.from_batches(whole, _batches(found.read(table, whole)))
    sources = [_ALIASES.get((name, column), column) for column in columns]
    missing = [column for column in sources if column not in whole.names]
    if missing:
        raise InvalidInput(f"{name} has no column {missing[0]}: it has {', '.join(whole.names)}")
    read = pa.schema([whole.field(column) for column in dict.fromkeys(sources)])
    wanted = pa.schema(
        [whole.field(of).with_name(column) for of, column in zip(sources, columns, strict=True)]
    )
    tables = found.read(table, read)
    if read != wanted:
        tables = (each.select(sources).rename_columns(list(columns)) for each in tables)
    return pa.RecordBatchReader.from_batches(wanted, _batches(tables))


def _named(name: str) -> MetadataTable:
    if name not in METADATA_TABLES:
        raise NotFound(f"there is no metadata table {name}: there are {', '.join(sorted(METADATA_TABLES))}")
    return METADATA_TABLES[name]


def _batches(tables: Chunks) -> Iterator[pa.RecordBatch]:
    for table in tables:
        yield from table.to_batches()
