"""The second world: several logs in one store, transactions between them, and the known facts of each operation."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

import msgspec
from tests.sim.ledger import Ledger, LedgerProjection, fold
from tests.sim.scheduler import Scheduler
from tests.sim.serializability import Event
from tests.sim.stores import CLOCKS, TrueStore, UnreliableStore, Weather
from tests.sim.world import START_US, YEAR_US, new_weather

from lakelog.log import (
    Commit,
    Decision,
    Log,
    LogOptions,
    LogView,
    ObjectStore,
    SettledIntent,
    StorageError,
    WarehouseDecisions,
)
from lakelog.log.format import Intent, decode_base, decode_decision, decode_entry
from lakelog.log.keys import LogKeys

ACCOUNTS = ("a", "b", "c")
TABLE = "deep/d"  # is dropped, restored, purged and created anew; "a" notes which of its lives are alive
REGISTRY = "a"
NAMES = (*ACCOUNTS, TABLE)


@dataclass
class Operation:
    """Something to be done once, in all of its logs or in none. Any actor may retry it, with the same bases."""

    id: str
    commit_id: str
    deltas: dict[str, int]
    bases: dict[str, int]
    log_ids: dict[str, str]
    deed: str = ""  # what happens to the table: seals, restores, purges
    guard: tuple[str, int] | None = None  # a log that is not written must still be at this version
    sidecar: bool = False
    created: bool = False  # by Log.create, which has its own way of retrying
    asked: int = 0
    begun_at: int = 0
    answered_at: int | None = None
    acknowledged: dict[str, int] | None = None
    refused: bool = False  # certainly not applied: its only ask ended in a definite error


@dataclass(frozen=True)
class Fact:
    """One decided version, as it truly is."""

    commit: Commit
    settled: SettledIntent | None
    has_effect: bool
    state: Ledger
    log_id: str
    time_us: int
    sealed: bool
    purged: bool


@dataclass
class Ledgers:
    rng: random.Random
    scheduler: Scheduler
    truth: TrueStore
    weather: Weather
    snapshots_inline: bool
    patience_s: float
    now_us: int = START_US
    keys: dict[str, LogKeys] = field(default_factory=lambda: {name: LogKeys(name) for name in NAMES})
    facts: dict[str, list[Fact]] = field(default_factory=lambda: {name: [] for name in NAMES})
    operations: list[Operation] = field(default_factory=list)
    reads: list[tuple[Event, bool]] = field(default_factory=list)  # and whether they waited for the undecided
    newest: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 0))
    damaged: set[bytes] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)

    def fail(self, text: str) -> None:
        self.failures.append(f"{self.scheduler.running.name}: {text}")

    def count(self, what: str) -> None:
        self.counters[what] = self.counters.get(what, 0) + 1

    def new_id(self) -> str:
        return f"{self.rng.getrandbits(64):016x}"

    def new_logs(self, actor: str) -> tuple[dict[str, Log[Ledger]], WarehouseDecisions]:
        """Return the logs as a new process sees them: its own memory, clock and way to the store."""
        skew_us = self.rng.choice((0, 0, 0, -3_000_000, 5_000_000, 50_000_000, -YEAR_US, 10 * YEAR_US))
        self.truth.faults[CLOCKS] += skew_us != 0
        store = UnreliableStore(self.truth, self.scheduler, self.weather, self.rng)
        options = LogOptions(
            clock_us=lambda: self.now_us + skew_us,
            new_id=self.new_id,
            sleep_s=self._sleep,
            random=self.rng.random,
            in_background=self._in_background,
            in_parallel=self._in_parallel,
            snapshot_every_versions=3,
            snapshot_size_bytes=1200,
            put_tries=5,
            patience_s=self.patience_s,
            patience_each_s=self.patience_s / 8,
            transaction_tries=8,
        )
        logs = {
            name: Log(
                cast(ObjectStore, store), name, LedgerProjection(), writer={"by": actor}, options=options
            )
            for name in NAMES
        }
        return logs, WarehouseDecisions(cast(ObjectStore, store))

    def _sleep(self, seconds: float) -> None:
        self.now_us += int(seconds * 1_000_000)
        self.scheduler.step()

    def _in_parallel(self, works: Sequence[Callable[[], None]]) -> None:
        """One by one in any order: whatever really happens side by side is like one of these."""
        for work in self.rng.sample(works, len(works)):
            work()

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

    def decision(self, intent: Intent) -> Decision | None:
        data = self.truth.created.get(intent.decision)
        return None if data is None else decode_decision(data, intent.decision)

    def created(self, name: str, version: int) -> Commit | None:
        data = self.truth.created.get(self.keys[name].commit(version))
        if data is None:
            return None
        commit = decode_entry(data, f"version {version} of {name}")
        assert isinstance(commit, Commit)
        return commit

    def known(self, name: str) -> list[Fact]:
        """Return all versions of a log that are decided."""
        facts = self.facts[name]
        while (commit := self.created(name, len(facts) + 1)) is not None:
            settled_intent = None
            if commit.intent is not None:
                decision = self.decision(commit.intent)
                if decision is None:
                    break
                settled_intent = SettledIntent(outcome=decision.outcome, time_us=decision.time_us)
            facts.append(self._fact(facts[-1] if facts else None, commit, settled_intent))
        return facts

    def _fact(self, before: Fact | None, commit: Commit, settled: SettledIntent | None) -> Fact:
        if settled is not None and settled.outcome == "aborted":
            assert before is not None
            return Fact(
                commit,
                settled,
                False,
                before.state,
                before.log_id,
                before.time_us,
                before.sealed,
                before.purged,
            )
        time_us = commit.time_us if settled is None else settled.time_us
        start = Ledger() if before is None or commit.reopens else before.state
        blobs = [self.truth.created_sidecars[sidecar.name] for sidecar in commit.sidecars]
        effect = msgspec.structs.replace(commit, time_us=time_us)
        state = fold(start, effect, blobs)
        is_sealed = commit.seals or commit.purges
        return Fact(effect, settled, True, state, commit.log_id, time_us, is_sealed, commit.purges)

    def versions_of(self, operation: Operation) -> dict[str, list[int]]:
        """Return where an operation has an effect."""
        found: dict[str, list[int]] = {}
        for name in NAMES:
            for version, fact in enumerate(self.known(name), 1):
                if fact.has_effect and fact.commit.commit_id == operation.commit_id:
                    found.setdefault(name, []).append(version)
        return found

    def last_base(self, name: str) -> int:
        """Return the version of the last base, 0 for none."""
        version, number = 0, 1
        while (data := self.truth.created.get(self.keys[name].base(number))) is not None:
            version = decode_base(data, "base", number=number).root.version
            number += 1
        return version

    def check_view(self, name: str, view: LogView[Ledger], what: str) -> None:
        """A reader saw a decided version exactly as it is."""
        facts = self.known(name)
        if not 1 <= view.version <= len(facts):
            return self.fail(f"{what} of {name}: version {view.version}, but {len(facts)} are decided")
        fact = facts[view.version - 1]
        for member, seen_state, true in (
            ("state", view.state, fact.state),
            ("hash", view.hash, fact.commit.hash),
            ("time", view.time_us, fact.time_us),
            ("log id", view.log_id, fact.log_id),
            ("seal", (view.sealed, view.purged), (fact.sealed, fact.purged)),
            ("settlement", view.settles, fact.settled),
        ):
            if seen_state != true:
                self.fail(
                    f"{what} of {name}: at version {view.version} the {member} is {seen_state}, not {true}"
                )

    def acknowledge(self, operation: Operation, versions: dict[str, int]) -> None:
        if operation.acknowledged not in (None, versions):
            self.fail(f"{operation.id} acknowledged at {operation.acknowledged}, then at {versions}")
        operation.acknowledged = versions
        if operation.answered_at is None:
            operation.answered_at = self.scheduler.steps
        for name, version in versions.items():
            self.newest[name] = max(self.newest[name], version)


def new_ledgers(seed: int) -> Ledgers:
    rng = random.Random(f"ledgers {seed}")
    scheduler = Scheduler(rng, steps_max=60_000)
    world: Ledgers
    truth = TrueStore(lambda: world.now_us)
    world = Ledgers(
        rng,
        scheduler,
        truth,
        new_weather(rng),
        snapshots_inline=rng.random() < 0.5,
        patience_s=rng.choice((0.0, 0.1, 2.0)),
    )

    def tick() -> None:
        world.now_us += 1 + int(rng.random() * 100_000)

    scheduler.on_step = tick
    return world
