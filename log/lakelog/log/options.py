"""What a log takes from outside: clock, ids, patience. One value per process; tests and the simulation swap it."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lakelog.log.background import run_in_background
from lakelog.log.clocks import host_clock_us
from lakelog.log.ids import new_id
from lakelog.log.parallel import run_in_parallel, run_in_thread


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """`features` are the feature flags that the rooms above know, so that their logs are not refused.

    A snapshot is written by the committer of every version divisible by `snapshot_every_versions` and of every
    commit of at least `snapshot_size_bytes` (sidecars included; up to 16 times that where many changes share it): no
    state to keep, and only one of many writers does it. `in_background` runs it; 0 versions switch snapshots off. The
    hint alone is written by the committer of every version divisible by what `hint_every_versions` returns for its
    state: for states that need no manifests, and that are read far more often than changed. None: as the room above has
    it for its logs, or with snapshots only.

    An undecided transaction of another client at the head of a log is waited for `patience_s` and
    `patience_each_s` more for each of its participants, then aborted. `in_parallel` runs what is independent.

    `blobs_kept_bytes` is how much of what its dumps have beside their roots a log's state may keep in memory, of what
    was asked for last; more is read again.

    With `proposals`, changes that lose races to other processes are proposed to these, and what they propose is
    committed for them, by a thread that `in_thread` begins. Readers of the log then need the feature for it. None: in
    object stores, whose PUTs take long; in a folder they gain nothing.
    """

    clock_us: Callable[[], int] = host_clock_us
    new_id: Callable[[], str] = new_id
    sleep_s: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random
    wait: Callable[[threading.Event, float | None], object] = threading.Event.wait
    monotonic_s: Callable[[], float] = time.monotonic
    in_thread: Callable[[str, Callable[[], None]], None] = run_in_thread
    in_background: Callable[[str, Callable[[], None]], None] = run_in_background
    in_parallel: Callable[[Sequence[Callable[[], None]]], None] = run_in_parallel
    features: frozenset[str] = frozenset()
    snapshot_every_versions: int = 20
    snapshot_size_bytes: int = 64 * 1024
    hint_every_versions: Callable[[Any], int] | None = None
    put_tries: int = 8
    rebases_max: int = 1000
    patience_s: float = 2.0
    patience_each_s: float = 0.25
    participants_max: int = 10_000
    transaction_tries: int = 20
    blobs_kept_bytes: int = 128 * 1024 * 1024
    proposals: bool | None = None

    def proposes(self, *, in_bucket: bool) -> bool:
        """Return whether changes of logs in a bucket, or elsewhere, are proposed."""
        if self.proposals is not None:
            return self.proposals
        return in_bucket
