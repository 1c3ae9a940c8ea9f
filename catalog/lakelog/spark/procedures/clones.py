"""Clones: tables with the files of another one, and copying these."""

from __future__ import annotations

from collections.abc import Sequence

from lakelog.log.errors import FormatError, InvalidInput
from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows
from lakelog.spark.requests.jobs import CopyObjects, ObjectsCopied
from lakelog.spark.requests.pieces import ObjectToCopy


def _clone(call: Call) -> Rows:
    table = call.catalog.clone(
        call.table("source"),
        call.table("target"),
        version=call["version"],
        timestamp_us=call["timestamp"],
        if_not_exists=bool(call["if_not_exists"]),
        token=call.token,
    )
    return [(table.version, table.row_count, table.file_count)]


def _clone_namespace(call: Call) -> Rows:
    source, target = call.namespace("source"), call.namespace("target")
    if target == ("system",):
        raise InvalidInput(
            "the namespace system holds lakelog's own procedures and tables: choose another name"
        )
    call.catalog.clone_namespace(source, target, token=call.token)
    return []


def _materialize(call: Call) -> Rows:
    name = call.table("table")

    def copy(files: Sequence[tuple[str, str, int]]) -> None:
        job = CopyObjects(
            work="materialize",
            what=f"materialize of {'.'.join(name)}",
            objects=tuple(ObjectToCopy(source=url, target=to) for url, to, _ in files),
        )
        copied = call.asked().run(job, ObjectsCopied).objects
        for (url, to, size), found in zip(files, (each.size for each in copied), strict=True):
            if size != found:
                raise FormatError(
                    f"{url} has {found:,} bytes where the log says {size:,}, so that its copy, {to}, is not used: "
                    "check both tables by `lakelog fsck`"
                )

    done = call.catalog.load_table(name).materialize(limit_bytes=call["limit_bytes"], copy=copy)
    return [(done.files, done.size_bytes, done.version, list(done.tags), list(done.owners), done.is_left)]


def _release_clone(call: Call) -> Rows:
    table = call.catalog.load_table(call.table("table")).release_clone(str(call["clone"]))
    return [(table.version,)]


PROCEDURES = (
    Procedure(
        name="clone",
        description="Make a table of another one without copying: its files stay where they are, and are kept.",
        run=_clone,
        parameters=(
            Parameter("source", "STRING", "the table that is cloned"),
            Parameter("target", "STRING", "the name of the clone"),
            Parameter(
                "version", "BIGINT", "as the table was at a version; NULL: as it is now", default="NULL"
            ),
            Parameter("timestamp", "TIMESTAMP", "as it was at a time; NULL: as it is now", default="NULL"),
            Parameter("if_not_exists", "BOOLEAN", "leave a table of that name as it is", default="false"),
        ),
        columns=(
            Column("current_version", "BIGINT"),
            Column("rows", "BIGINT"),
            Column("files", "BIGINT", "data files"),
        ),
        changes=lambda call: call.table("target")[:-1],
        in_transaction=False,
    ),
    Procedure(
        name="clone_namespace",
        description="Make a namespace with a clone of each table of another one, as of one moment.",
        run=_clone_namespace,
        parameters=(
            Parameter("source", "STRING", "the namespace that is cloned, with all below it"),
            Parameter("target", "STRING", "the name of the new one"),
        ),
        columns=(),
        changes=lambda call: call.namespace("target")[:-1],
        in_transaction=False,
    ),
    Procedure(
        name="materialize",
        description="Copy the files that a clone has of other tables, which need not keep them from then on.",
        run=_materialize,
        parameters=(
            Parameter("table", "STRING", "the clone"),
            Parameter(
                "limit_bytes",
                "BIGINT",
                "begin nothing more once so much was copied; NULL: no limit",
                default="NULL",
            ),
        ),
        columns=(
            Column("copied_files", "BIGINT"),
            Column("copied_bytes", "BIGINT"),
            Column("current_version", "BIGINT"),
            Column("tags", "ARRAY<STRING>", "tags that still have files of other tables"),
            Column(
                "owners", "ARRAY<STRING>", "folders of tables that still keep files, for older versions too"
            ),
            Column("is_left", "BOOLEAN", "the limit was reached before the end: call it again"),
        ),
        in_transaction=False,
        asks=True,
    ),
    Procedure(
        name="release_clone",
        description="Keep no more files for a clone whose log is gone; where it is there, it is refused.",
        run=_release_clone,
        parameters=(
            Parameter("table", "STRING", "the table that keeps the files"),
            Parameter("clone", "STRING", "the id of the clone's log, as fsck shows it"),
        ),
        columns=(Column("current_version", "BIGINT"),),
        in_transaction=False,
    ),
)
