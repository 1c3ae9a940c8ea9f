"""Changes of a table's contents: append, overwrite by filter or by partition, truncate, delete of whole files.

Each is decided on metadata, so it can be decided again on a newer state after a lost race, if the conflict matrix
allows it. Files are removed only where it is proven that all of their rows match. Where an overwrite matches files in
part, the rows to be replaced are found by reading (see `partial_files`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import (
    DataFile,
    Positions,
    check_files,
    check_taken,
    check_written_by,
    empty,
    encode_table,
    is_elsewhere,
    joined,
    of_write,
    positions_of,
    with_ids,
    with_rows,
    without_uncommitted,
)
from lakelog.catalog.core.logs import (
    Changed,
    NothingToDo,
    TableHead,
    Token,
    Written,
    as_removed,
    check_conflicts,
    files_event,
    merged_drafts,
    naming,
    taken_events,
)
from lakelog.catalog.core.parquet import kept_by_commit
from lakelog.catalog.core.planning import (
    Bound,
    bind,
    keys_of,
    may_match,
    partition_key,
    partition_of_files,
    predicate_of_keys,
    unknown_parts,
)
from lakelog.catalog.core.schema import (
    ALWAYS_TRUE,
    Filter,
    Metadata,
    Predicate,
    Schema,
    ValuesTaken,
    as_predicate,
)
from lakelog.catalog.core.state import (
    ChangeKind,
    FilesChanged,
    Operation,
    TableState,
    check_not_adopted,
    encode,
    normalized,
)
from lakelog.catalog.core.writes.files_since import FilesSince
from lakelog.catalog.core.writes.identity_values import with_values
from lakelog.catalog.core.writes.moved_contents import FirstReplaced, moved_conflict
from lakelog.catalog.core.writes.partial_files import PartialFiles, Replaced, matching_files
from lakelog.catalog.core.writes.row_rebase import Made
from lakelog.catalog.core.writes.stream_batches import StreamBatch, check_after, check_new
from lakelog.catalog.errors import CommitConflict
from lakelog.log import Carried, Commit, Draft, View, WriteRef
from lakelog.log.errors import InvalidInput, NotFound, Unsupported

if TYPE_CHECKING:
    from pyroaring import BitMap


class FilesMatchInPart(Unsupported):
    """The filter of a delete matches, or may match, only some rows of a file; only whole files can be deleted here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentsChange:
    """A change to be committed: `filter` belongs to overwrite and delete, and to no other operation.

    A delete has files only if they have no rows: they stand for partitions that stay. `batch` is the batch of a stream
    that the rows are, which is committed once. `values` were taken of identity columns for the rows of `files`, and are
    not committed yet. `deletes` are the positions of all rows that an overwrite replaces in files with others, by path;
    None where they were not searched: then lakelog has to know all of the filter; `copies` are the files into which the
    writer has copied the rows of these files that stay, None where it has not. With `keeps_partitions`, a delete keeps
    files without rows, which stand for
    partitions. The rows of an append are those of the appends that it `carries`, if any.
    """

    operation: Operation
    files: Sequence[DataFile] = ()
    filter: Predicate | None = None
    filter_text: str | None = None
    batch: StreamBatch | None = None
    values: Sequence[ValuesTaken] = ()
    deletes: Mapping[str, BitMap] | None = None
    copies: Sequence[DataFile] | None = None
    keeps_partitions: bool = False
    carries: Sequence[Carried] = ()


def change_of(
    operation: str,
    files: Sequence[DataFile],
    filter: Filter | None,
    batch: StreamBatch | None,
    values: Sequence[ValuesTaken],
    deletes: Sequence[Positions | Mapping[str, Any]] | None = None,
    copies: Sequence[DataFile] | None = None,
) -> ContentsChange:
    """Return the change that a writer requests. InvalidInput for a filter that does not belong to the operation, and
    for a missing one."""
    if operation == Operation.TRUNCATE.value and files:
        # New contents may come from a query of the old ones, so rows that were added meanwhile must not vanish.
        operation, filter = Operation.OVERWRITE.value, ALWAYS_TRUE
    if filter is not None and operation != Operation.OVERWRITE.value:
        raise InvalidInput(f"a filter belongs to an overwrite, not to {operation}: leave it out")
    if filter is None and operation == Operation.OVERWRITE.value:
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
    """Return whether lakelog knows exactly which rows match, so that an overwrite may replace these."""
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
        # One write is one commit: committing its files again must not add them twice.
        token = head.token_of(write)
    base = head.at_write_to_commit(write, token, may_be_proposed=change.operation is Operation.APPEND)
    if base is None:
        return head.refreshed()
    return head.after(commit(base, change, write=write, token=token))


