"""Tags and branches with one protection removed: each must make some seed about lines fail."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tests.sim.mutations import removing

from lakelog.catalog.core.logs import branch_log
from lakelog.catalog.core.state import table_state
from lakelog.catalog.core.state.events import BranchFilesChanged
from lakelog.catalog.core.state.refs import ContentLine
from lakelog.catalog.core.writes import files_since, tags_and_branches

LINE_MUTATIONS: dict[str, Callable[[], AbstractContextManager[None]]] = {}
removes = removing(LINE_MUTATIONS)


@removes(ContentLine, "has_all_of")
def a_line_becomes_another_whatever_is_lost(real: Any, self: Any, id: str, other: Any) -> bool:
    return id in self.contains


@removes(tags_and_branches, "moves_of")
def any_change_is_a_move(real: Any, head: Any, name: str, changes: int) -> Any:
    return files_since.LineMoves(head.version, None)


@removes(tags_and_branches, "keeping")
def moved_files_stay_whatever_the_other_line_did(
    real: Any, head: Any, name: str, id: str, moves: Any, added: Any, removed: Any
) -> Any:
    groups = moves.groups()
    paths_before, paths = (
        {path for group in groups for path in getattr(group, part)} for part in ("before", "now")
    )
    return files_since._without(added, paths_before), files_since._without(removed, paths)


@removes(branch_log.LineLog, "_event_seen")
def a_branch_is_not_shown_its_own_changes(real: Any, self: Any, event: Any) -> Any:
    return [] if event.get("event") == "branch-files-changed" else real(self, event)


@removes(branch_log, "seen_on")
def a_branch_is_any_of_its_name(real: Any, view: Any, name: str, id: str | None = None) -> Any:
    return real(view, name)


@removes(table_state, "_changed")
def a_branch_takes_no_row_ids(
    real: Any, state: Any, files: Any, event: Any, version: int, blobs: Any, uncommitted: bool
) -> Any:
    changed, next_row = real(state, files, event, version, blobs, uncommitted)
    return changed, state.next_row if isinstance(event, BranchFilesChanged) else next_row


@removes(table_state, "_counted")
def main_does_not_count_its_changes(real: Any, state: Any) -> Any:
    return state.main


@removes(table_state.TableState, "lines")
def maintenance_looks_at_main_alone(real: Any, self: Any) -> Any:
    return real(self)[:1]
