"""Backups: the state of a warehouse at a single moment, stored at another place, and its restore from there.

Rule: a log is never set back in place. A warehouse is restored to an empty folder, with the same logs. Into a
warehouse in use, tables are restored with logs of their own. This package must not know what expiry and
vacuum delete: a saved cut keeps the versions that are copied.
"""

from lakelog.catalog.keeping.backups.checking import BackupProblem, CheckedBackup, verify_backup
from lakelog.catalog.keeping.backups.contents import BackupCutGone
from lakelog.catalog.keeping.backups.copying import Copied, CopyPlace, carry, finish_copy, outcome
from lakelog.catalog.keeping.backups.deleting import DeletedBackups, delete_backups
from lakelog.catalog.keeping.backups.making import BackedUp, begun, create_backup, kind_of, summary
from lakelog.catalog.keeping.backups.parts import BackupEngine, BackupObject, ToBackUp, ToRestore, ToVerify
from lakelog.catalog.keeping.backups.place import Backup, BackupPlace, LeftOut, LogInBackup
from lakelog.catalog.keeping.backups.restoring import (
    RestoredWarehouse,
    has_root,
    restore_warehouse,
    whole_warehouse,
)
from lakelog.catalog.keeping.backups.tables import (
    CopiedTable,
    RestoredTable,
    copy_table,
    name_beside,
    remade_clones,
    restore_table,
)

__all__ = [
    "BackedUp",
    "Backup",
    "BackupCutGone",
    "BackupPlace",
    "BackupProblem",
    "CheckedBackup",
    "Copied",
    "CopiedTable",
    "CopyPlace",
    "DeletedBackups",
    "LeftOut",
    "LogInBackup",
    "BackupObject",
    "BackupEngine",
    "RestoredTable",
    "RestoredWarehouse",
    "ToBackUp",
    "ToRestore",
    "ToVerify",
    "begun",
    "carry",
    "copy_table",
    "create_backup",
    "delete_backups",
    "finish_copy",
    "has_root",
    "kind_of",
    "name_beside",
    "outcome",
    "remade_clones",
    "restore_table",
    "restore_warehouse",
    "summary",
    "verify_backup",
    "whole_warehouse",
]
