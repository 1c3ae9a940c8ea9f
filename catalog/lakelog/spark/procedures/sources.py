"""Places of other writers' tables and files: a path, or a table of the session catalog, which Spark looks up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lakelog.log.errors import InvalidInput
from lakelog.spark.requests.jobs import FootersRead, SourceFound
from lakelog.spark.requests.sources import ForeignSource

if TYPE_CHECKING:
    from lakelog.catalog import FoundFile
    from lakelog.catalog.formats.imports import KnownFolder

_PATH = re.compile(r"/|[a-zA-Z][a-zA-Z0-9+.-]*:/")


def source_of(text: str, *formats: str) -> ForeignSource:
    """Return the path or the table of the session catalog that a text names.

    `parquet`.`/path` is a path too, for each of the `formats`.
    """
    from lakelog.catalog.names import identifier

    if not text:
        raise InvalidInput("the source is empty: give a path, or the name of a table of spark_catalog")
    if _PATH.match(text):
        return ForeignSource(path=text)
    parts = identifier(text)
    if len(parts) == 2 and parts[0].lower() in formats and _PATH.match(parts[1]):
        return ForeignSource(path=parts[1])
    if parts[0] == "spark_catalog" and len(parts) > 1:
        parts = parts[1:]
    if len(parts) > 2:
        raise InvalidInput(
            f"the source {text} is neither an absolute path nor a table of spark_catalog, whose name has one or two "
            "parts: give a path or a table. Of an Iceberg table of another catalog, give the metadata file, which "
            f"SELECT file FROM {text}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1 shows"
        )
    return ForeignSource(table=tuple(parts))


def found_files(read: FootersRead) -> list[FoundFile]:
    """Return the files whose footers Spark has read."""
    from lakelog.catalog import FoundFile, StructType
    from lakelog.catalog.engine import type_from_spark

    schemas = [type_from_spark(schema) for schema in read.schemas]
    files = []
    for file in read.files:
        columns = schemas[file.schema]
        assert isinstance(columns, StructType), "a file has columns"
        files.append(
            FoundFile(
                path=file.path,
                size_bytes=file.size,
                rows=file.rows,
                columns=columns,
                partition=file.partition,
                stats=dict(file.stats),
                footer_crc=file.footer,
                old_calendar=file.old_calendar,
            )
        )
    return files


def known_folder(found: SourceFound) -> KnownFolder:
    """Return Spark's facts of a folder of Parquet files: from its catalog, and from the files' footers."""
    from lakelog.catalog import StructType
    from lakelog.catalog.engine import type_from_spark
    from lakelog.catalog.formats.imports import FolderTable, KnownFolder

    table = None
    if found.columns is not None:
        columns = type_from_spark(found.columns)
        assert isinstance(columns, StructType), "a table has columns"
        places = None
        if found.places is not None:
            places = tuple((place.path, place.values) for place in found.places)
        table = FolderTable(columns=columns, partitioned_by=found.partitioned_by, places=places)
    footers = () if found.footers is None else found_files(found.footers)
    return KnownFolder(table=table, footers={file.path: file for file in footers})
