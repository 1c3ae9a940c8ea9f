"""Clones: tables with the files of another table, and copying these files."""

from __future__ import annotations

from collections.abc import Sequence

from lakelog.catalog.operations.copies import CLONE, MATERIALIZE, RELEASE_CLONE
from lakelog.log.errors import FormatError, InvalidInput
from lakelog.spark.procedures.declare import (
    OperationParameter,
    ProcedureCall,
    Rows,
    SystemProcedure,
    procedure_of,
)
from lakelog.spark.requests.jobs import CopyObjects, ObjectsCopied
from lakelog.spark.requests.pieces import ObjectToCopy


def _clone(call: ProcedureCall) -> Rows:
    table = call.catalog.clone(
        call.table("source"),
        call.table("target"),
        version=call["version"],
        timestamp=call["timestamp"],
        if_not_exists=bool(call["if_not_exists"]),
        token=call.token,
    )
    return CLONE.rows([table])


def _clone_namespace(call: ProcedureCall) -> Rows:
    source, target = call.namespace("source"), call.namespace("target")
    if target == ("system",):
        raise InvalidInput(
            "the namespace system holds lakelog's own procedures and tables: choose another name"
        )
    call.catalog.clone_namespace(source, target, token=call.token)
    return []


def _materialize(call: ProcedureCall) -> Rows:
    name = call.table("table")

    def copy(files: Sequence[tuple[str, str, int]]) -> None:
        job = CopyObjects(
            work="materialize",
            what=f"materialize of {'.'.join(name)}",
            objects=tuple(ObjectToCopy(source=url, target=to) for url, to, _ in files),
        )
        copied_objects = call.asked().run(job, ObjectsCopied).objects
        for (url, to, size), copied_size in zip(
            files, (copied_object.size for copied_object in copied_objects), strict=True
        ):
            if size != copied_size:
                raise FormatError(
                    f"{url} has {copied_size:,} bytes where the log says {size:,}, so that its copy, {to}, is not "
                    "used: check both tables by `lakelog fsck`"
                )

    result = call.catalog.load_table(name).materialize(limit_bytes=call["limit_bytes"], copy=copy)
    return MATERIALIZE.rows([result])


def _release_clone(call: ProcedureCall) -> Rows:
    table = call.catalog.load_table(call.table("table"))
    return RELEASE_CLONE.rows([table.release_clone(str(call["clone"]), dry_run=call["dry_run"])])


PROCEDURES = (
    procedure_of(CLONE, _clone, changes=lambda call: call.table("target")[:-1], in_transaction=False),
    SystemProcedure(
        name="clone_namespace",
        description="Make a namespace with a clone of each table of another one, as of one moment.",
        run=_clone_namespace,
        parameters=(
            OperationParameter("source", "STRING", "the namespace that is cloned, with all below it"),
            OperationParameter("target", "STRING", "the name of the new one"),
        ),
        columns=(),
        changes=lambda call: call.namespace("target")[:-1],
        in_transaction=False,
    ),
    procedure_of(MATERIALIZE, _materialize, in_transaction=False, asks=True),
    procedure_of(RELEASE_CLONE, _release_clone, in_transaction=False),
)
