"""Logs as this process knows them: cached views, names, moments of many logs, branches and transactions as logs.

Rule: every read of a log and every commit goes through here, so that rebasing, tokens and lost answers have one place.
It must not know how rows are stored in data files, or what a statement changes.
"""

from lakelog.catalog.core.logs.branch_log import (
    LineLog,
    seen_on,
)
from lakelog.catalog.core.logs.cache import (
    LogCache,
    LogChange,
)
from lakelog.catalog.core.logs.changed import (
    Changed,
)
from lakelog.catalog.core.logs.commit_files import (
    CommitFiles,
    commits_with_sidecars,
    files_of_commits,
)
from lakelog.catalog.core.logs.commits import (
    NothingToDo,
    Token,
    Written,
    base_of,
    base_past_seals,
    check_conflicts,
    commit_changes,
    files_event,
    gone_as_no_such_table,
    is_final,
    new_token,
    no_files,
    taken_events,
    was_applied,
    was_applied_anywhere,
    was_applied_elsewhere,
)
from lakelog.catalog.core.logs.consistent_cut import (
    FOREVER_US,
    Cut,
)
from lakelog.catalog.core.logs.file_entries import (
    with_deletes,
)
from lakelog.catalog.core.logs.live_files import (
    as_removed,
    file_keys,
)
from lakelog.catalog.core.logs.name_path import (
    follow,
    known_path_to,
)
from lakelog.catalog.core.logs.name_tree import (
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
from lakelog.catalog.core.logs.named_errors import naming
from lakelog.catalog.core.logs.observing import (
    Observation,
    Observe,
    as_operation,
    in_background,
    observed,
    watched,
)
from lakelog.catalog.core.logs.outcome import (
    has_happened,
    was_committed,
)
from lakelog.catalog.core.logs.own_folders import (
    check_not_own,
    data_folders,
    spellings,
)
from lakelog.catalog.core.logs.own_links import (
    linked_elsewhere,
)
from lakelog.catalog.core.logs.pickled import (
    OfThisProcess,
    Opening,
    PickledHead,
    Unchanging,
)
from lakelog.catalog.core.logs.places import (
    Places,
    has_likely_places,
    likely_id,
    place_in,
)
from lakelog.catalog.core.logs.scope import (
    NO_MAINTENANCE,
    Progress,
    Scope,
    Target,
    Unreadable,
    chosen_scope,
    in_turn,
    no_progress,
)
from lakelog.catalog.core.logs.stored_vectors import (
    read_vector,
    write_vectors,
)
from lakelog.catalog.core.logs.table_head import (
    FoundBy,
    HasHead,
    TableHead,
    another_table,
)
from lakelog.catalog.core.logs.this_process import (
    writer_facts,
)
from lakelog.catalog.core.logs.tracked_log import (
    TrackedLog,
)
from lakelog.catalog.core.logs.transaction_log import (
    TransactionLog,
    TransactionLogs,
)
from lakelog.catalog.core.logs.transaction_steps import (
    commit_of,
    merged_drafts,
)
from lakelog.catalog.core.logs.writer_now import (
    write_as,
    writing_as,
)

__all__ = [
    "OfThisProcess",
    "Opening",
    "PickledHead",
    "Unchanging",
    "Changed",
    "known_path_to",
    "write_vectors",
    "commit_of",
    "commits_with_sidecars",
    "CommitFiles",
    "Cut",
    "FOREVER_US",
    "Found",
    "FoundBy",
    "HasHead",
    "LineLog",
    "LogCache",
    "LogChange",
    "NO_MAINTENANCE",
    "NameTree",
    "NothingToDo",
    "Observation",
    "Observe",
    "in_background",
    "Places",
    "Progress",
    "Scope",
    "TableHead",
    "Target",
    "Token",
    "TrackedLog",
    "TransactionLog",
    "TransactionLogs",
    "Unreadable",
    "Written",
    "another_table",
    "as_operation",
    "as_removed",
    "observed",
    "watched",
    "base_of",
    "base_past_seals",
    "changes_of",
    "check_at_place",
    "check_conflicts",
    "check_not_forgotten",
    "check_not_own",
    "chosen_scope",
    "commit_changes",
    "commit_in",
    "data_folders",
    "file_keys",
    "files_event",
    "files_of_commits",
    "follow",
    "gone_as_no_such_table",
    "has_happened",
    "has_likely_places",
    "has_own_place",
    "is_final",
    "likely_id",
    "linked_elsewhere",
    "merged_drafts",
    "new_token",
    "no_files",
    "in_turn",
    "no_progress",
    "no_such_namespace",
    "no_such_table",
    "place_in",
    "read_vector",
    "seen_on",
    "spellings",
    "taken_events",
    "was_applied",
    "was_applied_anywhere",
    "was_applied_elsewhere",
    "was_committed",
    "with_deletes",
    "writer_facts",
    "write_as",
    "writing_as",
    "naming",
]
