"""A change of rows as an engine prepared it, with its base's entries of the files that it names.

Rule: a change that makes no sense on the base is refused here, so that the rest can only conflict with a
later state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakelog.catalog.core.files.data_file import DataFile, check_files, of_write
from lakelog.catalog.core.files.deletion_vectors import deletes_to_json
from lakelog.catalog.core.files.taken_values import check_taken
from lakelog.catalog.core.logs.commits import NothingToDo
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.schema.identity import ValuesTaken
from lakelog.catalog.core.schema.predicate import Predicate
from lakelog.catalog.core.state.conflicts import OperationKind
from lakelog.catalog.core.writes.row_reader import RowReader
from lakelog.log import WriteRef
from lakelog.log.errors import InvalidInput

if TYPE_CHECKING:
    from pyroaring import BitMap


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """A change to be committed. `condition` is true for all rows that were read. None means that any may have
    been read.

    `values` of identity columns were taken for new rows. With `reads_others`, the change of a row depends on
    other rows. Without `keeps_partitions`, files without rows, which stand for partitions, are removed like
    others. Of the rows of `files`, `inserted` are new, `updated` replace others, and the rest are copies.
    They are None if unknown.
    """

    operation: OperationKind
    files: Sequence[DataFile] = ()
    removed: frozenset[str] = frozenset()
    deletes: Mapping[str, BitMap]
    condition: Predicate | None = None
    values: Sequence[ValuesTaken] = ()
    reads_others: bool = False
    keeps_partitions: bool = True
    inserted: int | None = None
    updated: int | None = None

    @property
    def depends_on_rows_read(self) -> bool:
        """Return whether the removal of read rows matters. It does not for a delete that decides on each row
        on its own."""
        return self.operation.makes_rows or self.reads_others

    @property
    def is_empty(self) -> bool:
        return not self.files and not self.removed and not self.deletes


class PreparedChange:
    """A change, with its base's entries of the files that it names. Changes in the same commit share a
    reader."""

    def __init__(
        self, base: TableHead, change: RowChange, write: WriteRef, reader: RowReader | None = None
    ) -> None:
        self.tracked = base.tracked
        self.base = base
        self.change = change
        self.name = base.name
        self.write = write
        metadata = base.metadata
        self.files = of_write(change.files, write)
        check_files(self.files, metadata.schema, metadata.specs)
        check_taken(change.values, self.files, metadata.schema)
        # Bound once: a name in the condition means the column that had this name when the change was
        # prepared.
        self.bound = None if change.condition is None else bind(change.condition, metadata.schema)
        self.before = base.entries({*change.removed, *change.deletes})
        self.reader = reader or RowReader(base)
        self._vectors: dict[str, BitMap] = {}
        self._check_input()
        self._keep_partitions()

    def vector(self, file: DataFile) -> BitMap:
        """Return the deleted rows of a file."""
        key = f"{file.physical_rows} {'' if file.deletes is None else deletes_to_json(file.deletes)}"
        if key not in self._vectors:
            self._vectors[key] = self.reader.vector(file.deletes, file.physical_rows)
        return self._vectors[key]

    def _check_input(self) -> None:
        change = self.change
        for path in (*change.removed, *change.deletes):
            if path not in self.before:
                raise InvalidInput(f"{self.name} has no data file {path} at version {self.base.version}")
        for path, positions in change.deletes.items():
            file = self.before[path]
            if positions.max() >= file.physical_rows:
                raise InvalidInput(
                    f"the row at {positions.max():,} of {path} does not exist: the file has {file.physical_rows:,} rows"
                )
            if self.vector(file) & positions:
                raise InvalidInput(
                    f"some rows to be deleted of {path} are deleted already at version {self.base.version}"
                )
        rows_out = sum(self.before[path].rows for path in change.removed)
        rows_in = sum(file.rows for file in self.files)
        if change.operation is OperationKind.COMPACT and (change.deletes or rows_out != rows_in):
            raise InvalidInput(f"compaction must preserve rows: removed {rows_out:,}, wrote {rows_in:,}")
        if change.operation is OperationKind.DELETE_ROWS and rows_in > rows_out:
            raise InvalidInput(f"a delete must not add rows: removed {rows_out:,}, wrote {rows_in:,}")
        if change.updated is not None or change.inserted is not None:
            check_counts(change, rows_in, rows_out + sum(map(len, change.deletes.values())))

    def _keep_partitions(self) -> None:
        """Keep files without rows, which stand for partitions. An engine names all files that it read."""
        rowless = {path for path in self.change.removed if not self.before[path].rows}
        if rowless and self.change.keeps_partitions:
            self.change = replace(self.change, removed=self.change.removed - rowless)
            self.before = {path: file for path, file in self.before.items() if path not in rowless}
        if self.change.is_empty:
            raise NothingToDo("no row is changed")


def check_counts(change: RowChange, coming: int, going: int) -> None:
    """Raise InvalidInput if an engine's row counts contradict the rows that it adds and takes away.

    The rows that it takes away include rows of files that it rewrites.
    """
    inserts, updates = change.inserted or 0, change.updated
    if updates is None:
        raise InvalidInput(
            f"{inserts:,} rows were inserted, but not how many were updated: give both numbers"
        )
    if not change.operation.makes_rows or (inserts and change.operation is OperationKind.UPDATE):
        raise InvalidInput(
            f"this {change.operation.word} has {inserts:,} inserted and {updates:,} updated rows: only a merge "
            "inserts rows, and only a merge and an update update some. Leave these numbers out, or correct them"
        )
    copies = coming - inserts - updates
    if inserts < 0 or updates < 0 or copies < 0 or going < copies + updates:
        raise InvalidInput(
            f"{inserts:,} inserted and {updates:,} updated rows are not those of this {change.operation.word}, which "
            f"takes {going:,} rows away and adds {coming:,}: correct these numbers"
        )
