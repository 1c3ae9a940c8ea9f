"""Combining changes of rows: without rows that were only copied, as updates, or net.

Pure, over Arrow.

Row ids identify rows. In a version a row is deleted at most once, and inserted at most once.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.parquet import ID_FIELDS
from lakelog.catalog.looking.changelog.changelog import CHANGE_TYPE, COMMIT_VERSION, DELETE, INSERT

ROW_ID, ROW_VERSION = (field.name for field in ID_FIELDS)
BEFORE_UPDATE, AFTER_UPDATE = "update_preimage", "update_postimage"


def without_copies(changes: pa.Table) -> pa.Table:
    """Return a version's changes without rows that were deleted and inserted with the same row version."""
    copied_ids = _twice(changes, [ROW_ID, ROW_VERSION])
    return changes if not len(copied_ids) else changes.filter(_not_in(changes, copied_ids))


def as_updates(changes: pa.Table) -> pa.Table:
    """Return a version's changes, with a deleted and inserted row named as the halves of an update."""
    updated_ids = _twice(changes, [ROW_ID])
    if not len(updated_ids):
        return changes
    is_update = pc.invert(_not_in(changes, updated_ids))
    return _with_types(changes, _named(changes[CHANGE_TYPE], is_update))


def net(changes: pa.Table, *, updates: bool) -> pa.Table:
    """Return the difference between the rows before and after all versions: a change for each row, or two
    halves.

    A row that was inserted and deleted again is no change. Neither is a row that a rollback brought back as
    it was. `changes` have no copied rows and no updates.
    """
    count = changes.num_rows
    if not count:
        return changes
    is_insert = pc.equal(changes[CHANGE_TYPE], INSERT).to_numpy()
    ids, versions = changes[ROW_ID].to_numpy(), changes[COMMIT_VERSION].to_numpy()
    order = np.lexsort((is_insert, versions, ids))
    sorted_ids = ids[order]
    starts = np.flatnonzero(np.concatenate(([True], sorted_ids[1:] != sorted_ids[:-1])))
    ends = np.concatenate((starts[1:], [count])) - 1
    first, last = order[starts], order[ends]
    row_versions = changes[ROW_VERSION].to_numpy()
    is_back = ~is_insert[first] & is_insert[last] & (row_versions[first] == row_versions[last])
    first, last = first[~is_back], last[~is_back]
    was_there, is_there = ~is_insert[first], is_insert[last]
    is_result = np.zeros(count, dtype=bool)
    is_result[first[was_there]] = True
    is_result[last[is_there]] = True
    # A row that existed before and after has two halves, whether or not they are named as halves.
    is_half = np.zeros(count, dtype=bool)
    is_half[first[was_there & is_there]] = True
    is_half[last[was_there & is_there]] = True
    if updates:
        changes = _with_types(changes, _named(changes[CHANGE_TYPE], pa.array(is_half)))
    return changes.filter(pa.array(is_result))


def _named(types: pa.ChunkedArray, is_update: pa.Array) -> pa.ChunkedArray:
    halves = pc.if_else(pc.equal(types, DELETE), BEFORE_UPDATE, AFTER_UPDATE)
    return pc.if_else(is_update, halves, types)


def _with_types(changes: pa.Table, types: pa.ChunkedArray) -> pa.Table:
    index = changes.schema.get_field_index(CHANGE_TYPE)
    return changes.set_column(index, changes.schema.field(index), types)


def _twice(changes: pa.Table, columns: list[str]) -> pa.ChunkedArray:
    """Return the ids of the rows that occur twice with the same values of `columns`."""
    counts = changes.select(columns).group_by(columns).aggregate([([], "count_all")])
    return counts.filter(pc.equal(counts["count_all"], 2))[ROW_ID]


def _not_in(changes: pa.Table, ids: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.invert(pc.is_in(changes[ROW_ID], value_set=ids.combine_chunks()))
