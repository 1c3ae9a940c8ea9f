"""The rows of a file that are read, by their positions in it: those of some row groups, without deleted ones."""

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
    """The rows of some row groups of a file, in order; their places are counted from the first that is read.

    `group_rows` are how many rows each row group of the file has, and `groups` those that are read. `deleted` are
    positions of rows in the file.
    """

    def __init__(self, group_rows: Sequence[int], groups: Sequence[int], deleted: BitMap | None) -> None:
        counts = np.asarray(group_rows, dtype=np.int64)
        chosen = np.asarray(groups, dtype=np.int64)
        self._starts = (np.cumsum(counts) - counts)[chosen]
        self._ends = np.cumsum(counts[chosen])
        self._before = self._ends - counts[chosen]
        self._deleted = None if deleted is None else self._places(np.asarray(deleted, dtype=np.int64))

    @property
    def count(self) -> int:
        """How many rows there are, with the deleted ones."""
        return int(self._ends[-1]) if len(self._ends) else 0

    def of(self, batch: pa.RecordBatch, start: int) -> pa.RecordBatch:
        """Return the live rows of a batch, whose first row is at the place `start`."""
        mask = self._mask(start, batch.num_rows)
        return batch if mask is None else batch.filter(pa.array(mask))

    def positions(self, start: int, count: int) -> Numbers:
        """Return the positions in the file of the live ones of so many rows from a place on."""
        places = np.arange(start, start + count, dtype=np.int64)
        mask = self._mask(start, count)
        places = places if mask is None else places[mask]
        group = np.searchsorted(self._ends, places, side="right")
        found: Numbers = places - self._before[group] + self._starts[group]
        return found

    def _places(self, positions: Numbers) -> Numbers:
        found = [np.empty(0, dtype=np.int64)]
        for start, before, end in zip(self._starts, self._before, self._ends, strict=True):
            first, last = np.searchsorted(positions, [start, start + end - before])
            found.append(positions[first:last] - start + before)
        return np.concatenate(found)

    def _mask(self, start: int, count: int) -> npt.NDArray[np.bool_] | None:
        """Return which of so many rows from a place on are live; None where all are."""
        if self._deleted is None:
            return None
        first, last = np.searchsorted(self._deleted, [start, start + count])
        if first == last:
            return None
        live = np.ones(count, dtype=bool)
        live[self._deleted[first:last] - start] = False
        return live
