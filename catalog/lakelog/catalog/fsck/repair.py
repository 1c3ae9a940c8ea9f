"""Repair: only what is provably safe, because anybody could do it at any time.

Derived objects are written anew from a replay. An undecided transaction is aborted, as any impatient writer would. A
name whose drop stopped half-way is removed, as whoever looks it up would. Commits, decisions, bases and data files are
never touched.
"""

from __future__ import annotations

from lakelog.catalog.fsck.walk import Checked, HalfDone, Walk
from lakelog.catalog.name_tree import Found, NameTree
from lakelog.log.errors import LakelogError
from lakelog.log.findings import Finding, Severity
from lakelog.log.verify import repair as repair_derived

_DERIVED = ("hint-", "snapshot-", "manifest-")


def repair(walk: Walk) -> list[str]:
    """Repair what the walk found, and say what was done and what was not."""
    done = walk.findings.repaired
    # What looks undecided may have been committed, where something else has lost its newest objects too.
    doubtful = any(finding.kind in ("cut-unreadable", "head-lost") for finding in walk.findings.found)
    for checked in walk.checked.values():
        if not doubtful:
            _settle(checked, done)
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
    try:
        if not repair_derived(log, checked.verified, walk.findings):
            done.append(f"{log.location}: left alone, because its commits are damaged")
    except LakelogError as error:
        done.append(f"{log.location}: could not write its snapshot: {error}")


def _settle(checked: Checked, done: list[str]) -> None:
    """Abort the transaction that stands undecided at the head of a log, or learn what became of it meanwhile."""
    undecided = checked.verified.undecided
    if undecided is None:
        return
    log = checked.tracked.log
    place = log.replay.decision_place(undecided)
    try:
        decision = place.abort(undecided.commit_id, log.options)
    except LakelogError as error:
        done.append(f"{place.location}: could not be settled: {error}")
        return
    done.append(f"{place.location}: transaction {decision.txn} is {decision.outcome}")


def _finish(walk: Walk, half_done: HalfDone, done: list[str]) -> None:
    tree = NameTree(walk.logs)
    parent = walk.logs.namespace(half_done.parent)
    try:
        found = Found(parent, parent.current())
        tree.unlink(found, half_done.space, half_done.name, half_done.entry)
    except LakelogError as error:
        done.append(f"{walk.logs.url(half_done.parent)}: could not remove {half_done.name}: {error}")
        return
    done.append(f"{walk.logs.url(half_done.parent)}: removed the name {half_done.name}, which was dropped")
