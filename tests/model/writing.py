"""How a commit gets into a log: settling, rebasing, retrying."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.model.machine import Program, Report
from tests.model.proposals import fate
from tests.model.reading import cold, effect, jump
from tests.model.rules import Rule, on
from tests.model.world import (
    VOID,
    Change,
    Commit,
    Decision,
    Intent,
    Request,
    Tombstone,
    View,
    applied,
    decision_key,
    draft,
    log_key,
    may_use,
    obeyed,
    refusal,
    slim,
)

May = tuple[str, ...] | None
"""The folders in which an actor may write decisions. None: all."""


class Done(NamedTuple):
    """What became of a request in one log."""

    how: str  # placed, found (another put with my id took effect), refused, denied
    version: int = 0
    time: int = 0
    why: Any = ""
    view: View | None = None  # that it was placed behind


def place(key: Any, mine: Any, tries: int = 9) -> Program:
    """Put and settle: the object that stands at the key afterwards (mine or another's), or None if that is unknown."""
    answer = yield ("create", key, mine)
    if answer == "ok":
        return mine
    if answer == "taken" and not on(Rule.TAKEN_IS_READ):
        return "failed"
    if answer == "error" and not on(Rule.ERROR_IS_READ):
        return "failed"
    while True:
        found = yield ("get", key)
        if found is not None:
            return found
        if not on(Rule.ABSENT_IS_REPEATED):
            return "failed"
        tries -= 1
        if tries == 0:
            return None
        answer = yield ("create", key, mine)
        if answer == "ok":
            return mine


def decided(log: str, found: Commit, may: May = None) -> Program:
    """The decision of the intent that was found in a log; aborts it if there is none. None: that takes a right that
    is missing."""
    txn = decision_key(log, found.intent)
    if txn is None:
        return VOID
    if not may_use(txn, may):
        return None
    if not on(Rule.ANY_ACTOR_ABORTS):
        decision = yield ("get", txn)
        if decision is None:
            yield ("never",)
        return decision
    via = log if "/" in log else ""
    outcome = "aborted" if on(Rule.COORDINATOR_COMMITS) else "committed"
    mine = Decision(outcome, via=via, cid=found.cid if via else "")
    decision = yield from place(txn, mine)
    return obeyed(decision, found.cid) if on(Rule.OBEY_DECISION) else mine


def step_over(view: View, found: Any, cid: str, may: May = None) -> Program:
    """The view behind what was found after it; "mine" if that is the change itself, "refused" if that refuses it for
    good, "damage" if it cannot be read, "denied" if a right is missing to go on."""
    if isinstance(found, Tombstone):
        newer = yield from jump(view, found)
        if newer is None or newer.version < found.version:
            return "damage"
        if on(Rule.JUMP_COMPARES):
            known = yield from compare(view.place, cid, view.version + 1, newer.version)
            if known:
                return "mine" if known == "applied" else known
        return slim(newer)
    outcome, time = "committed", found.time
    if found.intent is not None:
        if not on(Rule.DECIDED_CURSOR):
            outcome = "aborted"
        else:
            decision = yield from decided(view.place, found, may)
            if decision is None:
                return "denied"
            outcome, time = effect(decision, found.time)
    known = fate(found, cid)
    if known and (outcome == "committed" or not on(Rule.ABORTED_IS_NOT_DONE)):
        return "mine" if known == "applied" else known
    newer = applied(view, found, outcome, time)
    return "damage" if newer is None else slim(newer)


def compare(place: str, cid: str, first: int, last: int) -> Program:
    """What the versions say of the change: "applied", "refused", or nothing."""
    while first <= last:
        found = yield ("get", log_key(place, first))
        known_text = fate(found, cid)
        if known_text:
            if isinstance(found, Tombstone):
                outcome = found.outcome
            elif found.intent is not None:
                decision = yield from decided(place, found)
                outcome = decision.outcome
            else:
                outcome = "committed"
            if outcome == "committed" or not on(Rule.ABORTED_IS_NOT_DONE):
                return known_text
        first += 1
    return ""


def put_one(
    me: str,
    view: View,
    request: Request,
    clock: int,
    intent: Intent | None,
    tries: int,
    fence: int = 0,
    may: May = None,
    again: bool = False,
) -> Program:
    """Put the request, as a commit or as an intent, behind the view or whatever has come after it.

    If it is made `again`, an attempt before it may have left a proposal: then its refusal is put, too.
    """
    why = refusal(request, view)
    while True:
        writes_down = why is not None and again and view.status == "open" and on(Rule.RETRY_REFUSES)
        if why is None or writes_down:
            mine = draft(view, request, me, clock, intent, fence)
            if writes_down:
                mine = refusing_commit(mine, request, why)
            found = yield from place(log_key(view.place, mine.version), mine, tries)
            if found is None:
                return Done("unknown")
            if found == "failed":
                return Done("refused", why="conflict")
            if found.attempt == mine.attempt and writes_down:
                return Done("refused", why=why)
            if found.attempt == mine.attempt:
                return Done("placed", mine.version, mine.time, view=view)
        else:
            found = yield ("get", log_key(view.place, view.version + 1))
            if found is None or not on(Rule.REFUSAL_AT_HEAD):
                return Done("refused", why=why)
        after = yield from step_over(view, found, request.cid, may)
        if after == "mine":
            return Done("found", found.version)
        if after == "refused":
            return Done("refused", why="refused before")
        if after == "damage":
            return Done("damage")
        if after == "denied":
            return Done("denied")
        view = after
        decides = on(Rule.REBASE_DECIDES) if intent is None else on(Rule.INTENT_DECIDES)
        if not on(Rule.EMPTY_IS_PRECONDITION) and ("empty",) in request.needs:
            decides = False
        if decides:
            why = refusal(request, view)


def refusing_commit(commit: Commit, request: Request, why: str) -> Commit:
    """The commit that says that the request is refused for good, in place of the one that would do it."""
    change = Change(request.cid, request.events + request.needs, why, request.write)
    return commit._replace(cid=f"refusal of {request.cid}", events=(), changes=(change,))


def commit(
    me: str,
    view: View,
    request: Request,
    clock: int = 0,
    tries: int = 9,
    may: May = None,
    again: bool = False,
) -> Program:
    """Commit to one log, and report."""
    done = yield from put_one(me, view, request, clock, None, tries, may=may, again=again)
    yield from report(request.cid, (request.place,), done)
    return done


def report(cid: str, places: tuple[str, ...], done: Done) -> Program:
    if done.how in ("placed", "found"):
        yield Report("ok", (cid, *places))
    elif done.how == "refused":
        yield Report("failed", (cid,))
    elif done.how == "damage":
        yield Report("view", (places[0], (), None))


def reported(request: Request, first: int, last: int) -> Program:
    """Whether the versions say what became of the change, which is reported then."""
    known = yield from compare(request.place, request.cid, first, last)
    if known == "applied":
        yield Report("ok", (request.cid, request.place))
    elif known:
        yield Report("failed", (request.cid,))
    return bool(known)


def retry(me: str, request: Request, base: int) -> Program:
    """A new process makes the same request: it looks first whether it has been done since its base."""
    view = yield from cold(request.place)
    if view is None:
        yield Report("view", (request.place, (), None))
        return
    view = slim(view)
    if on(Rule.ORIGINAL_BASE):
        known = yield from reported(request, base + 1, view.version)
        if known:
            return
    yield from commit(me, view, request, again=True)


def begin_and_commit(me: str, request: Request, clock: int = 0, may: May = None) -> Program:
    """A writer that begins with a cold view."""
    view = yield from cold(request.place)
    yield from commit(me, slim(view), request, clock, may=may)
