"""Snapshots and the hint; expiry with bases and tombstones; fences and the removal of files."""

from __future__ import annotations

from typing import Any

from tests.model.machine import Program, Report
from tests.model.reading import cold, decision_of, effect, forward, from_bases, keeps, last_base, load
from tests.model.rules import Rule, on
from tests.model.together import together
from tests.model.world import (
    Commit,
    Event,
    Request,
    Root,
    State,
    Tombstone,
    View,
    applied,
    base_key,
    log_key,
    slim,
    tombstone,
)
from tests.model.writing import put_one

BLANK = (0, "blank")

WINDOW = 2
"""Versions whose tombstones may be under way at once."""


def snapshot(me: str, place: str) -> Program:
    """Write a snapshot of the head, and the hint that shows it."""
    view = yield from cold(place)
    if view is None:
        yield Report("view", (place, (), None))
        return
    if not on(Rule.SNAPSHOT_DECIDED):
        found = yield ("get", log_key(place, view.version + 1))
        if found is not None:
            view = applied(view, found, "aborted", 0)
    newer = yield ("get", base_key(place, view.base + 1))
    while keeps(newer, view):
        view = view._replace(base=view.base + 1)
        newer = yield ("get", base_key(place, view.base + 1))
    if newer is not None and on(Rule.NEWER_BASE_DISTRUSTS):
        view = yield from from_bases(place)
        if view is not None:
            view = yield from forward(view)
        if view is None:
            yield Report("view", (place, (), None))
            return
    yield from put_hint(me, view)


def put_hint(me: str, view: View) -> Program:
    name = (view.version, me)
    answer = yield ("put", ("manifest", view.place, name), view.tail)
    if answer == "ok":
        yield ("put", ("hint", view.place), root(view, (*view.uses, name), view.base))


def root(view: View, uses: tuple[Any, ...], number: int) -> Root:
    return Root(view._replace(state=State(), tail=(), uses=uses, base=0), number)


def hasty_committer(me: str, view: View, request: Request) -> Program:
    """A committer that writes snapshots itself: after it has settled, or (which is wrong) before."""
    if not on(Rule.SNAPSHOT_SETTLED):
        mine = Commit(
            request.log_id, view.version + 1, request.cid, (me, 0, view.place, view.version + 1), view.hash, 0
        )
        yield from put_hint(
            me, applied(view, mine._replace(time=view.time + 1, events=request.events), "committed", 0)
        )
    done = yield from put_one(me, view, request, 0, None, 9)
    if done.how == "placed":
        yield Report("ok", (request.cid, request.place))
        yield from snapshot(me, view.place)


def vandal(place: str, lie: Any) -> Program:
    """A vandal overwrites the hint with something, or removes it."""
    if lie is None:
        yield ("delete", ("hint", place))
    else:
        yield ("put", ("hint", place), lie)


def expire(me: str, place: str, upto: int, merges: bool = False, blanks: bool = False) -> Program:
    """Make a base at version `upto`, put tombstones over what is before it, and delete what it gives up.

    A cleaner that `blanks` also takes the states out of the bases before it, as an erasure does.
    """
    last = yield from last_base(place, 0)
    if not on(Rule.BASES_ARE_KEPT):
        found = yield ("get", log_key(place, 1))
        if isinstance(found, Tombstone):
            last = yield ("get", ("base", place, ("at", found.base)))
    number = 0 if last is None else last.number
    view = View(place)
    if last is not None:
        if on(Rule.BURIED_BEFORE_NEXT_BASE):
            done = yield from tidy(last)
            if not done:
                return
        view = yield from load(last)
        if view is None or (view.version >= upto and on(Rule.BASES_INCREASE)):
            return
    while view.version < upto:
        found = yield ("get", log_key(place, view.version + 1))
        if not isinstance(found, Commit):
            return
        outcome, time = "committed", found.time
        if found.intent is not None:
            decision = yield from decision_of(place, found)
            if decision is None:
                return
            outcome, time = effect(decision, found.time)
        view = applied(view, found, outcome, time)
        if view is None:
            return
    yield from make_base(me, view, number, merges)
    if blanks:
        yield from blank(place)


