"""An Iceberg table as a source: its snapshots as versions, its files as entries of files of other writers.

Only a file's footer says what its columns are called, by their ids. So each footer is read once, with its
statistics. Rule: facts that are not certain are left out or refused, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, BinaryIO

import msgspec
from pyroaring import BitMap

from lakelog.catalog.core.files import DataFile, inline_deletes
from lakelog.catalog.core.schema import Schema, with_schema
from lakelog.catalog.formats.iceberg.avro_files import DATA
from lakelog.catalog.formats.imports.bounds import with_bounds_of
from lakelog.catalog.formats.imports.iceberg.deleted_rows import DeletedRows
from lakelog.catalog.formats.imports.iceberg.documents import Document, as_metadata, document_of, place_of
from lakelog.catalog.formats.imports.iceberg.file_columns import FooterReader
from lakelog.catalog.formats.imports.iceberg.manifests import (
    IcebergChange,
    IcebergEntry,
    ManifestReader,
    twice_there,
)
from lakelog.catalog.formats.imports.iceberg.schemas import (
    DeclaredParts,
    mapped_names,
    schema_from,
    specs_from,
)
from lakelog.catalog.formats.imports.source import SourceVersion
from lakelog.log import OpenUrl
from lakelog.log.errors import FormatError, NotFound, Unsupported
from lakelog.log.parallel import in_threads

_MAPPING = "schema.name-mapping.default"
_EMPTY = "none"
"""The id of the version of a table that has no snapshot."""


class IcebergTable:
    """See `ImportSource`. Its metadata is read once, so later commits to the table are not seen."""

    format = "iceberg"
    notes: tuple[str, ...] = ()

    def __init__(
        self, source: str, open_url: OpenUrl, progress: Callable[[str], None] = lambda text: None
    ) -> None:
        self.metadata_url, self._document = document_of(source, open_url)
        self.metadata = self.metadata_url.rpartition("/")[0]
        self._open_url = open_url
        self._progress = progress
        with as_metadata(self.metadata_url):
            self._read_definition(self._document)

    def _read_definition(self, document: Document) -> None:
        self.url = place_of(document["location"]).rstrip("/")
        self.identity = str(document.get("table-uuid") or self.url)
        self.properties: Mapping[str, str] = {
            name: str(value) for name, value in (document.get("properties") or {}).items()
        }
        last_id = document["last-column-id"]
        json_schemas = document.get("schemas") or [document["schema"]]
        self._schemas: DeclaredParts[Schema] = DeclaredParts()
        for json_schema in json_schemas:
            self._schemas.add(json_schema.get("schema-id", 0), partial(schema_from, json_schema, last_id))
        current = document.get("current-schema-id", json_schemas[0].get("schema-id", 0))
        self._schemas.check_used(current)
        self._schema = self._schemas[current]
        self._specs = specs_from(document, list(self._schemas.values()))
        self._specs.check_used(document.get("default-spec-id", 0))
        self._spec = self._specs[document.get("default-spec-id", 0)]
        mapping = self.properties.get(_MAPPING)
        self._footers = FooterReader(
            self.url, self._open_url, None if mapping is None else mapped_names(mapping)
        )

    def versions(self, newest: int) -> Iterator[SourceVersion]:
        snapshots = self._ancestors(newest)
        if not snapshots:
            yield self._version(None, self._schema, (), ())
            return
        yield from self._read(snapshots, {}, None)

    def live(self, known_files: Mapping[str, DataFile], columns: Schema | None) -> SourceVersion:
        snapshots = self._ancestors(1)
        if not snapshots:
            return self._version(None, self._schema, (), ())
        return next(self._read(snapshots, known_files, columns))

    def _ancestors(self, newest: int) -> list[Mapping[str, Any]]:
        """Return the current snapshot and its ancestors that still exist, oldest first."""
        with as_metadata(self.metadata_url):
            snapshots_by_id = {
                snapshot["snapshot-id"]: snapshot for snapshot in self._document.get("snapshots") or ()
            }
        current = self._document.get("current-snapshot-id")
        if current in (None, -1):
            return []
        if current not in snapshots_by_id:
            raise FormatError(f"the metadata at {self.metadata_url} lacks its current snapshot {current}")
        ancestors: list[Mapping[str, Any]] = []
        while current in snapshots_by_id and len(ancestors) < newest:
            snapshot = snapshots_by_id.pop(current)
            ancestors.insert(0, snapshot)
            current = snapshot.get("parent-snapshot-id")
        return ancestors

    def _read(
        self,
        snapshots: list[Mapping[str, Any]],
        known_files: Mapping[str, DataFile],
        columns: Schema | None,
    ) -> Iterator[SourceVersion]:
        if any(snapshot.get("key-id") is not None for snapshot in snapshots):
            raise Unsupported(
                f"the Iceberg table at {self.url} is encrypted, which lakelog does not read: copy its rows by "
                "CREATE TABLE … AS SELECT"
            )
        for snapshot in snapshots[:-1]:
            try:
                self._schemas.check_used(snapshot.get("schema-id"))
            except Unsupported as error:
                raise Unsupported(
                    f"{error.message}, or import fewer versions, where newer ones have no such column"
                ) from None
        manifests = ManifestReader(self._bytes, self._specs)
        files = _Files(DeletedRows(self._open, _name_of))
        for number, change in enumerate(manifests.changes(snapshots)):
            snapshot = snapshots[number]
            is_last = number == len(snapshots) - 1
            # Changes since the newest snapshot are not a version of their own: the newest version has them.
            schema = (
                self._schema if is_last else self._schemas.get(snapshot.get("schema-id", -1), self._schema)
            )
            came, lost_names = files.changed(change)
            entries = self._entries(came, files, schema, known_files, columns)
            yield self._version(snapshot, schema, entries, lost_names)

    def _version(
        self,
        snapshot: Mapping[str, Any] | None,
        schema: Schema,
        added: Sequence[DataFile],
        removed: Sequence[str],
    ) -> SourceVersion:
        time_ms = None if snapshot is None else snapshot.get("timestamp-ms")
        summary = {} if snapshot is None else snapshot.get("summary") or {}
        return SourceVersion(
            id=_EMPTY if snapshot is None else str(snapshot["snapshot-id"]),
            time_us=None if time_ms is None else time_ms * 1_000,
            operation=summary.get("operation"),
            schema=schema,
            spec=with_schema(self._spec, schema),
            specs=tuple(with_schema(spec, schema) for _, spec in sorted(self._specs.items())),
            added=tuple(added),
            removed=tuple(removed),
        )

    def _entries(
        self,
        names: Sequence[str],
        files: _Files,
        schema: Schema,
        known_files: Mapping[str, DataFile],
        columns: Schema | None,
    ) -> list[DataFile]:
        def footer(name: str) -> DataFile:
            entry = files.data[name]
            return self._footers.entry(name, entry, schema, self._specs[entry.spec_id])

        def entry(name: str) -> DataFile:
            entry, vector = files.data[name], vectors.get(name)
            file_entry, _ = files.read[name]
            if vector and vector.max() >= entry.rows:
                raise FormatError(
                    f"the source deletes the row at {vector.max():,} of {name}, which has {entry.rows:,} rows"
                )
            return msgspec.structs.replace(
                file_entry,
                rows=entry.rows - (len(vector) if vector else 0),
                deletes=inline_deletes(vector) if vector else None,
                first_row=entry.first_row,
            )

        new = []
        same: dict[int, tuple[Schema, list[DataFile]]] = {}
        for name in names:
            old_entry, old_columns = files.read.get(name) or (known_files.get(name), columns)
            if (
                old_entry is None
                or old_columns is None
                or old_entry.size_bytes != files.data[name].size_bytes
            ):
                new.append(name)
            else:
                same.setdefault(id(old_columns), (old_columns, []))[1].append(old_entry)
        for old_columns, of_then in same.values():
            files.read |= {file.path: (file, schema) for file in with_bounds_of(of_then, old_columns, schema)}
        for count, file in enumerate(in_threads(footer, new, "lakelog-footers"), start=1):
            files.read[file.path] = file, schema
            if count % 1_000 == 0:
                self._progress(f"{count:,} of {len(new):,} files of the source were looked at")
        deleted_names = [name for name in names if files.has_deletes(name)]
        vectors = dict(
            zip(
                deleted_names,
                in_threads(files.vector, deleted_names, "lakelog-vectors"),
                strict=True,
            )
        )
        return [entry(name) for name in names]

    def _bytes(self, location: str) -> bytes:
        store, key = self._open_url(place_of(location))
        data = store.get(key)
        if data is None:
            raise self._missing(location)
        return data

    def _open(self, location: str) -> BinaryIO:
        store, key = self._open_url(place_of(location))
        try:
            return store.open_input(key)
        except NotFound:
            raise self._missing(location) from None

    def _missing(self, location: str) -> NotFound:
        return NotFound(
            f"the Iceberg table at {self.url} needs {location}, which is not there: it has expired in the source, or "
            f"was moved. Import newer metadata than {self.metadata_url}, or fewer versions"
        )


@lru_cache(maxsize=1 << 17)
def _name_of(location: str) -> str:
    return place_of(location)


class _Files:
    """The live files of the snapshot that is being read.

    `read` has entries of files whose footers are known, with the columns at that time.
    """

    def __init__(self, deleted_rows: DeletedRows) -> None:
        self.data: dict[str, IcebergEntry] = {}
        self.read: dict[str, tuple[DataFile, Schema]] = {}
        self._deleted = deleted_rows

    def changed(self, change: IcebergChange) -> tuple[list[str], list[str]]:
        """Return the data files that came and that are gone. A file whose deleted rows changed is in both."""
        touched_names: set[str] = set()
        came: dict[str, IcebergEntry] = {}
        gone_files: dict[str, IcebergEntry] = {}
        for key, entry in change.gone.items():
            if entry.content == DATA:
                gone_files[_name_of(entry.path)] = entry
            elif key not in change.came:
                touched_names.update(self._deleted.remove(entry))
        for key, entry in change.came.items():
            if entry.content == DATA:
                # One file may be listed under two spellings of its place.
                if came.setdefault(_name_of(entry.path), entry) is not entry:
                    raise twice_there(entry.path)
            elif key not in change.gone:
                touched_names.update(self._deleted.add(entry))
        touched_before = {name for name in touched_names if name in self.data}
        for name in gone_files:
            del self.data[name]
        twice = next((name for name in came if name in self.data), None)
        if twice is not None:
            raise twice_there(twice)
        self.data |= came
        for name in gone_files.keys() - came.keys():
            self.read.pop(name, None)
        again = {name for name in touched_names if name in self.data and name not in came}
        # For files that came and are gone, only the manifest differs.
        fresh = [name for name in came if name not in gone_files or name in touched_names]
        outdated = [name for name in gone_files if name not in came or name in touched_names]
        return [*fresh, *sorted(again)], [*outdated, *sorted(touched_before & again)]

    def has_deletes(self, name: str) -> bool:
        return self._deleted.are_of(name)

    def vector(self, name: str) -> BitMap:
        return self._deleted.of(name, self.data[name].sequence)
