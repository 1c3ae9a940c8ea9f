"""Repair: only what is provably safe, because any client may do it at any time.

Derived objects are written anew from a replay. An undecided transaction is aborted, as any waiting writer would, but
only where all of its logs were checked and nothing indicates a lost decision. The name of an unfinished drop is
removed, as any reader that looks it up would. Commits, decisions, bases and data files are never touched.
"""

from __future__ import annotations

from lakelog.catalog.core.logs import Found, NameTree
from lakelog.catalog.keeping.maintenance.fsck.walk import Checked, HalfDone, Walk
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


def repair(walk: Walk) -> list[str]:
    """Repair what the walk found, and report what was done and what was not."""
    done = walk.findings.repaired
    for checked in walk.checked.values():
        if not checked.own:
            done.append(
                f"{checked.tracked.log.location}: skipped, because it was found by a name that is not its own"
            )
            continue
        _settle(checked, walk, done)
        if any(_is_derived(finding, checked) for finding in walk.findings.found):
            _rewrite(checked, walk, done)
    for half_done in walk.half_done:
        _finish(walk, half_done, done)
    return done


def _is_derived(finding: Finding, checked: Checked) -> bool:
    log = checked.tracked.log
    return (
        finding.severity is Severity.REPAIRABLE
        and finding.kind.startswith(_DERIVED)
        and finding.where.startswith(log.replay.at(log.keys.log) + "/")
    )


def _rewrite(checked: Checked, walk: Walk, done: list[str]) -> None:
    log = checked.tracked.log
    if checked.verified.evidence:
        done.append(
            f"{log.location}: skipped, because its snapshots show what became of a transaction, and its decision "
            "does not"
        )
        return
    try:
        done.append(repair_derived(log, checked.verified, checked.judge))
    except LakelogError as error:
        done.append(f"{log.location}: could not write its snapshot: {error}")


def _settle(checked: Checked, walk: Walk, done: list[str]) -> None:
    """Abort the undecided transaction at the head of a log, or find that it was decided meanwhile."""
    undecided = checked.verified.undecided
    if undecided is None or undecided.intent is None:
        return
    log = checked.tracked.log
    why_not = _why_not_settled(walk, undecided.intent)
    if why_not is not None:
        where = log.replay.at(log.keys.commit(undecided.version))
        done.append(f"{where}: left transaction {undecided.intent.txn} undecided, because {why_not}")
        return
    place = log.replay.decision_place(undecided)
    if place is None:
        return  # void: it counts as aborted
    try:
        decision = place.abort(undecided.commit_id, log.options)
    except LakelogError as error:
        done.append(f"{place.location}: could not be settled: {error}")
        return
    done.append(f"{place.location}: transaction {decision.txn} is {decision.outcome}")


def _why_not_settled(walk: Walk, intent: Intent) -> str | None:
    """Return why an undecided transaction may have been committed, None where it cannot have been."""
    damaged = [finding for finding in walk.findings.found if finding.severity is Severity.DAMAGE]
    for finding in damaged:
        if finding.kind in _DOUBTFUL:
            return f"its decision may be lost, as other objects are ({finding.kind}: {finding.where})"
    # By their places in the list: a copy of an intent in another log, which is void, does not count.
    seen = {
        other.index
        for checked in walk.checked.values()
        for other, _ in checked.verified.intents.values()
        if other.txn == intent.txn and is_listed(other)
    }
    if len(seen) >= intent.count:
        return None
    if not walk.whole:
        return f"only {len(seen)} of its {intent.count} logs were checked: check the whole warehouse"
    for finding in damaged:
        if finding.kind.startswith(_HISTORY_LOST):
            return f"one of its logs may be damaged ({finding.kind}: {finding.where})"
    return None


def _finish(walk: Walk, half_done: HalfDone, done: list[str]) -> None:
    url = walk.logs.url(half_done.entry.location)
    damage = [each for each in walk.findings.of(Severity.DAMAGE) if each.where.startswith(url + "/")]
    if damage:
        # What followed the seal may be what is lost: a restore, say.
        done.append(f"{url}: left its name {half_done.name}, because of {damage[0].kind}: {damage[0].where}")
        return
    tree = NameTree(walk.logs)
    parent = walk.logs.namespace(half_done.parent)
    try:
        found = Found(parent, parent.current())
        tree.unlink(found, half_done.space, half_done.name, half_done.entry)
    except LakelogError as error:
        done.append(f"{walk.logs.url(half_done.parent)}: could not remove {half_done.name}: {error}")
        return
    done.append(f"{walk.logs.url(half_done.parent)}: removed the name {half_done.name}, which was dropped")
