"""When to look for the next version, and how long to wait for one. None of this is safety: it saves requests and time.

A PUT is the unit, which each process measures for itself. Clocks may be wrong: what is learned of another client's is
learned anew, and no wait is longer than a few intervals.
"""

from __future__ import annotations

from collections.abc import Callable

from lakelog.log.format import Commit, Json

FIRST_PUT_S = 0.06
PATIENCE_PUTS = 4.0, 8.0
TURN_PUTS = 4.0
"""For each client that is to combine first: it lists, reads, writes a file and puts."""
TURNS_MAX = 8
LINGER_PUTS = 8.0
"""How long after its last caller a process goes on: a caller that writes one thing after another comes back."""
LINGER_MIN_S = 0.05
COMPANY_PUTS = 0.2
"""How long the first of several callers that had an outcome at once waits for the others."""


class Pace:
    """What one process has measured of one log."""

    def __init__(self, now_s: Callable[[], float], random: Callable[[], float]) -> None:
        self.now_s = now_s
        self._random = random
        self.put_s = FIRST_PUT_S
        self._interval_s = 3 * FIRST_PUT_S
        self._last_put_s = 0.0  # by the clock of the client that put it
        self._last_writer: dict[str, Json] | None = None
        self._lag_s = 0.0  # our clock ahead of theirs, and how long after its put a version is seen
        self._since_s = self.now_s()
        self._patience_s = 0.0
        self.start_waiting()

    def measured_put(self, took_s: float) -> None:
        self.put_s += 0.3 * (took_s - self.put_s)

    def start_waiting(self, turns: int = 0) -> None:
        """Be patient from now on: until `turns` others could have begun to combine, or for some PUTs."""
        low, high = PATIENCE_PUTS
        puts = TURN_PUTS * min(turns, TURNS_MAX) if turns else low + (high - low) * self._random()
        self._since_s, self._patience_s = self.now_s(), puts * self.put_s

    @property
    def is_impatient(self) -> bool:
        return self.now_s() - self._since_s > self._patience_s

    @property
    def linger_s(self) -> float:
        return max(LINGER_MIN_S, LINGER_PUTS * self.put_s)

    @property
    def company_s(self) -> float:
        return COMPANY_PUTS * self.put_s

    def seen(self, commit: Commit, *, at_first_look: bool) -> None:
        """Learn from a version that was just found."""
        put_s = commit.time_us / 1e6
        if commit.writer != self._last_writer:
            self._lag_s, self._last_writer = self.now_s() - put_s, commit.writer
        elif at_first_look:
            self._lag_s -= 0.015 * self.put_s
        if self._last_put_s:
            passed_s = min(max(0.0, put_s - self._last_put_s), 8 * self.put_s)
            self._interval_s += 0.3 * (passed_s - self._interval_s)
        self._last_put_s = put_s

    def missed(self) -> None:
        self._lag_s += 0.15 * self.put_s

    def next_look_s(self, misses: int) -> float:
        """Return how long to wait before the next look, after so many that were too early. Each waits longer than the
        one before it: where processors are what is short, looks of all would only make the version come later."""
        if misses:
            soon_s = max(self.put_s / 6, self._interval_s / 4)
            return min(soon_s * (1 << min(misses - 1, 8)), max(self._interval_s, soon_s))
        due_s = self._last_put_s + self._interval_s + self._lag_s - self.now_s()
        return min(max(0.0, due_s), 2 * self._interval_s)
