"""Repair: only provably safe work, because any client may do it at any time.

Derived objects are rewritten from a replay. An undecided transaction is aborted, as any waiting writer would
abort it. But that happens only if all of its logs were checked and nothing indicates a lost decision. The
name of an unfinished drop is removed, as any reader that looks it up would remove it. Commits, decisions,
bases and data files are never touched.
"""

from __future__ import annotations

from lakelog.catalog.core.logs import FoundLog, NameTree
from lakelog.catalog.keeping.maintenance.fsck.walk import CheckedLog, HalfDone, WarehouseWalk
from lakelog.log.checks.findings import Finding, Severity
from lakelog.log.checks.repair import repair as repair_derived
from lakelog.log.errors import LakelogError
from lakelog.log.format import Intent
from lakelog.log.participants import is_listed

_DOUBTFUL = (
    "cut-unreadable",
    "decision-altered",
    "decision-disagrees",
    "decision-misplaced",
    "decision-missing",
    "head-lost",
)
"""After these findings, an undecided transaction may have been committed: the newest objects may be lost."""
_HISTORY_LOST = ("base-", "commit-", "log-foreign", "log-missing", "name-lost", "tombstone-", "unsupported")
"""After these findings, a log without an intent of a transaction may have had one."""
_DERIVED = ("hint-", "snapshot-", "manifest-")


def repair(walk: WarehouseWalk) -> list[str]:
    """Repair the findings of a walk, and report the repairs and the omissions."""
    reports = walk.findings.repaired
    for checked_log in walk.checked.values():
        if not checked_log.own:
            reports.append(
                f"{checked_log.tracked.log.location}: skipped, because it was found by a name that is not its own"
            )
            continue
        _settle(checked_log, walk, reports)
        if any(_is_derived(issue, checked_log) for issue in walk.findings.found):
            _rewrite(checked_log, walk, reports)
    for half_done in walk.half_done:
        _finish(walk, half_done, reports)
    return reports


def _is_derived(finding: Finding, checked_log: CheckedLog) -> bool:
    log = checked_log.tracked.log
    return (
        finding.severity is Severity.REPAIRABLE
        and finding.kind.startswith(_DERIVED)
        and finding.where.startswith(log.replay.at(log.keys.log) + "/")
    )


def _rewrite(checked_log: CheckedLog, walk: WarehouseWalk, done: list[str]) -> None:
    log = checked_log.tracked.log
    if checked_log.verified.evidence:
        done.append(
            f"{log.location}: skipped, because its snapshots show what became of a transaction, and its decision "
            "does not"
        )
        return
    try:
        done.append(repair_derived(log, checked_log.verified, checked_log.judge))
    except LakelogError as error:
        done.append(f"{log.location}: could not write its snapshot: {error}")


def _settle(checked_log: CheckedLog, walk: WarehouseWalk, done: list[str]) -> None:
    """Abort the undecided transaction at the head of a log, or find that it was decided since."""
    intent_commit = checked_log.verified.undecided
    if intent_commit is None or intent_commit.intent is None:
        return
    log = checked_log.tracked.log
    why_not = _why_not_settled(walk, intent_commit.intent)
    if why_not is not None:
        where = log.replay.at(log.keys.commit(intent_commit.version))
        done.append(f"{where}: left transaction {intent_commit.intent.txn} undecided, because {why_not}")
        return
    place = log.replay.decision_place(intent_commit)
    if place is None:
        return  # void: it counts as aborted
    try:
        decision = place.abort(intent_commit.commit_id, log.options)
    except LakelogError as error:
        done.append(f"{place.location}: could not be settled: {error}")
        return
    done.append(f"{place.location}: transaction {decision.txn} is {decision.outcome}")


def _why_not_settled(walk: WarehouseWalk, intent: Intent) -> str | None:
    """Return why an undecided transaction may have been committed. None if it cannot have been."""
    issues = [issue for issue in walk.findings.found if issue.severity is Severity.DAMAGE]
    for issue in issues:
        if issue.kind in _DOUBTFUL:
            return f"its decision may be lost, as other objects are ({issue.kind}: {issue.where})"
    # By their places in the list, because a copy of an intent in another log, which is void, does not count.
    indexes = {
        other_intent.index
        for checked_log in walk.checked.values()
        for other_intent, _ in checked_log.verified.intents.values()
        if other_intent.txn == intent.txn and is_listed(other_intent)
    }
    if len(indexes) >= intent.count:
        return None
    if not walk.whole:
        return f"only {len(indexes)} of its {intent.count} logs were checked: check the whole warehouse"
    for issue in issues:
        if issue.kind.startswith(_HISTORY_LOST):
            return f"one of its logs may be damaged ({issue.kind}: {issue.where})"
    return None


def _finish(walk: WarehouseWalk, half_done: HalfDone, done: list[str]) -> None:
    url = walk.logs.url(half_done.entry.location)
    damage = [issue for issue in walk.findings.of(Severity.DAMAGE) if issue.where.startswith(url + "/")]
    if damage:
        # A commit after the seal may be lost, such as a restore.
        done.append(f"{url}: left its name {half_done.name}, because of {damage[0].kind}: {damage[0].where}")
        return
    tree = NameTree(walk.logs)
    parent = walk.logs.namespace(half_done.parent)
    try:
        parent_view = FoundLog(parent, parent.current())
        tree.unlink(parent_view, half_done.space, half_done.name, half_done.entry)
    except LakelogError as error:
        done.append(f"{walk.logs.url(half_done.parent)}: could not remove {half_done.name}: {error}")
        return
    done.append(f"{walk.logs.url(half_done.parent)}: removed the name {half_done.name}, which was dropped")