def commit(
    base: TableHead,
    change: ContentsChange,
    *,
    write: WriteRef | None = None,
    token: Token | None = None,
) -> Changed:
    """Commit `change`, which was prepared against `base`, on the newest state that allows it.

    CommitConflict where the matrix says so, NoSuchTable when the table was dropped, BatchCommitted where it has the
    batch already, Unsupported for an unknown filter. Costs 1 PUT if there were no other commits, and the cost of
    `PartialFiles` where an overwrite matches files in part; for a delete, FilesMatchInPart.
    """
    files = of_write(change.files, write)
    check_files(files, base.schema, base.metadata.specs)
    check_taken(change.values, files, base.schema)
    return with_values(base, replace(change, files=files), lambda change: _commit(base, change, write, token))


def _commit(base: TableHead, change: ContentsChange, write: WriteRef | None, token: Token | None) -> Changed:
    if change.batch is not None:
        check_after(base, change.batch)
    # Bound once: a name in the filter means the column that had it when the change was prepared.
    bound = None if change.filter is None else bind(change.filter, base.schema)
    partial = _partial_files(base, change, bound, write)
    step: FirstReplaced | None = None

    def decide(view: View[TableState], passed: Sequence[Commit]) -> Draft:
        nonlocal step
        current = base.at(view)
        since = FilesSince(base, current, passed)
        if change.batch is not None:
            check_new(current.state.streams, change.batch, base.name)
        written = Written(
            base.version,
            base.schema,
            lambda kind: _is_replaced(base, current, change, bound, kind, since),
            values=change.values,
        )
        check_conflicts(change.operation, view, passed, written, base.name)
        _check_not_there(current, change.files)
        taken = taken_events(view, change.values, base.name)
        batch = [] if change.batch is None else [change.batch.event()]
        end = Draft(events=encode(batch), write=write, carries=tuple(change.carries))
        if step is not None and since.rows_moved:
            if _came_or_went(base, current, change, bound, since):
                raise moved_conflict(change.operation, current, "with rows that this operation may replace")
            by = write or WriteRef(id=base.logs.new_id(), version=base.version)
            copied, rest = step.on(current, change.operation, by, change.files, since.commits)
            return merged_drafts(
                [
                    Draft(events=encode(taken)),
                    *_file_drafts(change, current, copied, rest),
                    replace(end, write=by),
                ]
            )
        removed, some = _replaced_files(current, change, bound)
        if change.operation is Operation.DELETE and not (change.files or removed.num_rows or some.num_rows):
            raise NothingToDo("no row matches")
        replaced = Replaced()
        if some.num_rows:
            if partial is None:
                if step is not None:
                    raise moved_conflict(change.operation, current, "with rows that it should have seen")
                raise FilesMatchInPart(
                    f"the filter {change.filter_text or ''} of this {change.operation.value} matches some rows of a "
                    f"file of {base.name} but not all of them: use a filter on whole partitions"
                )
            replaced = partial.replaced(current, some, since.moved_to)
        whole = as_removed(removed)
        if base.tracked.transaction.is_open and step is None and change.operation is not Operation.APPEND:
            step = FirstReplaced(current, whole, replaced)
        copied = Made(added=replaced.copies, removed=replaced.rewritten)
        rest = Made(added=change.files, removed=[*whole, *replaced.emptied], changed=replaced.marked)
        return merged_drafts([Draft(events=encode(taken)), *_file_drafts(change, current, copied, rest), end])

    base.check_own_steps(change.operation, Written(base.version, base.schema, lambda kind: True))
    with kept_by_commit(base.tracked, [] if partial is None else partial.written):
        return base.commit(decide, token, shared=_only_adds(change))


