"""The readers of the second world: of one log, and of cuts through all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tests.sim.ledger import OPENING, Ledger
from tests.sim.ledgers import ACCOUNTS, NAMES, REGISTRY, TABLE, Ledgers
from tests.sim.scheduler import Crash
from tests.sim.serializability import Event

from lakelog.log import Log, LogView, NotFound, StorageError, refresh_many

PASSES_MAX = 12
Views: TypeAlias = dict[str, LogView[Ledger]]


def reader(world: Ledgers, name: str, reads: int) -> Callable[[], None]:
    """Reads one log at a time: what was acknowledged is there, and nothing undecided."""

    def work() -> None:
        logs, _ = world.new_logs(name)
        views: Views = {}
        for _ in range(reads):
            chosen_name = world.rng.choice(NAMES)
            known_number, begun_at, view_before = (
                world.newest[chosen_name],
                world.scheduler.steps,
                views.get(chosen_name),
            )
            try:
                fresh = view_before is None or world.rng.random() < 0.4
                view = logs[chosen_name].load() if fresh else logs[chosen_name].refresh(view_before)
                world.check_view(chosen_name, view, "a reader's view")
                if view.version < known_number or (
                    view_before is not None and view.version < view_before.version
                ):
                    world.fail(
                        f"reads version {view.version} of {chosen_name} after {known_number} was acknowledged"
                    )
                views[chosen_name] = view
                event = Event(
                    f"{name} of {chosen_name}",
                    begun_at,
                    world.scheduler.steps,
                    {},
                    {chosen_name: view.version},
                )
                world.reads.append((event, False))
                read_history(world, chosen_name, logs[chosen_name], view)
            except StorageError:
                views.pop(chosen_name, None)
            except Crash:
                logs, _ = world.new_logs(name)
                views = {}

    return work


def read_history(world: Ledgers, name: str, log: Log[Ledger], view: LogView[Ledger]) -> None:
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
            begun_at, is_settled = world.scheduler.steps, world.rng.random() < 0.5
            try:
                if world.rng.random() < 0.3:
                    read_cut_by_time(world, logs)
                    continue
                views = cut(world, logs, views or {name: logs[name].load() for name in NAMES}, is_settled)
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
            for chosen_text, view in views.items():
                world.check_view(chosen_text, view, "a cut")
            check_cut(world, views, "a cut")
            versions = {which_text: view.version for which_text, view in views.items()}
            event = Event(f"cut by {name}", begun_at, world.scheduler.steps, {}, versions)
            world.reads.append((event, is_settled))
            world.count("cuts")

    return work


def is_same_cut(before: Views, after: Views) -> bool:
    """Return whether nothing moved between two passes: then all of it was so at the moment between them."""
    return all(before[name].version == after[name].version for name in before)


def cut(world: Ledgers, logs: dict[str, Log[Ledger]], views: Views, settled: bool) -> Views:
    """Collect, re-check, repeat until a pass changes nothing. If `settled`, wait for the undecided too."""
    for _ in range(PASSES_MAX):
        if settled:
            views_after = {name: logs[name].refresh_settled(view) for name, view in views.items()}
        else:
            fresh = refresh_many([(logs[name], view) for name, view in views.items()])
            views_after = dict(zip(views, fresh, strict=True))
        if is_same_cut(views, views_after):
            return views_after
        views = views_after
    return {}


def read_cut_by_time(world: Ledgers, logs: dict[str, Log[Ledger]]) -> None:
    times = [fact.time_us for name in NAMES for fact in world.known(name)]
    founded_us = max(world.known(name)[0].time_us for name in NAMES)
    time_us = max(founded_us, world.rng.choice(times) + world.rng.choice((-1, 0, 0, 1)))
    versions_before: dict[str, int] = {}
    for _ in range(PASSES_MAX):
        versions = {name: log.version_at_time(time_us) for name, log in logs.items()}
        if versions == versions_before:
            break
        versions_before = versions
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
