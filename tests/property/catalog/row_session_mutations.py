"""Changes of rows beside others with one protection removed: each must make some run of sessions fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from tests.sim.mutations import removing

from lakelog.catalog.core.planning.bound import ConstantCondition
from lakelog.catalog.core.writes import compaction_commit, moved_rows, row_rebase, rows_since
from lakelog.catalog.core.writes.row_rebase import RowRebase
from lakelog.catalog.core.writes.rows_since import RowsSince

MUTATIONS: dict[str, Callable[[], AbstractContextManager[None]]] = {}
removes = removing(MUTATIONS)


@removes(RowsSince, "brought")
def rows_that_came_or_changed_are_not_held_against_the_condition(real: Any, *rest: Any) -> bool:
    return False


@removes(RowsSince, "took")
def rows_that_are_gone_are_not_held_against_the_condition(real: Any, *rest: Any) -> bool:
    return False


@removes(RowsSince, "_is_fresh")
def versions_of_rows_are_not_looked_at(real: Any, self: Any, versions: Any) -> Any:
    return np.zeros(len(versions), dtype=bool)


@removes(RowsSince, "places")
def rows_that_have_moved_are_not_looked_for(real: Any, self: Any, ids: Any) -> Any:
    return {}


@removes(rows_since, "_is_all")
def rows_that_are_gone_are_not_missed(real: Any, count: int, ids: Any) -> bool:
    return True


@removes(rows_since, "possible")
def what_cannot_be_evaluated_is_false(real: Any, bound: Any) -> Any:
    return bound if real(bound) == bound else ConstantCondition(False)


@removes(moved_rows, "_bury")
def copies_of_rows_that_are_elsewhere_stay(real: Any, *rest: Any) -> None:
    return None


@removes(row_rebase, "_without_dead")
def the_vectors_of_written_files_are_lost(real: Any, own: Any, *rest: Any) -> Any:
    return list(own.values())


@removes(RowRebase, "_came_back")
def a_compaction_does_not_see_that_rows_came_back(real: Any, self: Any, path: str) -> bool:
    return False


_unseen = MUTATIONS["a-compaction-does-not-see-that-rows-came-back"]


@contextmanager
def _unseen_and_not_counted() -> Iterator[None]:
    """A compaction counts its rows, too, and leaves out a group that would lose some."""
    with _unseen(), patch.object(compaction_commit, "_keeps_rows", lambda group: True):
        yield


MUTATIONS["a-compaction-does-not-see-that-rows-came-back"] = _unseen_and_not_counted


@removes(RowRebase, "_has_unseen_rows")
def nothing_that_was_added_is_looked_at(real: Any, self: Any) -> bool:
    return False
