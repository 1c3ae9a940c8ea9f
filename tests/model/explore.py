"""The searches that are made: a scenario with all rules, or with one taken away."""

from __future__ import annotations

from tests.model import invariants, invariants_shared
from tests.model.checks import Checks
from tests.model.published import PUBLISHED
from tests.model.removals import REMOVALS
from tests.model.rules import Rule, without
from tests.model.scenarios import SCENARIOS
from tests.model.search import Result, Search

assert invariants and invariants_shared, "imported for what they register"


def clean(number: int, full: bool) -> Result:
    """Explore a scenario with all rules; nothing must be found."""
    return Search(SCENARIOS[number](full), Checks).run()


def removed(rule: Rule) -> Result:
    """Explore the rule's scenario without the rule; a violation must be found."""
    with without(rule):
        return Search(REMOVALS[rule](False), Checks).run()


def published_badly(number: int) -> Result:
    """Explore a published scenario in the way that was published; a violation must be found."""
    with without(PUBLISHED[number].rule):
        return Search(PUBLISHED[number].scenario(False), Checks).run()
