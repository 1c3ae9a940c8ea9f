"""The outside of a log: clock, ids, patience. A process has a single value; tests and the simulation replace it."""

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

_SYSTEM = random.SystemRandom()


def system_random() -> float:
    """Return a number from 0 to 1, without 1, of the operating system's generator.

    Threads of logs draw too. Python's own generator belongs to the users, who may have seeded it. Processes that
    are forked from one another would draw the same numbers from it.
    """
    return _SYSTEM.random()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """The settings of logs.

    The committer writes a snapshot of every version divisible by `snapshot_every_versions`, and of every
    commit of at least `snapshot_size_bytes`. That size includes sidecars, and grows up to 16 times if many
    changes share the commit. So there is no state to keep, and only a single writer does it. `in_background`
    runs it. With 0 versions there are no snapshots.

    The hint alone is written for every version divisible by the number that `hint_every_versions` returns for
    its state. It suits states that need no manifests and are read far more often than changed. If it is None,
    the room above decides for its logs, or the hint is written only with snapshots.

    An undecided transaction of another client at the head of a log is aborted after `patience_s`, plus
    `patience_each_s` for each participant. `in_parallel` runs independent functions.

    `blobs_kept_bytes` limits how much of its dumps' blobs a log's state keeps in memory, most recently used
    first. Other blobs are read again.

    With `proposals`, changes that lose races to other processes are proposed to them. A thread started by
    `in_thread` commits the proposals of others. Readers of the log then need the feature. If it is None, only
    object stores have proposals, because their PUTs take long; folders gain nothing.
    """

    clock_us: Callable[[], int] = host_clock_us
    new_id: Callable[[], str] = new_id
    sleep_s: Callable[[float], None] = time.sleep
    random: Callable[[], float] = system_random
    wait: Callable[[threading.Event, float | None], object] = threading.Event.wait
    monotonic_s: Callable[[], float] = time.monotonic
    in_thread: Callable[[str, Callable[[], None]], None] = run_in_thread
    in_background: Callable[[str, Callable[[], None]], None] = run_in_background
    in_parallel: Callable[[Sequence[Callable[[], None]]], None] = run_in_parallel
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
