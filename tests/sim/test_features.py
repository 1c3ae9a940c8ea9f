"""Clients that know fewer features than a log uses, in a short form; and that the checkers would see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from tests.sim.features import simulate_features

from lakelog.log import format, replay, view

SHORT = range(1, 151)
FULL = range(SHORT.stop, 5_000)
MUTATION_SEEDS = range(1, 201)


def test_a_client_that_lacks_features_reads_nothing_wrong_and_writes_nothing() -> None:
    totals: dict[str, int] = {}
    for seed in SHORT:
        outcome = simulate_features(seed)
        assert not outcome.failures, f"scripts/sim --world features --seed {seed}: {outcome.failures[0]}"
        for label, count in outcome.counters.items():
            totals[label] = totals.get(label, 0) + count
    # A simulation in which these did not happen would prove nothing.
    for deed_name in ("read", "read_older", "commit", "commit_on_known", "expire", "snapshot"):
        assert totals.get(f"refused to an older client: {deed_name}"), deed_name
        assert totals.get(f"done by an older client: {deed_name}"), deed_name
    for label in ("reopened", "expired", "older versions read by an older client"):
        assert totals.get(label), label


@pytest.mark.slow
def test_a_client_that_lacks_features_is_harmless_in_thousands_of_seeds() -> None:
    seeds = [seed for seed in FULL if simulate_features(seed).failures]
    assert not seeds, f"scripts/sim --world features --seed {seeds[0]}"


def nothing(*given: Any, **named: Any) -> None:
    return None


def unnamed_texts(names: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    return new


@pytest.mark.parametrize(
    ("target", "name", "other"),
    [
        (format, "check_features", nothing),
        (replay, "check_features", nothing),
        (view, "_with", unnamed_texts),
    ],
)
def test_some_seed_fails_once_a_protection_is_removed(
    target: Any, name: str, other: Callable[..., Any]
) -> None:
    with patch.object(target, name, other):
        assert any(simulate_features(seed).failures for seed in MUTATION_SEEDS)
