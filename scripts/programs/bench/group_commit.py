"""The design of group commit (docs/design/group-commit.md) under virtual latencies: appends a second, waits, requests.

No line of the log runs here: clients, proposers and combiners are small models that wait as the design says. It settles
the constants of the design, and shows what a change of them costs.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import statistics
import zlib
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from programs import story
from programs.bench.virtual_time import Latencies, VirtualStore, now, run

WINDOW = 256
IDLE_ROUNDS = 3


@dataclass(frozen=True)
class Setting:
    """One simulated run. `stages` are those of a combiner that overlap: 1 is one after another."""

    clients: int
    processes: int
    stages: int = 2
    groups: bool = True  # threads of a process share commits
    proposes: bool = True  # processes do
    patience: tuple[float, float] = (4.0, 8.0)  # in PUTs without progress, at random between the two
    dies_s: float = 0.0  # the combiner dies then, with its process
    seconds: float = 8.0
    warm_s: float = 5.0
    seed: int = 1
    latencies: Latencies = Latencies()


@dataclass(eq=False)
class Change:
    id: int
    done: asyncio.Future[None]


@dataclass(frozen=True)
class Version:
    ids: frozenset[int]
    put_s: float
    combined: bool = False


@dataclass(eq=False)
class World:
    setting: Setting
    store: VirtualStore = field(init=False)
    random: random.Random = field(init=False)
    ids: itertools.count[int] = field(default_factory=itertools.count)
    waits: list[float] = field(default_factory=list)
    decided: Counter[int] = field(default_factory=Counter)
    sizes: list[int] = field(default_factory=list)
    measured: bool = False

    def __post_init__(self) -> None:
        self.store = VirtualStore(self.setting.latencies, self.setting.seed)
        self.random = random.Random(self.setting.seed)

    async def main(self) -> Counter[str]:
        setting = self.setting
        processes = [Process(self, n) for n in range(setting.processes)]
        for n in range(setting.clients):
            processes[n % setting.processes].start(self.client(processes[n % setting.processes]))
        if setting.dies_s:
            processes[0].start(self.killer(processes))
        await asyncio.sleep(setting.warm_s)
        self.measured = True
        before = Counter(self.store.requests)
        await asyncio.sleep(setting.seconds)
        for process in processes:
            process.stop()
        return self.store.requests - before

    async def client(self, process: Process) -> None:
        await asyncio.sleep(self.random.random() * 0.2)
        while True:
            began, change = now(), Change(next(self.ids), asyncio.get_running_loop().create_future())
            process.submit(change)
            await change.done
            if self.measured:
                self.waits.append(now() - began)

    async def killer(self, processes: list[Process]) -> None:
        await asyncio.sleep(self.setting.warm_s + self.setting.dies_s)
        while not any(process.combining for process in processes):
            await asyncio.sleep(0.01)
        next(process for process in processes if process.combining).stop()


class Process:
    """Threads with one queue; what was seen of the log; at times a combiner."""

    def __init__(self, world: World, number: int) -> None:
        self.world, self.store, self.number = world, world.store, number
        self.queue: list[Change] = []
        self.arrived = asyncio.Event()
        self.progress = asyncio.Event()
        self.pending: dict[int, Change] = {}
        self.head = 0
        self.known: set[int] = set()
        self.inbox: dict[str, list[Change]] = {}
        self.proposed: set[str] = set()
        self.contended = False
        self.combining = False
        self.last_put_s = 0.0
        self.interval_s = 3 * world.setting.latencies.put
        self.lag_s = 0.6 * world.setting.latencies.put
        self.tasks: set[asyncio.Task[Any]] = set()
        self.start(self.commits())
        self.start(self.follows())

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def stop(self) -> None:
        self.combining = False
        for task in self.tasks:
            task.cancel()

    def submit(self, change: Change) -> None:
        self.queue.append(change)
        self.arrived.set()

    def take(self) -> list[Change]:
        taken = self.queue if self.world.setting.groups else self.queue[:1]
        self.queue = self.queue[len(taken) :]
        return taken

    # ---- what is seen

    async def read_next(self) -> Version | None:
        found: Version | None = await self.store.get(f"log/{self.head + 1}")
        if found is not None:
            self.see(found)
        return found

    def see(self, version: Version) -> None:
        self.head += 1
        if self.last_put_s:
            self.interval_s += 0.3 * (version.put_s - self.last_put_s - self.interval_s)
        self.last_put_s = version.put_s
        self.known |= version.ids
        for id in version.ids & self.pending.keys():
            change = self.pending.pop(id)
            change.done.set_result(None)

    async def put(self, changes: list[Change], **more: bool) -> bool:
        version = Version(frozenset(change.id for change in changes), now(), **more)
        won = await self.store.put(f"log/{self.head + 1}", version, if_absent=True)
        if won:
            self.world.decided.update(version.ids)
            self.world.sizes.append(len(changes))
            self.see(version)
        return won

    # ---- on its own

    async def commits(self) -> None:
        while True:
            await self.arrived.wait()
            self.arrived.clear()
            while self.queue and not self.combining:
                changes = self.take()
                self.pending |= {change.id: change for change in changes}
                await self.decide(changes)

    async def decide(self, changes: list[Change]) -> None:
        if not self.contended:
            await self.commit(changes)
        changes = [change for change in changes if change.id in self.pending]
        if changes:
            await self.propose(changes)

    async def commit(self, changes: list[Change]) -> None:
        """Put a version of these alone; after two lost races, or one that a combiner won, they are left."""
        await self.store.put(f"data/{changes[0].id}", changes)
        lost = 0
        while changes and not await self.put(changes):
            lost += 1
            found = await self.read_next()
            if self.world.setting.proposes and (lost == 2 or (found is not None and found.combined)):
                self.contended = True
                return
            changes = [change for change in changes if change.id in self.pending]

    async def propose(self, changes: list[Change]) -> None:
        key = f"inbox/{self.head // WINDOW}/{changes[0].id}"
        self.proposed.add(key)
        await self.store.put(key, changes)
        self.progress.set()

    async def follows(self) -> None:
        """Wait for versions by schedule while something is pending; combine where none comes."""
        while True:
            await self.progress.wait()
            self.progress.clear()
            since, patience_s = now(), self.patience_s()
            while self.pending and self.contended and not self.combining:
                found = await self.read_next()
                # It learns how long after its put a version is seen: later after a miss, a little earlier after a hit.
                self.lag_s += (0.15 if found is None else -0.015) * self.world.setting.latencies.put
                if found is not None and found.combined:
                    since, patience_s = now(), self.patience_s()
                # A version of a writer alone is no progress: one that is quick would keep proposers waiting for ever.
                if now() - since > patience_s:
                    rank = await self.rank()
                    if rank == 0:
                        self.combining = True
                        self.start(self.combines())
                    else:
                        since, patience_s = now(), min(rank, 16) * 2 * self.world.setting.latencies.put
                elif found is not None:
                    await asyncio.sleep(max(0.0, self.due_s() - now()))
                else:
                    await asyncio.sleep(max(0.01, self.interval_s / 4))

    async def rank(self) -> int:
        """How many that propose should combine before this process does. Each version has another order."""
        listed = await self.store.names(f"inbox/{self.head // WINDOW}")
        order = sorted(
            (key for key in listed if not self.is_decided(key)),
            key=lambda key: zlib.crc32(f"{self.head} {key}".encode()),
        )
        own = [place for place, key in enumerate(order) if key in self.proposed]
        return own[0] if own else 0

    def due_s(self) -> float:
        """When the next version is likely to be there."""
        return self.last_put_s + self.interval_s + self.lag_s

    def patience_s(self) -> float:
        return self.world.random.uniform(*self.world.setting.patience) * self.world.setting.latencies.put

    # ---- for others

    async def combines(self) -> None:
        """Put versions of all that is proposed, until there is nothing from others, or another one combines."""
        setting, alone = self.world.setting, 0
        times = setting.latencies
        ahead_s = max(0.0, 2 * times.put - times.names - times.get) if setting.stages == 2 else 0.0
        committing: asyncio.Future[bool] | None = None
        goes_on = True
        sent: set[int] = set()
        collecting = asyncio.ensure_future(self.collect(0.0))
        while goes_on and alone < IDLE_ROUNDS:
            proposed = await collecting
            alone = 0 if proposed else alone + 1
            self.pending |= {change.id: change for change in self.queue}
            self.queue = []
            batch = {change.id: change for changes in proposed.values() for change in changes} | self.pending
            changes = [change for id, change in batch.items() if id not in self.known and id not in sent]
            if setting.stages > 1:
                collecting = asyncio.ensure_future(self.collect(ahead_s if changes else 0.0))
            if changes:
                await self.store.put(f"data/{changes[0].id}", changes)
                if committing is not None:
                    goes_on = await committing
                sent = {change.id for change in changes}
                committing = asyncio.ensure_future(self.put_combined(changes))
                if setting.stages < 3:
                    goes_on = await committing
            if setting.stages == 1:
                collecting = asyncio.ensure_future(self.collect(0.0))
        if committing is not None:
            await committing
        collecting.cancel()
        self.contended = alone < IDLE_ROUNDS
        self.combining = False
        # What it has taken from its own threads was proposed by none.
        if self.pending:
            await self.decide(list(self.pending.values()))
        self.progress.set()
        self.arrived.set()

    def is_decided(self, key: str) -> bool:
        return int(key.rpartition("/")[2]) in self.known

    async def put_combined(self, changes: list[Change]) -> bool:
        """Put a version of what is not decided yet. Returns whether to go on: not where another combiner was there."""
        written, goes_on = changes, True
        while True:
            changes = [change for change in changes if change.id not in self.known]
            if not changes or not goes_on:
                return goes_on
            if changes != written:
                await self.store.put(f"data/{changes[0].id}", changes)
                written = changes
            elif await self.put(changes, combined=True):
                break
            else:
                found = await self.read_next()
                goes_on = found is None or not found.combined
        return True

    async def collect(self, after_s: float) -> dict[str, list[Change]]:
        """The proposals that are new, by their keys: one LIST (two after a change of folders), and a GET each."""
        await asyncio.sleep(after_s)
        folders = {f"inbox/{self.head // WINDOW}", f"inbox/{max(0, self.head - 16) // WINDOW}"}
        listed = await asyncio.gather(*(self.store.names(folder) for folder in sorted(folders)))
        names = [key for each in listed for key in each]
        decided = [key for key in names if self.is_decided(key)]
        if decided:
            self.start(self.store.delete_many(decided))
        keys = [key for key in names if not self.is_decided(key)]
        new = [key for key in keys if key not in self.inbox]
        found = await asyncio.gather(*(self.store.get(key) for key in new))
        self.inbox |= {key: changes for key, changes in zip(new, found, strict=True) if changes is not None}
        # Kept until it is decided: a combiner that loses its version has these still to do.
        self.inbox = {key: self.inbox[key] for key in keys if key in self.inbox}
        return self.inbox


@dataclass(frozen=True)
class Outcome:
    a_second: float
    mean_ms: float
    p50_ms: float
    p99_ms: float
    longest_ms: float
    versions_a_second: float
    reads: float
    writes: float


def simulate(setting: Setting) -> Outcome:
    world = World(setting)
    requests = run(world.main())
    assert max(world.decided.values(), default=0) <= 1, "a change was applied twice"
    waits = sorted(world.waits)
    count = len(waits)
    return Outcome(
        a_second=count / setting.seconds,
        mean_ms=1000 * statistics.fmean(waits),
        p50_ms=1000 * waits[count // 2],
        p99_ms=1000 * waits[int(count * 0.99)],
        longest_ms=1000 * waits[-1],
        versions_a_second=len(world.sizes) / (setting.seconds + setting.warm_s),
        reads=(requests["get"] + requests["names"]) / count,
        writes=(requests["put"] + requests["delete"]) / count,
    )


def line(setting: Setting) -> list[str]:
    done = simulate(setting)
    return [
        f"{setting.clients} in {setting.processes}",
        f"{done.a_second:.0f}",
        f"{done.mean_ms:.0f}",
        f"{done.p99_ms:.0f}",
        f"{done.longest_ms:.0f}",
        f"{done.versions_a_second:.1f}",
        f"{done.reads:.2f}",
        f"{done.writes:.2f}",
    ]


HEAD = [
    "clients, processes",
    "appends/s",
    "mean ms",
    "p99 ms",
    "longest ms",
    "versions/s",
    "GET+LIST",
    "PUT+DELETE",
]
CASES = ("1/1", "4/4", "100/1", "100/4", "100/20", "100/100", "60/60", "300/1", "300/20", "300/60", "300/300")


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench group_commit", description=__doc__)
    parser.add_argument("cases", nargs="*", default=CASES, metavar="CLIENTS/PROCESSES")
    parser.add_argument(
        "--alone", action="store_true", help="each client commits by itself, as without the design"
    )
    parser.add_argument("--stages", type=int, default=2, help="stages of a combiner that overlap: 1, 2 or 3")
    parser.add_argument(
        "--effect", type=float, default=0.5, help="when in its time a request takes effect: 0 to 1"
    )
    parser.add_argument(
        "--dies", type=float, default=0.0, metavar="S", help="the first combiner dies after S seconds"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="how long to measure, after 5 seconds")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    lines = []
    for case in given.cases:
        clients, processes = (int(number) for number in case.split("/"))
        setting = Setting(
            clients,
            processes,
            stages=given.stages,
            groups=not given.alone,
            proposes=not given.alone,
            dies_s=given.dies,
            seconds=given.seconds,
            seed=given.seed,
            latencies=Latencies(effect=given.effect),
        )
        lines.append(line(setting))
    story.table(HEAD, lines, title=(__doc__ or "").splitlines()[0])


if __name__ == "__main__":
    main()
