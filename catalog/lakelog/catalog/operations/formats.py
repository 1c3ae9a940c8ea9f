"""Operations for other table formats: export, import, adopt."""

from __future__ import annotations

from lakelog.catalog.choices import SNAPSHOT
from lakelog.catalog.operations.declare import (
    ACTS_AT_ONCE,
    REPORTS_FIRST,
    TABLE,
    AnswerColumn,
    DeclaredOperation,
    OperationEffect,
    OperationParameter,
    flag,
    text,
)

EXPORT_ICEBERG = DeclaredOperation(
    name="export_iceberg",
    command="export",
    summary="Let readers of Iceberg read a table, with its history.",
    details="""
The URL of its metadata is the answer. The newest version comes with the versions before it (100 at most), tags,
branches and row ids. Data files stay where they are, and only what has changed since the last export is written.
lakelog show says what Iceberg cannot say of a table.
""",
    effect=OperationEffect.ADDS,
    parameters=(
        TABLE,
        text("to", "the folder or URL for the metadata", "the table's own", "URL"),
    ),
    columns=(
        AnswerColumn("metadata", "STRING", "the URL that readers are given", "url"),
        AnswerColumn("version", "BIGINT", "that they read"),
        AnswerColumn("objects", "BIGINT", "that were written"),
        AnswerColumn("bytes", "BIGINT", "of these", "size_bytes"),
    ),
)

IMPORT_TABLE = DeclaredOperation(
    name="import_table",
    command="import",
    summary="Make a table of an Iceberg, Delta or Parquet table.",
    details="""
No file is copied, unless a call says so. The source is read, and never changed. If the table was made of it before,
the changes of the source since then are taken over, as one commit.
""",
    effect=OperationEffect.ADDS,
    parameters=(
        OperationParameter(
            "source",
            "STRING",
            "the folder of an Iceberg table, or its metadata file, of a Delta table, or of Parquet files; or, in "
            "Spark, the name of a table of spark_catalog",
        ),
        OperationParameter(
            "format",
            "STRING",
            "what the source is",
            option="--format",
            choices=("iceberg", "delta", "parquet"),
        ),
        OperationParameter("table", "STRING", "the table that is made, or catches up", metavar="TABLE"),
        OperationParameter(
            "mode", "STRING", "snapshot: the source stays as it is", f"'{SNAPSHOT}'", in_command=False
        ),
        OperationParameter(
            "versions",
            "INT",
            "how many of the source's newest versions come along; the first of them has all earlier changes",
            "100",
            metavar="N",
        ),
        ACTS_AT_ONCE,
        text(
            "time_zone",
            "that of a Delta table's writers, as Europe/Berlin, for partitions by times without one",
            metavar="ZONE",
        ),
        flag("copy", "copy the files, so that the source may delete its own"),
    ),
    columns=(
        AnswerColumn("source_version", "STRING", "the source's newest version", "snapshot"),
        AnswerColumn("versions", "INT", "that became the table's"),
        AnswerColumn("added_files", "BIGINT"),
        AnswerColumn("removed_files", "BIGINT"),
        AnswerColumn("changed_files", "BIGINT", "files with other deleted rows"),
        AnswerColumn("rows", "BIGINT", "of the source by now"),
        AnswerColumn("bytes", "BIGINT", "of the source by now", "size_bytes"),
        AnswerColumn("current_version", "BIGINT", "of the table; NULL if nothing was done", "version"),
    ),
)

ADOPT_FILES = DeclaredOperation(
    name="adopt_files",
    command="adopt",
    summary="Make the files of an imported table its own.",
    details="""
From then on lakelog vacuum deletes those that no version of TABLE has any more, and TABLE catches up with nothing.

The source has to be dropped in its own catalog, with its files kept, and its metadata moved away: the folder
_delta_log of a Delta table, or metadata of an Iceberg table. Refused if that is there, or another table of the
warehouse has one of the files. What reads the files beside that (clones, snapshots, jobs that know their paths) is
not known here.
""",
    effect=OperationEffect.DELETES,
    parameters=(TABLE, REPORTS_FIRST),
    columns=(
        AnswerColumn("source", "STRING", "the folder that the source was in"),
        AnswerColumn("files", "BIGINT", "that are adopted"),
        AnswerColumn("bytes", "BIGINT", "of these", "size_bytes"),
        AnswerColumn("left_out", "BIGINT", "files that stay what they are: elsewhere, or another table's"),
        AnswerColumn("current_version", "BIGINT", "of the table; NULL if nothing was done", "version"),
    ),
)
