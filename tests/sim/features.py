"""A log whose features come one after the other, and clients that do not know all of them.

What such a client reads is right, and of versions that need nothing unknown. It writes nothing once the log
uses a feature of writers that it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from tests.sim import actors
from tests.sim.burying import small_windows
from tests.sim.projection import COLOURS, KNOWN, RULES, State
from tests.sim.simulation import Outcome, check
from tests.sim.world import Operation, World, new_world

from lakelog.log import (
    CommitUnknown,
    ConflictError,
    Draft,
    Log,
    LogView,
    NotFound,
    StorageError,
    UnsupportedFormat,
    expiry,
)

KINDS: tuple[tuple[str, ...], ...] = ((), (COLOURS,), (RULES,))
"""What clients know that do not know all."""


def simulate_features(seed: int) -> Outcome:
    """Run the world of `seed` and return what is wrong with it. The same seed gives the same run."""
    world = new_world(seed)
    world.features = True
    rng, spawn = world.rng, world.scheduler.spawn
    actors.founder(world)
    for i in range(rng.randint(1, 3)):
        spawn(f"writer {i}", actors.writer(world, f"writer {i}", rng.randint(3, 12)))
    if rng.random() < 0.4:
        spawn("reader", actors.reader(world, "reader", rng.randint(3, 10)))
    if rng.random() < 0.5:
        spawn("expirer", actors.expirer(world, "expirer", rng.randint(1, 4)))
    if rng.random() < 0.4:
        spawn("vandal", actors.vandal(world, rng.randint(1, 12)))
    if rng.random() < 0.3:
        spawn("sealer", actors.sealer(world))
    clients = {f"older {i}": rng.choice(KINDS) for i in range(rng.randint(1, 3))}
    for name, knows in clients.items():
        spawn(name, older_client(world, name, knows, rng.randint(5, 25)))
    with small_windows(rng):
        world.scheduler.run()
    failures = [*world.scheduler.failures, *world.failures, *check(world), *check_names(world, clients)]
    return Outcome(
        seed, tuple(failures), world.head(), world.scheduler.steps, world.counters, world.truth.faults
    )


def older_client(world: World, name: str, knows: Collection[str], deeds: int) -> Callable[[], None]:
    """A process that knows only some features: it reads, commits, expires and writes snapshots."""

    def work() -> None:
        log = world.new_log(name, knows)
        view: LogView[State] | None = None
        for _ in range(deeds):
            world.scheduler.stall(world.rng.randint(0, 60))
            deed_read = world.rng.choice(
                (read, read_older, read_older, commit, commit_on_known, expire, snapshot)
            )
            head = world.head()
            try:
                view = deed_read(world, log, view) or view
            except UnsupportedFormat as error:
                world.count(f"refused to an older client: {deed_read.__name__}")
                if not ever_unknown(world, knows, world.head()):
                    world.fail(f"{deed_read.__name__} was refused at {world.head()} for nothing: {error}")
            except CommitUnknown:
                world.count("unknown to an older client")
            except (ConflictError, NotFound, StorageError):
                continue
            else:
                world.count(f"done by an older client: {deed_read.__name__}")
                # A log that was reopened since has no features.
                is_reopened = any(entry.reopens for entry in world.commits[head : world.head()])
                lacks = set() if is_reopened else unknown(world, knows, head)
                if (deed_read is not read_older and COLOURS in lacks) or (deed_read in WRITING and lacks):
                    world.fail(f"{deed_read.__name__} did not need {lacks} at version {head}")

    return work


Known = LogView[State] | None


def read(world: World, log: Log[State], view: Known) -> Known:
    view = log.load() if view is None or world.rng.random() < 0.5 else log.refresh(view)
    world.check_view(view, "an older client's view")
    actors.read_operations(world, log, view)
    return view


def read_older(world: World, log: Log[State], view: Known) -> Known:
    """Read a version; what came after it is of no consequence, unless it has expired."""
    knows = log.replay.features
    version = world.rng.randint(1, world.head())
    try:
        world.check_view(log.view_at(version), "an older client's older view")
        world.count("older versions read by an older client")
    except UnsupportedFormat:
        if world.last_base() < version and COLOURS not in ever_unknown(world, knows, version):
            world.fail(f"version {version} could not be read, though it uses nothing unknown")
        raise
    if COLOURS in unknown(world, knows, version):
        world.fail(f"version {version} was read, though it uses what is not known")
    return None


def commit(world: World, log: Log[State], view: Known) -> Known:
    return commit_on_known(world, log, log.load())


def commit_on_known(world: World, log: Log[State], view: Known) -> Known:
    """Commit on what it knows, which may be of before the first feature."""
    view = view or log.load()
    operation = Operation(
        id=f"o{len(world.operations)}", commit_id=world.new_id(), base=view.version, log_id=view.log_id
    )
    world.operations.append(operation)
    change = log.commit(
        view,
        lambda view, passed: Draft(events=({"op": operation.id},)),
        commit_id=operation.commit_id,
        base=operation.base,
    )
    world.acknowledge(operation, change.version)
    return change.view


def expire(world: World, log: Log[State], view: Known) -> Known:
    head = log.load()
    expiry.expire(log, world.rng.randint(1, head.version), head=head)
    return None


def snapshot(world: World, log: Log[State], view: Known) -> Known:
    log.snapshot(log.load())
    return None


WRITING = (commit, commit_on_known, expire, snapshot)


def named(world: World, upto: int) -> tuple[set[str], set[str]]:
    """Return the features of readers and of writers that the versions of a log name, up to a version of it."""
    commits = world.commits[world.first_version(upto) - 1 : upto]
    return {name for commit in commits for name in commit.features}, {
        name for commit in commits for name in commit.writer_features
    }


def unknown(world: World, knows: Collection[str], upto: int) -> set[str]:
    """Return the features that are in use at a version, and that a client does not know."""
    readers, writers = named(world, upto)
    return (readers | writers) - {*knows}


def ever_unknown(world: World, knows: Collection[str], upto: int) -> set[str]:
    """Return the unknown features of all versions, even of a log before a reopening, which readers may pass."""
    return {
        name for commit in world.commits[:upto] for name in (*commit.features, *commit.writer_features)
    } - {*knows}


def check_names(world: World, clients: dict[str, tuple[str, ...]]) -> list[str]:
    """Each use has its name by then, named once; and no client wrote after a feature that it does not know."""
    problems = []
    for number, commit in enumerate(world.commits, 1):
        pair_before = named(world, number - 1) if number > 1 and not commit.reopens else (set(), set())
        for member, used_text, old, new in zip(
            ("needs", "needs_of_writers"),
            KNOWN,
            pair_before,
            (commit.features, commit.writer_features),
            strict=True,
        ):
            uses = any(member in event for event in commit.events)
            if {*new} != ({used_text} if uses and used_text not in old else set()):
                problems.append(f"version {number} names {new}, after {sorted(old)}")
        writer = str(commit.writer.get("by"))
        if (
            writer in clients
            and not commit.reopens
            and (pair_before[0] | pair_before[1]) - {*clients[writer]}
        ):
            problems.append(
                f"{writer}, which knows {clients[writer]}, wrote version {number} after {pair_before}"
            )
    return problems
