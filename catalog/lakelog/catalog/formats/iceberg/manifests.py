"""Which manifests hold the files of a snapshot: the manifests of the snapshot before it, except for changes.

Pure.

A manifest holds files of a single partitioning whose first row ids are in an interval. So the manifest of a
file is known without reading any manifest. If files are removed, their manifests are rewritten. New files get
a manifest of their own, together with the files of small manifests before them. So a change costs in
proportion to its size. A snapshot of n files has about n / `FILES_MAX` + log2(`FILES_MAX`) manifests.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lakelog.catalog.core.schema import PartitionField, PartitionSpec
from lakelog.catalog.formats.iceberg import avro_files
from lakelog.catalog.formats.iceberg.avro_files import ADDED, DELETED, EXISTING, avro_name
from lakelog.catalog.formats.iceberg.values import as_number, bound

FILES_MAX = 2_000

ManifestEntry = Mapping[str, Any]


class ExportMismatch(Exception):
    """Signals that the earlier export does not match the table's state then. The export has to begin anew."""


@dataclass(frozen=True, slots=True)
class StoredManifest:
    """A manifest as a manifest list has it. Its name ends in the lowest row id of its interval and a hash."""

    record: Mapping[str, Any]

    @property
    def path(self) -> str:
        return str(self.record["manifest_path"])

    @property
    def content(self) -> int:
        return int(self.record["content"])

    @property
    def spec_id(self) -> int:
        return int(self.record["partition_spec_id"])

    @property
    def start(self) -> int:
        return int(self.path.rpartition("/")[2].split("-")[-2])

    @property
    def live(self) -> int:
        return int(self.record["added_files_count"]) + int(self.record["existing_files_count"])


@dataclass(frozen=True, slots=True)
class KeyedEntry:
    """The entry of a file whose first row has this id."""

    first_row: int
    entry: ManifestEntry


@dataclass(frozen=True, slots=True)
class _Part:
    """An interval: an unchanged manifest, or the entries of its new manifest."""

    start: int
    stored: StoredManifest | None
    entries: tuple[KeyedEntry, ...] = ()
    gone: tuple[KeyedEntry, ...] = ()

    @property
    def live(self) -> int:
        return len(self.entries) if self.stored is None else self.stored.live


