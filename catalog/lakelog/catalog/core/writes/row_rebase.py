"""A change of rows on a later state than its base: whether it is possible there, and how.

A file that others have changed since is judged as a whole first, by its path, vector and statistics. Rows are
looked at by their ids only if that would be a conflict (see `rows_since`). So a change goes on if others have
changed other rows. Rows that it changes and that have moved are deleted at their present place. In its own
files, copies of rows that others have changed, deleted or moved are dead from the start, so nothing is
written again. Rule: any uncertainty is a conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.data_file import DataFile, RemovedFile, files_to_arrow, removed_file
from lakelog.catalog.core.files.row_ids import with_ids
from lakelog.catalog.core.logs.commits import NothingToDo, files_event, taken_events
from lakelog.catalog.core.logs.file_entries import with_deletes
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.planning.pruning import may_match
from lakelog.catalog.core.schema.properties.known import ISOLATION, SERIALIZABLE
from lakelog.catalog.core.state.conflicts import MOVING, ChangeKind, OperationKind
from lakelog.catalog.core.state.events import FilesChanged, encode
from lakelog.catalog.core.state.statement_text import normalized
from lakelog.catalog.core.writes.files_since import FilesSince
from lakelog.catalog.core.writes.moved_rows import DisturbedFile, RowMoves, moves
from lakelog.catalog.core.writes.prepared_rows import PreparedChange, RowChange
from lakelog.catalog.core.writes.row_reader import RowsUnclear
from lakelog.catalog.core.writes.rows_since import RowsSince
from lakelog.log import Commit, Draft

if TYPE_CHECKING:
    from pyroaring import BitMap

_GOING_BACK = (
    OperationKind.ROLLBACK.value,
    OperationKind.SET_CURRENT.value,
    OperationKind.FAST_FORWARD.value,
    OperationKind.IMPORT.value,
)
"""The operations by which deleted rows may be live again. A source may have been rolled back."""


@dataclass(slots=True)
class RowRebase:
    """A state on which a change is decided, and the commits between the change's base and that state."""

    prepared: PreparedChange
    head: TableHead
    passed: Sequence[Commit]
    files: dict[str, DataFile] = field(init=False)
    moves: RowMoves = field(init=False, default_factory=RowMoves)
    known: Mapping[str, DataFile] | None = None
    """This state's entries of at least the files that the change names, if the caller has looked them up."""
    _since: RowsSince = field(init=False)
    _files_since: FilesSince = field(init=False)
    _known: dict[ChangeKind, str | None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        prepared_change, change = self.prepared, self.prepared.change
        paths = {*change.removed, *change.deletes}
        if self.known is not None:
            entries = {path: self.known[path] for path in paths if path in self.known}
        else:
            # Usually there is no other commit, so nothing needs another lookup.
            same = self.head.view is prepared_change.base.view
            entries = prepared_change.before if same else self.head.entries(paths)
        # A path may come back by another write, as another file.
        self.files = {
            path: file
            for path, file in entries.items()
            if file.write_id == prepared_change.before[path].write_id
        }
        self._files_since = FilesSince(prepared_change.base, self.head, self.passed)
        self._since = RowsSince(prepared_change.reader, prepared_change.base, self.head)

    def touched(self, kind: ChangeKind) -> str | None:
        """Return why the change cannot be rebased over the files that were added, or removed, since its
        base."""
        if kind not in self._known:
            adds_files = kind is ChangeKind.ADDED_FILES
            self._known[kind] = self._why_not_over_added() if adds_files else self._why_not_over_removed()
        return self._known[kind]

    def _why_not_over_added(self) -> str | None:
        return "with rows that this operation should have seen" if self._has_unseen_rows() else None

    def _why_not_over_removed(self) -> str | None:
        why = self.disturbance()
        if why is not None:
            return why
        if self._is_serializable and self.prepared.change.depends_on_rows_read and self._lost_rows():
            return "with rows that this operation has read"
        return None

    def disturbance(self) -> str | None:
        """Return why the rows that the change names cannot be changed as intended, at any place."""
        reasons = ((path, self._why_not(path)) for path in sorted(self.prepared.before))
        reasons_by_path = {path: why for path, why in reasons if why is not None}
        if reasons_by_path and not self._finds_rows(reasons_by_path):
            return next(iter(reasons_by_path.values()))
        return None

    def _why_not(self, path: str) -> str | None:
        """Return why the file as a whole cannot be changed as intended."""
        change, file_before, file_now = self.prepared.change, self.prepared.before[path], self.files.get(path)
        if file_now is None:
            if self._only_deletes_passed and self._may_overlap:
                return None
            return f"the file {path} was removed or rewritten"
        if file_now.deletes == file_before.deletes:
            return None
        deleted_then, deleted_now = self.prepared.vector(file_before), self.prepared.vector(file_now)
        if deleted_then == deleted_now:
            return None
        if deleted_then - deleted_now:
            return f"deleted rows of {path} came back"
        if path in change.removed and not self._may_overlap:
            return f"rows of {path} were deleted, which this operation rewrites"
        if (
            path in change.deletes
            and (deleted_now - deleted_then) & change.deletes[path]
            and not self._may_overlap
        ):
            return f"the same rows of {path} were deleted or updated"
        return None

    # By rows

    def _finds_rows(self, disturbed: dict[str, str]) -> bool:
        """Return whether the change is still possible, because others have changed other rows of these files.

        If so, it puts the present places of its rows in `moves`. If not, it puts the reason in `disturbed`.
        """
        prepared_change, change = self.prepared, self.prepared.change
        if not self._may_move or any(map(self._came_back, disturbed)):
            return False
        disturbances = [
            DisturbedFile(prepared_change.before[path], self._died(path), change.deletes.get(path))
            for path in disturbed
        ]
        metadata = prepared_change.base.metadata
        try:
            row_moves = moves(
                disturbances,
                files_to_arrow(prepared_change.files, metadata.schema, metadata.specs),
                prepared_change.reader,
                self._since,
                only_deletes=change.operation is OperationKind.DELETE_ROWS and not self._is_step,
                only_copies=change.operation is OperationKind.COMPACT,
            )
        except RowsUnclear:
            return False
        if row_moves is None:
            disturbed.update(dict.fromkeys(disturbed, "the same rows were deleted or updated"))
            return False
        self.moves = row_moves
        prepared_change.tracked.transaction.note_moved()
        return True

    def _died(self, path: str) -> BitMap | None:
        if path not in self.files:
            return None
        return self.prepared.vector(self.files[path]) - self.prepared.vector(self.prepared.before[path])

    def _came_back(self, path: str) -> bool:
        """Return whether rows of a file are live that were deleted on the base."""
        file_now, file_then = self.files.get(path), self.prepared.before[path]
        if file_now is None or file_now.deletes == file_then.deletes:
            return False
        return bool(self.prepared.vector(file_then) - self.prepared.vector(file_now))

    @property
    def _may_move(self) -> bool:
        """Return whether rows may be looked up by their ids.

        A compaction only looks into its own files and the files that it rewrites, and keeps each row that is
        live now. For it, the history of a row does not matter.
        """
        return self.prepared.change.operation is OperationKind.COMPACT or self._is_by_rows

    @property
    def _is_by_rows(self) -> bool:
        """Return whether ids and versions of rows show the changes of others. Rows that come back have old
        versions.

        New rows of a transaction have no ids yet, and stay at their place.
        """
        return not self._files_since.types_may_differ and not any(
            event.operation in _GOING_BACK for _, event in self._files_since.events
        )

    @property
    def _is_step(self) -> bool:
        """Return whether the change is a step of a transaction."""
        return self.prepared.tracked.transaction.is_open

    def _unless_disproved(self, ask: Callable[[RowsSince], bool]) -> bool:
        """Return an answer by rows, or true if there is none."""
        if not self._is_by_rows:
            return True
        try:
            return ask(self._since)
        except RowsUnclear:
            return True

    # By files

    @property
    def _may_overlap(self) -> bool:
        return _is_harmless_overlap(self.prepared.change, self._is_step)

    @property
    def _only_deletes_passed(self) -> bool:
        """Return whether missing files were removed with all of their rows, rather than rewritten."""
        deletes = (OperationKind.DELETE.value, OperationKind.TRUNCATE.value)
        return bool(self._files_since.events) and all(
            event.operation in deletes and not event.added_files
            for _, event in self._files_since.events
            if event.removed_files
        )

    @property
    def _is_serializable(self) -> bool:
        return ISOLATION.of(self.prepared.base.metadata.properties) == SERIALIZABLE

    def _lost_rows(self) -> bool:
        """Return whether rows that the change has read are gone since its base, or were changed."""
        since = self._files_since
        if since.rows_moved and not since.types_may_differ:
            removed_tables = since.removed_by_others
        else:
            removed_tables = [self.prepared.base.files_only_here(self.head.view)]
        if not any(map(self._may_match, removed_tables)):
            return False
        condition = self.prepared.bound
        return condition is None or self._unless_disproved(lambda since: since.took(condition))

    def _has_unseen_rows(self) -> bool:
        """Return whether rows were added since the base that the change should have seen."""
        events = [
            (commit, event)
            for commit, event in self._files_since.events
            if event.operation not in self._harmless
        ]
        condition = self.prepared.bound
        if condition is None or self._files_since.types_may_differ:
            # Bounds in a commit have the column types of that time.
            return any(event.added_rows for _, event in events)
        if not any(
            self._may_match(self._added(*commit_event))
            for commit_event in events
            if commit_event[1].added_rows
        ):
            return False
        return self._unless_disproved(lambda since: since.brought(condition, self._later))

    @property
    def _harmless(self) -> tuple[str, ...]:
        """The operations whose rows the change does not need to have seen.

        A delete and a compaction only copy rows. Under snapshot isolation, an append counts as later.
        """
        copy_operations = (OperationKind.DELETE.value, *sorted(MOVING))
        return copy_operations if self._is_serializable else (*copy_operations, OperationKind.APPEND.value)

    @property
    def _later(self) -> set[int]:
        """The versions whose rows count as later, at any place: versions with appends and nothing else."""
        if self._is_serializable:
            return set()
        append_versions = {
            commit.version
            for commit, event in self._files_since.events
            if event.operation == OperationKind.APPEND.value
        }
        return append_versions - {
            commit.version
            for commit, event in self._files_since.events
            if event.operation != OperationKind.APPEND.value
        }

    def _added(self, commit: Commit, event: FilesChanged) -> pa.Table:
        """Return the files that an event added, without files that only got a larger vector."""
        # Operations that go back may make a vector smaller.
        is_back = event.operation in _GOING_BACK
        return (self._files_since.added_by if is_back else self._files_since.only_added_by)(commit, event)

    def _may_match(self, files: pa.Table) -> bool:
        files = files.filter(pc.greater(files["rows"], 0))
        condition = self.prepared.bound
        if condition is None or not files.num_rows:
            return bool(files.num_rows)
        return bool(pc.any(may_match(files, condition, self.head.metadata.specs), min_count=0).as_py())

    @property
    def new_files(self) -> dict[str, DataFile]:
        """The files that the change has written, as they were written."""
        return {file.path: file for file in self.prepared.files}

    @property
    def removed(self) -> list[DataFile]:
        """The files that the change rewrites, as far as they still exist."""
        return [self.files[path] for path in sorted(self.prepared.change.removed) if path in self.files]

    def vectors(self) -> tuple[dict[str, DataFile], dict[str, BitMap]]:
        """Return files by path, and the deleted rows that the change gives them. The entries are without
        these rows.

        The change's own files are included.
        """
        entries = self.files | self.head.entries(self.moves.deletes)
        # All rows of a missing file are deleted already, or are elsewhere.
        deletes = {
            path: positions for path, positions in self.prepared.change.deletes.items() if path in self.files
        }
        vectors = {
            path: self._vector(entries[path], positions)
            for path, positions in [*deletes.items(), *self.moves.deletes.items()]
        }
        return entries | self.new_files, {**vectors, **self.moves.dead}

    def _vector(self, file: DataFile, positions: BitMap) -> BitMap:
        """Return the rows of a file that are deleted, with these."""
        return self.prepared.vector(file) | positions


@dataclass(frozen=True, slots=True)
class RebasedFiles:
    """The effect of a change of rows on files: `added` entries as they come, `changed` entries before and
    after."""

    added: Sequence[DataFile] = ()
    removed: Sequence[RemovedFile] = ()
    changed: Sequence[tuple[DataFile, DataFile]] = ()

    @property
    def is_nothing(self) -> bool:
        return not (self.added or self.removed or self.changed)


def made(rebases: Sequence[RowRebase], earlier: RebasedFiles | None = None) -> RebasedFiles:
    """Return the joint effect of changes that the same write prepared, on the same state.

    If an `earlier` change of the same commit has deleted other rows of the same files, this is the effect
    after it.
    """
    prepared_change = rebases[0].prepared
    own = {path: file for rebase in rebases for path, file in rebase.new_files.items()}
    files: dict[str, DataFile] = {}
    vectors: dict[str, BitMap] = {}
    for rebase in rebases:
        entries, more = rebase.vectors()
        files |= entries
        vectors |= more
    for file_before, file_after in _changed_by(earlier):
        if file_before.path in vectors:
            files[file_before.path] = file_after
            vectors[file_before.path] = vectors[file_before.path] | prepared_change.vector(file_after)
    emptied_files, changed_files = with_deletes(
        prepared_change.tracked, prepared_change.write, files, vectors
    )
    return RebasedFiles(
        added=_without_dead(own, emptied_files, changed_files),
        removed=[
            *(removed_file(file) for rebase in rebases for file in rebase.removed),
            *(file for file in emptied_files if file.path not in own),
        ],
        changed=[pair for pair in changed_files if pair[0].path not in own],
    )


def _changed_by(earlier: RebasedFiles | None) -> Sequence[tuple[DataFile, DataFile]]:
    return () if earlier is None else earlier.changed


def draft_of(rebases: Sequence[RowRebase]) -> Draft:
    """Return the commit of changes that the same write prepared, on the same state, all at once."""
    prepared_change, head = rebases[0].prepared, rebases[0].head
    effect = made(rebases)
    if effect.is_nothing:
        raise NothingToDo("all rows that were to be deleted or copied are gone, or elsewhere")
    condition = prepared_change.change.condition
    event, blobs = files_event(
        prepared_change.change.operation,
        with_ids(effect.added, head.state.next_row),
        effect.removed,
        head.metadata,
        None if condition is None else normalized(str(condition)),
        effect.changed,
    )
    event = msgspec.structs.replace(
        event, inserted_rows=prepared_change.change.inserted, updated_rows=prepared_change.change.updated
    )
    identity_events = taken_events(head.view, prepared_change.change.values, prepared_change.name)
    return Draft(events=encode([*identity_events, event]), blobs=blobs, write=prepared_change.write)


def _without_dead(
    own: Mapping[str, DataFile],
    emptied_files: Sequence[RemovedFile],
    changed: Sequence[tuple[DataFile, DataFile]],
) -> list[DataFile]:
    """Return the files that a change has written, as they are added. A file without a live row is not
    added."""
    live = {
        **own,
        **{file_before.path: file_after for file_before, file_after in changed if file_before.path in own},
    }
    for file in emptied_files:
        live.pop(file.path, None)
    return list(live.values())


def _is_harmless_overlap(change: RowChange, in_transaction: bool) -> bool:
    """Return whether rows that another commit deletes too are no conflict, because the change only deletes.

    In a transaction they are a conflict, because another of its steps may have copied the row.
    """
    return change.operation is OperationKind.DELETE_ROWS and not change.files and not in_transaction
