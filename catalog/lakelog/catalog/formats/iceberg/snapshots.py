"""Snapshots: what each version of a table is in Iceberg's metadata, made from that of the version before. Pure.

A snapshot's id and sequence number are the version, so that row ids and versions of rows are Iceberg's row lineage as
they are. Where one version changes several lines, the others' ids have the number of the line above the version's bits.
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
    Vector,
    files_from_arrow,
    inline_bytes,
    puffin_of_vectors,
)
from lakelog.catalog.core.schema import Metadata, PartitionSpec, Schema
from lakelog.catalog.core.state import MOVING
from lakelog.catalog.formats.iceberg import avro_files
from lakelog.catalog.formats.iceberg.avro_files import DATA
from lakelog.catalog.formats.iceberg.avro_files import DELETES as VECTORS
from lakelog.catalog.formats.iceberg.entries import Blob, Writer, blob_of
from lakelog.catalog.formats.iceberg.manifests import Change, Entry, Keyed, Manifests, Stored
from lakelog.catalog.formats.iceberg.schemas import early_fields, without_fields

LINE_BITS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A version that is exported: which rows' ids it gave, and what its commit says of itself."""

    version: int
    time_ms: int
    operation: str
    author: Mapping[str, str]
    first_row: int
    next_row: int


@dataclass(slots=True, kw_only=True)
class Tree:
    """The objects of an export of one version of the table at `location`: new ones by their absolute paths in `folder`,
    and those of older exports by `read`."""

    location: str
    folder: str
    version: int
    read: Callable[[str], bytes]
    made: dict[str, bytes] = field(default_factory=dict)

    def add(self, kind: str, suffix: str, data: bytes) -> str:
        """Add an object of the version that is exported; return its path. Its name depends on what is in it."""
        path = f"{self.folder}/{self.version:020d}-{kind}-{_digest(data)}.{suffix}"
        self.made[path] = data
        return path

    def bytes_of(self, path: str) -> bytes:
        return self.made[path] if path in self.made else self.read(path)