def make_base(me: str, view: View, number: int, merges: bool) -> Program:
    place, name = view.place, (view.version, me)
    events: tuple[Event, ...] = (("is", view.state),) if merges else view.tail
    base = root(view, (name,) if merges else (*view.uses, name), number + 1)
    view = slim(view)
    if on(Rule.MANIFESTS_BEFORE_BASE):
        answer = yield ("put", ("manifest", place, name), events)
        if answer != "ok":
            return
    if not on(Rule.BASE_BEFORE_TOMBSTONES):
        yield from bury(base)
    if not on(Rule.BASES_ARE_KEPT):
        answer = yield ("put", ("base", place, ("at", view.version)), base)
    else:
        answer = yield ("create", base_key(place, base.number), base)
        while answer != "ok":
            found = yield ("get", base_key(place, base.number))
            if found == base:
                answer = "ok"
            elif found is None:
                answer = yield ("create", base_key(place, base.number), base)
            elif on(Rule.DERIVED_FROM_LAST):
                base, answer = found, "ok"
            else:
                base = base._replace(number=base.number + 1)
                answer = yield ("create", base_key(place, base.number), base)
    if not on(Rule.MANIFESTS_BEFORE_BASE):
        answer = yield ("put", ("manifest", place, name), events)
    yield from tidy(base)


def tidy(base: Root) -> Program:
    """What a base allows: tombstones, oldest first, and then the deletion of what it gives up. True once it is done."""
    if on(Rule.BASE_BEFORE_TOMBSTONES):
        done = yield from bury(base)
        if not done:
            return False
    given_up = yield ("list", "manifest", base.view.place)
    if not on(Rule.BASES_ARE_KEPT):
        older = yield ("list", "base", base.view.place)
        while older:
            if older[0][2][1] < base.view.version:
                yield ("delete", older[0])
            older = older[1:]
    while given_up:
        name = given_up[0][2]
        if name[0] <= base.view.version and name not in base.view.uses:
            yield ("delete", given_up[0])
        given_up = given_up[1:]
    return True


def blank(place: str) -> Program:
    """Take the states out of all bases but the last one that was found: numbers, versions and hashes stay."""
    number, next_number = 1, 2
    found = yield ("get", base_key(place, number))
    while found is not None:
        newer = yield ("get", base_key(place, next_number))
        if newer is None and on(Rule.LAST_BASE_HAS_STATE):
            return
        yield ("put", base_key(place, number), blanked(found))
        found, number, next_number = newer, next_number, next_number + 1


def blanked(base: Root) -> Root:
    """A base without its state. What it names is not there, so that a reader which meets it walks on."""
    uses = base.view.uses if BLANK in base.view.uses else (*base.view.uses, BLANK)
    return base._replace(view=base.view._replace(uses=uses))


def bury(base: Root) -> Program:
    """Tombstones of the versions after the base before, window after window; True once all are there.

    Those of one window come in any order, but that of its last version comes last. Newest first is as far from the
    order of versions as the others get. Windows whose last version is a tombstone are not looked at again.
    """
    place, last = base.view.place, base.view.version
    before = None
    if base.number > 1:
        before = yield ("get", base_key(place, base.number - 1))
    windows = windows_of(0 if before is None else before.view.version + 1, last)
    count, found = len(windows), None
    while count and not isinstance(found, Tombstone):
        count -= 1
        found = yield ("get", log_key(place, windows[count][-1]))
    remaining_windows = windows[count + isinstance(found, Tombstone) :]
    if not on(Rule.WINDOWS_IN_ORDER):
        remaining_windows = remaining_windows[1:2] + remaining_windows[:1] + remaining_windows[2:]
    while remaining_windows:
        versions = remaining_windows[0]
        order = (*reversed(versions[:-1]), versions[-1])
        if not on(Rule.WINDOW_END_LAST):
            order = tuple(reversed(versions))
        while order:
            found = yield ("get", log_key(place, order[0]))
            is_pointed = isinstance(found, Tombstone) and not on(Rule.BASES_ARE_KEPT)
            if isinstance(found, Commit) or is_pointed:
                answer = yield from bury_one(place, found, base)
                if answer != "ok" and on(Rule.TOMBSTONES_ACKNOWLEDGED):
                    return False
            order = order[1:]
        remaining_windows = remaining_windows[1:]
    return True


