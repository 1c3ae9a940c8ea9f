"""Which files the snapshots of an Iceberg table have, from its manifest lists and manifests.

A manifest is read once, and all snapshots that have it share it. A snapshot's changes are in manifests that
the previous snapshot does not have. Source: the specification of Iceberg's table format, version 3,
"Manifests".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakelog.catalog.core.schema import PartitionSpec, Scalar
from lakelog.catalog.formats.iceberg.avro_files import (
    ADDED,
    DATA,
    DELETED,
    EXISTING,
    avro_name,
    partition_names,
    read_all,
)
from lakelog.catalog.formats.iceberg.values import from_partition
from lakelog.catalog.formats.imports.iceberg.documents import as_metadata
from lakelog.catalog.formats.imports.iceberg.schemas import DeclaredParts
from lakelog.log.errors import FormatError, InvalidInput, Unsupported

ReadObject = Callable[[str], bytes]
"""Returns an object of the table, by its location as the table has it."""

EQUALITY_DELETES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergEntry:
    """A live file. `vector` is the place of a blob in it, and `about` is the data file of that blob."""

    path: str
    content: int
    sequence: int
    spec_id: int
    partition: Mapping[int, Scalar]
    rows: int
    size_bytes: int
    first_row: int | None
    about: str | None = None
    vector: tuple[int, int] | None = None

    @property
    def key(self) -> tuple[str, int]:
        """The key of a delete file. Its place counts because a file has many vectors."""
        return self.path, -1 if self.vector is None else self.vector[0]


IcebergEntries = dict[tuple[str, int], IcebergEntry]


@dataclass(slots=True)
class IcebergChange:
    """The files that only a snapshot has (`came`), and the files that only the previous snapshot has
    (`gone`).
    """

    came: IcebergEntries = field(default_factory=dict)
    gone: IcebergEntries = field(default_factory=dict)


class ManifestReader:
    """Reads the manifests of a table."""

    def __init__(self, read: ReadObject, specs: DeclaredParts[PartitionSpec]) -> None:
        self._read = read
        self._specs = specs
        self._known: dict[str, Mapping[str, Any]] = {}
        self._live: dict[str, IcebergEntries] = {}

    def changes(self, snapshots: list[Mapping[str, Any]]) -> Iterator[IcebergChange]:
        """Yield the changes of each snapshot. The first snapshot adds all of its files."""
        old_paths: set[str] = set()
        for snapshot in snapshots:
            new_paths = set(self._manifests(snapshot))
            change = IcebergChange()
            for path in sorted(old_paths - new_paths):
                change.gone |= self._live.pop(path)
            for path in sorted(new_paths - old_paths):
                self._live[path] = self._entries(path)
                twice = change.came.keys() & self._live[path].keys()
                if twice:
                    raise twice_there(min(twice)[0])
                change.came |= self._live[path]
            both = {
                key for key in change.came.keys() & change.gone.keys() if change.came[key] == change.gone[key]
            }
            for key in both:
                del change.came[key], change.gone[key]
            old_paths = new_paths
            yield change

    def between(self, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> IcebergChange:
        """Return the change from the snapshot `old` to `new`. Either may be None, without any file.

        Reads only manifests that the other snapshot lacks. If both have a file, in different manifests, it is in
        `came` and in `gone`.
        """
        old_paths, new_paths = (
            set() if snapshot is None else set(self._manifests(snapshot)) for snapshot in (old, new)
        )
        change = IcebergChange()
        for path in sorted(old_paths - new_paths):
            change.gone |= self._entries(path)
        for path in sorted(new_paths - old_paths):
            entries = self._entries(path)
            twice = change.came.keys() & entries.keys()
            if twice:
                raise twice_there(min(twice)[0])
            change.came |= entries
        return change

    def _manifests(self, snapshot: Mapping[str, Any]) -> list[str]:
        """Return the places of a snapshot's manifests."""
        if "manifest-list" not in snapshot:
            # In version 1 the snapshot itself may list them.
            for path in snapshot.get("manifests", ()):
                self._known.setdefault(path, {"manifest_path": path})
            return list(snapshot.get("manifests", ()))
        paths: dict[str, None] = {}
        with as_metadata(snapshot["manifest-list"]):
            for record in read_all(self._read(snapshot["manifest-list"])).records:
                if record["manifest_path"] in paths:
                    raise twice_there(record["manifest_path"])
                self._known.setdefault(record["manifest_path"], record)
                paths[record["manifest_path"]] = None
        return list(paths)

    def _entries(self, path: str) -> IcebergEntries:
        with as_metadata(path):
            return self._read_entries(path)

    def _read_entries(self, path: str) -> IcebergEntries:
        record = self._known[path]
        _refuse_encrypted(record, path)
        file = read_all(self._read(path))
        spec_id = record.get("partition_spec_id")
        number = int(file.header.get("partition-spec-id", 0)) if spec_id is None else spec_id
        self._specs.check_used(number)
        spec = self._specs.get(number)
        if spec is None:
            raise FormatError(f"the manifest {path} has a partitioning that the table does not have")
        names = partition_names(file.schema)
        next_row = record.get("first_row_id")
        entries: IcebergEntries = {}
        for live_record in file.records:
            status = live_record["status"]
            if status == DELETED:
                continue
            if status not in (EXISTING, ADDED):
                raise FormatError(
                    f"the manifest {path} has an entry of the status {status}, which is not known"
                )
            data = live_record["data_file"]
            first_row = data.get("first_row_id")
            if first_row is None and next_row is not None and data.get("content", DATA) == DATA:
                first_row, next_row = next_row, next_row + data["record_count"]
            sequence = live_record.get("sequence_number")
            entry = _entry(
                data,
                record.get("sequence_number") or 0 if sequence is None else sequence,
                spec,
                names,
                first_row,
            )
            if (entry.content == DATA) != (record.get("content", DATA) == DATA):
                raise FormatError(
                    f"the manifest {path} has {entry.path} among files of another kind: data files and deletes have "
                    "manifests of their own"
                )
            if entry.key in entries:
                raise twice_there(entry.path)
            entries[entry.key] = entry
        return entries


