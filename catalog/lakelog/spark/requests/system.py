"""Tables that Python makes when they are read: of the namespace `system`, and of a table's version."""

from __future__ import annotations

from lakelog.spark.requests.base import Answer, CatalogRequest, FreeJson, LoadedTableRequest, Message


class ListSystemTables(CatalogRequest, frozen=True, tag="system_tables"):
    """List the tables of the namespace `system`."""


class DeclaredTable(Message, frozen=True, kw_only=True):
    """`schema` is Spark's JSON of a struct."""

    name: str
    schema: FreeJson


class SystemTables(Answer, frozen=True, kw_only=True):
    tables: tuple[DeclaredTable, ...]


class ReadSystemTable(CatalogRequest, frozen=True, kw_only=True, tag="read_system_table"):
    """Return these columns of all rows, or at least of all rows within the time bounds, as Arrow streams."""

    name: str
    columns: tuple[str, ...]
    since_us: int | None = None
    until_us: int | None = None


class StreamLengths(Answer, frozen=True, kw_only=True):
    """The lengths of the Arrow streams in the bytes."""

    streams: tuple[int, ...]


class DescribeMetadataTable(LoadedTableRequest, frozen=True, kw_only=True, tag="metadata_table"):
    """Return the columns of a metadata table."""

    name: str


class MetadataTable(Answer, frozen=True, kw_only=True):
    """`schema` is Spark's JSON of a struct."""

    name: str
    schema: FreeJson


class ReadMetadataTable(LoadedTableRequest, frozen=True, kw_only=True, tag="read_metadata_table"):
    """Return these columns of all rows of a metadata table, as Arrow streams."""

    name: str
    columns: tuple[str, ...]
