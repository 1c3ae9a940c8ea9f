"""Where the loss of each rule is seen: in which scenario the search finds a violation once the rule is taken away."""

from __future__ import annotations

from collections.abc import Callable

from tests.model import published
from tests.model import scenarios_log as log
from tests.model import scenarios_names as names
from tests.model import scenarios_txn as txn
from tests.model.rules import Rule
from tests.model.search import Scenario

REMOVALS: dict[Rule, Callable[[bool], Scenario]] = {
    Rule.CONDITIONAL_PUT: log.appending,
    Rule.DECIDED_CURSOR: txn.one_transaction,
    Rule.TAKEN_IS_READ: log.appending,
    Rule.ERROR_IS_READ: log.appending,
    Rule.ABSENT_IS_REPEATED: log.appending,
    Rule.REBASE_DECIDES: log.vacuuming,
    Rule.INTENT_DECIDES: txn.preconditions,
    Rule.REFUSAL_AT_HEAD: log.retrying_with_an_old_view,
    Rule.SETTLES: txn.one_transaction,
    Rule.ORIGINAL_BASE: log.retrying,
    Rule.JUMP_COMPARES: log.retrying_after_expiry,
    Rule.ABORTED_IS_NOT_DONE: txn.retrying_a_transaction,
    Rule.SNAPSHOT_DECIDED: txn.expiry_and_intents,
    Rule.SNAPSHOT_SETTLED: log.snapshots,
    Rule.SNAPSHOT_SETTLES: txn.expiry_and_intents,
    Rule.HINT_HASH: log.vandalism,
    Rule.FIRST_ABSENCE: log.snapshots,
    Rule.UNDECIDED_UNSEEN: txn.one_transaction,
    Rule.FRESH_TXN: txn.retrying_a_transaction,
    Rule.ALL_INTENTS_FIRST: txn.one_transaction,
    Rule.COORDINATOR_COMMITS: txn.one_transaction,
    Rule.DECISION_SETTLED: txn.one_transaction,
    Rule.DECISION_KEPT: txn.deleted_decisions,
    Rule.ANY_ACTOR_ABORTS: txn.one_transaction,
    Rule.OBEY_DECISION: txn.one_transaction,
    Rule.ONE_TIME: txn.times,
    Rule.TIME_AFTER_DECISION: txn.times,
    Rule.DECISION_AFTER_INTENTS: txn.times,
    Rule.RECHECK_CURSORS: txn.later_logs,
    Rule.RECHECK_DECISIONS: txn.later_logs,
    Rule.EXTEND_THEN_CHECK: txn.times,
    Rule.ROUND_IS_CHECKED: txn.read_in_one_round,
    Rule.VALIDATE_READS: txn.skewed,
    Rule.TOMBSTONES: log.expiring,
    Rule.TOMBSTONE_OUTCOME: txn.retrying_an_expired_transaction,
    Rule.BASE_BEFORE_TOMBSTONES: log.expiring,
    Rule.BASES_INCREASE: log.expiring,
    Rule.MANIFESTS_BEFORE_BASE: log.expiring,
    Rule.BASES_ARE_KEPT: log.expiring,
    Rule.WALK_ON: log.expiring,
    Rule.DERIVED_FROM_LAST: log.expiring,
    Rule.NEWER_BASE_DISTRUSTS: log.expiring_with_snapshots,
    Rule.HINT_IS_A_HINT: log.vandalism,
    Rule.FORGET_FIRST: names.creating,
    Rule.UNCHANGED_SINCE_SEEN: names.moved_and_forgotten,
    Rule.FENCE_FIRST: log.vacuuming,
    Rule.RETAINED_FILES: log.vacuuming,
    Rule.NAME_IS_PRECONDITION: names.swapping_tables,
    Rule.NAME_IS_COMPARED: names.swapping_tables,
    Rule.MOVED_LOG_WRITTEN: names.swapping_tables,
    Rule.RENAME_IS_ONE: names.swapping_tables,
    Rule.DROP_SEALS: names.writing_by_name,
    Rule.ROOT_TAKES_PART: names.moving_namespaces,
    Rule.ANCESTRY_RECHECKED: names.moving_namespaces,
    Rule.EMPTY_IS_PRECONDITION: names.dropping_namespace,
    Rule.PURGE_COMMITTED: names.restoring,
    Rule.PURGE_UNCHANGED: names.purging_all,
    Rule.PURGE_FENCES: names.reopening,
    Rule.PURGED_IS_FINAL: names.restoring,
    Rule.RESTORES_SAME_LOG: names.reopening_twice,
    Rule.SEALED_IS_CLOSED: names.dropping_table,
    Rule.DELETION_VECTOR_REPLACES: published.update_and_delete,
    Rule.REWRITE_SEES_DELETES: published.compaction_and_delete,
}
