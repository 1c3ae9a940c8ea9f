"""The actors of the second world: coordinators, readers of one log and of cuts through all, expirers, a vandal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from tests.sim.ledger import OPENING, Ledger
from tests.sim.ledgers import ACCOUNTS, NAMES, REGISTRY, TABLE, Ledgers, Operation
from tests.sim.scheduler import Crash
from tests.sim.serializability import Event

from lakelog.log import (
    AlreadyExists,
    Commit,
    Committed,
    CommitUnknown,
    ConflictError,
    Draft,
    Log,
    LogSealed,
    NotFound,
    Part,
    StorageError,
    View,
    commit_together,
    expiry,
    refresh_many,
)
from lakelog.log.format import decode_root, encode

PASSES_MAX = 12
CREATIONS_MAX = 4
Views = dict[str, View[Ledger]]


class Short(ConflictError):
    """There is not enough in the account."""


class Moved(ConflictError):
    """The log that the transaction depends on is not as it was."""


class Desk:
    """One process: its logs, and the newest views that it has of them."""

    def __init__(self, world: Ledgers, actor: str) -> None:
        self.world = world
        self.logs, self.decisions = world.new_logs(actor)
        self.views: Views = {}
        self.older: Views = {}

    def view(self, name: str) -> View[Ledger]:
        """Return some view of the log: the newest, or one that was known before."""
        known = self.views.get(name)
        if known is None:
            self.views[name] = self.logs[name].load()
            self.world.check_view(name, self.views[name], "a load")
        elif self.world.rng.random() < 0.5:
            self.views[name] = self.logs[name].refresh(known)
            self.world.check_view(name, self.views[name], "a refresh")
            if self.world.rng.random() < 0.5:
                self.older[name] = known
        old = self.older.get(name)
        return old if old is not None and self.world.rng.random() < 0.3 else self.views[name]


def coordinator(world: Ledgers, name: str, operations: int) -> Callable[[], None]:
    def work() -> None:
        desk = Desk(world, name)
        for _ in range(operations):
            if world.rng.random() < 0.1:
                desk = Desk(world, name)
            try:
                asked = [o for o in world.operations if o.asked and not o.refused and not o.created]
                if asked and world.rng.random() < 0.3:
                    ask(world, desk, world.rng.choice(asked))
                else:
                    ask(world, desk, new_operation(world, desk))
            except StorageError:
                continue
            except Crash:
                world.count("crashes of coordinators")
                desk = Desk(world, name)

    return work


def new_operation(world: Ledgers, desk: Desk) -> Operation:
    rng = world.rng
    kind, guard, deed = rng.random(), None, ""
    if kind < 0.45:
        names = rng.sample(ACCOUNTS, rng.choice((2, 2, 3)))
        amount = rng.randint(1, 60)
        deltas = dict.fromkeys(names, 0) | {names[0]: -amount, names[1]: amount}
    elif kind < 0.6:
        deltas = {rng.choice(NAMES): 0}
    elif kind < 0.8:
        guarded, *names = rng.sample(ACCOUNTS, rng.choice((2, 3)))
        deltas = dict.fromkeys(names, 0)
        guard = (guarded, desk.view(guarded).version)
    else:
        deed = rng.choice(("seals", "seals", "restores", "restores", "purges"))
        deltas = {TABLE: 0} if deed == "purges" else {REGISTRY: 0, TABLE: 0}
    views = {name: desk.view(name) for name in deltas}
    operation = Operation(
        id=f"o{len(world.operations)}",
        commit_id=world.new_id(),
        deltas=deltas,
        bases={name: view.version for name, view in views.items()},
        log_ids={name: view.log_id for name, view in views.items()},
        deed=deed,
        guard=guard,
        sidecar=rng.random() < 0.3,
    )
    world.operations.append(operation)
    return operation


def ask(world: Ledgers, desk: Desk, operation: Operation) -> None:
    """Ask for the operation, once more if it was asked for before; take down what was answered."""
    if operation.asked == 0:
        operation.begun_at = world.scheduler.steps
    operation.asked += 1
    only_ask = operation.asked == 1
    views = {}
    for name, base in operation.bases.items():
        view = desk.view(name)
        views[name] = view if view.version >= base else desk.logs[name].load()
    already = bool(world.versions_of(operation))
    names = list(operation.deltas)
    parts = [
        Part(name, desk.logs[name], views[name], decide(world, operation, name), operation.bases[name])
        for name in names
    ]

    def validate() -> None:
        assert operation.guard is not None
        guarded, version = operation.guard
        if desk.logs[guarded].refresh_settled(desk.view(guarded)).version != version:
            raise Moved(f"{guarded} is no longer at {version}")
        if world.rng.random() < 0.3:
            world.scheduler.stall(world.rng.randint(1, 80))  # much may happen before the decision

    world.count("asked" if only_ask else "asked again")
    try:
        done: Sequence[Committed[Ledger]] = commit_together(
            parts,
            decisions=desk.decisions,
            commit_id=operation.commit_id,
            validate=None if operation.guard is None else validate,
        )
    except CommitUnknown:
        world.count("unknown")
        return
    except (ConflictError, LogSealed, StorageError) as error:
        world.count(f"refused: {type(error).__name__}")
        operation.refused = only_ask and operation.asked == 1
        if already and not isinstance(error, StorageError):
            world.fail(f"{operation.id} had been committed, but asking again said: {error}")
        return
    world.count("acknowledged" + (f" of {len(parts)}" if len(parts) > 1 else ""))
    if operation.deed in ("restores", "purges"):
        world.count("restored" if operation.deed == "restores" else "purged")
    world.acknowledge(operation, {name: one.version for name, one in zip(names, done, strict=True)})
    for name, one in zip(names, done, strict=True):
        world.check_view(name, one.view, "a committer's view")
        if one.view.version < one.version:
            world.fail(f"{operation.id} is at {one.version} of {name}, but the view at {one.view.version}")
        known = desk.views.get(name)
        if known is None or known.version < one.view.version:
            desk.views[name] = one.view


def decide(
    world: Ledgers, operation: Operation, name: str
) -> Callable[[View[Ledger], Sequence[Commit]], Draft]:
    def judged(view: View[Ledger], passed: Sequence[Commit]) -> Draft:
        world.check_view(name, view, "what decide was given")
        facts = world.known(name)[operation.bases[name] : view.version]
        expected = [(fact.commit.version, fact.time_us) for fact in facts if fact.has_effect]
        told = [(commit.version, commit.time_us) for commit in passed]
        if told != expected:
            world.fail(f"decide was told of {told} instead of {expected} at {view.version} of {name}")
        delta = operation.deltas[name]
        if view.state.balance + delta < 0:
            raise Short(f"{name} has {view.state.balance}, not {-delta}")
        event: dict[str, object] = {"blob": 0} if operation.sidecar else {"op": operation.id}
        if delta:
            event["delta"] = delta
        if name == REGISTRY and operation.deed:
            event |= {"life": operation.log_ids[TABLE], "alive": operation.deed == "restores"}
        deed = operation.deed if name == TABLE else ""
        return Draft(
            events=(event,),
            blobs=(operation.id.encode(),) if operation.sidecar else (),
            seals=deed == "seals",
            restores=deed == "restores",
            purges=deed == "purges",
        )

    return judged


def creator(world: Ledgers, name: str, times: int) -> Callable[[], None]:
    """Create the table anew where it is sealed, and ask again where the answer was lost."""

    def work() -> None:
        desk = Desk(world, name)
        for _ in range(times):
            world.scheduler.stall(world.rng.randint(50, 600))
            log_id = world.new_id()
            operation = Operation(
                id=f"create {log_id}",
                commit_id=world.new_id(),
                deltas={},
                bases={},
                log_ids={TABLE: log_id},
                created=True,
                begun_at=world.scheduler.steps,
            )
            world.operations.append(operation)
            for _ in range(CREATIONS_MAX):
                try:
                    view = desk.logs[TABLE].create(
                        Draft(events=({"op": operation.id},)), log_id=log_id, commit_id=operation.commit_id
                    )
                except (CommitUnknown, StorageError):
                    continue
                except AlreadyExists:
                    break
                except Crash:
                    desk = Desk(world, name)
                    continue
                world.count("created anew")
                world.check_view(TABLE, view, "a creator's view")
                found = world.versions_of(operation)
                world.acknowledge(operation, {TABLE: found[TABLE][0]} if found else {TABLE: 0})
                break

    return work


def reader(world: Ledgers, name: str, reads: int) -> Callable[[], None]:
    """Reads one log at a time: what was acknowledged is there, and nothing undecided."""

    def work() -> None:
        logs, _ = world.new_logs(name)
        views: Views = {}
        for _ in range(reads):
            which = world.rng.choice(NAMES)
            known, begun_at, before = world.newest[which], world.scheduler.steps, views.get(which)
            try:
                fresh = before is None or world.rng.random() < 0.4
                view = logs[which].load() if fresh else logs[which].refresh(before)
                world.check_view(which, view, "a reader's view")
                if view.version < known or (before is not None and view.version < before.version):
                    world.fail(f"reads version {view.version} of {which} after {known} was acknowledged")
                views[which] = view
                event = Event(
                    f"{name} of {which}", begun_at, world.scheduler.steps, {}, {which: view.version}
                )
                world.reads.append((event, False))
                read_history(world, which, logs[which], view)
            except StorageError:
                views.pop(which, None)
            except Crash:
                logs, _ = world.new_logs(name)
                views = {}

    return work


def read_history(world: Ledgers, name: str, log: Log[Ledger], view: View[Ledger]) -> None:
    if world.rng.random() < 0.3:
        version = world.rng.randint(1, view.version)
        try:
            world.check_view(name, log.view_at(version), "time travel")
        except NotFound:
            if world.last_base(name) <= version:
                world.fail(f"version {version} of {name} is said to be gone")
    if world.rng.random() < 0.3:
        try:
            commits = list(log.commits(newest_first=world.rng.random() < 0.5))
        except NotFound:
            return world.count("histories cut by expiry")
        commits.sort(key=lambda commit: commit.version)
        if not commits:
            return None
        facts = world.known(name)[commits[0].version - 1 : commits[-1].version]
        expected = [(fact.commit.version, fact.time_us) for fact in facts if fact.has_effect]
        if [(commit.version, commit.time_us) for commit in commits] != expected:
            world.fail(f"the history of {name} is not its effective commits: {expected}")
    return None


def cut_reader(world: Ledgers, name: str, cuts: int) -> Callable[[], None]:
    """Reads all logs at one point, again and again; at the newest, or at a time."""

    def work() -> None:
        logs, _ = world.new_logs(name)
        views: Views = {}
        for _ in range(cuts):
            begun_at, settled = world.scheduler.steps, world.rng.random() < 0.5
            try:
                if world.rng.random() < 0.3:
                    read_cut_by_time(world, logs)
                    continue
                views = cut(world, logs, views or {which: logs[which].load() for which in NAMES}, settled)
            except (StorageError, NotFound):
                views = {}
                continue
            except Crash:
                logs, _ = world.new_logs(name)
                views = {}
                continue
            if not views:
                world.count("cuts given up")
                continue
            for which, view in views.items():
                world.check_view(which, view, "a cut")
            check_cut(world, views, "a cut")
            versions = {which: view.version for which, view in views.items()}
            event = Event(f"cut by {name}", begun_at, world.scheduler.steps, {}, versions)
            world.reads.append((event, settled))
            world.count("cuts")

    return work


def is_same_cut(before: Views, after: Views) -> bool:
    """Return whether nothing moved between two passes: then all of it was so at the moment between them."""
    return all(before[name].version == after[name].version for name in before)


def cut(world: Ledgers, logs: dict[str, Log[Ledger]], views: Views, settled: bool) -> Views:
    """Collect, re-check, repeat until a pass changes nothing. Where `settled`, wait for the undecided too."""
    for _ in range(PASSES_MAX):
        if settled:
            after = {name: logs[name].refresh_settled(view) for name, view in views.items()}
        else:
            fresh = refresh_many([(logs[name], view) for name, view in views.items()])
            after = dict(zip(views, fresh, strict=True))
        if is_same_cut(views, after):
            return after
        views = after
    return {}


def read_cut_by_time(world: Ledgers, logs: dict[str, Log[Ledger]]) -> None:
    times = [fact.time_us for name in NAMES for fact in world.known(name)]
    founded_us = max(world.known(name)[0].time_us for name in NAMES)
    time_us = max(founded_us, world.rng.choice(times) + world.rng.choice((-1, 0, 0, 1)))
    before: dict[str, int] = {}
    for _ in range(PASSES_MAX):
        versions = {name: log.version_at_time(time_us) for name, log in logs.items()}
        if versions == before:
            break
        before = versions
    else:
        return world.count("cuts by time given up")
    views = {name: logs[name].view_at(version) for name, version in versions.items()}
    for name, view in views.items():
        world.check_view(name, view, "a cut by time")
        if view.time_us > time_us:
            world.fail(f"the cut of {name} at {time_us} is of {view.time_us}")
    check_cut(world, views, "a cut by time")
    return world.count("cuts by time")


def check_cut(world: Ledgers, views: Views, what: str) -> None:
    """No transaction is there with one part and not with the other."""
    total = sum(views[name].state.balance for name in ACCOUNTS)
    if total != OPENING * len(ACCOUNTS):
        world.fail(f"{what} holds {total} in all: {dict((n, v.version) for n, v in views.items())}")
    table = views[TABLE]
    alive = dict(views[REGISTRY].state.alive).get(table.log_id)
    if alive is not None and alive == table.sealed and not table.purged:
        world.fail(f"{what} has the table sealed: {table.sealed}, but noted as alive: {alive}")


def expirer(world: Ledgers, name: str, times: int) -> Callable[[], None]:
    def work() -> None:
        logs, _ = world.new_logs(name)
        for _ in range(times):
            world.scheduler.stall(world.rng.randint(1, 250))
            which = world.rng.choice(NAMES)
            try:
                head = logs[which].load().version
                version = world.rng.randint(min(max(1, world.last_base(which)), head), head)
                expiry.expire(logs[which], version)
                world.count("expired")
            except (StorageError, NotFound, CommitUnknown):
                world.count("expiry that failed")

    return work


def vandal(world: Ledgers, deeds: int) -> Callable[[], None]:
    """Break what is derived: hints and snapshots."""

    def work() -> None:
        for _ in range(deeds):
            world.scheduler.stall(world.rng.randint(1, 120))
            keys = world.keys[world.rng.choice(NAMES)]
            key = world.rng.choice([keys.latest, *world.truth.list_after(keys.snapshots)])
            data = world.truth.get(key)
            if not data or data in world.damaged:
                continue
            deed = world.rng.choice(("delete", "cut", "lie"))
            if deed == "delete":
                world.truth.delete([key])
            else:
                lie = msgspec.structs.replace(decode_root(data, key), commit_hash="0" * 64, hash="")
                broken = data[: world.rng.randint(0, len(data) - 1)] if deed == "cut" else encode(lie)
                world.damaged.add(broken)
                world.truth.put(key, broken)
            world.count(f"vandalism: {deed}")

    return work


def founder(world: Ledgers) -> None:
    """Create all logs in calm weather."""
    logs, _ = world.new_logs("founder")
    for name, log in logs.items():
        calm = Log(world.truth, name, log.projection, options=log.options)
        operation = Operation(
            id=f"found {name}",
            commit_id=world.new_id(),
            deltas={},
            bases={},
            log_ids={name: f"log {name}"},
            created=True,
            asked=1,
        )
        world.operations.append(operation)
        calm.create(
            Draft(events=({"op": operation.id},)), log_id=f"log {name}", commit_id=operation.commit_id
        )
        world.acknowledge(operation, {name: 1})
