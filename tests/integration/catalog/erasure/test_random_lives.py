"""Random lives of a table, its clones and those that had its name: forgotten rows are in no object, others stay."""

from __future__ import annotations

import pytest
from tests.integration.catalog.erasure.lives import live


@pytest.mark.parametrize(
    "seed", [*range(1, 7), *(pytest.param(number, marks=pytest.mark.slow) for number in range(7, 200))]
)
def test_what_a_random_life_has_of_forgotten_rows_is_gone_or_named(seed: int) -> None:
    live(seed)
