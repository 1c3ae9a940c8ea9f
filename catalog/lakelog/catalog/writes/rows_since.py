"""The rows that others have changed since a version, distinguished by ids and versions from those that only moved.

A row that came or was changed since has a later version than the one that a change was prepared on; a row that was
copied has kept its own, wherever it is now. Rule: what is not certain is no answer (`Unclear`), and a caller judges
whole files then. It must not decide what is a conflict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.files import (
    DELETES,
    UNCOMMITTED,
    DataFile,
    Numbers,
    deletes_from_json,
    files_to_arrow,
    physical_rows,
)
from lakelog.catalog.logs import TableHead, read_vector
from lakelog.catalog.parquet import PlacedRows, read_placed_rows
from lakelog.catalog.planning import Bound, evaluate, may_match, possible, terms
from lakelog.log.errors import LakelogError, NotFound
from lakelog.log.once import once

if TYPE_CHECKING:
    from pyroaring import BitMap

ROWS_LIMIT = 5_000_000
"""So many rows are looked at for one change, deleted ones included; where there are more, whole files are judged."""

NOT_KNOWN = -1
"""In place of an id or version that a row does not have."""

Mask = npt.NDArray[np.bool_]


class Unclear(LakelogError):
    """Which rows were changed cannot be found out. No user sees it: the caller judges whole files then."""

    kind = "unclear"


@dataclass(frozen=True, slots=True)
class Ids:
    """Rows of one file: positions, ids and versions, each `NOT_KNOWN` where a row has none."""

    positions: Numbers
    ids: Numbers
    versions: Numbers


class RowReader:
    """Reads rows of files for one change, and remembers their ids: a change may be decided on several states."""

    def __init__(self, base: TableHead) -> None:
        self._base = base
        self._left = ROWS_LIMIT
        self._known: dict[tuple[str, str, str | None], Ids] = {}

    def ids(self, file: DataFile) -> Ids:
        """Return the live rows of a file. Unclear where there are too many to be read."""
        key = (file.path, file.write_id, None if file.deletes is None else repr(file.deletes))
        if key not in self._known:
            metadata = self._base.metadata
            self._known[key] = _ids_of(self.rows(files_to_arrow([file], metadata.schema, metadata.specs), ()))
        return self._known[key]

    def rows(self, files: pa.Table, columns: Collection[str]) -> Iterator[PlacedRows]:
        """Yield the live rows of `files` (in the form of `FileSet.chunks`): these columns of them, ids and versions.

        Unclear where there are too many, or where a file is gone: a vacuum may have deleted it.
        """
        self._left -= pc.sum(physical_rows(files), min_count=0).as_py()
        if self._left < 0:
            raise Unclear("too many rows would have to be read")
        base = self._base
        open_url = base.tracked.log.replay.open_url
        try:
            yield from read_placed_rows(
                base.tracked.store, base.tracked.prefix, files, base.schema, sorted(columns), open_url
            )
        except NotFound as error:
            raise Unclear(f"a data file is gone: {error}") from error


class RowsSince:
    """What became of the rows of `base` by the state `now`, of the same schema. All answers may raise Unclear."""

    def __init__(self, reader: RowReader, base: TableHead, now: TableHead) -> None:
        self._reader = reader
        self._base = base
        self._now = now

    def brought(self, bound: Bound, later: Collection[int]) -> bool:
        """Return whether rows that came or were changed since may match, apart from those of the versions `later`."""
        files = _matching(self._came, bound, self._base)
        for rows in self._reader.rows(files, _columns(bound)):
            versions = _known(rows.rows["_row_version"])
            fresh = self._is_fresh(versions)
            fresh &= ~are_among(versions, np.fromiter(later, dtype=np.int64, count=len(later)))
            if (fresh & _may_be_true(bound, rows.rows)).any():
                return True
        return False

    def took(self, bound: Bound) -> bool:
        """Return whether rows that may have matched on the base are gone since, or were changed."""
        gone, marked = (_matching(files, bound, self._base) for files in (self._gone, self._marked))
        for rows in self._reader.rows(marked, _columns(bound)):
            died = are_among(rows.positions, np.asarray(self._died(rows.path), dtype=np.int64))
            if (died & _may_be_true(bound, rows.rows)).any():
                return True
        ids = [
            _known(rows.rows["_row_id"])[_may_be_true(bound, rows.rows)]
            for rows in self._reader.rows(gone, _columns(bound))
        ]
        matching = np.concatenate([np.empty(0, dtype=np.int64), *ids])
        return bool(len(matching)) and self.places(matching) is None

    def places(self, ids: Numbers) -> dict[str, BitMap] | None:
        """Return where rows of the base are now whose files are gone, by paths; None where one of them was changed, or
        is gone too."""
        from pyroaring import BitMap

        if (ids == NOT_KNOWN).any():
            raise Unclear("rows without ids cannot be found")
        found: dict[str, BitMap] = {}
        count = 0
        if not len(ids):
            return found
        for rows in self._reader.rows(self._came, ()):
            here = are_among(_known(rows.rows["_row_id"]), ids)
            if self._is_fresh(_known(rows.rows["_row_version"])[here]).any():
                return None
            if here.any():
                count += int(here.sum())
                found.setdefault(rows.path, BitMap()).update(rows.positions[here].astype(np.uint32))
        return found if _is_all(count, ids) else None

    def _is_fresh(self, versions: Numbers) -> Mask:
        """Return of rows with these versions whether they came or were changed since the base."""
        fresh: Mask = (versions > self._base.version) | (versions <= UNCOMMITTED)
        return fresh

    @once
    def _files(self) -> tuple[pa.Table, pa.Table]:
        return self._base.all_files(), self._now.all_files()

    @once
    def _came(self) -> pa.Table:
        before, after = self._files
        return after.filter(pc.invert(pc.is_in(_keys(after), value_set=_keys(before))))

    @once
    def _gone(self) -> pa.Table:
        before, after = self._files
        return before.filter(pc.invert(pc.is_in(_keys(before), value_set=_keys(after))))

    @once
    def _marked(self) -> pa.Table:
        """The files, as they were, of which rows were deleted since."""
        before, after = self._files
        still = before.filter(pc.is_in(_keys(before), value_set=_keys(after)))
        only = self._base.files_only_here(self._now.view)
        return still.filter(pc.is_in(still["path"], value_set=only["path"].combine_chunks()))

    def _died(self, path: str) -> BitMap:
        now, then = (self._vector(files, path) for files in reversed(self._files))
        if then - now:
            raise Unclear("deleted rows came back")
        return now - then

    def _vector(self, files: pa.Table, path: str) -> BitMap:
        (file,) = files.filter(pc.equal(files["path"], path)).to_pylist()
        deletes = None if file.get(DELETES) is None else deletes_from_json(file[DELETES])
        rows = file["rows"] + (0 if deletes is None else deletes.rows)
        return read_vector(self._base.tracked.store, self._base.tracked.prefix, deletes, rows)


def are_among(numbers: Numbers, others: Numbers) -> Mask:
    """Return of each number whether it is one of the others."""
    # NumPy's own functions hash numbers, which takes it minutes for millions that follow each other.
    if not len(others):
        return np.zeros(len(numbers), dtype=bool)
    ordered = np.sort(others)
    at = np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)
    found: Mask = ordered[at] == numbers
    return found


def _keys(files: pa.Table) -> pa.Array:
    return pc.binary_join_element_wise(files["path"].combine_chunks(), files["write"].combine_chunks(), "\n")


def _matching(files: pa.Table, bound: Bound, head: TableHead) -> pa.Table:
    files = files.filter(pc.greater(files["rows"], 0))
    return files.filter(may_match(files, bound, head.metadata.specs)) if files.num_rows else files


def _columns(bound: Bound) -> set[str]:
    return {term.path[0] for term in terms(bound)}


def _may_be_true(bound: Bound, rows: pa.Table) -> Mask:
    found = pc.fill_null(evaluate(possible(bound), rows), False)
    return np.asarray(found, dtype=bool)


def _is_all(count: int, ids: Numbers) -> bool:
    return count == len(ids)


def _ids_of(read: Iterator[PlacedRows]) -> Ids:
    none = np.empty(0, dtype=np.int64)
    positions, ids, versions = [none], [none], [none]
    for rows in read:
        positions.append(rows.positions)
        ids.append(_known(rows.rows["_row_id"]))
        versions.append(_known(rows.rows["_row_version"]))
    return Ids(np.concatenate(positions), np.concatenate(ids), np.concatenate(versions))


def _known(numbers: pa.ChunkedArray) -> Numbers:
    return np.asarray(pc.fill_null(numbers, NOT_KNOWN), dtype=np.int64)
