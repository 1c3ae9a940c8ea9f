"""Deleting what has expired or is unreachable, and checking that the rest is whole: expire, vacuum, purge, fsck.

Rule: nothing is deleted by a guess. A commit first proves that no reader or writer needs what is deleted.
It must not be needed by any reader or writer: a warehouse without maintenance grows, and nothing else.
"""

from lakelog.catalog.keeping.maintenance.adoption import (
    Adoption,
    adopt_files,
)
from lakelog.catalog.keeping.maintenance.drop_purge import (
    drop_and_purge,
    purge_replaced,
)
from lakelog.catalog.keeping.maintenance.engine import (
    Engine,
    VersionsBuried,
    VersionsToBury,
)
from lakelog.catalog.keeping.maintenance.expire import (
    EXPIRE_DEFAULT_AGE,
    Expired,
    expire_logs,
    what_to_keep,
)
from lakelog.catalog.keeping.maintenance.fsck import (
    Checksum,
    Findings,
    Severity,
)
from lakelog.catalog.keeping.maintenance.fsck.check import (
    check_warehouse,
    holds_a_table,
)
from lakelog.catalog.keeping.maintenance.orphans import (
    Orphan,
    hints_of,
    remove,
    unfinished,
    unlinked,
)
from lakelog.catalog.keeping.maintenance.promises import (
    end_promises,
    over,
    release_lost,
    settle_origins,
)
from lakelog.catalog.keeping.maintenance.reachable import (
    all_named,
    ever_in,
    first_readable,
)
from lakelog.catalog.keeping.maintenance.vacuum import (
    VACUUM_DEFAULT_AGE,
    VACUUM_DEFAULT_DROPPED_AGE,
    Vacuumed,
    vacuum_logs,
    vacuum_wish,
)

__all__ = [
    "Adoption",
    "Checksum",
    "EXPIRE_DEFAULT_AGE",
    "Engine",
    "Expired",
    "Findings",
    "Severity",
    "VACUUM_DEFAULT_AGE",
    "VACUUM_DEFAULT_DROPPED_AGE",
    "Vacuumed",
    "VersionsBuried",
    "VersionsToBury",
    "Orphan",
    "adopt_files",
    "all_named",
    "check_warehouse",
    "drop_and_purge",
    "end_promises",
    "ever_in",
    "expire_logs",
    "first_readable",
    "hints_of",
    "holds_a_table",
    "over",
    "purge_replaced",
    "release_lost",
    "remove",
    "settle_origins",
    "unfinished",
    "unlinked",
    "vacuum_logs",
    "vacuum_wish",
    "what_to_keep",
]
