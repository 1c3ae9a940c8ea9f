"""Histories of real processes: each of a warehouse of its own, with clients that are killed and stopped at random.

What is drawn comes from the seed of a history; when it happens does not, since processes and disks take their own time.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.linearizability import client
from tests.linearizability.checker import Judgement, check
from tests.linearizability.subjects import SUBJECTS
from tests.patience import PATIENCE_S
from tests.processes.driver import LOCAL, PRELOADED, S3, Report
from tests.processes.faulty_proxy import Chance, faulty_proxy
from tests.processes.world import World

from lakelog.catalog import Catalog
from lakelog.testing.versitygw import versitygw

CLIENTS, OPERATIONS = (5, 10), (10, 20)
KILLS_MAX, STOPS_MAX = 3, 2
DELAY_MAX_S = {LOCAL: 0.01, S3: 0.1}
STOP_MAX_S = 0.4
AT_ONCE = 2
PAUSE_S = 0.002


@dataclass(frozen=True)
class Place:
    """Where the warehouses of a run are, how their clients come to them, and how to come to them without faults."""

    store: str = LOCAL
    url: str = ""
    options: dict[str, str] = field(default_factory=lambda: {"fsync": "off"})
    direct: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)

    def warehouse(self, folder: Path) -> str:
        return f"{self.url}/{folder.name}" if self.url else str(folder / "lake")


@dataclass
class Fault:
    """A kill or a stop: of which client, after which of its calls, and how long after it."""

    client: int
    calls: int
    delay_s: float
    stop_s: float = 0.0  # 0 is a kill


class Recording:
    """One history while it happens: its clients, and what is done to them."""

    def __init__(self, place: Place, folder: Path, seed: int, mutation: str) -> None:
        rng = random.Random(f"history {seed}")
        self._place = place
        self.subject = list(SUBJECTS)[seed % len(SUBJECTS)]
        self._operations = rng.randint(*OPERATIONS)
        self._clients = range(rng.randint(*CLIENTS))
        self.world = World(
            str(folder),
            place.warehouse(folder),
            place.options,
            seed,
            (),
            mutation,
            environment=place.environment,
            proposals=rng.random() < 0.3,
        )
        self._faults = [self._fault(rng, place, 0.0) for _ in range(rng.randint(0, KILLS_MAX))]
        self._faults += [
            self._fault(rng, place, rng.uniform(0.01, STOP_MAX_S)) for _ in range(rng.randint(0, STOPS_MAX))
        ]
        self._processes: dict[int, Any] = {}
        self._incarnations: Counter[int] = Counter()
        self._asleep: dict[int, float] = {}
        self.figures: Counter[str] = Counter()
        self.broken: list[str] = []

    def _fault(self, rng: random.Random, place: Place, stop_s: float) -> Fault:
        calls = rng.randint(1, self._operations)
        return Fault(rng.choice(self._clients), calls, rng.random() * DELAY_MAX_S[place.store], stop_s)

    def run(self) -> None:
        """Let the clients work to their ends."""
        file = str(self.world.save())
        SUBJECTS[self.subject].set_up(Catalog(self.world.warehouse, options=self._place.direct))
        deadline = time.monotonic() + PATIENCE_S
        try:
            for number in self._clients:
                self._start(file, number)
            (Path(self.world.folder) / "go").touch()
            while self._anyone_alive():
                self._wake()
                for fault in [fault for fault in self._faults if self._is_due(fault)]:
                    self._faults.remove(fault)
                    self._strike(fault, file)
                if time.monotonic() > deadline:
                    self.broken.append(f"a client has not ended after {PATIENCE_S:g} s")
                    break
                time.sleep(PAUSE_S)
        finally:
            exit_codes = {number: _killed(process) for number, process in self._processes.items()}
        self.broken += [
            f"client {number} ended with {exit_code}: {self._log(number)}"
            for number, exit_code in exit_codes.items()
            if exit_code != 0 and not self.broken
        ]

    def _anyone_alive(self) -> bool:
        with POLLING:
            return any(process.is_alive() for process in self._processes.values())

    def _start(self, file: str, number: int) -> None:
        self._incarnations[number] += 1
        of = (file, self.subject, number, self._incarnations[number], self._operations)
        self._processes[number] = FORKS.Process(target=client.run, args=of, daemon=True)
        with POLLING:
            self._processes[number].start()

    def _is_due(self, fault: Fault) -> bool:
        path = client.journal(self.world, fault.client, self._incarnations[fault.client])
        return (
            fault.client not in self._asleep
            and path.exists()
            and path.read_bytes().count(b'"call"') >= min(fault.calls, self._operations)
        )

    def _strike(self, fault: Fault, file: str) -> None:
        process = self._processes[fault.client]
        time.sleep(fault.delay_s)
        with POLLING:
            if not process.is_alive():
                return
        if fault.stop_s:
            self._signal(fault.client, signal.SIGSTOP)
            self._asleep[fault.client] = time.monotonic() + fault.stop_s
            self.figures["clients stopped"] += 1
            return
        self.figures["clients killed"] += _killed(process) != 0
        self._start(file, fault.client)

    def _wake(self) -> None:
        for number, until in list(self._asleep.items()):
            if time.monotonic() >= until:
                del self._asleep[number]
                self._signal(number, signal.SIGCONT)

    def _signal(self, number: int, which: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it may have ended by itself
            os.kill(self._processes[number].pid, which)

    def _log(self, number: int) -> str:
        return (Path(self.world.folder) / f"c{number}.log").read_text(errors="replace")[-2000:]

    def history(self) -> Iterator[dict[str, Any]]:
        """Yield the operations that had an effect, an answer, or perhaps an effect."""
        for number in self._clients:
            asked: dict[str, dict[str, Any]] = {}
            for line in client.lines(self.world, number):
                if "call" in line and line["key"] in asked:
                    self.figures["retries"] += 1
                elif "call" in line:
                    shown = {k: v for k, v in line["operation"].items() if k not in ("token", "stage")}
                    asked[line["key"]] = shown | {"client": number, "call": line["call"]}
                    if "is_cut" in shown:
                        asked[line["key"]]["since"] = line["since"]
                elif "answer" in line:
                    asked[line["key"]] |= {"answer": line["answer"], "return": line["return"]}
                else:
                    del asked[line["key"]]
                    self.figures["operations that failed, and had no effect"] += 1
            yield from asked.values()

    def save(self, path: Path) -> None:
        text = [json.dumps({"model": self.subject, "seed": self.world.seed})]
        text += [json.dumps(operation) for operation in self.history()]
        path.write_text("\n".join(text) + "\n")


def _killed(process: Any) -> int:
    """Kill a process if it still runs; return its exit code."""
    with POLLING:
        process.kill()
        process.join()
        return int(process.exitcode)


POLLING = threading.Lock()
"""Held while processes are polled: one start polls them all, and an exit code comes once, so that of two polls at
the same time one sees 255."""
FORKS = multiprocessing.get_context("forkserver")
"""A server that has imported everything forks the clients."""
FORKS.set_forkserver_preload([*PRELOADED, "tests.linearizability.client"])


def record(
    place: Place, folder: Path, seeds: Sequence[int], *, mutation: str = "", keep: bool = False
) -> Report:
    """Record a history of each seed, two at a time, and have them checked. Without a finding, no file is left."""
    report, histories = Report(), folder / "histories"
    histories.mkdir(parents=True, exist_ok=True)

    def recorded(seed: int) -> Recording:
        own = folder / f"h{seed}"
        own.mkdir()
        recording = Recording(place, own, seed, mutation)
        recording.run()
        recording.save(histories / f"{seed}.jsonl")
        if not recording.broken and not keep:
            shutil.rmtree(own)
        return recording

    start_time, paths = time.monotonic(), []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for seed, recording in zip(seeds, pool.map(recorded, seeds), strict=True):
            report.wrong += [f"history {seed} of {recording.subject}: {why}" for why in recording.broken]
            report.figures.update(recording.figures)
            report.figures[f"histories of {recording.subject}"] += 1
            if not recording.broken:
                paths.append(histories / f"{seed}.jsonl")
    report.figures["seconds of recording"] += round(time.monotonic() - start_time)
    start_time = time.monotonic()
    for judged in check(paths, pictures=histories):
        note(report, judged)
        if judged.result == "Ok" and not keep:
            judged.path.unlink()
    report.figures["seconds of checking"] += round(time.monotonic() - start_time)
    return report


def note(report: Report, judged: Judgement) -> None:
    report.figures["histories"] += 1
    report.figures["operations"] += judged.operations
    report.figures["operations that nothing is known of"] += judged.open
    report.figures["histories with a cut from before what others had read"] += judged.moved_back
    if judged.result != "Ok":
        report.wrong.append(f"{judged.path} is {judged.result}: look at {judged.path}.html")


@contextmanager
def place_of(store: str, folder: Path, seed: int) -> Iterator[tuple[Place, Counter[str]]]:
    """Give a place for warehouses, and what a proxy does to requests there."""
    if store == LOCAL:
        yield Place(), Counter()
        return
    with (
        versitygw(folder / "objects") as server,
        server.credentials(),
        faulty_proxy(server.endpoint, Chance(seed)) as proxy,
    ):
        options = {**server.options, "endpoint": proxy.endpoint}
        yield Place(S3, "s3://lake", options, server.options, server.environment), proxy.injected
        proxy.chance = None
        proxy.settle()
