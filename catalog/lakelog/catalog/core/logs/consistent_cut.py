"""A moment of many logs: which version of each belongs to it.

Each log's times strictly increase, and a transaction has the same time in all of its logs. So all versions
with times up to some moment are a state that the catalog could have been in. A cut is known as an interval of
such moments. It begins with the newest version that was chosen, and ends before the first version that was
left out. Choosing another log first checks the chosen logs again, because only a log that has not moved since
is known to have no newer version in the interval.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lakelog.catalog.core.logs.cache import LogCache, S
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.times import exact_text
from lakelog.log import LogView
from lakelog.log.errors import InvalidInput, NotFound

FOREVER_US = 2**62


@dataclass(slots=True)
class _Chosen:
    tracked: TrackedLog[Any]
    view: LogView[Any]
    is_head: bool
    """Whether the log had no newer version at its last check."""


class ConsistentCut:
    """Versions of logs, chosen on first use.

    Safe to share between threads. `at_us` is a moment of the past. `versions` has all versions by location,
    except that `shown` has views of other logs from any moment. Without either, the cut is not before
    anything that this process has seen, its own commits included, because other clients' clocks may be
    behind.

    `waits` gets a log's newest view, and returns whether to read the log only once nothing in it is
    undecided. Otherwise a serializable reader could skip a transaction that is about to be committed, and see
    its effect in a log that it only read. `check_past` raises while `at_us` is not over. It is called if no
    later version of a log shows that it is over.
    """

    def __init__(
        self,
        logs: LogCache,
        *,
        at_us: int = FOREVER_US,
        versions: Mapping[str, int] | None = None,
        shown: Mapping[str, LogView[Any]] | None = None,
        waits: Callable[[LogView[Any]], bool] = lambda view: False,
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
        """Begin a request: logs chosen from here on are read for it.

        Raises CommitConflict if the cut no longer exists. The logs read for a request are not checked within
        it, as most callers make only a single request. The next request, which may use logs that are known
        already, begins with that check.
        """
        with self._lock:
            self._batch.clear()
            if self._is_unchecked:
                self.check()

    def view_of(self, tracked: TrackedLog[S], *, fresh: bool = False) -> LogView[S]:
        """Return the log's view at this cut.

        `fresh` says that its known view was read after the request began. Raises NotFound if there was no
        log; CommitConflict if there is no such cut.
        """
        with self._lock:
            choice = self._chosen.get(tracked.location)
            if choice is None:
                choice = (
                    self._choose_saved(tracked)
                    if self._versions is not None
                    else self._choose(tracked, fresh)
                )
                self._chosen[tracked.location] = choice
                self._batch.add(tracked.location)
            return choice.view

    def _choose(self, tracked: TrackedLog[S], fresh: bool) -> _Chosen:
        known_view = tracked.known
        try:
            head = known_view if fresh and known_view is not None else tracked.current()
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
        """Check whether the chosen logs moved, in a single round of GETs.

        Raises CommitConflict if that tears the cut.
        """
        self._is_unchecked = False
        heads = [choice for choice in self._chosen.values() if choice.is_head]
        self._logs.refresh([choice.tracked for choice in heads])
        waiting_logs = [choice.tracked for choice in heads if self._waits(choice.view)]
        if waiting_logs:
            self._logs.in_parallel(lambda tracked: tracked.settled(), waiting_logs)
        for choice in heads:
            if choice.is_head:
                choice.tracked.log.check_not_withheld(choice.tracked.known or choice.view)
            moved_us = _moved_us(choice)
            if moved_us is None:
                continue
            choice.is_head = False
            self._last_us = min(self._last_us, moved_us - 1)
        # A requested moment is exact: a version that turns out to be from before it cannot be left out.
        if self._last_us < max(self._first_us, self._asked_us if self._asked_us < FOREVER_US else 0):
            moved_urls = ", ".join(
                self._logs.url(choice.tracked.location) for choice in heads if not choice.is_head
            )
            raise CommitConflict(
                f"the objects read together cannot be shown as of one moment: they changed meanwhile ({moved_urls}). "
                "Start again",
                version=0,
            )

    def has_moved(self) -> bool:
        """Return whether the cut is of a moment before some change that was met; ends with a check of all logs.

        Such a cut may be of no order of serializable transactions: times do not say which of two changes
        has read the other log before the other change.
        """
        with self._lock:
            if self._is_unchecked:
                self.check()
            return self._last_us < self._asked_us

    def _before(self, tracked: TrackedLog[S]) -> LogView[S]:
        version = tracked.log.version_at_time(self._last_us)
        return self._view_at(tracked, version)

    def _choose_saved(self, tracked: TrackedLog[S]) -> _Chosen:
        assert self._versions is not None
        shown_view = self._shown.get(tracked.location)
        if shown_view is not None:
            return _Chosen(tracked, shown_view, False)
        version = self._versions.get(tracked.location)
        if version is None:
            raise NotFound(
                f"the saved cut has no log at {self._logs.url(tracked.location)}: it shows what it was saved of"
            )
        return _Chosen(tracked, self._view_at(tracked, version), False)

    def _view_at(self, tracked: TrackedLog[S], version: int) -> LogView[S]:
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
            when = f" as of {exact_text(self._asked_us)}"
            raise InvalidInput(f"the catalog{when} can no longer be shown: {error}") from error


def _moved_us(chosen: _Chosen) -> int | None:
    """Return the time of the first change after the chosen version, None if there is none."""
    newest_view, chosen_view = chosen.tracked.known, chosen.view
    if newest_view is None or newest_view.version <= chosen_view.version:
        return None
    # With their tombstones, because the versions between may have expired.
    effects = chosen.tracked.log.replay.effects(chosen_view.version + 1, newest_view.version)
    return next((entry.time_us for entry in effects), None)
