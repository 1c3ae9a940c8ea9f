"""Logs as this process knows them: cached views, names, cuts of many logs, branches, transactions.

Rule: every read of a log and every commit goes through here, so that rebasing, tokens and lost answers have a
single place. It must not know how rows are stored in data files, or which statement makes a change.
"""

from lakelog.catalog.core.logs.branch_log import LineLog, seen_on
from lakelog.catalog.core.logs.cache import JointLogChange, LogCache
from lakelog.catalog.core.logs.commit_files import CommitFiles, commits_with_sidecars, files_of_commits
from lakelog.catalog.core.logs.commits import (
    NothingToDo,
    OperationFacts,
    Token,
    check_conflicts,
    files_event,
    gone_as_no_such_table,
    new_token,
    no_files,
    was_applied,
    was_applied_anywhere,
)
from lakelog.catalog.core.logs.consistent_cut import FOREVER_US, ConsistentCut
from lakelog.catalog.core.logs.file_entries import with_deletes
from lakelog.catalog.core.logs.live_files import file_keys
from lakelog.catalog.core.logs.name_path import follow, known_path_to
from lakelog.catalog.core.logs.name_tree import (
    FoundLog,
    NameTree,
    check_at_place,
    check_not_forgotten,
    commit_in,
    has_own_place,
    no_such_table,
)
from lakelog.catalog.core.logs.named_errors import naming
from lakelog.catalog.core.logs.observing import (
    Observation,
    Observe,
    as_operation,
    in_background,
    observed,
    operation,
    watched,
)
from lakelog.catalog.core.logs.outcome import has_happened, was_committed
from lakelog.catalog.core.logs.own_folders import check_not_own, spellings
from lakelog.catalog.core.logs.own_links import linked_elsewhere
from lakelog.catalog.core.logs.pickled import CatalogOpening, OfThisProcess, PickledHead, UnchangingValue
from lakelog.catalog.core.logs.places import WarehouseStores, place_in
from lakelog.catalog.core.logs.scope import (
    NO_MAINTENANCE,
    LogScope,
    LogTarget,
    Progress,
    UnreadableLog,
    chosen_scope,
    in_turn,
    no_progress,
)
from lakelog.catalog.core.logs.stored_vectors import read_vector, write_vectors
from lakelog.catalog.core.logs.table_head import FoundName, HasHead, TableHead
from lakelog.catalog.core.logs.this_process import writer_facts
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.logs.transaction_log import TransactionLog, TransactionLogs
from lakelog.catalog.core.logs.transaction_steps import commit_of, merged_drafts
from lakelog.catalog.core.logs.writer_now import write_as, writing_as
from lakelog.catalog.next_step import RUN_COMMAND, RUN_STATEMENT, SEND_REQUEST, advising, run_transaction

__all__ = [
    "CommitFiles",
    "ConsistentCut",
    "FOREVER_US",
    "FoundLog",
    "FoundName",
    "HasHead",
    "LineLog",
    "LogCache",
    "JointLogChange",
    "NO_MAINTENANCE",
    "NameTree",
    "NothingToDo",
    "Observation",
    "Observe",
    "OfThisProcess",
    "CatalogOpening",
    "PickledHead",
    "WarehouseStores",
    "Progress",
    "LogScope",
    "TableHead",
    "LogTarget",
    "Token",
    "TrackedLog",
    "TransactionLog",
    "TransactionLogs",
    "UnchangingValue",
    "UnreadableLog",
    "OperationFacts",
    "as_operation",
    "check_at_place",
    "check_conflicts",
    "check_not_forgotten",
    "check_not_own",
    "chosen_scope",
    "commit_in",
    "commit_of",
    "commits_with_sidecars",
    "file_keys",
    "files_event",
    "files_of_commits",
    "follow",
    "gone_as_no_such_table",
    "has_happened",
    "has_own_place",
    "in_background",
    "in_turn",
    "known_path_to",
    "linked_elsewhere",
    "merged_drafts",
    "naming",
    "new_token",
    "place_in",
    "no_files",
    "no_progress",
    "no_such_table",
    "observed",
    "operation",
    "read_vector",
    "seen_on",
    "spellings",
    "was_applied",
    "was_applied_anywhere",
    "was_committed",
    "watched",
    "write_as",
    "write_vectors",
    "writer_facts",
    "writing_as",
    "RUN_COMMAND",
    "RUN_STATEMENT",
    "SEND_REQUEST",
    "advising",
    "run_transaction",
    "with_deletes",
]
