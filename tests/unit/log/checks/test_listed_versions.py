"""Numbers of versions of a listing, in whatever order it has them: parts between which there are long holes."""

from __future__ import annotations

import pytest

from lakelog.log.listing import HOLE_MAX, VersionRuns


@pytest.mark.parametrize(
    ("numbers", "parts"),
    [
        ([], [(1, 0)]),
        ([1, 2, 3], [(1, 3)]),
        ([3, 1, 2], [(1, 3)]),
        ([5, 7], [(1, 7)]),
        ([1, HOLE_MAX + 1, 2 * HOLE_MAX + 1], [(1, 2 * HOLE_MAX + 1)]),
        ([1, HOLE_MAX + 2], [(1, 1), (HOLE_MAX + 2, HOLE_MAX + 2)]),
        ([10**20 - 1, 1, 2], [(1, 2), (10**20 - 1, 10**20 - 1)]),
        ([HOLE_MAX + 1], [(1, 0), (HOLE_MAX + 1, HOLE_MAX + 1)]),
        ([4, 4, 2, 6], [(1, 6)]),
    ],
)
def test_parts_are_the_same_in_any_order(numbers: list[int], parts: list[tuple[int, int]]) -> None:
    versions = VersionRuns()
    for number in numbers:
        versions.add(number)
    assert list(versions.ranges()) == parts
    assert versions.last == max(numbers, default=0) and bool(versions) == bool(numbers)


def test_a_million_in_order_are_held_as_one_run() -> None:
    versions = VersionRuns()
    for number in range(1, 1_000_001):
        versions.add(number)
    assert versions.runs == [(1, 1_000_000)]
