"""How changes share a version: of threads in one process, and of processes that propose and combine."""

from __future__ import annotations

from typing import Any

from tests.model.machine import Program, Report
from tests.model.proposals import (
    BROKEN,
    Known,
    Proposal,
    changes_of,
    ids_of,
    inbox_key,
    is_known,
    is_proposal,
    one_more,
    rows_of,
    version_of,
)
from tests.model.reading import cold
from tests.model.rules import Rule, on
from tests.model.world import Change, Commit, Request, View, draft, log_key, refusal, slim
from tests.model.writing import commit, place, reported, step_over

NONE: tuple[Change, ...] = ()


def group(me: str, view: View, requests: tuple[Request, ...]) -> Program:
    """Threads of one process: the first one commits for all of them, and each gets its own outcome."""
    base = view.version
    while requests:
        remaining_requests, changes = requests, NONE
        while remaining_requests:
            changes, remaining_requests = (
                one_more(view, changes, remaining_requests[0]),
                remaining_requests[1:],
            )
        applied_changes = tuple(change for change in changes if not change.why)
        found = None
        if applied_changes:
            mine = version_of(me, view, applied_changes)
            found = yield from place(log_key(view.place, mine.version), mine)
            if found is None or found == "failed":
                return
        else:
            found = yield ("get", log_key(view.place, view.version + 1))
        if not on(Rule.SHARED_AFTER_PUT):
            yield from report_refused(changes, requests, base)
        if found is None or (applied_changes and found.attempt == mine.attempt):
            yield from report_applied(applied_changes, view.place)
            yield from report_refused(changes, requests, base)
            requests = tuple(
                request for request in requests if request.cid not in {change.cid for change in changes}
            )
        if requests and found is not None:
            after, ids = yield from learn(view, found)
            if after in ("damage", "denied"):
                return
            view = after
            remaining_requests = tuple(request for request in requests if request.cid in ids)
            requests = tuple(request for request in requests if request.cid not in ids)
            while remaining_requests:
                yield Report("ok", (remaining_requests[0].cid, view.place))
                remaining_requests = remaining_requests[1:]


def report_applied(changes: Any, place: str) -> Program:
    while changes:
        yield Report("ok", (changes[0].cid, place))
        changes = changes[1:]


def report_refused(changes: Any, requests: tuple[Request, ...], base: int) -> Program:
    while changes:
        request = next(request for request in requests if request.cid == changes[0].cid)
        if changes[0].why:
            yield Report("failed", (request.cid,))
            yield Report("refused", (request, base))
        changes = changes[1:]


def learn(view: View, found: Any) -> Program:
    """The view behind what was found after it, and the ids of all changes there that the log has decided."""
    after = yield from step_over(view, found, "")
    if after in ("damage", "denied"):
        return after, frozenset()
    version, ids = found.version, frozenset[str]()
    while True:
        is_aborted = getattr(found, "outcome", "") == "aborted"
        if isinstance(found, Commit) and found.intent is not None and version == after.version:
            is_aborted = after.settles[0] == "aborted"
        if not is_aborted:
            ids = ids | {found.cid} | {cid for cid, _ in decided_by(found)}
        if version >= after.version:
            return after, ids
        version += 1
        found = yield ("get", log_key(view.place, version))


def decided_by(found: Any) -> tuple[tuple[str, str], ...]:
    return tuple((cid, why) for cid, why in ids_of(found) if not why or on(Rule.REFUSED_IS_FINAL))


def in_turn(me: str, view: View, first: Request, second: Request) -> Program:
    """One client that makes two changes."""
    done = yield from commit(me, view, first)
    if done.how == "placed":
        yield from commit(me + "'", view, second)


# ---- between processes


def propose(
    me: str, view: View, request: Request, width: int, again: bool = True, impatient: bool = False
) -> Program:
    """Put a proposal, its files first, and follow the log until it says what became of it."""
    if request.write is not None:
        name = ("file", view.place, request.cid, request.write)
        answer = yield ("put", name, "data")
        if answer != "ok":
            return
    proposal = Proposal(request, view.version, view.version + width)
    yield ("put", inbox_key(proposal), proposal)
    yield from follow(me, view, proposal, again, impatient)


