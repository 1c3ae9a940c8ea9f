"""Files that others have written become a table's. Spark finds them and reads their footers; see `adding`."""

from __future__ import annotations

from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows
from lakelog.spark.procedures.sources import found_files, source_of
from lakelog.spark.requests.jobs import FootersRead, ReadFooters


def _prepare(call: Call) -> ReadFooters:
    from lakelog.catalog.core.schema import schema_to_spark

    table = call.catalog.load_table(call.table("table"))
    return ReadFooters(
        source=source_of(call["source"], "parquet"),
        schema=schema_to_spark(table.schema),
        partition_filter=call["partition_filter"] or {},
    )


def _add_files(call: Call) -> Rows:
    from lakelog.catalog.core.schema import schema_to_spark
    from lakelog.catalog.errors import CommitConflict

    table = call.catalog.load_table(call.table("table"))
    read = call.came_of(FootersRead)
    if read.table_schema != schema_to_spark(table.schema):
        raise CommitConflict(
            f"the columns of {table.name} changed while the files were read: add them again",
            version=table.version,
        )
    found = found_files(read)
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


PROCEDURES = (
    Procedure(
        name="add_files",
        rows=True,
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
