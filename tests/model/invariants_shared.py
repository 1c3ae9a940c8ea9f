"""What must hold if changes share a version, and of proposals. See `invariants.py` for the form."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from tests.model import sharing
from tests.model.checks import Checks, Truth, holds, holds_of
from tests.model.proposals import Proposal, after_changes
from tests.model.world import Change, Request, View, base_key, refusal, slim


@holds
def shared_in_turn(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
    """Of changes that share a version, each was applied or refused rightly, on the state that those before it left"""
    for place, truth in checks.truths(content).items():
        for commit, view_before in zip(truth.commits, truth.views, strict=False):
            for n, change in enumerate(commit.changes if view_before is not None else ()):
                view = after_changes(view_before, commit.changes[:n])
                why = refusal(request_of(change, view), view)
                if bool(why) != bool(change.why):
                    return f"{place}/{commit.version} says {change.why or 'applied'} of {change.cid}: {why}"
    return None


def request_of(change: Change, view: View) -> Request:
    return Request(change.cid, view.place, view.log_id, change.events, write=change.write)


@holds
def one_outcome(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
    """The log says one thing of a change: that it was applied, or that it was refused"""
    for place, truth in checks.truths(content).items():
        said: dict[str, str] = {}
        for commit in truth.commits:
            for change in commit.changes:
                label = "refused" if change.why else "applied"
                if said.setdefault(change.cid, label) != label:
                    return (
                        f"{place}/{commit.version} says {label} of {change.cid}, which is {said[change.cid]}"
                    )
    return None


@holds
def rows_once(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
    """The rows of each change that others combined are in exactly one file of the table"""
    for place, truth in checks.truths(content).items():
        if truth.head is None:
            continue
        wanted_cids = Counter(
            change.cid
            for commit in truth.commits
            for change in commit.changes
            if change.rows and not change.why
        )
        stored = (checks.store.get(content, ("file", place, *file)) for file in truth.head.state.files)
        cids = Counter(cid for ids in stored if isinstance(ids, tuple) for cid in ids)
        if wanted_cids != cids:
            return f"{place} has rows of {dict(cids)}, and should have those of {dict(wanted_cids)}"
    return None


@holds
def added_files_are_there(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
    """A file that a change of a retained version added is never deleted: a reader of changes reads it"""
    for place, truth in checks.truths(content).items():
        oldest, number = 0, 1
        while (base := checks.store.get(content, base_key(place, number))) is not None:
            oldest, number = base.view.version, number + 1
        for commit in truth.commits[oldest:]:
            added_events = (event for change in commit.changes if not change.why for event in change.events)
            for event in added_events:
                if event[0] == "add" and checks.store.get(content, ("file", place, *event[1:])) is None:
                    return f"{place}/{commit.version} has added the file {event[1]}"
    return None


@holds
def proposals_get_through(checks: Checks, content: int, reported: frozenset[Any]) -> str | None:
    """No proposer waits in vain: an undisturbed combiner applies or refuses each proposal whose window is open"""
    if ("combine", content) in checks.done:
        return None
    checks.done.add(("combine", content))
    for key in checks.store.contents[content]:
        name = checks.store.keys[key]
        found = checks.store.get(content, name) if name[0] == "inbox" else None
        if isinstance(found, Proposal) and not is_decided(checks, content, found):
            truth = checks.truths(content)[name[1]]
            number_after = checks.search.alone(
                partial(sharing.combine, "solo", slim(truth.views[found.seen])), content
            )[0]
            if not is_decided(checks, number_after, found):
                return f"the proposal of {found.request.cid} is left by a combiner"
    return None


def is_decided(checks: Checks, content: int, proposal: Proposal) -> bool:
    """Whether the fate of a proposal is known, or never will be."""
    truth: Truth = checks.truths(content)[proposal.request.place]
    if truth.head is None or truth.head.version >= proposal.until or "undecided" in truth.outcomes:
        return True
    if any(commit.flag for commit in truth.commits[proposal.seen :]):
        return True
    cid = proposal.request.cid
    return any(cid in (commit.cid, *(change.cid for change in commit.changes)) for commit in truth.commits)


@holds_of("refused")
def refused_rightly(checks: Checks, content: int, request: Request, base: int) -> str | None:
    """What is reported as refused could not be done at a version of the log, its base or a later one"""
    views = checks.truths(content)[request.place].views
    if any(view is not None and refusal(request, view) for view in views[base:]):
        return None
    return f"{request.cid} could be done at each version since {base}"
