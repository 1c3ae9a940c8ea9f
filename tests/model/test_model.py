"""The model in its short form, and the proof that each rule is needed. scripts/model explores it in full."""

from __future__ import annotations

import pytest
from tests.model import cuts, expiry, machine, names, reading, setting_back, sharing, together, writing
from tests.model.explore import clean, published_badly, removed
from tests.model.published import PUBLISHED
from tests.model.removals import REMOVALS
from tests.model.rules import Rule
from tests.model.scenarios import SCENARIOS


@pytest.mark.parametrize("number", range(len(SCENARIOS)), ids=[make.__name__ for make in SCENARIOS])
def test_the_protocol_is_clean_in_every_state_of_a_scenario(number: int) -> None:
    result = clean(number, full=False)
    assert result.violation is None, "\n".join([*result.trace, *result.violation])
    assert result.finished
    assert result.worlds > 40, "a scenario in which next to nothing happens proves nothing"


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(SCENARIOS)), ids=[make.__name__ for make in SCENARIOS])
def test_the_protocol_is_clean_in_every_state_of_a_larger_scenario(number: int) -> None:
    result = clean(number, full=True)
    assert result.violation is None, "\n".join([*result.trace, *result.violation])
    assert result.finished


@pytest.mark.parametrize("rule", list(Rule), ids=lambda rule: rule.name)
def test_the_loss_of_any_rule_is_seen(rule: Rule) -> None:
    result = removed(rule)
    assert result.violation is not None, f"{rule.value} Nothing goes wrong without it in {result.scenario}."
    assert result.trace or result.worlds == 1


def test_every_rule_has_a_scenario_in_which_its_loss_is_seen() -> None:
    assert set(REMOVALS) == set(Rule)


@pytest.mark.parametrize("number", range(len(PUBLISHED)), ids=[bad.what for bad in PUBLISHED])
def test_what_was_published_goes_wrong_as_it_was_published(number: int) -> None:
    assert published_badly(number).violation is not None


def test_a_search_is_the_same_each_time() -> None:
    assert clean(2, full=False)[:4] == clean(2, full=False)[:4]
    assert removed(Rule.ABSENT_IS_REPEATED).trace == removed(Rule.ABSENT_IS_REPEATED).trace


def test_programs_keep_nothing_where_the_machine_does_not_see_it() -> None:
    for module in (cuts, expiry, names, reading, setting_back, sharing, together, writing):
        assert machine.check_source(module) == []
