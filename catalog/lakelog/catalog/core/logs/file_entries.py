"""Single files of a view as entries for a new commit, with all their facts, in the present types."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from lakelog.catalog.core.files.data_file import (
    DataFile,
    RemovedFile,
    files_from_arrow,
    removed_file,
    split_name,
)
from lakelog.catalog.core.files.deletion_vectors import DeletionVector
from lakelog.catalog.core.files.file_tables import converted, joined
from lakelog.catalog.core.files.row_ids import UNCOMMITTED
from lakelog.catalog.core.logs.live_files import files_named
from lakelog.catalog.core.logs.named_errors import naming
from lakelog.catalog.core.logs.stored_vectors import write_vectors
from lakelog.catalog.core.logs.tracked_log import TrackedLog
from lakelog.catalog.core.schema.literals import value_type
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.state.table_state import TableState
from lakelog.log import LogView, WriteRef

if TYPE_CHECKING:
    from pyroaring import BitMap


def entries_of(
    tracked: TrackedLog[TableState], view: LogView[TableState], paths: Collection[str]
) -> dict[str, DataFile]:
    """Return those of `paths` that are live in a view, as files that can be added again in a commit on it."""
    if not paths:
        return {}
    with naming(tracked.log.location):
        return _entries(view.state.current, joined(files_named(tracked, view, paths)))


def _entries(metadata: Metadata, file_table: pa.Table) -> dict[str, DataFile]:
    specs = {spec.id: spec for spec in metadata.specs}
    entries: dict[str, DataFile] = {}
    for file in files_from_arrow(_in_present_types(file_table, metadata)):
        # A missing value is NULL: the stored entry has it explicitly.
        partition = {field.id: file.partition.get(field.id) for field in specs[file.spec_id].fields}
        # A file that the same transaction has added gets its version at the commit.
        version = None if file.version == UNCOMMITTED else file.version
        entries[file.path] = msgspec.structs.replace(file, partition=partition, version=version)
    return entries


def with_vector(file: DataFile, deletes: DeletionVector) -> DataFile:
    """Return the entry of a file with these rows deleted."""
    return msgspec.structs.replace(file, rows=file.physical_rows - deletes.rows, deletes=deletes)


def with_deletes(
    tracked: TrackedLog[TableState],
    write: WriteRef,
    files: Mapping[str, DataFile],
    vectors: Mapping[str, BitMap],
) -> tuple[list[RemovedFile], list[tuple[DataFile, DataFile]]]:
    """Return how `files` change if all rows in `vectors` are deleted.

    Vectors include earlier deletes, by path. First come the files without a live row. Then come the files
    with more deleted rows than before, each before and after. Costs a PUT if vectors are too large for
    entries.
    """
    removed_files, partial_vectors = [], {}
    for path, vector in vectors.items():
        file = files[path]
        if len(vector) == file.physical_rows:
            removed_files.append(removed_file(file))
        elif len(vector) > file.physical_rows - file.rows:
            partial_vectors[path] = vector
    new_deletes = write_vectors(tracked.store, tracked.prefix, write, partial_vectors)
    return removed_files, [
        (files[path], with_vector(files[path], deletes)) for path, deletes in new_deletes.items()
    ]


def _in_present_types(files: pa.Table, metadata: Metadata) -> pa.Table:
    """Return `files` with bounds and partition values in the present types.

    The literals of a commit are read by these types. Statistics of dropped columns are left out, as are
    bounds that cannot be converted.
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
