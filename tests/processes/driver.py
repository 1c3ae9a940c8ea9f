"""Runs writers, readers and faults against one warehouse, kills and restarts the writers, and has the end verified.

All choices come from the seed; when what happens does not, since processes, disks and networks take their own time.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from tests import cloud_servers
from tests.patience import PATIENCE_S
from tests.processes import cleaner, reader, writer
from tests.processes.beginning import set_up
from tests.processes.faulty_proxy import Chance, FaultyProxy, faulty_proxy
from tests.processes.journal import DONE, Journals
from tests.processes.world import World

from lakelog.testing.versitygw import versitygw

LOCAL, S3 = "local", "s3"
LIFE_MEAN_S = {LOCAL: 1.2, S3: 8.0} | dict.fromkeys(cloud_servers.NAMES, 8.0)
PROPOSER_LIFE_MEAN_S = (
    2.4  # a proposal waits for the version of another process, or for its author's turn to combine
)
SPARK_LIFE_MEAN_S = 3.0  # from the first request on
LONGER_LIFE = 1.5  # after each kill, while writers are killed more often than they get something done
LONGER_MAX_S = PATIENCE_S  # beyond what was asked for, until the run has had all that it is to show
REQUESTS_MAX_S = 900.0  # for the requests that were asked for
PAUSES = 0.15  # of what would have been kills
CHILD_KILLS = 0.6  # of what would have been kills of a Spark writer
PAUSE_MAX_S = 3.0
READERS = 1
CLEANER = "c0"
PRELOADED = [
    "tests.processes.writer",
    "tests.processes.reader",
    "pandas",  # which pyarrow imports for the first table that is made of Python's values
    "lakelog.catalog.keeping.maintenance",  # which the first DROP imports
    "pyarrow.parquet",
    "s3fs",
    "aiobotocore.session",
]


@dataclass
class Settings:
    seed: int
    seconds: float  # from the first request of each writer on
    requests: int = 0  # more seconds are given until so many were asked for, as a slow machine needs them
    store: str = LOCAL
    writers: str = "python"
    python_writers: int = 3
    intensity: float = 1.0
    fsync: bool = True
    keep: bool = False
    mutation: str = ""
    cleaning: bool = False
    proposals: bool = False


@dataclass
class Report:
    """What came out. `wrong` is what no run may show."""

    wrong: list[str] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    folder: str = ""

    def lines(self) -> Iterator[str]:
        for label, count in sorted(self.figures.items()):
            yield f"{count:8} {label}"
        for fault, count in sorted(self.faults.items()):
            yield f"{count:8} {fault} (injected)"
        for label in self.wrong[:20]:
            yield f"WRONG: {label}"


class Process(Protocol):
    """A writer's process, as far as the driver deals with it."""

    @property
    def pid(self) -> int | None: ...
    @property
    def exitcode(self) -> int | None: ...
    def kill(self) -> None: ...
    def join(self, timeout: float | None = None) -> None: ...


class SparkProcess:
    """A Spark writer: Python's driver, the JVM and what that starts, in a process group of their own."""

    def __init__(self, world_file: str, writer: str, incarnation: int) -> None:
        log = Path(world_file).parent / f"{writer}.log"
        command = [sys.executable, "-m", "tests.processes.spark_writer", world_file, writer, str(incarnation)]
        with log.open("ab") as sink:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True
            )
        self.pid = self._process.pid

    @property
    def exitcode(self) -> int | None:
        return self._process.poll()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def join(self, timeout: float | None = None) -> None:
        self._process.wait(timeout)

    def children(self) -> list[int]:
        """The Python sides of the adapter, by their process ids."""
        found = []
        for process in Path("/proc").iterdir():
            with suppress(OSError, ValueError):
                group = int((process / "stat").read_text().rpartition(")")[2].split()[2])
                if group == self.pid and b"lakelog.spark.bridge" in (process / "cmdline").read_bytes():
                    found.append(int(process.name))
        return found


@dataclass
class Actor:
    """A writer by its name, over all its lives."""

    name: str
    life_mean_s: float
    process: Process | None = None
    incarnation: int = 0
    dies_at: float = 0.0
    wakes_at: float = 0.0
    paused: bool = False
    begins_after: int | None = None


