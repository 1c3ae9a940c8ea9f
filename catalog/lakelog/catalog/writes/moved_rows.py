"""What a change of rows becomes where others have changed or rewritten its files since: other rows of them.

A file that a change rewrites holds rows that it only copies. Where others have deleted some of these, or have rewritten
the file as well, the copies are dead: the rows are elsewhere, or gone. Rows that the change itself updates or deletes
have to be as they were, wherever they are now. So every row stays live once, and no file is written again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from lakelog.catalog.files import DataFile, Numbers
from lakelog.catalog.writes.rows_since import NOT_KNOWN, Ids, Mask, RowReader, RowsSince, Unclear, are_among

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
    written: Sequence[DataFile],
    reader: RowReader,
    since: RowsSince,
    *,
    only_deletes: bool,
) -> Moves | None:
    """Return how a change that has `written` files can be made; None where others have changed a row that it changes.

    `only_deletes`: the change writes copies and nothing else, so that a row may be deleted by both. Unclear where rows
    that may have moved, or the copies of a delete, have no ids.
    """
    rewrites = any(each.taken is None for each in disturbed)
    own = {file.path: reader.ids(file) for file in written} if rewrites else {}
    if only_deletes and any((rows.versions == NOT_KNOWN).any() for rows in own.values()):
        raise Unclear("the copies that a delete has written have no ids")
    copied = _copied(own)
    dead, taken = [_none()], [_none()]
    for each in disturbed:
        rows = reader.ids(each.file)
        if each.died is None and each.taken is not None:
            taken.append(rows.ids[_at(rows, each.taken)])
        elif each.died is None:
            dead.append(rows.ids)
            taken.append(rows.ids[~are_among(rows.ids, copied)])
        else:
            died = rows.ids[_at(rows, each.died)]
            if not only_deletes and not are_among(died, copied).all():
                # The change has updated or deleted a row that others have updated or deleted.
                return None
            dead.append(died)
    found = since.places(np.concatenate(taken))
    return None if found is None else Moves(found, _dead(own, np.concatenate(dead)))


def _dead(own: Mapping[str, Ids], ids: Numbers) -> dict[str, BitMap]:
    from pyroaring import BitMap

    found = {}
    for path, rows in own.items():
        here = are_among(rows.ids, ids) & (rows.versions != NOT_KNOWN)
        if here.any():
            found[path] = BitMap(rows.positions[here].astype(np.uint32))
    return found


def _copied(own: Mapping[str, Ids]) -> Numbers:
    """Return the ids of rows that were copied, which alone have their versions: updated ones get the commit's."""
    return np.concatenate([_none(), *(rows.ids[rows.versions != NOT_KNOWN] for rows in own.values())])


def _at(rows: Ids, positions: BitMap) -> Mask:
    return are_among(rows.positions, np.asarray(positions, dtype=np.int64))


def _none() -> Numbers:
    return np.empty(0, dtype=np.int64)
