"""Snapshots: a version of a table in Iceberg's metadata, made from the snapshot of the version before. Pure.

A snapshot's sequence number is the version, and so is its id, unless a client of Iceberg has chosen the id. So
row ids and row versions are valid as Iceberg's row lineage. If a version changes several lines, the other lines'
ids have the number of the line above the version's bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.catalog.core.files import (
    AROUND_BYTES,
    DELETES,
    HEAD_BYTES,
    DataFile,
    PuffinVector,
    files_from_arrow,
    inline_bytes,
    puffin_of_vectors,
)
from lakelog.catalog.core.schema import Metadata, PartitionSpec, Schema
from lakelog.catalog.core.state import MOVING
from lakelog.catalog.formats.iceberg import avro_files
from lakelog.catalog.formats.iceberg.avro_files import DATA
from lakelog.catalog.formats.iceberg.avro_files import DELETES as VECTORS
from lakelog.catalog.formats.iceberg.entries import EntryWriter, VectorBlob, blob_of
from lakelog.catalog.formats.iceberg.manifests import (
    KeyedEntry,
    ManifestEntry,
    ManifestWriter,
    SnapshotChange,
    StoredManifest,
)
from lakelog.catalog.formats.iceberg.schemas import early_fields, without_fields

LINE_BITS = 40
_LIKELY_VERSIONS, _LIKELY_LINES = 1 << 26, 1 << 14
"""Tables have fewer versions, tags and branches. One in eight million random ids is below both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedVersion:
    """A version that is exported: the row ids that it gave, and its commit's metadata."""

    version: int
    time_ms: int
    operation: str
    author: Mapping[str, str]
    first_row: int
    next_row: int


@dataclass(slots=True, kw_only=True)
class ExportTree:
    """The objects of an export of a version of the table at `location`.

    `made` has new objects by their absolute paths in `folder`, and `read` returns objects of older exports.
    """

    location: str
    folder: str
    version: int
    read: Callable[[str], bytes]
    made: dict[str, bytes] = field(default_factory=dict)

    def add(self, kind: str, suffix: str, data: bytes) -> str:
        """Add an object of the exported version, and return its path. Its name depends on its content."""
        path = f"{self.folder}/{self.version:020d}-{kind}-{_digest(data)}.{suffix}"
        self.made[path] = data
        return path

    def bytes_of(self, path: str) -> bytes:
        return self.made[path] if path in self.made else self.read(path)


def snapshot_id_of(version: int, line: int) -> int:
    """Return the id of the snapshot of a version and line, if no client of Iceberg has chosen it."""
    return version | (line << LINE_BITS)


def line_number_of(snapshot_id: int, version: int) -> int | None:
    """Return the line in an id from `snapshot_id_of`. None if the id is not of that version."""
    line = snapshot_id >> LINE_BITS
    return line if snapshot_id == snapshot_id_of(version, line) else None


def may_be_of_a_version(snapshot_id: int) -> bool:
    """Return whether `snapshot_id_of` may return that id for a version of some table, now or later."""
    version, line = snapshot_id & ((1 << LINE_BITS) - 1), snapshot_id >> LINE_BITS
    return version < _LIKELY_VERSIONS and line < _LIKELY_LINES


def is_as_named(path: str, data: bytes) -> bool:
    """Return whether an object has its original content, by its path from `ExportTree.add`."""
    return path.rpartition(".")[0].endswith(f"-{_digest(data)}")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineContents:
    """The files of a line at a version (`table`), its columns and its partitionings.

    `schema` has the columns in JSON. `specs` has the partitionings for readers, by their ids in the log.
    """

    table: pa.Table
    metadata: Metadata
    schema: Mapping[str, Any]
    specs: Mapping[int, PartitionSpec]


