"""The simulation in its short form, and the proof that its checkers bite. scripts/sim runs any other seeds."""

from __future__ import annotations

import pytest
from tests.sim.late import WORLDS
from tests.sim.mutations import MUTATIONS
from tests.sim.simulation import simulate

SHORT = range(1, 301)
FULL = range(SHORT.stop, 10_000)


def test_nothing_is_lost_doubled_or_torn_in_hundreds_of_seeds() -> None:
    totals: dict[str, int] = {}
    for seed in SHORT:
        outcome = simulate(seed)
        assert not outcome.failures, f"scripts/sim --world log --seed {seed}: {outcome.failures[0]}"
        for label, count in outcome.counters.items():
            totals[label] = totals.get(label, 0) + count
    # A simulation in which these did not happen would prove nothing.
    for label in (
        "unknown",
        "retried",
        "expired",
        "bases emptied",
        "refused: write-fenced",
        "refused: log-sealed",
        "reopened",
        "vandalism: lie",
        "versions that were shared",
    ):
        assert totals.get(label), label


@pytest.mark.slow
def test_nothing_is_lost_doubled_or_torn_in_thousands_of_seeds() -> None:
    seeds = [seed for seed in FULL if simulate(seed).failures]
    assert not seeds, f"scripts/sim --world log --seed {seeds[0]}"


@pytest.mark.parametrize("mutation", sorted(MUTATIONS))
def test_some_seed_fails_once_a_protection_is_removed(mutation: str) -> None:
    assert WORLDS["log"].noticing(mutation) is not None


def test_a_seed_always_gives_the_same_run() -> None:
    for seed in (3, 80, 81):
        assert simulate(seed) == simulate(seed)
