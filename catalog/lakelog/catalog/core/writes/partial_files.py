"""Overwriting some rows of files: these rows are found by reading the files that match in part.

They are found on an overwrite's base. The overwrite is rebased only if no file that may have replaced rows
was added, removed or changed since then. So the same rows are replaced, whatever else the table has by then.
They are in the same files, except for rows that compactions have moved. These are found by reading the
compactions' new files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.data_file import DataFile, RemovedFile, check_files, of_write, removed_file
from lakelog.catalog.core.files.file_tables import joined
from lakelog.catalog.core.logs.file_entries import with_deletes
from lakelog.catalog.core.logs.live_files import file_keys
from lakelog.catalog.core.logs.stored_vectors import read_vector
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.parquet.copying import copied_files
from lakelog.catalog.core.parquet.reading import read_positions
from lakelog.catalog.core.planning.bound import Bound, terms, unknown_parts
from lakelog.catalog.core.planning.pruning import match
from lakelog.catalog.core.schema.properties.known import COPY_ON_WRITE, WRITE_MODES
from lakelog.catalog.core.schema.schema import dotted
from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.next_step import start_over
from lakelog.log import WriteRef
from lakelog.log.errors import InvalidInput
from lakelog.log.once import once

if TYPE_CHECKING:
    from pyroaring import BitMap


def matching_files(
    head: TableHead, bound_condition: Bound, *, in_part: bool = False
) -> tuple[pa.Table, pa.Table]:
    """Return the files whose rows certainly all match, and the files in which some rows may match.

    Raises Unsupported for a condition that lakelog does not know. With `in_part` it may know only a part,
    because an engine finds the rows for which it is true.
    """
    specs = head.metadata.specs
    whole, partial_files = [], []
    # With an unknown condition, no file is left out, so that it is refused.
    for chunk in head.chunks(
        bound=None if unknown_parts(bound_condition) and not in_part else bound_condition
    ):
        match_masks = match(chunk, bound_condition, specs, in_part=in_part)
        whole.append(chunk.filter(match_masks.all))
        has_rows = pc.greater(chunk["rows"].combine_chunks(), 0)
        partial_files.append(
            chunk.filter(pc.and_(has_rows, pc.invert(pc.or_(match_masks.all, match_masks.none))))
        )
    return joined(whole), joined(partial_files)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReplacements:
    """The changes of partial files. `marked` files get another vector, each with its entry before and after.

    `copies` have the remaining rows of `rewritten` files. No row remains of `emptied` files.
    """

    marked: Sequence[tuple[DataFile, DataFile]] = ()
    emptied: Sequence[RemovedFile] = ()
    rewritten: Sequence[RemovedFile] = ()
    copies: Sequence[DataFile] = ()


class PartialFiles:
    """The rows that an overwrite replaces in files that it matches in part. Nothing is read before first use.

    `find` returns these files, of the base, and the condition of the rows. Costs a read of the files' columns
    in the filter, in bounded memory, unless the caller gives all `positions`. If the table deletes by
    copying, it also costs a read and a write of the remaining rows, unless the caller gives their `copies`.
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

    def replaced(self, current: TableHead, files: pa.Table, moved_to: Set[str]) -> FileReplacements:
        """Return the changes of the partial files in `current`.

        Compactions have moved rows to the files `moved_to`. Raises CommitConflict if any other file differs
        from the base.
        """
        same = pc.is_in(file_keys(files), value_set=file_keys(self._found[0]))
        moved_files = files.filter(pc.invert(same))
        if not moved_to >= set(moved_files["path"].to_pylist()):
            raise CommitConflict(
                f"the overwrite of {self._base.name} conflicts with another change of the rows that it replaces. "
                f"Nothing was changed: {start_over()}",
                version=current.version,
            )
        if moved_files.num_rows and unknown_parts(self._found[1]):
            raise CommitConflict(
                f"the overwrite of {self._base.name} replaces rows that a compaction has moved meanwhile, by a "
                f"condition that only its engine can evaluate. Nothing was changed: {start_over()}",
                version=current.version,
            )
        gone_ids = self._columns - current.schema.paths.keys()
        if moved_files.num_rows and gone_ids:
            names = ", ".join(dotted(self._base.schema.path_of(id)) for id in sorted(gone_ids))
            raise CommitConflict(
                f"the overwrite of {self._base.name} replaces rows by {names}, which was dropped meanwhile, and a "
                f"compaction has moved rows without these values. Nothing was changed: {start_over()}",
                version=current.version,
            )
        paths = set(files["path"].to_pylist())
        positions = {path: rows for path, rows in self._positions.items() if path in paths}
        if moved_files.num_rows:
            positions |= self._read(moved_files)
        entries = current.entries(positions.keys())
        if self._is_copying and positions.keys() == self._positions.keys():
            removed_files = [removed_file(entries[path]) for path in positions]
            return FileReplacements(rewritten=removed_files, copies=self._copies)
        # If rows have moved, the remaining rows are not copied again. Marks cost less, and lose no race.
        vectors = {path: self._vector(entries[path]) | rows for path, rows in positions.items()}
        emptied_files, marked_files = with_deletes(self._base.tracked, self._write, entries, vectors)
        return FileReplacements(marked=marked_files, emptied=emptied_files)

    @once
    def _found(self) -> tuple[pa.Table, Bound]:
        return self._find()

    @property
    def _columns(self) -> Set[int]:
        return {term.column_id for term in terms(self._found[1])}

    @once
    def _positions(self) -> Mapping[str, BitMap]:
        files = self._found[0]
        if self._given is not None:
            return self._checked(self._given, set(files["path"].to_pylist()))
        return self._read(files)

    def _read(self, files: pa.Table) -> Mapping[str, BitMap]:
        log, condition = self._base.tracked, self._found[1]
        schema, open_url = self._base.schema, log.log.replay.open_url
        return dict(read_positions(log.store, log.prefix, files, schema, condition, open_url))

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
            due_rows = sum(entries[path].rows - len(rows) for path, rows in positions.items())
            copy_rows = sum(file.rows for file in self._given_copies)
            if due_rows != copy_rows:
                raise InvalidInput(
                    f"the overwrite of {self._base.name} must copy the rows that stay: {due_rows:,}, not {copy_rows:,}"
                )
        return positions

    @once
    def _copies(self) -> Sequence[DataFile]:
        if self._given_copies is not None:
            return self._given_copies
        files, condition = self._found
        has_matches = pc.is_in(files["path"], value_set=pa.array(sorted(self._positions), pa.string()))
        copies = copied_files(self._base, files.filter(has_matches), condition, self._write)
        self.written += copies
        return copies

    @property
    def _is_copying(self) -> bool:
        properties = self._base.metadata.properties
        return bool(self._positions) and WRITE_MODES["delete"].of(properties) == COPY_ON_WRITE

    def _vector(self, file: DataFile) -> BitMap:
        log = self._base.tracked
        return read_vector(log.store, log.prefix, file.deletes, file.physical_rows)
