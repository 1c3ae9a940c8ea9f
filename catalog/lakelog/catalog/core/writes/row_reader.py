"""Rows of files as a change of rows looks at them: their values, or where those with some ids are.

Values are read of a limited number of rows. Of ids, only their columns are read, whatever the number of rows: they are
looked for part by part, so that the memory is bounded. Indexes of files are remembered as far as there is room, because
a change may be decided on several states, beside other writers who do not wait. It must not decide what is a conflict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import (
    DELETES,
    FIRST_ROW,
    NOT_KNOWN,
    PART_ROWS,
    UNCOMMITTED,
    VERSION,
    DataFile,
    Deletes,
    Mask,
    Numbers,
    RowIndex,
    files_to_arrow,
    physical_rows,
)
from lakelog.catalog.core.logs import TableHead, read_vector
from lakelog.catalog.core.parquet import PlacedRows, read_placed_rows
from lakelog.log.errors import LakelogError, NotFound

if TYPE_CHECKING:
    from pyroaring import BitMap

ROWS_LIMIT = 5_000_000
"""The values of so many rows are looked at for one change, deleted ones included; where there are more, whole files are
judged."""

KEPT_BYTES = 128 * 1024 * 1024
"""Indexes of about this size are remembered: those of others are made again whenever they are needed."""


_Key = tuple[str, str, int | None, int | None]
"""What the ids of a file's rows follow from, beginning with its path."""


class Unclear(LakelogError):
    """Which rows were changed cannot be found out. No user sees it: the caller judges whole files then."""

    kind = "unclear"


class RowReader:
    """Reads rows of files for one change, on all states on which it is decided."""

    def __init__(self, base: TableHead) -> None:
        self._base = base
        self._rows_left = ROWS_LIMIT
        self._bytes_left = KEPT_BYTES
        self._kept: dict[_Key, list[RowIndex]] = {}

    def rows(self, files: pa.Table, columns: Collection[str]) -> Iterator[PlacedRows]:
        """Yield the live rows of `files` (in the form of `FileSet.chunks`): these columns of them, ids and versions.

        Unclear where there are too many, or where a file is gone: a vacuum may have deleted it.
        """
        self._rows_left -= pc.sum(physical_rows(files), min_count=0).as_py()
        if self._rows_left < 0:
            raise Unclear("too many rows would have to be read")
        yield from self._read(files, columns)

    def vector(self, deletes: Deletes | None, physical_rows: int) -> BitMap:
        """Return the positions of the deleted rows of a file with so many rows."""
        tracked = self._base.tracked
        return read_vector(tracked.store, tracked.prefix, deletes, physical_rows)

    def ids(self, file: DataFile, positions: BitMap | None) -> Iterator[Numbers]:
        """Yield the ids of the rows at these positions of a file, of all its live ones where they are None, in parts.

        Unclear where a row has none, and as `rows`.
        """
        from pyroaring import BitMap

        metadata = self._base.metadata
        file = _with_present_ids(file)
        gone = self.vector(file.deletes, file.physical_rows) if positions is None else BitMap()
        for _, index in self.indexes(files_to_arrow([file], metadata.schema, metadata.specs)):
            here = BitMap(range(index.start, index.start + index.rows))
            wanted = here - gone if positions is None else here & positions
            if wanted:
                found, ids = index.at(numbers_of(wanted))
                if len(found) < len(wanted):
                    raise Unclear("rows without ids cannot be found")
                yield ids

    def indexes(self, files: pa.Table) -> Iterator[tuple[str, RowIndex]]:
        """Yield the indexes of all rows of files, deleted ones included, one for each part of a file."""
        keys = _keys(files)
        for key in keys:
            yield from ((key[0], index) for index in self._kept.get(key, ()))
        left = files.filter(pa.array([key not in self._kept for key in keys], pa.bool_()))
        if not left.num_rows:
            return
        by_path = {key[0]: key for key in keys}
        whole = left.set_column(left.column_names.index("rows"), "rows", physical_rows(left))
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
            raise Unclear(f"a data file is gone: {error}") from error


def _with_present_ids(file: DataFile) -> DataFile:
    """Return the entry of a file without ids for rows that the same transaction has added: they get them at its end."""
    is_own = file.version is None and file.first_row is not None
    return msgspec.structs.replace(file, version=UNCOMMITTED) if is_own else file


def _keys(files: pa.Table) -> list[_Key]:
    columns = (
        files[name].to_pylist() if name in files.column_names else [None] * files.num_rows
        for name in ("path", "write", FIRST_ROW, VERSION)
    )
    return list(zip(*columns, strict=True))


def _indexed(batches: Iterator[PlacedRows]) -> Iterator[RowIndex]:
    held: list[PlacedRows] = []
    for batch in batches:
        held.append(batch)
        if sum(len(each.positions) for each in held) >= PART_ROWS:
            yield _index_of(held)
            held = []
    if held:
        yield _index_of(held)


def _index_of(batches: list[PlacedRows]) -> RowIndex:
    ids, versions = (
        np.concatenate([known(each.rows[name]) for each in batches]) for name in ("_row_id", "_row_version")
    )
    return RowIndex.of(np.concatenate([each.positions for each in batches]), ids, versions)


def together(parts: Iterator[Numbers]) -> Iterator[Numbers]:
    """Yield the same numbers in fewer parts, none much larger than `PART_ROWS`."""
    held: list[Numbers] = []
    for part in parts:
        held.append(part)
        if sum(map(len, held)) >= PART_ROWS:
            yield np.concatenate(held)
            held = []
    if held:
        yield np.concatenate(held)


def known(numbers: pa.ChunkedArray) -> Numbers:
    """Return numbers, with `NOT_KNOWN` in place of NULL."""
    return np.asarray(pc.fill_null(numbers, NOT_KNOWN), dtype=np.int64)


def numbers_of(positions: BitMap) -> Numbers:
    return np.frombuffer(positions.to_array(), dtype=np.uint32).astype(np.int64)


def bitmap_of(positions: Numbers) -> BitMap:
    from pyroaring import BitMap

    return BitMap(positions.astype(np.uint32))


def are_among(numbers: Numbers, others: Numbers) -> Mask:
    """Return of each number whether it is one of the others."""
    # NumPy's own functions hash numbers, which takes it minutes for millions that follow each other.
    if not len(others):
        return np.zeros(len(numbers), dtype=bool)
    ordered = np.sort(others)
    at = np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)
    found: Mask = ordered[at] == numbers
    return found
