"""One moment of many logs: which version of each belongs to it.

Each log's times strictly increase, and a transaction has one time in all of its logs, so all versions with times up to
some moment are a state that the catalog could have been in. A cut is known as an interval of such moments: not before
the newest version that was chosen, and before the first version that was left out. Choosing another log first re-checks
those chosen so far, because only a log that has not moved since is known to have no newer version in the interval.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lakelog.catalog.core.logs.cache import LogCache, S
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.errors import CommitConflict
from lakelog.log import View
from lakelog.log.errors import InvalidInput, NotFound

FOREVER_US = 2**62


@dataclass(slots=True)
class _Chosen:
    tracked: TrackedLog[Any]
    view: View[Any]
    is_head: bool
    """Whether the log had no newer version at its last check."""


class Cut:
    """Versions of logs, chosen on first use. Safe to share between threads.

    `at_us` is a moment of the past; `versions` has all versions, by location, but those that `shown` has views of, from
    whatever moment. Without either, the cut is not before
    anything that this process has seen, its own commits included: other clients' clocks may be behind. `waits` returns,
    by its newest view, whether a log is read only once nothing in it is undecided: a serializable reader that skipped
    a transaction which is about to be committed could see an effect of it, in a log that it only read. `check_past`
    raises while `at_us` is not over: it is called where no later version of a log shows that it is.
    """

    def __init__(
        self,
        logs: LogCache,
        *,
        at_us: int = FOREVER_US,
        versions: Mapping[str, int] | None = None,
        shown: Mapping[str, View[Any]] | None = None,
        waits: Callable[[View[Any]], bool] = lambda view: False,
        check_past: Callable[[], None] = lambda: None,
    ) -> None:
        self._logs = logs
        self._waits = waits
        self._check_past = check_past
        self._asked_us = at_us
        self._versions = versions
        self._shown = shown or {}
        self._first_us = logs.clocks.seen_us if at_us == FOREVER_US and versions is None else 0
        self._last_us = at_us
        self._chosen: dict[str, _Chosen] = {}
        self._batch: set[str] = set()
        self._is_unchecked = False
        self._lock = threading.RLock()

    def begin_batch(self) -> None:
        """Begin one request: logs chosen from here on are read for it. CommitConflict where the cut no longer exists.

        The logs read for one request are not checked within it, as most callers make only one; the next request, which
        may use what is known already, begins with that check.
        """
        with self._lock:
            self._batch.clear()
            if self._is_unchecked:
                self.check()

    def view_of(self, tracked: TrackedLog[S], *, fresh: bool = False) -> View[S]:
        """Return the log's view at this cut. NotFound where there was none; CommitConflict where there is no such cut.

        `fresh` says that the known view of the log was read after the request began.
        """
        with self._lock:
            chosen = self._chosen.get(tracked.location)
            if chosen is None:
                chosen = (
                    self._choose_saved(tracked)
                    if self._versions is not None
                    else self._choose(tracked, fresh)
                )
                self._chosen[tracked.location] = chosen
                self._batch.add(tracked.location)
            return chosen.view

    def _choose(self, tracked: TrackedLog[S], fresh: bool) -> _Chosen:
        known = tracked.known
        try:
            head = known if fresh and known is not None else tracked.current()
        except NotFound:
            self._check_past()
            raise
        if self._waits(head):
            head = tracked.settled()
        self._is_unchecked = bool(self._chosen)
        if self._chosen.keys() - self._batch:
            self.check()
        is_head = head.time_us <= self._last_us
        if is_head:
            tracked.log.check_not_withheld(head)
            self._check_past()
        view = head if is_head else self._before(tracked)
        self._first_us = max(self._first_us, view.time_us)
        return _Chosen(tracked, view, is_head)

    @property
    def is_saved(self) -> bool:
        """Whether all versions were chosen before, so that no log is read at its head."""
        return self._versions is not None

    @property
    def last_us(self) -> int:
        """The last moment that the cut may be of, as far as known."""
        return self._last_us

    def check(self) -> None:
        """Check whether the logs chosen so far moved, in one round of GETs. CommitConflict where that tears the cut."""
        self._is_unchecked = False
        heads = [chosen for chosen in self._chosen.values() if chosen.is_head]
        self._logs.refresh([chosen.tracked for chosen in heads])
        waiting = [chosen.tracked for chosen in heads if self._waits(chosen.view)]
        if waiting:
            self._logs.in_parallel(lambda tracked: tracked.settled(), waiting)
        for chosen in heads:
            if chosen.is_head:
                chosen.tracked.log.check_not_withheld(chosen.tracked.known or chosen.view)
            moved_us = _moved_us(chosen)
            if moved_us is None:
                continue
            chosen.is_head = False
            self._last_us = min(self._last_us, moved_us - 1)
        # A requested moment is exact: a version that turns out to be from before it cannot be left out.
        if self._last_us < max(self._first_us, self._asked_us if self._asked_us < FOREVER_US else 0):
            moved = ", ".join(
                self._logs.url(chosen.tracked.location) for chosen in heads if not chosen.is_head
            )
            raise CommitConflict(
                f"the objects read together cannot be shown as of one moment: they changed meanwhile ({moved}). "
                "Start again",
                version=0,
            )

    def _before(self, tracked: TrackedLog[S]) -> View[S]:
        version = tracked.log.version_at_time(self._last_us)
        return self._view_at(tracked, version)

    def _choose_saved(self, tracked: TrackedLog[S]) -> _Chosen:
        assert self._versions is not None
        shown = self._shown.get(tracked.location)
        if shown is not None:
            return _Chosen(tracked, shown, False)
        version = self._versions.get(tracked.location)
        if version is None:
            raise NotFound(
                f"the saved cut has no log at {self._logs.url(tracked.location)}: it shows what it was saved of"
            )
        return _Chosen(tracked, self._view_at(tracked, version), False)

    def _view_at(self, tracked: TrackedLog[S], version: int) -> View[S]:
        try:
            return tracked.log.view_at(version)
        except NotFound as error:
            # Unlike a log that did not exist, this must not be shown as nothing.
            if self._asked_us == FOREVER_US and self._versions is None:
                raise CommitConflict(
                    f"a version of the objects read together expired meanwhile ({error}). Start again",
                    version=0,
                ) from error
            if self._versions is not None:
                raise InvalidInput(
                    f"the saved cut cannot show {self._logs.url(tracked.location)}: {error}. Where this warehouse was "
                    "restored or copied, it has no clones in the saved cuts of its source: load the table as it is now"
                ) from error
            when = f" as of {_text(self._asked_us)}"
            raise InvalidInput(f"the catalog{when} can no longer be shown: {error}") from error


def _moved_us(chosen: _Chosen) -> int | None:
    """Return the time of the first change after the chosen version, None where there is none."""
    now, then = chosen.tracked.known, chosen.view
    if now is None or now.version <= then.version:
        return None
    # With their tombstones: the versions between may have expired.
    effects = chosen.tracked.log.replay.effects(then.version + 1, now.version)
    return next((entry.time_us for entry in effects), None)


def _text(time_us: int) -> str:
    return (dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=time_us)).isoformat(" ")
