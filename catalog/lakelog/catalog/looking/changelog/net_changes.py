"""Combining changes of rows: without rows that were only copied, as updates, or net. Pure, over Arrow.

Rows are identified by their ids. In one version a row is deleted at most once, and inserted at most once.
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
    """Return the changes of one version without the rows that were deleted and inserted with the same row version."""
    copied = _twice(changes, [ROW_ID, ROW_VERSION])
    return changes if not len(copied) else changes.filter(_not_in(changes, copied))


def as_updates(changes: pa.Table) -> pa.Table:
    """Return the changes of one version with rows that were deleted and inserted named as the halves of an update."""
    updated = _twice(changes, [ROW_ID])
    if not len(updated):
        return changes
    is_update = pc.invert(_not_in(changes, updated))
    return _with_types(changes, _named(changes[CHANGE_TYPE], is_update))


def net(changes: pa.Table, *, updates: bool) -> pa.Table:
    """Return the difference of the rows after all versions to those before: for each row one change, or two halves.

    A row that was inserted and deleted again is no change, nor is one that is back as it was, by a rollback. `changes`
    have no copied rows and no updates.
    """
    count = changes.num_rows
    if not count:
        return changes
    inserted = pc.equal(changes[CHANGE_TYPE], INSERT).to_numpy()
    ids, versions = changes[ROW_ID].to_numpy(), changes[COMMIT_VERSION].to_numpy()
    order = np.lexsort((inserted, versions, ids))
    sorted_ids = ids[order]
    starts = np.flatnonzero(np.concatenate(([True], sorted_ids[1:] != sorted_ids[:-1])))
    ends = np.concatenate((starts[1:], [count])) - 1
    first, last = order[starts], order[ends]
    row_versions = changes[ROW_VERSION].to_numpy()
    is_back = ~inserted[first] & inserted[last] & (row_versions[first] == row_versions[last])
    first, last = first[~is_back], last[~is_back]
    was_there, is_there = ~inserted[first], inserted[last]
    kept = np.zeros(count, dtype=bool)
    kept[first[was_there]] = True
    kept[last[is_there]] = True
    # A row that existed before and after has two halves, whether or not these are named as such.
    both = np.zeros(count, dtype=bool)
    both[first[was_there & is_there]] = True
    both[last[was_there & is_there]] = True
    if updates:
        changes = _with_types(changes, _named(changes[CHANGE_TYPE], pa.array(both)))
    return changes.filter(pa.array(kept))


def _named(types: pa.ChunkedArray, is_update: pa.Array) -> pa.ChunkedArray:
    halves = pc.if_else(pc.equal(types, DELETE), BEFORE_UPDATE, AFTER_UPDATE)
    return pc.if_else(is_update, halves, types)


def _with_types(changes: pa.Table, types: pa.ChunkedArray) -> pa.Table:
    index = changes.schema.get_field_index(CHANGE_TYPE)
    return changes.set_column(index, changes.schema.field(index), types)


def _twice(changes: pa.Table, columns: list[str]) -> pa.ChunkedArray:
    """Return the ids of the rows that occur twice with the same values of `columns`."""
    counted = changes.select(columns).group_by(columns).aggregate([([], "count_all")])
    return counted.filter(pc.equal(counted["count_all"], 2))[ROW_ID]


def _not_in(changes: pa.Table, ids: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.invert(pc.is_in(changes[ROW_ID], value_set=ids.combine_chunks()))
