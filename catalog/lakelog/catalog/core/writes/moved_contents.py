"""A step of a transaction that replaces contents, decided again after others have moved rows.

Outside of transactions, an overwrite or a delete is decided again on each state, by its filter. Later steps of
a transaction were built on the rows that the step has replaced first, so it has to replace exactly these
rows. They are found like the rows of a change of rows, at their present place. Rule: rows that the step did
not see are a conflict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.catalog.core.files.data_file import DataFile, RemovedFile
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.state.conflicts import OperationKind
from lakelog.catalog.core.writes.partial_files import FileReplacements
from lakelog.catalog.core.writes.prepared_rows import PreparedChange, RowChange
from lakelog.catalog.core.writes.row_reader import RowReader
from lakelog.catalog.core.writes.row_rebase import RebasedFiles, RowRebase, made
from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.next_step import start_over
from lakelog.log import Commit, WriteRef

if TYPE_CHECKING:
    from pyroaring import BitMap


@dataclass(frozen=True, slots=True)
class FirstReplaced:
    """The first replacement of a step, on `head`: whole files, and rows of others."""

    head: TableHead
    removed: Sequence[RemovedFile]
    replaced: FileReplacements

    def on(
        self,
        head: TableHead,
        operation: OperationKind,
        write: WriteRef,
        files: Sequence[DataFile],
        passed_commits: Sequence[Commit],
    ) -> tuple[RebasedFiles, RebasedFiles]:
        """Return the changes that take the same rows away in a later state.

        The first has the copies, and the second has the rest, with the new `files`. Raises CommitConflict if
        a row has changed since.
        """
        reader = RowReader(self.head)
        rewritten = frozenset(file.path for file in self.replaced.rewritten)
        copy_change = RowChange(
            operation=OperationKind.DELETE_ROWS,
            files=self.replaced.copies,
            removed=rewritten,
            deletes={},
            keeps_partitions=False,
        )
        main_change = RowChange(
            operation=operation,
            files=files,
            removed=frozenset(file.path for file in (*self.removed, *self.replaced.emptied)),
            deletes=self._marked(reader),
            keeps_partitions=False,
        )

        def after(change: RowChange, earlier: RebasedFiles | None) -> RebasedFiles:
            if change.is_empty:
                return RebasedFiles()
            rebase = RowRebase(PreparedChange(self.head, change, write, reader), head, passed_commits)
            why = rebase.disturbance()
            if why is not None:
                raise moved_conflict(operation, head, why)
            return made([rebase], earlier)

        head.tracked.transaction.note_moved()
        first = after(copy_change, None)
        return first, after(main_change, first)

    def _marked(self, reader: RowReader) -> Mapping[str, BitMap]:
        result = {}
        for file_before, file_after in self.replaced.marked:
            old_rows, new_rows = (
                reader.vector(file.deletes, file.physical_rows) for file in (file_before, file_after)
            )
            result[file_before.path] = new_rows - old_rows
        return result


def moved_conflict(operation: OperationKind, head: TableHead, why: str) -> CommitConflict:
    return CommitConflict(
        f"the {operation.word} of {head.name} conflicts with another change: {why}. Nothing was changed: "
        f"{start_over()}",
        version=head.version,
    )
