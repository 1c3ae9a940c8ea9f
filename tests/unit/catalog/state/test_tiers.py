"""Which files upkeep joins: those of about one size, so that a row is rewritten a bounded number of times."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.catalog.core.schema import Metadata, PartitionSpec, Schema, SortOrder
from lakelog.catalog.core.state import CompactionTarget, plan_compaction

TARGET = 1 << 20
METADATA = Metadata(
    schema=Schema(fields=(), last_id=0), specs=(PartitionSpec(id=0),), sort_order=SortOrder(), properties={}
)
GOAL = CompactionTarget(target_size_bytes=TARGET, deleted_ratio=0.3, fan_in=8)


def table(sizes: list[int]) -> pa.Table:
    return pa.table(
        {
            "path": [f"data/{at:06}" for at in range(len(sizes))],
            "size": pa.array(sizes, pa.int64()),
            "rows": pa.array([10] * len(sizes), pa.int64()),
            "spec": pa.array([0] * len(sizes), pa.int32()),
        }
    )


def planned_numbers(sizes: list[int]) -> list[list[int]]:
    files, groups = plan_compaction(table(sizes), METADATA, GOAL, until=1 << 40, limit_bytes=1 << 60)
    remaining_rows, found = iter(files["size"].to_pylist()), []
    for group in groups:
        found.append([next(remaining_rows) for _ in range(group.files)])
    return found


def test_a_large_file_is_not_rewritten_for_a_few_small_ones() -> None:
    assert planned_numbers([500_000] + [1_000] * 7) == []
    assert planned_numbers([500_000] + [1_000] * 8) == [[1_000] * 8]


def test_files_that_fill_one_are_joined_however_few_they_are() -> None:
    assert planned_numbers([400_000, 500_000]) == [[400_000, 500_000]]
    assert planned_numbers([300_000, 300_000]) == []


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1_000, 4_000), min_size=200, max_size=400))
def test_however_often_it_runs_a_row_is_rewritten_about_once_for_each_size(commits: list[int]) -> None:
    live: list[int] = []
    number = 0
    for size in commits:
        live.append(size)
        for group in planned_numbers(live):
            for each_number in group:
                live.remove(each_number)
            live.append(sum(group))
            number += sum(group)
    # From 1,000 bytes to 1 MiB there are four sizes.
    assert number <= 5 * sum(commits)
    assert len(live) <= 4 * 8 + sum(commits) // (TARGET // 2)
