"""Namespaces, tables, views, functions: created, staged, registered, renamed, dropped, restored; saved cuts of them.

Rule: a name leads to a log by a link in its namespace; whatever spans several logs is one transaction.
It must not know rows: contents of a staged table come as finished entries of files.
"""

from lakelog.catalog.ddl.dropped import (
    DroppedEntry,
    list_dropped,
)
from lakelog.catalog.ddl.saved_cuts import (
    CutVersions,
    needed_versions,
)
from lakelog.catalog.ddl.staging import (
    Stage,
)

__all__ = [
    "CutVersions",
    "DroppedEntry",
    "Stage",
    "list_dropped",
    "needed_versions",
]
