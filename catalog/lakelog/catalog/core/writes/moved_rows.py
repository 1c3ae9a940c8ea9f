"""What a change of rows becomes where others have changed or rewritten its files since: other rows of them.

A file that a change rewrites holds rows that it only copies. Where others have deleted some of these, or have rewritten
the file as well, the copies are dead: the rows are elsewhere, or gone. Rows that the change itself updates or deletes
have to be as they were, wherever they are now. So every row stays live once, and no file is written again. A compaction
only copies rows. For a step of a transaction, an earlier one's copies may be dead, too, and their rows elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lakelog.catalog.core.files import NOT_KNOWN, DataFile, Mask, Numbers, RowIndex
from lakelog.catalog.core.writes.row_reader import RowReader, Unclear, bitmap_of, together
from lakelog.catalog.core.writes.rows_since import RowsSince

if TYPE_CHECKING:
    from pyroaring import BitMap


@dataclass(frozen=True, slots=True)
class Moves:
    """`deletes` are rows that the change takes from files that others have written, by their paths; `dead` those of its
    own files that are not live."""

    deletes: Mapping[str, BitMap] = field(default_factory=dict)
    dead: Mapping[str, BitMap] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Disturbed:
    """A file that a change names, as it was. `died` are rows of it that others have deleted; None where it is gone.
    `taken` are rows that the change deletes; None where it rewrites the file."""

    file: DataFile
    died: BitMap | None
    taken: BitMap | None


def moves(
    disturbed: Sequence[Disturbed],
    written: pa.Table,
    reader: RowReader,
    since: RowsSince,
    *,
    only_deletes: bool = False,
    only_copies: bool = False,
) -> Moves | None:
    """Return how a change that has `written` files can be made; None where others have changed a row that it changes.

    `only_deletes`: the change writes copies and nothing else, so that a row may be deleted by both. `only_copies`: nor
    does it delete any row. Unclear where rows that may have moved, or the copies of a delete, have no ids.
    """
    copies = _Copies(reader, written if any(each.taken is None for each in disturbed) else None)
    if only_deletes:
        copies.check_all()
    found: dict[str, BitMap] = {}
    for ids in _ids(reader, _taken(disturbed)):
        if not _add(found, since.places(ids)):
            return None
    rewritten = [each for each in disturbed if each.taken is None]
    for is_gone in (True, False):
        for ids in _ids(
            reader, ((each.file, each.died) for each in rewritten if (each.died is None) is is_gone)
        ):
            rest = ids[~copies.bury(ids)]
            if only_deletes and not is_gone:
                continue
            if only_copies and len(rest):
                raise Unclear("rows of a file that was to be rewritten are in none of the new files")
            # Else the change has updated or deleted a row that others have updated or deleted.
            if not _add(found, since.places(rest)):
                return None
    return Moves(found, copies.dead)


def _taken(disturbed: Sequence[Disturbed]) -> Iterator[tuple[DataFile, BitMap]]:
    """Yield the rows that a change deletes by their positions, and that are no longer there."""
    for each in disturbed:
        if each.taken is not None:
            rows = each.taken if each.died is None else each.taken & each.died
            if rows:
                yield each.file, rows


def _ids(reader: RowReader, rows: Iterable[tuple[DataFile, BitMap | None]]) -> Iterator[Numbers]:
    return together(ids for file, positions in rows for ids in reader.ids(file, positions))


def _add(found: dict[str, BitMap], more: Mapping[str, BitMap] | None) -> bool:
    if more is None:
        return False
    for path, positions in more.items():
        found[path] = found[path] | positions if path in found else positions
    return True


class _Copies:
    """The rows that a change has copied into its own files. They alone have versions: updated ones get the commit's."""

    def __init__(self, reader: RowReader, files: pa.Table | None) -> None:
        self._reader = reader
        self._files = files
        self.dead: dict[str, BitMap] = {}

    def check_all(self) -> None:
        """Unclear where a row is none that was copied."""
        for _, index in self._indexes():
            if int(index.counts[index.versions != NOT_KNOWN].sum()) < index.rows:
                raise Unclear("the copies that a delete has written have no ids")

    def bury(self, ids: Numbers) -> Mask:
        """Add the copies of rows to those that are dead, and return of which rows there are copies."""
        copied = np.zeros(len(ids), dtype=bool)
        for path, index in self._indexes():
            here, positions, versions = index.found(ids)
            are_copies = versions != NOT_KNOWN
            copied[np.flatnonzero(here)[are_copies]] = True
            _bury(self.dead, path, positions[are_copies])
        return copied

    def _indexes(self) -> Iterator[tuple[str, RowIndex]]:
        return iter(()) if self._files is None else self._reader.indexes(self._files)


def _bury(dead: dict[str, BitMap], path: str, positions: Numbers) -> None:
    if len(positions):
        _add(dead, {path: bitmap_of(positions)})
