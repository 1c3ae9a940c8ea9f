"""Tables that Python makes when they are read: of the namespace `system`, and of one version of a table."""

from __future__ import annotations

from lakelog.spark.requests.base import Answer, FreeJson, InCatalog, Message, OfLoaded


class ListSystemTables(InCatalog, frozen=True, tag="system_tables"):
    """Which tables there are in the namespace `system`."""


class DeclaredTable(Message, frozen=True, kw_only=True):
    """`schema` is Spark's JSON of a struct."""

    name: str
    schema: FreeJson


class SystemTables(Answer, frozen=True, kw_only=True):
    tables: tuple[DeclaredTable, ...]


class ReadSystemTable(InCatalog, frozen=True, kw_only=True, tag="read_system_table"):
    """These columns of all rows, at least of those whose time is within the bounds, as Arrow streams."""

    name: str
    columns: tuple[str, ...]
    since_us: int | None = None
    until_us: int | None = None


class Streams(Answer, frozen=True, kw_only=True):
    """The lengths of the Arrow streams that the bytes consist of."""

    streams: tuple[int, ...]


class DescribeMetadataTable(OfLoaded, frozen=True, kw_only=True, tag="metadata_table"):
    """The columns of a metadata table."""

    name: str


class MetadataTable(Answer, frozen=True, kw_only=True):
    """`schema` is Spark's JSON of a struct."""

    name: str
    schema: FreeJson


class ReadMetadataTable(OfLoaded, frozen=True, kw_only=True, tag="read_metadata_table"):
    """These columns of all rows of a metadata table, as Arrow streams."""

    name: str
    columns: tuple[str, ...]
