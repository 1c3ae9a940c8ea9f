"""The windows of a base: the order in which versions become tombstones, and the progress of that.

A base's windows begin after the version of the base before it, which was made once all versions up to its own
were tombstones. A window's last version becomes its last tombstone, and a window begins once those before it
are done. So a cleaner that continues another's work finds its place by a search, and looks at one window (see
log/README.md, *Expiry*).
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from lakelog.log.errors import FormatError
from lakelog.log.format import LogBase, Tombstone
from lakelog.log.replay import BATCH_MAX, LogReplay
from lakelog.log.view import S

BURIED_TOGETHER = 4096
"""Versions of a window: at most so many commits can be among tombstones.

This is part of the format. A cleaner with a smaller number would leave commits behind.
"""


def is_buried(replay: LogReplay[S], base: LogBase) -> bool:
    """Return whether expiry up to `base` has ended, except perhaps for manifests and snapshots.

    The version of the base is the last to become a tombstone. Makes a GET.
    """
    return _is_tombstone(replay, base.root.version)


def unfinished(replay: LogReplay[S], base: LogBase) -> Iterator[range]:
    """Yield a base's windows that are not all tombstones, in order; any version of the first may be a tombstone.

    Makes a GET if there are none, else two and a search. They are never a list, because a damaged base may have any
    version.
    """
    if is_buried(replay, base):
        return
    versions = versions_of(replay, base)
    low, high = 0, (len(versions) - 1) // BURIED_TOGETHER
    while low < high:
        middle = (low + high) // 2
        if _is_tombstone(replay, _window(versions, middle)[-1]):
            low = middle + 1
        else:
            high = middle
    yield from windows_of(versions[low * BURIED_TOGETHER :])


def newest_tombstone(replay: LogReplay[S], base: LogBase) -> int:
    """Return the newest version that is a tombstone, 0 if there is none.

    Makes a GET if expiry up to `base`, the last base, has ended. Otherwise makes a search, and up to a GET
    for each version of a window.
    """
    for window in islice(unfinished(replay, base), 1):
        for end in range(window[-1], window[0] - 1, -BATCH_MAX):
            versions = range(max(window[0], end - BATCH_MAX + 1), end + 1)
            versions_data = list(zip(versions, replay.get_versions(versions), strict=True))
            for version, data in reversed(versions_data):
                if data is not None and isinstance(replay.entry(version, data), Tombstone):
                    return version
        return window[0] - 1
    return base.root.version


def versions_of(replay: LogReplay[S], base: LogBase) -> range:
    """Return the versions that a base lets expire: after the base before it, up to its own.

    Makes a GET, none for the first base.
    """
    if base.number == 1:
        return range(1, base.root.version + 1)
    key = replay.keys.base(base.number - 1)
    data = replay.store.get(key)
    if data is None:
        raise FormatError(f"{replay.at(key)} is missing; restore it from a backup")
    return range(replay.base(base.number - 1, data).root.version + 1, base.root.version + 1)


def windows_of(versions: range) -> Iterator[range]:
    """Yield the windows of successive versions."""
    for number in range(-(-len(versions) // BURIED_TOGETHER)):
        yield _window(versions, number)


def _window(versions: range, number: int) -> range:
    return versions[number * BURIED_TOGETHER : (number + 1) * BURIED_TOGETHER]


def runs(versions: Iterable[int]) -> Iterator[range]:
    """Yield the runs of successive numbers, from numbers in order."""
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


def _is_tombstone(replay: LogReplay[S], version: int) -> bool:
    data = replay.store.get(replay.keys.commit(version))
    return data is not None and isinstance(replay.entry(version, data), Tombstone)
