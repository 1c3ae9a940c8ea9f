"""The actors of the second world that change something: coordinators, creators, expirers, a vandal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec
from tests.sim.burying import expire_in_a_job
from tests.sim.ledger import Ledger
from tests.sim.ledgers import ACCOUNTS, NAMES, REGISTRY, TABLE, Ledgers, Operation
from tests.sim.scheduler import Crash

from lakelog.log import (
    AlreadyExists,
    Commit,
    CommittedChange,
    CommitUnknown,
    ConflictError,
    Draft,
    Log,
    LogPart,
    LogSealed,
    LogView,
    NotFound,
    StorageError,
    commit_together,
    expiry,
)
from lakelog.log.format import decode_root, encode

CREATIONS_MAX = 4
Views: TypeAlias = dict[str, LogView[Ledger]]


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

    def view(self, name: str) -> LogView[Ledger]:
        """Return some view of the log: the newest, or one that was known before."""
        known_view = self.views.get(name)
        if known_view is None:
            self.views[name] = self.logs[name].load()
            self.world.check_view(name, self.views[name], "a load")
        elif self.world.rng.random() < 0.5:
            self.views[name] = self.logs[name].refresh(known_view)
            self.world.check_view(name, self.views[name], "a refresh")
            if self.world.rng.random() < 0.5:
                self.older[name] = known_view
        old = self.older.get(name)
        return old if old is not None and self.world.rng.random() < 0.3 else self.views[name]


def coordinator(world: Ledgers, name: str, operations: int) -> Callable[[], None]:
    def work() -> None:
        desk = Desk(world, name)
        for _ in range(operations):
            if world.rng.random() < 0.1:
                desk = Desk(world, name)
            try:
                asked_operations = [
                    o for o in world.operations if o.asked and not o.refused and not o.created
                ]
                if asked_operations and world.rng.random() < 0.3:
                    ask(world, desk, world.rng.choice(asked_operations))
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
    kind, guard, deed_text = rng.random(), None, ""
    if kind < 0.45:
        names = rng.sample(ACCOUNTS, rng.choice((2, 2, 3)))
        amount = rng.randint(1, 60)
        deltas = dict.fromkeys(names, 0) | {names[0]: -amount, names[1]: amount}
    elif kind < 0.6:
        deltas = {rng.choice(NAMES): 0}
    elif kind < 0.8:
        guarded_text, *names = rng.sample(ACCOUNTS, rng.choice((2, 3)))
        deltas = dict.fromkeys(names, 0)
        guard = (guarded_text, desk.view(guarded_text).version)
    else:
        deed_text = rng.choice(("seals", "seals", "restores", "restores", "purges"))
        deltas = {TABLE: 0} if deed_text == "purges" else {REGISTRY: 0, TABLE: 0}
    views = {name: desk.view(name) for name in deltas}
    operation = Operation(
        id=f"o{len(world.operations)}",
        commit_id=world.new_id(),
        deltas=deltas,
        bases={name: view.version for name, view in views.items()},
        log_ids={name: view.log_id for name, view in views.items()},
        deed=deed_text,
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
        LogPart(name, desk.logs[name], views[name], decide(world, operation, name), operation.bases[name])
        for name in names
    ]

    def validate() -> None:
        assert operation.guard is not None
        guarded_text, version = operation.guard
        if desk.logs[guarded_text].refresh_settled(desk.view(guarded_text)).version != version:
            raise Moved(f"{guarded_text} is no longer at {version}")
        if world.rng.random() < 0.3:
            world.scheduler.stall(world.rng.randint(1, 80))  # much may happen before the decision

    world.count("asked" if only_ask else "retried")
    try:
        changes: Sequence[CommittedChange[Ledger]] = commit_together(
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
            world.fail(f"{operation.id} had been committed, but a retry said: {error}")
        return
    world.count("acknowledged" + (f" of {len(parts)}" if len(parts) > 1 else ""))
    if operation.deed in ("restores", "purges"):
        world.count("restored" if operation.deed == "restores" else "purged")
    world.acknowledge(
        operation, {name: first_change.version for name, first_change in zip(names, changes, strict=True)}
    )
    for name, change in zip(names, changes, strict=True):
        world.check_view(name, change.view, "a committer's view")
        if change.view.version < change.version:
            world.fail(
                f"{operation.id} is at {change.version} of {name}, but the view at {change.view.version}"
            )
        known_view = desk.views.get(name)
        if known_view is None or known_view.version < change.view.version:
            desk.views[name] = change.view


def decide(
    world: Ledgers, operation: Operation, name: str
) -> Callable[[LogView[Ledger], Sequence[Commit]], Draft]:
    def judged_draft(view: LogView[Ledger], passed: Sequence[Commit]) -> Draft:
        world.check_view(name, view, "what decide was given")
        facts = world.known(name)[operation.bases[name] : view.version]
        expected = [(fact.commit.version, fact.time_us) for fact in facts if fact.has_effect]
        versions = [(commit.version, commit.time_us) for commit in passed]
        if versions != expected:
            world.fail(f"decide was given {versions} instead of {expected} at {view.version} of {name}")
        delta = operation.deltas[name]
        if view.state.balance + delta < 0:
            raise Short(f"{name} has {view.state.balance}, not {-delta}")
        event: dict[str, object] = {"blob": 0} if operation.sidecar else {"op": operation.id}
        if delta:
            event["delta"] = delta
        if name == REGISTRY and operation.deed:
            event |= {"life": operation.log_ids[TABLE], "alive": operation.deed == "restores"}
        deed_text = operation.deed if name == TABLE else ""
        return Draft(
            events=(event,),
            blobs=(operation.id.encode(),) if operation.sidecar else (),
            seals=deed_text == "seals",
            restores=deed_text == "restores",
            purges=deed_text == "purges",
        )

    return judged_draft


def creator(world: Ledgers, name: str, times: int) -> Callable[[], None]:
    """Create the table anew if it is sealed, and retry if the answer was lost."""

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
                versions = world.versions_of(operation)
                world.acknowledge(operation, {TABLE: versions[TABLE][0]} if versions else {TABLE: 0})
                break

    return work


def expirer(world: Ledgers, name: str, times: int) -> Callable[[], None]:
    def work() -> None:
        logs, _ = world.new_logs(name)
        for _ in range(times):
            world.scheduler.stall(world.rng.randint(1, 250))
            chosen_name = world.rng.choice(NAMES)
            try:
                head = logs[chosen_name].load().version
                version = world.rng.randint(min(max(1, world.last_base(chosen_name)), head), head)
                if world.rng.random() < 0.5:
                    expire_in_a_job(logs[chosen_name], version, world.rng)
                else:
                    expiry.expire(logs[chosen_name], version)
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
            deed_text = world.rng.choice(("delete", "cut", "lie"))
            if deed_text == "delete":
                world.truth.delete([key])
            else:
                lie = msgspec.structs.replace(decode_root(data, key), commit_hash="0" * 64, hash="")
                broken_data = (
                    data[: world.rng.randint(0, len(data) - 1)] if deed_text == "cut" else encode(lie)
                )
                world.damaged.add(broken_data)
                world.truth.put(key, broken_data)
            world.count(f"vandalism: {deed_text}")

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
            log_ids={name: log_id_of(name)},
            created=True,
            asked=1,
        )
        world.operations.append(operation)
        calm.create(
            Draft(events=({"op": operation.id},)), log_id=log_id_of(name), commit_id=operation.commit_id
        )
        world.acknowledge(operation, {name: 1})


def log_id_of(name: str) -> str:
    """Return the id of a log that is founded; a name can have folders."""
    return f"log-{name.replace('/', '-')}"
