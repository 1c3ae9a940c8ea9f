"""Tables for readers of Iceberg, and tables of other formats."""

from __future__ import annotations

from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows
from lakelog.spark.procedures.sources import known_folder, source_of
from lakelog.spark.requests.jobs import FindSource, SourceFound


def _export(call: Call) -> Rows:
    done = call.loaded("table").export_iceberg(call["to"])
    return [(done.url, done.version, done.objects, done.size_bytes)]


def _prepare_import(call: Call) -> FindSource:
    format = call["format"].lower()
    # Later imports look at few new files, whose footers are soon read.
    is_new = not call.catalog.table_exists(call.table("table"))
    return FindSource(
        source=source_of(call["source"], format), format=format, footers=is_new and format == "parquet"
    )


def _import(call: Call) -> Rows:
    found = call.came_of(SourceFound)
    done = call.catalog.import_table(
        found.url,
        call.table("table"),
        format=call["format"],
        mode=call["mode"],
        versions=call["versions"],
        dry_run=call["dry_run"],
        copy=call["copy"],
        known=known_folder(found) if call["format"].lower() == "parquet" else None,
        time_zone=call["time_zone"],
    )
    return [
        (
            done.snapshot,
            done.versions,
            done.added_files,
            done.removed_files,
            done.changed_files,
            done.rows,
            done.size_bytes,
            done.version,
        )
    ]


def _adopt(call: Call) -> Rows:
    done = call.catalog.adopt_files(call.table("table"), dry_run=call["dry_run"])
    return [(done.source, done.files, done.size_bytes, done.left_out, done.version)]


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
    Procedure(
        name="import_table",
        rows=True,
        prepare=_prepare_import,
        description="Make a table of one of another format, without copying; again: take over what that did since.",
        run=_import,
        parameters=(
            Parameter(
                "source",
                "STRING",
                "the folder of an Iceberg table, or its metadata file, of a Delta table, or of Parquet files; or the "
                "name of a table of spark_catalog",
            ),
            Parameter("format", "STRING", "what the source is: iceberg, delta or parquet"),
            Parameter("table", "STRING", "the table that is made, or catches up"),
            Parameter("mode", "STRING", "snapshot: the source stays as it is", default="'snapshot'"),
            Parameter("versions", "INT", "how many of its newest versions come along", default="100"),
            Parameter("dry_run", "BOOLEAN", "only show what would be imported", default="false"),
            Parameter(
                "time_zone",
                "STRING",
                "that of a Delta table's writers, for partitions by times without one",
                default="NULL",
            ),
            Parameter(
                "copy", "BOOLEAN", "copy the files, so that the source may delete its own", default="false"
            ),
        ),
        columns=(
            Column("source_version", "STRING", "the source's newest version"),
            Column("versions", "INT", "that became the table's"),
            Column("added_files", "BIGINT"),
            Column("removed_files", "BIGINT"),
            Column("changed_files", "BIGINT", "files with other deleted rows"),
            Column("rows", "BIGINT", "of the source by now"),
            Column("bytes", "BIGINT", "of the source by now"),
            Column("current_version", "BIGINT", "of the table; NULL where nothing was done"),
        ),
        in_transaction=False,
    ),
    Procedure(
        name="adopt_files",
        description="Make the files of an imported table its own, once its source is gone: vacuum deletes them.",
        run=_adopt,
        parameters=(
            Parameter("table", "STRING", "the table"),
            Parameter("dry_run", "BOOLEAN", "only show what would be adopted", default="true"),
        ),
        columns=(
            Column("source", "STRING", "the folder that the source was in"),
            Column("files", "BIGINT", "that are adopted"),
            Column("bytes", "BIGINT", "of these"),
            Column("left_out", "BIGINT", "files that stay what they are: elsewhere, or another table's"),
            Column("current_version", "BIGINT", "of the table; NULL where nothing was done"),
        ),
        in_transaction=False,
    ),
)