class Driver:
    def __init__(self, settings: Settings, world: World) -> None:
        self._settings = settings
        self._world = world
        self._world_file = str(world.save())
        self._rng = random.Random(f"{settings.seed} driver")
        # A server that has imported everything forks the writers, so that most of their short lives is work.
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload(PRELOADED)
        self._journals = Journals(world.journals)
        self.report = Report(folder=world.folder)

    def run(self) -> None:
        life_s = PROPOSER_LIFE_MEAN_S if self._settings.proposals else LIFE_MEAN_S[self._settings.store]
        actors = [
            Actor(name, SPARK_LIFE_MEAN_S if is_spark(name) else life_s) for name in self._world.writers
        ]
        if self._settings.cleaning:
            actors.append(Actor(CLEANER, 2 * life_s))
        readers = [self._start_reader(f"r{number}") for number in range(READERS)]
        started_time, is_begun, deadline = time.monotonic(), False, 0.0
        try:
            while (not is_begun or self._goes_on(deadline)) and not self.report.wrong:
                for actor in actors:
                    self._care_for(actor)
                if not is_begun:  # The first start of a JVM is no part of the time that was asked for.
                    is_begun = all(actor.begins_after is None for actor in actors)
                    deadline = time.monotonic() + self._settings.seconds
                    if time.monotonic() > started_time + PATIENCE_S:
                        self.report.wrong.append(f"a writer has not begun after {PATIENCE_S:g} s")
                self._listen_to_readers()
                time.sleep(0.005)
        finally:
            for actor in actors:
                self._kill(actor)
            self._world.stop_file.touch()
            for process in readers:
                process.join(PATIENCE_S)
                if process.exitcode != 0:
                    self.report.wrong.append(f"a reader ended with {process.exitcode}: see its log")
                    process.kill()
                    process.join()
        self._listen_to_readers(final=True)
        self.report.figures["commits expired"] = self._expired()

    def _goes_on(self, deadline: float) -> bool:
        """Whether the time that was asked for is not over, or what the run is to show has not happened yet."""
        current_time = time.monotonic()
        if current_time < deadline:
            return True
        is_done = self._has_worked() and (not self._settings.cleaning or self._expired())
        if is_done and len(self._journals.asked) < self._settings.requests:
            return current_time < deadline + REQUESTS_MAX_S
        return not is_done and current_time < deadline + LONGER_MAX_S

    def _has_worked(self) -> bool:
        """Whether writers were killed, and got more done than they were killed."""
        self._journals.read_on()
        total = sum(request.outcome == DONE for request in self._journals.asked.values())
        return total > self._killed > 0

    @property
    def _killed(self) -> int:
        return self.report.figures["writers killed"] + self.report.figures["Spark writers killed"]

    def _expired(self) -> int:
        log = Path(self._world.folder) / f"{CLEANER}.log"
        return cleaner.commits_expired(log.read_text(errors="replace")) if log.exists() else 0

    def _care_for(self, actor: Actor) -> None:
        current_time = time.monotonic()
        if actor.process is None:
            actor.incarnation += 1
            actor.process = self._start_writer(actor)
            actor.dies_at = current_time + self._rng.expovariate(1 / actor.life_mean_s)
            if not is_cleaner(actor.name):
                actor.begins_after = self._asked_of(actor)
        elif actor.process.exitcode is not None:
            self.report.wrong.append(
                f"{actor.name} ended by itself with {actor.process.exitcode}: {self._log(actor.name)}"
            )
        elif actor.begins_after is not None:
            # To start takes long, of a JVM above all, and to be killed before anything was asked for proves little.
            if self._asked_of(actor) > actor.begins_after:
                actor.begins_after = None
                actor.dies_at = current_time + self._rng.expovariate(1 / actor.life_mean_s)
        elif actor.paused:
            if current_time >= actor.wakes_at:
                self._signal(actor, signal.SIGCONT)
                actor.paused = False
        elif current_time >= actor.dies_at:
            if self._rng.random() < PAUSES:
                self._signal(actor, signal.SIGSTOP)
                actor.paused, actor.wakes_at = True, current_time + self._rng.uniform(0.1, PAUSE_MAX_S)
                actor.dies_at = actor.wakes_at + self._rng.expovariate(1 / actor.life_mean_s)
                self.report.figures["writers paused"] += 1
            elif isinstance(actor.process, SparkProcess) and self._rng.random() < CHILD_KILLS:
                # The adapter has to start another one and retry there, and no statement may notice.
                for child in actor.process.children():
                    os.kill(child, signal.SIGKILL)
                    self.report.figures["Python sides of Spark killed"] += 1
                actor.dies_at = current_time + self._rng.expovariate(1 / actor.life_mean_s)
            else:
                kind = f"{'Spark writers' if is_spark(actor.name) else 'writers'} killed"
                if is_cleaner(actor.name):
                    kind = "cleaners killed"
                self._kill(actor)
                self.report.figures[kind] += 1
                if self._killed and not self._has_worked():
                    actor.life_mean_s *= LONGER_LIFE  # a request takes longer here

    def _start_writer(self, actor: Actor) -> Process:
        if is_spark(actor.name):
            return SparkProcess(self._world_file, actor.name, actor.incarnation)
        target = cleaner.run if is_cleaner(actor.name) else writer.run
        process = self._processes.Process(
            target=target, args=(self._world_file, actor.name, actor.incarnation), daemon=True
        )
        process.start()
        return process

    def _start_reader(self, name: str) -> Any:
        process = self._processes.Process(target=reader.run, args=(self._world_file, name), daemon=True)
        process.start()
        return process

    def _asked_of(self, actor: Actor) -> int:
        """How many bytes its journals have."""
        return sum(path.stat().st_size for path in self._world.journals.glob(f"{actor.name}.*.jsonl"))

    def _kill(self, actor: Actor) -> None:
        if actor.process is not None:
            actor.process.kill()
            actor.process.join()
        actor.process, actor.paused, actor.begins_after = None, False, None

    def _signal(self, actor: Actor, number: int) -> None:
        assert actor.process is not None and actor.process.pid is not None
        if is_spark(actor.name):
            os.killpg(actor.process.pid, number)
        else:
            os.kill(actor.process.pid, number)

    def _log(self, name: str) -> str:
        return (Path(self._world.folder) / f"{name}.log").read_text(errors="replace")[-3000:]

    def _listen_to_readers(self, *, final: bool = False) -> None:
        for path in self._world.reports.glob("*.jsonl"):
            for line in path.read_text().splitlines():
                said = json.loads(line)
                if "violation" in said and said["violation"] not in self.report.wrong:
                    self.report.wrong.append(said["violation"])
                if final:
                    for check, count in said.get("checks", {}).items():
                        self.report.figures[f"reader: {check}"] += count


