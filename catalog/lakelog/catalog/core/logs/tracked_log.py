"""A log as this process knows it: its newest view, and all requests to it.

Views only ever move forward here. A log on a tag or branch, and a log in a transaction, are tracked logs too,
which show more or less than the committed state. Requests that only transactions need go to
`TrackedLog.transaction`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar, cast

from lakelog.catalog.core.logs.in_transaction import InTransaction, NoTransaction
from lakelog.catalog.core.logs.named_errors import naming
from lakelog.catalog.core.state.table_state import TableState
from lakelog.log import Commit, CommittedChange, Draft, Log, LogView
from lakelog.log.decisions import prove_root
from lakelog.log.errors import NotFound
from lakelog.log.participants import is_url
from lakelog.log.placing import Decide
from lakelog.log.stores import ObjectStore

S = TypeVar("S")
T = TypeVar("T")

RELOAD_AFTER_VERSIONS = 1000
"""A state folded over this many versions is read again from its snapshot, to release memory of its past."""


class TrackedLog(Generic[S]):
    """A log and the newest view that this process has of it. Safe to share between threads."""

    def __init__(
        self,
        log: Log[S],
        location: str,
        store: ObjectStore,
        prefix: str,
        seen: Callable[[int], None],
        committed: Callable[[TrackedLog[Any], LogView[Any]], None] = lambda tracked, view: None,
    ) -> None:
        self.log = log
        self.location = location
        self.store = store
        self.prefix = prefix
        self._seen = seen
        self._committed = committed
        self._view: LogView[S] | None = None
        self._loaded_at = 0
        self._lock = threading.Lock()
        self.transaction: InTransaction[S] = NoTransaction()

    @property
    def known(self) -> LogView[S] | None:
        """The newest known view, without a request."""
        return self._view

    def offer(self, view: LogView[S]) -> LogView[S]:
        """Remember `view` if it is the newest; return the newest."""
        self._seen(view.time_us)
        with self._lock:
            if self._view is None or self._view.version < view.version:
                self._view = view
            return self._view

    def reset(self, view: LogView[S]) -> LogView[S]:
        """Remember `view` in place of the known view: its log was just created at this place."""
        self._seen(view.time_us)
        with self._lock:
            self._view = view
            return view

    def at_least(self, version: int) -> LogView[S]:
        """Return a view that is not older than `version`: the known view if new enough, else the head."""
        known_view = self._view
        return known_view if known_view is not None and known_view.version >= version else self.current()

    def current(self) -> LogView[S]:
        """Return the head.

        Raises NotFound if there is no log. Costs a GET if it is known and unchanged, 2 round trips if it is
        not known.
        """
        known_view = self._view
        if known_view is None or known_view.version - self._loaded_at >= RELOAD_AFTER_VERSIONS:
            view = self.log.load()
            self._loaded_at = view.version
        else:
            view = self.log.refresh(known_view)
        return self.offer(view)

    def load(
        self, beside: Callable[[LogView[S]], None], hint: Callable[[], bytes | None] | None = None
    ) -> LogView[S]:
        """Return the head of a log that is not known.

        Raises NotFound if there is no log. While the rest is read, `beside` is called with the view in its
        hint, which may be old or wrong. `hint` returns the hint, if it was read just now.
        """
        view = self.log.load(beside, hint)
        self._loaded_at = view.version
        return self.offer(view)

    def settled(self) -> LogView[S]:
        """Return the head once no undecided commit stands after it (see `Log.refresh_settled`)."""
        return self.offer(self.log.refresh_settled(self._view or self.log.load()))

    def anew(self) -> LogView[S]:
        """Return the head without use of the known view, which may be of a log that was removed."""
        self.forget()
        return self.current()

    def forget(self) -> None:
        """Load the log at its next use."""
        with self._lock:
            self._view = None

    def at_its_place(self) -> LogView[S]:
        """Return the head of the log that is there now: a known sealed log may have been removed since."""
        view = self.current()
        return self.anew() if view.sealed else view

    def read(self, view: LogView[S], look: Callable[[LogView[S]], T]) -> T:
        """Return the result of `look` for a view whose parts are still in the store.

        If expiry has replaced them, the same version is read again. If that has expired, raises NotFound,
        which names the versions that exist.
        """
        try:
            with naming(self.log.location):
                return look(view)
        except NotFound:
            fresh = self.anew()
            if not fresh.is_same(view):
                fresh = self.log.view_at(view.version)
            if not fresh.is_same(view):
                raise
            with naming(self.log.location):
                return look(as_seen_in(view, fresh))

    # Changes

    def create(
        self, draft: Draft, *, log_id: str, commit_id: str | None = None, first: bool = False
    ) -> LogView[S]:
        """Create the log (see `Log.create`) and remember it.

        The first log of a warehouse, or of a place outside of it, is only created on a server that holds the
        condition of a put. Raises Unsupported for other servers.
        """
        if not self.location or is_url(self.location):
            prove_root(self.store, self.prefix, self.log.options)
        view = self.reset(self.log.create(draft, log_id=log_id, commit_id=commit_id, first=first))
        self._committed(self, view)
        return view

    def commit(
        self,
        view: LogView[S],
        decide: Decide[S],
        *,
        commit_id: str | None = None,
        base: int | None = None,
        shared: bool = False,
    ) -> CommittedChange[S]:
        """Commit (see `Log.commit`) and remember the resulting view."""
        commit_result = self.log.commit(view, decide, commit_id=commit_id, base=base, shared=shared)
        self.offer_committed(commit_result.view)
        return commit_result

    def offer_committed(self, view: LogView[S]) -> None:
        """Remember a view that a commit has made, and begin the work that follows commits."""
        self.offer(view)
        self._committed(self, view)

    def find(self, commit_id: str, first: int, last: int) -> int | None:
        """Return the version from `first` to `last` that is that commit (see `Log.find`)."""
        return self.log.find(commit_id, first, last)

    def view_at(self, version: int) -> LogView[S]:
        """Return the log as of `version` (see `Log.view_at`)."""
        return self.log.view_at(version)

    def version_at_time(self, time_us: int) -> int:
        """Return the newest version at or before `time_us` (see `Log.version_at_time`)."""
        return self.log.version_at_time(time_us)

    def version_then(self, view: LogView[S], time_us: int) -> int:
        """Return the version that was current at a time, at most `view`; 0 if there was none.

        `view` is of the log that every client sees. Makes no request if it is the answer.
        """
        if view.time_us <= time_us:
            return view.version
        try:
            return min(self.log.version_at_time(time_us), view.version)
        except NotFound:
            return 0

    def as_seen(self, commit: Commit) -> Commit:
        """Return a commit as seen here: on a tag or branch, with its changes as changes of the table."""
        return commit

    @property
    def outside(self) -> TrackedLog[S]:
        """The log that all clients see, if this is a transaction's log; else this log."""
        return self


def as_seen_in(view: LogView[S], fresh: LogView[S]) -> LogView[S]:
    """Return a view that was read again, on the same tag or branch as `view` if that is on one."""
    old_state, state = view.state, fresh.state
    if not isinstance(old_state, TableState) or not isinstance(state, TableState):
        return fresh
    return cast(LogView[S], replace(cast(LogView[TableState], fresh), state=state.on(old_state.line)))
