"""Backups and copies: made, listed, verified, and tables of them brought back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.log.errors import InvalidInput
from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows
from lakelog.spark.procedures.maintenance import NAMESPACE, TABLE, subject_name
from lakelog.spark.procedures.parts import in_parts, parts_of

if TYPE_CHECKING:
    from lakelog.catalog import Catalog
    from lakelog.catalog.keeping.backups import BackedUp, Backup, Copied, Parts

_PLACE = Parameter("place", "STRING", "the folder or URL of the backups")
_BACKUP = Parameter("backup", "STRING", "its id; NULL: the newest", default="NULL")
_OUTSIDE = Parameter(
    "outside", "STRING", "refuse or leave what is outside of the warehouse's folder", default="'refuse'"
)


def _catalog(call: Call) -> Catalog:
    """Return the session's catalog: none of these procedures is called in a transaction."""
    from lakelog.catalog import Catalog

    assert isinstance(call.catalog, Catalog), "Spark's side refuses the call"
    return call.catalog


def _backup(call: Call) -> Rows:
    done = _catalog(call).backup(call["place"], subject_name(call), outside=call["outside"])
    return [(*_facts(done.backup), *_copied(call, done))]


def _backups(call: Call) -> Rows:
    return [_facts(each) for each in _catalog(call).backups(call["place"])]


def _backup_parts(call: Call) -> Parts | None:
    return _catalog(call).backup_parts(call["place"], subject_name(call), outside=call["outside"])


def _copy_parts(call: Call) -> Parts | None:
    if call["as_table"] is not None:
        return None
    return _catalog(call).copy_parts(call["url"], subject_name(call), outside=call["outside"])


def _verify_parts(call: Call) -> Parts:
    return _catalog(call).verify_parts(call["place"], call["backup"])


def _restore_parts(call: Call) -> Parts:
    return _catalog(call).restore_parts(call["place"], call["backup"])


def _restore_warehouse(call: Call) -> Rows:
    done = _catalog(call).restore_warehouse(call["place"], call["backup"])
    return [_facts(done.backup)]


def _verify(call: Call) -> Rows:
    from lakelog.catalog.keeping.backups import ToVerify

    read = parts_of(call)
    found = _catalog(call).verify_backup(
        call["place"], call["backup"], found=read.found if isinstance(read, ToVerify) else None
    )
    return [(each.what, each.place, each.key) for each in found.problems]


def _delete(call: Call) -> Rows:
    done = _catalog(call).delete_backups(
        call["place"],
        [str(each) for each in call["backups"] or ()],
        keep_last=call["keep_last"],
        dry_run=call["dry_run"],
    )
    return [(list(done.backups), done.objects, done.size_bytes, done.kept)]


def _restore(call: Call) -> Rows:
    table = call.table("table")
    done = _catalog(call).restore_table(
        call["place"],
        table,
        to=table if call["to"] is None else call.table("to"),
        backup=call["backup"],
        token=call.token,
    )
    return [(done.backup.id, done.table.version, done.files, done.size_bytes)]


def _copy(call: Call) -> Rows:
    name = subject_name(call)
    if call["as_table"] is not None:
        if name is None or call["table"] is None or not call["finish"]:
            raise InvalidInput(
                "as_table is for a table that goes into a warehouse in use, in one call: give table"
            )
        from lakelog.catalog.names import identifier

        made = _catalog(call).copy_table(call["url"], name, target=call["as_table"])
        size = made.files, made.size_bytes
        return [(None, None, "table", list(identifier(call["as_table"])), 1, *size, [], *size, False, True)]
    done = _catalog(call).copy(call["url"], name, finish=call["finish"], outside=call["outside"])
    return [(*_facts(done.backup), *_copied(call, done), done.finished)]


def _copied(call: Call, done: BackedUp | Copied) -> tuple[int, int, bool]:
    """Return what was copied, by executors before the call too, and whether an earlier call was gone on with."""
    from lakelog.catalog.keeping.backups import ToBackUp

    before = parts_of(call)
    if not isinstance(before, ToBackUp):
        return done.copied, done.copied_bytes, done.resumed
    return (
        done.copied + before.copied, done.copied_bytes + before.copied_bytes, before.resumed
    )  # fmt: skip


def _facts(backup: Backup) -> tuple[object, ...]:
    left = [each.text for each in backup.left]
    return (
        backup.id,
        backup.time_us,
        backup.kind,
        list(backup.name),
        len(backup.tables),
        backup.objects,
        backup.size_bytes,
        left,
    )