def run(settings: Settings, folder: Path) -> Report:
    """Run everything in `folder`, a new one, which is removed after a run without a finding unless it is to be kept."""
    folder.mkdir(parents=True)
    start_time = time.monotonic()
    with ExitStack() as stack:
        direct, faulty, proxy = stack.enter_context(_store(settings, folder))
        set_up(direct)
        driver = Driver(settings, faulty)
        driver.run()
        report = driver.report
        report.figures["seconds under way"] = round(time.monotonic() - start_time)
        if proxy is not None:
            proxy.chance = None
            proxy.settle()
            report.faults = proxy.injected
            report.figures["requests through the proxy"] = proxy.passed
        journals = Journals(direct.journals)
        journals.read_on()
        report.figures["requests asked"] = len(journals.asked)
        start_time = time.monotonic()
        _verify(direct, report)
        report.figures["seconds of verification"] = round(time.monotonic() - start_time)
    if not report.wrong and not settings.keep:
        shutil.rmtree(folder)
    return report


def _verify(world: World, report: Report) -> None:
    """Let a fresh process check the end, which comes to the store without faults."""
    saved_path = world.save()
    finished_process = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.processes.verifier", str(saved_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    verified_path = Path(world.folder) / "verified.json"
    if not verified_path.exists():
        report.wrong.append(
            f"the verifier ended with {finished_process.returncode}: "
            f"{(finished_process.stdout + finished_process.stderr)[-3000:]}"
        )
        return
    found = json.loads(verified_path.read_text())
    report.wrong += found["wrong"]
    report.figures.update(found["figures"])


def writer_names(settings: Settings) -> tuple[str, ...]:
    python = [f"w{number}" for number in range(settings.python_writers)]
    match settings.writers:
        case "python":
            return tuple(python)
        case "spark":
            return ("s0",)
        case "both":
            return (*python[:-1], "s0")
    raise AssertionError(settings.writers)


def is_cleaner(name: str) -> bool:
    return name.startswith("c")


def is_spark(writer: str) -> bool:
    return writer.startswith("s")


@contextmanager
def _store(settings: Settings, folder: Path) -> Iterator[tuple[World, World, FaultyProxy | None]]:
    """Give the world as it is, the world as its processes see it, and the proxy that stands between."""
    names = writer_names(settings)
    if settings.store == LOCAL:
        options = {"fsync": "on" if settings.fsync else "off"}
        world = World(
            str(folder),
            str(folder / "lake"),
            options,
            settings.seed,
            names,
            settings.mutation,
            proposals=settings.proposals,
        )
        yield world, world, None
        return
    chance = Chance(settings.seed, settings.intensity)
    if settings.store in cloud_servers.NAMES:
        with (
            cloud_servers.running(settings.store, folder / "objects") as cloud,
            faulty_proxy(cloud.endpoint, chance) as proxy,
        ):
            world = World(
                str(folder),
                f"{cloud.url}/warehouse",
                cloud.options,
                settings.seed,
                names,
                environment={"AZURE_STORAGE_ACCOUNT_KEY": cloud_servers.ACCOUNT_KEY},
                proposals=settings.proposals,
            )
            yield world, replace(world, options=cloud.options_at(proxy.endpoint)), proxy
        return
    with (
        versitygw(folder / "objects") as server,
        server.credentials(),
        faulty_proxy(server.endpoint, chance) as proxy,
    ):
        url = "s3://lake/warehouse"
        world = World(
            str(folder),
            url,
            server.options,
            settings.seed,
            names,
            environment=server.environment,
            proposals=settings.proposals,
        )
        yield world, replace(world, options={**server.options, "endpoint": proxy.endpoint}), proxy
