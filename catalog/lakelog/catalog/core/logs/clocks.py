"""The time: by the clocks of stores, by this host's clock, and by the times that this process has read.

A commit's time is later than all times that this process has read. So a cut by time never holds an effect
without its cause, even if clocks are wrong. Ages are judged by `now_us`, which no time in a log moves. It
must not know the logs, which refer to their clocks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from lakelog.catalog.core.logs.places import WarehouseStores
from lakelog.log import LogView
from lakelog.log.clocks import host_clock_us
from lakelog.log.keys import LogKeys
from lakelog.log.view import CLOCK_TOLERANCE_US, is_far_ahead

DATE_STEP_US = 1_000_000
"""A server's Date has whole seconds, rounded down: it may be so much later there."""


class WarehouseClocks:
    """The clocks of a warehouse's stores and of this host, `host_us`. Safe to share between threads."""

    def __init__(self, places: WarehouseStores, host_us: Callable[[], int]) -> None:
        self._places = places
        self._host_us = host_us
        self._seen_us = 0
        self._lock = threading.Lock()

    @property
    def seen_us(self) -> int:
        """The time of the newest version that this process has read or written."""
        return self._seen_us

    def saw(self, time_us: int) -> None:
        """Note the time of a version that was read or written."""
        with self._lock:
            self._seen_us = max(self._seen_us, time_us)

    def now_us(self, location: str = "") -> int | None:
        """Return the time by the clock of the store that has `location`, or by this host's if the two agree.

        None if the store's time cannot be known. Makes no request, unless this process has had no answer of
        that store.
        """
        store_us, own_us = self._both(location)
        return own_us if store_us is not None and _agree(own_us, store_us) else store_us

    def likely_us(self, location: str = "") -> int:
        """Return the time as `now_us`, or this host's time if the store's cannot be known.

        It alone must delete nothing.
        """
        now_us = self.now_us(location)
        return self.host_us() if now_us is None else now_us

    def commit_us(self, location: str) -> int:
        """Return a writer's clock, which is the store's time if this host's time differs too much.

        Otherwise the log would discard the host's time, and with it the times that this process has seen.
        """
        return max(self.likely_us(location), self._seen_us + 1)

    def is_future(self, time_us: int, location: str = "") -> bool:
        """Return whether `time_us` is certainly still to come at the store that has `location`."""
        store_us, own_us = self._both(location)
        if store_us is None or _agree(own_us, store_us):
            return time_us > own_us
        return time_us > store_us + DATE_STEP_US

    def is_far_ahead(self, view: LogView[Any]) -> bool:
        """Return whether no transaction takes the log of a view, because its time is far ahead.

        Makes no request if it is not.
        """
        return is_far_ahead(view.time_us, host_clock_us()) and is_far_ahead(view.time_us, self._both("")[0])

    def host_us(self) -> int:
        """Return the time by this host's clock, whatever the store's clock says."""
        return self._host_us()

    def _both(self, location: str) -> tuple[int | None, int]:
        store, prefix = self._places.open(location)
        return store.now_us(LogKeys(prefix).latest), self.host_us()


def _agree(own_us: int, store_us: int) -> bool:
    return abs(own_us - store_us) <= CLOCK_TOLERANCE_US
