"""Whether a recorded history could have happened one operation after another, in an order that respects real time.

The logs show the order of the writes in each of them, and a read the version that it saw; whatever ended before
another one began came first. The history is strictly serializable exactly if all of this has no cycle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Event:
    """An operation from when it was begun to when it was answered (None: never). `writes` are the versions that it
    made, `reads` the versions that it saw, each by its log."""

    name: str
    begun_at: int
    ended_at: int | None
    writes: Mapping[str, int] = field(default_factory=dict)
    reads: Mapping[str, int] = field(default_factory=dict)


def cycle(events: Sequence[Event]) -> list[str]:
    """Return operations each of which has to come before the next, and the last before the first; none if it fits."""
    edges_after = _edges(events)
    waiting_numbers = [0] * len(events)
    for followers in edges_after:
        for i in followers:
            waiting_numbers[i] += 1
    ready = [i for i, count in enumerate(waiting_numbers) if not count]
    for i in ready:
        for follower in edges_after[i]:
            waiting_numbers[follower] -= 1
            if not waiting_numbers[follower]:
                ready.append(follower)
    remaining_numbers = {i for i in range(len(events)) if waiting_numbers[i]}
    if not remaining_numbers:
        return []
    # Each that is left comes after another that is left: walk back until one is met twice.
    before = {i: next(j for j in remaining_numbers if i in edges_after[j]) for i in remaining_numbers}
    path: list[int] = []
    at = min(remaining_numbers)
    while at not in path:
        path.append(at)
        at = before[at]
    return [events[i].name for i in reversed(path[path.index(at) :])]


def _edges(events: Sequence[Event]) -> list[set[int]]:
    numbers_after: list[set[int]] = [set() for _ in events]
    writers: dict[str, list[tuple[int, int]]] = {}
    for i, event in enumerate(events):
        for log, version in event.writes.items():
            writers.setdefault(log, []).append((version, i))
    for in_log in writers.values():
        in_log.sort()
        for (_, earlier), (_, later) in zip(in_log, in_log[1:], strict=False):
            numbers_after[earlier].add(later)
    for i, event in enumerate(events):
        for log, seen_read in event.reads.items():
            in_log = [(version, j) for version, j in writers.get(log, []) if j != i]
            if earlier_writers := [j for version, j in in_log if version <= seen_read]:
                numbers_after[earlier_writers[-1]].add(i)
            if later_writers := [j for version, j in in_log if version > seen_read]:
                numbers_after[i].add(later_writers[0])
    for i, event in enumerate(events):
        if event.ended_at is not None:
            numbers_after[i].update(
                j for j, other_event in enumerate(events) if other_event.begun_at > event.ended_at
            )
    return numbers_after
