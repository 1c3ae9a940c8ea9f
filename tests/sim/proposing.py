"""Processes that propose their changes to each other, and combine them, under faults, crashes, expiry and vacuum.

Windows are a few versions here, and what begins a proposal in a process that has lost races begins it at once: each
schedule has more of what takes weeks to happen.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from tests.sim import actors
from tests.sim.simulation import Outcome, check
from tests.sim.world import World, new_world

from lakelog.log import changes, courier, format, inbox, keys, placing, window


@contextmanager
def sizes(window_versions: int, races: int) -> Iterator[None]:
    with ExitStack() as stack:
        for module in (changes, courier, format, inbox, keys, window):
            stack.enter_context(patch.object(module, "WINDOW", window_versions))
        stack.enter_context(patch.object(inbox, "OLDER_FOLDER_VERSIONS", max(1, window_versions // 2)))
        stack.enter_context(patch.object(placing, "RACES_BEFORE_PROPOSING", races))
        yield


def simulate_proposals(seed: int) -> Outcome:
    """Run the world of `seed` and return what is wrong with it. The same seed gives the same run."""
    world = new_world(seed)
    world.proposals = True
    rng = world.rng
    with sizes(rng.choice((2, 3, 5, 20)), rng.choice((0, 0, 1, 2))):
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
        world.scheduler.run()
        failures = [*world.scheduler.failures, *world.failures, *check(world)]
    return Outcome(seed, tuple(failures), world.head(), world.scheduler.steps, world.counters)


def _process(world: World, number: int) -> None:
    log = world.new_log(f"process {number}")
    for i in range(world.rng.randint(1, 3)):
        name = f"thread {i} of process {number}"
        world.scheduler.spawn(name, actors.writer(world, name, world.rng.randint(2, 6), shared_with=log))
