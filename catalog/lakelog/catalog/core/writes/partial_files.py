"""Overwriting some rows of files: these rows are found by reading the files that match in part.

They are found on an overwrite's base. The overwrite is rebased only if no file that may have rows which it replaces was
added, removed or changed since then; so the same rows are replaced, whatever else the table has by then. They are in
the same files, except for those that compactions have moved: these are found by reading the files into which they came.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import DataFile, RemovedFile, check_files, joined, of_write, removed_file
from lakelog.catalog.core.logs import TableHead, file_keys, read_vector, with_deletes
from lakelog.catalog.core.parquet import copied_files, read_positions
from lakelog.catalog.core.planning import Bound, match, unknown_parts
from lakelog.catalog.core.schema import COPY_ON_WRITE, WRITE_MODES, value_of
from lakelog.catalog.errors import CommitConflict
from lakelog.log import WriteRef
from lakelog.log.errors import InvalidInput
from lakelog.log.once import once

if TYPE_CHECKING:
    from pyroaring import BitMap


def matching_files(head: TableHead, bound: Bound, *, in_part: bool = False) -> tuple[pa.Table, pa.Table]:
    """Return the files of which all rows certainly match, and those of which some may.

    Unsupported for a condition that lakelog does not know, unless it may be known `in_part`, as an engine finds the
    rows of which it is true.
    """
    specs = head.metadata.specs
    whole, some = [], []
    # With a condition that is not known, no file is left out, so that it is refused.
    for chunk in head.chunks(bound=None if unknown_parts(bound) and not in_part else bound):
        found = match(chunk, bound, specs, in_part=in_part)
        whole.append(chunk.filter(found.all))
        has_rows = pc.greater(chunk["rows"].combine_chunks(), 0)
        some.append(chunk.filter(pc.and_(has_rows, pc.invert(pc.or_(found.all, found.none)))))
    return joined(whole), joined(some)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """The changes of partial files: `marked` get another vector, each before and after, and the rows that stay of those
    `rewritten` are in `copies`. Of those `emptied`, none stays."""

    marked: Sequence[tuple[DataFile, DataFile]] = ()
    emptied: Sequence[RemovedFile] = ()
    rewritten: Sequence[RemovedFile] = ()
    copies: Sequence[DataFile] = ()


class PartialFiles:
    """The rows that an overwrite replaces in files that it matches in part. Nothing is read before first use.

    `find` returns these files, of the base, and the condition of the rows. Costs a read of the files' columns in the
    filter, in bounded memory, unless the caller gives all `positions`; where the table deletes by copying, also a read
    and a write of the rows that stay, unless the caller gives their `copies`.
    """

    def __init__(
        self,
        head: TableHead,
        write: WriteRef,
        find: Callable[[], tuple[pa.Table, Bound]],
        positions: Mapping[str, BitMap] | None = None,
        copies: Sequence[DataFile] | None = None,
    ) -> None:
        self._base = head
        self._write = write
        self._find = find
        self._given = positions
        self._given_copies = None if copies is None else of_write(copies, write)
        self.written: list[DataFile] = []
        """The files that were written for it so far, to be deleted if the commit does not happen."""

    def replaced(self, current: TableHead, files: pa.Table, moved_to: Set[str]) -> Replaced:
        """Return the changes of the partial files in `current`. CommitConflict where others than `moved_to`, to which
        compactions have moved rows, are not as they are on the base."""
        same = pc.is_in(file_keys(files), value_set=file_keys(self._found[0]))
        others = files.filter(pc.invert(same))
        if not moved_to >= set(others["path"].to_pylist()):
            raise CommitConflict(
                f"the overwrite of {self._base.name} conflicts with another change of the rows that it replaces. "
                "Nothing was changed: run the statement again",
                version=current.version,
            )
        if others.num_rows and unknown_parts(self._found[1]):
            raise CommitConflict(
                f"the overwrite of {self._base.name} replaces rows that a compaction has moved meanwhile, by a "
                "condition that only its engine can evaluate. Nothing was changed: run the statement again",
                version=current.version,
            )
        there = set(files["path"].to_pylist())
        positions = {path: rows for path, rows in self._positions.items() if path in there}
        if others.num_rows:
            positions |= self._read(others)
        entries = current.entries(positions.keys())
        if self._is_copying and positions.keys() == self._positions.keys():
            gone = [removed_file(entries[path]) for path in positions]
            return Replaced(rewritten=gone, copies=self._copies)
        # Where rows have moved, those that stay are not copied once more: marks cost less, and lose no race.
        vectors = {path: self._vector(entries[path]) | rows for path, rows in positions.items()}
        emptied, marked = with_deletes(self._base.tracked, self._write, entries, vectors)
        return Replaced(marked=marked, emptied=emptied)

    @once
    def _found(self) -> tuple[pa.Table, Bound]:
        return self._find()

    @once
    def _positions(self) -> Mapping[str, BitMap]:
        files = self._found[0]
        if self._given is not None:
            return self._checked(self._given, set(files["path"].to_pylist()))
        return self._read(files)

    def _read(self, files: pa.Table) -> Mapping[str, BitMap]:
        tracked, bound = self._base.tracked, self._found[1]
        schema, open_url = self._base.schema, tracked.log.replay.open_url
        return dict(read_positions(tracked.store, tracked.prefix, files, schema, bound, open_url))

    def _checked(self, positions: Mapping[str, BitMap], paths: Set[str]) -> Mapping[str, BitMap]:
        entries = self._base.entries(positions.keys())
        for path, rows in positions.items():
            if path not in paths:
                raise InvalidInput(
                    f"the overwrite of {self._base.name} does not match the file {path} in part"
                )
            file = entries[path]
            if rows.max() >= file.physical_rows or self._vector(file) & rows:
                raise InvalidInput(
                    f"the overwrite of {self._base.name} names rows of {path} that do not exist"
                )
        if self._given_copies is not None:
            metadata = self._base.metadata
            check_files(self._given_copies, metadata.schema, metadata.specs)
            left = sum(entries[path].rows - len(rows) for path, rows in positions.items())
            coming = sum(file.rows for file in self._given_copies)
            if left != coming:
                raise InvalidInput(
                    f"the overwrite of {self._base.name} must copy the rows that stay: {left:,}, not {coming:,}"
                )
        return positions

    @once
    def _copies(self) -> Sequence[DataFile]:
        if self._given_copies is not None:
            return self._given_copies
        files, bound = self._found
        touched = pc.is_in(files["path"], value_set=pa.array(sorted(self._positions), pa.string()))
        copies = copied_files(self._base, files.filter(touched), bound, self._write)
        self.written += copies
        return copies

    @property
    def _is_copying(self) -> bool:
        properties = self._base.metadata.properties
        return bool(self._positions) and value_of(properties, WRITE_MODES["delete"]) == COPY_ON_WRITE

    def _vector(self, file: DataFile) -> BitMap:
        tracked = self._base.tracked
        return read_vector(tracked.store, tracked.prefix, file.deletes, file.physical_rows)
