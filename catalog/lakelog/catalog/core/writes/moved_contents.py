"""A step of a transaction that replaces contents, decided again where others have moved rows meanwhile.

Outside of transactions, an overwrite or a delete is decided anew on each state, by its filter. Later steps of a
transaction were built on what the step has replaced when it was made, so it has to replace just these rows: they are
looked for as those of a change of rows are, wherever they are now. Rule: rows that the step did not see are a conflict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.catalog.core.files import DataFile, RemovedFile
from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.core.state import Operation
from lakelog.catalog.core.writes.partial_files import Replaced
from lakelog.catalog.core.writes.prepared_rows import Prepared, RowChange
from lakelog.catalog.core.writes.row_reader import RowReader
from lakelog.catalog.core.writes.row_rebase import Made, Rebase, made
from lakelog.catalog.errors import CommitConflict
from lakelog.log import Commit, WriteRef

if TYPE_CHECKING:
    from pyroaring import BitMap


@dataclass(frozen=True, slots=True)
class FirstReplaced:
    """What a step has replaced when it was made, on `head`: whole files, and rows of others."""

    head: TableHead
    removed: Sequence[RemovedFile]
    replaced: Replaced

    def on(
        self,
        now: TableHead,
        operation: Operation,
        write: WriteRef,
        files: Sequence[DataFile],
        passed: Sequence[Commit],
    ) -> tuple[Made, Made]:
        """Return what takes the same rows away in a later state: first what is copied, then the rest, with the new
        `files`. CommitConflict where one of the rows is not as it was."""
        reader = RowReader(self.head)
        rewritten = frozenset(file.path for file in self.replaced.rewritten)
        copied = RowChange(
            operation=Operation.DELETE_ROWS,
            files=self.replaced.copies,
            removed=rewritten,
            deletes={},
            keeps_partitions=False,
        )
        rest = RowChange(
            operation=operation,
            files=files,
            removed=frozenset(file.path for file in (*self.removed, *self.replaced.emptied)),
            deletes=self._marked(reader),
            keeps_partitions=False,
        )

        def after(change: RowChange, earlier: Made | None) -> Made:
            if change.is_empty:
                return Made()
            rebase = Rebase(Prepared(self.head, change, write, reader), now, passed)
            why = rebase.disturbance()
            if why is not None:
                raise moved_conflict(operation, now, why)
            return made([rebase], earlier)

        now.tracked.transaction.note_moved()
        first = after(copied, None)
        return first, after(rest, first)

    def _marked(self, reader: RowReader) -> Mapping[str, BitMap]:
        found = {}
        for before, after in self.replaced.marked:
            then, now = (reader.vector(each.deletes, each.physical_rows) for each in (before, after))
            found[before.path] = now - then
        return found


def moved_conflict(operation: Operation, now: TableHead, why: str) -> CommitConflict:
    return CommitConflict(
        f"the {operation.word} of {now.name} conflicts with another change: {why}. Nothing was changed: run the "
        "transaction again",
        version=now.version,
    )
