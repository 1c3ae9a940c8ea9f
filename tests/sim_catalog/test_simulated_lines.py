"""The simulation of tags and branches in its short form, and the proof that its checkers bite."""

from __future__ import annotations

import pytest
from tests.sim_catalog.late import noticing
from tests.sim_catalog.line_mutations import LINE_MUTATIONS
from tests.sim_catalog.simulation import LINES, simulate_catalog

SHORT = range(1, 46)
FULL = range(46, 5_000)


def test_lines_do_not_mix_in_tens_of_seeds() -> None:
    totals: dict[str, int] = {}
    for seed in SHORT:
        outcome = simulate_catalog(seed, LINES)
        assert not outcome.failures, (
            f"scripts/sim --catalog --about lines --seed {seed}: {outcome.failures[0]}"
        )
        for label, count in outcome.counters.items():
            totals[label] = totals.get(label, 0) + count
    # A simulation in which these did not happen would prove nothing.
    for label in (
        "crashes",
        "done: compact of rows",
        "done: mark on a branch",
        "done: mark on main",
        "done: marks on two lines",
        "expiries",
        "lines: accounts opened",
        "lines: branches",
        "lines: branches that were others",
        "lines: fast-forwards",
        "lines: rewrites",
        "lines: tags",
        "lines: transfers",
        "looks at lines",
        "refused: CommitConflict",
        "unknown",
        "vacuums",
    ):
        assert totals.get(label), label


@pytest.mark.slow
def test_lines_do_not_mix_in_thousands_of_seeds() -> None:
    seeds = [seed for seed in FULL if simulate_catalog(seed, LINES).failures]
    assert not seeds, f"scripts/sim --catalog --about lines --seed {seeds[0]}"


@pytest.mark.parametrize("mutation", sorted(LINE_MUTATIONS))
def test_some_seed_fails_once_a_protection_of_lines_is_removed(mutation: str) -> None:
    assert noticing(mutation) is not None