@dataclass(frozen=True, slots=True)
class FileSetDifference:
    """Files that differ between two sets: `came` and `gone` as data, and files of both with other vectors."""

    came: pa.Table
    gone: pa.Table
    vectors_came: pa.Table
    vectors_gone: pa.Table

    @property
    def is_empty(self) -> bool:
        return not any(
            files.num_rows for files in (self.came, self.gone, self.vectors_came, self.vectors_gone)
        )


def with_early_files_apart(
    table: pa.Table, specs: Mapping[int, PartitionSpec], columns: Schema
) -> tuple[pa.Table, Mapping[int, PartitionSpec]]:
    """Return the files and the partitionings for readers, with files of times before 1970 apart.

    Such files have partitionings of their own. These lack the fields by whose values some reader would miss
    the files (see `early_fields`).
    """
    numbers, all_specs = table["spec"].combine_chunks(), dict(specs)
    for own, reader_spec in specs.items():
        early = early_fields(reader_spec, columns)
        values = [table[f"p{field.id}"] for field in early if f"p{field.id}" in table.column_names]
        below = [pc.less(pc.cast(days, pa.int32()), 0).combine_chunks() for days in values]
        if not below:
            continue
        mask = pc.fill_null(pc.and_kleene(reduce(pc.or_kleene, below), pc.equal(numbers, own)), False)
        if pc.any(mask).as_py():
            apart = -1 - own  # no partitioning of a table has this id
            all_specs[apart] = without_fields(reader_spec, early)
            numbers = pc.if_else(mask, pa.scalar(apart, pa.int32()), numbers)
    if len(all_specs) == len(specs):
        return table, specs
    return table.set_column(table.column_names.index("spec"), "spec", numbers), all_specs


def difference(contents_before: LineContents | None, contents_after: LineContents) -> FileSetDifference:
    """Return the difference between two sets of files, as readers see them."""
    old_files, new_files = (
        contents_after.table.slice(0, 0) if contents_before is None else contents_before.table,
        contents_after.table,
    )
    old, new = (
        _keys(old_files, contents_after if contents_before is None else contents_before),
        _keys(new_files, contents_after),
    )
    old_vectors, new_vectors = _vector_keys(old_files, old), _vector_keys(new_files, new)
    return FileSetDifference(
        came=_only(new_files, new, old),
        gone=_only(old_files, old, new),
        vectors_came=_only(new_files, new_vectors, old_vectors),
        vectors_gone=_only(old_files, old_vectors, new_vectors),
    )


def _keys(files: pa.Table, contents: LineContents) -> pa.Array:
    specs = contents.specs
    own = pa.array(list(specs), pa.int32())
    reader_ids = pa.array([str(spec.id) for spec in specs.values()], pa.string())
    return pc.binary_join_element_wise(
        files["path"].combine_chunks(),
        files["write"].combine_chunks(),
        reader_ids.take(pc.index_in(files["spec"].combine_chunks(), value_set=own)),
        "\n",
    )


def _vector_keys(files: pa.Table, keys: pa.Array) -> pa.Array:
    """Return the keys of files with their vectors. NULL for files without a vector."""
    if DELETES not in files.column_names:
        return pa.nulls(files.num_rows, pa.string())
    return pc.binary_join_element_wise(keys, files[DELETES].combine_chunks(), "\n")


def _only(files: pa.Table, keys: pa.Array, other_arrays: pa.Array) -> pa.Table:
    if not files.num_rows:
        return files
    return files.filter(pc.and_(pc.is_valid(keys), pc.invert(pc.is_in(keys, value_set=other_arrays))))


