"""A change of rows on a later state than the one that it was prepared on: whether it can be made there, and how.

A file that others have changed since is judged as a whole first, by its path, vector and statistics. Only where that
would be a conflict are rows looked at, by their ids (see `rows_since`): a change goes on where others have changed
other rows. Rows that it changes and that have moved are deleted where they are now. Of the files that it wrote, copies
of rows that others have changed, deleted or moved are dead from the start, so nothing is written again. Rule: what is
not certain is a conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import (
    DataFile,
    RemovedFile,
    files_to_arrow,
    removed_file,
    with_ids,
)
from lakelog.catalog.core.logs import NothingToDo, TableHead, files_event, taken_events, with_deletes
from lakelog.catalog.core.planning import may_match
from lakelog.catalog.core.schema import ISOLATION, SERIALIZABLE, value_of
from lakelog.catalog.core.state import (
    MOVING,
    ChangeKind,
    FilesChanged,
    Operation,
    encode,
    normalized,
)
from lakelog.catalog.core.writes.files_since import FilesSince
from lakelog.catalog.core.writes.moved_rows import Disturbed, Moves, moves
from lakelog.catalog.core.writes.prepared_rows import Prepared, RowChange
from lakelog.catalog.core.writes.row_reader import Unclear
from lakelog.catalog.core.writes.rows_since import RowsSince
from lakelog.log import Commit, Draft

if TYPE_CHECKING:
    from pyroaring import BitMap

_GOING_BACK = (Operation.ROLLBACK.value, Operation.SET_CURRENT.value, Operation.FAST_FORWARD.value)


@dataclass(slots=True)
class Rebase:
    """A state to decide a change on, and the commits between the change's base and that state."""

    prepared: Prepared
    head: TableHead
    passed: Sequence[Commit]
    files: dict[str, DataFile] = field(init=False)
    moves: Moves = field(init=False, default_factory=Moves)
    known: Mapping[str, DataFile] | None = None
    """The entries of this state of at least the files that the change names, where the caller has looked them up."""
    _since: RowsSince = field(init=False)
    _files_since: FilesSince = field(init=False)
    _known: dict[ChangeKind, str | None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        prepared, change = self.prepared, self.prepared.change
        named = {*change.removed, *change.deletes}
        if self.known is not None:
            there = {path: self.known[path] for path in named if path in self.known}
        else:
            # Mostly there is no other commit, and so nothing to look up again.
            same = self.head.view is prepared.base.view
            there = prepared.before if same else self.head.entries(named)
        # A path may come back by another write: that is another file.
        self.files = {
            path: file for path, file in there.items() if file.write_id == prepared.before[path].write_id
        }
        self._files_since = FilesSince(prepared.base, self.head, self.passed)
        self._since = RowsSince(prepared.reader, prepared.base, self.head)

    def touched(self, kind: ChangeKind) -> str | None:
        """Return why the change cannot be rebased over the files that were added, or removed, since its base."""
        if kind not in self._known:
            added = kind is ChangeKind.ADDED_FILES
            self._known[kind] = self._why_not_over_added() if added else self._why_not_over_removed()
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
        """Return why the rows that the change names cannot be changed as they were to be, wherever they are now."""
        found = ((path, self._why_not(path)) for path in sorted(self.prepared.before))
        disturbed = {path: why for path, why in found if why is not None}
        if disturbed and not self._is_moved(disturbed):
            return next(iter(disturbed.values()))
        return None

    def _why_not(self, path: str) -> str | None:
        """Return why the file as a whole cannot be changed as it was to be."""
        change, before, now = self.prepared.change, self.prepared.before[path], self.files.get(path)
        if now is None:
            if self._only_deletes_passed and self._may_overlap:
                return None
            return f"the file {path} was removed or rewritten"
        if now.deletes == before.deletes:
            return None
        then, gone = self.prepared.vector(before), self.prepared.vector(now)
        if then == gone:
            return None
        if then - gone:
            return f"deleted rows of {path} came back"
        if path in change.removed and not self._may_overlap:
            return f"rows of {path} were deleted, which this operation rewrites"
        if path in change.deletes and (gone - then) & change.deletes[path] and not self._may_overlap:
            return f"the same rows of {path} were deleted or updated"
        return None

    # By rows

    def _is_moved(self, disturbed: dict[str, str]) -> bool:
        """Return whether the change can be made all the same, as others have changed other rows of these files; if not,
        say in `disturbed` why not."""
        prepared, change = self.prepared, self.prepared.change
        if not self._may_move or any(map(self._came_back, disturbed)):
            return False
        each = [
            Disturbed(prepared.before[path], self._died(path), change.deletes.get(path)) for path in disturbed
        ]
        metadata = prepared.base.metadata
        try:
            found = moves(
                each,
                files_to_arrow(prepared.files, metadata.schema, metadata.specs),
                prepared.reader,
                self._since,
                only_deletes=change.operation is Operation.DELETE_ROWS and not self._is_step,
                only_copies=change.operation is Operation.COMPACT,
            )
        except Unclear:
            return False
        if found is None:
            disturbed.update(dict.fromkeys(disturbed, "the same rows were deleted or updated"))
            return False
        self.moves = found
        prepared.tracked.transaction.note_moved()
        return True

    def _died(self, path: str) -> BitMap | None:
        if path not in self.files:
            return None
        return self.prepared.vector(self.files[path]) - self.prepared.vector(self.prepared.before[path])

    def _came_back(self, path: str) -> bool:
        """Return whether rows of a file are live that were deleted on the base."""
        now, then = self.files.get(path), self.prepared.before[path]
        if now is None or now.deletes == then.deletes:
            return False
        return bool(self.prepared.vector(then) - self.prepared.vector(now))

    @property
    def _may_move(self) -> bool:
        """Whether rows may be looked for by their ids. A compaction looks only into its own files and those that it
        rewrites, and keeps each row that is live now: how that came about is no matter."""
        return self.prepared.change.operation is Operation.COMPACT or self._is_by_rows

    @property
    def _is_by_rows(self) -> bool:
        """Whether ids and versions of rows show what others have changed: what comes back has old ones. Rows that are
        new in a transaction have none yet, and stay where they are."""
        return not self._files_since.types_changed and not any(
            event.operation in _GOING_BACK for _, event in self._files_since.events
        )

    @property
    def _is_step(self) -> bool:
        """Whether the change is a step of a transaction."""
        return self.prepared.tracked.transaction.is_open

    def _unless_disproved(self, ask: Callable[[RowsSince], bool]) -> bool:
        """Return an answer by rows; true where there is none."""
        if not self._is_by_rows:
            return True
        try:
            return ask(self._since)
        except Unclear:
            return True

    # By files

    @property
    def _may_overlap(self) -> bool:
        return _is_harmless_overlap(self.prepared.change, self._is_step)

    @property
    def _only_deletes_passed(self) -> bool:
        """Whether missing files were removed with all of their rows, rather than rewritten."""
        deletes = (Operation.DELETE.value, Operation.TRUNCATE.value)
        return bool(self._files_since.events) and all(
            event.operation in deletes and not event.added_files
            for _, event in self._files_since.events
            if event.removed_files
        )

    @property
    def _is_serializable(self) -> bool:
        return value_of(self.prepared.base.metadata.properties, ISOLATION) == SERIALIZABLE

    def _lost_rows(self) -> bool:
        """Return whether rows that the change has read are gone since its base, or were changed."""
        since = self._files_since
        if since.rows_moved and not since.types_changed:
            gone = since.removed_by_others
        else:
            gone = [self.prepared.base.files_only_here(self.head.view)]
        if not any(map(self._may_match, gone)):
            return False
        bound = self.prepared.bound
        return bound is None or self._unless_disproved(lambda since: since.took(bound))

    def _has_unseen_rows(self) -> bool:
        """Return whether rows were added since the base that the change should have seen."""
        events = [
            (commit, event)
            for commit, event in self._files_since.events
            if event.operation not in self._harmless
        ]
        bound = self.prepared.bound
        if bound is None or self._files_since.types_changed:
            # Bounds in a commit have the types that columns had then.
            return any(event.added_rows for _, event in events)
        if not any(self._may_match(self._added(*each)) for each in events if each[1].added_rows):
            return False
        return self._unless_disproved(lambda since: since.brought(bound, self._later))

    @property
    def _harmless(self) -> tuple[str, ...]:
        """The operations whose rows the change does not need to have seen.

        A delete and a compaction only copy rows; under snapshot isolation, an append counts as later.
        """
        copying = (Operation.DELETE.value, *sorted(MOVING))
        return copying if self._is_serializable else (*copying, Operation.APPEND.value)

    @property
    def _later(self) -> set[int]:
        """The versions whose rows count as later, wherever they are now: those of appends and of nothing else."""
        if self._is_serializable:
            return set()
        appended = {
            commit.version
            for commit, event in self._files_since.events
            if event.operation == Operation.APPEND.value
        }
        return appended - {
            commit.version
            for commit, event in self._files_since.events
            if event.operation != Operation.APPEND.value
        }

    def _added(self, commit: Commit, event: FilesChanged) -> pa.Table:
        """Return the files that an event added, without those that only got a larger vector."""
        # Operations that go back may make a vector smaller.
        is_back = event.operation in _GOING_BACK
        return (self._files_since.added_by if is_back else self._files_since.only_added_by)(commit, event)

    def _may_match(self, files: pa.Table) -> bool:
        files = files.filter(pc.greater(files["rows"], 0))
        bound = self.prepared.bound
        if bound is None or not files.num_rows:
            return bool(files.num_rows)
        return bool(pc.any(may_match(files, bound, self.head.metadata.specs), min_count=0).as_py())

    @property
    def new_files(self) -> dict[str, DataFile]:
        """The files that the change has written, as they were written."""
        return {file.path: file for file in self.prepared.files}

    @property
    def removed(self) -> list[DataFile]:
        """The files that the change rewrites, as far as they are still there."""
        return [self.files[path] for path in sorted(self.prepared.change.removed) if path in self.files]

    def vectors(self) -> tuple[dict[str, DataFile], dict[str, BitMap]]:
        """Return the deleted rows that files get by the change, its own included, and their entries without these."""
        there = self.files | self.head.entries(self.moves.deletes)
        # All rows of a missing file are deleted already, or are elsewhere.
        taken = {path: each for path, each in self.prepared.change.deletes.items() if path in self.files}
        vectors = {
            path: self._vector(there[path], each)
            for path, each in [*taken.items(), *self.moves.deletes.items()]
        }
        return there | self.new_files, {**vectors, **self.moves.dead}

    def _vector(self, file: DataFile, positions: BitMap) -> BitMap:
        """Return the rows of a file that are deleted, with these."""
        return self.prepared.vector(file) | positions


@dataclass(frozen=True, slots=True)
class Made:
    """What a change of rows makes of files: `added` as they come, `changed` before and after."""

    added: Sequence[DataFile] = ()
    removed: Sequence[RemovedFile] = ()
    changed: Sequence[tuple[DataFile, DataFile]] = ()

    @property
    def is_nothing(self) -> bool:
        return not (self.added or self.removed or self.changed)


def made(rebases: Sequence[Rebase], earlier: Made | None = None) -> Made:
    """Return what changes make that were prepared by one write, on one state, all at once; where other rows of the same
    files were deleted by an `earlier` change of the same commit, after that."""
    prepared = rebases[0].prepared
    own = {path: file for each in rebases for path, file in each.new_files.items()}
    files: dict[str, DataFile] = {}
    vectors: dict[str, BitMap] = {}
    for each in rebases:
        there, more = each.vectors()
        files |= there
        vectors |= more
    for before, after in _changed_by(earlier):
        if before.path in vectors:
            files[before.path] = after
            vectors[before.path] = vectors[before.path] | prepared.vector(after)
    emptied, changed = with_deletes(prepared.tracked, prepared.write, files, vectors)
    return Made(
        added=_without_dead(own, emptied, changed),
        removed=[
            *(removed_file(file) for each in rebases for file in each.removed),
            *(file for file in emptied if file.path not in own),
        ],
        changed=[pair for pair in changed if pair[0].path not in own],
    )


def _changed_by(earlier: Made | None) -> Sequence[tuple[DataFile, DataFile]]:
    return () if earlier is None else earlier.changed


def draft_of(rebases: Sequence[Rebase]) -> Draft:
    """Return the commit that makes changes which were prepared by one write, on one state, all at once."""
    prepared, head = rebases[0].prepared, rebases[0].head
    found = made(rebases)
    if found.is_nothing:
        raise NothingToDo("all rows that were to be deleted or copied are gone, or elsewhere")
    condition = prepared.change.condition
    event, blobs = files_event(
        prepared.change.operation,
        with_ids(found.added, head.state.next_row),
        found.removed,
        head.metadata,
        None if condition is None else normalized(str(condition)),
        found.changed,
    )
    event = msgspec.structs.replace(
        event, inserted_rows=prepared.change.inserted, updated_rows=prepared.change.updated
    )
    taken = taken_events(head.view, prepared.change.values, prepared.name)
    return Draft(events=encode([*taken, event]), blobs=blobs, write=prepared.write)


def _without_dead(
    own: Mapping[str, DataFile], emptied: Sequence[RemovedFile], changed: Sequence[tuple[DataFile, DataFile]]
) -> list[DataFile]:
    """Return the files that a change has written, each as it is to be added: without a live row, it is not."""
    live = {**own, **{before.path: after for before, after in changed if before.path in own}}
    for file in emptied:
        live.pop(file.path, None)
    return list(live.values())


def _is_harmless_overlap(change: RowChange, in_transaction: bool) -> bool:
    """Return whether rows that another commit deletes too are no conflict: where the change only deletes.

    Not in a transaction: another of its steps may have copied the row.
    """
    return change.operation is Operation.DELETE_ROWS and not change.files and not in_transaction
