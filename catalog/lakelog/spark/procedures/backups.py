"""Backups and copies: making, listing and verifying them, and restoring their tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.catalog.choices import REFUSE
from lakelog.catalog.operations.copies import (
    BACKUP,
    BACKUPS,
    COPY,
    DELETE_BACKUP,
    RESTORE_BACKUP,
    VERIFY_BACKUP,
)
from lakelog.log.errors import InvalidInput
from lakelog.spark.procedures.declare import ProcedureCall, Rows, SystemProcedure, procedure_of
from lakelog.spark.procedures.maintenance import subject_name
from lakelog.spark.procedures.parts import in_parts, parts_of

if TYPE_CHECKING:
    from lakelog.catalog import Catalog
    from lakelog.catalog.keeping.backups import BackedUp, Backup, BackupEngine, Copied
    from lakelog.catalog.names import Identifier


def _catalog(call: ProcedureCall) -> Catalog:
    """Return the session's catalog. None of these procedures is called in a transaction."""
    from lakelog.catalog import Catalog

    assert isinstance(call.catalog, Catalog), "Spark's side refuses the call"
    return call.catalog


def _backup(call: ProcedureCall) -> Rows:
    result = _catalog(call).backup(call["place"], subject_name(call), outside=call["outside"])
    return [(*_facts(result.backup), *_copied(call, result))]


def _backups(call: ProcedureCall) -> Rows:
    return [_facts(backup) for backup in _catalog(call).backups(call["place"])]


def _backup_parts(call: ProcedureCall) -> BackupEngine | None:
    from lakelog.catalog.engine.backups import backup_parts

    return backup_parts(_catalog(call), call["place"], subject_name(call), outside=call["outside"])


def _copy_parts(call: ProcedureCall) -> BackupEngine | None:
    from lakelog.catalog.engine.backups import copy_parts

    if call["as_table"] is not None:
        return None
    return copy_parts(_catalog(call), call["url"], subject_name(call), outside=call["outside"])


def _verify_parts(call: ProcedureCall) -> BackupEngine:
    from lakelog.catalog.engine.backups import verify_parts

    return verify_parts(_catalog(call), call["place"], call["backup"])


def _restore_parts(call: ProcedureCall) -> BackupEngine:
    from lakelog.catalog.engine.backups import restore_parts

    return restore_parts(_catalog(call), call["place"], call["backup"])


def _restore_warehouse(call: ProcedureCall) -> Rows:
    result = _catalog(call).restore_warehouse(call["place"], call["backup"])
    return [_facts(result.backup)]


def _verify(call: ProcedureCall) -> Rows:
    from lakelog.catalog.keeping.backups import ToVerify

    parts = parts_of(call)
    verification = _catalog(call).verify_backup(
        call["place"], call["backup"], found=parts.found if isinstance(parts, ToVerify) else None
    )
    return VERIFY_BACKUP.rows(verification.problems)


def _delete(call: ProcedureCall) -> Rows:
    result = _catalog(call).delete_backups(
        call["place"],
        [str(backup_id) for backup_id in call["backups"] or ()],
        keep_last=call["keep_last"],
        dry_run=call["dry_run"],
    )
    return DELETE_BACKUP.rows([result])


def _restore(call: ProcedureCall) -> Rows:
    result = _catalog(call).restore_table(
        call["place"], call.table("table"), to=_named(call), backup=call["backup"], token=call.token
    )
    return RESTORE_BACKUP.rows([result])


def _copy(call: ProcedureCall) -> Rows:
    name = subject_name(call)
    if call["as_table"] is not None:
        if name is None or call["table"] is None or not call["finish"]:
            raise InvalidInput(
                "as_table is for a table that goes into a warehouse in use, in one call: give table"
            )
        if call["outside"] != REFUSE:
            raise InvalidInput("as_table copies all files of the table, wherever they are: leave outside out")
        from lakelog.catalog.names import identifier

        table_copy = _catalog(call).copy_table(call["url"], name, target=call["as_table"])
        size = table_copy.files, table_copy.size_bytes
        return [(None, None, "table", list(identifier(call["as_table"])), 1, *size, [], *size, False, True)]
    result = _catalog(call).copy(call["url"], name, finish=call["finish"], outside=call["outside"])
    return [(*_facts(result.backup), *_copied(call, result), result.finished)]


def _copied(call: ProcedureCall, done: BackedUp | Copied) -> tuple[int, int, bool]:
    """Return the copied objects and bytes, by executors before the call too, and whether it resumed an
    earlier call."""
    from lakelog.catalog.keeping.backups import ToBackUp

    parts = parts_of(call)
    if not isinstance(parts, ToBackUp):
        return done.copied, done.copied_bytes, done.resumed
    return (
        done.copied + parts.copied, done.copied_bytes + parts.copied_bytes, parts.resumed
    )  # fmt: skip


def _facts(backup: Backup) -> tuple[object, ...]:
    left_out = [item.text for item in backup.left]
    return (
        backup.id,
        backup.time_us,
        backup.kind,
        list(backup.name),
        len(backup.tables),
        backup.objects,
        backup.size_bytes,
        left_out,
    )


def _named(call: ProcedureCall) -> Identifier:
    return call.table("table") if call["to"] is None else call.table("to")


PROCEDURES = (
    procedure_of(
        BACKUP, _backup, prepare=in_parts("backup", _backup_parts), in_parts=True, in_transaction=False
    ),
    procedure_of(COPY, _copy, prepare=in_parts("copy", _copy_parts), in_parts=True, in_transaction=False),
    procedure_of(BACKUPS, _backups, in_transaction=False),
    procedure_of(
        VERIFY_BACKUP,
        _verify,
        prepare=in_parts("verify_backup", _verify_parts),
        in_parts=True,
        in_transaction=False,
    ),
    procedure_of(DELETE_BACKUP, _delete, in_transaction=False),
    SystemProcedure(
        name="restore_warehouse",
        description="Make the catalog's folder, which has to be empty, what a backup of a warehouse has.",
        run=_restore_warehouse,
        prepare=in_parts("restore_warehouse", _restore_parts),
        in_parts=True,
        parameters=VERIFY_BACKUP.parameters,
        columns=BACKUPS.columns,
        in_transaction=False,
    ),
    procedure_of(RESTORE_BACKUP, _restore, changes=lambda call: _named(call)[:-1], in_transaction=False),
)
