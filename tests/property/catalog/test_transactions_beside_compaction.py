"""Transactions beside compactions and clustering in a loop: none fails over rows that only moved, and none is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from tests.property.catalog.row_transaction_mutations import MUTATIONS
from tests.property.catalog.row_transactions import World

Kind = tuple[str, bool]
"""Isolation, and whether others change rows, too."""

KINDS: list[Kind] = [
    (isolation, has_others) for isolation in ("snapshot", "serializable") for has_others in (False, True)
]
SHORT = range(1, 2)
FULL = range(SHORT.stop, 60)
SEEDS_OF_MUTATIONS = range(1, 30)
FIRST: dict[str, tuple[int, Kind]] = {
    "a-transaction-may-delete-what-others-have-deleted": (12, KINDS[0]),
    "rows-of-an-earlier-step-s-copies-are-not-looked-for": (12, KINDS[0]),
}
"""Runs seen to fail, of each mutation: they save a search, as long as runs stay as they are."""


def played_counts(seeds: Iterable[int], kind: Kind) -> Counter[str]:
    isolation, others = kind
    totals: Counter[str] = Counter()
    for seed in seeds:
        world = World(seed, isolation, others=others)
        world.run()
        totals += world.counts
    return totals


def test_transactions_fail_over_no_moved_row_and_happen_in_the_order_of_their_commits() -> None:
    totals = sum((played_counts(SHORT, kind) for kind in KINDS), Counter[str]())
    assert totals["compactions"] and totals["committed"], totals
    for operation in ("append", "delete", "merge", "overwrite", "update"):
        assert totals[f"step: {operation}"], (operation, totals)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_transactions_of_many_runs_happen_in_the_order_of_their_commits(kind: Kind) -> None:
    assert played_counts(FULL, kind)["committed over others"] or not kind[1]


def fails(seed: int, kind: Kind) -> bool:
    try:
        played_counts([seed], kind)
    except Exception:  # a row that is there twice may show as a state that no longer adds up
        return True
    return False


@pytest.mark.parametrize("mutation", sorted(MUTATIONS))
def test_some_run_fails_once_a_protection_is_removed(mutation: str) -> None:
    runs = [(seed, kind) for seed in SEEDS_OF_MUTATIONS for kind in KINDS]
    with MUTATIONS[mutation]():
        assert any(fails(*run) for run in ([FIRST[mutation]] if mutation in FIRST else []) + runs)
