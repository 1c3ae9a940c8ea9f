"""Namespaces and tables on object storage: what commits mean, and the Python client.

from lakelog.catalog import Catalog, col

    catalog = Catalog("/data/lake")
    catalog.create_namespace("sales")
    orders = catalog.create_table("sales.orders", arrow_schema, partition_by=["region"])
    orders = orders.append(arrow_table)
    orders.scan(columns=["id"], filter=col("region") == "EU").to_arrow()
"""

from lakelog.catalog.catalog import Catalog
from lakelog.catalog.catalog_names import CatalogNames
from lakelog.catalog.ddl import Stage
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
from lakelog.catalog.files import ColumnStats, DataFile
from lakelog.catalog.logs import Token
from lakelog.catalog.schema import Schema, col
from lakelog.catalog.state import HistoryEntry
from lakelog.catalog.table import Table
from lakelog.catalog.transaction import Transaction
from lakelog.catalog.writes import StreamBatch
from lakelog.log.errors import CommitUnknown

__all__ = [
    "Catalog",
    "CatalogNames",
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
    "Transaction",
    "col",
]
