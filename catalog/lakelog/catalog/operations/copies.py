"""Operations that copy and restore: backups, copies of a warehouse, clones, and dropped tables."""

from __future__ import annotations

from lakelog.catalog.choices import CARRY, LEAVE, REFUSE
from lakelog.catalog.operations.declare import (
    REPORTS_FIRST,
    SCOPE,
    AnswerColumn,
    DeclaredOperation,
    OperationEffect,
    OperationParameter,
    flag,
    optional,
    size,
    text,
)

_PLACE = OperationParameter("place", "STRING", "the folder or URL of the backups")
_BACKUP = text("backup", "the id of the backup", "the newest", "ID")
_OUTSIDE = OperationParameter(
    "outside",
    "STRING",
    "refuse tables and files outside of the warehouse's folder, or leave them, which names them in the answer",
    f"'{REFUSE}'",
    choices=(REFUSE, LEAVE),
)
_OUTSIDE_OF_A_COPY = OperationParameter(
    "outside",
    "STRING",
    "refuse tables and files outside of the warehouse's folder, leave them, which names them in the answer, or carry "
    "them, which copies them without their history",
    f"'{REFUSE}'",
    choices=(REFUSE, LEAVE, CARRY),
)
_MADE = (
    AnswerColumn("current_version", "BIGINT", member="version"),
    AnswerColumn("rows", "BIGINT", member="row_count"),
    AnswerColumn("files", "BIGINT", "data files", "file_count"),
)
_COPIED = (
    AnswerColumn("copied", "BIGINT", "objects that were not there yet"),
    AnswerColumn("copied_bytes", "BIGINT"),
    AnswerColumn("resumed", "BOOLEAN", "whether an earlier run was gone on with"),
)

BACKUPS = DeclaredOperation(
    name="backups",
    summary="List the backups at a place, oldest first.",
    effect=OperationEffect.READS,
    parameters=(_PLACE,),
    columns=(
        AnswerColumn("backup", "STRING", "its id"),
        AnswerColumn("as_of", "TIMESTAMP", "the moment that it is of"),
        AnswerColumn("kind", "STRING", "warehouse, namespace or table"),
        AnswerColumn("name", "ARRAY<STRING>", "what it is of"),
        AnswerColumn("tables", "BIGINT"),
        AnswerColumn("objects", "BIGINT"),
        AnswerColumn("size_bytes", "BIGINT"),
        AnswerColumn(
            "left_out", "ARRAY<STRING>", "what is outside of the warehouse, or which cuts are not whole"
        ),
    ),
)

BACKUP = DeclaredOperation(
    name="backup",
    summary="Copy the warehouse, a namespace or a table to another place.",
    details="""
The copy is as of one moment. A namespace comes with all below it, and each table with all versions that can be read.
What is at PLACE already is not copied again, and the next run goes on after a run that was stopped.
""",
    effect=OperationEffect.ADDS,
    parameters=(_PLACE, *SCOPE, _OUTSIDE),
    columns=(*BACKUPS.columns, *_COPIED),
)

VERIFY_BACKUP = DeclaredOperation(
    name="verify_backup",
    summary="Read every object of a backup, and name the damaged ones.",
    details="Exit code 1 if an object is missing or was altered.",
    effect=OperationEffect.READS,
    parameters=(_PLACE, _BACKUP),
    columns=(AnswerColumn("what", "STRING"), AnswerColumn("place", "STRING"), AnswerColumn("key", "STRING")),
)

DELETE_BACKUP = DeclaredOperation(
    name="delete_backup",
    summary="Delete backups, and the objects that no other backup needs.",
    details="""
The next deletion finishes one that was stopped, also without an ID. While a backup to PLACE has begun and not ended,
nothing is deleted.
""",
    effect=OperationEffect.DELETES,
    parameters=(
        _PLACE,
        optional("backups", "ARRAY<STRING>", "their ids", "none", metavar="ID"),
        optional(
            "keep_last",
            "INT",
            "of each thing that is backed up, keep the newest so many that no id names, and delete the others",
            "delete those with the ids",
            metavar="N",
        ),
        REPORTS_FIRST,
    ),
    columns=(
        AnswerColumn("backups", "ARRAY<STRING>", "that were deleted"),
        AnswerColumn("objects", "BIGINT", "that only these had, or runs that were given up"),
        AnswerColumn("size_bytes", "BIGINT"),
        AnswerColumn("kept", "BIGINT", "backups that stay"),
    ),
)

RESTORE_BACKUP = DeclaredOperation(
    name="restore_backup",
    summary="Restore a table from a backup.",
    details="""
The table comes into a warehouse in use, with its rows as of the backup and a history of its own. The command restores
a whole backup, too: without TABLE the warehouse has to be an empty folder, and becomes what the backup has, with all
its history. In Spark, CALL lake.system.restore_warehouse does that.
""",
    effect=OperationEffect.ADDS,
    parameters=(
        _PLACE,
        OperationParameter("table", "STRING", "the table in the backup"),
        text("to", "the name that it is to have", "its own", "NAME"),
        _BACKUP,
    ),
    columns=(
        AnswerColumn("backup", "STRING", member="backup.id"),
        AnswerColumn("current_version", "BIGINT", member="table.version"),
        AnswerColumn("files", "BIGINT"),
        AnswerColumn("size_bytes", "BIGINT"),
    ),
)

