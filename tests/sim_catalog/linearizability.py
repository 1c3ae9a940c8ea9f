"""Whether a history of requests and answers fits into one order, each request taking effect between the two.

The search of Wing and Gong, with the memory of Lowe: which requests are done and the state after them is all that
matters, so no such pair is looked at twice. A request without an answer may take effect at any time after it, or never.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.sim_catalog.model import OK, Asked, State, outcomes

CONFIGURATIONS_MAX = 300_000
FOREVER = 2**62


class TooLong(Exception):
    """The history has too many orders to try."""


@dataclass
class Request:
    """What was asked by whom, from when to when, and what was answered. `ended_at` is FOREVER without an answer."""

    asked: Asked
    by: str
    begun_at: int
    ended_at: int = FOREVER
    answer: Any = None

    def __str__(self) -> str:
        ended_text = "…" if self.ended_at == FOREVER else str(self.ended_at)
        text = "no answer" if self.ended_at == FOREVER else self.answer
        return f"[{self.begun_at}-{ended_text}] {self.by}: {self.asked.kind} {self.asked.arguments} -> {text}"


def first_misfit(history: Sequence[Request], initial: State) -> list[Request]:
    """Return the shortest beginning of the history (by its answers) that fits into no order; none if all fits."""
    if _fits(history, initial):
        return []
    ends = sorted(request.ended_at for request in history if request.ended_at != FOREVER)
    low, high = 0, len(ends)
    while low + 1 < high:  # the first `low` answers fit, the first `high` do not
        middle = (low + high) // 2
        if _fits(_beginning_requests(history, ends[middle - 1]), initial):
            low = middle
        else:
            high = middle
    return sorted(_beginning_requests(history, ends[high - 1]), key=lambda request: request.begun_at)


def _beginning_requests(history: Sequence[Request], until: int) -> list[Request]:
    """Return what had been asked until then; what had not been answered yet is without an answer."""
    return [
        request if request.ended_at <= until else Request(request.asked, request.by, request.begun_at)
        for request in history
        if request.begun_at <= until
    ]


def _fits(history: Sequence[Request], initial: State) -> bool:
    requests = sorted(history, key=lambda request: request.begun_at)
    total = sum(1 << i for i, request in enumerate(requests) if request.ended_at != FOREVER)
    seen_pairs: set[tuple[int, State]] = set()
    todo = [(0, initial)]
    while todo:
        done_count, state = todo.pop()
        if done_count & total == total:
            return True
        if (done_count, state) in seen_pairs:
            continue
        seen_pairs.add((done_count, state))
        if len(seen_pairs) > CONFIGURATIONS_MAX:
            raise TooLong
        remaining_numbers = [i for i in range(len(requests)) if not done_count >> i & 1]
        first_end = min(requests[i].ended_at for i in remaining_numbers)
        for i in remaining_numbers:
            request = requests[i]
            if request.begun_at > first_end:
                break
            wanted_text = OK if request.ended_at == FOREVER else request.answer
            for answer, state_after in outcomes(state, request.asked):
                if answer == wanted_text and (state_after != state or request.ended_at != FOREVER):
                    todo.append((done_count | 1 << i, state_after))
    return False
