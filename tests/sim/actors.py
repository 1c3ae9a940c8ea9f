"""The actors: writers, readers, cleaners, vandals. Each uses the real log, and knows what it may expect of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
from tests.sim.burying import expire_in_a_job
from tests.sim.projection import COLOURS, KNOWN, RULES, State, data_key
from tests.sim.world import ROOT, Operation, World

from lakelog.log import (
    AlreadyExists,
    Commit,
    CommitUnknown,
    ConflictError,
    Draft,
    Log,
    LogSealed,
    LogView,
    NotFound,
    StorageError,
    WriteRef,
    each_change,
    expiry,
)
from lakelog.log.format import SnapshotRoot, decode_root, encode
from lakelog.log.ids import own_id

RELOADS_MAX = 4


class Claimed(ConflictError):
    """The claim is not as it has to be."""


def writer(
    world: World, name: str, operations: int, shared_with: Log[State] | None = None
) -> Callable[[], None]:
    """A process with one thread; or, with a log that other writers use, a thread of one process with them."""

    def work() -> None:
        log = shared_with or world.new_log(name)
        view: LogView[State] | None = None
        views: list[LogView[State]] = []
        for _ in range(operations):
            if shared_with is None and world.rng.random() < 0.1:  # a new process
                log, view, views = world.new_log(name), None, []
            try:
                if view is None:
                    view = log.load()
                    world.check_view(view, "a writer's load")
                elif world.rng.random() < 0.4:
                    view = log.refresh(view)
            except StorageError:
                continue
            views = [*views[-4:], view]
            is_shared = shared_with is not None and world.rng.random() < 0.9
            old = world.rng.choice(views) if world.rng.random() < 0.5 else view
            # An acknowledged one is retried too: the answer may have been lost on its way to the user.
            asked_operations = [o for o in world.operations if o.asked and not o.refused and not o.created]
            if asked_operations and world.rng.random() < 0.25:
                again = world.rng.choice(asked_operations)
                view = ask(world, log, old if old.version >= again.base else None, again, is_shared) or view
            else:
                view = ask(world, log, old, new_operation(world, log, old), is_shared) or view

    return work


def new_operation(world: World, log: Log[State], view: LogView[State]) -> Operation:
    operation = Operation(
        id=f"o{len(world.operations)}", commit_id=world.new_id(), base=view.version, log_id=view.log_id
    )
    kind = world.rng.random()
    if world.proposals and kind > 0.5:
        operation.rows = True
    elif kind < 0.2:
        operation.claim = f"claim-{world.rng.randint(1, 2)}"
    elif kind < 0.4:
        operation.release = f"claim-{world.rng.randint(1, 2)}"
    elif kind < 0.6:
        operation.write = (world.new_id(), view.version)
    elif kind < 0.75:
        operation.sidecar = True
    if world.features and world.rng.random() < 0.1:
        operation.uses = world.rng.choice(({"needs": COLOURS}, {"needs_of_writers": RULES}))
    world.operations.append(operation)
    return operation


def forbids(state: State, operation: Operation) -> bool:
    if operation.release and operation.release not in state.claims:
        return True
    return operation.claim in state.claims


def ask(
    world: World, log: Log[State], view: LogView[State] | None, operation: Operation, shared: bool = False
) -> LogView[State] | None:
    """Ask for the operation to be committed, once more if it was asked for before; take down what was answered."""
    first = operation.asked == 0
    operation.asked += 1
    operation.under_way += 1
    try:
        return _ask(world, log, view, operation, shared, first=first)
    finally:
        operation.under_way -= 1


def _ask(
    world: World,
    log: Log[State],
    view: LogView[State] | None,
    operation: Operation,
    shared: bool,
    *,
    first: bool,
) -> LogView[State] | None:
    head = world.head()
    already = operation.commit_id in world.commit_ids
    try:
        view = view or log.load()
        if operation.write and not operation.data_written:
            log.store.put(data_key(*operation.write), b"rows")
            operation.data_written = True
    except StorageError:
        operation.refused = first and operation.asked == 1
        return None
    world.count("asked" if first else "retried")

    def decide(view: LogView[State], passed: Sequence[Commit]) -> Draft:
        versions = [v for v in range(operation.base + 1, view.version + 1) if each_change(world.at(v))]
        if sorted({commit.version for commit in passed}) != versions:
            world.fail(
                f"decide was given {[c.version for c in passed]} at {view.version} since {operation.base}"
            )
        if forbids(view.state, operation):
            raise Claimed("the claim is not as it has to be")
        event: dict[str, object] = {"blob": 0} if operation.sidecar else {"op": operation.id}
        event |= operation.uses
        if operation.claim:
            event["claim"] = operation.claim
        if operation.release:
            event["release"] = operation.release
        return Draft(
            events=(event,),
            blobs=(operation.id.encode(),) if operation.sidecar else (),
            write=WriteRef(id=operation.write[0], version=operation.write[1]) if operation.write else None,
            seals=operation.seals,
        )

    def decide_rows(view: LogView[State], passed: Sequence[Commit]) -> Draft:
        decide(view, passed)
        return Draft(rows=operation.id.encode())

    change, is_proposed = None, False
    try:
        if first and operation.rows and shared and log.proposes:
            change = log.propose(
                view, decide_rows, commit_id=operation.commit_id, base=operation.base, retried=False
            )
            world.count("rows that were proposed")
            if change is None:
                operation.asked, is_proposed = operation.asked + 1, True
                world.count("rows that came back")
        if change is None:
            if first:
                own_id(operation.commit_id)  # all processes of the world share what this one knows
            change = log.commit(
                view, decide, commit_id=operation.commit_id, base=operation.base, shared=shared
            )
    except CommitUnknown:
        world.count("unknown")
        return None
    except (ConflictError, LogSealed, StorageError) as error:
        world.count(f"refused: {error.kind}")
        certain = (
            operation.asked == 2 and not isinstance(error, StorageError)
            if is_proposed
            else operation.asked == 1
        )
        operation.refused = first and certain
        if not first and isinstance(error, StorageError):
            world.fail(f"{operation.id} may have been committed by an earlier try, but a retry said: {error}")
        if isinstance(error, Claimed) and not any(forbids(s, operation) for s in world.states_from(head)):
            world.fail(f"{operation.id} was refused for what was no longer so at version {head}")
        if already and not isinstance(error, StorageError):
            world.fail(f"{operation.id} had been committed, but a retry said: {error}")
        return None
    world.count("acknowledged")
    world.acknowledge(operation, change.version)
    world.check_view(change.view, "a committer's view")
    if change.view.version < change.version:
        world.fail(f"{operation.id} committed at {change.version}, but its view is at {change.view.version}")
    return change.view


def sealer(world: World) -> Callable[[], None]:
    def work() -> None:
        log = world.new_log("sealer")
        world.scheduler.stall(world.rng.randint(100, 900))
        try:
            view = log.load()
        except StorageError:
            return
        operation = Operation(
            id=f"seal {view.log_id}",
            commit_id=world.new_id(),
            base=view.version,
            seals=True,
            log_id=view.log_id,
        )
        world.operations.append(operation)
        ask(world, log, view, operation)
        world.scheduler.stall(world.rng.randint(0, 200))
        reopen(world, log)

    return work


def reopen(world: World, log: Log[State]) -> None:
    """Create the log anew if it is sealed, and retry if the answer was lost."""
    log_id = world.new_id()
    operation = Operation(id=f"reopen {log_id}", commit_id=world.new_id(), log_id=log_id, created=True)
    world.operations.append(operation)
    for _ in range(RELOADS_MAX):
        try:
            view = log.create(
                Draft(events=({"op": operation.id},)), log_id=log_id, commit_id=operation.commit_id
            )
        except CommitUnknown:
            continue
        except StorageError:
            continue
        except AlreadyExists:
            world.count("reopened by another, or not sealed")
            return
        world.count("reopened")
        world.check_view(view, "a creator's view")
        world.acknowledge(operation, world.first_version(view.version))
        return


def reader(world: World, name: str, reads: int) -> Callable[[], None]:
    def work() -> None:
        log = world.new_log(name)
        view: LogView[State] | None = None
        for _ in range(reads):
            known_number = world.newest_acknowledged
            try:
                view_before, view = (
                    view,
                    log.load() if view is None or world.rng.random() < 0.4 else log.refresh(view),
                )
                world.check_view(view, "a reader's view")
                if view.version < known_number or (
                    view_before is not None and view.version < view_before.version
                ):
                    world.fail(f"reads version {view.version} after {known_number} was acknowledged")
                read_operations(world, log, view)
                read_history(world, log, view)
            except StorageError:
                view = None

    return work


def read_operations(world: World, log: Log[State], view: LogView[State]) -> None:
    """Read all manifests of the view, loading anew if expiry came in between."""
    for _ in range(RELOADS_MAX):
        bases = world.last_base()
        names = [chunk.name for chunk in view.state.chunks if chunk.name]
        try:
            contents = dict(zip(names, log.read_blobs(names), strict=True))
        except NotFound:
            view = log.load()
            if world.last_base() == bases and not names_exist(world, log, view):
                return world.fail(
                    f"the manifests of version {view.version} are gone though it was just loaded"
                )
            continue
        operations: list[str] = []
        for chunk in view.state.chunks:
            operations += contents[chunk.name].decode().split("\n") if chunk.name else chunk.operations
        world.read_truth()
        first = world.first_version(view.version)
        commits = world.commits[first - 1 : view.version]
        if operations != [operation for commit in commits for operation in operations_of(world, commit)]:
            world.fail(f"the manifests of version {view.version} are not its operations")
        return None


def names_exist(world: World, log: Log[State], view: LogView[State]) -> bool:
    names = [log.keys.manifest(chunk.name) for chunk in view.state.chunks if chunk.name]
    return None not in world.truth.get_many(names)


def operations_of(world: World, commit: Commit) -> Iterator[str]:
    for event in commit.events:
        if "blob" in event:
            yield world.truth.created_sidecars[commit.sidecars[event["blob"]].name].decode()
        else:
            yield str(event["op"])


def read_history(world: World, log: Log[State], view: LogView[State]) -> None:
    """Travel to a version, to a time, and through the commits."""
    version = world.rng.randint(1, view.version)
    try:
        if world.rng.random() < 0.4:
            world.check_view(log.view_at(version), "time travel")
    except NotFound:
        if world.last_base() <= version:
            world.fail(f"version {version} is said to be gone, but the last base is at {world.last_base()}")
    if world.rng.random() < 0.2:
        world.read_truth()
        times = [commit.time_us for commit in world.commits]
        time_us = world.rng.choice(times) + world.rng.choice((-1, 0, 1))
        try:
            found_version = log.version_at_time(time_us)
        except NotFound:
            found_version = 0
        world.read_truth()
        times = [commit.time_us for commit in world.commits]
        later = times[found_version] if found_version < view.version else time_us + 1
        if (found_version and times[found_version - 1] > time_us) or later <= time_us:
            world.fail(f"version {found_version} is not the newest at time {time_us}")
    if world.rng.random() < 0.2:
        try:
            versions = sorted(commit.version for commit in log.commits(newest_first=world.rng.random() < 0.5))
        except NotFound:
            return world.count("histories cut by expiry")
        if versions and versions != list(range(versions[0], versions[-1] + 1)):
            world.fail(f"history has a hole: {versions}")


def expirer(world: World, name: str, times: int) -> Callable[[], None]:
    def work() -> None:
        log = world.new_log(name)
        for _ in range(times):
            world.scheduler.stall(world.rng.randint(1, 150))
            try:
                head = log.load()
                lowest = max(1, world.last_base())
                version = world.rng.randint(min(lowest, head.version), head.version)
                if world.rng.random() < 0.5:
                    expire_in_a_job(log, version, world.rng)
                    world.count("expired in a job")
                else:
                    expiry.expire(log, version)
                    world.count("expired")
                if version % 2:
                    for _ in range(expiry.blank(log)):
                        world.count("bases emptied")
            except (StorageError, NotFound, CommitUnknown):
                world.count("expiry that failed")

    return work


def vacuumer(world: World, name: str, times: int) -> Callable[[], None]:
    """Fence off older writes, then delete the data of those that never committed."""

    def work() -> None:
        log = world.new_log(name)
        for _ in range(times):
            world.scheduler.stall(world.rng.randint(1, 150))
            try:
                view = log.load()
                fence = max(0, view.version - world.rng.randint(0, 2))
                change = log.commit(view, lambda view, passed, fence=fence: Draft(fence=fence))  # type: ignore[misc]
                world.newest_acknowledged = max(world.newest_acknowledged, change.version)
                for key in log.store.list_after("data/"):
                    started_at, _, write_id = key.removeprefix("data/").partition("-")
                    if int(started_at) < change.view.fence and write_id not in change.view.state.writes:
                        world.purged_writes.add(write_id)
                        log.store.delete([key])
            except (StorageError, LogSealed, CommitUnknown, ConflictError):
                world.count("vacuum that failed")

    return work


def vandal(world: World, deeds: int) -> Callable[[], None]:
    """Break what is derived: the hint and the snapshots. Never the truth."""

    def work() -> None:
        old: list[bytes] = []
        for _ in range(deeds):
            world.scheduler.stall(world.rng.randint(1, 60))
            keys = [world.keys.latest, *world.truth.list_after(world.keys.snapshots)]
            key = world.rng.choice(keys)
            data = world.truth.get(key)
            if not data or data in world.damaged:
                continue
            old.append(data)
            deed_text = world.rng.choice(("delete", "cut", "bend", "old", "lie", "empty"))
            if deed_text == "delete":
                world.truth.delete([key])
            elif deed_text == "old":
                world.truth.put(world.keys.latest, world.rng.choice(old))
            else:
                broken_data = damaged_data(world, data, deed_text)
                world.damaged.add(broken_data)
                world.truth.put(key, broken_data)
            world.count(f"vandalism: {deed_text}")

    return work


def damaged_data(world: World, data: bytes, deed: str) -> bytes:
    if deed == "cut":
        return data[: world.rng.randint(0, len(data) - 1)]
    if deed == "bend":
        return data.replace(b'"count":', b'"count":1', 1)
    if deed == "empty":
        return b""
    root = decode_root(data, "hint", KNOWN)
    # Consistent in itself, but of a commit that lost: only the comparison with the log can show it.
    state = {**root.state, "count": root.state["count"] + 1, "digest": "lost"}
    lie: SnapshotRoot = msgspec.structs.replace(root, commit_hash="0" * 64, state=state, hash="")
    return encode(lie)


def founder(world: World) -> None:
    """Create the log in calm weather: every seed begins with version 1."""
    log = Log(
        world.truth, ROOT, world.new_log("founder").projection, options=world.new_log("founder").options
    )
    operation = Operation(id="o0", commit_id=world.new_id(), asked=1, created=True)
    world.operations.append(operation)
    log.create(Draft(events=({"op": "o0"},)), log_id="log", commit_id=operation.commit_id)
    world.acknowledge(operation, 1)
