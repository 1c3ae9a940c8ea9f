"""Leaving deleted rows out of what is read of a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from pyroaring import BitMap


class LiveRows:
    """The deleted rows of a file, by their places in what is read: the rows of some of its row groups, in order.

    `group_rows` are how many rows each row group of the file has, and `groups` those that are read.
    """

    def __init__(self, deleted: BitMap, group_rows: Sequence[int], groups: Sequence[int]) -> None:
        positions = np.asarray(deleted.to_array(), dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(np.asarray(group_rows, dtype=np.int64))])
        places = [np.empty(0, dtype=np.int64)]
        read = 0
        for group in groups:
            first, last = np.searchsorted(positions, [starts[group], starts[group + 1]])
            places.append(positions[first:last] - starts[group] + read)
            read += group_rows[group]
        self._places = np.concatenate(places)

    def of(self, batch: pa.RecordBatch, start: int) -> pa.RecordBatch:
        """Return the live rows of a batch, which begins behind so many of the rows that are read."""
        first, last = np.searchsorted(self._places, [start, start + batch.num_rows])
        if first == last:
            return batch
        live = np.ones(batch.num_rows, dtype=bool)
        live[self._places[first:last] - start] = False
        return batch.filter(pa.array(live))