def _entry(
    data: Mapping[str, Any],
    sequence: int,
    spec: PartitionSpec,
    names: Mapping[int, str],
    first_row: int | None,
) -> IcebergEntry:
    path, content = data["file_path"], data.get("content", DATA)
    _refuse_encrypted(data, path)
    if content == EQUALITY_DELETES:
        raise Unsupported(
            f"the source has equality deletes, in {path}, which lakelog cannot have: rewrite its data files there "
            "(rewrite_data_files), or import fewer versions, where newer ones have none"
        )
    kind = str(data["file_format"]).upper()
    if kind not in (("PARQUET",) if content == DATA else ("PARQUET", "PUFFIN")):
        raise Unsupported(
            f"the file {path} of the source is {kind}, and lakelog reads Parquet: rewrite the data files there as "
            "Parquet, or copy the rows by CREATE TABLE … AS SELECT"
        )
    offset, size = data.get("content_offset"), data.get("content_size_in_bytes")
    partition = {}
    for part in spec.fields:
        name = names.get(part.id, avro_name(part.name))
        if name not in data["partition"]:
            raise FormatError(
                f"the manifest entry of {path} lacks the partition field {part.name} of the partitioning {spec.id}: "
                "rewrite the manifests of the source"
            )
        partition[part.id] = from_partition(data["partition"][name], part.result)
    return IcebergEntry(
        path=path,
        content=content,
        sequence=sequence,
        spec_id=spec.id,
        partition=partition,
        rows=data["record_count"],
        size_bytes=data["file_size_in_bytes"],
        first_row=first_row,
        about=data.get("referenced_data_file"),
        vector=(int(offset), int(size))
        if kind == "PUFFIN" and offset is not None and size is not None
        else None,
    )


def twice_there(path: str) -> InvalidInput:
    return InvalidInput(
        f"the source has the file {path} twice in one snapshot, so that readers show its rows twice: lakelog cannot "
        "have that. Remove it once there, or import fewer versions, where newer ones have it once"
    )


def _refuse_encrypted(record: Mapping[str, Any], path: str) -> None:
    if record.get("key_metadata") is not None:
        raise Unsupported(
            f"{path} of the source is encrypted, which lakelog does not read: copy the rows by CREATE TABLE … AS SELECT"
        )
