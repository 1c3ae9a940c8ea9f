"""The changes of rows with one protection removed: each must make some seed about rows fail."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tests.sim.mutations import removing

from lakelog.catalog.core.logs import transaction_steps
from lakelog.catalog.core.state.conflicts import OperationKind
from lakelog.catalog.core.writes import file_changes, row_rebase
from lakelog.catalog.keeping.maintenance import reachable

ROW_MUTATIONS: dict[str, Callable[[], AbstractContextManager[None]]] = {}
removes = removing(ROW_MUTATIONS)


@removes(row_rebase.RowRebase, "_vector")
def vectors_are_not_united(real: Any, self: Any, path: str, positions: Any) -> Any:
    return positions


@removes(row_rebase.RowRebase, "_why_not")
def the_files_that_are_changed_are_not_looked_at(real: Any, self: Any, path: str) -> str | None:
    return None if path in self.files else real(self, path)


@removes(row_rebase.RowRebase, "_why_not")
def a_file_is_rewritten_whatever_was_deleted_in_it(real: Any, self: Any, path: str) -> str | None:
    return None if path in self.prepared.change.removed and path in self.files else real(self, path)


@removes(row_rebase.RowRebase, "_why_not")
def a_file_that_is_gone_need_not_be_changed(real: Any, self: Any, path: str) -> str | None:
    return real(self, path) if path in self.files else None


@removes(row_rebase.RowRebase, "_why_not")
def a_compaction_does_not_look_again(real: Any, self: Any, path: str) -> str | None:
    is_compaction = self.prepared.change.operation is OperationKind.COMPACT
    return None if is_compaction and path in self.files else real(self, path)


@removes(row_rebase, "_is_harmless_overlap")
def the_same_row_may_be_changed_twice(real: Any, change: Any, in_transaction: bool) -> bool:
    return True


@removes(row_rebase, "_is_harmless_overlap")
def a_transaction_may_delete_what_others_have_deleted(real: Any, change: Any, in_transaction: bool) -> bool:
    return bool(real(change, False))


@removes(row_rebase.RowRebase, "_has_unseen_rows")
def rows_that_came_meanwhile_are_not_looked_at(real: Any, self: Any) -> bool:
    return False


@removes(transaction_steps, "_removed")
def whole_files_are_removed_whatever_was_deleted_in_them(real: Any, draft: Any) -> Any:
    return {(path, 0) for path, _ in real(draft)}


@removes(reachable, "_vectors")
def vacuum_does_not_know_vectors(real: Any, listed: Any) -> Any:
    return real([])


@removes(file_changes, "_is_replaced")
def overwrites_look_at_no_files(real: Any, *rest: Any) -> bool:
    return False
