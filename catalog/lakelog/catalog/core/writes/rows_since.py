"""The rows that others have changed since a version, distinguished by ids and versions from rows that only
moved.

A row that was added or changed since has a later version than the base of a change. A copied row has kept its
own version, at any place. Rule: any uncertainty is no answer (`RowsUnclear`), and then a caller judges whole
files. It must not decide what is a conflict.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.data_file import DELETES
from lakelog.catalog.core.files.deletion_vectors import deletes_from_json
from lakelog.catalog.core.files.live_rows import Numbers
from lakelog.catalog.core.files.row_ids import UNCOMMITTED
from lakelog.catalog.core.files.row_index import NOT_KNOWN, Mask
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.planning.bound import Bound, possible, terms
from lakelog.catalog.core.planning.pruning import may_match
from lakelog.catalog.core.planning.row_filter import evaluate
from lakelog.catalog.core.writes.row_reader import (
    RowReader,
    RowsUnclear,
    are_among,
    bitmap_of,
    known,
    numbers_of,
)
from lakelog.log.once import once

if TYPE_CHECKING:
    from pyroaring import BitMap


class RowsSince:
    """The fate of the rows of `base` by the state `now`, with the same schema. All answers may raise
    Unclear."""

    def __init__(self, reader: RowReader, base: TableHead, head: TableHead) -> None:
        self._reader = reader
        self._base = base
        self._now = head
        self._vectors: dict[str, BitMap] = {}

    def brought(self, bound_condition: Bound, later: Collection[int]) -> bool:
        """Return whether rows that were added or changed since may match, apart from rows of the versions
        `later`."""
        files = _matching(self._came, bound_condition, self._base)
        for rows in self._reader.rows(files, _columns(bound_condition)):
            versions = known(rows.rows["_row_version"])
            fresh = self._is_fresh(versions)
            fresh &= ~are_among(versions, np.fromiter(later, dtype=np.int64, count=len(later)))
            if (fresh & _may_be_true(bound_condition, rows.rows)).any():
                return True
        return False

    def took(self, bound_condition: Bound) -> bool:
        """Return whether rows that may have matched on the base are gone since, or were changed."""
        removed_files, marked_files = (
            _matching(files, bound_condition, self._base) for files in (self._gone, self._marked)
        )
        ids = []
        for rows in self._reader.rows(marked_files, _columns(bound_condition)):
            dead_mask = are_among(rows.positions, numbers_of(self._died(rows.path)))
            ids.append(known(rows.rows["_row_id"])[dead_mask & _may_be_true(bound_condition, rows.rows)])
        ids += [
            known(rows.rows["_row_id"])[_may_be_true(bound_condition, rows.rows)]
            for rows in self._reader.rows(removed_files, _columns(bound_condition))
        ]
        matching_ids = np.concatenate([np.empty(0, dtype=np.int64), *ids])
        if (matching_ids == NOT_KNOWN).any():
            raise RowsUnclear("rows without ids cannot be found")
        return self.places(matching_ids) is None

    def places(self, ids: Numbers) -> dict[str, BitMap] | None:
        """Return the present places of base rows whose files are gone, by paths.

        Returns None if a row was changed, or is gone too.
        """
        result: dict[str, BitMap] = {}
        count = 0
        if not len(ids):
            return result
        for path, index in self._reader.indexes(self._came):
            _, positions, versions = index.found(ids)
            if len(positions):
                live = ~are_among(positions, numbers_of(self._dead(path) & bitmap_of(positions)))
                if self._is_fresh(versions[live]).any():
                    return None
                if live.any():
                    count += int(live.sum())
                    more = bitmap_of(positions[live])
                    result[path] = result[path] | more if path in result else more
        return result if _is_all(count, ids) else None

    def _is_fresh(self, versions: Numbers) -> Mask:
        """Return a mask of the versions that are later than the base."""
        fresh: Mask = (versions > self._base.version) | (versions <= UNCOMMITTED)
        return fresh

    @once
    def _files(self) -> tuple[pa.Table, pa.Table]:
        return self._base.all_files(), self._now.all_files()

    @once
    def _came(self) -> pa.Table:
        old_files, new_files = self._files
        return new_files.filter(pc.invert(pc.is_in(_keys(new_files), value_set=_keys(old_files))))

    @once
    def _gone(self) -> pa.Table:
        old_files, new_files = self._files
        return old_files.filter(pc.invert(pc.is_in(_keys(old_files), value_set=_keys(new_files))))

    @once
    def _marked(self) -> pa.Table:
        """The files, as they were, of which rows were deleted since."""
        old_files, new_files = self._files
        still = old_files.filter(pc.is_in(_keys(old_files), value_set=_keys(new_files)))
        only = self._base.files_only_here(self._now.view)
        return still.filter(pc.is_in(still["path"], value_set=only["path"].combine_chunks()))

    def _died(self, path: str) -> BitMap:
        deleted_now, deleted_then = (self._vector(files, path) for files in reversed(self._files))
        if deleted_then - deleted_now:
            raise RowsUnclear("deleted rows came back")
        return deleted_now - deleted_then

    def _dead(self, path: str) -> BitMap:
        """Return the deleted rows of a present file."""
        if path not in self._vectors:
            self._vectors[path] = self._vector(self._files[1], path)
        return self._vectors[path]

    def _vector(self, files: pa.Table, path: str) -> BitMap:
        # No bounds, because dates among them may be beyond Python's dates.
        names = [name for name in ("rows", DELETES) if name in files.column_names]
        (file,) = files.filter(pc.equal(files["path"], path)).select(names).to_pylist()
        deletes = None if file.get(DELETES) is None else deletes_from_json(file[DELETES])
        return self._reader.vector(deletes, file["rows"] + (0 if deletes is None else deletes.rows))


def _keys(files: pa.Table) -> pa.Array:
    return pc.binary_join_element_wise(files["path"].combine_chunks(), files["write"].combine_chunks(), "\n")


def _matching(files: pa.Table, bound_condition: Bound, head: TableHead) -> pa.Table:
    files = files.filter(pc.greater(files["rows"], 0))
    return files.filter(may_match(files, bound_condition, head.metadata.specs)) if files.num_rows else files


def _columns(bound_condition: Bound) -> set[str]:
    return {term.path[0] for term in terms(bound_condition)}


def _may_be_true(bound_condition: Bound, rows: pa.Table) -> Mask:
    mask = pc.fill_null(evaluate(possible(bound_condition), rows), False)
    return np.asarray(mask, dtype=bool)


def _is_all(count: int, ids: Numbers) -> bool:
    return count == len(ids)
