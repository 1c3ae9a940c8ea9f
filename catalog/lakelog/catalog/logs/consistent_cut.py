"""One moment of many logs: which version of each belongs to it.

Each log's times strictly increase, and a transaction has one time in all of its logs, so all versions with times up to
some moment are a state that the catalog could have been in. A cut is known as an interval of such moments: not before
the newest version that was taken, and before the first version that was left out. Taking another log first re-checks
those taken so far, for only a log that has not moved since is known to have nothing more to show.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelog.catalog.errors import CommitConflict
from lakelog.log import View
from lakelog.log.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from lakelog.catalog.logs.cache import LogCache, S, TrackedLog

FOREVER_US = 2**62


@dataclass(slots=True)
class _Taken:
    tracked: TrackedLog[Any]
    view: View[Any]
    is_head: bool
    """Whether nothing newer was there when it was looked at last."""


class Cut:
    """Versions of logs, chosen as they are asked for. Safe to share between threads.

    `at_us` puts it at a moment of the past; `versions` says them all, by location. Without either, it is not before
    anything that this process has seen, its own commits included: the clocks of others may be behind. `waits` says, by
    its newest view, whether a log is read only once nothing stands undecided in it: a serializable reader that passed
    over a transaction which is about to be committed could see what follows from it, in a log that it only read.
    """

    def __init__(
        self,
        logs: LogCache,
        *,
        at_us: int = FOREVER_US,
        versions: Mapping[str, int] | None = None,
        waits: Callable[[View[Any]], bool] = lambda view: False,
    ) -> None:
        self._logs = logs
        self._waits = waits
        self._asked_us = at_us
        self._versions = versions
        self._first_us = logs.seen_us if at_us == FOREVER_US and versions is None else 0
        self._last_us = at_us
        self._taken: dict[str, _Taken] = {}
        self._batch: set[str] = set()
        self._is_unchecked = False
        self._lock = threading.RLock()

    def begin_batch(self) -> None:
        """What is taken from here on is read for one question. CommitConflict where there is no such cut any more.

        A question is answered without a check among what is read for it, for most ask no other; the next one, which may
        be about what is known already, comes after that check.
        """
        with self._lock:
            self._batch.clear()
            if self._is_unchecked:
                self.check()

    def take(self, tracked: TrackedLog[S], *, fresh: bool = False) -> View[S]:
        """Return the log's view at this cut. NotFound where there was none; CommitConflict where there is no such cut.

        `fresh` says that what is known of the log was read after the question was asked.
        """
        with self._lock:
            taken = self._taken.get(tracked.location)
            if taken is None:
                taken = (
                    self._take_saved(tracked) if self._versions is not None else self._take(tracked, fresh)
                )
                self._taken[tracked.location] = taken
                self._batch.add(tracked.location)
            return taken.view

    def _take(self, tracked: TrackedLog[S], fresh: bool) -> _Taken:
        known = tracked.known
        head = known if fresh and known is not None else tracked.current()
        if self._waits(head):
            head = tracked.settled()
        self._is_unchecked = bool(self._taken)
        if self._taken.keys() - self._batch:
            self.check()
        is_head = head.time_us <= self._last_us
        view = head if is_head else self._before(tracked)
        self._first_us = max(self._first_us, view.time_us)
        return _Taken(tracked, view, is_head)

    @property
    def last_us(self) -> int:
        """The last moment that the cut may be of, as far as is known."""
        return self._last_us

    def check(self) -> None:
        """Look whether the logs taken so far moved, in one round of GETs. CommitConflict where that tears the cut."""
        self._is_unchecked = False
        heads = [taken for taken in self._taken.values() if taken.is_head]
        self._logs.refresh([taken.tracked for taken in heads])
        waiting = [taken.tracked for taken in heads if self._waits(taken.view)]
        if waiting:
            self._logs.log_options.in_parallel([_settling(tracked) for tracked in waiting])
        for taken in heads:
            moved_us = _moved_us(taken)
            if moved_us is None:
                continue
            taken.is_head = False
            self._last_us = min(self._last_us, moved_us - 1)
        # A moment that was asked for is that moment: what turns out to have happened before it cannot be left out.
        if self._last_us < max(self._first_us, self._asked_us if self._asked_us < FOREVER_US else 0):
            moved = ", ".join(self._logs.url(taken.tracked.location) for taken in heads if not taken.is_head)
            raise CommitConflict(
                f"what was read together cannot be shown as of one moment, for it changed meanwhile ({moved}): "
                "start again",
                version=0,
            )

    def _before(self, tracked: TrackedLog[S]) -> View[S]:
        version = tracked.log.version_at_time(self._last_us)
        return self._view_at(tracked, version)

    def _take_saved(self, tracked: TrackedLog[S]) -> _Taken:
        assert self._versions is not None
        version = self._versions.get(tracked.location)
        if version is None:
            raise NotFound(f"there was no log at {self._logs.url(tracked.location)} when the cut was saved")
        return _Taken(tracked, self._view_at(tracked, version), False)

    def _view_at(self, tracked: TrackedLog[S], version: int) -> View[S]:
        try:
            return tracked.log.view_at(version)
        except NotFound as error:
            # Not the same as a log that was not there: that may be shown as nothing, this may not.
            if self._asked_us == FOREVER_US and self._versions is None:
                raise CommitConflict(
                    f"what was read together expired while it was read ({error}): start again", version=0
                ) from error
            when = "" if self._versions is not None else f" as of {_text(self._asked_us)}"
            raise InvalidInput(f"the catalog{when} cannot be shown any more: {error}") from error


def _settling(tracked: TrackedLog[Any]) -> Callable[[], None]:
    def settle() -> None:
        tracked.settled()

    return settle


def _moved_us(taken: _Taken) -> int | None:
    """Return when the first change after what was taken happened, None where there is none."""
    now, then = taken.tracked.known, taken.view
    if now is None or now.version <= then.version:
        return None
    # With their tombstones: the versions between may have expired.
    effects = taken.tracked.log.replay.effects(then.version + 1, now.version)
    return next((entry.time_us for entry in effects), None)


def _text(time_us: int) -> str:
    return (dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=time_us)).isoformat(" ")
