"""Rows of files for a change of rows: their values, or the places of rows with given ids.

Values are read for a limited number of rows. For ids, only the id columns are read, for any number of rows,
part by part in bounded memory. Indexes of files are remembered while there is room, because a change may be
decided on several states while other writers do not wait. It must not decide what is a conflict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.data_file import (
    DELETES,
    FIRST_ROW,
    VERSION,
    DataFile,
    files_to_arrow,
    physical_rows,
)
from lakelog.catalog.core.files.deletion_vectors import DeletionVector
from lakelog.catalog.core.files.live_rows import Numbers
from lakelog.catalog.core.files.row_ids import UNCOMMITTED
from lakelog.catalog.core.files.row_index import NOT_KNOWN, PART_ROWS, Mask, RowIndex
from lakelog.catalog.core.logs.stored_vectors import read_vector
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.parquet.reading import PlacedRows, read_placed_rows
from lakelog.log.errors import LakelogError, NotFound

if TYPE_CHECKING:
    from pyroaring import BitMap

ROWS_LIMIT = 5_000_000
"""The values of at most this many rows are read for a change, including deleted rows. With more, whole files
are judged."""

KEPT_BYTES = 128 * 1024 * 1024
"""Indexes of about this size are remembered. Other indexes are made again whenever they are needed."""


_Key = tuple[str, str, int | None, int | None]
"""The facts that determine the ids of a file's rows. The first is its path."""


class RowsUnclear(LakelogError):
    """The changed rows cannot be determined. No user sees this error, because the caller then judges whole
    files."""

    kind = "unclear"


class RowReader:
    """Reads rows of files for a change, on all states on which it is decided."""

    def __init__(self, base: TableHead) -> None:
        self._base = base
        self._rows_left = ROWS_LIMIT
        self._bytes_left = KEPT_BYTES
        self._kept: dict[_Key, list[RowIndex]] = {}

    def rows(self, files: pa.Table, columns: Collection[str]) -> Iterator[PlacedRows]:
        """Yield the live rows of `files` (in the form of `FileSet.chunks`): these columns, ids and versions.

        Raises RowsUnclear if there are too many rows, or if a file is gone, because a vacuum may have deleted it.
        """
        self._rows_left -= pc.sum(physical_rows(files), min_count=0).as_py()
        if self._rows_left < 0:
            raise RowsUnclear("too many rows would have to be read")
        yield from self._read(files, columns)

    def vector(self, deletes: DeletionVector | None, physical_rows: int) -> BitMap:
        """Return the positions of the deleted rows of a file with that many rows."""
        log = self._base.tracked
        return read_vector(log.store, log.prefix, deletes, physical_rows)

    def ids(self, file: DataFile, positions: BitMap | None) -> Iterator[Numbers]:
        """Yield the ids of the rows at these positions of a file, in parts. None means all live rows.

        Raises RowsUnclear if a row has no id, and for the reasons of `rows`.
        """
        from pyroaring import BitMap

        metadata = self._base.metadata
        file = _with_present_ids(file)
        deleted_rows = self.vector(file.deletes, file.physical_rows) if positions is None else BitMap()
        for _, index in self.indexes(files_to_arrow([file], metadata.schema, metadata.specs)):
            part_rows = BitMap(range(index.start, index.start + index.rows))
            row_positions = part_rows - deleted_rows if positions is None else part_rows & positions
            if row_positions:
                known_positions, ids = index.at(numbers_of(row_positions))
                if len(known_positions) < len(row_positions):
                    raise RowsUnclear("rows without ids cannot be found")
                yield ids

    def indexes(self, files: pa.Table) -> Iterator[tuple[str, RowIndex]]:
        """Yield the indexes of all rows of files, including deleted rows, with an index for each part of a
        file."""
        keys = _keys(files)
        for key in keys:
            yield from ((key[0], index) for index in self._kept.get(key, ()))
        unindexed_files = files.filter(pa.array([key not in self._kept for key in keys], pa.bool_()))
        if not unindexed_files.num_rows:
            return
        by_path = {key[0]: key for key in keys}
        whole = unindexed_files.set_column(
            unindexed_files.column_names.index("rows"), "rows", physical_rows(unindexed_files)
        )
        if DELETES in whole.column_names:
            whole = whole.drop_columns([DELETES])
        for path, batches in groupby(self._read(whole, ()), lambda rows: rows.path):
            parts: list[RowIndex] = []
            size_bytes = 0
            for index in _indexed(batches):
                size_bytes += index.size_bytes
                if size_bytes <= self._bytes_left:
                    parts.append(index)
                yield path, index
            if size_bytes <= self._bytes_left:
                self._bytes_left -= size_bytes
                self._kept[by_path[path]] = parts

    def _read(self, files: pa.Table, columns: Collection[str]) -> Iterator[PlacedRows]:
        base = self._base
        open_url = base.tracked.log.replay.open_url
        try:
            yield from read_placed_rows(
                base.tracked.store, base.tracked.prefix, files, base.schema, sorted(columns), open_url
            )
        except NotFound as error:
            raise RowsUnclear(f"a data file is gone: {error}") from error


