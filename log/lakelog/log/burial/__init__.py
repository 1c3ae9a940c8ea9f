"""Turning expired versions into tombstones.

Owns their order. Its one rule: objects that imply tombstones are put after those tombstones. It knows bases
as stored, not how they are made.
"""

from lakelog.log.burial.tombstones import (
    Buried,
    BuriedUpTo,
    Bury,
    bury_versions,
    no_one_counts,
    no_one_waits,
    tombstone_of,
)
from lakelog.log.burial.windows import (
    is_buried,
    newest_tombstone,
    runs,
    unfinished,
    versions_of,
    windows_of,
)

__all__ = [
    "Buried",
    "Bury",
    "BuriedUpTo",
    "bury_versions",
    "is_buried",
    "newest_tombstone",
    "no_one_counts",
    "no_one_waits",
    "runs",
    "tombstone_of",
    "unfinished",
    "versions_of",
    "windows_of",
]
