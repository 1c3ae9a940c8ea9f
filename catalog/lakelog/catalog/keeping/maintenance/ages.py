"""Ages: their meaning, and the time by which they are judged.

Rule: nothing is deleted for its age by a time that only this host believes. The store's own time is asked
first. On a local folder that is usually the host's clock too, and no request helps. Then the newest commit is
the only other evidence. If the clock is more than a day past it, and only that gap makes something old
enough, the user has to confirm the clock. An age of 0 needs no clock.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection

from lakelog.catalog.core.logs import FOREVER_US, LogScope, NameTree, chosen_scope
from lakelog.catalog.errors import ClockNotTrusted
from lakelog.catalog.retention import DAY_US
from lakelog.catalog.times import time_text
from lakelog.log.errors import InvalidInput

GAP_MAX_US = DAY_US

Goes = Callable[[int], Collection[str]]
"""Returns the names of all that would be deleted if ages are judged by that time."""


def age_us(name: str, age: dt.timedelta) -> int:
    """Return an age in microseconds. Raises InvalidInput for a negative age, or for another type."""
    if not isinstance(age, dt.timedelta) or age < dt.timedelta(0):
        raise InvalidInput(f"{name} is {age!r}: give a datetime.timedelta of 0 or more")
    return round(age / dt.timedelta(microseconds=1))


def until_us(now_us: int, age: int) -> int:
    """Return the last moment that is so long ago at `now_us`. Everything is older than age 0, by any clock."""
    return now_us - age if age else FOREVER_US


def judging_us(tree: NameTree, scope: LogScope, goes: Goes, *, only_look: bool, trust_clock: bool) -> int:
    """Return the time by which the ages in `scope` are judged.

    Raises ClockNotTrusted if that time proves nothing, and something would be deleted by it. Makes no request
    if the store has a clock of its own, or if the newest commit in `scope` is of the last day. Otherwise
    `goes` is called twice. If the answers differ, all logs of the warehouse are read to find a newer commit.
    """
    logs = tree.logs
    near = [target.tracked.location for target in scope.namespaces] + [
        target.tracked.location for target in scope.tables
    ]
    place = near[0] if near else ""
    now_us = logs.clocks.likely_us(place)
    if only_look or trust_clock or not (logs.clock_is_the_hosts or logs.clocks.now_us(place) is None):
        return now_us
    newest_us = logs.clocks.seen_us
    unproven = _unproven(goes, now_us, newest_us)
    if unproven:
        chosen_scope(tree)  # all commits count, and reading them records their times
        unproven = (
            _unproven(goes, now_us, logs.clocks.seen_us) if logs.clocks.seen_us > newest_us else unproven
        )
    if not unproven:
        return now_us
    raise ClockNotTrusted(
        f"by the clock of this host it is {time_text(now_us)}, but the newest commit of {logs.warehouse} is of "
        f"{time_text(logs.clocks.seen_us)}, and only by that gap something is old enough ({len(unproven)} in all, "
        f"{min(unproven)} among them). Nothing was changed. Compare the clock with another one; where it is right, run "
        "this again with --trust-clock (SQL: trust_clock => true, Python: trust_clock=True)"
    )


def _unproven(goes: Goes, now_us: int, newest_us: int) -> set[str]:
    """Return the names that are old enough only by the clock, and not at the time of the newest commit."""
    return set() if now_us - newest_us <= GAP_MAX_US else set(goes(now_us)) - set(goes(newest_us))
