"""The objects of a log that may be deleted, decided without a clock or trust in complete listings.

A sidecar's name has the version that it was written for. Once that version exists without referring to it, no
commit ever will. A base releases manifests and snapshots. A proposal is useless once all versions of its
window exist.
"""

from collections.abc import Iterator
from itertools import islice

from lakelog.log.format import Commit, LogBase
from lakelog.log.grammar import is_sidecar
from lakelog.log.keys import blob_version, is_versioned
from lakelog.log.log import Log
from lakelog.log.replay import BATCH_MAX, given_up_by
from lakelog.log.view import LogView, S


def last_base_from(log: Log[S], view: LogView[S]) -> LogBase | None:
    """Return the last base, searching from the base of `view`; None if there is none.

    Makes a GET, and another for each base on the way.
    """
    last: LogBase | None = None
    number = max(view.base, 1)
    while (data := log.store.get(log.keys.base(number))) is not None:
        last = log.replay.base(number, data)
        number += 1
    return last


def size_of_commits(log: Log[S], first: int, last: int) -> tuple[int, int]:
    """Return how many versions from `first` to `last` are not tombstones, and their bytes with sidecars.

    Makes a GET for each version.
    """
    count = size_bytes = 0
    for start in range(first, last + 1, BATCH_MAX):
        versions = range(start, min(start + BATCH_MAX, last + 1))
        for version, data in zip(versions, log.replay.get_versions(versions), strict=True):
            entry = log.replay.entry(version, data) if data is not None else None
            if data is not None and isinstance(entry, Commit):
                count += 1
                size_bytes += len(data) + sum(sidecar.size_bytes for sidecar in entry.sidecars)
    return count, size_bytes


def unreferenced(log: Log[S], view: LogView[S], base: LogBase | None) -> dict[str, int]:
    """Return the keys of the objects that nothing refers to or ever will, with their sizes. `view` is of the head.

    Makes four LISTs, and a GET for each version that has sidecars. Raises UnsupportedFormat if this client may
    not write to the log.
    """
    log.check_writable(view)
    sizes: dict[str, int] = {}
    if base is not None:
        manifests = dict(log.store.list_sizes(log.keys.manifests))
        names = [key.removeprefix(log.keys.manifests) for key in manifests]
        sizes |= {
            log.keys.manifest(name): manifests[log.keys.manifest(name)] for name in given_up_by(base, names)
        }
        for key, size_bytes in log.store.list_sizes(log.keys.snapshots):
            version = log.keys.snapshot_version(key)
            if version is not None and version <= base.root.version:
                sizes[key] = size_bytes
    return sizes | _sidecars(log, view) | dict(_proposals(log, view))


PROPOSALS_MAX = 100_000
"""Proposals that a run looks at, oldest first, however many there are. The next run continues."""


def _proposals(log: Log[S], view: LogView[S]) -> Iterator[tuple[str, int]]:
    """Yield the objects of the inbox that can no longer be applied, whatever they are."""
    for key, size_bytes in islice(log.store.list_sizes(log.keys.inbox), PROPOSALS_MAX):
        until = log.keys.inbox_until(key)
        if view.purged or (until is not None and until <= view.version):
            yield key, size_bytes


def _sidecars(log: Log[S], view: LogView[S]) -> dict[str, int]:
    place = log.keys.sidecar("")
    by_version: dict[int, dict[str, int]] = {}
    for key, size_bytes in log.store.list_sizes(place):
        name = key.removeprefix(place)
        if is_sidecar(name) and is_versioned(name) and blob_version(name) <= view.version:
            by_version.setdefault(blob_version(name), {})[name] = size_bytes
    sizes: dict[str, int] = {}
    versions = sorted(by_version)
    for start in range(0, len(versions), BATCH_MAX):
        batch = versions[start : start + BATCH_MAX]
        for version, data in zip(batch, log.replay.get_versions(batch), strict=True):
            entry = log.replay.entry(version, data) if data is not None else None
            if entry is None:
                continue  # The log is damaged, so nothing may be deleted.
            used_names = {sidecar.name for sidecar in entry.sidecars} if isinstance(entry, Commit) else set()
            for name, size_bytes in by_version[version].items():
                if name not in used_names:
                    sizes[log.keys.sidecar(name)] = size_bytes
    return sizes