def snapshot_of(
    tree: ExportTree,
    moment: ExportedVersion,
    snapshot_id: int,
    parent: Mapping[str, Any] | None,
    contents_before: LineContents | None,
    contents_after: LineContents,
    changed_difference: FileSetDifference,
    summary: Mapping[str, str],
) -> dict[str, Any]:
    """Return the snapshot of a line that changes from `contents_before`, those of `parent`, to `contents_after`.

    `summary` is the summary of a client that made the snapshot. Its counts are replaced by exact counts.
    """
    writer = EntryWriter(
        tree.location, contents_after.metadata.schema, contents_after.specs, snapshot_id, moment.version
    )
    old_manifests = [] if parent is None else manifests_of(tree, parent)
    old_specs = contents_after.specs if contents_before is None else contents_before.specs
    specs_by_id = {spec.id: spec for spec in (*old_specs.values(), *contents_after.specs.values())}
    both = [manifest.table for manifest in (contents_before, contents_after) if manifest is not None]

    def read(manifest: StoredManifest) -> Sequence[ManifestEntry]:
        return avro_files.read(tree.bytes_of(manifest.path))

    maker = ManifestWriter(
        put=tree.add,
        snapshot_id=snapshot_id,
        version=moment.version,
        fresh_from=moment.first_row if parent is not None else 0,
        schema=contents_after.schema,
        read=read,
        first_rows=lambda paths: _first_rows(both, tree.location, paths),
    )
    changes: dict[tuple[int, int], SnapshotChange] = {}

    def change(
        content: int, file: DataFile, specs: Mapping[int, PartitionSpec] = contents_after.specs
    ) -> SnapshotChange:
        return changes.setdefault((content, specs[file.spec_id].id), SnapshotChange())

    new_files = _files(changed_difference.came)
    for file in new_files:
        change(DATA, file).came.append(
            KeyedEntry(file.first_row or 0, writer.data(file, is_new=parent is not None))
        )
    gone_files = _files(changed_difference.gone)
    for file in gone_files:
        change(DATA, file, old_specs).gone[writer.absolute(file.path)] = file.first_row or 0
    with_vectors = _files(changed_difference.vectors_came)
    blobs = _blobs(tree, with_vectors, writer)
    for file in with_vectors:
        entry = writer.vector(file, blobs[file.path], is_new=parent is not None)
        change(VECTORS, file).came.append(KeyedEntry(file.first_row or 0, entry))
    without = _files(changed_difference.vectors_gone)
    for file in without:
        change(VECTORS, file, old_specs).gone[writer.absolute(file.path)] = file.first_row or 0

    manifests = [
        manifest
        for manifest in old_manifests
        if (manifest.content, manifest.spec_id) not in changes and manifest.live
    ]
    for (content, spec_id), file_change in sorted(changes.items(), key=lambda item: item[0]):
        same_kind = [
            manifest
            for manifest in old_manifests
            if (manifest.content, manifest.spec_id) == (content, spec_id)
        ]
        manifests += maker.changed(same_kind, file_change, specs_by_id[spec_id], content)
    manifests.sort(key=lambda manifest: (manifest.content, manifest.spec_id, manifest.start))
    snapshot: dict[str, Any] = {
        "snapshot-id": snapshot_id,
        **({} if parent is None else {"parent-snapshot-id": parent["snapshot-id"]}),
        "sequence-number": moment.version,
        "timestamp-ms": moment.time_ms,
        "schema-id": contents_after.schema["schema-id"],
        "first-row-id": moment.first_row,
        "added-rows": moment.next_row - moment.first_row,
        "summary": {
            **summary,
            **_summary(moment, contents_after.table, new_files, gone_files, with_vectors, without),
            **({"operation": summary["operation"]} if "operation" in summary else {}),
        },
    }
    data = avro_files.manifest_list([manifest.record for manifest in manifests], snapshot)
    snapshot["manifest-list"] = tree.add(f"snap-{snapshot_id}", "avro", data)
    return snapshot


def manifests_of(tree: ExportTree, snapshot: Mapping[str, Any]) -> list[StoredManifest]:
    return [StoredManifest(record) for record in avro_files.read(tree.bytes_of(snapshot["manifest-list"]))]


def _files(table: pa.Table) -> list[DataFile]:
    return files_from_arrow(table) if table.num_rows else []


