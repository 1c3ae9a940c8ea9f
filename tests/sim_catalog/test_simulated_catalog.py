"""The simulation of the catalog in its short form, and the proof that its checkers bite."""

from __future__ import annotations

import pytest
from tests.sim_catalog.late import noticing
from tests.sim_catalog.mutations import CATALOG_MUTATIONS
from tests.sim_catalog.simulation import APART, simulate_catalog

SHORT = (*range(1, 46), 72, 98)
"""The last ones are about what few seeds are."""
FULL = range(46, 10_000)


def test_nothing_is_lost_torn_or_out_of_order_in_tens_of_seeds() -> None:
    totals: dict[str, int] = {}
    for seed in SHORT:
        outcome = simulate_catalog(seed)
        assert not outcome.failures, f"scripts/sim --catalog --seed {seed}: {outcome.failures[0]}"
        for label, count in outcome.counters.items():
            totals[label] = totals.get(label, 0) + count
    # A simulation in which these did not happen would prove nothing.
    for label in (
        "all names seen at once",
        "retried",
        "alter by name: missing",
        "alter by name: ok",
        "crashes",
        "cuts saved",
        "define: ok",
        "define again: ok",
        "done: change of duty",
        "done: change of the ring",
        "done: link of a chain",
        "done: numbers",
        "done: numbers in a transaction",
        "done: transfer",
        "drop: ok",
        "drop space: ok",
        "expiries",
        "histories that fit",
        "link: ok",
        "looks at bank",
        "looks at chain",
        "looks at duty",
        "looks at numbers",
        "looks at ring",
        "looks at sink",
        "numbers reserved",
        "no doctor on duty under snapshot isolation",
        "refused: CommitConflict",
        "rename: ok",
        "rename view: ok",
        "replace: ok",
        "ring: drops",
        "ring: renames",
        "ring: restores",
        "sink: retried",
        "sink: double",
        "sink: killed before its checkpoint",
        "sink: overtaken",
        "sink: replaces",
        "sink: rollbacks",
        "sink: single",
        "transaction: ok",
        "undefine: ok",
        "undrop: ok",
        "undrop space: ok",
        "unknown",
        "vacuums",
    ):
        assert totals.get(label), label
    assert totals.get("histories with too many orders to judge", 0) <= len(SHORT) // 100


@pytest.mark.slow
def test_nothing_is_lost_torn_or_out_of_order_in_thousands_of_seeds() -> None:
    seeds = [seed for seed in FULL if simulate_catalog(seed).failures]
    assert not seeds, f"scripts/sim --catalog --seed {seeds[0]}"


@pytest.mark.parametrize("mutation", sorted(CATALOG_MUTATIONS))
def test_some_seed_fails_once_a_protection_of_the_catalog_is_removed(mutation: str) -> None:
    assert noticing(mutation) is not None


@pytest.mark.parametrize("kind", [None, *APART])
def test_a_seed_always_gives_the_same_run(kind: str | None) -> None:
    first = [simulate_catalog(seed, kind) for seed in (1, 3)]
    assert first == [simulate_catalog(seed, kind) for seed in (1, 3)]
