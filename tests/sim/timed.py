"""The real log in virtual time: each request to the store takes a while, and takes effect in the middle of it.

Steps of the scheduler are microseconds here. No processor time passes, so what is measured is what the protocol costs.
A run is a function of its seed.
"""

from __future__ import annotations

import random
import statistics
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, cast

from tests.sim.projection import OperationsByData, OperationsProjection, State
from tests.sim.scheduler import Scheduler

from lakelog.log import Draft, Log, LogOptions, MemoryStore, ObjectStore

T = TypeVar("T")
S3_US = {"put": 60_000, "get": 25_000, "list": 50_000}
FOLDER_US = {"put": 900, "get": 80, "list": 200}
SPREAD = 0.1
COOL_US = 1_000_000


class TimedStore:
    """A client of a store, each of whose requests takes its time, more or less by a tenth."""

    def __init__(self, truth: MemoryStore, scheduler: Scheduler, times_us: Mapping[str, int]) -> None:
        self.url = truth.url
        self.is_bucket = truth.is_bucket
        self._truth = truth
        self._scheduler = scheduler
        self._times_us = times_us
        self.requests = 0

    def _timed(self, kind: str, work: Callable[[], T]) -> T:
        self.requests += 1
        rng = self._scheduler.rng
        half_us = int(self._times_us[kind] * (1 + SPREAD * (2 * rng.random() - 1)) / 2)
        self._scheduler.stall(half_us)
        found_work = work()
        self._scheduler.stall(half_us)
        return found_work

    def get(self, key: str) -> bytes | None:
        return self._timed("get", lambda: self._truth.get(key))

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        self.requests += len(keys) - 1
        return self._timed("get", lambda: self._truth.get_many(keys))

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return self._timed("put", lambda: self._truth.put_if_absent(key, data))

    def put(self, key: str, data: bytes) -> None:
        self._timed("put", lambda: self._truth.put(key, data))

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        return self._timed("list", lambda: self._truth.list_after(prefix, after))

    def delete(self, keys: Sequence[str]) -> None:
        self._timed("put", lambda: self._truth.delete(keys))

    def now_us(self, near: str = "") -> int | None:
        return self._truth.now_us(near)


@dataclass
class Measured:
    """What writers got in a run: the waits of each, in seconds, in order; versions, and requests of all."""

    seconds: float
    waits: list[list[float]]
    versions: int = 0
    requests: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def changes(self) -> int:
        return sum(map(len, self.waits))

    @property
    def a_second(self) -> float:
        return self.changes / self.seconds

    @property
    def least_share(self) -> float:
        """Of the writer that got least, as a part of what it would have got if all had got the same."""
        return min(map(len, self.waits)) * len(self.waits) / self.changes

    @property
    def longest_by_median(self) -> float:
        flat = [wait for own in self.waits for wait in own]
        return max(flat) / statistics.median(flat)


def run(
    seed: int,
    processes: int,
    threads: int,
    times_us: Mapping[str, int],
    *,
    seconds: float,
    pause_s: float = 0.0,
    proposals: bool = False,
    warm_s: float = 0.0,
    files: bool = False,
    rows: bool = False,
) -> Measured:
    """Have writers commit one change after another for some seconds of virtual time, `pause_s` between two. What is
    measured begins after `warm_s`, and then all go on for a while after it has ended. With `files`, each puts one
    before its change; with `rows`, it proposes what is in it instead, if its log proposes."""
    rng = random.Random(seed)
    scheduler = Scheduler(rng, steps_max=1_000_000_000)
    truth = MemoryStore(clock_us=lambda: 1_750_000_000_000_000 + scheduler.steps)
    ids = iter(range(10_000_000))

    def options() -> LogOptions:
        def sleep(time_s: float) -> None:
            scheduler.stall(int(time_s * 1_000_000))

        def wait(event: threading.Event, timeout_s: float | None) -> None:
            step_us = times_us["put"] // 30
            left_us = None if timeout_s is None else max(1, int(timeout_s * 1_000_000))
            while not event.is_set() and (left_us is None or left_us > 0):
                scheduler.stall(step_us if left_us is None else min(step_us, left_us))
                left_us = None if left_us is None else left_us - step_us

        return LogOptions(
            clock_us=lambda: 1_750_000_000_000_000 + scheduler.steps,
            new_id=lambda: f"{next(ids):010d}",
            sleep_s=sleep,
            wait=wait,
            in_parallel=scheduler.in_parallel,
            in_thread=scheduler.spawn,
            monotonic_s=lambda: scheduler.steps / 1_000_000,
            proposals=proposals,
            random=rng.random,
            snapshot_every_versions=0,
        )

    Log(truth, "t", OperationsProjection(), options=options()).create(
        Draft(events=({"op": "first"},)), log_id="log"
    )
    measures = Measured(seconds, [[] for _ in range(processes * threads)])
    begin_us = scheduler.steps + int(warm_s * 1_000_000)
    end_us = begin_us + int(seconds * 1_000_000)
    unmeasured = requests = 0
    stores: list[TimedStore] = []

    def writer(log: Log[State], number: int) -> Callable[[], None]:
        def work() -> None:
            nonlocal unmeasured, requests
            scheduler.stall(int(rng.random() * 100_000))
            view = log.load()
            count = 0
            while scheduler.steps < end_us + (COOL_US if warm_s else 0):
                started_steps = scheduler.steps
                draft = Draft(events=({"op": f"{number}.{count}"},))
                data = Draft(rows=f"{number}.{count}".encode())
                change, id = None, f"c-{number}-{count}"
                if rows and log.proposes:
                    change = log.propose(
                        view,
                        lambda view, passed: data,  # noqa: B023
                        commit_id=id,
                        base=view.version,
                        retried=False,
                    )
                if change is None:
                    if files or rows:
                        log.store.put(f"data/{id}", b"")
                    change = log.commit(
                        view,
                        lambda view, passed: draft,  # noqa: B023
                        commit_id=id,
                        base=view.version,
                        shared=True,
                    )
                view = change.view
                if begin_us <= started_steps < end_us:
                    measures.waits[number].append((scheduler.steps - started_steps) / 1_000_000)
                else:
                    unmeasured += 1
                if started_steps < begin_us:
                    requests = -sum(store.requests for store in stores)
                elif started_steps < end_us:
                    measures.requests = requests + sum(store.requests for store in stores)
                count += 1
                if pause_s:
                    sleep_us = int(pause_s * 1_000_000 * (0.5 + rng.random()))
                    scheduler.stall(sleep_us)

        return work

    for process in range(processes):
        store = TimedStore(truth, scheduler, times_us)
        stores.append(store)
        log = Log(
            cast(ObjectStore, store),
            "t",
            OperationsProjection(),
            writer={"by": process},
            options=options(),
            by_data=OperationsByData(cast(ObjectStore, store), lambda: f"{next(ids):010d}"),
        )
        for thread in range(threads):
            number = process * threads + thread
            scheduler.spawn(f"writer {number}", writer(log, number))
    scheduler.run()
    measures.failures = scheduler.failures
    head = Log(truth, "t", OperationsProjection(), options=options()).load()
    measures.versions = head.version
    new_changes, other_count = measures.changes + unmeasured, head.state.count - len(head.state.writes)
    if other_count != new_changes + 1:
        measures.failures.append(f"{other_count - 1} changes are there, {new_changes} were made")
    return measures
