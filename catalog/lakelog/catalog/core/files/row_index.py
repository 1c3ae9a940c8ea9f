"""The positions of rows in a file by their ids, and the ids by positions, as runs of consecutive rows.

Rows that were copied in their original order make few runs, whatever their number. In any other order, each
row is a run. A file is indexed in parts of at most `PART_ROWS`, so that its memory is bounded. Pure.
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
    """Some rows of a file, in runs by the ids of their first rows.

    Both ids and positions go up by one in a run, and all of its rows have the same version, perhaps
    `NOT_KNOWN`. Rows without ids are in no run. `rows` are all rows that were indexed, with and without an
    id, from the position `start` on.
    """

    ids: Numbers
    positions: Numbers
    counts: Numbers
    versions: Numbers
    start: int
    rows: int

    @staticmethod
    def of(positions: Numbers, ids: Numbers, versions: Numbers) -> RowIndex:
        """Return the index of consecutive rows. There must be some."""
        start, rows = int(positions[0]), len(positions)
        has_id = ids != NOT_KNOWN
        if not has_id.all():
            positions, ids, versions = positions[has_id], ids[has_id], versions[has_id]
        follows = (np.diff(ids) == 1) & (np.diff(positions) == 1) & (np.diff(versions) == 0)
        first = np.zeros(min(len(ids), 1), dtype=np.int64)
        starts = np.concatenate([first, np.flatnonzero(~follows) + 1])
        counts = np.diff(np.append(starts, len(ids)))
        order = np.argsort(ids[starts], kind="stable")
        starts = starts[order]
        return RowIndex(ids[starts], positions[starts], counts[order], versions[starts], start, rows)

    @property
    def size_bytes(self) -> int:
        return sum(array.nbytes for array in (self.ids, self.positions, self.counts, self.versions))

    def found(self, ids: Numbers) -> tuple[Mask, Numbers, Numbers]:
        """Return which of these ids are here, with the positions and versions of those."""
        if not len(self.ids) or not len(ids):
            return np.zeros(len(ids), dtype=bool), ids[:0], ids[:0]
        run = np.maximum(np.searchsorted(self.ids, ids, side="right") - 1, 0)
        offsets = ids - self.ids[run]
        is_here: Mask = (offsets >= 0) & (offsets < self.counts[run])
        run = run[is_here]
        return is_here, self.positions[run] + offsets[is_here], self.versions[run]

    def at(self, positions: Numbers) -> tuple[Numbers, Numbers]:
        """Return which of these ascending positions are here, and the ids of their rows."""
        order = np.argsort(self.positions, kind="stable")
        starts = self.positions[order]
        if not len(starts) or not len(positions):
            return positions[:0], positions[:0]
        run = np.maximum(np.searchsorted(starts, positions, side="right") - 1, 0)
        offsets = positions - starts[run]
        run = order[run]
        is_here = (offsets >= 0) & (offsets < self.counts[run])
        return positions[is_here], self.ids[run[is_here]] + offsets[is_here]
