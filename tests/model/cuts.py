"""Saved cuts: the versions of several logs, kept by a namespace's log, and an expiry that keeps what they need."""

from __future__ import annotations

from functools import partial

from tests.model.expiry import expire
from tests.model.machine import Program, Report
from tests.model.reading import cold
from tests.model.rules import Rule, on
from tests.model.together import together
from tests.model.world import Request, View, log_key
from tests.model.writing import put_one, step_over


def save(me: str, cid: str, holder: View, logs: tuple[View, ...]) -> Program:
    """Save a cut of the logs that a namespace leads to, as they were when they were looked at."""
    yield ("get", log_key(holder.place, holder.version))
    if on(Rule.CUT_OF_ITS_FOLDER) and not all(holder.place in holders_of(view.place) for view in logs):
        yield Report("failed", (cid,))
        return
    versions = tuple((view.place, view.version) for view in logs)
    request = Request(cid, holder.place, holder.log_id, (("applied", cid), ("cut", versions)))
    validate = partial(are_kept, versions) if on(Rule.CUT_IS_CHECKED) else None
    yield from together(me, (holder,), (request,), validate=validate)


def are_kept(versions: tuple[tuple[str, int], ...]) -> Program:
    """Whether no log says that one of the versions has expired."""
    n = 0
    while n < len(versions):
        view = yield from cold(versions[n][0])
        if view is None or view.state.expired > versions[n][1]:
            return False
        n += 1
    return True


def expire_unless_needed(me: str, view: View, upto: int) -> Program:
    """Say in the log what expires, then look for cuts that need it, then delete."""
    needed_flag = False
    if not on(Rule.CUTS_READ_LAST):
        needed_flag = yield from is_needed(view.place, upto)
    request = Request(me, view.place, view.log_id, (("expires", upto),))
    done = yield from put_one(me, view, request, 0, None, 9)
    if done.how not in ("placed", "found") or needed_flag:
        return
    if on(Rule.CUTS_READ_LAST):
        needed_flag = yield from is_needed(view.place, upto)
    if not needed_flag:
        yield from expire(me, view.place, upto)


def is_needed(place: str, upto: int) -> Program:
    """Whether a cut has an older version, by the namespaces whose folders the log is in: a cut that is being saved is
    decided first."""
    n, holders = 0, holders_of(place)
    while n < len(holders):
        view = yield from cold(holders[n])
        found = None
        if on(Rule.CUTS_ARE_SETTLED):
            found = yield ("get", log_key(holders[n], view.version + 1))
        while found is not None:
            view = yield from step_over(view, found, "")
            found = yield ("get", log_key(holders[n], view.version + 1))
        if any(one == place and version < upto for one, version in view.state.cuts):
            return True
        n += 1
    return False


def holders_of(place: str) -> tuple[str, ...]:
    """The namespaces whose folders the log is in."""
    parts = place.split("/")
    return tuple("/".join(parts[:n]) for n in range(1, len(parts) + 1))
