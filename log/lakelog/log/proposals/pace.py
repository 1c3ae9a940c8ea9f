"""When to look for the next version, and how long to wait for it. Safety does not depend on it.

This saves requests and time. The unit is a PUT, which each process measures for itself. Clocks may be wrong,
so facts about another client's clock are learned again and again. No wait is longer than a few intervals.
"""

from __future__ import annotations

from collections.abc import Callable

from lakelog.log.format import Commit

FIRST_PUT_S = 0.06
PATIENCE_PUTS = 4.0, 8.0
PATIENCE_ALONE_PUTS = 1.0, 2.0
"""Used if no combiner's version was seen lately, so that there seems to be no combiner."""
TURN_PUTS = 4.0
"""For each client that is to combine first: it lists, reads, writes a file and puts."""
TURNS_MAX = 8
LINGER_PUTS = 8.0
"""How long a process goes on after its last caller, because a caller that writes repeatedly comes back."""
LINGER_MIN_S = 0.05
COMPANY_PUTS = 0.2
"""How long the first of several callers with simultaneous outcomes waits for the others."""
SLOWER_AT_ONCE = 4.0
"""The factor by which a PUT may exceed the average to count towards it.

A process may have been stopped in a PUT for a day, and should not be patient for weeks.
"""
STALLED_S = 0.00001
"""The log's time advances by less after a client's clock was ahead, so such intervals show nothing."""
EARLIER_PUTS = 0.005, 0.16
EARLIER_GROWTH = 1.5
"""How much earlier to look after each successful look, until a look was too early, which costs a request.

The step grows, because a client that looks late would stay late with small steps.
"""


class LogPace:
    """A process's measurements of a log."""

    def __init__(self, now_s: Callable[[], float], random: Callable[[], float]) -> None:
        self.now_s = now_s
        self._random = random
        self.put_s = FIRST_PUT_S
        self._interval_s = 3 * FIRST_PUT_S
        self._last_put_s = 0.0  # by the clock of the client that put it
        self._lag_s: float | None = None
        """How far our clock is ahead of theirs, plus the delay until a version is seen after its put."""
        self._earlier_puts = EARLIER_PUTS[0]
        self._missed_s = 0.0  # when the next version was not there yet
        self._combined_s = float("-inf")
        self._since_s = self.now_s()
        self._patience_s = 0.0
        self.start_waiting()

    def measured_put(self, took_s: float) -> None:
        self.put_s += 0.3 * (min(took_s, SLOWER_AT_ONCE * self.put_s) - self.put_s)

    def start_waiting(self, turns: int = 0) -> None:
        """Be patient from now on: until `turns` clients could have begun to combine, or for some PUTs."""
        is_alone = self.now_s() > self._combined_s + self.linger_s
        low, high = PATIENCE_ALONE_PUTS if is_alone else PATIENCE_PUTS
        puts = TURN_PUTS * min(turns, TURNS_MAX) if turns else low + (high - low) * self._random()
        self._since_s, self._patience_s = self.now_s(), puts * self.put_s

    def combined(self) -> None:
        """Record that another client combines, and wait for it from now on."""
        self._combined_s = self.now_s()
        self.start_waiting()

    @property
    def is_impatient(self) -> bool:
        return self.now_s() - self._since_s > self._patience_s

    @property
    def linger_s(self) -> float:
        return max(LINGER_MIN_S, LINGER_PUTS * self.put_s)

    @property
    def company_s(self) -> float:
        return COMPANY_PUTS * self.put_s

    def seen(self, commit: Commit, *, looked_s: float | None = None) -> None:
        """Learn from a version that was just found, by a look that began at `looked_s`, or after another version."""
        put_s = commit.time_us / 1e6
        if self._last_put_s:
            elapsed_s = put_s - self._last_put_s
            if elapsed_s < STALLED_S:
                elapsed_s = min(self._interval_s, self.put_s)
            self._interval_s += 0.3 * (min(elapsed_s, 8 * self.put_s) - self._interval_s)
        self._last_put_s = put_s
        if looked_s is not None:
            self._found(looked_s - put_s, self._missed_s - put_s if self._missed_s else None)
        self._missed_s = 0.0

    def _found(self, late_s: float, early_s: float | None) -> None:
        """Move the time of the next look: the version existed `late_s` after its put, but not `early_s` after it."""
        least, greatest = EARLIER_PUTS
        lag_s = self._lag_s
        longest_s = self._interval_s + 4 * self.put_s
        if (
            early_s is not None and late_s - early_s <= longest_s
        ):  # not a look for a version that it then put itself
            self._lag_s = early_s + 0.75 * (late_s - early_s)
            self._earlier_puts = least
        elif lag_s is None or abs(late_s - lag_s) > longest_s:
            self._lag_s = late_s  # from another client, with another clock
        else:
            self._lag_s = min(lag_s, late_s) - self._earlier_puts * self.put_s
            self._earlier_puts = min(EARLIER_GROWTH * self._earlier_puts, greatest)

    def missed(self, looked_s: float) -> None:
        """Learn that the next version was not there yet when a look for it began."""
        self._missed_s = looked_s

    def next_look_s(self, misses: int) -> float:
        """Return the wait before the next look, after so many looks that were too early.

        Each wait is longer than the wait before. If processors are scarce, frequent looks would only delay
        the version.
        """
        if misses:
            soon_s = max(self.put_s / 6, self._interval_s / 4)
            return min(soon_s * (1 << min(misses - 1, 8)), max(self._interval_s, soon_s))
        due_s = self._last_put_s + self._interval_s + (self._lag_s or 0.0) - self.now_s()
        return min(max(0.0, due_s), 2 * self._interval_s)
