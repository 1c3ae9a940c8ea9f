"""Deleting expired or unreachable objects, and checking the rest: expire, vacuum, purge, fsck.

Rule: nothing is deleted by a guess. A commit first proves that no reader or writer needs the deleted objects.
It must not be needed by any reader or writer: a warehouse without maintenance grows, and nothing else.
"""

from lakelog.catalog.keeping.maintenance.adoption import Adoption, adopt_files
from lakelog.catalog.keeping.maintenance.drop_purge import drop_and_purge
from lakelog.catalog.keeping.maintenance.engine import Engine, VersionsBuried, VersionsToBury
from lakelog.catalog.keeping.maintenance.expire import EXPIRE_DEFAULT_AGE, Expired, expire_logs, what_to_keep
from lakelog.catalog.keeping.maintenance.fsck import Checksum, Findings, Severity
from lakelog.catalog.keeping.maintenance.fsck.check import check_warehouse, holds_a_table
from lakelog.catalog.keeping.maintenance.promises import release_lost, settle_origins
from lakelog.catalog.keeping.maintenance.vacuum import VACUUM_DEFAULT_AGE, Vacuumed, vacuum_logs, vacuum_wish

__all__ = [
    "Adoption",
    "Checksum",
    "Engine",
    "Expired",
    "Findings",
    "Severity",
    "EXPIRE_DEFAULT_AGE",
    "VACUUM_DEFAULT_AGE",
    "Vacuumed",
    "VersionsBuried",
    "VersionsToBury",
    "adopt_files",
    "check_warehouse",
    "drop_and_purge",
    "expire_logs",
    "holds_a_table",
    "release_lost",
    "settle_origins",
    "vacuum_logs",
    "vacuum_wish",
    "what_to_keep",
]
