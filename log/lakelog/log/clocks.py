"""Time: this host's clock, and the store's clock as far as it is known.

A store has a single clock for all of its clients, while any host's clock may be wrong. So the store's clock,
as its last answer showed it, times commits and judges ages. No other module of the log reads a system clock.
Nothing here makes a request.
"""

import time

CLOCK_STEP_US = 30_000_000
"""The host's clock was set if it differs from the steady clock by more: half of the error that commits tolerate."""


def host_clock_us() -> int:
    """Return this host's time in microseconds since 1970, which is right only if its clock is."""
    return time.time_ns() // 1000


def steady_clock_us() -> int:
    """Return microseconds that only grow, even while the machine sleeps. Nothing sets this clock."""
    return time.clock_gettime_ns(_STEADY) // 1000


_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class StoreClock:
    """A store's time: the time of its last answer, advanced by this host's steady clock. Threads may share it."""

    def __init__(self) -> None:
        self._learnt: tuple[int, int] | None = None

    def learn(self, store_us: int) -> None:
        """Record that the store's time is `store_us` now."""
        steady_us = steady_clock_us()
        self._learnt = store_us - steady_us, host_clock_us() - steady_us

    def now_us(self) -> int | None:
        """Return the store's time. None if no answer had it, or if it no longer holds.

        A paused machine also loses time on its steady clock. Its host clock is set afterwards, so the two
        disagree.
        """
        offsets = self._learnt
        if offsets is None:
            return None
        steady_us = steady_clock_us()
        if abs(host_clock_us() - steady_us - offsets[1]) > CLOCK_STEP_US:
            return None
        return steady_us + offsets[0]
