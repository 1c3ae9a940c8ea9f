"""Run seeds of all simulated worlds in turns, on all cores, and report on a page: scripts/sim --hours N.

A round is one seed in each world. Rounds go on until their time is over, each with the next seed, and each in a process
of its own, so that nothing is kept from one to the next. The page is there from the first minute on.
"""

from __future__ import annotations

import argparse
import datetime as dt
import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S
from tests.sim.__main__ import WORLDS
from tests.sim.simulation import Outcome
from tests.sim.stores import FAULTS_BY_KIND
from tests.sim_catalog.simulation import APART, KINDS, simulate_catalog

PAGE = "build/sim-report.md"
PROGRESS_S = 60.0
PAUSE_S = 0.5
SHOWN_MAX = 600


@dataclass(frozen=True)
class SimulatedWorld:
    """A world by its name, with the command that runs a seed of it, without the seed."""

    run: Callable[[int], Outcome]
    command: str


def all_worlds() -> dict[str, SimulatedWorld]:
    worlds = {name: SimulatedWorld(run, f"scripts/sim --world {name}") for name, run in WORLDS.items()}
    for kind in sorted({*KINDS, *APART}):
        command = f"scripts/sim --catalog --about {kind}"
        worlds[kind] = SimulatedWorld(partial(simulate_catalog, kind=kind), command)
        proposing = partial(simulate_catalog, kind=kind, proposals=True)
        worlds[f"{kind}, proposals"] = SimulatedWorld(proposing, f"{command} --proposals")
    return worlds


@dataclass
class WorldTotals:
    """What came of the seeds of one world."""

    seeds: int = 0
    versions: int = 0
    failures: int = 0
    faults: Counter[str] = field(default_factory=Counter)


@dataclass
class Round:
    """A round that is under way: its process, and the world that it is in."""

    seed: int
    process: Any
    world: str = ""
    began_s: float = 0.0


class Rounds:
    """Rounds from the seed `first` on, as long as `goes_on` says so of the seed of the next one."""

    def __init__(
        self, worlds: Mapping[str, SimulatedWorld], first: int, goes_on: Callable[[int], bool]
    ) -> None:
        self.first = first
        self.totals = {name: WorldTotals() for name in worlds}
        self.failures: list[tuple[str, str]] = []
        """What failed: the command that repeats it, and how."""
        self.rounds = 0
        self._worlds = worlds
        self._goes_on = goes_on
        self._seeds = itertools.count(first)
        self._next = next(self._seeds)
        self._under_way: dict[Connection, Round] = {}
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload(["tests.sim_catalog.simulation", "pandas"])

    def run(self, at_once: int, progress: Callable[[], None]) -> None:
        """Run rounds, so many at once. An interrupt ends those that are under way."""
        try:
            while True:
                while len(self._under_way) < at_once and self._goes_on(self._next):
                    self._begin()
                if not self._under_way:
                    return
                for ready in wait(list(self._under_way), timeout=PAUSE_S):
                    assert isinstance(ready, Connection)
                    self._hear(ready)
                self._end_the_stuck()
                progress()
        finally:
            for round_ in self._under_way.values():
                round_.process.kill()
                round_.process.join()

    def _begin(self) -> None:
        ours, theirs = self._processes.Pipe(duplex=False)
        process = self._processes.Process(
            target=run_round, args=(dict(self._worlds), self._next, theirs), daemon=True
        )
        process.start()
        theirs.close()
        self._under_way[ours] = Round(self._next, process, began_s=time.monotonic())
        self._next = next(self._seeds)

    def _hear(self, connection: Connection) -> None:
        of = self._under_way[connection]
        try:
            said = connection.recv()
        except EOFError:
            self._end(connection)
            return
        of.began_s = time.monotonic()
        if isinstance(said, str):
            of.world = said
            return
        totals = self.totals[of.world]
        totals.seeds += 1
        totals.versions += said.versions
        totals.faults.update(said.faults)
        if said.failures:
            self._fail(of, said.failures[0])
        of.world = ""

    def _end(self, connection: Connection) -> None:
        of = self._under_way.pop(connection)
        connection.close()
        of.process.join()
        self.rounds += 1
        if of.world or of.process.exitcode != 0:
            self._fail(of, f"its process ended with {of.process.exitcode}")

    def _end_the_stuck(self) -> None:
        for connection, of in list(self._under_way.items()):
            if time.monotonic() > of.began_s + PATIENCE_S:
                print(f"nothing is heard of the round of {of.seed}", file=sys.stderr, flush=True)
                of.process.kill()
                self._end(connection)

    def _fail(self, of: Round, why: str) -> None:
        command = f"scripts/sim --rounds 1 --from {of.seed}"
        if of.world:
            command = f"{self._worlds[of.world].command} --seed {of.seed}"
            self.totals[of.world].failures += 1
        self.failures.append((command, why))
        print(f"{command}: {why[:SHOWN_MAX]}", file=sys.stderr, flush=True)


