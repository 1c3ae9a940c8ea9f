"""How many rows a commit has changed, from its events alone."""

from __future__ import annotations

from typing import Any

import pytest

from lakelog.catalog.core.state import FilesChanged, RowCounts, RowsAppended, encode
from lakelog.catalog.core.state.row_counts import UNKNOWN, rows_of_events


def counted(*events: FilesChanged | RowsAppended) -> RowCounts | None:
    return rows_of_events(encode(events))


def change(operation: str, **counts: Any) -> FilesChanged:
    return FilesChanged(operation=operation, changed_files=1 if "deleted_rows" in counts else 0, **counts)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (change("append", added_rows=3), RowCounts(inserted=3)),
        (change("overwrite", added_rows=3, removed_rows=4, deleted_rows=1), RowCounts(inserted=3, deleted=5)),
        (change("overwrite-partitions", added_rows=3, removed_rows=4), RowCounts(inserted=3, deleted=4)),
        (change("truncate", removed_rows=4), RowCounts(deleted=4)),
        (change("delete", removed_rows=4, deleted_rows=2, added_rows=1), RowCounts(deleted=5, copied=1)),
        (change("replace", added_rows=3), RowCounts(inserted=3, deleted=None)),
        (
            change("update", added_rows=9, removed_rows=9, updated_rows=4),
            RowCounts(updated=4, copied=5),
        ),
        (
            change("merge", added_rows=9, removed_rows=8, deleted_rows=2, inserted_rows=1, updated_rows=4),
            RowCounts(inserted=1, updated=4, deleted=2, copied=4),
        ),
        (change("update", added_rows=9, removed_rows=9), RowCounts(updated=None, copied=None)),
        (change("merge", added_rows=9, removed_rows=9), UNKNOWN),
        (change("merge", added_rows=1, inserted_rows=2, updated_rows=0), UNKNOWN),
        (change("delete", added_rows=2), UNKNOWN),
        (change("compact", added_rows=9, removed_rows=9), None),
        (change("rollback", added_rows=9, removed_rows=9), None),
        (change("append", added_rows=9, of_changes=2), None),
        (RowsAppended(rows=2), RowCounts(inserted=2)),
    ],
    ids=str,
)
def test_numbers_of_one_change(event: FilesChanged | RowsAppended, expected: RowCounts | None) -> None:
    assert counted(event) == expected


def test_numbers_of_several_statements_are_added_up_as_far_as_they_are_known() -> None:
    appended_change, updated_change = (
        change("append", added_rows=3),
        change("update", added_rows=2, updated_rows=2, deleted_rows=2),
    )
    unknown, moved_change = change("update", added_rows=2, deleted_rows=2), change("compact", added_rows=5)
    assert counted(appended_change, moved_change, updated_change) == RowCounts(inserted=3, updated=2)
    assert counted(appended_change, unknown) == RowCounts(inserted=3, updated=None, copied=None)
    assert counted() is counted(moved_change) is None


@pytest.mark.parametrize("forged", ["many", [1], {"a": 1}, -1, 1 << 63])
def test_what_is_no_number_is_unknown(forged: Any) -> None:
    event = {"event": "files-changed", "operation": "append", "added_rows": forged}
    assert rows_of_events([event]) == UNKNOWN
