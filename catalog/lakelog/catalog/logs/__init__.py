"""Logs as this process knows them: cached views, names, moments of many logs, branches and transactions as logs.

Rule: every read of a log and every commit goes through here, so that rebasing, tokens and lost answers have one place.
It must not know how rows are stored in data files, or what a statement wants to change.
"""

from lakelog.catalog.logs.branch_log import (
    LineLog,
    seen_on,
    whole,
)
from lakelog.catalog.logs.cache import (
    Change,
    LogCache,
    TrackedLog,
    writing_as,
)
from lakelog.catalog.logs.commit_files import (
    CommitFiles,
    files_of_commits,
)
from lakelog.catalog.logs.commits import (
    NothingToDo,
    Token,
    Written,
    base_past_seals,
    check,
    commit_changes,
    files_event,
    gone_as_no_such_table,
    new_token,
    no_files,
    taken_events,
    was_applied,
    was_applied_anywhere,
    was_applied_elsewhere,
)
from lakelog.catalog.logs.consistent_cut import (
    FOREVER_US,
    Cut,
)
from lakelog.catalog.logs.file_entries import (
    entries_of,
    with_deletes,
)
from lakelog.catalog.logs.live_files import (
    all_files,
    as_removed,
    chunks_of,
    file_keys,
    files_only_in,
)
from lakelog.catalog.logs.name_tree import (
    Found,
    NameTree,
    changes_of,
    check_at_place,
    check_not_forgotten,
    commit_in,
    has_own_place,
    no_such_namespace,
    no_such_table,
)
from lakelog.catalog.logs.outcome import (
    has_happened,
    was_committed,
)
from lakelog.catalog.logs.places import (
    Places,
)
from lakelog.catalog.logs.scope import (
    Progress,
    Scope,
    Target,
    Unreadable,
    no_progress,
)
from lakelog.catalog.logs.stored_vectors import (
    read_vector,
)
from lakelog.catalog.logs.table_version import (
    TableVersion,
)
from lakelog.catalog.logs.this_process import (
    writer_facts,
)
from lakelog.catalog.logs.transaction_log import (
    TakenLog,
    TakenLogs,
)
from lakelog.catalog.logs.transaction_steps import (
    merged,
)

__all__ = [
    "Change",
    "CommitFiles",
    "Cut",
    "FOREVER_US",
    "Found",
    "LineLog",
    "LogCache",
    "NameTree",
    "NothingToDo",
    "Places",
    "Progress",
    "Scope",
    "TableVersion",
    "TakenLog",
    "TakenLogs",
    "Target",
    "Token",
    "TrackedLog",
    "Unreadable",
    "Written",
    "all_files",
    "as_removed",
    "base_past_seals",
    "changes_of",
    "check",
    "check_at_place",
    "check_not_forgotten",
    "chunks_of",
    "commit_changes",
    "files_of_commits",
    "commit_in",
    "entries_of",
    "file_keys",
    "files_event",
    "files_only_in",
    "gone_as_no_such_table",
    "has_happened",
    "has_own_place",
    "merged",
    "new_token",
    "no_files",
    "no_progress",
    "no_such_namespace",
    "no_such_table",
    "read_vector",
    "seen_on",
    "taken_events",
    "was_applied",
    "was_applied_anywhere",
    "was_applied_elsewhere",
    "was_committed",
    "whole",
    "with_deletes",
    "writer_facts",
    "writing_as",
]
