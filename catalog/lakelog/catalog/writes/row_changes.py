"""Changes of rows: delete, update, merge and compaction, as an engine prepared them by reading files of one version.

Such a change names files that are replaced by new ones (removed), rows of files by their positions (deletes), and new
files. It was computed from its base. So it is rebased over other commits only where these leave the rows that it
changes alone, and add none that it should have seen; see `conflicts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.files import (
    DataFile,
    Positions,
    check_files,
    check_taken,
    check_written_by,
    decode_files,
    decode_removed,
    deletes_to_json,
    files_to_arrow,
    of_write,
    positions_of,
    removed_file,
    with_ids,
    without,
)
from lakelog.catalog.logs import (
    NothingToDo,
    TableHead,
    Token,
    Written,
    check_conflicts,
    files_event,
    no_files,
    read_vector,
    taken_events,
    with_deletes,
)
from lakelog.catalog.planning import bind, may_match
from lakelog.catalog.schema import ISOLATION, SERIALIZABLE, Predicate, ValuesTaken, value_of
from lakelog.catalog.state import (
    MAIN,
    ChangeKind,
    FastForwarded,
    FilesChanged,
    Operation,
    RolledBack,
    SchemaChanged,
    TableState,
    encode,
    normalized,
    table_events,
)
from lakelog.catalog.writes.identity_values import with_values
from lakelog.log import Commit, Committed, Draft, View, WriteRef
from lakelog.log.errors import InvalidInput

if TYPE_CHECKING:
    from pyroaring import BitMap

_OPERATIONS = {
    each.word: each for each in (Operation.DELETE_ROWS, Operation.UPDATE, Operation.MERGE, Operation.COMPACT)
}


_GOING_BACK = (Operation.ROLLBACK.value, Operation.SET_CURRENT.value, Operation.FAST_FORWARD.value)


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
    prepared = _Prepared(base, change, write)
    written = Written(base.version, base.schema, no_files, lambda kind: "rows were changed")
    base.check_own_steps(change.operation, written)
    return base.commit(prepared.decide, token)


class _Prepared:
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
        self._vectors: dict[str, BitMap] = {}
        self._check_input()
        self._keep_partitions()

    def decide(self, current: View[TableState], passed: Sequence[Commit]) -> Draft:
        now = _Now(
            self, self.base.at(current), [commit for commit in passed if commit.version > self.base.version]
        )
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


@dataclass(slots=True)
class _Now:
    """A state to decide a change on, and the commits between the change's base and that state."""

    prepared: _Prepared
    head: TableHead
    passed: Sequence[Commit]
    files: dict[str, DataFile] = field(init=False)
    events: list[tuple[Commit, FilesChanged]] = field(init=False)
    schema_changed: bool = field(init=False)

    def __post_init__(self) -> None:
        change = self.prepared.change
        self.files = self.head.entries({*change.removed, *change.deletes})
        events = [(commit, event) for commit in self.passed for event in table_events(commit)]
        self.events = [(commit, event) for commit, event in events if isinstance(event, FilesChanged)]
        self.schema_changed = any(
            isinstance(event, SchemaChanged | RolledBack)
            or (isinstance(event, FastForwarded) and event.branch == MAIN)
            for _, event in events
        )

    def touched(self, kind: ChangeKind) -> str | None:
        """Return why the change cannot be rebased over the files that were added, or removed, since its base."""
        if kind is ChangeKind.ADDED_FILES:
            return "with rows that this operation should have seen" if self._has_unseen_rows() else None
        for path in sorted(self.prepared.before):
            why = self._why_not(path)
            if why is not None:
                return why
        if self._is_serializable and self.prepared.change.depends_on_rows_read:
            gone = self.prepared.base.files_only_here(self.head.view)
            if self._may_match(gone):
                return "with rows that this operation has read"
        return None

    def _why_not(self, path: str) -> str | None:
        change, before, now = self.prepared.change, self.prepared.before[path], self.files.get(path)
        if now is None or now.write_id != before.write_id:
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

    @property
    def _may_overlap(self) -> bool:
        return _is_harmless_overlap(self.prepared.change, self.prepared.tracked.transaction.is_open)

    @property
    def _only_deletes_passed(self) -> bool:
        """Whether missing files were removed with all of their rows, rather than rewritten."""
        deletes = (Operation.DELETE.value, Operation.TRUNCATE.value)
        return bool(self.events) and all(
            event.operation in deletes and not event.added_files
            for _, event in self.events
            if event.removed_files
        )

    @property
    def _is_serializable(self) -> bool:
        return value_of(self.prepared.base.metadata.properties, ISOLATION) == SERIALIZABLE

    def _has_unseen_rows(self) -> bool:
        """Return whether rows were added since the base that the change should have seen, even if removed since."""
        events = [(commit, event) for commit, event in self.events if event.operation not in self._harmless]
        if self.prepared.bound is None or self.schema_changed:
            # Bounds in a commit have the types that columns had then.
            return any(event.added_rows for _, event in events)
        return any(self._may_match(self._added(*each)) for each in events if each[1].added_rows)

    @property
    def _harmless(self) -> tuple[str, ...]:
        """The operations whose rows the change does not need to have seen.

        A delete and a compaction only copy rows; under snapshot isolation, an append counts as later.
        """
        copying = (Operation.DELETE.value, Operation.COMPACT.value)
        return copying if self._is_serializable else (*copying, Operation.APPEND.value)

    def _added(self, commit: Commit, event: FilesChanged) -> pa.Table:
        """Return the files that an event added, without those that only got a larger vector."""
        metadata, blobs = self.head.metadata, self._sidecars(commit, event)
        added = (
            files_to_arrow(event.added, metadata.schema, metadata.specs)
            if event.added_sidecar is None
            else decode_files(blobs[event.added_sidecar])
        )
        if event.operation in _GOING_BACK:
            # These operations may make a vector smaller.
            return added
        removed = (
            event.removed if event.removed_sidecar is None else decode_removed(blobs[event.removed_sidecar])
        )
        return without(added, [file.path for file in removed])

    def _sidecars(self, commit: Commit, event: FilesChanged) -> Sequence[bytes]:
        if event.added_sidecar is None and event.removed_sidecar is None:
            return ()
        blobs = self.prepared.tracked.log.replay.sidecars([commit])[commit.version]
        if blobs is None:
            raise CommitConflict(
                f"version {commit.version} of {self.prepared.name} expired while a change that began before it was "
                "committed: run the statement again",
                version=commit.version,
            )
        return blobs

    def _may_match(self, files: pa.Table) -> bool:
        files = files.filter(pc.greater(files["rows"], 0))
        bound = self.prepared.bound
        if bound is None or not files.num_rows:
            return bool(files.num_rows)
        return bool(pc.any(may_match(files, bound, self.head.metadata.specs), min_count=0).as_py())

    def draft(self) -> Draft:
        prepared, change = self.prepared, self.prepared.change
        removed = [removed_file(self.files[path]) for path in sorted(change.removed) if path in self.files]
        # All rows of a missing file are deleted already.
        vectors = {
            path: self._vector(path, positions)
            for path, positions in change.deletes.items()
            if path in self.files
        }
        emptied, changed = with_deletes(prepared.tracked, prepared.write, self.files, vectors)
        event, blobs = files_event(
            change.operation,
            with_ids(prepared.files, self.head.state.next_row),
            [*removed, *emptied],
            self.head.metadata,
            None if change.condition is None else normalized(str(change.condition)),
            changed,
        )
        taken = taken_events(self.head.view, change.values, prepared.name)
        return Draft(events=encode([*taken, event]), blobs=blobs, write=prepared.write)

    def _vector(self, path: str, positions: BitMap) -> BitMap:
        """Return the rows of a file that are deleted, with these."""
        return self.prepared.vector(self.files[path]) | positions


def _is_harmless_overlap(change: RowChange, in_transaction: bool) -> bool:
    """Return whether rows that another commit deletes too are no conflict: where the change only deletes.

    Not in a transaction: another of its steps may have copied the row.
    """
    return change.operation is Operation.DELETE_ROWS and not change.files and not in_transaction
