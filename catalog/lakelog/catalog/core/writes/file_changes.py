"""Changes of a table's contents: append, overwrite by filter or by partition, truncate, delete of whole
files.

Each is decided on metadata. So after a lost race it can be decided again on a newer state, if the conflict
matrix allows it. Files are removed only if it is proven that all of their rows match. If an overwrite matches
files in part, the rows to replace are found by reading (see `partial_files`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.arrow_lists import encode_table
from lakelog.catalog.core.files.data_file import (
    DataFile,
    check_files,
    check_written_by,
    is_elsewhere,
    of_write,
)
from lakelog.catalog.core.files.deletion_vectors import DeletedPositions, positions_of
from lakelog.catalog.core.files.file_tables import empty, joined, with_rows
from lakelog.catalog.core.files.row_ids import with_ids, without_uncommitted
from lakelog.catalog.core.files.taken_values import check_taken
from lakelog.catalog.core.logs.changed import TableCommit
from lakelog.catalog.core.logs.commits import (
    NothingToDo,
    OperationFacts,
    Token,
    check_conflicts,
    files_event,
    taken_events,
)
from lakelog.catalog.core.logs.live_files import as_removed
from lakelog.catalog.core.logs.named_errors import naming
from lakelog.catalog.core.logs.table_head import TableHead
from lakelog.catalog.core.logs.transaction_steps import merged_drafts
from lakelog.catalog.core.parquet.leftovers import kept_by_commit
from lakelog.catalog.core.planning.binding import bind
from lakelog.catalog.core.planning.bound import Bound, unknown_parts
from lakelog.catalog.core.planning.partitions import keys_of, partition_of_files, predicate_of_keys
from lakelog.catalog.core.planning.pruning import may_match
from lakelog.catalog.core.planning.scan_plan import partition_key
from lakelog.catalog.core.schema.filters import Filter, as_predicate
from lakelog.catalog.core.schema.identity import ValuesTaken
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.schema.predicate import ALWAYS_TRUE, Predicate, paths_in
from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.state.adopted import check_not_adopted
from lakelog.catalog.core.state.conflicts import ChangeKind, OperationKind
from lakelog.catalog.core.state.events import FilesChanged, encode
from lakelog.catalog.core.state.statement_text import normalized
from lakelog.catalog.core.state.table_state import TableState
from lakelog.catalog.core.writes.files_since import FilesSince
from lakelog.catalog.core.writes.identity_values import with_values
from lakelog.catalog.core.writes.moved_contents import FirstReplaced, moved_conflict
from lakelog.catalog.core.writes.partial_files import FileReplacements, PartialFiles, matching_files
from lakelog.catalog.core.writes.row_rebase import RebasedFiles
from lakelog.catalog.core.writes.stream_batches import StreamBatch, check_after, check_new
from lakelog.catalog.errors import CommitConflict
from lakelog.log import CarriedChange, Commit, Draft, LogView, WriteRef
from lakelog.log.errors import InvalidInput, NotFound, Unsupported

if TYPE_CHECKING:
    from pyroaring import BitMap


class FilesMatchInPart(Unsupported):
    """The filter of a delete matches, or may match, only some rows of a file. Only whole files can be deleted
    here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentsChange:
    """A change to be committed. `filter` belongs to overwrite and delete, and to no other operation.

    A delete has files only if they have no rows: they stand for partitions that stay. `batch` is the stream
    batch of the rows, which is committed only once. `values` were taken of identity columns for the rows of
    `files`, and are not committed yet.

    `deletes` are the positions of all rows that an overwrite replaces in files with other rows, by path. It
    is None if they were not searched, and then lakelog has to understand the whole filter. `copies` are the
    files into which the writer has copied the remaining rows of these files, or None if it has not.

    With `keeps_partitions`, a delete keeps files without rows, which stand for partitions. The rows of an
    append are those of the appends that it `carries`, if any.
    """

    operation: OperationKind
    files: Sequence[DataFile] = ()
    filter: Predicate | None = None
    filter_text: str | None = None
    batch: StreamBatch | None = None
    values: Sequence[ValuesTaken] = ()
    deletes: Mapping[str, BitMap] | None = None
    copies: Sequence[DataFile] | None = None
    keeps_partitions: bool = False
    carries: Sequence[CarriedChange] = ()


