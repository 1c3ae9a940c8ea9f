"""What a log takes from outside: clock, ids, patience. One value per process; tests and the simulation swap it."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lakelog.log.background import run_in_background
from lakelog.log.clocks import host_clock_us
from lakelog.log.ids import new_id
from lakelog.log.parallel import run_in_parallel


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """`features` are the feature flags that the rooms above know, so that their logs are not refused.

    A snapshot is written by the committer of every version divisible by `snapshot_every_versions` and of every
    commit of at least `snapshot_size_bytes` (sidecars included): no state to keep, and only one of many writers
    does it. `in_background` runs it; 0 versions switch snapshots off.

    An undecided transaction of another client at the head of a log is waited for `patience_s` and
    `patience_each_s` more for each of its participants, then aborted. `in_parallel` runs what is independent.
    """

    clock_us: Callable[[], int] = host_clock_us
    new_id: Callable[[], str] = new_id
    sleep_s: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random
    wait: Callable[[threading.Event], object] = threading.Event.wait
    in_background: Callable[[str, Callable[[], None]], None] = run_in_background
    in_parallel: Callable[[Sequence[Callable[[], None]]], None] = run_in_parallel
    features: frozenset[str] = frozenset()
    snapshot_every_versions: int = 20
    snapshot_size_bytes: int = 64 * 1024
    put_tries: int = 8
    rebases_max: int = 1000
    patience_s: float = 2.0
    patience_each_s: float = 0.25
    participants_max: int = 10_000
    transaction_tries: int = 20
