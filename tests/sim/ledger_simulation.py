"""A run of the second world from a seed, and the checks after it."""

from __future__ import annotations

from tests.sim import ledger_actors as actors
from tests.sim import ledger_forger as forging
from tests.sim import ledger_readers as readers
from tests.sim.burying import buried_in_part, small_windows
from tests.sim.ledgers import NAMES, Fact, Ledgers, new_ledgers
from tests.sim.serializability import Event, cycle
from tests.sim.simulation import Outcome

from lakelog.log.burial import tombstone_of
from lakelog.log.format import (
    Commit,
    SnapshotRoot,
    Tombstone,
    decode_base,
    decode_decision,
    decode_entry,
    decode_root,
)
from lakelog.log.grammar import RIGHTS_KEY
from lakelog.log.view import CLOCK_TOLERANCE_US

FORGER_EVERY = 4


def simulate_ledgers(seed: int) -> Outcome:
    """Run the second world of `seed` and return what is wrong with it. The same seed gives the same run."""
    world = new_ledgers(seed)
    rng, spawn = world.rng, world.scheduler.spawn
    actors.founder(world)
    for i in range(rng.randint(2, 4)):
        spawn(f"coordinator {i}", actors.coordinator(world, f"coordinator {i}", rng.randint(3, 9)))
    for i in range(rng.randint(0, 2)):
        spawn(f"reader {i}", readers.reader(world, f"reader {i}", rng.randint(3, 8)))
    for i in range(rng.randint(1, 2)):
        spawn(f"cutter {i}", readers.cut_reader(world, f"cutter {i}", rng.randint(3, 8)))
    for i in range(rng.choice((0, 1, 2))):
        spawn(f"expirer {i}", actors.expirer(world, f"expirer {i}", rng.randint(1, 5)))
    if rng.random() < 0.3:
        spawn("creator", actors.creator(world, "creator", rng.randint(1, 3)))
    if rng.random() < 0.4:
        spawn("vandal", actors.vandal(world, rng.randint(1, 8)))
    if seed % FORGER_EVERY == 1:
        forging.found(world)
        spawn("forger", forging.forger(world, rng.randint(3, 9)))
        spawn("keeper", forging.keeper(world, rng.randint(3, 9)))
    with small_windows(rng):
        world.scheduler.run()
    for name in NAMES:
        for fact in world.known(name):
            if not fact.has_effect:
                world.count("aborted")
    failures = [*world.scheduler.failures, *world.failures, *check(world)]
    versions = sum(len(world.known(name)) for name in NAMES)
    return Outcome(seed, tuple(failures), versions, world.scheduler.steps, world.counters, world.truth.faults)


def check(world: Ledgers) -> list[str]:
    """Return what is wrong at the end, judged from the stored objects alone."""
    return [
        *(f"{key} was freed and created again" for key in world.truth.freed),
        *(problem for name in NAMES for problem in check_log(world, name)),
        *(problem for name in NAMES for problem in buried_in_part(world.truth, world.keys[name])),
        *check_decisions(world),
        *check_operations(world),
        *check_times(world),
        *(problem for name in NAMES for problem in check_snapshots(world, name)),
        *check_order(world),
    ]


def check_log(world: Ledgers, name: str) -> list[str]:
    """Dense versions, chained by hashes, each settled by the next one as its decision says."""
    problems = []
    facts, base = world.known(name), world.last_base(name)
    fact_before: Fact | None = None
    for version, fact in enumerate(facts, 1):
        at = f"version {version} of {name}"
        original = world.created(name, version)
        data = world.truth.get(world.keys[name].commit(version))
        if original is None or data is None:
            problems.append(f"{at} is gone")
            continue
        entry = decode_entry(data, at)
        if isinstance(entry, Tombstone):
            expected = tombstone_of(original, fact.settled)
            if any(
                getattr(entry, f) != getattr(expected, f) for f in Tombstone.__struct_fields__ if f != "hash"
            ):
                problems.append(f"{at} has another tombstone than its commit and decision make")
            if version > base:
                problems.append(f"{at} is a tombstone, but the last base is at {base}")
        elif entry != original:
            problems.append(f"{at} was replaced by another commit")
        if original.version != version or original.prev != (fact_before.commit.hash if fact_before else ""):
            problems.append(f"{at} does not continue the one before")
        if original.settles != (fact_before.settled if fact_before else None):
            problems.append(
                f"{at} settles {original.settles}, but that was {fact_before and fact_before.settled}"
            )
        if fact_before is not None:
            problems += check_life(at, fact_before, original)
        fact_before = fact
    undecided_commit = world.created(name, len(facts) + 1)
    if undecided_commit is not None and world.created(name, len(facts) + 2) is not None:
        problems.append(f"something follows version {len(facts) + 1} of {name}, which is undecided")
    prefix = f"{world.keys[name].log}/0"
    numbers = [key for key in world.truth.created if key.startswith(prefix)]
    if len(numbers) != len(facts) + (undecided_commit is not None):
        problems.append(f"{len(numbers)} versions of {name} were created, but {len(facts)} follow each other")
    return problems


def check_life(at: str, before: Fact, commit: Commit) -> list[str]:
    """After a seal the log is restored, purged or created anew; after a purge only the last."""
    after_seal = commit.restores or commit.purges or commit.reopens
    if before.sealed != after_seal or (before.purged and not commit.reopens):
        return [f"{at} may not follow what is before it"]
    if commit.reopens == (commit.log_id == before.log_id):
        return [f"{at} is of the wrong log"]
    return []


