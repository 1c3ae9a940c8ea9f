"""Processes that propose their changes to each other, and combine them, under faults, crashes, expiry and vacuum.

Windows are a few versions here, and what begins a proposal in a process that has lost races begins it at once: each
schedule has more of what takes weeks to happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from tests.sim import actors
from tests.sim.burying import small_windows
from tests.sim.simulation import Outcome, check
from tests.sim.world import World, new_world

from lakelog.log import (
    CommitUnknown,
    ConflictError,
    Draft,
    LogSealed,
    StorageError,
    changes,
    format,
    keys,
    placing,
)
from lakelog.log.proposals import inbox, watch, window


@contextmanager
def sizes(window_versions: int, races: int) -> Iterator[None]:
    with ExitStack() as stack:
        for module in (changes, format, inbox, keys, placing, window):
            stack.enter_context(patch.object(module, "WINDOW", window_versions))
        stack.enter_context(patch.object(inbox, "OLDER_FOLDER_VERSIONS", max(1, window_versions // 2)))
        stack.enter_context(patch.object(placing, "RACES_BEFORE_PROPOSING", races))
        stack.enter_context(patch.object(watch, "QUICK_COMMITS", 1))
        stack.enter_context(patch.object(watch, "PAUSE_COMMITS", 1e9))
        yield


@contextmanager
def _finds_counted(world: World) -> Iterator[None]:
    real = watch.ProposalWatch.begins

    def begins(self: Any) -> bool:
        is_found = real(self)
        if is_found:
            world.count("others were found to wait")
        return is_found

    with patch.object(watch.ProposalWatch, "begins", begins):
        yield


@contextmanager
def _first_tries_known(world: World) -> Iterator[None]:
    """Have each change be a retry if it is one: here the first tries have ids that were given, too."""

    def is_retried(cursor: Any) -> bool:
        return any(
            operation.commit_id == cursor.commit_id and operation.asked > 1 for operation in world.operations
        )

    with patch.object(placing.ChangeCursor, "retried", property(is_retried)):
        yield


def simulate_proposals(seed: int) -> Outcome:
    """Run the world of `seed` and return what is wrong with it. The same seed gives the same run."""
    world = new_world(seed)
    world.proposals = True
    rng = world.rng
    with (
        sizes(rng.choice((2, 3, 5, 20)), rng.choice((0, 0, 1, 2))),
        _first_tries_known(world),
        _finds_counted(world),
    ):
        actors.founder(world)
        for i in range(rng.randint(2, 5)):
            _process(world, i)
        spawn = world.scheduler.spawn
        if rng.random() < 0.5:
            spawn("writer", actors.writer(world, "writer", rng.randint(1, 6)))
        for i in range(rng.choice((0, 0, 1, 2))):
            spawn(f"expirer {i}", actors.expirer(world, f"expirer {i}", rng.randint(1, 4)))
        if rng.random() < 0.4:
            spawn("vacuumer", actors.vacuumer(world, "vacuumer", rng.randint(1, 4)))
        if rng.random() < 0.2:
            spawn("sealer", actors.sealer(world))
        if rng.random() < 0.2:
            spawn("restorer", _restorer(world))
        if rng.random() < 0.4:
            spawn("forger", _forger(world, rng.randint(1, 30)))
        with small_windows(rng):
            world.scheduler.run()
        world.counters["wishes"] = world.truth.wishes
        failures = [*world.scheduler.failures, *world.failures, *check(world)]
    return Outcome(
        seed, tuple(failures), world.head(), world.scheduler.steps, world.counters, world.truth.faults
    )


def _process(world: World, number: int) -> None:
    log = world.new_log(f"process {number}")
    for i in range(world.rng.randint(1, 3)):
        name = f"thread {i} of process {number}"
        world.scheduler.spawn(name, actors.writer(world, name, world.rng.randint(2, 6), shared_with=log))


def _restorer(world: World) -> Callable[[], None]:
    """Seals the log, and restores it: what was proposed before is gone."""

    def work() -> None:
        log = world.new_log("restorer")
        for draft in (Draft(seals=True), Draft(restores=True)):
            world.scheduler.stall(world.rng.randint(20, 200))
            try:
                change = log.commit(log.load(), lambda view, passed, draft=draft: draft)  # type: ignore[misc]
                world.newest_acknowledged = max(world.newest_acknowledged, change.version)
                world.count("sealed, or restored")
            except (StorageError, LogSealed, CommitUnknown, ConflictError):
                world.count("a seal that failed")

    return work


def _forger(world: World, deeds: int) -> Callable[[], None]:
    """Put proposals under other keys, whole and broken, and take some away."""

    def work() -> None:
        for _ in range(deeds):
            world.scheduler.stall(world.rng.randint(1, 60))
            keys = list(world.truth.list_after(world.keys.inbox))
            if not keys:
                continue
            key, head = world.rng.choice(keys), world.head()
            data, proposal = world.truth.get(key), world.keys.proposal_of(key)
            deed_text = world.rng.choice(("later", "later", "cut", "garbage", "gone"))
            if deed_text == "gone":
                world.truth.delete([key])
            elif data is not None and proposal is not None:
                broken_data = {"cut": data[: len(data) // 2], "garbage": b"{}"}.get(deed_text, data)
                world.truth.put(
                    world.keys.proposal(max(1, head - world.rng.randint(0, 2)), proposal[1]), broken_data
                )
            world.count(f"forgery: {deed_text}")

    return work
