"""The cost of a command, on stderr: its requests, by operation and kind.

It covers the operations of catalogs, their work in other threads, and stores that the command opens itself. It must
not know the purpose of the command.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from lakelog.catalog import Observation
from lakelog.cli import answer
from lakelog.log import wait_for_background
from lakelog.log.clocks import steady_clock_us
from lakelog.log.costs import CostTally, tallied


@dataclass(slots=True)
class _Cost:
    """The cost of all operations of the same name."""

    calls: int = 0
    requests: Counter[str] = field(default_factory=Counter)
    bytes_read: int = 0
    bytes_written: int = 0
    attempts: int = 0
    rebases: int = 0
    waited_s: float = 0.0
    duration_s: float = 0.0

    def add(self, seen: Observation | CostTally, calls: int = 1, duration_s: float = 0.0) -> None:
        self.calls += calls
        self.requests.update(seen.requests)
        self.bytes_read += seen.bytes_read
        self.bytes_written += seen.bytes_written
        self.attempts += seen.attempts
        self.rebases += seen.rebases
        self.waited_s += seen.waited_s
        self.duration_s += duration_s

    def text(self) -> str:
        parts = [_requests(self.requests)]
        parts += [f"{answer.size(self.bytes_read)} read"] if self.bytes_read else []
        parts += [f"{answer.size(self.bytes_written)} written"] if self.bytes_written else []
        parts += [f"{self.attempts} versions put"] if self.attempts > 1 else []
        parts += [f"{self.rebases} rebased"] if self.rebases else []
        parts += [f"{self.waited_s:.2f} s of waiting"] if self.waited_s >= 0.005 else []
        return ", ".join([*parts, f"in {self.duration_s:.3f} s"])


class Costs:
    """The hook of a command's catalogs. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_operation: dict[str, _Cost] = {}
        self._total = _Cost()

    def __call__(self, seen: Observation) -> None:
        with self._lock:
            self._by_operation.setdefault(seen.operation, _Cost()).add(seen, duration_s=seen.duration_s)
            self._total.add(seen)

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Run a command inside. At the end, or after an error, its cost is printed."""
        tally, begun_us = CostTally(), steady_clock_us()
        try:
            with tallied(tally):
                yield
        finally:
            wait_for_background()
            self._report(tally, (steady_clock_us() - begun_us) / 1e6)

    def _report(self, nearby_tally: CostTally, duration_s: float) -> None:
        for operation, cost in self._by_operation.items():
            times = f" ({cost.calls:,} times)" if cost.calls > 1 else ""
            answer.say(f"lakelog: {operation}{times}: {cost.text()}", err=True)
        self._total.add(nearby_tally, duration_s=duration_s)
        answer.say(f"lakelog: in all: {self._total.text()}", err=True)


def _requests(requests: Mapping[str, int]) -> str:
    count = sum(requests.values())
    if not count:
        return "no requests"
    kinds = ", ".join(f"{kind} {number:,}" for kind, number in sorted(requests.items()))
    return f"{count:,} request{'' if count == 1 else 's'} ({kinds})"
