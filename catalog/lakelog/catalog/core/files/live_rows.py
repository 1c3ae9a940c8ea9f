"""The rows of a file that are read, by their positions: rows of some row groups, without deleted rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    from pyroaring import BitMap

Numbers = npt.NDArray[np.int64]


class LiveRows:
    """The rows of some row groups of a file, in order.

    Their places are counted from the first row that is read. `group_rows` are the row counts of all row
    groups of the file, and `groups` the row groups that are read. `deleted` are positions of rows in the
    file.
    """

    def __init__(self, group_rows: Sequence[int], groups: Sequence[int], deleted_map: BitMap | None) -> None:
        counts = np.asarray(group_rows, dtype=np.int64)
        group_numbers = np.asarray(groups, dtype=np.int64)
        self._starts = (np.cumsum(counts) - counts)[group_numbers]
        self._ends = np.cumsum(counts[group_numbers])
        self._before = self._ends - counts[group_numbers]
        self._deleted = None if deleted_map is None else self._places(np.asarray(deleted_map, dtype=np.int64))

    @property
    def count(self) -> int:
        """How many rows there are, deleted rows included."""
        return int(self._ends[-1]) if len(self._ends) else 0

    def of(self, batch: pa.RecordBatch, start: int) -> pa.RecordBatch:
        """Return the live rows of a batch, whose first row is at the place `start`."""
        mask = self._mask(start, batch.num_rows)
        return batch if mask is None else batch.filter(pa.array(mask))

    def positions(self, start: int, count: int) -> Numbers:
        """Return the positions in the file of the live rows among so many rows from a place on."""
        places = np.arange(start, start + count, dtype=np.int64)
        mask = self._mask(start, count)
        places = places if mask is None else places[mask]
        group = np.searchsorted(self._ends, places, side="right")
        live_positions: Numbers = places - self._before[group] + self._starts[group]
        return live_positions

    def _places(self, positions: Numbers) -> Numbers:
        place_arrays = [np.empty(0, dtype=np.int64)]
        for start, first_place, end in zip(self._starts, self._before, self._ends, strict=True):
            first, last = np.searchsorted(positions, [start, start + end - first_place])
            place_arrays.append(positions[first:last] - start + first_place)
        return np.concatenate(place_arrays)

    def _mask(self, start: int, count: int) -> npt.NDArray[np.bool_] | None:
        """Return which of so many rows from a place on are live; None if all are."""
        if self._deleted is None:
            return None
        first, last = np.searchsorted(self._deleted, [start, start + count])
        if first == last:
            return None
        live = np.ones(count, dtype=bool)
        live[self._deleted[first:last] - start] = False
        return live
