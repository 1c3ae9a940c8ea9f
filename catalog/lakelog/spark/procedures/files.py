"""Files that others have written become a table's. Spark finds them and reads their footers; see `adding`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lakelog.log.errors import InvalidInput
from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows
from lakelog.spark.requests.jobs import FootersRead, ReadFooters, Source

if TYPE_CHECKING:
    from lakelog.catalog.parquet import FoundFile

_PATH = re.compile(r"/|[a-zA-Z][a-zA-Z0-9+.-]*:/")


def _prepare(call: Call) -> ReadFooters:
    from lakelog.catalog.schema import schema_to_spark

    table = call.catalog.load_table(call.table("table"))
    return ReadFooters(
        source=_source(call["source"]),
        schema=schema_to_spark(table.schema),
        partition_filter=call["partition_filter"] or {},
    )


def _source(text: str) -> Source:
    """Return the path or the table of the session catalog that is meant; `parquet`.`/path` is a path too."""
    from lakelog.catalog.names import identifier

    if not text:
        raise InvalidInput("the source is empty: give a path, or the name of a table of spark_catalog")
    if _PATH.match(text):
        return Source(path=text)
    parts = identifier(text)
    if len(parts) == 2 and parts[0].lower() == "parquet" and _PATH.match(parts[1]):
        return Source(path=parts[1])
    if parts[0] == "spark_catalog" and len(parts) > 1:
        parts = parts[1:]
    if len(parts) > 2:
        raise InvalidInput(
            f"the source {text} is neither an absolute path nor a table of spark_catalog, whose name has one or two "
            "parts: give a path or a table"
        )
    return Source(table=tuple(parts))


def _add_files(call: Call) -> Rows:
    from lakelog.catalog.errors import CommitConflict
    from lakelog.catalog.schema import schema_to_spark

    table = call.catalog.load_table(call.table("table"))
    read = call.came_of(FootersRead)
    if read.table_schema != schema_to_spark(table.schema):
        raise CommitConflict(
            f"the columns of {table.name} changed while the files were read: add them again",
            version=table.version,
        )
    found = _found(read)
    now = table.add_found_files(
        found, ignore_extra_columns=bool(call["ignore_extra_columns"]), token=call.token
    )
    return [
        (
            len(found),
            sum(file.rows for file in found),
            sum(file.size_bytes for file in found),
            now.version,
        )
    ]


def _found(read: FootersRead) -> list[FoundFile]:
    from lakelog.catalog.parquet import FoundFile
    from lakelog.catalog.schema import StructType, type_from_spark

    schemas = [type_from_spark(schema) for schema in read.schemas]
    found = []
    for file in read.files:
        columns = schemas[file.schema]
        assert isinstance(columns, StructType), "a file has columns"
        found.append(
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
    return found


PROCEDURES = (
    Procedure(
        name="add_files",
        description="Add existing Parquet files to a table, where they are. They are read, and never deleted.",
        prepare=_prepare,
        run=_add_files,
        parameters=(
            Parameter("table", "STRING", "the table that gets the files"),
            Parameter(
                "source",
                "STRING",
                "a file, a folder (partitioned or not), or a Parquet table of spark_catalog",
            ),
            Parameter(
                "partition_filter",
                "MAP<STRING, STRING>",
                "values of the source's partition columns: only these files",
                default="NULL",
            ),
            Parameter(
                "ignore_extra_columns",
                "BOOLEAN",
                "accept files with columns that the table does not have",
                default="false",
            ),
        ),
        columns=(
            Column("added_files", "BIGINT"),
            Column("added_rows", "BIGINT"),
            Column("added_bytes", "BIGINT"),
            Column("current_version", "BIGINT"),
        ),
        changes=lambda call: call.table("table"),
    ),
)
