"""Expiry by workers side by side, some of which are lost, or come back late; with windows of a few versions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from tests.sim.projection import KNOWN

from lakelog.log import Log, StorageError, expiry
from lakelog.log.burial import bury_versions, runs, tombstones, windows
from lakelog.log.format import Commit, Tombstone, decode_base, decode_entry, encode
from lakelog.log.keys import LogKeys
from lakelog.log.stores import ObjectStore


@contextmanager
def small_windows(rng: random.Random) -> Iterator[None]:
    with (
        patch.object(windows, "BURIED_TOGETHER", rng.randint(1, 6)),
        patch.object(tombstones, "BURIED_AT_ONCE", rng.randint(1, 4)),
    ):
        yield


def expire_in_a_job(log: Log[Any], version: int, rng: random.Random) -> int:
    """As `expiry.expire`, by an engine's workers (see `worker`). The job is given up at the first one that fails."""
    late: list[Callable[[], None]] = []
    steps = expiry.expiring(log, version)
    try:
        while True:
            window = next(steps)
            others = list(window[:-1])
            left = [each for each in rng.sample(others, len(others)) if not worker(log, each, rng, late)]
            for run in runs([*sorted(left), window[-1]]):
                bury_versions(log, run)
            if late and rng.random() < 0.3:
                late.pop(rng.randrange(len(late)))()
    except StopIteration as done:
        return int(done.value)
    finally:
        for work in late:
            work()


def worker(log: Log[Any], version: int, rng: random.Random, late: list[Callable[[], None]]) -> bool:
    """Make a tombstone of a plain commit, and return whether it is one now: intents, and what says of one how it ended,
    are left to the driver. A worker may be run twice, or be lost and come back when the others are done."""
    data = log.store.get(log.keys.commit(version))
    entry = None if data is None else log.replay.entry(version, data)
    if isinstance(entry, Tombstone):
        return True
    if entry is None or entry.intent is not None or entry.settles is not None:
        return False

    def put() -> None:
        log.store.delete([log.keys.sidecar(each.name) for each in entry.sidecars])
        log.store.put(log.keys.commit(version), encode(tombstones.tombstone_of(entry)))

    def comes_back() -> None:
        try:
            put()
        except StorageError:
            return

    if rng.random() < 0.2:
        late.append(comes_back)
    put()
    return True


def buried_in_part(truth: ObjectStore, keys: LogKeys) -> list[str]:
    """Return the versions that cleaners would not look at again, though they are no tombstones."""
    problems: list[str] = []
    number = 1
    while (data := truth.get(keys.base(number))) is not None:
        version = decode_base(data, "base", KNOWN, number=number).root.version
        if isinstance(_entry(truth, keys, version), Tombstone):
            problems += [
                f"base {number} at version {version} is said to be done, and {each} is no tombstone"
                for each in range(1, version)
                if isinstance(_entry(truth, keys, each), Commit)
            ]
        number += 1
    return problems


def _entry(truth: ObjectStore, keys: LogKeys, version: int) -> Commit | Tombstone | None:
    data = truth.get(keys.commit(version))
    return None if data is None else decode_entry(data, f"version {version}", KNOWN)