def windows_of(first: int, last: int) -> tuple[tuple[int, ...], ...]:
    first = max(first, 1)
    return tuple(
        tuple(range(begin, min(begin + WINDOW, last + 1))) for begin in range(first, last + 1, WINDOW)
    )


def bury_one(place: str, found: Any, base: Root) -> Program:
    outcome, time = "committed", found.time
    if isinstance(found, Commit) and found.intent is not None:
        decision = yield from decision_of(place, found)
        outcome, time = effect(decision, found.time)
    stone = tombstone(found, outcome, time) if isinstance(found, Commit) else found
    if not on(Rule.BASES_ARE_KEPT):
        stone = stone._replace(base=base.view.version)
    if on(Rule.TOMBSTONES):
        answer = yield ("put", log_key(place, found.version), stone)
    else:
        answer = yield ("delete", log_key(place, found.version))
    return answer


def cleans_decisions(txn: Any) -> Program:
    """A cleaner that deletes a decision that says `aborted`, which is wrong."""
    found = yield ("get", txn)
    if found is not None and found.outcome == "aborted" and not on(Rule.DECISION_KEPT):
        yield ("delete", txn)


def vacuum(me: str, place: str) -> Program:
    """Fence off the writes under way, then delete the files that no retained version and no younger write can need."""
    view = yield from from_bases(place)
    if view is None:
        return
    retained_files = view.state.files
    found = yield ("get", log_key(place, view.version + 1))
    is_fenced = False
    while True:
        if found is None:
            if is_fenced or not on(Rule.FENCE_FIRST):
                break
            fence = view.version + 1
            request = Request("fence-" + me, place, view.log_id, ())
            done = yield from put_one(me, slim(view), request, 0, None, 9, fence)
            if done.how != "placed":
                return
            is_fenced = True
        else:
            outcome, time = "committed", found.time
            if isinstance(found, Tombstone):
                return
            if found.intent is not None:
                decision = yield from decision_of(place, found)
                if decision is None:
                    if not is_fenced and on(Rule.FENCE_FIRST):
                        found = None
                        continue
                    break
                outcome, time = effect(decision, found.time)
            view = slim(applied(view, found, outcome, time))
            retained_files = retained_files | view.state.files
        found = yield ("get", log_key(place, view.version + 1))
    if not on(Rule.RETAINED_FILES):
        retained_files = view.state.files
    limit = view.fence if on(Rule.FENCE_FIRST) else view.version + 1
    files = yield ("list", "file", place)
    while files:
        if files[0][3] < limit and (files[0][2], files[0][3]) not in retained_files:
            yield ("delete", files[0])
        files = files[1:]


def write_files(me: str, view: View, request: Request) -> Program:
    """A write: its files first, named by the version that it started from, and then the commit."""
    name = request.cid
    answer = yield ("put", ("file", view.place, name, view.version), "data")
    if answer != "ok":
        return
    events = (*request.events, ("add", name, view.version))
    done = yield from put_one(me, view, request._replace(events=events, write=view.version), 0, None, 9)
    if done.how in ("placed", "found"):
        yield Report("ok", (request.cid, request.place))
    elif done.how == "refused":
        yield Report("failed", (request.cid,))


def write_files_together(me: str, view: View, other: View, cid: str) -> Program:
    """As `write_files`, in a transaction with another log."""
    answer = yield ("put", ("file", view.place, cid, view.version), "data")
    if answer != "ok":
        return
    events = (("applied", cid), ("add", cid, view.version))
    request = Request(cid, view.place, view.log_id, events, write=view.version)
    nearby_request = Request(cid, other.place, other.log_id, (("applied", cid),))
    yield from together(me, (view, other), (request, nearby_request), rounds=2)
