"""Proposals under faults in their short form, the proof that the checkers bite, and what proposals bring."""

from __future__ import annotations

import pytest
from tests.sim.late import WORLDS
from tests.sim.proposal_mutations import PROPOSAL_MUTATIONS
from tests.sim.proposing import simulate_proposals
from tests.sim.timed import S3_US, run

SHORT = range(1, 91)
FULL = range(SHORT.stop, 8_000)


def test_what_is_proposed_is_applied_once_or_refused_in_hundreds_of_seeds() -> None:
    totals: dict[str, int] = {}
    for seed in SHORT:
        outcome = simulate_proposals(seed)
        assert not outcome.failures, f"scripts/sim --world proposals --seed {seed}: {outcome.failures[0]}"
        for label, count in outcome.counters.items():
            totals[label] = totals.get(label, 0) + count
    # A simulation in which these did not happen would prove nothing.
    for label in (
        "unknown",
        "retried",
        "expired",
        "versions that were combined",
        "wishes",
        "others were found to wait",
        "refusals that were put",
        "rows that were proposed",
        "rows that came back",
        "data objects of many",
        "refused: write-fenced",
        "refused: log-sealed",
        "reopened",
        "sealed, or restored",
        "forgery: later",
        "forgery: cut",
    ):
        assert totals.get(label), label


@pytest.mark.slow
def test_what_is_proposed_is_applied_once_or_refused_in_thousands_of_seeds() -> None:
    seeds = [seed for seed in FULL if simulate_proposals(seed).failures]
    assert not seeds, f"scripts/sim --world proposals --seed {seeds[0]}"


@pytest.mark.parametrize("mutation", sorted(PROPOSAL_MUTATIONS))
def test_some_seed_fails_once_a_rule_is_removed(mutation: str) -> None:
    assert WORLDS["proposals"].noticing(mutation) is not None


def test_a_writer_that_pauses_and_never_loses_a_race_does_what_it_does_without_proposals() -> None:
    alone, with_proposals = (
        run(1, 1, 1, S3_US, seconds=9, pause_s=0.5, proposals=proposals) for proposals in (False, True)
    )
    assert (alone.requests, alone.waits) == (with_proposals.requests, with_proposals.waits)


def test_a_writer_that_never_stops_looks_for_others_and_waits_no_longer_for_it() -> None:
    alone, with_proposals = (
        run(1, 1, 1, S3_US, seconds=6, proposals=proposals) for proposals in (False, True)
    )
    assert with_proposals.a_second == pytest.approx(alone.a_second, rel=0.02)
    assert alone.requests < with_proposals.requests < 1.3 * alone.requests


def test_processes_that_never_stop_share_versions_and_none_waits_for_long() -> None:
    raced_measures = run(1, 6, 1, S3_US, seconds=5, warm_s=2)
    proposed_measures = run(1, 6, 1, S3_US, seconds=5, warm_s=2, proposals=True)
    assert not raced_measures.failures and not proposed_measures.failures
    assert proposed_measures.a_second > 1.8 * raced_measures.a_second
    assert proposed_measures.least_share > 0.4
    assert proposed_measures.longest_by_median < 4 < raced_measures.longest_by_median


def test_threads_of_many_processes_ask_for_less_than_three_requests_a_change() -> None:
    measures = run(1, 6, 4, S3_US, seconds=2, warm_s=2, proposals=True)
    assert not measures.failures
    assert measures.a_second > 100
    assert measures.requests < 3 * measures.changes
