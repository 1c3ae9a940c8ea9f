"""The simulation of changes of rows in its short form, and the proof that its checkers bite."""

from __future__ import annotations

import pytest
from tests.sim_catalog.late import noticing
from tests.sim_catalog.row_mutations import ROW_MUTATIONS
from tests.sim_catalog.simulation import ROWS, simulate_catalog

SHORT = range(1, 46)
FULL = range(46, 5_000)


def test_no_row_is_lost_doubled_or_resurrected_in_tens_of_seeds() -> None:
    totals: dict[str, int] = {}
    for seed in SHORT:
        outcome = simulate_catalog(seed, ROWS)
        assert not outcome.failures, (
            f"scripts/sim --catalog --about rows --seed {seed}: {outcome.failures[0]}"
        )
        for label, count in outcome.counters.items():
            totals[label] = totals.get(label, 0) + count
    # A simulation in which these did not happen would prove nothing.
    for label in (
        "crashes",
        "done: compact of rows",
        "done: delete of rows",
        "done: merge of rows",
        "done: move of all accounts",
        "done: move of an account",
        "done: overwrite of rows",
        "done: update of rows",
        "expiries",
        "looks at rows",
        "refused: CommitConflict",
        "rows: deletes by filter",
        "rows: planned compactions",
        "unknown",
        "vacuums",
    ):
        assert totals.get(label), label


@pytest.mark.slow
def test_no_row_is_lost_doubled_or_resurrected_in_thousands_of_seeds() -> None:
    seeds = [seed for seed in FULL if simulate_catalog(seed, ROWS).failures]
    assert not seeds, f"scripts/sim --catalog --about rows --seed {seeds[0]}"


@pytest.mark.parametrize("mutation", sorted(ROW_MUTATIONS))
def test_some_seed_fails_once_a_protection_of_rows_is_removed(mutation: str) -> None:
    assert noticing(mutation) is not None
