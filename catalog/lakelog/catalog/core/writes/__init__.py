"""Changes of a single table, with a module for each kind. Each is a commit, decided again after a lost
race.

Rule: a change records what it has read, so that the conflict matrix can judge it. Files of a lost change are
deleted. It must not know names. It gets a table's head, whatever its origin.
"""

from lakelog.catalog.core.writes.compaction_commit import RewrittenFiles
from lakelog.catalog.core.writes.file_changes import FilesMatchInPart, changed_rows, moved_files
from lakelog.catalog.core.writes.identity_values import known_taken
from lakelog.catalog.core.writes.partial_files import matching_files
from lakelog.catalog.core.writes.prepared_rows import RowChange
from lakelog.catalog.core.writes.proposed_rows import gathered_rows
from lakelog.catalog.core.writes.rollback import go_back, wider_type
from lakelog.catalog.core.writes.row_changes import commit_rows
from lakelog.catalog.core.writes.stream_batches import StreamBatch, check_takes, mark_of
from lakelog.catalog.core.writes.tags_and_branches import drop_ref, set_ref

__all__ = [
    "FilesMatchInPart",
    "RewrittenFiles",
    "RowChange",
    "StreamBatch",
    "changed_rows",
    "check_takes",
    "commit_rows",
    "drop_ref",
    "gathered_rows",
    "known_taken",
    "mark_of",
    "matching_files",
    "moved_files",
    "wider_type",
    "go_back",
    "set_ref",
]