def change_of(
    operation: str,
    files: Sequence[DataFile],
    filter: Filter | None = None,
    batch: StreamBatch | None = None,
    values: Sequence[ValuesTaken] = (),
    deletes: Sequence[DeletedPositions | Mapping[str, Any]] | None = None,
    copies: Sequence[DataFile] | None = None,
) -> ContentsChange:
    """Return the change that a writer requests.

    Raises InvalidInput for a filter that does not belong to the operation, and for a missing filter.
    """
    if operation == OperationKind.TRUNCATE.value and files:
        # New contents may come from a query of the old contents, so rows that were added since then must not
        # vanish.
        operation, filter = OperationKind.OVERWRITE.value, ALWAYS_TRUE
    if filter is not None and operation != OperationKind.OVERWRITE.value:
        raise InvalidInput(f"a filter belongs to an overwrite, not to {operation}: leave it out")
    if filter is None and operation == OperationKind.OVERWRITE.value:
        raise InvalidInput(
            "an overwrite needs a filter for the rows that it replaces: give one (ALWAYS_TRUE for all rows)"
        )
    predicate = None if filter is None else as_predicate(filter)
    return ContentsChange(
        operation=operation_named(operation),
        files=files,
        filter=predicate,
        filter_text=None if predicate is None else str(predicate),
        batch=batch,
        values=values,
        deletes=None if deletes is None else positions_of(deletes),
        copies=copies,
    )


def is_understood(predicate: Predicate, schema: Schema) -> bool:
    """Return whether lakelog knows exactly which rows match, so that an overwrite may replace them."""
    return not unknown_parts(bind(predicate, schema))


def commit_write(
    head: TableHead,
    write: WriteRef | None,
    change: ContentsChange,
    token: Token | None,
) -> TableHead:
    """Commit the files of `write`, which began on `head` or before, and return the newest version."""
    check_written_by([*change.files, *(change.copies or ())], write)
    if token is None and write is not None:
        # A write is a single commit. A repeated commit of its files must not add them twice.
        token = head.token_of(write)
    base = head.at_write_to_commit(write, token, may_be_proposed=change.operation is OperationKind.APPEND)
    if base is None:
        return head.refreshed()
    return head.after(commit(base, change, write=write, token=token))


def commit(
    base: TableHead,
    change: ContentsChange,
    *,
    write: WriteRef | None = None,
    token: Token | None = None,
) -> TableCommit:
    """Commit `change`, which was prepared against `base`, on the newest state that allows it.

    Raises CommitConflict if the matrix says so, NoSuchTable if the table was dropped, BatchCommitted if it
    already has the batch, and Unsupported for an unknown filter. Costs 1 PUT if there were no other commits.
    If an overwrite matches files in part, it also has the cost of `PartialFiles`. If a delete does, raises
    FilesMatchInPart.
    """
    files = of_write(change.files, write)
    check_files(files, base.schema, base.metadata.specs)
    check_taken(change.values, files, base.schema)
    return with_values(base, replace(change, files=files), lambda change: _commit(base, change, write, token))


