"""Tables for readers of Iceberg."""

from __future__ import annotations

from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows


def _export(call: Call) -> Rows:
    done = call.loaded("table").export_iceberg(call["to"])
    return [(done.url, done.version, done.objects, done.size_bytes)]


PROCEDURES = (
    Procedure(
        name="export_iceberg",
        description="Let readers of Iceberg read a table, with its history, tags and branches.",
        run=_export,
        parameters=(
            Parameter("table", "STRING", "the table"),
            Parameter(
                "to", "STRING", "the folder or URL for the metadata; NULL: the table's own", default="NULL"
            ),
        ),
        columns=(
            Column("metadata", "STRING", "the URL that readers are given"),
            Column("version", "BIGINT", "that they read"),
            Column("objects", "BIGINT", "that were written"),
            Column("bytes", "BIGINT", "of these"),
        ),
        in_transaction=False,
    ),
)
