"""How a log is read: from the hint, from the bases, or on from a view. Several logs are read at a single cut."""

from __future__ import annotations

from tests.model.machine import Program, Report
from tests.model.rules import Rule, on
from tests.model.world import (
    VOID,
    Commit,
    Decision,
    Root,
    State,
    Tombstone,
    View,
    applied,
    base_key,
    decision_key,
    fold,
    log_key,
    may_use,
    obeyed,
    slim,
)


def last_base(place: str, after: int) -> Program:
    """The last base of those after number `after`; None if there is none."""
    found = None
    newer = yield ("get", base_key(place, after + 1))
    while newer is not None:
        found, after = newer, after + 1
        newer = yield ("get", base_key(place, after + 1))
    return found


def load(root: Root) -> Program:
    """The view of a snapshot; None if one of its manifests is gone."""
    state, remaining_uses = State(), root.view.uses
    while remaining_uses:
        events = yield ("get", ("manifest", root.view.place, remaining_uses[0]))
        if events is None:
            return None
        state, remaining_uses = fold(state, events), remaining_uses[1:]
    settles = root.view.settles if on(Rule.SNAPSHOT_SETTLES) else None
    return root.view._replace(state=state, base=root.number, settles=settles)


def from_bases(place: str, after: int = 0) -> Program:
    """The view of the last base that can be loaded; of an empty log without one. None: damage."""
    if not on(Rule.BASES_ARE_KEPT):
        return View(place)
    base = yield from last_base(place, after)
    if base is None:
        return View(place) if after == 0 else None
    view = yield from load(base)
    while view is None:
        base = yield from last_base(place, base.number) if on(Rule.WALK_ON) else nothing()
        if base is None:
            return None
        view = yield from load(base)
    return view


def nothing() -> Program:
    return None
    yield


def forward(view: View) -> Program:
    """The view at the last decided version; None: damage."""
    place = view.place
    found = yield ("get", log_key(place, view.version + 1))
    while found is not None:
        if isinstance(found, Tombstone):
            version = found.version
            view = yield from jump(view, found)
            if view is None or view.version < version:
                return None
        else:
            outcome, time = "committed", found.time
            if found.intent is not None:
                decision = yield from decision_of(view.place, found)
                if decision is None and on(Rule.UNDECIDED_UNSEEN):
                    return view
                outcome, time = effect(decision, found.time)
            view = applied(view, found, outcome, time)
            if view is None:
                return None
        found = yield ("get", log_key(place, view.version + 1))
    return view


def decision_of(place: str, found: Commit) -> Program:
    """The decision of the intent that was found in a log; None while there is none."""
    key = decision_key(place, found.intent)
    if key is None:
        return VOID
    decision = yield ("get", key)
    return obeyed(decision, found.cid)


def effect(decision: Decision | None, intent_time: int) -> tuple[str, int]:
    """An intent's outcome and time by its decision."""
    if decision is None:
        return "committed", intent_time
    if decision.outcome == "committed" and not on(Rule.ONE_TIME):
        return "committed", intent_time
    return decision.outcome, decision.time


def jump(view: View, found: Tombstone) -> Program:
    """The view at the last base, after a tombstone was met."""
    if not on(Rule.BASES_ARE_KEPT):
        base = yield ("get", ("base", view.place, ("at", found.base)))
        if base is None:
            return None
        return (yield from load(base))
    newer = yield from from_bases(view.place, view.base)
    return newer


def keeps(base: Root | None, view: View) -> bool:
    """Whether a base gives up none of the manifests that a version after it uses."""
    return (
        base is not None
        and base.view.version <= view.version
        and base.view.log_id == view.log_id
        and all(name[0] > base.view.version or name in base.view.uses for name in view.uses)
    )


def cold(place: str) -> Program:
    """The view at the head, of a reader that knows nothing. None: damage."""
    hint = yield ("get", ("hint", place))
    if hint == "broken" and not on(Rule.HINT_IS_A_HINT):
        return None
    if hint is None and not on(Rule.HINT_IS_A_HINT):
        return None
    if isinstance(hint, Root):
        at = yield ("get", log_key(place, hint.view.version))
        following = yield ("get", log_key(place, hint.view.version + 1))
        further = None
        if following is None and not on(Rule.FIRST_ABSENCE):
            further = yield ("get", log_key(place, hint.view.version + 2))
        number = hint.number + 1
        newer = yield ("get", base_key(place, number))
        while keeps(newer, hint.view):
            number += 1
            newer = yield ("get", base_key(place, number))
        if at is None:
            return None
        is_believed = at.attempt == hint.view.hash or not on(Rule.HINT_HASH)
        if is_believed and (newer is None or not on(Rule.NEWER_BASE_DISTRUSTS)):
            view = yield from load(hint)
            view = view and view._replace(base=number - 1)
            if view is not None and further is not None:
                return applied(view, further, "committed", further.time)
            if view is not None and following is None:
                return view
            if view is not None:
                return (yield from forward(view))
            if not on(Rule.NEWER_BASE_DISTRUSTS):
                return None
    view = yield from from_bases(place)
    if view is None:
        return None
    return (yield from forward(view))


def reader(place: str) -> Program:
    """A cold reader that reports what it sees."""
    floor = yield ("mark",)
    view = yield from cold(place)
    yield Report("view", (place, floor, view and slim(view)))


def warm_reader(view: View) -> Program:
    """A reader with an old view that refreshes it."""
    floor = yield ("mark",)
    place = view.place
    view = yield from forward(view)
    yield Report("view", (place, floor, view and slim(view)))


