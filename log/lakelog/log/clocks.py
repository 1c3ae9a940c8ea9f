"""Time: the clock of this host, and what is known of a store's.

A store has one clock for all of its clients, and any host's own may be wrong. So commits are timed, and ages judged, by
the store's, as its last answer has it. No other module of the log looks at a clock of the system. Nothing here makes a
request.
"""

import time

CLOCK_STEP_US = 30_000_000
"""The host's clock was set if it went by so much more or less than the steady clock: half of what commits tolerate."""


def host_clock_us() -> int:
    """Return this host's time in microseconds since 1970: right only if it was set right."""
    return time.time_ns() // 1000


def steady_clock_us() -> int:
    """Return a number of microseconds that grows with time, also while the machine sleeps; nothing sets it."""
    return time.clock_gettime_ns(_STEADY) // 1000


_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class StoreClock:
    """A store's time: that of its last answer, carried on by this host's steady clock. Threads may share it."""

    def __init__(self) -> None:
        self._learnt: tuple[int, int] | None = None

    def learn(self, store_us: int) -> None:
        """Take note that it is `store_us` now at the store."""
        steady_us = steady_clock_us()
        self._learnt = store_us - steady_us, host_clock_us() - steady_us

    def now_us(self) -> int | None:
        """Return the store's time; None where no answer has had it, or it no longer holds.

        A machine that was paused loses time on its steady clock too. Its other clock is then set, and the two disagree.
        """
        learnt = self._learnt
        if learnt is None:
            return None
        steady_us = steady_clock_us()
        if abs(host_clock_us() - steady_us - learnt[1]) > CLOCK_STEP_US:
            return None
        return steady_us + learnt[0]
