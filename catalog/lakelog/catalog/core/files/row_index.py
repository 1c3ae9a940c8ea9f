"""Where rows are in a file, by their ids, and the other way round: as runs of rows that follow each other.

Rows that were copied in the order in which they came make few runs, whatever their number; in any other order, one run
a row. A file is indexed in parts of at most `PART_ROWS`, so that the memory that it takes is bounded. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lakelog.catalog.core.files.live_rows import Numbers

NOT_KNOWN = -1
"""In place of an id or version that a row does not have."""

PART_ROWS = 1024 * 1024

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RowIndex:
    """Some rows of a file, in runs by the ids of their first rows: both ids and positions go up by one in a run, and
    all of its rows have one version, perhaps `NOT_KNOWN`. Rows without ids are in no run.

    `rows` are all rows that were indexed, with and without an id, from the position `start` on.
    """

    ids: Numbers
    positions: Numbers
    counts: Numbers
    versions: Numbers
    start: int
    rows: int

    @staticmethod
    def of(positions: Numbers, ids: Numbers, versions: Numbers) -> RowIndex:
        """Return the index of rows that follow each other, at least one."""
        start, rows = int(positions[0]), len(positions)
        known = ids != NOT_KNOWN
        if not known.all():
            positions, ids, versions = positions[known], ids[known], versions[known]
        follows = (np.diff(ids) == 1) & (np.diff(positions) == 1) & (np.diff(versions) == 0)
        first = np.zeros(min(len(ids), 1), dtype=np.int64)
        starts = np.concatenate([first, np.flatnonzero(~follows) + 1])
        counts = np.diff(np.append(starts, len(ids)))
        order = np.argsort(ids[starts], kind="stable")
        starts = starts[order]
        return RowIndex(ids[starts], positions[starts], counts[order], versions[starts], start, rows)

    @property
    def size_bytes(self) -> int:
        return sum(each.nbytes for each in (self.ids, self.positions, self.counts, self.versions))

    def found(self, ids: Numbers) -> tuple[Mask, Numbers, Numbers]:
        """Return which of these ids are here, and of those that are, their positions and versions."""
        if not len(self.ids) or not len(ids):
            return np.zeros(len(ids), dtype=bool), ids[:0], ids[:0]
        run = np.maximum(np.searchsorted(self.ids, ids, side="right") - 1, 0)
        offsets = ids - self.ids[run]
        here: Mask = (offsets >= 0) & (offsets < self.counts[run])
        run = run[here]
        return here, self.positions[run] + offsets[here], self.versions[run]

    def at(self, positions: Numbers) -> tuple[Numbers, Numbers]:
        """Return which of these ascending positions are here, and the ids of the rows at them."""
        order = np.argsort(self.positions, kind="stable")
        starts = self.positions[order]
        if not len(starts) or not len(positions):
            return positions[:0], positions[:0]
        run = np.maximum(np.searchsorted(starts, positions, side="right") - 1, 0)
        offsets = positions - starts[run]
        run = order[run]
        here = (offsets >= 0) & (offsets < self.counts[run])
        return positions[here], self.ids[run[here]] + offsets[here]