def follow(me: str, view: View, proposal: Proposal, again: bool, impatient: bool) -> Program:
    """Learn what becomes of a proposal. Once its window is over it is committed directly, or given up; an impatient
    proposer may commit it directly at any time."""
    request = proposal.request
    while view.version < proposal.until:
        found = yield ("get", log_key(view.place, view.version + 1))
        if found is None and impatient:
            goes_ahead = yield ("choose", 2)
            if goes_ahead:
                yield from commit(me, view, request, again=True)
                return
        elif found is not None:
            after = yield from step_over(view, found, request.cid)
            if after == "mine":
                yield Report("ok", (request.cid, request.place))
                return
            if after in ("damage", "denied"):
                return
            is_gone = after == "refused" or after.status != "open"
            view = after
            if not on(Rule.PENDING_IS_OPEN) and not is_gone:
                is_gone = refusal(request, view) is not None
            if is_gone:
                yield Report("failed", (request.cid,))
                return
    if again:
        yield from commit(me, view, request)
    else:
        yield Report("failed", (request.cid,))


def race_and_propose(me: str, view: View, request: Request, width: int) -> Program:
    """Try one put, and propose if that is lost, or if it is not known what became of it."""
    mine = draft(view, request, me, 0)
    found = yield from place(log_key(view.place, mine.version), mine, 1)
    if found == mine:
        yield Report("ok", (request.cid, request.place))
        return
    if found not in (None, "failed"):
        after = yield from step_over(view, found, request.cid)
        if after == "mine":
            yield Report("ok", (request.cid, request.place))
            return
        if after == "refused":
            yield Report("failed", (request.cid,))
            return
        if after in ("damage", "denied"):
            return
        view = after
    yield from propose(me, view, request, width)


def propose_again(me: str, request: Request, base: int, width: int) -> Program:
    """A new process makes the same request, by a proposal, once it has looked what became of it since its base."""
    view = yield from cold(request.place)
    if view is None:
        return
    view = slim(view)
    if on(Rule.COMPARED_FIRST):
        known = yield from reported(request, base + 1, view.version)
        if known:
            return
    yield from propose(me, view, request, width)


def combine_cold(me: str, where: str, rounds: int = 1) -> Program:
    """A combiner that begins with a cold view: it knows no id of what is before it."""
    view = yield from cold(where)
    yield from combine(me, slim(view), rounds)


def combine(me: str, view: View, rounds: int = 1, tidies: bool = False) -> Program:
    """Put versions of what others have proposed. One that it loses is no round."""
    known, file = Known(view.version), None
    while rounds:
        found = yield ("get", log_key(view.place, view.version + 1))
        while found is not None:
            after, ids = yield from learn(view, found)
            if after in ("damage", "denied"):
                return
            is_end = found.flag in ("seals", "reopens", "purges")
            known = Known(known.since, known.ids | ids, found.version if is_end else known.sealed)
            view = after
            found = yield ("get", log_key(view.place, view.version + 1))
        if view.status != "open":
            return
        proposals = yield from read_inbox(view.place, known)
        changes = changes_of(view, proposals, known)
        if not changes:
            return
        rows, events = rows_of(changes), changes[0].events[:0]
        if rows:
            if file is None or must_be_new(file, rows, view):
                file = (f"{me} at {view.version}", view.version, rows)
                if on(Rule.COMBINED_FIRST):
                    answer = yield ("put", ("file", view.place, *file[:2]), rows)
                    if answer != "ok":
                        return
            events = (("add", *file[:2]),)
        mine = version_of(me, view, changes, events)
        found = yield from place(log_key(view.place, mine.version), mine)
        if found is None or found == "failed":
            return
        if found.attempt == mine.attempt:
            rounds -= 1
            if rows and not on(Rule.COMBINED_FIRST):
                yield ("put", ("file", view.place, *file[:2]), rows)
            file = None
            while tidies and proposals:
                yield ("delete", inbox_key(proposals[0]))
                proposals = proposals[1:]


def must_be_new(file: Any, rows: tuple[str, ...], view: View) -> bool:
    """Whether a file that a combiner wrote for a version that it lost is of no use for the next one."""
    others = file[2] != rows and on(Rule.COMBINED_ANEW)
    return others or (file[1] < view.fence and on(Rule.FENCE_COVERS_COMBINERS))


def copier(source: Any, target: Any) -> Program:
    """Copies a proposal to another key."""
    found = yield ("get", source)
    if found is not None:
        yield ("put", target, found)


def read_inbox(where: str, known: Known) -> Program:
    """The proposals whose change is not known to be decided."""
    names = yield ("list", "inbox", where)
    proposals: tuple[Any, ...] = ()
    while names:
        if not is_known(names[0], known):
            found = yield ("get", names[0])
            if found == BROKEN and not on(Rule.UNREADABLE_IS_LEFT):
                return ()
            if found is not None and is_proposal(found, names[0]):
                proposals = (*proposals, found)
        names = names[1:]
    return proposals
