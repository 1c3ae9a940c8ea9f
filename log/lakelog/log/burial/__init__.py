"""How versions that have expired become tombstones.

Owns the order in which they do. Its one rule: what says that tombstones are there is put after them. It knows bases as
they stand, not how they are made.
"""

from lakelog.log.burial.tombstones import (
    Buried,
    Bury,
    Done,
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
    "Done",
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