def _only_adds(change: ContentsChange) -> bool:
    """Return whether a change takes nothing away, and needs no read: files from elsewhere are looked for."""
    return change.operation is Operation.APPEND and not any(is_elsewhere(file.path) for file in change.files)


def _check_not_there(current: TableHead, files: Sequence[DataFile]) -> None:
    """Refuse files from elsewhere that are in the table already: unlike new ones, they may be added a second time."""
    others = [file for file in files if is_elsewhere(file.path)]
    if not others:
        return
    check_not_adopted(current.state.adopted, others)
    known = [path for chunk in current.files_named({file.path for file in others}) for path in chunk["path"]]
    if known:
        more = f", and {len(known) - 1:,} more" if len(known) > 1 else ""
        raise InvalidInput(
            f"{current.name} has the file {known[0].as_py()} already{more}: its rows would be added twice"
        )


def _file_drafts(change: ContentsChange, current: TableHead, copied: Made, rest: Made) -> Iterator[Draft]:
    """Yield the changes of files: first that of rewritten files, if any, which adds no rows; then the rest."""
    metadata, text = current.metadata, _kept(change.filter_text)
    files = with_ids([*copied.added, *rest.added], current.state.next_row)
    copies, new = files[: len(copied.added)], files[len(copied.added) :]
    if not copied.is_nothing:
        event, blobs = files_event(
            Operation.DELETE_ROWS, copies, copied.removed, metadata, text, copied.changed
        )
        yield Draft(events=encode([event]), blobs=blobs)
    event, blobs = files_event(change.operation, new, rest.removed, metadata, text, rest.changed)
    event = msgspec.structs.replace(event, of_changes=len(change.carries))
    yield Draft(events=encode([event]), blobs=blobs)


def _kept(filter_text: str | None) -> str | None:
    """Return the text of a filter for a commit: like a statement's, without literals, which must not be kept."""
    return None if filter_text is None else normalized(filter_text)


def _replaced_files(
    current: TableHead, change: ContentsChange, bound: Bound | None
) -> tuple[pa.Table, pa.Table]:
    """Return the files that `change` removes, and those in which it may replace some rows."""
    with naming(current.tracked.log.location):
        return _matching(current, change, bound)


def _matching(current: TableHead, change: ContentsChange, bound: Bound | None) -> tuple[pa.Table, pa.Table]:
    match change.operation:
        case Operation.TRUNCATE:
            return with_rows(current.all_files()), empty()
        case Operation.OVERWRITE | Operation.DELETE:
            assert bound is not None, "these have a filter"
            whole, partial = matching_files(current, bound, in_part=change.deletes is not None)
            return (with_rows(whole) if change.keeps_partitions else whole), partial
        case Operation.OVERWRITE_PARTITIONS:
            whole, some = [], []
            for chunk in current.chunks():
                inside, unsure = _touched(chunk, change.files, current.metadata)
                whole.append(chunk.filter(inside))
                some.append(chunk.filter(unsure))
            return joined(whole), joined(some)
        case _:
            return empty(), empty()


def _partial_files(
    base: TableHead, change: ContentsChange, bound: Bound | None, write: WriteRef | None
) -> PartialFiles | None:
    """Return the rows that `change` replaces in files with other rows too; None where it replaces only whole files."""
    if change.operation not in (Operation.OVERWRITE, Operation.OVERWRITE_PARTITIONS):
        return None
    if write is None:
        raise InvalidInput("an overwrite needs the id of a write, for the names of its files: begin one")

    def find() -> tuple[pa.Table, Bound]:
        _, some = _replaced_files(base, change, bound)
        return some, bound or _bound_of_partitions(change.files, base.metadata)

    return PartialFiles(base, write, find, change.deletes, change.copies)


