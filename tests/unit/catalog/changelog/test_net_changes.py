"""What changes amount to, by the ids and versions of rows alone: whatever order they come in."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from lakelog.catalog.looking.changelog.net_changes import as_updates, net, without_copies

Change = tuple[int, str, int, int]
"""The version of a change, its kind, and the row's id and version."""

UPDATE: list[Change] = [(5, "delete", 1, 2), (5, "insert", 1, 5)]
COPY: list[Change] = [(5, "delete", 2, 3), (5, "insert", 2, 3)]
GONE: list[Change] = [(5, "delete", 3, 2)]
COME: list[Change] = [(5, "insert", 4, 5)]


def table(changes: list[Change]) -> pa.Table:
    names = ("_commit_version", "_change_type", "_row_id", "_row_version")
    return pa.table(dict(zip(names, map(list, zip(*changes, strict=True)), strict=True)))


def sorted_rows(changes: pa.Table) -> list[Change]:
    return sorted(zip(*(column.to_pylist() for column in changes.columns), strict=True))


def test_a_copy_has_the_version_that_it_had() -> None:
    assert sorted_rows(without_copies(table([*UPDATE, *COPY, *GONE, *COME]))) == sorted(
        [*UPDATE, *GONE, *COME]
    )


def test_an_update_is_of_one_row() -> None:
    assert sorted_rows(as_updates(table([*UPDATE, *GONE, *COME]))) == sorted(
        [(5, "update_preimage", 1, 2), (5, "update_postimage", 1, 5), *GONE, *COME]
    )


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_of_each_row_its_first_and_its_last_state_count(order: tuple[int, ...]) -> None:
    again: list[Change] = [(6, "delete", 1, 5), (6, "insert", 1, 6)]
    came_and_went: list[Change] = [(5, "insert", 7, 5), (6, "delete", 7, 5)]
    parts = [[*again[::-1], *GONE], [*UPDATE[::-1], *COME], came_and_went[::-1]]
    changes = table([change for part in order for change in parts[part]])
    remaining_numbers = [(5, "delete", 1, 2), (6, "insert", 1, 6), *GONE, *COME]
    assert sorted_rows(net(changes, updates=False)) == sorted(remaining_numbers)
    named_numbers = [(5, "update_preimage", 1, 2), (6, "update_postimage", 1, 6), *GONE, *COME]
    assert sorted_rows(net(changes, updates=True)) == sorted(named_numbers)
