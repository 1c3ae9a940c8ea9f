"""The metadata tables of a table that was loaded."""

from __future__ import annotations

from lakelog.log.errors import Unsupported
from lakelog.spark.arrow_streams import in_streams, schema_json
from lakelog.spark.open_catalog import OpenCatalog
from lakelog.spark.requests import system as ask


def describe(at: OpenCatalog, asked: ask.DescribeMetadataTable) -> ask.MetadataTable:
    """Unsupported on a tag or branch for one of the whole table."""
    from lakelog.catalog.looking.audit import METADATA_TABLES

    name = asked.name
    table = at.loaded(asked)
    if asked.ref is not None and not METADATA_TABLES[name].of_a_line:
        raise Unsupported(
            f"{name} covers {table.name} with all its tags and branches: read it from the table itself, without "
            f"{table.ref}"
        )
    return ask.MetadataTable(name=name, schema=schema_json(table.inspect(name).schema))


def read(at: OpenCatalog, asked: ask.ReadMetadataTable) -> tuple[ask.Streams, bytes]:
    return in_streams(at.loaded(asked).inspect(asked.name, asked.columns))
