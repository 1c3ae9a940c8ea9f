"""The metadata tables of a table: its versions, files, partitions, manifests and commits, as rows to query.

Their columns are stable (see docs/sql/metadata.md), and named like Iceberg's if they mean the same.
`history`, `snapshots` and `log` show the commits up to the loaded version. `files`, `partitions` and
`manifests` show that version as it is, in a transaction with the changes made in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakelog.catalog.core.logs import TableHead, naming
from lakelog.catalog.looking.audit import metadata_files, metadata_versions
from lakelog.log.errors import InvalidInput, NotFound

Chunks = Iterator[pa.Table]


@dataclass(frozen=True, slots=True)
class MetadataTableKind:
    """`read` gets the requested part of the schema, and yields tables of just these columns.

    If it is not `of_a_line`, it covers the table with all its tags and branches, also if read through a tag
    or branch.
    """

    schema: Callable[[TableHead], pa.Schema]
    read: Callable[[TableHead, pa.Schema], Chunks]
    of_a_line: bool = False


METADATA_TABLES = {
    "detail": MetadataTableKind(lambda table: metadata_versions.DETAIL, metadata_versions.detail, True),
    "files": MetadataTableKind(metadata_files.files_schema, metadata_files.files, True),
    "history": MetadataTableKind(lambda table: metadata_versions.HISTORY, metadata_versions.history),
    "log": MetadataTableKind(lambda table: metadata_versions.LOG, metadata_versions.log),
    "manifests": MetadataTableKind(lambda table: metadata_files.MANIFESTS, metadata_files.manifests, True),
    "partitions": MetadataTableKind(metadata_files.partitions_schema, metadata_files.partitions, True),
    "refs": MetadataTableKind(lambda table: metadata_versions.REFS, metadata_versions.refs),
    "snapshots": MetadataTableKind(lambda table: metadata_versions.SNAPSHOTS, metadata_versions.snapshots),
}
"""All metadata tables by their names."""

_ALIASES = {
    ("history", "committed_at"): "made_current_at",
    **{(name, "snapshot_id"): "version" for name in ("history", "refs", "snapshots")},
}
"""Other names of columns, by the metadata table: a query may use them, and `SELECT *` does not show them.

`snapshot_id` is Iceberg's name of the version. `history` has Iceberg's name of a commit's time, and so ours too.
"""


def read_metadata(table: TableHead, name: str, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
    """Return the rows of the metadata table `name`, all columns or these in their order.

    Rows are made lazily. Raises NotFound if the metadata table does not exist, InvalidInput if a column does
    not.
    """
    metadata_table = _named(name)
    whole = metadata_table.schema(table)
    if columns is None:
        return pa.RecordBatchReader.from_batches(whole, _batches(metadata_table.read(table, whole), table))
    sources = [_ALIASES.get((name, column), column) for column in columns]
    missing_columns = [column for column in sources if column not in whole.names]
    if missing_columns:
        raise InvalidInput(f"{name} has no column {missing_columns[0]}: it has {', '.join(whole.names)}")
    read = pa.schema([whole.field(column) for column in dict.fromkeys(sources)])
    result_schema = pa.schema(
        [whole.field(of).with_name(column) for of, column in zip(sources, columns, strict=True)]
    )
    tables = metadata_table.read(table, read)
    if read != result_schema:
        tables = (table_chunk.select(sources).rename_columns(list(columns)) for table_chunk in tables)
    return pa.RecordBatchReader.from_batches(result_schema, _batches(tables, table))


def _named(name: str) -> MetadataTableKind:
    if name not in METADATA_TABLES:
        raise NotFound(f"there is no metadata table {name}: there are {', '.join(sorted(METADATA_TABLES))}")
    return METADATA_TABLES[name]


def _batches(tables: Chunks, head: TableHead) -> Iterator[pa.RecordBatch]:
    with naming(head.tracked.log.location):
        for table in tables:
            yield from table.to_batches()
