"""The simulation of clones in its short form, and the proof that its checkers bite."""

from __future__ import annotations

import pytest
from tests.sim_catalog.clone_mutations import CLONE_MUTATIONS
from tests.sim_catalog.late import noticing
from tests.sim_catalog.simulation import CLONES, simulate_catalog

SHORT = range(1, 26)
FULL = range(26, 4_000)


def test_clones_keep_their_rows_in_tens_of_seeds() -> None:
    totals: dict[str, int] = {}
    for seed in SHORT:
        outcome = simulate_catalog(seed, CLONES)
        assert not outcome.failures, (
            f"scripts/sim --catalog --about clones --seed {seed}: {outcome.failures[0]}"
        )
        for label, count in outcome.counters.items():
            totals[label] = totals.get(label, 0) + count
    # A simulation in which these did not happen would prove nothing.
    for label in (
        "clones: drops",
        "clones: made",
        "clones: materialized",
        "crashes",
        "expiries",
        "looks at clones",
        "vacuums",
    ):
        assert totals.get(label), label


@pytest.mark.slow
def test_clones_keep_their_rows_in_thousands_of_seeds() -> None:
    seeds = [seed for seed in FULL if simulate_catalog(seed, CLONES).failures]
    assert not seeds, f"scripts/sim --catalog --about clones --seed {seeds[0]}"


@pytest.mark.parametrize("mutation", sorted(CLONE_MUTATIONS))
def test_some_seed_fails_once_a_protection_of_clones_is_removed(mutation: str) -> None:
    assert noticing(mutation) is not None
