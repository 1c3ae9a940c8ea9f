"""That a check reports no damage beside live writers: each kind of work is done between any two of its requests."""

from __future__ import annotations

import pytest
from tests.integration.fsck.busy import Busy, actions, worse_than_notes

EVERY = 29
"""The short form lets each kind of work happen ahead of one request in so many."""
CHECKS = 12
WRITERS = 3


@pytest.fixture(scope="module")
def busy() -> Busy:
    return Busy()


def test_the_warehouse_is_clean(busy: Busy) -> None:
    assert worse_than_notes(busy.check()) == []


def told(busy: Busy, every: int) -> tuple[int, list[str]]:
    """Do each kind of work ahead of some of the requests. Returns how many checks that were, and what they told."""
    tried, wrong = 0, []
    for n, (name, action) in enumerate(actions(busy.elsewhere).items()):
        at, inside = 1 + n % every, True
        while inside:
            findings, inside = busy.check_meanwhile(action, at)
            wrong += [f"{name} ahead of request {at}: {each}" for each in worse_than_notes(findings)]
            busy.restore()
            tried, at = tried + 1, at + every
    return tried, wrong


def test_no_work_between_two_requests_is_told_as_damage(busy: Busy) -> None:
    tried, wrong = told(busy, EVERY)
    assert tried > 50 and wrong == [], "\n".join(wrong)


@pytest.mark.slow
def test_no_work_between_any_two_requests_is_told_as_damage(busy: Busy) -> None:
    tried, wrong = told(busy, 1)
    assert tried > 1000 and wrong == [], "\n".join(wrong)
