"""Changes of a table's contents: append, overwrite by filter or by partition, truncate, delete of whole files.

Each is decided on metadata alone, so it can be decided again on a newer state after a lost race; what may go on then is
the conflict matrix's business. Files are removed only where it is proven that all of their rows have to go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.binding import bind
from lakelog.catalog.commits import Token, Written, check, files_event, gone_as_no_such_table
from lakelog.catalog.conflicts import Operation
from lakelog.catalog.data_file import DataFile, RemovedFile, check_files, of_write
from lakelog.catalog.events import encode
from lakelog.catalog.file_tables import joined
from lakelog.catalog.log_cache import TrackedLog
from lakelog.catalog.planning import partition_key, partition_keys
from lakelog.catalog.predicate import Predicate
from lakelog.catalog.pruning import match as match_files
from lakelog.catalog.pruning import may_match
from lakelog.catalog.table_state import Metadata, TableState
from lakelog.log import Commit, Committed, Draft, View, WriteRef
from lakelog.log.errors import InvalidInput, Unsupported


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is to be committed: `filter` belongs to overwrite and delete, and to no other operation."""

    operation: Operation
    files: Sequence[DataFile] = ()
    filter: Predicate | None = None
    filter_text: str | None = None


def commit(
    tracked: TrackedLog[TableState],
    base: View[TableState],
    change: Change,
    *,
    name: str,
    write: WriteRef | None = None,
    token: Token | None = None,
) -> Committed[TableState]:
    """Commit `change`, which was prepared against `base`, on the newest state that allows it.

    CommitConflict where the matrix says so, NoSuchTable when the table was dropped, Unsupported for a filter that cuts
    through files. Costs 1 PUT when nobody else committed.
    """

    files = of_write(change.files, write)
    check_files(files, base.state.current.schema, base.state.current.specs)

    def decide(current: View[TableState], passed: Sequence[Commit]) -> Draft:
        metadata = current.state.current
        written = Written(base=base.state.current, replaces=lambda added: _replaces(added, change, metadata))
        check(
            change.operation,
            current,
            passed,
            written,
            lambda write_id: _files_of(current, tracked, write_id),
            name,
        )
        removed = _removed(tracked, current, change, name)
        event, blobs = files_event(change.operation, files, removed, metadata, change.filter_text)
        return Draft(events=encode([event]), blobs=blobs, write=write)

    with gone_as_no_such_table(name):
        committed = tracked.log.commit(
            tracked.at_least(base.version),
            decide,
            commit_id=token.commit_id if token else None,
            base=min(base.version, token.base(tracked)) if token else base.version,
        )
    tracked.offer(committed.view)
    return committed


def removable(
    tracked: TrackedLog[TableState], view: View[TableState], filter_: Predicate
) -> list[RemovedFile] | None:
    """Return the files that a delete by `filter_` would remove, or None where it would cut through one of them."""
    metadata = view.state.current
    bound = bind(filter_, metadata.schema)
    removed: list[RemovedFile] = []
    for chunk in view.state.files.chunks(tracked.log.read_blobs):
        result = match_files(chunk, bound, metadata.specs)
        if not pc.all(pc.or_(result.all, result.none), min_count=0).as_py():
            return None
        removed.extend(_as_removed(chunk.filter(result.all)))
    return removed


def _removed(
    tracked: TrackedLog[TableState], view: View[TableState], change: Change, name: str
) -> list[RemovedFile]:
    match change.operation:
        case Operation.TRUNCATE:
            chunks = view.state.files.chunks(tracked.log.read_blobs)
            return [file for chunk in chunks for file in _as_removed(chunk)]
        case Operation.OVERWRITE | Operation.DELETE:
            assert change.filter is not None
            removed = removable(tracked, view, change.filter)
            if removed is None:
                raise Unsupported(
                    f"the filter {change.filter_text or ''} of this {change.operation.value} matches some rows of a "
                    f"file of {name} but not all of them: use a filter on whole partitions"
                )
            return removed
        case Operation.OVERWRITE_PARTITIONS:
            return _inpartition_keys(tracked, view, change.files, name)
        case _:
            return []


def _inpartition_keys(
    tracked: TrackedLog[TableState], view: View[TableState], files: Sequence[DataFile], name: str
) -> list[RemovedFile]:
    metadata = view.state.current
    touched = {partition_key(file, metadata.spec) for file in files}
    removed: list[RemovedFile] = []
    for chunk in view.state.files.chunks(tracked.log.read_blobs):
        if not pc.all(pc.equal(chunk["spec"], metadata.spec.id), min_count=0).as_py():
            raise Unsupported(
                f"{name} holds files of an earlier partitioning, of which it is not known which of today's partitions "
                "they belong to: overwrite by a filter instead of by partition, or rewrite those files first"
            )
        keys = partition_keys(chunk, metadata.spec)
        removed.extend(_as_removed(chunk.filter(pa.array([key in touched for key in keys], pa.bool_()))))
    return removed


def _replaces(added: pa.Table, change: Change, metadata: Metadata) -> bool:
    """Tell whether files that others added since may hold rows that `change` replaces."""
    if change.operation is Operation.OVERWRITE_PARTITIONS:
        touched = {partition_key(file, metadata.spec) for file in change.files}
        if not pc.all(pc.equal(added["spec"], metadata.spec.id), min_count=0).as_py():
            return True
        return any(key in touched for key in partition_keys(added, metadata.spec))
    assert change.filter is not None
    bound = bind(change.filter, metadata.schema)
    return bool(pc.any(may_match(added, bound, metadata.specs), min_count=0).as_py())


def _files_of(view: View[TableState], tracked: TrackedLog[TableState], write_id: str) -> pa.Table:
    chunks = view.state.files.chunks(tracked.log.read_blobs)
    found = [chunk.filter(pc.equal(chunk["write"], write_id)) for chunk in chunks]
    return joined(found)


def _as_removed(chunk: pa.Table) -> list[RemovedFile]:
    columns = (chunk[name].to_pylist() for name in ("path", "rows", "size"))
    return [
        RemovedFile(path=path, rows=rows, size_bytes=size) for path, rows, size in zip(*columns, strict=True)
    ]


def operation_named(name: str) -> Operation:
    """Return the operation that an engine's write asks for by `name`; InvalidInput for another one."""
    allowed = (Operation.APPEND, Operation.OVERWRITE, Operation.OVERWRITE_PARTITIONS, Operation.TRUNCATE)
    for operation in allowed:
        if operation.value == name:
            return operation
    raise InvalidInput(
        f"{name!r} is not an operation of a write: it is one of {', '.join(o.value for o in allowed)}"
    )
