"""Proposals with one rule removed (docs/design/group-commit.md): each must make some seed fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import PropertyMock, patch

from msgspec import structs
from tests.sim import projection, proposing
from tests.sim.mutations import Mutation, removing

from lakelog.log import placing, writing
from lakelog.log.format import WINDOW, Proposal, decode_proposal
from lakelog.log.proposals import combining, inbox, window

PROPOSAL_MUTATIONS: dict[str, Mutation] = {}
removes: Callable[[Any, str], Callable[..., Any]] = removing(PROPOSAL_MUTATIONS)


@contextmanager
def _windows_do_not_end() -> Iterator[None]:
    """Its author takes a window for over, and those who combine do not."""
    real = proposing.sizes

    @contextmanager
    def sizes(window_versions: int, races: int) -> Iterator[None]:
        with real(20, races), patch.object(placing, "WINDOW", 1):
            yield

    with patch.object(proposing, "sizes", sizes):
        yield


PROPOSAL_MUTATIONS["windows-do-not-end"] = _windows_do_not_end


@contextmanager
def _takes_what_it_cannot_know() -> Iterator[None]:
    def is_open(self: Any, proposal: Proposal, version: int) -> bool:
        return bool(proposal.seen < version <= proposal.until and proposal.seen >= self.barrier)

    with patch.object(window.VersionWindow, "is_open", is_open), patch.object(combining, "CATCH_UP_MAX", 0):
        yield


PROPOSAL_MUTATIONS["what-was-decided-before-a-combiner-began-is-taken-for-open"] = _takes_what_it_cannot_know


@removes(window.VersionWindow, "is_open")
def windows_go_on_behind_what_ends_them(real: Any, self: Any, proposal: Proposal, version: int) -> bool:
    return bool(proposal.seen < version <= proposal.until and proposal.seen >= self.since)


@removes(window.VersionWindow, "is_decided")
def a_combiner_does_not_compare_ids(real: Any, self: Any, commit_id: str) -> bool:
    return False


@removes(window, "decided_ids")
def a_combiner_forgets_what_was_refused(real: Any, commit: Any) -> Any:
    return tuple(change.commit_id for change in commit.changes if change.refused is None) or (
        commit.commit_id,
    )


@removes(placing.ChangeCursor, "asked_before")
def a_retry_proposes_before_it_compares(real: Any, self: Any) -> None:
    return None


@removes(inbox, "proposal_at")
def a_proposal_is_read_under_any_key(
    real: Any, key: str, data: bytes, keys: Any, location: str, *args: Any
) -> Proposal:
    proposal = decode_proposal(data, location)
    named_proposal = keys.proposal_of(key)
    return structs.replace(proposal, seen=named_proposal[0], until=named_proposal[0] + WINDOW)


@removes(combining, "check_fence")
def a_fence_is_not_for_proposals(real: Any, *args: Any) -> None:
    return None


@removes(placing, "refusal_in")
def a_refusal_is_not_read(real: Any, *args: Any) -> None:
    return None


@removes(combining.CourierRound, "_gathered_on")
def a_combiner_keeps_the_file_of_other_rows(real: Any, self: Any, judged: Any) -> Any:
    if self._gathered is None:
        return real(self, judged)
    return replace(self._gathered[1], events=[({"op": row.draft.rows.decode()},) for row in judged.rows])


@removes(combining.CourierRound, "work")
def a_combiner_removes_a_file_that_a_version_may_have(real: Any, self: Any) -> Any:
    try:
        return real(self)
    finally:
        self._discard()


@contextmanager
def _fences_are_not_for_combiners() -> Iterator[None]:
    """A combiner's file is put in a version though a fence has passed it."""
    real = projection.OperationsByData.gather

    def gather(self: Any, view: Any, rows: Any) -> Any:
        changes = real(self, view, rows)
        return None if changes is None else replace(changes, again=lambda now: changes.draft)

    def check(view: Any, draft: Any, location: str) -> None:
        if not any("of" in event for event in draft.events):
            writing.check_fence(view, draft, location)

    with (
        patch.object(projection.OperationsByData, "gather", gather),
        patch.object(combining, "check_fence", check),
    ):
        yield


PROPOSAL_MUTATIONS["a-fence-is-not-for-the-file-of-a-combiner"] = _fences_are_not_for_combiners


@contextmanager
def _never(name: str) -> Iterator[None]:
    with patch.object(placing.ChangeCursor, name, PropertyMock(return_value=False)):
        yield


PROPOSAL_MUTATIONS["what-is-proposed-is-reported-as-failed"] = lambda: _never("is_open_elsewhere")
PROPOSAL_MUTATIONS["a-failure-does-not-know-of-the-proposal"] = lambda: _never("is_proposed")
