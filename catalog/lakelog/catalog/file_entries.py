"""Single files of a view as a commit says them again: with what is known of them, in the types of now."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.contents import chunks_of
from lakelog.catalog.data_file import DataFile, files_from_arrow, split_name
from lakelog.catalog.deletes import Deletes
from lakelog.catalog.file_tables import converted, joined
from lakelog.catalog.literals import value_type
from lakelog.catalog.log_cache import TrackedLog
from lakelog.catalog.metadata import Metadata
from lakelog.catalog.row_ids import UNCOMMITTED
from lakelog.catalog.table_state import TableState
from lakelog.log import View


def entries_of(
    tracked: TrackedLog[TableState], view: View[TableState], paths: Collection[str]
) -> dict[str, DataFile]:
    """Return those of `paths` that are live in a view, as files that can be added again in a commit on it."""
    if not paths:
        return {}
    wanted = pa.array(sorted(paths), pa.string())
    metadata = view.state.current
    chunks = chunks_of(tracked, view)
    found = joined([chunk.filter(pc.is_in(chunk["path"], value_set=wanted)) for chunk in chunks])
    specs = {spec.id: spec for spec in metadata.specs}
    entries: dict[str, DataFile] = {}
    for file in files_from_arrow(_of_now(found, metadata)):
        # A value that is left out is NULL here: what is stored says so.
        partition = {field.id: file.partition.get(field.id) for field in specs[file.spec_id].fields}
        # What this very transaction has added gets its version when that is committed.
        version = None if file.version == UNCOMMITTED else file.version
        entries[file.path] = msgspec.structs.replace(file, partition=partition, version=version)
    return entries


def with_vector(file: DataFile, deletes: Deletes) -> DataFile:
    """Return the entry of a file with these rows deleted."""
    return msgspec.structs.replace(file, rows=file.physical_rows - deletes.rows, deletes=deletes)


def _of_now(files: pa.Table, metadata: Metadata) -> pa.Table:
    """Return `files` with bounds and partition values in the types of now, by which the literals of a commit are read.

    What is known of columns that the table does not have any more is left out, as are bounds that cannot be converted.
    """
    types = {f"p{field.id}": value_type(field.result) for spec in metadata.specs for field in spec.fields}
    for index, name in reversed(list(enumerate(files.column_names))):
        kind, id = split_name(name)
        if kind == "p":
            files = files.set_column(index, name, converted(files[name], types[name]))
        elif kind in ("lo", "hi"):
            files = _with_bounds(files, index, name, id, metadata)
        elif kind and not metadata.schema.has_id(id):
            files = files.remove_column(index)
    return files


def _with_bounds(files: pa.Table, index: int, name: str, id: int, metadata: Metadata) -> pa.Table:
    type = value_type(metadata.schema.field_by_id(id).type) if metadata.schema.has_id(id) else None
    if type is None:
        return files.remove_column(index)
    try:
        return files.set_column(index, name, converted(files[name], type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return files.remove_column(index)
