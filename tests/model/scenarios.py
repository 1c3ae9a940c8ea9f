"""All scenarios that must be clean, in their short and their full size."""

from __future__ import annotations

from collections.abc import Callable

from tests.model import published, scenarios_log, scenarios_names, scenarios_txn
from tests.model.search import Scenario

SCENARIOS: tuple[Callable[[bool], Scenario], ...] = (
    scenarios_log.appending,
    scenarios_log.retrying,
    scenarios_log.retrying_with_an_old_view,
    scenarios_log.retrying_meanwhile,
    scenarios_log.retrying_after_expiry,
    scenarios_log.snapshots,
    scenarios_log.vandalism,
    scenarios_log.expiring,
    scenarios_log.expiring_with_snapshots,
    scenarios_log.vacuuming,
    scenarios_txn.one_transaction,
    scenarios_txn.preconditions,
    scenarios_txn.two_transactions,
    scenarios_txn.three_logs,
    scenarios_txn.retrying_a_transaction,
    scenarios_txn.retrying_a_transaction_meanwhile,
    scenarios_txn.retrying_an_expired_transaction,
    scenarios_txn.several_logs_read,
    scenarios_txn.later_logs,
    scenarios_txn.skewed,
    scenarios_txn.times,
    scenarios_txn.cuts_by_time,
    scenarios_txn.read_in_one_round,
    scenarios_txn.expiry_and_intents,
    scenarios_txn.expired_cuts,
    scenarios_txn.vacuum_and_transaction,
    scenarios_txn.deleted_decisions,
    scenarios_names.creating,
    scenarios_names.creating_again,
    scenarios_names.moved_and_forgotten,
    scenarios_names.dropping_namespace,
    scenarios_names.dropping_all,
    scenarios_names.dropping_table,
    scenarios_names.restoring,
    scenarios_names.purging_together,
    scenarios_names.purging_all,
    scenarios_names.expiring_dropped,
    scenarios_names.reopening,
    scenarios_names.reopening_twice,
    scenarios_names.writing_by_name,
    scenarios_names.swapping_tables,
    scenarios_names.moving_table,
    scenarios_names.restoring_into_dropped,
    scenarios_names.moving_namespaces,
    published.update_and_delete,
    published.two_compactions,
    published.compaction_and_delete,
)
