"""Steps of transactions beside moved rows with one protection removed: each must make some run of them fail."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tests.sim.mutations import removing

from lakelog.catalog.core.logs import transaction_log
from lakelog.catalog.core.writes import moved_rows, row_rebase
from lakelog.catalog.core.writes.moved_contents import FirstReplaced
from lakelog.catalog.core.writes.rows_since import RowsSince

MUTATIONS: dict[str, Callable[[], AbstractContextManager[None]]] = {}
removes = removing(MUTATIONS)


@removes(transaction_log.OwnPart, "note_moved")
def a_step_has_to_remove_the_files_that_it_saw(real: Any, self: Any) -> None:
    return None


@removes(RowsSince, "places")
def rows_that_have_moved_are_not_looked_for(real: Any, self: Any, ids: Any) -> Any:
    return {}


@removes(moved_rows, "_taken")
def rows_of_an_earlier_step_s_copies_are_not_looked_for(real: Any, disturbed: Any) -> Any:
    return real([each for each in disturbed if each.died is None])


@removes(moved_rows, "_bury")
def copies_of_rows_that_are_elsewhere_stay(real: Any, *rest: Any) -> None:
    return None


@removes(FirstReplaced, "on")
def contents_are_not_looked_for(real: Any, self: Any, now: Any, operation: Any, *rest: Any) -> Any:
    return real(FirstReplaced(self.head, (), type(self.replaced)()), now, operation, *rest)


@removes(row_rebase, "_is_harmless_overlap")
def a_transaction_may_delete_what_others_have_deleted(real: Any, change: Any, in_transaction: bool) -> bool:
    return bool(real(change, False))
