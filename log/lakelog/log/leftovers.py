"""Which of a log's objects may be deleted: decided without a clock, and without trusting that a listing is complete.

A sidecar names the version that it was written for: once that version exists and does not refer to it, no commit ever
will. Manifests and snapshots are released by a base. A proposal is of no use once all versions of its window exist.
"""

from collections.abc import Iterator
from itertools import islice

from lakelog.log.format import Base, Commit
from lakelog.log.grammar import is_sidecar
from lakelog.log.keys import blob_version, is_versioned
from lakelog.log.log import Log
from lakelog.log.replay import BATCH_MAX, given_up_by
from lakelog.log.view import S, View


def last_base_from(log: Log[S], view: View[S]) -> Base | None:
    """Return the last base, walking on from that of `view`; None where there is none. One GET, and one for each base
    on the way."""
    last: Base | None = None
    number = max(view.base, 1)
    while (data := log.store.get(log.keys.base(number))) is not None:
        last = log.replay.base(number, data)
        number += 1
    return last


def size_of_commits(log: Log[S], first: int, last: int) -> tuple[int, int]:
    """Return how many versions from `first` to `last` are not tombstones, and their bytes with their sidecars. One GET
    for each version."""
    count = size_bytes = 0
    for start in range(first, last + 1, BATCH_MAX):
        versions = range(start, min(start + BATCH_MAX, last + 1))
        for version, data in zip(versions, log.replay.get_versions(versions), strict=True):
            entry = log.replay.entry(version, data) if data is not None else None
            if data is not None and isinstance(entry, Commit):
                count += 1
                size_bytes += len(data) + sum(sidecar.size_bytes for sidecar in entry.sidecars)
    return count, size_bytes


def unreferenced(log: Log[S], view: View[S], base: Base | None) -> dict[str, int]:
    """Return the keys of the objects that nothing refers to or ever will, with their sizes. `view` is of the head.

    Four LISTs, and one GET for each version that has sidecars.
    """
    found: dict[str, int] = {}
    if base is not None:
        manifests = dict(log.store.list_sizes(log.keys.manifests))
        names = [key.removeprefix(log.keys.manifests) for key in manifests]
        found |= {
            log.keys.manifest(name): manifests[log.keys.manifest(name)] for name in given_up_by(base, names)
        }
        for key, size_bytes in log.store.list_sizes(log.keys.snapshots):
            version = log.keys.snapshot_version(key)
            if version is not None and version <= base.root.version:
                found[key] = size_bytes
    return found | _sidecars(log, view) | dict(_proposals(log, view))


PROPOSALS_MAX = 100_000
"""That are looked at in one run, the oldest first, however many clients have left there; the next run goes on."""


def _proposals(log: Log[S], view: View[S]) -> Iterator[tuple[str, int]]:
    """Yield what is in the inbox and can no longer be applied, whatever it is."""
    for key, size_bytes in islice(log.store.list_sizes(log.keys.inbox), PROPOSALS_MAX):
        until = log.keys.inbox_until(key)
        if view.purged or (until is not None and until <= view.version):
            yield key, size_bytes


def _sidecars(log: Log[S], view: View[S]) -> dict[str, int]:
    place = log.keys.sidecar("")
    by_version: dict[int, dict[str, int]] = {}
    for key, size_bytes in log.store.list_sizes(place):
        name = key.removeprefix(place)
        if is_sidecar(name) and is_versioned(name) and blob_version(name) <= view.version:
            by_version.setdefault(blob_version(name), {})[name] = size_bytes
    found: dict[str, int] = {}
    versions = sorted(by_version)
    for start in range(0, len(versions), BATCH_MAX):
        batch = versions[start : start + BATCH_MAX]
        for version, data in zip(batch, log.replay.get_versions(batch), strict=True):
            entry = log.replay.entry(version, data) if data is not None else None
            if entry is None:
                continue  # the log is damaged: nothing may be deleted
            used = {sidecar.name for sidecar in entry.sidecars} if isinstance(entry, Commit) else set()
            for name, size_bytes in by_version[version].items():
                if name not in used:
                    found[log.keys.sidecar(name)] = size_bytes
    return found
