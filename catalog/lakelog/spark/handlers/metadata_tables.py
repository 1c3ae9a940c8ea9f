"""The metadata tables of a loaded table."""

from __future__ import annotations

from lakelog.log.errors import Unsupported
from lakelog.spark.arrow_streams import in_streams, schema_json
from lakelog.spark.open_catalog import ServedCatalog
from lakelog.spark.requests import system as ask


def describe(at: ServedCatalog, asked: ask.DescribeMetadataTable) -> ask.MetadataTable:
    """Return the columns.

    Raises Unsupported on a tag or branch, if the metadata table is about the whole table.
    """
    from lakelog.catalog.looking.audit import METADATA_TABLES

    name = asked.name
    table = at.loaded(asked)
    if asked.ref is not None and not METADATA_TABLES[name].of_a_line:
        raise Unsupported(
            f"{name} covers {table.name} with all its tags and branches: read it from the table itself, without "
            f"{table.ref}"
        )
    return ask.MetadataTable(name=name, schema=schema_json(table.inspect(name).schema))


def read(at: ServedCatalog, asked: ask.ReadMetadataTable) -> tuple[ask.StreamLengths, bytes]:
    return in_streams(at.loaded(asked).inspect(asked.name, asked.columns))