def is_as_named(path: str, data: bytes) -> bool:
    """Return whether an object at a path that `Tree.add` has returned has what it was added with."""
    return path.rpartition(".")[0].endswith(f"-{_digest(data)}")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The files of a line at one version, `table`, its columns, which are `schema` in JSON, and its partitionings, by
    their ids in the log, as readers are shown them."""

    table: pa.Table
    metadata: Metadata
    schema: Mapping[str, Any]
    specs: Mapping[int, PartitionSpec]


@dataclass(frozen=True, slots=True)
class Difference:
    """Files that differ between two sets: `came` and `gone` as data, and files of both with other vectors."""

    came: pa.Table
    gone: pa.Table
    vectors_came: pa.Table
    vectors_gone: pa.Table

    @property
    def is_empty(self) -> bool:
        return not any(each.num_rows for each in (self.came, self.gone, self.vectors_came, self.vectors_gone))


def with_early_files_apart(
    table: pa.Table, specs: Mapping[int, PartitionSpec], columns: Schema
) -> tuple[pa.Table, Mapping[int, PartitionSpec]]:
    """Return the files, and the partitionings as readers are shown them, with files of times before 1970 in ones of
    their own, without the fields by whose values some reader would miss them (see `early_fields`)."""
    numbers, found = table["spec"].combine_chunks(), dict(specs)
    for own, shown in specs.items():
        early = early_fields(shown, columns)
        values = [table[f"p{field.id}"] for field in early if f"p{field.id}" in table.column_names]
        below = [pc.less(pc.cast(each, pa.int32()), 0).combine_chunks() for each in values]
        if not below:
            continue
        mask = pc.fill_null(pc.and_kleene(reduce(pc.or_kleene, below), pc.equal(numbers, own)), False)
        if pc.any(mask).as_py():
            apart = -1 - own  # which no partitioning of a table has
            found[apart] = without_fields(shown, early)
            numbers = pc.if_else(mask, pa.scalar(apart, pa.int32()), numbers)
    if len(found) == len(specs):
        return table, specs
    return table.set_column(table.column_names.index("spec"), "spec", numbers), found


def difference(before: Contents | None, after: Contents) -> Difference:
    """Return how one set of files differs from another, by what readers are shown of them."""
    there, here = after.table.slice(0, 0) if before is None else before.table, after.table
    old, new = _keys(there, after if before is None else before), _keys(here, after)
    old_vectors, new_vectors = _vector_keys(there, old), _vector_keys(here, new)
    return Difference(
        came=_only(here, new, old),
        gone=_only(there, old, new),
        vectors_came=_only(here, new_vectors, old_vectors),
        vectors_gone=_only(there, old_vectors, new_vectors),
    )


def _keys(files: pa.Table, contents: Contents) -> pa.Array:
    specs = contents.specs
    own = pa.array(list(specs), pa.int32())
    shown = pa.array([str(spec.id) for spec in specs.values()], pa.string())
    return pc.binary_join_element_wise(
        files["path"].combine_chunks(),
        files["write"].combine_chunks(),
        shown.take(pc.index_in(files["spec"].combine_chunks(), value_set=own)),
        "\n",
    )


def _vector_keys(files: pa.Table, keys: pa.Array) -> pa.Array:
    """Return the keys of files with their vectors; NULL for files without one."""
    if DELETES not in files.column_names:
        return pa.nulls(files.num_rows, pa.string())
    return pc.binary_join_element_wise(keys, files[DELETES].combine_chunks(), "\n")


def _only(files: pa.Table, keys: pa.Array, others: pa.Array) -> pa.Table:
    if not files.num_rows:
        return files
    return files.filter(pc.and_(pc.is_valid(keys), pc.invert(pc.is_in(keys, value_set=others))))


def snapshot_of(
    tree: Tree,
    moment: Moment,
    line: int,
    parent: Mapping[str, Any] | None,
    before: Contents | None,
    after: Contents,
    changed: Difference,
) -> dict[str, Any]:
    """Return the snapshot of a line in which it changes from `before`, that of `parent`, to `after`."""
    snapshot_id = moment.version | (line << LINE_BITS)
    writer = Writer(tree.location, after.metadata.schema, after.specs, snapshot_id, moment.version)
    stored = [] if parent is None else manifests_of(tree, parent)
    was = after.specs if before is None else before.specs
    known = {spec.id: spec for spec in (*was.values(), *after.specs.values())}
    both = [each.table for each in (before, after) if each is not None]

    def read(each: Stored) -> Sequence[Entry]:
        return avro_files.read(tree.bytes_of(each.path))

    maker = Manifests(
        put=tree.add,
        snapshot_id=snapshot_id,
        version=moment.version,
        fresh_from=moment.first_row if parent is not None else 0,
        schema=after.schema,
        read=read,
        first_rows=lambda paths: _first_rows(both, tree.location, paths),
    )
    changes: dict[tuple[int, int], Change] = {}

    def change(content: int, file: DataFile, specs: Mapping[int, PartitionSpec] = after.specs) -> Change:
        return changes.setdefault((content, specs[file.spec_id].id), Change())

    added = _files(changed.came)
    for file in added:
        change(DATA, file).came.append(
            Keyed(file.first_row or 0, writer.data(file, is_new=parent is not None))
        )
    gone = _files(changed.gone)
    for file in gone:
        change(DATA, file, was).gone[writer.absolute(file.path)] = file.first_row or 0
    with_vectors = _files(changed.vectors_came)
    blobs = _blobs(tree, with_vectors, writer)
    for file in with_vectors:
        entry = writer.vector(file, blobs[file.path], is_new=parent is not None)
        change(VECTORS, file).came.append(Keyed(file.first_row or 0, entry))
    without = _files(changed.vectors_gone)
    for file in without:
        change(VECTORS, file, was).gone[writer.absolute(file.path)] = file.first_row or 0

    kept = [each for each in stored if (each.content, each.spec_id) not in changes and each.live]
    for (content, spec_id), each in sorted(changes.items(), key=lambda item: item[0]):
        of_it = [one for one in stored if (one.content, one.spec_id) == (content, spec_id)]
        kept += maker.changed(of_it, each, known[spec_id], content)
    kept.sort(key=lambda each: (each.content, each.spec_id, each.start))
    snapshot: dict[str, Any] = {
        "snapshot-id": snapshot_id,
        **({} if parent is None else {"parent-snapshot-id": parent["snapshot-id"]}),
        "sequence-number": moment.version,
        "timestamp-ms": moment.time_ms,
        "schema-id": after.schema["schema-id"],
        "first-row-id": moment.first_row,
        "added-rows": moment.next_row - moment.first_row,
        "summary": _summary(moment, after.table, added, gone, with_vectors, without),
    }
    data = avro_files.manifest_list([each.record for each in kept], snapshot)
    snapshot["manifest-list"] = tree.add(f"snap-{snapshot_id}", "avro", data)
    return snapshot


def manifests_of(tree: Tree, snapshot: Mapping[str, Any]) -> list[Stored]:
    return [Stored(each) for each in avro_files.read(tree.bytes_of(snapshot["manifest-list"]))]


def _files(table: pa.Table) -> list[DataFile]:
    return files_from_arrow(table) if table.num_rows else []


def _blobs(tree: Tree, files: Sequence[DataFile], writer: Writer) -> dict[str, Blob]:
    """Return where the vectors of `files` lie; those that stand in the log are written to a puffin file."""
    found: dict[str, Blob] = {}
    inline: dict[str, Vector] = {}
    for file in sorted(files, key=lambda each: each.path):
        blob = blob_of(file, writer.absolute)
        if blob is not None:
            found[file.path] = blob
            continue
        assert file.deletes is not None
        bitmap = inline_bytes(file.deletes)
        assert bitmap is not None
        inline[file.path] = Vector(bitmap, file.deletes.rows, writer.absolute(file.path))
    if inline:
        content, offsets = puffin_of_vectors(inline)
        path = tree.add("vectors", "puffin", content)
        for each, vector in inline.items():
            size = len(vector.bitmap) + AROUND_BYTES
            found[each] = Blob(path, offsets[each] - HEAD_BYTES, size, len(content))
    return found


def _first_rows(tables: Sequence[pa.Table], location: str, paths: Sequence[str]) -> list[int | None]:
    """Return the ids of the first rows of files by their absolute paths."""
    if not paths:
        return []
    own = f"{location}/"
    known = pa.chunked_array([chunk for table in tables for chunk in table["path"].chunks], pa.string())
    rows = pa.chunked_array(
        [chunk for table in tables for chunk in _column(table, "first_row").chunks], pa.int64()
    )
    relative = pa.array([path.removeprefix(own) for path in paths], pa.string())
    found: list[int | None] = rows.take(pc.index_in(relative, value_set=known.combine_chunks())).to_pylist()
    return found


def _column(table: pa.Table, name: str) -> pa.ChunkedArray:
    if name in table.column_names:
        return table[name]
    return pa.chunked_array([pa.nulls(table.num_rows, pa.int64())])


def _summary(
    moment: Moment,
    table: pa.Table,
    added: Sequence[DataFile],
    gone: Sequence[DataFile],
    with_vectors: Sequence[DataFile],
    without: Sequence[DataFile],
) -> dict[str, str]:
    positions = sum(file.deletes.rows for file in with_vectors if file.deletes)
    deleted = pc.sum(table["deleted"]).as_py() if "deleted" in table.column_names else 0
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
        "total-records": (pc.sum(table["rows"]).as_py() or 0) + (deleted or 0),
        "total-files-size": pc.sum(table["size"]).as_py() or 0,
        "total-position-deletes": deleted or 0,
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
