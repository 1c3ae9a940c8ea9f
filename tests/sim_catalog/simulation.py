"""A run of a whole warehouse from a seed, and the checks after it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from types import ModuleType
from unittest.mock import patch

from tests.sim.proposing import sizes
from tests.sim.simulation import Outcome
from tests.sim_catalog import (
    bank,
    chain,
    clones,
    crowd,
    duty,
    final,
    judging,
    lines,
    maintenance,
    names,
    numbers,
    readers,
    ring,
    rows,
    sink,
)
from tests.sim_catalog.readers import Check
from tests.sim_catalog.stores import rows_at
from tests.sim_catalog.world import CatalogWorld, new_catalog_world

from lakelog.catalog import Catalog
from lakelog.catalog.core.files import deletion_vectors
from lakelog.catalog.core.schema import SNAPSHOT
from lakelog.catalog.engine import CatalogNames
from lakelog.log import LakelogError
from lakelog.log.changes import combined_ids
from lakelog.log.view import CLOCK_TOLERANCE_US

INVARIANTS: dict[str, ModuleType] = {
    "bank": bank,
    "chain": chain,
    "duty": duty,
    "numbers": numbers,
    "ring": ring,
    "sink": sink,
}
ROWS, LINES, CLONES, CROWD = "rows", "lines", "clones", "crowd"
APART: dict[str, ModuleType] = {ROWS: rows, LINES: lines, CLONES: clones, CROWD: crowd}
KINDS = (
    *("names", "bank", "names", "chain", "duty", "ring", "sink"),
    *("names", "numbers", "names", "chain", "duty", "ring", "sink"),
)
"""What a seed is about, by its remainder."""


def seeds_of(kind: str, number: int) -> list[int]:
    """Return the first seeds that are about something."""
    return [seed for seed in range(1, number * len(KINDS) + 1) if KINDS[seed % len(KINDS)] == kind][:number]


def simulate_catalog(
    seed: int, kind: str | None = None, about: frozenset[str] = frozenset(), *, proposals: bool = False
) -> Outcome:
    """Run the world of `seed` and return what is wrong with it. The same seed gives the same run.

    `kind` makes it about something else than its remainder says: about `rows`, `lines`, `clones` or a `crowd`, which no
    remainder stands for. `about` leaves some ways open to clients of those that they have (`CatalogWorld.chosen`), so
    that what these are about shows in few seeds. With `proposals`, clients propose changes to each other, from the
    first or second race that they lose, and in windows of a few versions.
    """
    world = new_catalog_world(seed, about)
    world.proposals = proposals
    rows_at.clear()
    kind = kind or KINDS[seed % len(KINDS)]
    # Vectors of so few rows would always stand in the entries.
    inline_max_bytes = 0 if seed % 2 else deletion_vectors.INLINE_MAX_BYTES
    with (
        world.open(),
        clones.known_copies(),
        patch.object(deletion_vectors, "INLINE_MAX_BYTES", inline_max_bytes),
        sizes((2, 3, 5, 20)[seed % 4], seed // 4 % 2) if proposals else nullcontext(),
    ):
        finish = partial(judging.judge, names.populate(world)) if kind == "names" else invariants(world, kind)
        world.scheduler.run()
        failures = [*world.scheduler.failures, *world.failures]
        try:
            failures += [*finish(), *final.problems(world)]
        except LakelogError as error:
            failures.append(f"at the end: {type(error).__name__}: {error}")
    for _, entry in world.truth.entries():
        if combined_ids(entry):
            world.count("versions with changes of others")
        if any(change.refused for change in entry.changes):
            world.count("versions that refuse a change")
    versions = sum(len(log.commits) for log in world.truth.logs().values())
    return Outcome(seed, tuple(failures), versions, world.scheduler.steps, world.counters, world.store.faults)


def invariants(world: CatalogWorld, kind: str) -> Callable[[], list[str]]:
    """Found what has an invariant, maybe two such things, with clients who change them and who look at them."""
    rng = world.rng
    other_invariants = sorted(INVARIANTS.keys() - {kind})
    chosen_kinds = [kind, rng.choice(other_invariants)] if rng.random() < 0.25 and not world.about else [kind]
    calm = world.calm()
    for label in chosen_kinds:
        module_of(label).found(calm)
    # Long ago: no clock is so far behind that something would happen before.
    world.now_us += 2 * CLOCK_TOLERANCE_US
    world.founded_us = max(commit.time_us for _, commit in world.truth.entries())
    checks: dict[str, Check] = {title: partial(check, world, title) for title in chosen_kinds}
    more = 2 if world.about or kind == CROWD else 0
    deeds = 3 if kind == CROWD else 0
    for label in chosen_kinds:
        for i in range(rng.randint(2, 3) + more):
            world.spawn(f"{label} {i}", rng.randint(2, 5) + deeds, partial(module_of(label).deed, world))
    for i in range(rng.randint(1, 2)):
        name = f"reader {i}"
        look: Callable[[Catalog], None] = partial(readers.deed, world, name, checks)
        world.spawn(name, rng.randint(2, 6), look)
    # What becomes of clones shows once much was deleted.
    if kind == CLONES or "vacuum" in world.about or rng.random() < 0.3:
        maintenance.populate(world)
    return partial(at_the_end, world, checks)


def module_of(what: str) -> ModuleType:
    return APART[what] if what in APART else INVARIANTS[what]


def check(world: CatalogWorld, what: str, catalog: CatalogNames) -> str | None:
    """Return what is wrong in what a catalog shows."""
    module = module_of(what)
    return allowed_text(world, module.judge(module.look(catalog)))


def allowed_text(world: CatalogWorld, problem: str | None) -> str | None:
    """Return a problem unless it is one that snapshot isolation does not prevent."""
    if problem != duty.NO_DOCTOR or world.isolation != SNAPSHOT:
        return problem
    world.count("no doctor on duty under snapshot isolation")
    return None


def at_the_end(world: CatalogWorld, checks: dict[str, Check]) -> list[str]:
    """Return what is wrong now, or was by the times of what was committed, whether a reader saw it or not."""
    calm = world.calm()
    texts = [f"at the end {problem}" for check in checks.values() if (problem := check(calm))]
    for time_us, tables in world.truth.history():
        for which_check in checks if time_us >= world.founded_us else ():
            problem = allowed_text(world, module_of(which_check).judge(tables))
            if problem:
                texts.append(f"by the times of all commits, at {time_us} {problem}")
    if not world.weather.fault and not world.weather.crash and CROWD not in checks:
        texts += final.of_creations(world)
    if "sink" in checks:
        texts += sink.never_twice(world)
    if LINES in checks:
        texts += lines.lost(world)
    if CROWD in checks:
        texts += crowd.lost(world)
    return texts[:3]
