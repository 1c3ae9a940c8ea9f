"""A simulated world: the truth, the requested operations, and the known facts of each."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import cast

from tests.sim.projection import KNOWN, OperationsByData, OperationsProjection, State, fold, without_names
from tests.sim.scheduler import Scheduler
from tests.sim.stores import CLOCKS, FAULTS, TrueStore, UnreliableStore, Weather

from lakelog.log import Commit, Log, LogOptions, LogView, ObjectStore, StorageError
from lakelog.log.changes import combined_ids, each_change
from lakelog.log.format import decode_base, decode_entry
from lakelog.log.keys import LogKeys

ROOT = "t"
START_US = 1_750_000_000_000_000
STEPS_A_SECOND = 20
YEAR_US = 365 * 86_400_000_000


@dataclass
class Operation:
    """Something an actor wants committed once. Any actor may retry it, with the same id and base."""

    id: str
    commit_id: str
    claim: str | None = None
    release: str | None = None
    write: tuple[str, int] | None = None
    data_written: bool = False
    sidecar: bool = False
    rows: bool = False  # which may be proposed
    seals: bool = False
    uses: dict[str, str] = field(default_factory=dict)  # features, as its event says
    log_id: str = ""
    created: bool = False  # by Log.create, which has its own way of retrying
    base: int = 0
    asked: int = 0
    under_way: int = 0  # asks that have no answer yet
    acknowledged_at: int | None = None
    refused: bool = False  # certainly not applied, as its asks ended in definite errors


@dataclass
class World:
    rng: random.Random
    scheduler: Scheduler
    truth: TrueStore
    weather: Weather
    snapshots_inline: bool
    proposals: bool = False
    features: bool = False
    now_us: int = START_US
    operations: list[Operation] = field(default_factory=list)
    newest_acknowledged: int = 0
    failures: list[str] = field(default_factory=list)
    keys: LogKeys = field(default_factory=lambda: LogKeys(ROOT))
    states: list[State] = field(default_factory=lambda: [State()])
    judged_on: list[list[State]] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    commit_ids: set[str] = field(default_factory=set)
    damaged: set[bytes] = field(default_factory=set)
    purged_writes: set[str] = field(default_factory=set)
    counters: dict[str, int] = field(default_factory=dict)

    def fail(self, text: str) -> None:
        self.failures.append(f"{self.scheduler.running.name}: {text}")

    def count(self, what: str) -> None:
        self.counters[what] = self.counters.get(what, 0) + 1

    def new_id(self) -> str:
        return f"{self.rng.getrandbits(64):016x}"

    def new_log(self, actor: str, known: Collection[str] = KNOWN) -> Log[State]:
        """Return the log as a new process sees it: its own memory, its own clock, its own way to the store.

        It knows these features.
        """
        now_s = self.rng.random() * 1000
        skew_us = self.rng.choice((0, 0, 0, -3_000_000, 5_000_000, -YEAR_US, 10 * YEAR_US))
        self.truth.faults[CLOCKS] += skew_us != 0
        store = cast(ObjectStore, UnreliableStore(self.truth, self.scheduler, self.weather, self.rng))
        return Log(
            store,
            ROOT,
            OperationsProjection(known),
            writer={"by": actor},
            options=LogOptions(
                clock_us=lambda: self.now_us + skew_us,
                new_id=self.new_id,
                sleep_s=self._sleep,
                random=self.rng.random,
                wait=self._wait,
                in_background=self._in_background,
                in_parallel=self._in_parallel,
                in_thread=self.scheduler.spawn,
                monotonic_s=lambda: now_s + self.scheduler.steps / STEPS_A_SECOND,
                proposals=self.proposals,
                snapshot_every_versions=4,
                snapshot_size_bytes=900,
                put_tries=5,
            ),
            by_data=OperationsByData(store, self.new_id),
        )

    def _sleep(self, seconds: float) -> None:
        self.now_us += int(seconds * 1_000_000)
        self.scheduler.step()

    def _in_parallel(self, works: Sequence[Callable[[], None]]) -> None:
        """One by one in any order: whatever really happens side by side is like one of these."""
        for work in self.rng.sample(works, len(works)):
            work()

    def _wait(self, event: threading.Event, timeout_s: float | None) -> None:
        remaining_number = None if timeout_s is None else self.rng.choice((1, 3, 10))
        while not event.is_set() and remaining_number != 0:
            self.scheduler.step()
            remaining_number = None if remaining_number is None else remaining_number - 1

    def _in_background(self, name: str, work: Callable[[], None]) -> None:
        def quietly() -> None:
            try:
                work()
            except StorageError:
                self.count("snapshots that failed")

        if self.snapshots_inline:
            quietly()
        else:
            self.scheduler.spawn(f"snapshot by {self.scheduler.running.name}", quietly)

    # The truth, as it was created, whatever expiry made of it since

    def read_truth(self) -> None:
        """Fold the commits that were created since the last call."""
        while True:
            version = len(self.commits) + 1
            data = self.truth.created.get(self.keys.commit(version))
            if data is None:
                return
            commit = decode_entry(data, f"version {version}", KNOWN)
            assert isinstance(commit, Commit)
            blobs = [self.truth.created_sidecars[sidecar.name] for sidecar in commit.sidecars]
            self.commits.append(commit)
            state = State() if commit.reopens else self.states[-1]
            between = []
            for part in each_change(commit):
                self.commit_ids.add(part.commit_id)
                between.append(state)
                state = fold(state, part, blobs)
            self.states.append(state)
            if commit.changes:
                self.count("versions that were shared")
            if combined_ids(commit):
                self.count("versions that were combined")
            if any(change.refused for change in commit.changes):
                self.count("refusals that were put")
            self.judged_on.append(between)

    def states_from(self, version: int) -> list[State]:
        """Return what a change may have been judged on since `version`: states of versions, and those between two
        changes of one."""
        self.read_truth()
        return [*self.states[version:], *(state for between in self.judged_on[version:] for state in between)]

    def at(self, version: int) -> Commit:
        self.read_truth()
        return self.commits[version - 1]

    def head(self) -> int:
        self.read_truth()
        return len(self.commits)

    def first_version(self, version: int) -> int:
        """Return the version that the log which `version` belongs to began with."""
        self.read_truth()
        return max((c.version for c in self.commits[:version] if c.reopens), default=1)

    def last_base(self) -> int:
        """Return the version of the last base, 0 for none."""
        version, number = 0, 1
        while (data := self.truth.created.get(self.keys.base(number))) is not None:
            version = decode_base(data, "base", KNOWN, number=number).root.version
            number += 1
        return version

    def check_view(self, view: LogView[State], what: str) -> None:
        """A reader saw a prefix: exactly the fold of the first commits."""
        self.read_truth()
        if not 1 <= view.version <= len(self.commits):
            self.fail(f"{what}: version {view.version} of {len(self.commits)}")
        elif without_names(view.state) != without_names(self.states[view.version]):
            self.fail(f"{what}: version {view.version} is not the fold of the first commits")
        elif view.hash != self.commits[view.version - 1].hash:
            self.fail(f"{what}: version {view.version} has the hash of another commit")

    def acknowledge(self, operation: Operation, version: int) -> None:
        if operation.acknowledged_at not in (None, version):
            self.fail(f"{operation.id} acknowledged at {operation.acknowledged_at}, then at {version}")
        operation.acknowledged_at = version
        self.newest_acknowledged = max(self.newest_acknowledged, version)


def new_weather(rng: random.Random) -> Weather:
    calm = rng.random() < 0.15
    return Weather(
        fault=0.0 if calm else rng.choice((0.0, 0.02, 0.05, 0.15)),
        crash=0.0 if calm else rng.choice((0.0, 0.002, 0.01)),
        stall=rng.choice((0.0, 0.01, 0.03)),
        stall_steps=rng.choice((10, 100, 400)),
        tear=rng.choice((0.0, 0.1, 0.5)),
        fault_kinds=tuple(rng.sample(FAULTS, rng.randint(1, len(FAULTS)))),
    )


def new_world(seed: int) -> World:
    rng = random.Random(seed)
    scheduler = Scheduler(rng, steps_max=30_000)
    weather = new_weather(rng)
    world: World
    truth = TrueStore(lambda: world.now_us)
    world = World(rng, scheduler, truth, weather, snapshots_inline=rng.random() < 0.5)

    def tick() -> None:
        world.now_us += 1 + int(rng.random() * 100_000)

    scheduler.on_step = tick
    return world
