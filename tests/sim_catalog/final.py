"""The checks after a run, judged from the stored objects: requests, transactions, names, and what `fsck` says."""

from __future__ import annotations

from tests.sim_catalog import numbers
from tests.sim_catalog.truth import TrueLog
from tests.sim_catalog.world import CatalogWorld

from lakelog.catalog.core.state.namespace_state import NAMESPACE
from lakelog.catalog.keeping.maintenance import fsck
from lakelog.log.changes import each_change
from lakelog.log.checks.findings import Severity
from lakelog.log.format import COMMITTED, decode_decision
from lakelog.log.grammar import RIGHTS_KEY
from lakelog.log.view import CLOCK_TOLERANCE_US


def problems(world: CatalogWorld) -> list[str]:
    logs = world.truth.logs()
    return [
        *(f"{key} was freed and created again" for key in world.store.freed),
        *of_requests(world),
        *of_transactions(world),
        *of_times(world, logs),
        *of_names(logs),
        *of_fsck(world),
        *numbers.given_twice(world),
    ]


def of_requests(world: CatalogWorld) -> list[str]:
    """Acknowledged: there; refused: not there; and each at most once in a log.

    What creates a log does not count: nothing leads to it yet.
    """
    found: dict[str, list[str]] = {}
    for location, entry in world.truth.entries():
        if entry.version > 1 and world.truth.effective(entry) is not None:
            for change in each_change(entry):
                found.setdefault(change.commit_id, []).append(location)
    wrong = []
    for commit_id, locations in found.items():
        if len(set(locations)) < len(locations):
            wrong.append(f"commit {commit_id} was applied more than once: {sorted(locations)}")
    for request in world.requests:
        is_applied = request.commit_id in found
        if request.acknowledged and not is_applied:
            wrong.append(f"{request.title} was acknowledged, but did not happen")
        if request.refused and is_applied:
            wrong.append(f"{request.title} was reported as failed, but happened")
    return wrong


def of_transactions(world: CatalogWorld) -> list[str]:
    """A decision that commits names exactly the intents of its transaction."""
    wrong = []
    intents: dict[str, dict[str, int]] = {}
    for location, entry in world.truth.entries():
        if entry.intent is not None:
            intents.setdefault(entry.intent.txn, {})[location] = entry.version
    for key, data in world.store.created.items():
        if "_txn/" in key and not key.endswith(RIGHTS_KEY):
            decision = decode_decision(data, key)
            if world.store.get(key) != data:
                wrong.append(f"{key} was overwritten or deleted")
            if decision.outcome == COMMITTED and decision.positions != intents.get(decision.txn):
                wrong.append(
                    f"{key} commits {decision.positions}, but has intents at {intents.get(decision.txn)}"
                )
    return wrong


def of_times(world: CatalogWorld, logs: dict[str, TrueLog]) -> list[str]:
    """Times of a log increase, and no client's clock carries them away."""
    wrong = []
    for log in logs.values():
        times = [commit.time_us for commit in log.commits]
        if any(later <= earlier for earlier, later in zip(times, times[1:], strict=False)):
            wrong.append(f"times of {log.location or 'the root'} do not increase")
        if times and max(times) > world.now_us + CLOCK_TOLERANCE_US + 1_000_000:
            wrong.append(f"{log.location or 'the root'} has times in the future")
    return wrong


def of_names(logs: dict[str, TrueLog]) -> list[str]:
    """Every name leads to its own open log, and no two to the same; what was dropped is sealed and can be restored."""
    wrong: list[str] = []
    led_to: dict[str, str] = {}

    def meet(location: str, id: str, title: str, alive: bool) -> TrueLog | None:
        if location in led_to:
            wrong.append(f"{title} and {led_to[location]} are the same log")
        led_to[location] = title
        log = logs.get(location)
        if log is None or log.log_id != id:
            wrong.append(f"{title} leads to {log.log_id if log else 'no log'} instead of {id}")
            return None
        if alive and log.sealed:
            wrong.append(f"{title} leads to a log that is sealed")
        if not alive and not log.sealed:
            wrong.append(f"{title} was dropped, but is not sealed")
        return log

    def walk(log: TrueLog, title: str, alive: bool) -> None:
        assert log.namespace is not None
        for space, name, entry in log.namespace.all_logs():
            true_log = meet(entry.location, entry.id, f"{title}.{name}", alive)
            if true_log is not None and space == NAMESPACE:
                walk(true_log, f"{title}.{name}", alive)
        for dropped_log in log.namespace.dropped_logs():
            entry = dropped_log.entry
            true_log = meet(
                entry.location, entry.id, f"{title}.{dropped_log.name} (dropped, {entry.id})", False
            )
            if true_log is not None and dropped_log.space == NAMESPACE:
                walk(true_log, f"{title}.{dropped_log.name} (dropped)", False)

    root = logs.get("")
    if root is not None:
        walk(root, "", True)
    return wrong


def of_fsck(world: CatalogWorld) -> list[str]:
    """The product's own check finds no damage, and what was created for a refused transaction was given up."""
    findings = fsck.check_warehouse(world.calm()._logs)
    wrong = [
        f"fsck: {finding.kind} at {finding.where}: {finding.what}" for finding in findings.of(Severity.DAMAGE)
    ]
    return wrong


def of_creations(world: CatalogWorld) -> list[str]:
    """In fair weather, a table made for a transaction that was refused is sealed at once."""
    logs = world.truth.logs()
    linked_ids = {
        entry.id
        for log in logs.values()
        if log.namespace is not None
        for _, _, entry in log.namespace.all_logs()
    }
    dropped_ids = {id for log in logs.values() if log.namespace is not None for id in log.namespace.dropped}
    return [
        f"{log.location} was created for a transaction that failed, and is left open"
        for log in logs.values()
        if log.namespace is None
        and log.commits
        and not log.sealed
        and log.log_id not in linked_ids | dropped_ids
    ]
