"""The second world in its short form, the proof that its checkers bite, and the checker of orders by itself."""

from __future__ import annotations

import pytest
from tests.sim.late import WORLDS
from tests.sim.ledger_mutations import LEDGER_MUTATIONS
from tests.sim.ledger_simulation import simulate_ledgers
from tests.sim.serializability import Event, cycle

SHORT = range(1, 131)
FULL = range(SHORT.stop, 15_000)


def test_no_transaction_is_lost_doubled_or_torn_in_hundreds_of_seeds() -> None:
    totals: dict[str, int] = {}
    for seed in SHORT:
        outcome = simulate_ledgers(seed)
        assert not outcome.failures, f"scripts/sim --world ledgers --seed {seed}: {outcome.failures[0]}"
        for label, count in outcome.counters.items():
            totals[label] = totals.get(label, 0) + count
    # A simulation in which these did not happen would prove nothing.
    for label in (
        "acknowledged of 2",
        "acknowledged of 3",
        "retried",
        "unknown",
        "crashes of coordinators",
        "refused: Moved",
        "refused: Short",
        "refused: LogSealed",
        "created anew",
        "cuts",
        "cuts by time",
        "expired",
        "aborted",
        "restored",
        "purged",
        "vandalism: lie",
    ):
        assert totals.get(label), label


@pytest.mark.slow
def test_no_transaction_is_lost_doubled_or_torn_in_thousands_of_seeds() -> None:
    seeds = [seed for seed in FULL if simulate_ledgers(seed).failures]
    assert not seeds, f"scripts/sim --world ledgers --seed {seeds[0]}"


@pytest.mark.parametrize("mutation", sorted(LEDGER_MUTATIONS))
def test_some_seed_of_transactions_fails_once_a_protection_is_removed(mutation: str) -> None:
    assert WORLDS["ledgers"].noticing(mutation) is not None


def test_a_seed_of_transactions_always_gives_the_same_run() -> None:
    for seed in (1, 5, 33):
        assert simulate_ledgers(seed) == simulate_ledgers(seed)


A1 = Event("writes a", 0, 10, {"a": 1})
B1 = Event("writes b", 20, 30, {"b": 1})


@pytest.mark.parametrize(
    ("events", "fits"),
    [
        ([], True),
        ([A1, B1], True),
        ([A1, B1, Event("sees both", 40, 50, {}, {"a": 1, "b": 1})], True),
        ([A1, B1, Event("sees neither, begun early", 5, 50, {}, {"a": 0, "b": 0})], True),
        ([A1, B1, Event("sees the first", 15, 25, {}, {"a": 1, "b": 0})], True),
        ([A1, B1, Event("sees the second only", 5, 50, {}, {"a": 0, "b": 1})], False),
        ([A1, Event("is stale", 15, 25, {}, {"a": 0})], False),
        ([A1, Event("is stale, but has time", 5, 25, {}, {"a": 0})], True),
        ([Event("never answered", 0, None, {"a": 1}), Event("does not see it", 90, 99, {}, {"a": 0})], True),
        (
            [Event("a later version, done before", 0, 5, {"a": 2}), Event("an earlier one", 9, 10, {"a": 1})],
            False,
        ),
        (
            [
                Event("reads a, writes b", 0, 50, {"b": 1}, {"a": 0}),
                Event("reads b, writes a", 0, 50, {"a": 1}, {"b": 0}),
            ],
            False,
        ),
        (
            [
                Event("moves", 0, 9, {"a": 1, "b": 1}),
                Event("sees half", 0, 9, {}, {"a": 1, "b": 0}),
            ],
            False,
        ),
    ],
)
def test_a_history_fits_into_one_order_or_not(events: list[Event], fits: bool) -> None:
    assert (not cycle(events)) == fits


def test_a_cycle_is_shown_by_the_names_of_the_operations() -> None:
    assert sorted(cycle([A1, B1, Event("torn", 5, 50, {}, {"a": 0, "b": 1})])) == [
        "torn",
        "writes a",
        "writes b",
    ]
