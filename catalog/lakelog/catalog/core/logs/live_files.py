"""The data files of a view: all of them, those that another view lacks, and the keys that identify them."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.data_file import DELETES, RemovedFile
from lakelog.catalog.core.files.file_tables import empty, joined, without
from lakelog.catalog.core.files.manifests import FileChoice
from lakelog.catalog.core.logs.named_errors import naming
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.state.table_state import TableState
from lakelog.log import LogView


def chunks_of(
    tracked: TrackedLog[TableState],
    view: LogView[TableState],
    statistics: Collection[int] | None = None,
    choice: FileChoice | None = None,
) -> list[pa.Table]:
    """Return the live files of a view (see `FileSet.chunks`)."""
    return tracked.read(
        view, lambda view: view.state.files.chunks(tracked.log.read_blobs, statistics, choice)
    )


def files_named(
    tracked: TrackedLog[TableState], view: LogView[TableState], paths: Collection[str]
) -> list[pa.Table]:
    """Return those of `paths` that are live in a view, in the form of `FileSet.chunks`."""
    if not paths:
        return []
    path_array = pa.array(sorted(paths), pa.string())
    return tracked.read(view, lambda view: view.state.files.named(tracked.log.read_blobs, path_array))


def all_files(tracked: TrackedLog[TableState], view: LogView[TableState]) -> pa.Table:
    """Return the live files of a view, in the form of `FileSet.chunks`."""
    with naming(tracked.log.location):
        return joined(chunks_of(tracked, view))


def files_only_in(
    tracked: TrackedLog[TableState], own_view: LogView[TableState], other_view: LogView[TableState]
) -> pa.Table:
    """Return the files of a view that the other view lacks, or has with another write or vector.

    Another write may have other columns, and another vector other deleted rows.
    """
    if own_view.state.files is other_view.state.files:
        return empty()
    return _less(all_files(tracked, own_view), all_files(tracked, other_view))


def replaced_files(
    tracked: TrackedLog[TableState], now: LogView[TableState], then: LogView[TableState]
) -> tuple[pa.Table, pa.Table]:
    """Return the files to add and those to remove, so that the files of `now` become those of `then`.

    `now` may have a file twice (see `check_distinct`). That file is then removed, and added again if `then` has it.
    """
    if now.state.files is then.state.files:
        return empty(), empty()
    new_files = all_files(tracked, then)
    with naming(tracked.log.location):
        fetch = tracked.log.read_blobs
        old_files = joined(list(tracked.read(now, lambda view: tuple(view.state.files.parts(fetch)))))
    counts = pc.value_counts(old_files["path"].combine_chunks())
    twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    kept_files = old_files.filter(pc.invert(pc.is_in(old_files["path"], value_set=twice)))
    return _less(new_files, kept_files), _less(old_files, without(new_files, twice))


def _less(files: pa.Table, other_files: pa.Table) -> pa.Table:
    """Return the files that are not among others with the same rows."""
    return files.filter(pc.invert(pc.is_in(file_keys(files), value_set=file_keys(other_files))))


def file_keys(files: pa.Table) -> pa.Array:
    """Return keys that are equal for files with the same rows: path, write and vector."""
    deletes = (
        pc.fill_null(files[DELETES].combine_chunks(), "")
        if DELETES in files.column_names
        else pa.repeat("", files.num_rows)
    )
    return pc.binary_join_element_wise(
        files["path"].combine_chunks(), files["write"].combine_chunks(), deletes, "\n"
    )


def as_removed(chunk: pa.Table) -> list[RemovedFile]:
    """Return files (in the form of `FileSet.chunks`) as removed files."""
    columns = (chunk[name].to_pylist() for name in ("path", "rows", "size"))
    return [
        RemovedFile(path=path, rows=rows, size_bytes=size) for path, rows, size in zip(*columns, strict=True)
    ]
