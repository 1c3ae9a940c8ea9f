"""Transactions over several logs: intents, then one decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.model.machine import Program, Report
from tests.model.reading import cold
from tests.model.rules import Rule, on
from tests.model.world import (
    Decision,
    Intent,
    Key,
    Request,
    View,
    log_key,
    may_use,
    new_intents,
    slim,
)
from tests.model.writing import Done, May, compare, place, put_one, report


def together(
    me: str,
    views: tuple[View, ...],
    requests: tuple[Request, ...],
    reads: tuple[View, ...] = (),
    clock: int = 0,
    rounds: int = 1,
    tries: int = 9,
    validate: Callable[[], Program] | None = None,
    txn_of: str = "",
    fence: int = 0,
    may: May = None,
) -> Program:
    """All requests or none, and report. The views are where the requests start from.

    `reads` are views that must still be the heads when all intents stand; `validate` returns whether it agrees.
    A transaction that others have aborted is tried again under a new id, `rounds` times in all.
    """
    cid = requests[0].cid
    places = tuple(request.place for request in requests)
    attempt = 0
    while True:
        intents = (
            new_intents(me, attempt, places) if on(Rule.FRESH_TXN) else new_intents(txn_of or cid, 0, places)
        )
        txn = key_of(intents[0])
        if may is not None and on(Rule.RIGHTS_PROBED):
            yield ("create", ("probe", txn[1]), "may")
        if on(Rule.RIGHTS_PROBED) and not may_use(txn, may):
            yield Report("failed", (cid,))
            return Done("refused", why="denied")
        done = yield from put_all(me, intents, views, requests, clock, tries, fence)
        if done.how == "denied":
            done = Done("refused", done.version, why="denied")
        if done.how == "placed" and reads and on(Rule.VALIDATE_READS):
            unchanged = yield from are_heads(reads)
            if not unchanged:
                done = Done("refused", why="what was read has changed")
        if done.how == "placed" and validate is not None:
            agreed = yield from validate()
            if not agreed:
                done = Done("refused", why="not valid any more")
        if not may_use(txn, may):
            yield Report("failed", (cid,))
            return Done("refused", why="denied")
        if done.how == "placed":
            decision = yield from decide(txn, Decision("committed", done.time, done.why))
            if decision is None:
                return Done("unknown")
            if decision.outcome == "committed":
                yield from report(cid, places, done)
                return done
            done = Done("refused", why="aborted by another")
        elif attempt or done.version or done.how in ("refused", "unknown"):
            decision = yield from place(txn, Decision("aborted"))
            if done.how == "unknown" and decision.outcome == "aborted":
                done = Done("refused", why="an answer was lost, and it was aborted")
        attempt += 1
        if done.why != "aborted by another" or attempt == rounds:
            yield from report(cid, places, done)
            return done


def put_all(
    me: str,
    intents: tuple[Intent, ...],
    views: tuple[View, ...],
    requests: tuple[Request, ...],
    clock: int,
    tries: int,
    fence: int,
) -> Program:
    """Place all intents. `time` is the transaction's, `why` the positions."""
    n, time = 0, clock
    positions: tuple[Any, ...] = ()
    while n < len(requests):
        if not on(Rule.ALL_INTENTS_FIRST) and n == len(requests) - 1:
            early = (*positions, (requests[n].place, views[n].version + 1))
            decision = yield from place(
                key_of(intents[0]), Decision("committed", max(time, views[n].time + 1), early)
            )
            if decision.outcome != "committed":
                return Done("refused", n, why="aborted by another")
        done = yield from put_one(me, views[n], requests[n], clock, intents[n], tries, fence)
        if done.how != "placed":
            return done._replace(version=n)
        if on(Rule.DECISION_AFTER_INTENTS):
            time = max(time, done.time)
        positions = (*positions, (requests[n].place, done.version))
        n += 1
    return Done("placed", time=time, why=positions)


def key_of(intent: Intent) -> Key:
    """Where an honest transaction's decision is."""
    return ("txn", intent.folder, intent.txn)


def decide(txn: Any, mine: Decision) -> Program:
    """The decision that stands after mine was put."""
    if not on(Rule.DECISION_SETTLED):
        answer = yield ("create", txn, mine)
        return mine if answer == "ok" else Decision("aborted")
    decision = yield from place(txn, mine)
    return Decision("aborted") if decision == "failed" else decision


def are_heads(views: tuple[View, ...]) -> Program:
    n = 0
    while n < len(views):
        found = yield ("get", log_key(views[n].place, views[n].version + 1))
        if found is not None:
            return False
        n += 1
    return True


def together_again(
    me: str, requests: tuple[Request, ...], bases: tuple[int, ...], txn_of: str = ""
) -> Program:
    """A new process makes the same transaction: it looks first whether it has been done since its bases."""
    views: tuple[View, ...] = ()
    n = 0
    while n < len(requests):
        view = yield from cold(requests[n].place)
        if view is None:
            yield Report("view", (requests[n].place, (), None))
            return
        if on(Rule.ORIGINAL_BASE):
            mine = yield from compare(requests[n].place, requests[n].cid, bases[n] + 1, view.version)
            if mine:
                yield Report("ok", (requests[n].cid, *(request.place for request in requests)))
                return
        views = (*views, slim(view))
        n += 1
    yield from together(me, views, requests, txn_of=txn_of)
