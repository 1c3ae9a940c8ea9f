"""The work of an engine's executors in large expiries and vacuums: parallel tombstones, and deletions.

This module decides on both, and keeps the order. Executors get work that may happen in any order, twice or
late. This process completes the versions of a window that they leave, and records that the others are done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lakelog.log import Log
from lakelog.log.burial import Buried, BuriedUpTo, Bury, bury_versions, runs
from lakelog.log.format import FEATURES

MANY_VERSIONS = 1000
"""If a window has more versions, executors make its tombstones."""

MANY_OBJECTS = 100_000
"""If a table has more objects, executors delete them."""

OBJECTS_AT_ONCE = 50_000
"""The number of objects that executors delete in a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsToBury:
    """Versions from `first` on, before `until`, of the log whose objects are in the folder `log`, a URL.

    `name` is the name of the table or namespace. Its versions before `last` expire. Commits that need other
    `features` than these are left.
    """

    name: str
    log: str
    first: int
    until: int
    last: int
    features: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsBuried:
    """The number of commits that became tombstones, and their bytes with sidecars.

    `left` versions did not, in order.
    """

    commits: int
    size_bytes: int
    left: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An engine's functions, which several threads may call.

    `bury` puts tombstones over plain commits, each after it has deleted the commit's sidecars. It returns
    once all are acknowledged. `delete` deletes objects by their URLs.
    """

    bury: Callable[[VersionsToBury], VersionsBuried]
    delete: Callable[[Sequence[str]], None]


def burying(engine: Engine | None, name: str, last: int) -> Bury | None:
    """Return a function that makes tombstones of the windows of a log, whose versions before `last` expire."""
    if engine is None:
        return None
    bury_there = engine.bury

    def bury(log: Log[Any], window: range, progress: BuriedUpTo, buried: Buried) -> None:
        if len(window) <= MANY_VERSIONS:
            bury_versions(log, window, progress, buried)
            return
        result = bury_there(
            VersionsToBury(
                name=name,
                log=log.replay.at(log.keys.log),
                first=window[0],
                until=window[-1],
                last=last,
                features=tuple(sorted(log.replay.features | FEATURES)),
            )
        )
        buried(result.commits, result.size_bytes)
        for run in runs((*result.left, window[-1])):
            bury_versions(log, run, progress, buried)

    return bury
