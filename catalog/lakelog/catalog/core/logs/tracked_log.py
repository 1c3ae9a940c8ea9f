"""One log as this process knows it: its newest view, and all requests to it.

Views only ever move forward here. A log on a tag or branch, and one in a transaction, are such logs too, which show
more or less than what is committed; requests that only transactions need go to `TrackedLog.transaction`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar, cast

from lakelog.catalog.core.logs.in_transaction import InTransaction, NoTransaction
from lakelog.catalog.core.logs.named_errors import naming
from lakelog.catalog.core.state import TableState
from lakelog.log import Commit, Committed, Draft, Log, View
from lakelog.log.errors import NotFound
from lakelog.log.placing import Decide
from lakelog.log.stores import ObjectStore

S = TypeVar("S")
T = TypeVar("T")

RELOAD_AFTER_VERSIONS = 1000
"""A state that was folded over this many versions is read anew from its snapshot, to release memory of its past."""


class TrackedLog(Generic[S]):
    """One log and the newest view that this process has of it. Safe to share between threads."""

    def __init__(
        self,
        log: Log[S],
        location: str,
        store: ObjectStore,
        prefix: str,
        seen: Callable[[int], None],
        committed: Callable[[TrackedLog[Any], View[Any]], None] = lambda tracked, view: None,
    ) -> None:
        self.log = log
        self.location = location
        self.store = store
        self.prefix = prefix
        self._seen = seen
        self._committed = committed
        self._view: View[S] | None = None
        self._loaded_at = 0
        self._lock = threading.Lock()
        self.transaction: InTransaction[S] = NoTransaction()

    @property
    def known(self) -> View[S] | None:
        """The newest known view, without a request."""
        return self._view

    def offer(self, view: View[S]) -> View[S]:
        """Remember `view` if it is the newest; return the newest."""
        self._seen(view.time_us)
        with self._lock:
            if self._view is None or self._view.version < view.version:
                self._view = view
            return self._view

    def reset(self, view: View[S]) -> View[S]:
        """Remember `view` in place of the known one: its log was just created at this place."""
        self._seen(view.time_us)
        with self._lock:
            self._view = view
            return view

    def at_least(self, version: int) -> View[S]:
        """Return a view that is not older than `version`: the known one if it is new enough, else the head."""
        known = self._view
        return known if known is not None and known.version >= version else self.current()

    def current(self) -> View[S]:
        """Return the head: 1 GET when known and unchanged, 2 round trips when not known. NotFound without a log."""
        known = self._view
        if known is None or known.version - self._loaded_at >= RELOAD_AFTER_VERSIONS:
            view = self.log.load()
            self._loaded_at = view.version
        else:
            view = self.log.refresh(known)
        return self.offer(view)

    def load(
        self, beside: Callable[[View[S]], None], hint: Callable[[], bytes | None] | None = None
    ) -> View[S]:
        """Return the head of a log that is not known; `beside` is called with what its hint says, which may be old or
        wrong, while the rest is read. `hint` returns the hint, where it was read just now. NotFound without a log."""
        view = self.log.load(beside, hint)
        self._loaded_at = view.version
        return self.offer(view)

    def settled(self) -> View[S]:
        """Return the head once no undecided commit stands after it (see `Log.refresh_settled`)."""
        return self.offer(self.log.refresh_settled(self._view or self.log.load()))

    def anew(self) -> View[S]:
        """Return the head without use of the known view, which may be of a log that was removed."""
        self.forget()
        return self.current()

    def forget(self) -> None:
        """Load the log when it is used the next time."""
        with self._lock:
            self._view = None

    def at_its_place(self) -> View[S]:
        """Return the head of the log that is there now: a known sealed one may have been removed since."""
        view = self.current()
        return self.anew() if view.sealed else view

    def read(self, view: View[S], look: Callable[[View[S]], T]) -> T:
        """Return what `look` returns for a view whose parts are still in the store; where expiry has replaced them, for
        the same version read anew. NotFound, which names the versions that exist, when that has expired."""
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
    ) -> View[S]:
        """Create the log (see `Log.create`) and remember it."""
        view = self.reset(self.log.create(draft, log_id=log_id, commit_id=commit_id, first=first))
        self._committed(self, view)
        return view

    def commit(
        self,
        view: View[S],
        decide: Decide[S],
        *,
        commit_id: str | None = None,
        base: int | None = None,
        shared: bool = False,
    ) -> Committed[S]:
        """Commit (see `Log.commit`) and remember the resulting view."""
        committed = self.log.commit(view, decide, commit_id=commit_id, base=base, shared=shared)
        self.offer_committed(committed.view)
        return committed

    def offer_committed(self, view: View[S]) -> None:
        """Remember a view that a commit has made, and have what follows commits begin."""
        self.offer(view)
        self._committed(self, view)

    def find(self, commit_id: str, first: int, last: int) -> int | None:
        """Return the version from `first` to `last` that is that commit (see `Log.find`)."""
        return self.log.find(commit_id, first, last)

    def view_at(self, version: int) -> View[S]:
        """Return the log as of `version` (see `Log.view_at`)."""
        return self.log.view_at(version)

    def version_at_time(self, time_us: int) -> int:
        """Return the newest version at or before `time_us` (see `Log.version_at_time`)."""
        return self.log.version_at_time(time_us)

    def as_seen(self, commit: Commit) -> Commit:
        """Return a commit as seen here: on a tag or branch, with the changes of that as those of the table."""
        return commit

    @property
    def outside(self) -> TrackedLog[S]:
        """The log that all clients see, where this is a transaction's; else this one."""
        return self


def as_seen_in(view: View[S], fresh: View[S]) -> View[S]:
    """Return a view that was read anew on the same tag or branch as `view`, if that is on one."""
    seen, state = view.state, fresh.state
    if not isinstance(seen, TableState) or not isinstance(state, TableState):
        return fresh
    return cast(View[S], replace(cast(View[TableState], fresh), state=state.on(seen.line)))
