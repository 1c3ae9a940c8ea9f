"""Versions that many changes share, and what a client proposes for them to others. Pure.

A proposal names the version that it saw as the head. It may be applied in the versions after that up to the end of its
window, and in no other: a client that has seen these knows what became of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.model.rules import Rule, on
from tests.model.world import Change, Commit, Event, Key, Request, Tombstone, View, fold, refusal

BROKEN = "what is no proposal"


class Proposal(NamedTuple):
    request: Request
    seen: int
    until: int  # the last version of its window


class Known(NamedTuple):
    """What a combiner knows of a log: all changes since a version."""

    since: int
    ids: frozenset[str] = frozenset()
    sealed: int = 0  # where the last seal or reopening was


def inbox_key(proposal: Proposal) -> Key:
    return ("inbox", proposal.request.place, proposal.seen, proposal.request.cid)


def fate(found: Commit | Tombstone, cid: str) -> str:
    """What a version says of a change: applied, refused, or nothing."""
    if found.cid == cid:
        return "applied"
    for text, why in ids_of(found):
        if text == cid:
            return "refused" if why and on(Rule.REFUSED_IS_FINAL) else "" if why else "applied"
    return ""


def ids_of(found: Commit | Tombstone) -> tuple[tuple[str, str], ...]:
    """The changes that share a version, each with why it was refused."""
    if not on(Rule.SHARED_IDS):
        return ()
    if isinstance(found, Tombstone):
        return found.ids
    return tuple((change.cid, change.why) for change in found.changes)


def is_proposal(found: Any, key: Key) -> bool:
    """Whether what stands at a key is the proposal that belongs there."""
    return isinstance(found, Proposal) and (inbox_key(found) == key or not on(Rule.PROPOSAL_OF_ITS_KEY))


def is_known(key: Key, known: Known) -> bool:
    """Whether a combiner need not read a proposal: its change has been decided, or may have been."""
    is_decided = key[3] in known.ids and on(Rule.WINDOW_COMPARED)
    return is_decided or (key[2] < known.since and on(Rule.WINDOW_KNOWN))


def changes_of(view: View, proposals: tuple[Proposal, ...], known: Known) -> tuple[Change, ...]:
    """The changes of the version after the view, decided one after another."""
    changes: tuple[Change, ...] = ()
    for proposal in proposals:
        request, at = proposal.request, view.version + 1
        in_window = proposal.seen < at <= proposal.until
        if not in_window and on(Rule.WINDOW_ENDS) and on(Rule.WINDOW_IS_NO_REFUSAL):
            continue
        if known.sealed > proposal.seen and on(Rule.SEAL_ENDS_WINDOWS):
            continue
        if any(change.cid == request.cid for change in changes) and on(Rule.ONCE_IN_A_VERSION):
            continue
        why = "the window is over" if not in_window and on(Rule.WINDOW_ENDS) else None
        if not on(Rule.FENCE_COVERS_PROPOSALS):
            request = request._replace(write=None)
        changes = one_more(view, changes, request, why)
    return changes


def one_more(
    view: View, changes: tuple[Change, ...], request: Request, why: str | None = None
) -> tuple[Change, ...]:
    """The changes with one more, applied or refused; without it if it has to wait for the next version."""
    if why is None:
        why = refusal(request, after_changes(view, changes) if on(Rule.SHARED_IN_TURN) else view)
    if why is None and on(Rule.SHARED_APART) and removed(request.events) & added(changes):
        return changes
    if why is not None and not on(Rule.REFUSAL_STORED):
        return changes
    change = Change(request.cid, request.events + request.needs, why or "", request.write, request.rows)
    return (*changes, change)


def after_changes(view: View, changes: tuple[Change, ...]) -> View:
    """The view that the next change of the version is decided on."""
    state = view.state
    for change in changes:
        if not change.why:
            state = fold(state, change.events)
    return view._replace(state=state)


def added(changes: tuple[Change, ...]) -> frozenset[Any]:
    events = (event for change in changes if not change.why for event in change.events)
    return frozenset(event[1:] for event in events if event[0] == "add")


def removed(events: tuple[Event, ...]) -> frozenset[Any]:
    return frozenset(event[1:] for event in events if event[0] == "remove")


def rows_of(changes: tuple[Change, ...]) -> tuple[str, ...]:
    """The changes whose rows go into a file of the version."""
    return tuple(change.cid for change in changes if change.rows and not change.why)


def version_of(me: str, view: View, changes: tuple[Change, ...], events: tuple[Event, ...] = ()) -> Commit:
    """One version of all the changes."""
    return Commit(
        log_id=view.log_id,
        version=view.version + 1,
        cid=f"shared by {me}",
        attempt=(me, 0, view.place, view.version + 1),
        prev=view.hash,
        time=view.time + 1,
        events=events,
        settles=view.settles if on(Rule.SETTLES) else None,
        changes=changes,
    )