def _blobs(tree: ExportTree, files: Sequence[DataFile], writer: EntryWriter) -> dict[str, VectorBlob]:
    """Return the places of the vectors of `files`. Vectors in the log are written to a puffin file."""
    blobs: dict[str, VectorBlob] = {}
    inline: dict[str, PuffinVector] = {}
    for file in sorted(files, key=lambda file: file.path):
        blob = blob_of(file, writer.absolute)
        if blob is not None:
            blobs[file.path] = blob
            continue
        assert file.deletes is not None
        bitmap = inline_bytes(file.deletes)
        assert bitmap is not None
        inline[file.path] = PuffinVector(bitmap, file.deletes.rows, writer.absolute(file.path))
    if inline:
        content, offsets = puffin_of_vectors(inline)
        puffin_path = tree.add("vectors", "puffin", content)
        for path, vector in inline.items():
            size = len(vector.bitmap) + AROUND_BYTES
            blobs[path] = VectorBlob(puffin_path, offsets[path] - HEAD_BYTES, size, len(content))
    return blobs


def _first_rows(tables: Sequence[pa.Table], location: str, paths: Sequence[str]) -> list[int | None]:
    """Return the ids of the first rows of files by their absolute paths."""
    if not paths:
        return []
    own = f"{location}/"
    known_paths = pa.chunked_array([chunk for table in tables for chunk in table["path"].chunks], pa.string())
    rows = pa.chunked_array(
        [chunk for table in tables for chunk in _column(table, "first_row").chunks], pa.int64()
    )
    relative = pa.array([path.removeprefix(own) for path in paths], pa.string())
    first_rows: list[int | None] = rows.take(
        pc.index_in(relative, value_set=known_paths.combine_chunks())
    ).to_pylist()
    return first_rows


def _column(table: pa.Table, name: str) -> pa.ChunkedArray:
    if name in table.column_names:
        return table[name]
    return pa.chunked_array([pa.nulls(table.num_rows, pa.int64())])


def _summary(
    moment: ExportedVersion,
    table: pa.Table,
    added: Sequence[DataFile],
    gone: Sequence[DataFile],
    with_vectors: Sequence[DataFile],
    without: Sequence[DataFile],
) -> dict[str, str]:
    positions = sum(file.deletes.rows for file in with_vectors if file.deletes)
    deleted_rows = pc.sum(table["deleted"]).as_py() if "deleted" in table.column_names else 0
    removes = bool(gone or with_vectors)
    if moment.operation in MOVING:
        operation = "replace"
    elif not removes:
        operation = "append"
    else:
        operation = "overwrite" if added else "delete"
    counts = {
        "added-data-files": len(added),
        "added-records": sum(file.physical_rows for file in added),
        "added-files-size": sum(file.size_bytes for file in added),
        "deleted-data-files": len(gone),
        "deleted-records": sum(file.physical_rows for file in gone),
        "removed-files-size": sum(file.size_bytes for file in gone),
        "added-dvs": len(with_vectors),
        "removed-dvs": len(without),
        "added-position-deletes": positions,
    }
    totals = {
        "total-data-files": table.num_rows,
        "total-records": (pc.sum(table["rows"]).as_py() or 0) + (deleted_rows or 0),
        "total-files-size": pc.sum(table["size"]).as_py() or 0,
        "total-position-deletes": deleted_rows or 0,
        "total-delete-files": _vector_count(table),
        "total-equality-deletes": 0,
    }
    return {
        "operation": operation,
        **{name: str(count) for name, count in counts.items() if count},
        **{name: str(int(count)) for name, count in totals.items()},
        "lakelog.operation": moment.operation,
        **{f"lakelog.{name}": text for name, text in sorted(moment.author.items())},
    }


def _vector_count(table: pa.Table) -> int:
    return table.num_rows - table[DELETES].null_count if DELETES in table.column_names else 0