COPY = DeclaredOperation(
    name="copy",
    summary="Copy the warehouse or a part of it, with its history.",
    details="""
The folder at URL becomes a warehouse with all of this one, of a namespace or of a table, as of one moment. It has to
be empty. Unfinished, it may be brought up to date any number of times; the last call finishes it, or lakelog
finish-copy does. A table may go into a warehouse in use, under a name that is given, with its rows alone and a
history of its own.
""",
    effect=OperationEffect.ADDS,
    parameters=(
        OperationParameter("url", "STRING", "the folder or URL that is to be a warehouse"),
        *SCOPE,
        OperationParameter(
            "finish",
            "BOOLEAN",
            "make it a warehouse; unfinished it is none yet, and a later call goes on",
            "true",
            option="--finish/--unfinished",
        ),
        optional(
            "as_table",
            "STRING",
            "the name of the table in a warehouse in use at the URL",
            option="--as",
            metavar="NAME",
        ),
        _OUTSIDE_OF_A_COPY,
    ),
    columns=(*BACKUP.columns, AnswerColumn("finished", "BOOLEAN", "whether it is a warehouse now")),
)

CLONE = DeclaredOperation(
    name="clone",
    summary="Make a table of another one, without copying its files.",
    details="""
The files stay in their place. From then on each table has its own history. SOURCE keeps the files until TARGET is
purged, or has none of them in any version that can be read: its vacuum leaves them, which takes the right to write in
its log now.
""",
    effect=OperationEffect.ADDS,
    parameters=(
        OperationParameter("source", "STRING", "the table that is cloned", metavar="TABLE"),
        OperationParameter("target", "STRING", "the name of the clone"),
        optional("version", "BIGINT", "as it was at that version", "as it is now", metavar="N"),
        optional("timestamp", "TIMESTAMP", "as it was at a time", "as it is now", in_command=False),
        flag("if_not_exists", "leave a table of that name as it is"),
    ),
    columns=_MADE,
)

MATERIALIZE = DeclaredOperation(
    name="materialize",
    summary="Copy the files that a clone has of other tables.",
    details="""
Those tables need not keep them from then on. Files of the clone's branches are copied, too. For older versions and
tags of TABLE the other tables go on keeping files: expire and drop them, and run lakelog vacuum on TABLE. The next
run goes on after a run that was stopped.
""",
    effect=OperationEffect.ADDS,
    parameters=(
        OperationParameter("table", "STRING", "the clone", metavar="TABLE"),
        size("limit_bytes", "start no new step after so many bytes were copied", "no limit"),
    ),
    columns=(
        AnswerColumn("copied_files", "BIGINT", member="files"),
        AnswerColumn("copied_bytes", "BIGINT", member="size_bytes"),
        AnswerColumn("current_version", "BIGINT", member="version"),
        AnswerColumn("tags", "ARRAY<STRING>", "tags that still have files of other tables"),
        AnswerColumn(
            "owners", "ARRAY<STRING>", "folders of tables that still keep files, for older versions too"
        ),
        AnswerColumn("is_left", "BOOLEAN", "the limit was reached before the end: call it again"),
    ),
)

RELEASE_CLONE = DeclaredOperation(
    name="release_clone",
    summary="Keep no more files for a clone whose log is gone.",
    details="""
It is refused if the log is there. Such a clone can never say that it needs none. Vacuum deletes the files then: if
the clone is restored later, its rows are lost.
""",
    effect=OperationEffect.DELETES,
    parameters=(
        OperationParameter("table", "STRING", "the table that keeps the files", metavar="TABLE"),
        OperationParameter("clone", "STRING", "the id of the clone's log, as fsck shows it"),
        REPORTS_FIRST,
    ),
    columns=(AnswerColumn("current_version", "BIGINT", member="version"),),
)

DROPPED = DeclaredOperation(
    name="dropped",
    summary="List what was dropped and can be restored.",
    details="""
It lists drops in NAMESPACE and all below it, or in the whole warehouse, the latest first. A dropped namespace stands
for all that was dropped with it. From the time "until" on, vacuum may purge it; nothing happens by itself.
""",
    effect=OperationEffect.READS,
    parameters=(
        text("namespace", "in this namespace", "at the root"),
        OperationParameter(
            "recursive", "BOOLEAN", "in all namespaces below it too", "true", in_command=False
        ),
    ),
    columns=(
        AnswerColumn("id", "STRING"),
        AnswerColumn("kind", "STRING", "table, view, function or namespace"),
        AnswerColumn("name", "STRING", "the name that it had"),
        AnswerColumn("dropped_at", "TIMESTAMP"),
        AnswerColumn("kept_until", "TIMESTAMP", "when vacuum, run as usual, may purge it"),
        AnswerColumn("user", "STRING", "who dropped it"),
    ),
)
