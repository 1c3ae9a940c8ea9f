"""Sessions that change rows at once: the rows are those that the acknowledged commits make, in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from tests.property.catalog.row_session_mutations import MUTATIONS
from tests.property.catalog.row_sessions import World

from lakelog.catalog.core.schema.properties.known import COPY_ON_WRITE

SHORT = range(1, 9)
FULL = range(SHORT.stop, 400)
OF_PYTHON = range(5, 9)
SEEDS_OF_MUTATIONS = range(1, 301)
LATE = {
    "a-compaction-does-not-see-that-rows-came-back": 66,
    "rows-that-are-gone-are-not-held-against-the-condition": 7,
    "what-cannot-be-evaluated-is-false": 9,
}
"""Seeds seen to fail, of mutations that few find."""
KINDS = [
    (isolation, mode)
    for isolation in ("serializable", "snapshot")
    for mode in (COPY_ON_WRITE, "merge-on-read")
]


def played_counts(
    seeds: Iterable[int], isolation: str, mode: str, *, from_python: bool = False
) -> Counter[str]:
    totals: Counter[str] = Counter()
    for seed in seeds:
        world = World(seed, isolation, mode, from_python)
        world.run()
        totals += world.counts
    return totals


def over_others(totals: Counter[str]) -> int:
    return sum(count for label, count in totals.items() if label.startswith("over others"))


@pytest.mark.parametrize(("isolation", "mode"), KINDS)
def test_statements_of_seven_sessions_happen_in_the_order_of_their_commits(isolation: str, mode: str) -> None:
    totals = played_counts(SHORT, isolation, mode)
    assert over_others(totals) > totals["needless conflicts"], totals
    for operation in ("merge", "update"):
        assert totals[f"over others: {operation}"] and totals[f"conflict: {operation}"], (operation, totals)
    assert totals["compactions"] and totals["over rewritten files"] and totals["groups"], totals


@pytest.mark.parametrize(("isolation", "mode"), KINDS)
def test_merges_and_updates_from_python_happen_in_the_order_of_their_commits(
    isolation: str, mode: str
) -> None:
    totals = played_counts(OF_PYTHON, isolation, mode, from_python=True)
    for operation in ("merge", "update"):
        assert totals[f"from Python: {operation}"], (operation, totals)
    assert totals["over others: merge"] and totals["conflict: merge"], totals


@pytest.mark.slow
@pytest.mark.parametrize(("isolation", "mode"), KINDS)
def test_merges_and_updates_of_many_runs_from_python_happen_in_the_order_of_their_commits(
    isolation: str, mode: str
) -> None:
    totals = played_counts(range(OF_PYTHON.stop, 150), isolation, mode, from_python=True)
    assert totals["over rewritten files"], totals


@pytest.mark.slow
@pytest.mark.parametrize(("isolation", "mode"), KINDS)
def test_statements_of_hundreds_of_runs_happen_in_the_order_of_their_commits(
    isolation: str, mode: str
) -> None:
    totals = played_counts(FULL, isolation, mode)
    assert totals["ways back"], totals


def is_caught(seed: int) -> bool:
    for isolation, mode in KINDS:
        try:
            World(seed, isolation, mode).run()
        except AssertionError:
            return True
    return False


@pytest.mark.parametrize("mutation", sorted(MUTATIONS))
def test_some_run_fails_once_a_protection_is_removed(mutation: str) -> None:
    with MUTATIONS[mutation]():
        assert any(is_caught(seed) for seed in (LATE.get(mutation, 1), *SEEDS_OF_MUTATIONS))
