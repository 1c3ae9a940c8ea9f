"""Adding files of other writers to a table. Spark finds them and reads their footers (see `adding`)."""

from __future__ import annotations

from lakelog.catalog import engine
from lakelog.spark.procedures.declare import (
    AnswerColumn,
    OperationParameter,
    ProcedureCall,
    Rows,
    SystemProcedure,
)
from lakelog.spark.procedures.sources import found_files, source_of
from lakelog.spark.requests.jobs import FootersRead, ReadFooters


def _prepare(call: ProcedureCall) -> ReadFooters:
    from lakelog.catalog.engine import schema_to_spark

    table = call.catalog.load_table(call.table("table"))
    return ReadFooters(
        source=source_of(call["source"], "parquet"),
        schema=schema_to_spark(table.schema),
        partition_filter=call["partition_filter"] or {},
    )


def _add_files(call: ProcedureCall) -> Rows:
    from lakelog.catalog.engine import schema_to_spark
    from lakelog.catalog.errors import CommitConflict

    table = call.catalog.load_table(call.table("table"))
    footers = call.came_of(FootersRead)
    if footers.table_schema != schema_to_spark(table.schema):
        raise CommitConflict(
            f"the columns of {table.name} changed while the files were read: add them again",
            version=table.version,
        )
    new_files = found_files(footers)
    new_table = engine.add_found_files(
        table, new_files, ignore_extra_columns=bool(call["ignore_extra_columns"]), token=call.token
    )
    return [
        (
            len(new_files),
            sum(file.rows for file in new_files),
            sum(file.size_bytes for file in new_files),
            new_table.version,
        )
    ]


PROCEDURES = (
    SystemProcedure(
        name="add_files",
        rows=True,
        description="Add existing Parquet files to a table, where they are. They are read, and never deleted.",
        prepare=_prepare,
        run=_add_files,
        parameters=(
            OperationParameter("table", "STRING", "the table that gets the files"),
            OperationParameter(
                "source",
                "STRING",
                "a file, a folder (partitioned or not), or a Parquet table of spark_catalog",
            ),
            OperationParameter(
                "partition_filter",
                "MAP<STRING, STRING>",
                "values of the source's partition columns: only these files",
                default="NULL",
            ),
            OperationParameter(
                "ignore_extra_columns",
                "BOOLEAN",
                "accept files with columns that the table does not have",
                default="false",
            ),
        ),
        columns=(
            AnswerColumn("added_files", "BIGINT"),
            AnswerColumn("added_rows", "BIGINT"),
            AnswerColumn("added_bytes", "BIGINT"),
            AnswerColumn("current_version", "BIGINT"),
        ),
        changes=lambda call: call.table("table"),
    ),
)
