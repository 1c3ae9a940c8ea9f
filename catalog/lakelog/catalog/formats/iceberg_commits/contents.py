"""The files that a client's snapshot adds and removes, as entries of a table's log.

A snapshot's change is the difference between its manifest list and that of the line's present snapshot. Its manifests
are read once. Rule: only objects of the table's own folder are read, up to a size. A file is taken only if it is there.
It must have the rows that its manifest says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from lakelog.catalog.core.files import DataFile, files_to_arrow, started_at
from lakelog.catalog.core.logs import TableHead, read_vector, with_deletes
from lakelog.catalog.core.parquet import new_checks
from lakelog.catalog.core.planning import may_fail
from lakelog.catalog.core.schema import Metadata, Schema, dotted, refuse_generated, refuse_identity
from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.formats.iceberg.avro_files import DATA
from lakelog.catalog.formats.iceberg_commits.partition_values import checked_partition
from lakelog.catalog.formats.imports.iceberg.deleted_rows import position_vectors, vector_at
from lakelog.catalog.formats.imports.iceberg.documents import place_of
from lakelog.catalog.formats.imports.iceberg.file_columns import FooterReader
from lakelog.catalog.formats.imports.iceberg.manifests import IcebergEntry, ManifestReader, twice_there
from lakelog.catalog.formats.imports.iceberg.schemas import specs_from
from lakelog.log import WriteRef
from lakelog.log.errors import FormatError, InvalidInput, NotFound
from lakelog.log.parallel import in_threads

if TYPE_CHECKING:
    from pyroaring import BitMap

Json = Mapping[str, Any]

MANIFEST_BYTES_MAX = 256 * 1024 * 1024
"""A larger manifest, or list of manifests, is refused."""

DATA_FOLDER, METADATA_FOLDER = "data", "metadata"

_STRANGE = re.compile(r"[\x00-\x1f\x7f\\]|(?:^|/)(?:\.|/|$)")
"""Characters that no path has, empty parts, and parts that begin with a dot, such as those of stores."""


@dataclass(slots=True)
class SnapshotFiles:
    """The change of a line's files by a snapshot.

    `added` are entries of new files, `removed` the paths of files that go. `vectors` has all deleted rows of files
    that stay or come, for the files in which the snapshot deletes rows.
    """

    new_files: list[DataFile] = field(default_factory=list)
    removed_paths: set[str] = field(default_factory=set)
    vectors: dict[str, BitMap] = field(default_factory=dict)


class SnapshotReader:
    """Reads the objects of Iceberg's clients for the table `head`, whose metadata is `document` after the commit."""

    def __init__(self, head: TableHead, document: Json) -> None:
        self._head = head
        self._store, self._prefix = head.tracked.store, head.tracked.prefix
        schema, metadata = head.schema, head.metadata
        self._schema: Schema = schema
        self._metadata: Metadata = metadata
        self._specs = specs_from(document, [schema])
        self._manifests = ManifestReader(self._read, self._specs)
        self._footers = FooterReader(head.url, head.logs.places.open_url, None, is_of_client=True)

    def change(self, old: Json | None, new: Json | None) -> SnapshotFiles:
        """Return the change of a line from the snapshot `old`, which an export shows, to `new`.

        Reads the manifests that are in only `old` or only `new`, the footers of new files, and new deletes. Raises
        InvalidInput if any of these is missing, damaged, elsewhere, or does not fit the table.
        """
        try:
            change = self._manifests.between(old, new)
            return self._files(change.came, change.gone)
        except (NotFound, FormatError) as error:
            raise InvalidInput(f"the snapshot cannot be read: {error.message}") from error

    def _files(
        self, came: Mapping[Any, IcebergEntry], gone_entries: Mapping[Any, IcebergEntry]
    ) -> SnapshotFiles:
        files = SnapshotFiles()
        new = [entry for key, entry in came.items() if key not in gone_entries and entry.content == DATA]
        files.removed_paths = {
            self.inside(entry.path, DATA_FOLDER)
            for key, entry in gone_entries.items()
            if key not in came and entry.content == DATA
        }
        names = [self.inside(entry.path, DATA_FOLDER) for entry in new]
        self._check_added(names)
        live = self._head.entries(files.removed_paths)
        if missing := sorted(files.removed_paths - live.keys()):
            raise InvalidInput(f"the snapshot removes {missing[0]}, which the table does not have")
        files.new_files = self._entries(names, new)
        self._check_conditions(files.new_files)
        files.vectors = self._vectors(files, came, gone_entries)
        self._check_no_values_lost(files, live)
        return files

    def _check_added(self, names: list[str]) -> None:
        if len(set(names)) < len(names):
            raise twice_there(next(name for name in names if names.count(name) > 1))
        # A vacuum may delete such a file, and an export would not show its columns.
        own = next((name for name in names if started_at(name) is not None), None)
        if own is not None:
            raise InvalidInput(
                f"the file {own} has a name that only lakelog gives: write the rows to another file"
            )
        present = [path for chunk in self._head.files_named(set(names)) for path in chunk["path"].to_pylist()]
        if present:
            raise twice_there(present[0])

    def _entries(self, names: list[str], entries: list[IcebergEntry]) -> list[DataFile]:
        if not entries:
            return []
        instead = "write these rows with lakelog"
        refuse_generated(self._schema, instead)
        refuse_identity(self._schema, instead)
        own_specs = self._metadata.specs_by_id

        def entry(number: int) -> DataFile:
            name, manifest_entry = names[number], entries[number]
            spec = own_specs.get(manifest_entry.spec_id)
            if spec is None or {part.id for part in spec.fields} != manifest_entry.partition.keys():
                raise InvalidInput(
                    f"the file {name} has the partitioning {manifest_entry.spec_id}, which is not the table's for new "
                    f"files: use {self._metadata.spec.id}"
                )
            file = self._footers.entry(f"{self._head.url}/{name}", manifest_entry, self._schema, spec)
            file = msgspec.structs.replace(file, path=name)
            return msgspec.structs.replace(file, partition=checked_partition(file, spec, self._schema))

        return list(in_threads(entry, range(len(names)), "lakelog-footers"))

    def _check_conditions(self, files: list[DataFile]) -> None:
        """Raise InvalidInput unless the bounds of new files prove that their rows satisfy the table's CHECKs."""
        for requirement in new_checks(
            msgspec.structs.replace(self._metadata, constraints=()), self._metadata
        ):
            table = files_to_arrow(files, self._schema, self._metadata.specs)
            fails = may_fail(table, requirement.condition, self._metadata.specs).to_pylist()
            for file, may in zip(files, fails, strict=True):
                if may:
                    raise InvalidInput(
                        f"the footer of {file.path} does not prove that its rows satisfy {requirement.words}: write "
                        "these rows with lakelog"
                    )

    def _check_no_values_lost(self, files: SnapshotFiles, removed_files: Mapping[str, DataFile]) -> None:
        """Raise CommitConflict if rows may have moved to files that lack a column of the files that lose rows.

        A rollback can bring a dropped column back while the client rewrites files without it. The line has the same
        snapshot then, and some clients claim the newest schema for whatever they commit. So only the files show it.
        Reads footers of files that lose rows, if a new file lacks a column.
        """
        ids = {field.id for _, field in self._schema.walk()}
        lacked = {file.path: ids - (file.names or {}).keys() for file in files.new_files}
        lacking_files = [file for file in files.new_files if lacked[file.path]]
        if not lacking_files:
            return
        paths = files.vectors.keys() - {file.path for file in files.new_files}
        losing_files = list({**removed_files, **self._head.entries(paths)}.values())
        ids_of_files = in_threads(self._footers.ids, losing_files, "lakelog-footers")
        for file, present_ids in zip(losing_files, ids_of_files, strict=True):
            for new_file in lacking_files:
                if lost_ids := lacked[new_file.path] & present_ids:
                    raise CommitConflict(
                        f"the file {new_file.path} lacks the column {dotted(self._schema.path_of(min(lost_ids)))} of "
                        f"{file.path}, from which the snapshot takes rows. Nothing was changed: load the table, and "
                        "write the rows with all of its columns",
                        version=self._head.version,
                    )

    # Deleted rows

    def _vectors(
        self, files: SnapshotFiles, came: Mapping[Any, IcebergEntry], gone_entries: Mapping[Any, IcebergEntry]
    ) -> dict[str, BitMap]:
        vectors: dict[str, BitMap] = {}
        positions: dict[str, BitMap] = {}
        for key, entry in came.items():
            if entry.content == DATA or key in gone_entries:
                continue
            self.inside(entry.path, DATA_FOLDER)
            if entry.vector is not None:
                if entry.about is None:
                    raise InvalidInput(f"the deletion vector in {entry.path} does not name its data file")
                path = self.inside(entry.about, DATA_FOLDER)
                if path in vectors:
                    raise InvalidInput(f"the snapshot has two deletion vectors of {path}")
                offset, size = entry.vector
                if offset < 0 or not 0 < size <= MANIFEST_BYTES_MAX:
                    raise InvalidInput(
                        f"the deletion vector of {path} is at {offset}, with {size} bytes: nowhere"
                    )
                vectors[path] = vector_at(entry, self._open)
                if len(vectors[path]) != entry.rows:
                    raise InvalidInput(
                        f"the deletion vector of {path} has {len(vectors[path]):,} rows, and its manifest says "
                        f"{entry.rows:,}: write the count of its rows"
                    )
                continue
            for name, bitmap in position_vectors(entry, self._open, place_of).items():
                path = self.inside(name, DATA_FOLDER)
                positions[path] = positions[path] | bitmap if path in positions else bitmap
        if both := sorted(vectors.keys() & positions.keys()):
            raise InvalidInput(
                f"the snapshot deletes rows of {both[0]} by a deletion vector and by a position file, which readers "
                "ignore beside a vector: write all of them into the vector"
            )
        lost_paths = {
            self.inside(str(entry.about), DATA_FOLDER)
            for key, entry in gone_entries.items()
            if entry.content != DATA and key not in came
        }
        new_files = {file.path: file for file in files.new_files}
        touched_paths = (vectors.keys() | positions.keys() | lost_paths) - files.removed_paths
        live = self._head.entries(touched_paths - new_files.keys())
        return {
            path: self._united(path, file, vectors.get(path), positions.get(path), is_lost=path in lost_paths)
            for path, file in {
                **live,
                **{path: new_files[path] for path in touched_paths & new_files.keys()},
            }.items()
        }

    def _united(
        self, path: str, file: DataFile, vector: BitMap | None, positions: BitMap | None, *, is_lost: bool
    ) -> BitMap:
        """Return all deleted rows of a file. Raises InvalidInput if rows would come back."""
        from pyroaring import BitMap

        old = read_vector(self._store, self._prefix, file.deletes, file.physical_rows)
        if vector is not None and old and not is_lost:
            raise InvalidInput(
                f"the snapshot has two deletion vectors of {path}: replace the one that it has"
            )
        new = vector if vector is not None else (BitMap() if is_lost else old)
        if positions is not None:
            new = new | positions
        if not old.issubset(new):
            raise InvalidInput(
                f"the snapshot lacks deleted rows of {path}, which would come back: keep all that were deleted before"
            )
        if new and new.max() >= file.physical_rows:
            raise InvalidInput(
                f"the snapshot deletes the row at {new.max():,} of {path}, which has {file.physical_rows:,} rows"
            )
        return new

    # Objects

    def inside(self, place: str, folder: str) -> str:
        """Return the path of an object, relative to the table's place. Raises InvalidInput if it is elsewhere."""
        url, own = place_of(place), f"{self._head.url}/"
        path = url.removeprefix(own)
        if path == url or _STRANGE.search(path) or not path.startswith(f"{folder}/"):
            raise InvalidInput(
                f"{place} is not in {own}{folder}, where a client has to write what belongs to this table"
            )
        return path

    def _read(self, location: str) -> bytes:
        with self._open_in(location, METADATA_FOLDER) as source:
            data = source.read(MANIFEST_BYTES_MAX + 1)
        if len(data) > MANIFEST_BYTES_MAX:
            raise InvalidInput(
                f"{location} is larger than the limit of {MANIFEST_BYTES_MAX:,} bytes: write smaller manifests"
            )
        return data

    def _open(self, location: str) -> BinaryIO:
        return self._open_in(location, DATA_FOLDER)

    def _open_in(self, location: str, folder: str) -> BinaryIO:
        path = self.inside(location, folder)
        try:
            return self._store.open_input(f"{self._prefix}/{path}" if self._prefix else path)
        except NotFound:
            raise InvalidInput(f"there is no {location}: write it before the commit") from None


def with_vectors(
    head: TableHead, write: WriteRef, files: SnapshotFiles
) -> tuple[list[DataFile], set[str], list[tuple[DataFile, DataFile]]]:
    """Return the new files, the paths of files that go, and the files that get more deleted rows.

    Stores the vectors, by at most a PUT. A file without a live row goes, or does not come.
    """
    new_files = {file.path: file for file in files.new_files}
    live = head.entries(files.vectors.keys() - new_files.keys())
    emptied_files, pairs = with_deletes(head.tracked, write, {**live, **new_files}, files.vectors)
    gone_paths = {file.path for file in emptied_files}
    files_after = {old.path: new for old, new in pairs}
    files_to_add = [files_after.get(path, file) for path, file in new_files.items() if path not in gone_paths]
    changed_pairs = [(old, new) for old, new in pairs if old.path not in new_files]
    return files_to_add, files.removed_paths | (gone_paths - new_files.keys()), changed_pairs
