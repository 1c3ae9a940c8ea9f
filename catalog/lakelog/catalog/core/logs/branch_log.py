"""A table's log as seen on a tag or branch, so that all code that reads and changes a table works there.

A view on a branch has the branch's files in the place of the table's (see `TableState.on`). A decision on
such a view becomes a change of the branch before it is committed. Other writers' changes of the same branch
are shown as changes of the table. Their changes of other lines are left out, because they cannot conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from lakelog.catalog.core.logs.in_transaction import NoTransaction
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.schema.filters import Filter
from lakelog.catalog.core.state.conflicts import OperationKind
from lakelog.catalog.core.state.refs import MAIN
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.errors import NoSuchRef
from lakelog.log import Commit, CommittedChange, Draft, Json, LogView
from lakelog.log.errors import CommitUnknown, LogSealed, NotFound
from lakelog.log.placing import Decide

T = TypeVar("T")


def seen_on(view: LogView[TableState], name: str, id: str | None = None) -> LogView[TableState]:
    """Return a view as seen on a tag or branch, or on main.

    Raises NoSuchRef, also if the ref has another id.
    """
    line_state = view.state.on(name)
    if id is not None and name != MAIN and line_state.refs[name].id != id:
        raise NoSuchRef(f"the tag or branch {name} was dropped or replaced")
    return replace(view, state=line_state)


class LineLog(TrackedLog[TableState]):
    """The log of a table on a tag or branch.

    The id distinguishes it from other refs of the same name. All methods that return a view raise NoSuchRef
    if that view does not have the tag or branch.
    """

    def __init__(self, under: TrackedLog[TableState], name: str, id: str) -> None:
        super().__init__(under.log, under.location, under.store, under.prefix, lambda time_us: None)
        self.under = under
        self.name = name
        self.id = id
        self.transaction = _LineInTransaction(self)

    def _here(self, view: LogView[TableState]) -> LogView[TableState]:
        if view.sealed:
            raise LogSealed(f"{self.location} was dropped")
        return seen_on(view, self.name, self.id)

    @property
    def known(self) -> LogView[TableState] | None:
        known_view = self.under.known
        if known_view is None or known_view.sealed:
            return None
        try:
            return self._here(known_view)
        except NoSuchRef:
            return None

    def at_least(self, version: int) -> LogView[TableState]:
        return self._here(self.under.at_least(version))

    def current(self) -> LogView[TableState]:
        return self._here(self.under.current())

    def settled(self) -> LogView[TableState]:
        return self._here(self.under.settled())

    def anew(self) -> LogView[TableState]:
        return self._here(self.under.anew())

    def at_its_place(self) -> LogView[TableState]:
        return self._here(self.under.at_its_place())

    def read(self, view: LogView[TableState], look: Callable[[LogView[TableState]], T]) -> T:
        return self.under.read(view, look)

    def view_at(self, version: int) -> LogView[TableState]:
        return seen_on(self.under.view_at(version), self.name, self.id)

    def version_at_time(self, time_us: int) -> int:
        return self.under.version_at_time(time_us)

    def as_seen(self, commit: Commit) -> Commit:
        return self.seen_here(self.under.as_seen(commit))

    def find(self, commit_id: str, first: int, last: int) -> int | None:
        return self.under.find(commit_id, first, last)

    def commit(
        self,
        view: LogView[TableState],
        decide: Decide[TableState],
        *,
        commit_id: str | None = None,
        base: int | None = None,
        shared: bool = False,
    ) -> CommittedChange[TableState]:
        def decide_here(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
            draft = decide(self._here(view), [self.seen_here(commit) for commit in passed_commits])
            return replace(draft, events=self._as_of_branch(draft.events))

        result = self.under.commit(
            seen_on(view, MAIN), decide_here, commit_id=commit_id, base=base, shared=shared
        )
        try:
            return CommittedChange(self._here(result.view), result.version)
        except (NoSuchRef, LogSealed) as gone:
            # The commit happened, and the branch was dropped since.
            try:
                return CommittedChange(self.view_at(result.version), result.version)
            except NotFound:
                raise CommitUnknown(
                    f"commit {commit_id} happened in version {result.version} of {self.location}, which has expired; "
                    f"since then: {gone}",
                    commit_id=commit_id or "",
                    location=self.location,
                ) from gone

    @property
    def outside(self) -> TrackedLog[TableState]:
        outside = self.under.outside
        return self if outside is self.under else outside

    def _as_of_branch(self, events: Sequence[dict[str, Json]]) -> tuple[dict[str, Json], ...]:
        """Return the events of a change of the table as events of a change of the branch."""
        # A rolled-back event takes the table's own line to an older version; for a branch, the changed files
        # suffice.
        own_events = [event for event in events if event["event"] != "rolled-back"]
        return tuple(
            {**event, "event": "branch-files-changed", "branch": self.name}
            if event["event"] == "files-changed"
            else event
            for event in own_events
        )

    def seen_here(self, commit: Commit) -> Commit:
        """Return a commit with the changes of this line alone, as changes of the table."""
        return msgspec.structs.replace(
            commit,
            events=tuple(seen_event for event in commit.events for seen_event in self._event_seen(event)),
        )

    def _event_seen(self, event: dict[str, Any]) -> list[dict[str, Any]]:
        kind = event.get("event")
        if kind == "files-changed" or (kind == "rolled-back" and event.get("metadata") is None):
            return []
        if kind in ("branch-files-changed", "fast-forwarded") and event["branch"] != self.name:
            return []
        if kind == "fast-forwarded":
            return [{**event, "branch": MAIN}]
        if kind != "branch-files-changed":
            return [event]
        files_change = {key: value for key, value in event.items() if key != "branch"} | {
            "event": "files-changed"
        }
        if event["operation"] == OperationKind.SET_CURRENT.value:
            return [{"event": "rolled-back", "version": 0}, files_change]
        return [files_change]


class _LineInTransaction(NoTransaction[TableState]):
    """The part of a transaction in a table's log, as seen on a tag or branch.

    A replace is staged on main only.
    """

    def __init__(self, line: LineLog) -> None:
        self._line = line
        self._whole = line.under.transaction

    @property
    def is_open(self) -> bool:
        return self._whole.is_open

    @property
    def creates_log(self) -> bool:
        return self._whole.creates_log

    def own_since(self, view: LogView[TableState]) -> Sequence[Commit]:
        return [self._line.seen_here(commit) for commit in self._whole.own_since(seen_on(view, MAIN))]

    def note_moved(self) -> None:
        self._whole.note_moved()

    def note_rows_read(self, predicate: Filter | None) -> None:
        self._whole.note_rows_of_line_read(self._line.name, self._line.id, predicate)
