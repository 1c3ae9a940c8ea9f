"""What an engine's executors do of expiry and vacuum where that is much: tombstones side by side, and deletions.

Both are decided here, and in an order that is kept here: executors get what may come in any order, twice or late. What
they leave of a window, and what says that the others are done, this process does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lakelog.log import Log
from lakelog.log.burial import Buried, Bury, Done, bury_versions, runs
from lakelog.log.format import FEATURES

MANY_VERSIONS = 1000
"""With more versions of a window executors make the tombstones."""

MANY_OBJECTS = 100_000
"""With more objects of a table executors delete them."""

OBJECTS_AT_ONCE = 50_000
"""That executors are given to delete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsToBury:
    """Versions of the log whose objects are in the folder `log`, a URL, from `first` on, before `until`. `name` is that
    of the table or namespace, of which what is before the version `last` expires; commits that need other `features`
    than these are left."""

    name: str
    log: str
    first: int
    until: int
    last: int
    features: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsBuried:
    """How many commits have become tombstones, and their bytes with their sidecars. `left` are none, in their order."""

    commits: int
    size_bytes: int
    left: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """`bury` puts tombstones over plain commits, each after it has deleted the commit's sidecars, and returns once all
    are acknowledged. `delete` deletes objects by their URLs. Either may be called from several threads."""

    bury: Callable[[VersionsToBury], VersionsBuried]
    delete: Callable[[Sequence[str]], None]


def burying(engine: Engine | None, name: str, last: int) -> Bury | None:
    """Return what makes tombstones of the windows of a log by that name, of which versions before `last` expire."""
    if engine is None:
        return None
    bury_there = engine.bury

    def bury(log: Log[Any], window: range, progress: Done, buried: Buried) -> None:
        if len(window) <= MANY_VERSIONS:
            bury_versions(log, window, progress, buried)
            return
        done = bury_there(
            VersionsToBury(
                name=name,
                log=log.replay.at(log.keys.log),
                first=window[0],
                until=window[-1],
                last=last,
                features=tuple(sorted(log.options.features | FEATURES)),
            )
        )
        buried(done.commits, done.size_bytes)
        for run in runs((*done.left, window[-1])):
            bury_versions(log, run, progress, buried)

    return bury