def _commit(
    base: TableHead, change: ContentsChange, write: WriteRef | None, token: Token | None
) -> TableCommit:
    if change.batch is not None:
        check_after(base, change.batch)
    # Bound once: a name in the filter means the column that had this name when the change was prepared.
    condition = None if change.filter is None else bind(change.filter, base.schema)
    partial = _partial_files(base, change, condition, write)
    step: FirstReplaced | None = None

    def decide(view: LogView[TableState], passed_commits: Sequence[Commit]) -> Draft:
        nonlocal step
        current = base.at(view)
        since = FilesSince(base, current, passed_commits)
        if change.batch is not None:
            check_new(current.state.streams, change.batch, base.name)
        write_base = OperationFacts(
            base.version,
            base.schema,
            lambda kind: _is_replaced(base, current, change, condition, kind, since),
            values=change.values,
        )
        if change.filter is not None and current.metadata.generation == base.metadata.generation:
            _check_columns(base, current, change.operation, change.filter)
        check_conflicts(change.operation, view, passed_commits, write_base, base.name)
        _check_not_there(current, change.files)
        identity_events = taken_events(view, change.values, base.name)
        batch = [] if change.batch is None else [change.batch.event()]
        end = Draft(events=encode(batch), write=write, carries=tuple(change.carries))
        if step is not None and since.rows_moved:
            if _came_or_went(base, current, change, condition, since):
                raise moved_conflict(change.operation, current, "with rows that this operation may replace")
            by = write or WriteRef(id=base.logs.new_id(), version=base.version)
            copy_change, main_change = step.on(current, change.operation, by, change.files, since.commits)
            return merged_drafts(
                [
                    Draft(events=encode(identity_events)),
                    *_file_drafts(change, current, copy_change, main_change),
                    replace(end, write=by),
                ]
            )
        whole_files, partial_table = _replaced_files(current, change, condition)
        if change.operation is OperationKind.DELETE and not (
            change.files or whole_files.num_rows or partial_table.num_rows
        ):
            raise NothingToDo("no row matches")
        replacement = FileReplacements()
        if partial_table.num_rows:
            if partial is None:
                if step is not None:
                    raise moved_conflict(change.operation, current, "with rows that it should have seen")
                raise FilesMatchInPart(
                    f"the filter {change.filter_text or ''} of this {change.operation.value} matches some rows of a "
                    f"file of {base.name} but not all of them: use a filter on whole partitions"
                )
            replacement = partial.replaced(current, partial_table, since.moved_to)
        whole = as_removed(whole_files)
        if base.tracked.transaction.is_open and step is None and change.operation is not OperationKind.APPEND:
            step = FirstReplaced(current, whole, replacement)
        copy_change = RebasedFiles(added=replacement.copies, removed=replacement.rewritten)
        main_change = RebasedFiles(
            added=change.files, removed=[*whole, *replacement.emptied], changed=replacement.marked
        )
        return merged_drafts(
            [
                Draft(events=encode(identity_events)),
                *_file_drafts(change, current, copy_change, main_change),
                end,
            ]
        )

    base.check_own_steps(change.operation, OperationFacts(base.version, base.schema, lambda kind: True))
    with kept_by_commit(base.tracked, [] if partial is None else partial.written):
        return base.commit(decide, token, shared=_only_adds(change))


def _check_columns(
    base: TableHead, current: TableHead, operation: OperationKind, predicate: Predicate
) -> None:
    """Raise CommitConflict if a column of a condition has another type now, or a delete's column was dropped.

    The values in the condition were bound to the type of `base`. Other rows match them by the type of now. An overwrite
    has found its rows on `base`, with the values of a dropped column.
    """
    for path in paths_in(predicate):
        field = base.schema.get(path)
        if field is None:
            continue
        if not current.schema.has_id(field.id):
            if operation is OperationKind.DELETE:
                raise moved_conflict(operation, current, f"the column {dotted(path)} was dropped")
            continue
        type = current.schema.field_by_id(field.id).type
        if type != field.type:
            why = f"the column {dotted(path)} is a {type} now, and was a {field.type}"
            raise moved_conflict(operation, current, why)


def _only_adds(change: ContentsChange) -> bool:
    """Return whether a change takes nothing away, and needs no read. Files from elsewhere need a lookup."""
    return change.operation is OperationKind.APPEND and not any(
        is_elsewhere(file.path) for file in change.files
    )


def _check_not_there(current: TableHead, files: Sequence[DataFile]) -> None:
    """Raise InvalidInput if a file from elsewhere is in the table already. Unlike a new file, it could be
    added again."""
    foreign_files = [file for file in files if is_elsewhere(file.path)]
    if not foreign_files:
        return
    check_not_adopted(current.state.adopted, foreign_files)
    present_paths = [
        path for chunk in current.files_named({file.path for file in foreign_files}) for path in chunk["path"]
    ]
    if present_paths:
        more = f", and {len(present_paths) - 1:,} more" if len(present_paths) > 1 else ""
        raise InvalidInput(
            f"{current.name} has the file {present_paths[0].as_py()} already{more}: its rows would be added twice"
        )


