"""Rows by their ids and positions: as in a dict, whatever their order."""

from __future__ import annotations

import random

import numpy as np
import pytest

from lakelog.catalog.core.files.row_index import NOT_KNOWN, RowIndex


def array(numbers: list[int]) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


@pytest.mark.parametrize("seed", range(40))
def test_rows_are_found_by_id_and_by_position(seed: int) -> None:
    rng = random.Random(seed)
    count, start = rng.choice((1, 2, 30, 300)), rng.choice((0, 7))
    first = rng.randrange(100)
    ids = list(range(first, first + count))
    if rng.random() < 0.5:
        rng.shuffle(ids)
    versions = [rng.choice((1, 1, 1, 2, NOT_KNOWN)) if rng.random() < 0.2 else 1 for _ in ids]
    ids = [NOT_KNOWN if rng.random() < 0.1 else id for id in ids]
    positions = list(range(start, start + count))
    index = RowIndex.of(array(positions), array(ids), array(versions))
    assert (index.start, index.rows) == (start, count)
    rows = {
        id: (at, version) for id, at, version in zip(ids, positions, versions, strict=True) if id != NOT_KNOWN
    }
    range_ = rng.sample(range(-1, first + count + 20), min(50, first + count))
    here, at, of = index.found(array(range_))
    assert [id in rows for id in range_] == here.tolist()
    assert list(zip(at.tolist(), of.tolist(), strict=True)) == [rows[id] for id in range_ if id in rows]
    wanted_range = sorted(rng.sample(range(start + count + 5), min(20, start + count)))
    by_position = {at: id for id, (at, _) in rows.items()}
    known, there = index.at(array(wanted_range))
    assert known.tolist() == [at for at in wanted_range if at in by_position]
    assert there.tolist() == [by_position[at] for at in known.tolist()]


def test_rows_that_follow_each_other_take_no_room() -> None:
    rows = np.arange(1_000_000, dtype=np.int64)
    index = RowIndex.of(rows, rows + 5, np.ones(len(rows), dtype=np.int64))
    assert index.size_bytes == 32
    gaps = RowIndex.of(rows, rows + np.where(rows > 500, 10, 5), np.ones(len(rows), dtype=np.int64))
    assert gaps.size_bytes == 64


def test_nothing_is_found_where_no_row_has_an_id() -> None:
    empty_array = array([NOT_KNOWN, NOT_KNOWN])
    index = RowIndex.of(array([0, 1]), empty_array, empty_array)
    assert index.rows == 2 and not index.found(array([0, 1, NOT_KNOWN]))[0].any()
    assert not len(index.at(array([0, 1]))[0])