def cut(views: tuple[View, ...], may: tuple[str, ...] | None = None) -> Program:
    """Several logs at one cut: collect, and look again at all of them until nothing has changed.

    What is looked at is the version after each view, and the decision of the intent that stands there undecided.
    """
    n, quiet, pending_count = 0, 0, (None,) * len(views)
    views = tuple(slim(view) for view in views)
    while quiet < len(views):
        view = views[n]
        waits = pending_count[n]
        if waits is not None and not may_use(waits, may):
            waits = None
        if waits is not None:
            decision = None
            if on(Rule.RECHECK_DECISIONS) or quiet == 0:
                decision = yield ("get", waits)
            is_moved = decision is not None
        else:
            found = yield ("get", log_key(view.place, view.version + 1))
            is_moved = found is not None
        if is_moved:
            newer, waits = yield from pending_forward(view, may)
            is_moved = newer != view
            if newer is None:
                yield Report("cut", (None,))
                return
            views = (*views[:n], newer, *views[n + 1 :])
            if waits is not None and not may_use(waits, may) and on(Rule.CUT_READS_DECISIONS):
                return
            pending_count = (*pending_count[:n], waits, *pending_count[n + 1 :])
        quiet = quiet + 1 if not is_moved else 1 if on(Rule.RECHECK_CURSORS) else quiet + 1
        n = (n + 1) % len(views)
    yield Report("cut", (views,))


def pending_forward(view: View, may: tuple[str, ...] | None = None) -> Program:
    """As `forward`, with the decision that the reader would have to wait for."""
    found = yield ("get", log_key(view.place, view.version + 1))
    while found is not None:
        if isinstance(found, Tombstone):
            view = yield from jump(view, found)
        else:
            outcome, time = "committed", found.time
            if found.intent is not None:
                key = decision_key(view.place, found.intent)
                decision = None
                if key is None or may_use(key, may):
                    decision = yield from decision_of(view.place, found)
                else:
                    following = yield ("get", log_key(view.place, found.version + 1))
                    if following is not None:
                        decision = Decision(*following.settles)
                if decision is None:
                    return view, key
                outcome, time = effect(decision, found.time)
            view = applied(view, found, outcome, time)
        if view is None:
            return None, None
        view = slim(view)
        found = yield ("get", log_key(view.place, view.version + 1))
    return view, None


def at_time(places: str, time: int) -> Program:
    """Several logs as of a time, which may not be over yet: each up to its last version of that time or before.

    A log in which nothing later stands yet may still get a version of that time, so it is looked at again at the end,
    as is an intent that is undecided: its time may be before.
    """
    views = tuple(View(place) for place in places)
    n, quiet = 0, 0
    while quiet < len(views):
        view = yield from until(views[n], time)
        quiet = 1 if view != views[n] and on(Rule.RECHECK_CURSORS) else quiet + 1
        views = (*views[:n], view, *views[n + 1 :])
        n = (n + 1) % len(views)
    yield Report("cut", (views,))


def until(view: View, time: int) -> Program:
    """The view forward to the last decided version that is not after the time."""
    found = yield ("get", log_key(view.place, view.version + 1))
    while found is not None:
        outcome, at = "committed", found.time
        if found.intent is not None:
            decision = yield from decision_of(view.place, found)
            if decision is None:
                return view
            outcome, at = effect(decision, found.time)
        if outcome == "committed" and at > time:
            return view
        view = slim(applied(view, found, outcome, at))
        found = yield ("get", log_key(view.place, view.version + 1))
    return view


def next_time(view: View) -> Program:
    """The time of the first effective version after the view; None if there is none that is decided."""
    ahead = view
    while True:
        found = yield ("get", log_key(view.place, ahead.version + 1))
        if found is None:
            return None
        outcome, at = "committed", found.time
        if found.intent is not None:
            decision = yield from decision_of(view.place, found)
            if decision is None:
                return None
            outcome, at = effect(decision, found.time)
        if outcome == "committed":
            return at
        ahead = slim(applied(ahead, found, outcome, at))


def by_interval(places: str) -> Program:
    """Several logs at one cut, taken in one by one: times from `low` to `high` are those at which the cut is true.

    A log is read to its head first; then those taken before are looked at for what has come after them.
    """
    views: tuple[View, ...] = ()
    low, high = 0, 999
    while len(views) < len(places):
        newest = None
        if on(Rule.EXTEND_THEN_CHECK):
            newest = yield from until(View(places[len(views)]), 999)
        n = 0
        while n < len(views):
            moved = yield from next_time(views[n])
            if moved is not None:
                high = min(high, moved - 1)
            n += 1
        if newest is None or newest.time > high:
            newest = yield from until(View(places[len(views)]), high)
            later = yield from next_time(newest)
            if later is not None:
                high = min(high, later - 1)
        low = max(low, newest.time)
        if low > high:
            return
        views = (*views, newest)
    yield Report("cut", (views,))


def in_one_round(places: str) -> Program:
    """Several logs at one cut, read side by side: what came after them meanwhile shows whether they are one."""
    views: tuple[View, ...] = ()
    while len(views) < len(places):
        view = yield from until(View(places[len(views)]), 999)
        views = (*views, view)
    low, high, n = max(view.time for view in views), 999, 0
    while n < len(views) and on(Rule.ROUND_IS_CHECKED):
        moved = yield from next_time(views[n])
        if moved is not None:
            high = min(high, moved - 1)
        n += 1
    if low <= high:
        yield Report("cut", (views,))
