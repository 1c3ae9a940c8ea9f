"""The data files of a view: all of them, those that another view does not have, and the keys that identify them."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import DELETES, Choice, RemovedFile, empty, joined
from lakelog.catalog.core.logs.named_errors import naming
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.state import TableState
from lakelog.log import View


def chunks_of(
    tracked: TrackedLog[TableState],
    view: View[TableState],
    statistics: Collection[int] | None = None,
    choice: Choice | None = None,
) -> list[pa.Table]:
    """Return the live files of a view (see `FileSet.chunks`)."""
    return tracked.read(
        view, lambda view: view.state.files.chunks(tracked.log.read_blobs, statistics, choice)
    )


def files_named(
    tracked: TrackedLog[TableState], view: View[TableState], paths: Collection[str]
) -> list[pa.Table]:
    """Return those of `paths` that are live in a view, in the form of `FileSet.chunks`."""
    if not paths:
        return []
    wanted = pa.array(sorted(paths), pa.string())
    return tracked.read(view, lambda view: view.state.files.named(tracked.log.read_blobs, wanted))


def all_files(tracked: TrackedLog[TableState], view: View[TableState]) -> pa.Table:
    """Return the live files of a view, in the form of `FileSet.chunks`."""
    with naming(tracked.log.location):
        return joined(chunks_of(tracked, view))


def files_only_in(
    tracked: TrackedLog[TableState], here: View[TableState], there: View[TableState]
) -> pa.Table:
    """Return the files of one view that the other does not have, or has by another write (perhaps with other columns),
    or with other deleted rows."""
    if here.state.files is there.state.files:
        return empty()
    files, others = (all_files(tracked, view) for view in (here, there))
    return files.filter(pc.invert(pc.is_in(file_keys(files), value_set=file_keys(others))))


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
    """Return files (in the form of `FileSet.chunks`) as removed ones."""
    columns = (chunk[name].to_pylist() for name in ("path", "rows", "size"))
    return [
        RemovedFile(path=path, rows=rows, size_bytes=size) for path, rows, size in zip(*columns, strict=True)
    ]
