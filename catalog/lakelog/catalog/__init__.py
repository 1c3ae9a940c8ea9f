"""Namespaces and tables on object storage: what commits mean, and the Python client.

from lakelog.catalog import Catalog, col

    catalog = Catalog("/data/lake")
    catalog.create_namespace("sales")
    orders = catalog.create_table("sales.orders", arrow_schema, partition_by=["region"])
    orders = orders.append(arrow_table)
    orders.scan(columns=["id"], filter=col("region") == "EU").to_arrow()
"""

from lakelog.catalog.catalog import Catalog
from lakelog.catalog.commits import Token
from lakelog.catalog.data_file import ColumnStats, DataFile
from lakelog.catalog.errors import (
    ColumnExists,
    CommitConflict,
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchColumn,
    NoSuchNamespace,
    NoSuchTable,
    TableExists,
)
from lakelog.catalog.history import HistoryEntry
from lakelog.catalog.predicate import col
from lakelog.catalog.schema import Schema
from lakelog.catalog.staging import Stage
from lakelog.catalog.stream_batches import StreamBatch
from lakelog.catalog.table import Table
from lakelog.log.errors import CommitUnknown

__all__ = [
    "Catalog",
    "ColumnExists",
    "ColumnStats",
    "CommitConflict",
    "CommitUnknown",
    "DataFile",
    "HistoryEntry",
    "NamespaceExists",
    "NamespaceNotEmpty",
    "NoSuchColumn",
    "NoSuchNamespace",
    "NoSuchTable",
    "Schema",
    "Stage",
    "StreamBatch",
    "Table",
    "TableExists",
    "Token",
    "col",
]
