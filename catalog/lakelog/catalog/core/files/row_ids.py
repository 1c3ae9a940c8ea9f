"""Ids and versions of rows, which stay if a row is moved to another file, or changed.

A commit gives each new file as many ids as it has rows, from `first_row` on. The row at position p has the id
`first_row` + p, and the version of the commit that added the file. Rows that came from another file keep
their own id and version, in two columns of the file that are not columns of the table. No id is given twice,
even after its file was removed.

Pure. A commit does not know its version when it is decided: the fold fills it in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files.data_file import FIRST_ROW, VERSION, DataFile, physical_rows

ROW_ID, ROW_VERSION = "_lakelog_row_id", "_lakelog_row_version"
"""The columns with the ids and versions of rows that came from another file; NULL for all other rows."""

OWN_FIELD_IDS = {ROW_ID: 2147483540, ROW_VERSION: 2147483539}
"""Their ids in files.

Iceberg reserves them for `_row_id` and `_last_updated_sequence_number`, which mean the same.
"""

UNCOMMITTED = 0
"""The version of files that a transaction has added, until it is committed."""


def with_ids(files: Sequence[DataFile], next_row: int) -> list[DataFile]:
    """Return new files with ids for their rows, from `next_row` on."""
    new_files = []
    first_row = next_row
    for file in files:
        new_files.append(msgspec.structs.replace(file, first_row=first_row))
        first_row += file.physical_rows
    return new_files


def with_version(added: Sequence[DataFile] | pa.Table, version: int) -> Sequence[DataFile] | pa.Table:
    """Return the files that a commit adds, with its version if they have none of their own."""
    if not isinstance(added, pa.Table):
        return [
            msgspec.structs.replace(file, version=version)
            if file.first_row is not None and file.version is None
            else file
            for file in added
        ]
    if FIRST_ROW not in added.column_names:
        return added
    own = pc.if_else(
        pc.is_valid(added[FIRST_ROW]), pa.scalar(version, pa.int64()), pa.scalar(None, pa.int64())
    )
    if VERSION not in added.column_names:
        return added.append_column(VERSION, own)
    index = added.column_names.index(VERSION)
    return added.set_column(index, VERSION, pc.coalesce(added[VERSION], own))


def without_uncommitted(files: pa.Table) -> pa.Table:
    """Return files without the version of files that the present transaction has added.

    Its commit gives them a version.
    """
    if VERSION not in files.column_names:
        return files
    versions = files[VERSION]
    committed_versions = pc.if_else(pc.equal(versions, UNCOMMITTED), pa.scalar(None, pa.int64()), versions)
    return files.set_column(files.column_names.index(VERSION), VERSION, committed_versions)


def next_row_after(next_row: int, added: Sequence[DataFile] | pa.Table) -> int:
    """Return the first id that no row has, if `next_row` was that id before `added`."""
    if not isinstance(added, pa.Table):
        ends = [file.first_row + file.physical_rows for file in added if file.first_row is not None]
        return max([next_row, *ends])
    if FIRST_ROW not in added.column_names:
        return next_row
    end = pc.max(pc.add(added[FIRST_ROW].combine_chunks(), physical_rows(added))).as_py()
    return max(next_row, end or 0)


def given_twice(parts: Callable[[], Iterable[pa.Table]], next_row: int) -> str | None:
    """Return which row ids belong to two of the files, or to future rows; None if there are none.

    `parts` returns the files, each once, and is called again for a message. Holds 24 bytes for each file.
    """
    id_ranges = [_given(files) for files in parts()]
    starts, ends = (
        np.concatenate([np.empty(0, np.int64), *(id_range[side].to_numpy() for id_range in id_ranges)])
        for side in (0, 1)
    )
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    overlaps = np.flatnonzero(starts[1:] < ends[:-1])
    if len(overlaps):
        at = int(overlaps[0])
        first_path, second_path = (_path_at(parts(), int(order[place])) for place in (at, at + 1))
        return f"the row id {starts[at + 1]} is of {first_path} and of {second_path}"
    if len(ends) and ends[-1] > next_row:
        return f"the row id {ends[-1] - 1} of {_path_at(parts(), int(order[-1]))} is to be given again"
    return None


def _given(files: pa.Table) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return the first row of each file that has ids of its own, the end of its rows, and its path."""
    if FIRST_ROW not in files.column_names:
        return pa.array([], pa.int64()), pa.array([], pa.int64()), pa.array([], pa.string())
    starts = files[FIRST_ROW].combine_chunks()
    ends = pc.add(starts, physical_rows(files))
    has = pc.fill_null(pc.greater(ends, starts), False)
    return starts.filter(has), ends.filter(has), files["path"].combine_chunks().filter(has)


def _path_at(parts: Iterable[pa.Table], number: int) -> str:
    for files in parts:
        paths = _given(files)[2]
        if number < len(paths):
            return str(paths[number])
        number -= len(paths)
    return "another file"  # the version has expired