def _with_present_ids(file: DataFile) -> DataFile:
    """Return the file's entry, without ids for rows that the same transaction has added. They get ids at its
    end."""
    is_own = file.version is None and file.first_row is not None
    return msgspec.structs.replace(file, version=UNCOMMITTED) if is_own else file


def _keys(files: pa.Table) -> list[_Key]:
    columns = (
        files[name].to_pylist() if name in files.column_names else [None] * files.num_rows
        for name in ("path", "write", FIRST_ROW, VERSION)
    )
    return list(zip(*columns, strict=True))


def _indexed(batches: Iterator[PlacedRows]) -> Iterator[RowIndex]:
    part_batches: list[PlacedRows] = []
    for batch in batches:
        part_batches.append(batch)
        if sum(len(rows.positions) for rows in part_batches) >= PART_ROWS:
            yield _index_of(part_batches)
            part_batches = []
    if part_batches:
        yield _index_of(part_batches)


def _index_of(batches: list[PlacedRows]) -> RowIndex:
    ids, versions = (
        np.concatenate([known(rows.rows[name]) for rows in batches]) for name in ("_row_id", "_row_version")
    )
    return RowIndex.of(np.concatenate([rows.positions for rows in batches]), ids, versions)


def together(parts: Iterator[Numbers]) -> Iterator[Numbers]:
    """Yield the same numbers in fewer parts, none much larger than `PART_ROWS`."""
    batch: list[Numbers] = []
    for part in parts:
        batch.append(part)
        if sum(map(len, batch)) >= PART_ROWS:
            yield np.concatenate(batch)
            batch = []
    if batch:
        yield np.concatenate(batch)


def known(numbers: pa.ChunkedArray) -> Numbers:
    """Return numbers, with `NOT_KNOWN` in place of NULL."""
    return np.asarray(pc.fill_null(numbers, NOT_KNOWN), dtype=np.int64)


def numbers_of(positions: BitMap) -> Numbers:
    return np.frombuffer(positions.to_array(), dtype=np.uint32).astype(np.int64)


def bitmap_of(positions: Numbers) -> BitMap:
    from pyroaring import BitMap

    return BitMap(positions.astype(np.uint32))


def are_among(numbers: Numbers, others: Numbers) -> Mask:
    """Return a mask of the numbers that are among `others`."""
    # NumPy's own functions hash numbers, which takes minutes for millions of consecutive numbers.
    if not len(others):
        return np.zeros(len(numbers), dtype=bool)
    sorted_others = np.sort(others)
    at = np.minimum(np.searchsorted(sorted_others, numbers), len(sorted_others) - 1)
    mask: Mask = sorted_others[at] == numbers
    return mask