def run_round(worlds: Mapping[str, SimulatedWorld], seed: int, said: Connection) -> None:
    """Run a seed in each world, in a process of its own: report the world's name, and then what came of it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that began it ends it
    for name, world in worlds.items():
        said.send(name)
        said.send(world.run(seed))


def page(rounds: Rounds, took_s: float, cores: int) -> str:
    """Return the report as a page."""
    seeds = sum(totals.seeds for totals in rounds.totals.values())
    last = max(rounds.first, rounds.first + rounds.rounds - 1)
    lines = [
        f"# Simulation of {dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC",
        "",
        f"{seeds} seeds, from {rounds.first} to about {last} in each of {len(rounds.totals)} worlds, on "
        f"{cores} cores in {dt.timedelta(seconds=round(took_s))}{at_commit()}. Failures: {len(rounds.failures)}.",
        "",
        _row("world", "seeds", "versions", *FAULTS_BY_KIND, "failures"),
        _row("---", *["---:"] * (len(FAULTS_BY_KIND) + 3)),
    ]
    for name, totals in rounds.totals.items():
        faults = [totals.faults[kind] for kind in FAULTS_BY_KIND]
        lines.append(_row(name, totals.seeds, totals.versions, *faults, totals.failures))
    if rounds.failures:
        lines += ["", "## Failures"]
    for command, why in rounds.failures:
        lines += ["", f"`{command}`", "", *(f"    {line}" for line in why[:SHOWN_MAX].splitlines())]
    return "\n".join(lines) + "\n"


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def at_commit() -> str:
    try:
        described_process = subprocess.run(
            ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f", at {described_process.stdout.strip()}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/sim",
        description="Run seeds of all simulated worlds in turns, on all cores, and write a page about them. "
        "An interrupt ends it, and the page is written.",
    )
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("--hours", type=float, metavar="N", help="begin rounds for so long")
    length.add_argument("--rounds", type=int, metavar="N", help="so many seeds in each world")
    parser.add_argument(
        "--from", type=int, metavar="SEED", dest="first", help="the first seed; by default from the clock"
    )
    parser.add_argument(
        "--world",
        action="append",
        choices=list(all_worlds()),
        help="only this one; may be given more than once",
    )
    parser.add_argument(
        "--page", type=Path, default=Path(PAGE), help=f"where the page goes; by default {PAGE}"
    )
    args = parser.parse_args(arguments)
    first = int(time.time()) if args.first is None else args.first
    begun_s, cores = time.monotonic(), os.cpu_count() or 1
    worlds = {name: world for name, world in all_worlds().items() if not args.world or name in args.world}

    def goes_on(seed: int) -> bool:
        if args.rounds is not None:
            return seed < first + args.rounds
        return time.monotonic() < begun_s + 3600 * args.hours

    rounds = Rounds(worlds, first, goes_on)
    args.page.parent.mkdir(parents=True, exist_ok=True)
    shown_s = begun_s

    def progress() -> None:
        nonlocal shown_s
        if time.monotonic() >= shown_s + PROGRESS_S:
            shown_s = time.monotonic()
            report()

    def report() -> None:
        took_s = time.monotonic() - begun_s
        args.page.write_text(page(rounds, took_s, cores), encoding="utf-8")
        seeds = sum(totals.seeds for totals in rounds.totals.values())
        count = len(rounds.failures)
        took = dt.timedelta(seconds=round(took_s))
        print(f"{took}: {rounds.rounds} rounds, {seeds} seeds, {count} failures", file=sys.stderr, flush=True)

    try:
        rounds.run(cores, progress)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    report()
    print(args.page)
    return 1 if rounds.failures else 0


if __name__ == "__main__":
    # In the background a shell ignores the first, and what runs on a schedule is ended by the second.
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.default_int_handler)
    sys.exit(main())