@dataclass(slots=True)
class SnapshotChange:
    """The changes by a snapshot to the files of a content and partitioning.

    `gone` has the ids of the first rows of removed files, by their absolute paths.
    """

    gone: dict[str, int] = field(default_factory=dict)
    came: list[KeyedEntry] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ManifestWriter:
    """Makes the manifests of a snapshot.

    `put` stores a manifest, and returns its path. `read` returns the entries of a manifest of an older
    snapshot. `first_rows` returns the ids of the first rows of that snapshot's files, by their absolute
    paths. `schema` is Iceberg's JSON. `fresh_from` is the lowest row id that no older file has.
    """

    put: Callable[[str, str, bytes], str]
    snapshot_id: int
    version: int
    fresh_from: int
    schema: Mapping[str, Any]
    read: Callable[[StoredManifest], Sequence[ManifestEntry]]
    first_rows: Callable[[Sequence[str]], Sequence[int | None]]

    def changed(
        self,
        stored_manifests: Sequence[StoredManifest],
        change: SnapshotChange,
        spec: PartitionSpec,
        content: int,
    ) -> list[StoredManifest]:
        """Return the manifests of one content and partitioning after a change.

        `stored_manifests` are the manifests before.
        """
        parts = [
            _Part(manifest.start, manifest)
            for manifest in sorted(stored_manifests, key=lambda manifest: manifest.start)
            if manifest.live
        ]
        starts = [part.start for part in parts]
        gone_paths: dict[int, set[str]] = {}
        for path, first_row in change.gone.items():
            gone_paths.setdefault(_index(starts, first_row), set()).add(path)
        came: dict[int, list[KeyedEntry]] = {}
        fresh: list[KeyedEntry] = []
        for file in change.came:
            if not parts or file.first_row >= self.fresh_from:
                fresh.append(file)
            else:
                came.setdefault(_index(starts, file.first_row), []).append(file)
        new_parts: list[_Part] = []
        for number, part in enumerate(parts):
            if number in gone_paths or number in came:
                new_parts += self._split(
                    self._rewritten(part, gone_paths.get(number, set()), came.get(number, []))
                )
            else:
                new_parts.append(part)
        new_parts = self._with_fresh(new_parts, sorted(fresh, key=lambda file: file.first_row))
        return [self._written(part, spec, content) for part in new_parts]

    def _rewritten(self, part: _Part, paths: set[str], came: Iterable[KeyedEntry]) -> _Part:
        old_part = self._loaded(part)
        kept_files = [file for file in old_part.entries if _path(file.entry) not in paths]
        gone_files = [
            replace(file, entry={**file.entry, "status": DELETED, "snapshot_id": self.snapshot_id})
            for file in old_part.entries
            if _path(file.entry) in paths
        ]
        if len(gone_files) < len(paths):
            raise ExportMismatch(
                f"{part.stored and part.stored.path} has {len(gone_files)} of {len(paths)} files"
            )
        entries = sorted([*kept_files, *came], key=lambda file: file.first_row)
        return _Part(
            min([part.start, *(file.first_row for file in entries)]), None, tuple(entries), tuple(gone_files)
        )

    def _loaded(self, part: _Part) -> _Part:
        """Return the entries of a part, without the entries that its manifest marks as removed."""
        if part.stored is None:
            return part
        entries = [entry for entry in self.read(part.stored) if entry["status"] != DELETED]
        keys = self.first_rows([_path(entry) for entry in entries])
        if None in keys:
            raise ExportMismatch(f"{part.stored.path} has files that the snapshot does not have")
        files = [
            KeyedEntry(key, {**entry, "status": EXISTING})
            for key, entry in zip(keys, entries, strict=True)
            if key is not None
        ]
        return _Part(part.start, None, tuple(files))

    def _split(self, part: _Part) -> list[_Part]:
        if len(part.entries) <= FILES_MAX:
            return [part]
        pieces = [part.entries[at : at + FILES_MAX] for at in range(0, len(part.entries), FILES_MAX)]
        parts = [_Part(piece[0].first_row, None, piece) for piece in pieces]
        return [replace(parts[0], start=part.start, gone=part.gone), *parts[1:]]

    def _with_fresh(self, parts: list[_Part], fresh: list[KeyedEntry]) -> list[_Part]:
        if not fresh:
            return parts
        new = _Part(fresh[0].first_row, None, tuple(fresh))
        while parts and parts[-1].live <= 2 * new.live and parts[-1].live + new.live <= FILES_MAX:
            last_part = self._loaded(parts.pop())
            new = _Part(last_part.start, None, (*last_part.entries, *new.entries), last_part.gone)
        return [*parts, *self._split(new)]

    def _written(self, part: _Part, spec: PartitionSpec, content: int) -> StoredManifest:
        if part.stored is not None:
            return part.stored
        entries = [file.entry for file in (*part.entries, *part.gone)]
        data = avro_files.manifest(entries, spec, self.schema, content)
        kind = "deletes" if content else "data"
        path = self.put(f"{kind}-{spec.id}-{part.start:020d}", "avro", data)
        return StoredManifest(self._record(path, len(data), entries, spec, content, part))

    def _record(
        self,
        path: str,
        length: int,
        entries: Sequence[ManifestEntry],
        spec: PartitionSpec,
        content: int,
        part: _Part,
    ) -> dict[str, Any]:
        def of(status: int) -> list[ManifestEntry]:
            return [entry for entry in entries if entry["status"] == status]

        counts: dict[str, int] = {}
        for name, status in (("added", ADDED), ("existing", EXISTING), ("deleted", DELETED)):
            counts[f"{name}_files_count"] = len(of(status))
            counts[f"{name}_rows_count"] = sum(entry["data_file"]["record_count"] for entry in of(status))
        live = [entry["sequence_number"] for entry in entries if entry["status"] != DELETED]
        return {
            "manifest_path": path,
            "manifest_length": length,
            "partition_spec_id": spec.id,
            "content": content,
            "sequence_number": self.version,
            "min_sequence_number": min(live, default=self.version),
            "added_snapshot_id": self.snapshot_id,
            **counts,
            "partitions": [_partition_summary(entries, field) for field in spec.fields],
            "key_metadata": None,
            "first_row_id": None if content else part.start,
        }


def _path(entry: ManifestEntry) -> str:
    """Return the data file that an entry belongs to."""
    file = entry["data_file"]
    return str(file["referenced_data_file"] or file["file_path"])


def _index(starts: Sequence[int], first_row: int) -> int:
    """Return the interval of a row, by the starts of the intervals. The first also has all rows before it."""
    return max(0, bisect_right(starts, first_row) - 1)


def _partition_summary(entries: Sequence[ManifestEntry], field: PartitionField) -> dict[str, Any]:
    """Return the bounds of the files' partition values."""
    name, type = avro_name(field.name), field.result
    raw = [entry["data_file"]["partition"][name] for entry in entries]
    values = [as_number(value, type) for value in raw if value is not None]
    numbers = [value for value in values if value == value]
    return {
        "contains_null": any(value is None for value in raw),
        "contains_nan": len(numbers) < len(values) if type.family in ("float", "double") else None,
        "lower_bound": bound(min(numbers), type) if numbers else None,
        "upper_bound": bound(max(numbers), type) if numbers else None,
    }
