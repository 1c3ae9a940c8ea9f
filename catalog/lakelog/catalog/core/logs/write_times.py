"""How long this process's writes to tables have taken, in all.

A write takes from the moment that it began, or else its commit began, to the moment that it was committed. An
engine's executors write for a long time before the commit, and no log shows that time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

_OPEN_MAX = 1_000
"""Writes that began and were given up are forgotten after so many others began."""


class WriteTimes:
    """Safe to share between threads. `now_s` is a clock that only goes forward."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._began_s: OrderedDict[str, float] = OrderedDict()
        self.total_s = 0.0

    def now_s(self) -> float:
        return self._now_s()

    def began(self, write_id: str) -> None:
        with self._lock:
            self._began_s[write_id] = self._now_s()
            if len(self._began_s) > _OPEN_MAX:
                self._began_s.popitem(last=False)

    def ended(self, write_id: str | None, committing_s: float) -> None:
        """Add a write that was committed, whose commit began at `committing_s`."""
        with self._lock:
            began_s = committing_s if write_id is None else self._began_s.pop(write_id, committing_s)
            self.total_s += max(0.0, self._now_s() - began_s)
