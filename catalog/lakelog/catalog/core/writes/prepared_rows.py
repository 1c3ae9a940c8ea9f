"""A change of rows as an engine prepared it, with what its base has of the files that it names.

Rule: what makes no sense on the base is refused here, so that a later state can only conflict with the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakelog.catalog.core.files import DataFile, check_files, check_taken, deletes_to_json, of_write
from lakelog.catalog.core.logs import NothingToDo, TableHead
from lakelog.catalog.core.planning import bind
from lakelog.catalog.core.schema import Predicate, ValuesTaken
from lakelog.catalog.core.state import Operation
from lakelog.catalog.core.writes.row_reader import RowReader
from lakelog.log import WriteRef
from lakelog.log.errors import InvalidInput

if TYPE_CHECKING:
    from pyroaring import BitMap


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """A change to be committed. `condition` is true for all rows that were read; None: any may have been. `values` of
    identity columns were taken for new rows. `reads_others`: the change of a row depends on other rows. Without
    `keeps_partitions`, files without rows, which stand for partitions, are removed like others. Of the rows of `files`,
    `inserted` are new and `updated` have the place of others, None where that is not known; the rest are copies."""

    operation: Operation
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
        """Whether the removal of rows that were read matters: not to a delete that decides on each row by itself."""
        return self.operation.makes_rows or self.reads_others

    @property
    def is_empty(self) -> bool:
        return not self.files and not self.removed and not self.deletes


class Prepared:
    """A change, with its base's entries of the files that it names. Changes that are committed together share a
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
        # Bound once: a name in the condition means the column that had it when the change was prepared.
        self.bound = None if change.condition is None else bind(change.condition, metadata.schema)
        self.before = base.entries({*change.removed, *change.deletes})
        self.reader = reader or RowReader(base)
        self._vectors: dict[str, BitMap] = {}
        self._check_input()
        self._keep_partitions()

    def vector(self, file: DataFile) -> BitMap:
        """Return the rows of a file that are deleted."""
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
        going = sum(self.before[path].rows for path in change.removed)
        coming = sum(file.rows for file in self.files)
        if change.operation is Operation.COMPACT and (change.deletes or going != coming):
            raise InvalidInput(f"compaction must preserve rows: removed {going:,}, wrote {coming:,}")
        if change.operation is Operation.DELETE_ROWS and coming > going:
            raise InvalidInput(f"a delete must not add rows: removed {going:,}, wrote {coming:,}")
        if change.updated is not None or change.inserted is not None:
            check_counts(change, coming, going + sum(map(len, change.deletes.values())))

    def _keep_partitions(self) -> None:
        """Keep files without rows, which stand for partitions: an engine names all files that it read."""
        rowless = {path for path in self.change.removed if not self.before[path].rows}
        if rowless and self.change.keeps_partitions:
            self.change = replace(self.change, removed=self.change.removed - rowless)
            self.before = {path: file for path, file in self.before.items() if path not in rowless}
        if self.change.is_empty:
            raise NothingToDo("no row is changed")


def check_counts(change: RowChange, coming: int, going: int) -> None:
    """Check the numbers of rows that an engine has counted against the rows that it adds and those that it takes away,
    of files that it rewrites among them."""
    inserted, updated = change.inserted or 0, change.updated
    if updated is None:
        raise InvalidInput(
            f"{inserted:,} rows were inserted, but not how many were updated: give both numbers"
        )
    if not change.operation.makes_rows or (inserted and change.operation is Operation.UPDATE):
        raise InvalidInput(
            f"this {change.operation.word} has {inserted:,} inserted and {updated:,} updated rows: only a merge "
            "inserts rows, and only a merge and an update update some. Leave these numbers out, or correct them"
        )
    copied = coming - inserted - updated
    if inserted < 0 or updated < 0 or copied < 0 or going < copied + updated:
        raise InvalidInput(
            f"{inserted:,} inserted and {updated:,} updated rows are not those of this {change.operation.word}, which "
            f"takes {going:,} rows away and adds {coming:,}: correct these numbers"
        )