_FACTS = (
    Column("backup", "STRING", "its id"),
    Column("time", "TIMESTAMP", "the moment that it is of"),
    Column("kind", "STRING", "warehouse, namespace or table"),
    Column("name", "ARRAY<STRING>", "what it is of"),
    Column("tables", "BIGINT"),
    Column("objects", "BIGINT"),
    Column("size_bytes", "BIGINT"),
    Column("left_out", "ARRAY<STRING>", "what is outside of the warehouse, or which cuts are not whole"),
)

_COPIED = (
    Column("copied", "BIGINT", "objects that were not there yet"),
    Column("copied_bytes", "BIGINT"),
    Column("resumed", "BOOLEAN", "whether an earlier run was gone on with"),
)

PROCEDURES = (
    Procedure(
        name="backup",
        description="Copy the warehouse, a namespace or a table to another place, as of one moment.",
        run=_backup,
        prepare=in_parts("backup", _backup_parts),
        in_parts=True,
        parameters=(
            _PLACE,
            TABLE,
            NAMESPACE,
            _OUTSIDE,
        ),
        columns=(
            *_FACTS,
            *_COPIED,
        ),
        in_transaction=False,
    ),
    Procedure(
        name="copy",
        description="Make an empty folder a warehouse with all of this one, a namespace or a table, with its history.",
        run=_copy,
        prepare=in_parts("copy", _copy_parts),
        in_parts=True,
        parameters=(
            Parameter("url", "STRING", "the folder or URL that is to be a warehouse"),
            TABLE,
            NAMESPACE,
            Parameter(
                "finish", "BOOLEAN", "false: it is no warehouse yet, and a later call goes on", default="true"
            ),
            Parameter(
                "as_table", "STRING", "the name of the table in a warehouse in use at the URL", default="NULL"
            ),
            Parameter(
                "outside",
                "STRING",
                "refuse, leave or carry what is outside of the warehouse's folder",
                default="'refuse'",
            ),
        ),
        columns=(
            *_FACTS,
            *_COPIED,
            Column("finished", "BOOLEAN", "whether it is a warehouse now"),
        ),
        in_transaction=False,
    ),
    Procedure(
        name="backups",
        description="The backups at a place, oldest first.",
        run=_backups,
        parameters=(_PLACE,),
        columns=_FACTS,
        in_transaction=False,
    ),
    Procedure(
        name="verify_backup",
        description="Read every object of a backup; a row for each that is missing or was altered.",
        run=_verify,
        prepare=in_parts("verify_backup", _verify_parts),
        in_parts=True,
        parameters=(_PLACE, _BACKUP),
        columns=(Column("what", "STRING"), Column("place", "STRING"), Column("key", "STRING")),
        in_transaction=False,
    ),
    Procedure(
        name="delete_backup",
        description="Delete backups, and the objects that no other one at the place needs; or say what would go.",
        run=_delete,
        parameters=(
            _PLACE,
            Parameter("backups", "ARRAY<STRING>", "their ids; NULL: none", default="NULL"),
            Parameter(
                "keep_last",
                "INT",
                "of each thing that is backed up, all but so many go; NULL: none",
                default="NULL",
            ),
            Parameter("dry_run", "BOOLEAN", "only report what would be deleted", default="true"),
        ),
        columns=(
            Column("backups", "ARRAY<STRING>", "that were deleted"),
            Column("objects", "BIGINT", "that only these had, or runs that were given up"),
            Column("size_bytes", "BIGINT"),
            Column("kept", "BIGINT", "backups that stay"),
        ),
        in_transaction=False,
    ),
    Procedure(
        name="restore_warehouse",
        description="Make the catalog's folder, which has to be empty, what a backup of a warehouse has.",
        run=_restore_warehouse,
        prepare=in_parts("restore_warehouse", _restore_parts),
        in_parts=True,
        parameters=(_PLACE, _BACKUP),
        columns=_FACTS,
        in_transaction=False,
    ),
    Procedure(
        name="restore_backup",
        description="Make a table of what a backup has of it, with a history of its own.",
        run=_restore,
        parameters=(
            _PLACE,
            Parameter("table", "STRING", "the table in the backup"),
            Parameter("to", "STRING", "the name that it is to have; NULL: its own", default="NULL"),
            _BACKUP,
        ),
        columns=(
            Column("backup", "STRING"),
            Column("current_version", "BIGINT"),
            Column("files", "BIGINT"),
            Column("size_bytes", "BIGINT"),
        ),
        changes=lambda call: (call.table("table") if call["to"] is None else call.table("to"))[:-1],
        in_transaction=False,
    ),
)
