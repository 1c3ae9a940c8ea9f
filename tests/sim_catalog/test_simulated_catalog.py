"""The simulation of the catalog in its short form, and the proof that its checkers bite."""

from __future__ import annotations

import pytest
from tests.sim_catalog.late import LATE_IN_CATALOGS, noticed_by
from tests.sim_catalog.mutations import CATALOG_MUTATIONS
from tests.sim_catalog.simulation import seeds_of, simulate_catalog

SHORT = (*range(1, 46), 48, 55, 69, 70, 71, 74, 91, 224, 394, 611, 616, 630, 653)
"""The last are about what few seeds are."""
FULL = range(46, 10_000)

CAUGHT_BY = {
    "clocks-do-not-follow-what-was-read": "chain",
    "a-cut-is-not-checked-again": "bank",
    "what-was-read-is-not-validated": "ring",
    "what-was-only-read-is-not-validated": "duty",
    "the-steps-of-a-transaction-are-decided-once": "bank",
    "what-was-created-for-nothing-is-left-open": "ring",
    "a-batch-of-a-stream-is-not-looked-for": "sink",
    "a-batch-that-a-transaction-finds-committed-is-left-out": "sink",
    "a-replace-forgets-the-batches-of-streams": "sink",
    "values-that-others-took-are-committed": "numbers",
    "other-values-are-not-reserved": "numbers",
    "a-rollback-takes-back-which-values-are-taken": "numbers",
}
"""What the seeds are about that show it soonest; those about names for all others."""


def test_nothing_is_lost_torn_or_out_of_order_in_tens_of_seeds() -> None:
    totals: dict[str, int] = {}
    for seed in SHORT:
        outcome = simulate_catalog(seed)
        assert not outcome.failures, f"scripts/sim --catalog --seed {seed}: {outcome.failures[0]}"
        for what, count in outcome.counters.items():
            totals[what] = totals.get(what, 0) + count
    # A simulation in which these did not happen would prove nothing.
    for what in (
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
        assert totals.get(what), what
    assert totals.get("histories with too many orders to judge", 0) <= len(SHORT) // 100


@pytest.mark.slow
def test_nothing_is_lost_torn_or_out_of_order_in_thousands_of_seeds() -> None:
    failed = [seed for seed in FULL if simulate_catalog(seed).failures]
    assert not failed, f"scripts/sim --catalog --seed {failed[0]}"


def noticing(mutation: str) -> int | None:
    seeds = (LATE_IN_CATALOGS.get(mutation, 1), *seeds_of(CAUGHT_BY.get(mutation, "names"), 1000))
    return noticed_by(CATALOG_MUTATIONS[mutation], lambda seed: simulate_catalog(seed).failures, seeds)


@pytest.mark.parametrize("mutation", sorted(CATALOG_MUTATIONS))
def test_some_seed_fails_once_a_protection_of_the_catalog_is_removed(mutation: str) -> None:
    assert noticing(mutation) is not None
