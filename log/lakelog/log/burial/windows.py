"""The windows of a base: in which order versions become tombstones, and how far that has come.

The windows of a base begin after the version of the base before it, which was made once all versions up to there were
tombstones. The last version of a window is its last tombstone, and a window is begun once those before it are done: so
a cleaner that goes on after another finds by a search where, and looks at one window (see README.md, *Expiry*).
"""

from collections.abc import Iterable, Iterator

from lakelog.log.errors import FormatError
from lakelog.log.format import Base, Tombstone
from lakelog.log.replay import BATCH_MAX, Replay
from lakelog.log.view import S

BURIED_TOGETHER = 4096
"""Versions of a window: so many at most can be commits among tombstones. It is part of the format: a cleaner that knows
a smaller one would leave commits behind."""


def is_buried(replay: Replay[S], base: Base) -> bool:
    """Return whether expiry up to `base` has ended, except perhaps for manifests and snapshots: the version of the base
    is the last to become a tombstone. One GET."""
    return _is_tombstone(replay, base.root.version)


def unfinished(replay: Replay[S], base: Base) -> list[range]:
    """Return the windows of a base of which not all are tombstones, in their order; any version of the first one may be
    one. One GET where there are none, else two and a search."""
    if is_buried(replay, base):
        return []
    windows = windows_of(versions_of(replay, base))
    low, high = 0, len(windows) - 1
    while low < high:
        middle = (low + high) // 2
        if _is_tombstone(replay, windows[middle][-1]):
            low = middle + 1
        else:
            high = middle
    return windows[low:]


def newest_tombstone(replay: Replay[S], base: Base) -> int:
    """Return the newest version that is a tombstone, 0 where none is. One GET where expiry up to `base`, the last one,
    has ended; else a search, and up to one for each version of a window."""
    for window in unfinished(replay, base)[:1]:
        for end in range(window[-1], window[0] - 1, -BATCH_MAX):
            versions = range(max(window[0], end - BATCH_MAX + 1), end + 1)
            found = list(zip(versions, replay.get_versions(versions), strict=True))
            for version, data in reversed(found):
                if data is not None and isinstance(replay.entry(version, data), Tombstone):
                    return version
        return window[0] - 1
    return base.root.version


def versions_of(replay: Replay[S], base: Base) -> range:
    """Return the versions that a base lets expire: after the base before it, up to its own. One GET, none for the first
    base."""
    if base.number == 1:
        return range(1, base.root.version + 1)
    key = replay.keys.base(base.number - 1)
    data = replay.store.get(key)
    if data is None:
        raise FormatError(f"{replay.at(key)} is missing; restore it from a backup")
    return range(replay.base(base.number - 1, data).root.version + 1, base.root.version + 1)


def windows_of(versions: range) -> list[range]:
    """Return the windows of successive versions."""
    return [versions[start : start + BURIED_TOGETHER] for start in range(0, len(versions), BURIED_TOGETHER)]


def runs(versions: Iterable[int]) -> Iterator[range]:
    """Yield the runs of successive numbers, which are given in their order."""
    run = range(0)
    for version in versions:
        if run and version == run.stop:
            run = range(run.start, version + 1)
        else:
            if run:
                yield run
            run = range(version, version + 1)
    if run:
        yield run


def _is_tombstone(replay: Replay[S], version: int) -> bool:
    data = replay.store.get(replay.keys.commit(version))
    return data is not None and isinstance(replay.entry(version, data), Tombstone)
