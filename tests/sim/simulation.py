"""A run from a seed, and the checks after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.sim import actors
from tests.sim.burying import buried_in_part, small_windows
from tests.sim.projection import KNOWN, State, data_key
from tests.sim.world import World, new_world

from lakelog.log.changes import each_change
from lakelog.log.format import Commit, SnapshotRoot, Tombstone, decode_base, decode_entry, decode_root
from lakelog.log.view import CLOCK_TOLERANCE_US


@dataclass(frozen=True)
class Outcome:
    seed: int
    failures: tuple[str, ...]
    versions: int
    steps: int
    counters: dict[str, int]
    faults: dict[str, int]


def simulate(seed: int, *, condition_holds: bool = True) -> Outcome:
    """Run the world of `seed` and return what is wrong with it. The same seed gives the same run."""
    world = new_world(seed)
    rng = world.rng
    world.truth.condition_holds = condition_holds
    actors.founder(world)
    spawn = world.scheduler.spawn
    for i in range(rng.randint(1, 4)):
        spawn(f"writer {i}", actors.writer(world, f"writer {i}", rng.randint(3, 12)))
    if rng.random() < 0.6:
        log = world.new_log("process")
        for i in range(rng.randint(2, 5)):
            spawn(f"thread {i}", actors.writer(world, f"thread {i}", rng.randint(2, 8), shared_with=log))
    for i in range(rng.randint(1, 2)):
        spawn(f"reader {i}", actors.reader(world, f"reader {i}", rng.randint(3, 10)))
    for i in range(rng.choice((0, 1, 1, 2))):
        spawn(f"expirer {i}", actors.expirer(world, f"expirer {i}", rng.randint(1, 4)))
    if rng.random() < 0.5:
        spawn("vacuumer", actors.vacuumer(world, "vacuumer", rng.randint(1, 4)))
    if rng.random() < 0.5:
        spawn("vandal", actors.vandal(world, rng.randint(1, 12)))
    if rng.random() < 0.2:
        for i in range(rng.randint(1, 2)):
            spawn(f"sealer {i}", actors.sealer(world))
    with small_windows(rng):
        world.scheduler.run()
    failures = [*world.scheduler.failures, *world.failures, *check(world)]
    return Outcome(
        seed, tuple(failures), world.head(), world.scheduler.steps, world.counters, world.truth.faults
    )


def check(world: World) -> list[str]:
    """Return what is wrong at the end, judged from the stored objects alone."""
    head = world.head()
    return [
        *(f"{key} was freed and created again" for key in world.truth.freed),
        *check_versions(world, head),
        *buried_in_part(world.truth, world.keys),
        *check_operations(world),
        *check_data(world),
        *check_gathered(world),
        *check_times(world),
        *check_snapshots(world),
    ]


def check_versions(world: World, head: int) -> list[str]:
    """Versions without a gap, each still there as it was created or as its tombstone, chained by hashes."""
    problems = []
    base, previous, is_sealed = world.last_base(), "", False
    for version in range(1, head + 1):
        original = world.commits[version - 1]
        data = world.truth.get(world.keys.commit(version))
        if data is None:
            problems.append(f"version {version} is gone")
            continue
        entry = decode_entry(data, f"version {version}", KNOWN)
        if isinstance(entry, Tombstone) and version > base:
            problems.append(f"version {version} is a tombstone, but the last base is at {base}")
        if (entry.hash if isinstance(entry, Commit) else entry.commit_hash) != original.hash:
            problems.append(f"version {version} was replaced by another commit")
        if entry.prev != previous or entry.version != version:
            problems.append(f"version {version} does not continue version {version - 1}")
        if is_sealed != (original.reopens or original.restores):
            problems.append(
                f"version {version} follows the seal" if is_sealed else f"version {version} reopens"
            )
        if original.reopens and original.log_id == world.commits[version - 2].log_id:
            problems.append(f"version {version} reopens the log under the same id")
        previous, is_sealed = original.hash, original.seals
    numbers = [key for key in world.truth.created if key.startswith(world.keys.log) and key.count("/") == 2]
    if len([key for key in numbers if "bases" not in key]) != head:
        problems.append(f"{len(numbers)} versions were created, but only {head} follow each other")
    return problems


def check_operations(world: World) -> list[str]:
    """What was acknowledged is there once, what was refused is not, what is unknown at most once."""
    problems = []
    found: dict[str, list[int]] = {}
    refused_texts: set[str] = set()
    for commit in world.commits:
        for change in each_change(commit):
            found.setdefault(change.commit_id, []).append(commit.version)
        for each in commit.changes:
            if each.refused is not None:
                refused_texts.add(each.commit_id)
    problems += [
        f"change {id} was refused, and applied at {found[id]}" for id in refused_texts & found.keys()
    ]
    problems += check_claims(world)
    for operation in world.operations:
        versions = found.get(operation.commit_id, [])
        if any(operation.log_id not in ("", world.commits[version - 1].log_id) for version in versions):
            problems.append(f"{operation.id} was meant for another log than it was applied to")
        if len(versions) > 1:
            problems.append(f"{operation.id} was applied at {versions}")
        if operation.acknowledged_at is not None and operation.acknowledged_at not in versions:
            problems.append(
                f"{operation.id} was acknowledged at {operation.acknowledged_at}, but is at {versions}"
            )
        if operation.refused and versions:
            problems.append(f"{operation.id} was reported as failed, but is at {versions}")
    return problems


def check_claims(world: World) -> list[str]:
    """A claim was free whenever it was granted, and taken whenever it was released."""
    problems = []
    for version, commit in enumerate(world.commits, 1):
        for change, state_before in zip(each_change(commit), world.judged_on[version - 1], strict=True):
            problems += [f"version {version}: {wrong}" for wrong in wrong_claims(change, state_before)]
    return problems


def wrong_claims(change: Commit, before: State) -> Iterator[str]:
    for event in change.events:
        if event.get("claim") in before.claims:
            yield f"claims {event['claim']}, which was taken"
        if "release" in event and event["release"] not in before.claims:
            yield f"releases {event['release']}, which was free"


def check_data(world: World) -> list[str]:
    """The data of every committed write is there; what was sealed and reopened since is given up."""
    return [
        f"version {commit.version} lost its data to vacuum"
        for commit in world.commits[world.first_version(world.head()) - 1 :]
        for change in each_change(commit)
        if change.write is not None
        and world.truth.get(data_key(change.write.id, change.write.version)) is None
    ]


def check_gathered(world: World) -> list[str]:
    """A data object of many has the rows of the changes before it in its version, and no others."""
    problems = []
    for commit in world.commits[world.first_version(world.head()) - 1 :]:
        own: list[str] = []
        for change in each_change(commit):
            for event in change.events:
                if "of" in event and change.write is not None:
                    data = world.truth.get(data_key(change.write.id, change.write.version)) or b""
                    world.count("data objects of many")
                    if data.decode().split("\n") != own[len(own) - event["of"] :]:
                        problems.append(f"version {commit.version} has {own}, and its data {data!r}")
                own.append(str(event.get("op", "")))
    return problems


def check_times(world: World) -> list[str]:
    """Times increase, and none is carried away by one writer's clock."""
    problems = []
    times = [commit.time_us for commit in world.commits]
    if any(later <= earlier for earlier, later in zip(times, times[1:], strict=False)):
        problems.append("times do not increase")
    for commit in world.commits:
        created_us = world.truth.created_at_us[world.keys.commit(commit.version)]
        if commit.time_us > created_us + CLOCK_TOLERANCE_US + commit.version:
            problems.append(
                f"version {commit.version} is {(commit.time_us - created_us) / 1e6} s in the future"
            )
    return problems


def check_snapshots(world: World) -> list[str]:
    """Every snapshot, hint and base equals the replay."""
    problems = []
    roots: list[tuple[str, SnapshotRoot]] = []
    for key in [world.keys.latest, *world.truth.list_after(world.keys.snapshots)]:
        data = world.truth.get(key)
        if data is not None and data not in world.damaged:
            roots.append((key, decode_root(data, key, KNOWN)))
    number, last = 1, 0
    while (data := world.truth.get(world.keys.base(number))) is not None:
        root = decode_base(data, f"base {number}", KNOWN, number=number).root
        roots.append((f"base {number}", root))
        if root.version <= last:
            problems.append(f"base {number} at version {root.version} does not come after {last}")
        last, number = root.version, number + 1
    for name, root in roots:
        if root.version > len(world.commits) or root.commit_hash != world.commits[root.version - 1].hash:
            problems.append(f"{name} is of no commit")
            continue
        if root.state is None and name.startswith("base ") and root.version < last:
            continue  # emptied, as another one follows it
        expected = world.states[root.version]
        if root.state is None or (root.state["count"], root.state["digest"]) != (
            expected.count,
            expected.digest,
        ):
            problems.append(f"{name} is not what a replay of {root.version} versions gives")
    return problems
