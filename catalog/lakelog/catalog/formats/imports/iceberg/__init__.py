"""Iceberg tables as sources: metadata, manifests, deletes and file footers, in lakelog's words.

Rule: this package reads only objects that an Iceberg table's own metadata leads to, and writes nothing.
"""

from lakelog.catalog.formats.imports.iceberg.table import (
    IcebergTable,
)

__all__ = ["IcebergTable"]