def _file_drafts(
    change: ContentsChange, current: TableHead, copied_files: RebasedFiles, remaining_files: RebasedFiles
) -> Iterator[Draft]:
    """Yield the changes of files: first the rewritten files, if any, which add no rows, and then the rest."""
    metadata, text = current.metadata, _kept(change.filter_text)
    files = with_ids([*copied_files.added, *remaining_files.added], current.state.next_row)
    copies, new = files[: len(copied_files.added)], files[len(copied_files.added) :]
    if not copied_files.is_nothing:
        event, blobs = files_event(
            OperationKind.DELETE_ROWS, copies, copied_files.removed, metadata, text, copied_files.changed
        )
        yield Draft(events=encode([event]), blobs=blobs)
    event, blobs = files_event(
        change.operation, new, remaining_files.removed, metadata, text, remaining_files.changed
    )
    event = msgspec.structs.replace(event, of_changes=len(change.carries))
    yield Draft(events=encode([event]), blobs=blobs)


def _kept(filter_text: str | None) -> str | None:
    """Return a filter's text for a commit: like a statement's text, without literals, which must not be
    kept."""
    return None if filter_text is None else normalized(filter_text)


def _replaced_files(
    current: TableHead, change: ContentsChange, bound_condition: Bound | None
) -> tuple[pa.Table, pa.Table]:
    """Return the files that `change` removes, and the files in which it may replace some rows."""
    with naming(current.tracked.log.location):
        return _matching(current, change, bound_condition)


def _matching(
    current: TableHead, change: ContentsChange, bound_condition: Bound | None
) -> tuple[pa.Table, pa.Table]:
    match change.operation:
        case OperationKind.TRUNCATE:
            return with_rows(current.all_files()), empty()
        case OperationKind.OVERWRITE | OperationKind.DELETE:
            assert bound_condition is not None, "these have a filter"
            whole, partial = matching_files(current, bound_condition, in_part=change.deletes is not None)
            return (with_rows(whole) if change.keeps_partitions else whole), partial
        case OperationKind.OVERWRITE_PARTITIONS:
            whole, unsure_parts = [], []
            for chunk in current.chunks():
                inside, unsure = _touched(chunk, change.files, current.metadata)
                whole.append(chunk.filter(inside))
                unsure_parts.append(chunk.filter(unsure))
            return joined(whole), joined(unsure_parts)
        case _:
            return empty(), empty()


def _partial_files(
    base: TableHead, change: ContentsChange, bound_condition: Bound | None, write: WriteRef | None
) -> PartialFiles | None:
    """Return the rows that `change` replaces in files with other rows too, or None if it replaces only whole
    files."""
    if change.operation not in (OperationKind.OVERWRITE, OperationKind.OVERWRITE_PARTITIONS):
        return None
    if write is None:
        raise InvalidInput("an overwrite needs the id of a write, for the names of its files: begin one")

    def find() -> tuple[pa.Table, Bound]:
        _, partial_table = _replaced_files(base, change, bound_condition)
        return partial_table, bound_condition or _bound_of_partitions(change.files, base.metadata)

    return PartialFiles(base, write, find, change.deletes, change.copies)


def _touched(chunk: pa.Table, files: Sequence[DataFile], metadata: Metadata) -> tuple[pa.Array, pa.Array]:
    """Return a mask of the files in `chunk` that are in the partitions of `files`, and a mask of undecided
    files."""
    partition_keys = _partitions(files, metadata)
    values, has_partition = partition_of_files(chunk, metadata)
    keys = keys_of(values, chunk.num_rows)
    inside = pc.and_(has_partition, pa.array([key in partition_keys for key in keys], pa.bool_()))
    if pc.all(has_partition, min_count=0).as_py():
        return inside, pc.invert(has_partition)
    condition = _bound_of_partitions(files, metadata)
    unknown = pc.and_not(pc.greater(chunk["rows"].combine_chunks(), 0), has_partition)
    return inside, pc.and_(may_match(chunk, condition, metadata.specs), unknown)


def _partitions(files: Sequence[DataFile], metadata: Metadata) -> set[tuple[Any, ...]]:
    return {partition_key(file, metadata.spec) for file in files}


def _bound_of_partitions(files: Sequence[DataFile], metadata: Metadata) -> Bound:
    """Return a condition that is true for the rows of the partitions of `files`."""
    predicate = predicate_of_keys(metadata, _partitions(files, metadata))
    return bind(predicate, metadata.schema, case_sensitive=True)


