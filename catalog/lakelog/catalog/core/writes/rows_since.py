"""The rows that others have changed since a version, distinguished by ids and versions from those that only moved.

A row that came or was changed since has a later version than the one that a change was prepared on; a row that was
copied has kept its own, wherever it is now. Rule: what is not certain is no answer (`Unclear`), and a caller judges
whole files then. It must not decide what is a conflict.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import (
    DELETES,
    NOT_KNOWN,
    UNCOMMITTED,
    Mask,
    Numbers,
    deletes_from_json,
)
from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.core.planning import Bound, evaluate, may_match, possible, terms
from lakelog.catalog.core.writes.row_reader import RowReader, Unclear, are_among, bitmap_of, known, numbers_of
from lakelog.log.once import once

if TYPE_CHECKING:
    from pyroaring import BitMap


class RowsSince:
    """What became of the rows of `base` by the state `now`, of the same schema. All answers may raise Unclear."""

    def __init__(self, reader: RowReader, base: TableHead, now: TableHead) -> None:
        self._reader = reader
        self._base = base
        self._now = now
        self._vectors: dict[str, BitMap] = {}

    def brought(self, bound: Bound, later: Collection[int]) -> bool:
        """Return whether rows that came or were changed since may match, apart from those of the versions `later`."""
        files = _matching(self._came, bound, self._base)
        for rows in self._reader.rows(files, _columns(bound)):
            versions = known(rows.rows["_row_version"])
            fresh = self._is_fresh(versions)
            fresh &= ~are_among(versions, np.fromiter(later, dtype=np.int64, count=len(later)))
            if (fresh & _may_be_true(bound, rows.rows)).any():
                return True
        return False

    def took(self, bound: Bound) -> bool:
        """Return whether rows that may have matched on the base are gone since, or were changed."""
        gone, marked = (_matching(files, bound, self._base) for files in (self._gone, self._marked))
        ids = []
        for rows in self._reader.rows(marked, _columns(bound)):
            died = are_among(rows.positions, numbers_of(self._died(rows.path)))
            ids.append(known(rows.rows["_row_id"])[died & _may_be_true(bound, rows.rows)])
        ids += [
            known(rows.rows["_row_id"])[_may_be_true(bound, rows.rows)]
            for rows in self._reader.rows(gone, _columns(bound))
        ]
        matching = np.concatenate([np.empty(0, dtype=np.int64), *ids])
        if (matching == NOT_KNOWN).any():
            raise Unclear("rows without ids cannot be found")
        return self.places(matching) is None

    def places(self, ids: Numbers) -> dict[str, BitMap] | None:
        """Return where rows of the base are now whose files are gone, by paths; None where one of them was changed, or
        is gone too."""
        found: dict[str, BitMap] = {}
        count = 0
        if not len(ids):
            return found
        for path, index in self._reader.indexes(self._came):
            _, positions, versions = index.found(ids)
            if len(positions):
                live = ~are_among(positions, numbers_of(self._dead(path) & bitmap_of(positions)))
                if self._is_fresh(versions[live]).any():
                    return None
                if live.any():
                    count += int(live.sum())
                    more = bitmap_of(positions[live])
                    found[path] = found[path] | more if path in found else more
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

    def _dead(self, path: str) -> BitMap:
        """Return the deleted rows of a file of now."""
        if path not in self._vectors:
            self._vectors[path] = self._vector(self._files[1], path)
        return self._vectors[path]

    def _vector(self, files: pa.Table, path: str) -> BitMap:
        # No bounds: dates among them may be beyond those of Python.
        names = [name for name in ("rows", DELETES) if name in files.column_names]
        (file,) = files.filter(pc.equal(files["path"], path)).select(names).to_pylist()
        deletes = None if file.get(DELETES) is None else deletes_from_json(file[DELETES])
        return self._reader.vector(deletes, file["rows"] + (0 if deletes is None else deletes.rows))


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
