"""A change of rows after others have changed or rewritten its files: the other rows that it takes now.

A file that a change rewrites holds rows that it only copies. If others have deleted some of these, or have
rewritten the file as well, the copies are dead, because the rows are elsewhere or gone. Rows that the change
itself updates or deletes must be unchanged, at any place. So every row stays live once, and no file is
written again. A compaction only copies rows. For a step of a transaction, copies of an earlier step may be
dead too, and their rows elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lakelog.catalog.core.files.data_file import DataFile
from lakelog.catalog.core.files.live_rows import Numbers
from lakelog.catalog.core.files.row_index import NOT_KNOWN, Mask, RowIndex
from lakelog.catalog.core.writes.row_reader import RowReader, RowsUnclear, bitmap_of, together
from lakelog.catalog.core.writes.rows_since import RowsSince

if TYPE_CHECKING:
    from pyroaring import BitMap


@dataclass(frozen=True, slots=True)
class RowMoves:
    """The rows that a change takes from files that others have written, and the dead rows of its own files,
    by paths."""

    deletes: Mapping[str, BitMap] = field(default_factory=dict)
    dead: Mapping[str, BitMap] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DisturbedFile:
    """A file that a change names, as it was. `died` are its rows that others have deleted, or None if it is
    gone.

    `taken` are rows that the change deletes, or None if it rewrites the file.
    """

    file: DataFile
    died: BitMap | None
    taken: BitMap | None


def moves(
    disturbed_files: Sequence[DisturbedFile],
    written_table: pa.Table,
    reader: RowReader,
    since: RowsSince,
    *,
    only_deletes: bool = False,
    only_copies: bool = False,
) -> RowMoves | None:
    """Return how a change that has `written_table` files can be made, or None if others have changed a row that it
    changes.

    With `only_deletes`, the change writes only copies, so both changes may delete the same row. With
    `only_copies`, it does not delete any row either. Raises RowsUnclear if rows that may have moved, or the
    copies of a delete, have no ids.
    """
    copies = _Copies(reader, written_table if any(file.taken is None for file in disturbed_files) else None)
    if only_deletes:
        copies.check_all()
    deletes: dict[str, BitMap] = {}
    for ids in _ids(reader, _taken(disturbed_files)):
        if not _add(deletes, since.places(ids)):
            return None
    rewritten = [file for file in disturbed_files if file.taken is None]
    for is_gone in (True, False):
        for ids in _ids(
            reader, ((file.file, file.died) for file in rewritten if (file.died is None) is is_gone)
        ):
            uncopied_ids = ids[~copies.bury(ids)]
            if only_deletes and not is_gone:
                continue
            if only_copies and len(uncopied_ids):
                raise RowsUnclear("rows of a file that was to be rewritten are in none of the new files")
            # Otherwise the change has updated or deleted a row that others have updated or deleted.
            if not _add(deletes, since.places(uncopied_ids)):
                return None
    return RowMoves(deletes, copies.dead)


def _taken(disturbed_files: Sequence[DisturbedFile]) -> Iterator[tuple[DataFile, BitMap]]:
    """Yield the rows that a change deletes by their positions, and that are no longer there."""
    for file in disturbed_files:
        if file.taken is not None:
            rows = file.taken if file.died is None else file.taken & file.died
            if rows:
                yield file.file, rows


def _ids(reader: RowReader, rows: Iterable[tuple[DataFile, BitMap | None]]) -> Iterator[Numbers]:
    return together(ids for file, positions in rows for ids in reader.ids(file, positions))


def _add(found: dict[str, BitMap], more: Mapping[str, BitMap] | None) -> bool:
    if more is None:
        return False
    for path, positions in more.items():
        found[path] = found[path] | positions if path in found else positions
    return True


class _Copies:
    """The rows that a change has copied into its own files. Only copies have versions. Updated rows get the
    commit's."""

    def __init__(self, reader: RowReader, files: pa.Table | None) -> None:
        self._reader = reader
        self._files = files
        self.dead: dict[str, BitMap] = {}

    def check_all(self) -> None:
        """Raise RowsUnclear if a row is not a copy."""
        for _, index in self._indexes():
            if int(index.counts[index.versions != NOT_KNOWN].sum()) < index.rows:
                raise RowsUnclear("the copies that a delete has written have no ids")

    def bury(self, ids: Numbers) -> Mask:
        """Add the copies of rows to the dead rows. Return a mask of the rows that have copies."""
        has_copy = np.zeros(len(ids), dtype=bool)
        for path, index in self._indexes():
            in_index, positions, versions = index.found(ids)
            are_copies = versions != NOT_KNOWN
            has_copy[np.flatnonzero(in_index)[are_copies]] = True
            _bury(self.dead, path, positions[are_copies])
        return has_copy

    def _indexes(self) -> Iterator[tuple[str, RowIndex]]:
        return iter(()) if self._files is None else self._reader.indexes(self._files)


def _bury(dead: dict[str, BitMap], path: str, positions: Numbers) -> None:
    if len(positions):
        _add(dead, {path: bitmap_of(positions)})
