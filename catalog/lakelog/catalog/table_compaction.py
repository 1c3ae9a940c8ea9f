"""A table's part in compaction: all of it from Python, and what engines ask for that read and write rows themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelog.catalog.logs import LogCache, Token, TrackedLog
from lakelog.catalog.schema import Filter
from lakelog.catalog.state import Goal, Group, TableState, goal_of
from lakelog.catalog.writes import compaction_commit
from lakelog.log import View, WriteRef

if TYPE_CHECKING:
    from lakelog.catalog.table import Table


class TableCompaction:
    """What `Table` can do to have fewer files."""

    _logs: LogCache
    _tracked: TrackedLog[TableState]
    _view: View[TableState]

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...

        @property
        def properties(self) -> Mapping[str, str]: ...

        def refresh(self) -> Table: ...

        def _check_writable(self, what: str) -> None: ...

        def _base_of(self, write: WriteRef | None) -> View[TableState]: ...

        def _with(self, view: View[TableState]) -> Table: ...

    def compact(
        self,
        filter: Filter | None = None,
        *,
        target_size_bytes: int | None = None,
        deleted_ratio: float | None = None,
    ) -> Table:
        """Write small files of a partition anew as larger ones, and files of which many rows are deleted without those.

        No row changes. With `filter`, only files that may have rows which match; Unsupported where files do not tell.
        Files shall be of `target_size_bytes` (None: the table's property); one with at least the share `deleted_ratio`
        of deleted rows (None: 0.3) is written anew in any case. Large tables take several commits. What others change
        meanwhile is theirs, and what they leave is done anew; CommitConflict where that fails several times.
        """
        self._check_writable("compact")
        goal, new_id = goal_of(self.properties, target_size_bytes, deleted_ratio), self._logs.new_id
        view = self.refresh()._view
        return self._with(
            compaction_commit.compact(self._tracked, view, goal, filter, new_id, name=self.name)
        )

    def plan_compaction(
        self, goal: Goal, filter: Filter | None, *, until: int, limit_bytes: int
    ) -> tuple[pa.Table, list[Group]]:
        """Return what is to be written anew next (see `compacting.plan`)."""
        return compaction_commit.plan(
            self._tracked, self._view, goal, filter, until=until, limit_bytes=limit_bytes
        )

    def commit_compaction(
        self, write: WriteRef, groups: Sequence[compaction_commit.Rewritten], *, token: Token | None = None
    ) -> tuple[Table, list[int]]:
        """Commit groups that were planned on this version, but for those returned (see `compacting.commit`)."""
        self._check_writable("compact")
        base, name = self._base_of(write), self.name
        view, lost = compaction_commit.commit(
            self._tracked, base, groups, name=name, write=write, token=token
        )
        return self._with(view), lost