def _is_replaced(
    base: TableHead,
    current: TableHead,
    change: ContentsChange,
    bound_condition: Bound | None,
    kind: ChangeKind,
    since: FilesSince,
) -> bool:
    """Return whether files that were added, or removed, between two views may hold rows that `change`
    replaces.

    Rows that were only moved since then do not count.
    """
    adds_files = kind is ChangeKind.ADDED_FILES
    if since.rows_moved and not since.types_may_differ:
        file_tables = since.added_by_others if adds_files else since.removed_by_others
    else:
        new_side, old_side = (current, base) if adds_files else (base, current)
        file_tables = [new_side.files_only_here(old_side.view)]
    return any(_may_replace(files, change, bound_condition, current.metadata) for files in file_tables)


def _came_or_went(
    base: TableHead,
    current: TableHead,
    change: ContentsChange,
    bound_condition: Bound | None,
    since: FilesSince,
) -> bool:
    """Return whether others have added or removed rows that `change` replaces, so that it cannot simply go
    on."""
    kinds = (ChangeKind.ADDED_FILES, ChangeKind.REMOVED_FILES)
    return any(_is_replaced(base, current, change, bound_condition, kind, since) for kind in kinds)


def _may_replace(
    files: pa.Table, change: ContentsChange, bound_condition: Bound | None, metadata: Metadata
) -> bool:
    if change.operation is OperationKind.TRUNCATE:
        return bool(files.num_rows)
    if change.operation is OperationKind.OVERWRITE_PARTITIONS:
        inside, unsure = _touched(files, change.files, metadata)
        return bool(pc.any(pc.or_(inside, unsure), min_count=0).as_py())
    assert bound_condition is not None, "an overwrite has a filter"
    return bool(pc.any(may_match(files, bound_condition, metadata.specs), min_count=0).as_py())


def changed_rows(
    base: TableHead, current: TableHead, bound_condition: Bound | None, passed: Callable[[], Iterable[Commit]]
) -> bool:
    """Return whether matching rows may have been added or removed between two versions. With `bound_condition` None,
    all rows match.

    `passed` returns the commits between them. If there were compactions, these commits show the changes of
    others.
    """
    specs = current.metadata.specs

    def may_hold(files: pa.Table) -> bool:
        if bound_condition is None:
            return bool(files.num_rows)
        return bool(pc.any(may_match(files, bound_condition, specs), min_count=0).as_py())

    different_files = [
        one_head.files_only_here(other_head.view)
        for one_head, other_head in ((current, base), (base, current))
    ]
    if not any(map(may_hold, different_files)):
        return False
    try:
        since = FilesSince(base, current, list(passed()))
        if not since.rows_moved or since.types_may_differ:
            return True
        return any(map(may_hold, [*since.added_by_others, *since.removed_by_others]))
    except (NotFound, CommitConflict):
        return True  # the commits have expired


def moved_files(
    operation: OperationKind, added: pa.Table, removed: pa.Table, metadata: Metadata
) -> tuple[FilesChanged, tuple[bytes, ...]]:
    """Return `files_event` for files of another line or version, in the form of `FileSet.chunks`."""
    event, blobs = files_event(operation, (), as_removed(removed), metadata)
    if added.num_rows:
        # Always as Arrow, so that bounds and partition values keep their types.
        event = msgspec.structs.replace(
            event,
            added_sidecar=len(blobs),
            added_files=added.num_rows,
            added_rows=pc.sum(added["rows"]).as_py(),
            added_bytes=pc.sum(added["size"]).as_py(),
        )
        blobs = (*blobs, encode_table(without_uncommitted(added)))
    return event, blobs


def operation_named(name: str) -> OperationKind:
    """Return the operation of an engine's write by its name. Raises InvalidInput for an unknown name."""
    operations = (
        OperationKind.APPEND,
        OperationKind.OVERWRITE,
        OperationKind.OVERWRITE_PARTITIONS,
        OperationKind.TRUNCATE,
    )
    for operation in operations:
        if operation.value == name:
            return operation
    raise InvalidInput(
        f"{name!r} is not an operation of a write: use one of {', '.join(o.value for o in operations)}"
    )
