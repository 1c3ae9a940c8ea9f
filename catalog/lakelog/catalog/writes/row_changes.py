"""Changes of rows: delete, update, merge and compaction, as an engine prepared them by reading files of one version.

Such a change names files that are replaced by new ones (removed), rows of files by their positions (deletes), and new
files. It was computed from its base. So it is rebased over other commits only where these leave the rows that it
changes alone, and add none that it should have seen; see `conflicts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.files import (
    DataFile,
    Positions,
    check_files,
    check_taken,
    check_written_by,
    deletes_to_json,
    of_write,
    positions_of,
)
from lakelog.catalog.logs import (
    NothingToDo,
    TableHead,
    Token,
    Written,
    check_conflicts,
    no_files,
    read_vector,
)
from lakelog.catalog.planning import bind
from lakelog.catalog.schema import Predicate, ValuesTaken
from lakelog.catalog.state import (
    ChangeKind,
    Operation,
    TableState,
)
from lakelog.catalog.writes.identity_values import with_values
from lakelog.catalog.writes.row_rebase import Rebase
from lakelog.catalog.writes.rows_since import RowReader
from lakelog.log import Commit, Committed, Draft, View, WriteRef
from lakelog.log.errors import InvalidInput

if TYPE_CHECKING:
    from pyroaring import BitMap

_OPERATIONS = {
    each.word: each for each in (Operation.DELETE_ROWS, Operation.UPDATE, Operation.MERGE, Operation.COMPACT)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """A change to be committed. `condition` is true for all rows that were read; None: any may have been. `values` of
    identity columns were taken for new rows. `reads_others`: the change of a row depends on other rows."""

    operation: Operation
    files: Sequence[DataFile] = ()
    removed: frozenset[str] = frozenset()
    deletes: Mapping[str, BitMap]
    condition: Predicate | None = None
    values: Sequence[ValuesTaken] = ()
    reads_others: bool = False

    @property
    def depends_on_rows_read(self) -> bool:
        """Whether the removal of rows that were read matters: not to a delete that decides on each row by itself."""
        return self.operation.makes_rows or self.reads_others

    @property
    def is_empty(self) -> bool:
        return not self.files and not self.removed and not self.deletes


def row_change(
    operation: str,
    files: Sequence[DataFile],
    removed: Sequence[str],
    deletes: Sequence[Positions | Mapping[str, Any]],
    condition: Predicate | None,
    values: Sequence[ValuesTaken] = (),
    *,
    reads_others: bool = False,
) -> RowChange:
    """Return an engine's change. InvalidInput for one that makes no sense by itself."""
    if operation not in _OPERATIONS:
        raise InvalidInput(f"{operation!r} is not an operation on rows: use one of {', '.join(_OPERATIONS)}")
    positions = positions_of(deletes)
    if len({*positions, *removed}) < len(positions) + len(removed):
        raise InvalidInput(
            "a file occurs twice among the removed files and the deleted rows: name each file once"
        )
    return RowChange(
        operation=_OPERATIONS[operation],
        files=files,
        removed=frozenset(removed),
        deletes=positions,
        condition=condition,
        values=values,
        reads_others=reads_others,
    )


def commit_rows(head: TableHead, write: WriteRef, change: RowChange, token: Token | None) -> TableHead:
    """Commit a change that was prepared on the version that `write` began from; return the newest version."""
    check_written_by(change.files, write)
    if change.is_empty:
        return head.refreshed()
    token = token or head.token_of(write)
    try:
        return head.at(commit(head.at_write(write), change, write=write, token=token).view)
    except NothingToDo:
        return head.refreshed()


def commit(
    base: TableHead, change: RowChange, *, write: WriteRef, token: Token | None = None
) -> Committed[TableState]:
    """Commit `change`, which was prepared against `base`, on the newest state that allows it.

    CommitConflict where the matrix says so, NoSuchTable when the table was dropped, InvalidInput for files or rows that
    `base` does not have. Costs 1 PUT if there were no other commits, and one for vectors that are too large for a
    commit.
    """
    return with_values(base, change, lambda change: _commit(base, change, write, token))


def _commit(
    base: TableHead, change: RowChange, write: WriteRef, token: Token | None
) -> Committed[TableState]:
    prepared = Prepared(base, change, write)
    written = Written(base.version, base.schema, no_files, lambda kind: "rows were changed")
    base.check_own_steps(change.operation, written)
    return base.commit(prepared.decide, token)


class Prepared:
    """A change, with its base's entries of the files that it names. Decides on any later state."""

    def __init__(self, base: TableHead, change: RowChange, write: WriteRef) -> None:
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
        self.reader = RowReader(base)
        self._vectors: dict[str, BitMap] = {}
        self._check_input()
        self._keep_partitions()

    def decide(self, current: View[TableState], passed: Sequence[Commit]) -> Draft:
        since = [commit for commit in passed if commit.version > self.base.version]
        now = Rebase(self, self.base.at(current), since)
        schema = self.base.schema if self.files else None
        written = Written(self.base.version, schema, no_files, now.touched, self.change.values)
        check_conflicts(self.change.operation, current, passed, written, self.name)
        # The matrix saw no conflict in the commits since the base, but the files may differ all the same.
        why = now.touched(ChangeKind.REMOVED_FILES)
        if why is not None:
            raise CommitConflict(
                f"the {self.change.operation.word} of {self.name} conflicts with another change: {why}. Nothing was "
                "changed: run the statement again",
                version=current.version,
            )
        return now.draft()

    def vector(self, file: DataFile) -> BitMap:
        """Return the rows of a file that are deleted."""
        key = f"{file.physical_rows} {'' if file.deletes is None else deletes_to_json(file.deletes)}"
        if key not in self._vectors:
            self._vectors[key] = read_vector(
                self.tracked.store, self.tracked.prefix, file.deletes, file.physical_rows
            )
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

    def _keep_partitions(self) -> None:
        """Keep files without rows, which stand for partitions: an engine names all files that it read."""
        rowless = {path for path in self.change.removed if not self.before[path].rows}
        if rowless:
            self.change = replace(self.change, removed=self.change.removed - rowless)
            self.before = {path: file for path, file in self.before.items() if path not in rowless}
        if self.change.is_empty:
            raise NothingToDo("no row is changed")