def check_decisions(world: Ledgers) -> list[str]:
    """A decision never changes, and one that commits names exactly the intents of its transaction."""
    problems = []
    intents: dict[str, dict[str, int]] = {}
    sizes: dict[str, int] = {}
    for name in NAMES:
        version = 1
        while (commit := world.created(name, version)) is not None:
            if commit.intent is not None:
                if name in intents.setdefault(commit.intent.txn, {}):
                    problems.append(f"transaction {commit.intent.txn} is twice in {name}")
                intents[commit.intent.txn][name] = version
                sizes[commit.intent.txn] = commit.intent.count
            version += 1
    for key, created_data in world.truth.created.items():
        if "_txn/" not in key or key.endswith(RIGHTS_KEY):
            continue
        if world.truth.get(key) != created_data:
            problems.append(f"{key} was overwritten")
        decision = decode_decision(created_data, key)
        intent = intents.get(decision.txn, {})
        if decision.outcome == "committed" and (
            intent != decision.positions or sizes.get(decision.txn) != len(decision.positions)
        ):
            problems.append(f"{key} commits {decision.positions}, but its intents are at {intent}")
    return problems


def check_operations(world: Ledgers) -> list[str]:
    """All parts or none; acknowledged: there once, refused: not there, unknown: at most once."""
    problems = []
    for operation in world.operations:
        found_versions = world.versions_of(operation)
        wanted_deltas = set(operation.deltas) or set(operation.log_ids)
        if any(len(versions) > 1 for versions in found_versions.values()):
            problems.append(f"{operation.id} was applied more than once: {found_versions}")
        if found_versions and set(found_versions) != wanted_deltas:
            problems.append(
                f"{operation.id} is in {sorted(found_versions)} and not in "
                f"{sorted(wanted_deltas - set(found_versions))}"
            )
        for name, versions in found_versions.items():
            if any(world.known(name)[v - 1].log_id != operation.log_ids[name] for v in versions):
                problems.append(f"{operation.id} was meant for another log than it was applied to in {name}")
        if (
            operation.acknowledged is not None
            and {name: [version] for name, version in operation.acknowledged.items()} != found_versions
        ):
            problems.append(
                f"{operation.id} was acknowledged at {operation.acknowledged}, but is at {found_versions}"
            )
        if operation.refused and found_versions:
            problems.append(f"{operation.id} was reported as failed, but is at {found_versions}")
        if len({world.known(name)[versions[0] - 1].time_us for name, versions in found_versions.items()}) > 1:
            problems.append(f"{operation.id} happened at several times")
    for name in NAMES:
        if any(fact.state.balance < 0 for fact in world.known(name)):
            problems.append(f"{name} was overdrawn")
    return problems


def check_times(world: Ledgers) -> list[str]:
    problems = []
    for name in NAMES:
        facts = [fact for fact in world.known(name) if fact.has_effect]
        times = [fact.time_us for fact in facts]
        if any(later <= earlier for earlier, later in zip(times, times[1:], strict=False)):
            problems.append(f"times of {name} do not increase")
        for fact in facts:
            key = world.keys[name].commit(fact.commit.version)
            if fact.commit.intent is not None:
                key = fact.commit.intent.decision
            if fact.time_us > world.truth.created_at_us[key] + CLOCK_TOLERANCE_US + 1000:
                problems.append(f"version {fact.commit.version} of {name} is in the future")
    return problems


def check_snapshots(world: Ledgers, name: str) -> list[str]:
    """Every snapshot, hint and base is what a replay gives, and of a decided version."""
    roots: list[tuple[str, SnapshotRoot]] = []
    keys, facts = world.keys[name], world.known(name)
    for key in [keys.latest, *world.truth.list_after(keys.snapshots)]:
        data = world.truth.get(key)
        if data is not None and data not in world.damaged:
            roots.append((key, decode_root(data, key)))
    number = 1
    while (data := world.truth.get(keys.base(number))) is not None:
        roots.append((keys.base(number), decode_base(data, "base", number=number).root))
        number += 1
    problems = []
    for key, root in roots:
        if root.version > len(facts) or root.commit_hash != facts[root.version - 1].commit.hash:
            problems.append(f"{key} is of no decided version")
            continue
        fact = facts[root.version - 1]
        seen_digests = (
            root.state["digest"],
            root.state["balance"],
            root.time_us,
            root.sealed,
            root.purged,
            root.settles,
        )
        true = (fact.state.digest, fact.state.balance, fact.time_us, fact.sealed, fact.purged, fact.settled)
        if seen_digests != true:
            problems.append(f"{key} is not what a replay of {root.version} versions gives")
    return problems


def check_order(world: Ledgers) -> list[str]:
    """The history is strictly serializable.

    What a transaction has re-checked without writing it counts as read. A cut that ignores the undecided does not fit
    into one order with such transactions (see log/README.md): it is judged without what they re-checked.
    """
    writes, guarded = [], []
    for operation in world.operations:
        found_versions = {name: versions[0] for name, versions in world.versions_of(operation).items()}
        if found_versions:
            event = Event(operation.id, operation.begun_at, operation.answered_at, found_versions)
            writes.append(event)
            reads = {} if operation.guard is None else dict([operation.guard])
            guarded.append(Event(event.name, event.begun_at, event.ended_at, found_versions, reads))
    problems = []
    for label, events in (
        ("all reads", [*writes, *(event for event, _ in world.reads)]),
        ("what was re-checked", [*guarded, *(event for event, is_settled in world.reads if is_settled)]),
    ):
        found_cycle = cycle(events)
        if found_cycle:
            problems.append(f"with {label} there is no order: {' < '.join([*found_cycle, found_cycle[0]])}")
    if cycle([*guarded, *(event for event, _ in world.reads)]):
        world.count("cuts that ignored the undecided and fit into no order")
    return problems