def _touched(chunk: pa.Table, files: Sequence[DataFile], metadata: Metadata) -> tuple[pa.Array, pa.Array]:
    """Return which files in `chunk` are in the partitions of `files`, and for which of them that is not known."""
    touched = _partitions(files, metadata)
    values, known = partition_of_files(chunk, metadata)
    keys = keys_of(values, chunk.num_rows)
    inside = pc.and_(known, pa.array([key in touched for key in keys], pa.bool_()))
    if pc.all(known, min_count=0).as_py():
        return inside, pc.invert(known)
    bound = _bound_of_partitions(files, metadata)
    unknown = pc.and_not(pc.greater(chunk["rows"].combine_chunks(), 0), known)
    return inside, pc.and_(may_match(chunk, bound, metadata.specs), unknown)


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
    bound: Bound | None,
    kind: ChangeKind,
    since: FilesSince,
) -> bool:
    """Return whether files that were added, or removed, between two views may hold rows that `change` replaces.

    Rows that were only moved by then do not count.
    """
    is_added = kind is ChangeKind.ADDED_FILES
    if since.rows_moved and not since.types_changed:
        found = since.added_by_others if is_added else since.removed_by_others
    else:
        here, there = (current, base) if is_added else (base, current)
        found = [here.files_only_here(there.view)]
    return any(_may_replace(files, change, bound, current.metadata) for files in found)


def _came_or_went(
    base: TableHead, current: TableHead, change: ContentsChange, bound: Bound | None, since: FilesSince
) -> bool:
    """Return whether others have added or removed rows that `change` replaces, which is not decided by them anew."""
    kinds = (ChangeKind.ADDED_FILES, ChangeKind.REMOVED_FILES)
    return any(_is_replaced(base, current, change, bound, kind, since) for kind in kinds)


def _may_replace(files: pa.Table, change: ContentsChange, bound: Bound | None, metadata: Metadata) -> bool:
    if change.operation is Operation.TRUNCATE:
        return bool(files.num_rows)
    if change.operation is Operation.OVERWRITE_PARTITIONS:
        inside, unsure = _touched(files, change.files, metadata)
        return bool(pc.any(pc.or_(inside, unsure), min_count=0).as_py())
    assert bound is not None, "an overwrite has a filter"
    return bool(pc.any(may_match(files, bound, metadata.specs), min_count=0).as_py())


def changed_rows(
    base: TableHead, current: TableHead, bound: Bound | None, passed: Callable[[], Iterable[Commit]]
) -> bool:
    """Return whether rows that match (None: any) may have been added or removed between two versions.

    `passed` returns the commits between them: where there were compactions, these say what others did.
    """
    specs = current.metadata.specs

    def may_hold(files: pa.Table) -> bool:
        if bound is None:
            return bool(files.num_rows)
        return bool(pc.any(may_match(files, bound, specs), min_count=0).as_py())

    differing = [here.files_only_here(there.view) for here, there in ((current, base), (base, current))]
    if not any(map(may_hold, differing)):
        return False
    try:
        since = FilesSince(base, current, list(passed()))
        if not since.rows_moved or since.types_changed:
            return True
        return any(map(may_hold, [*since.added_by_others, *since.removed_by_others]))
    except (NotFound, CommitConflict):
        return True  # the commits have expired


def moved_files(
    operation: Operation, added: pa.Table, removed: pa.Table, metadata: Metadata
) -> tuple[FilesChanged, tuple[bytes, ...]]:
    """As `files_event`, for files of another line or version, in the form of `FileSet.chunks`."""
    event, blobs = files_event(operation, (), as_removed(removed), metadata)
    if added.num_rows:
        # Always as Arrow: bounds and partition values keep their types.
        event = msgspec.structs.replace(
            event,
            added_sidecar=len(blobs),
            added_files=added.num_rows,
            added_rows=pc.sum(added["rows"]).as_py(),
            added_bytes=pc.sum(added["size"]).as_py(),
        )
        blobs = (*blobs, encode_table(without_uncommitted(added)))
    return event, blobs


def operation_named(name: str) -> Operation:
    """Return the operation of an engine's write by its name. InvalidInput for an unknown one."""
    allowed = (Operation.APPEND, Operation.OVERWRITE, Operation.OVERWRITE_PARTITIONS, Operation.TRUNCATE)
    for operation in allowed:
        if operation.value == name:
            return operation
    raise InvalidInput(
        f"{name!r} is not an operation of a write: use one of {', '.join(o.value for o in allowed)}"
    )
