"""Which manifests hold the files of a snapshot: those of the snapshot before it, except for what has changed. Pure.

A manifest holds files of one partitioning whose first row ids are in one interval, so that the manifest of a file is
known without a look into any. Where files are removed, their manifests are written anew; new files come into a
manifest of their own, together with those of small ones before them. So a change costs what it changes, and a snapshot
of n files has about n / `FILES_MAX` + log2(`FILES_MAX`) manifests.
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

Entry = Mapping[str, Any]


class Misfit(Exception):
    """What was exported before is not what the table had then: it is to be exported from the beginning."""


@dataclass(frozen=True, slots=True)
class Stored:
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
class Keyed:
    """An entry of a file whose first row has this id."""

    first_row: int
    entry: Entry


@dataclass(frozen=True, slots=True)
class _Part:
    """One interval: a manifest as it is, or the entries that it is to have."""

    start: int
    stored: Stored | None
    entries: tuple[Keyed, ...] = ()
    gone: tuple[Keyed, ...] = ()

    @property
    def live(self) -> int:
        return len(self.entries) if self.stored is None else self.stored.live


@dataclass(slots=True)
class Change:
    """What a snapshot changes of the files of one content and partitioning.

    `gone` has the ids of the first rows of files that it removes, by their absolute paths.
    """

    gone: dict[str, int] = field(default_factory=dict)
    came: list[Keyed] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Manifests:
    """Makes the manifests of one snapshot.

    `put` takes one, and returns its path; `read` returns the entries of a manifest of an older one, and `first_rows`
    the ids of the first rows of that one's files, by their absolute paths. `schema` is Iceberg's JSON. `fresh_from` is
    the lowest row id that no older file has.
    """

    put: Callable[[str, str, bytes], str]
    snapshot_id: int
    version: int
    fresh_from: int
    schema: Mapping[str, Any]
    read: Callable[[Stored], Sequence[Entry]]
    first_rows: Callable[[Sequence[str]], Sequence[int | None]]

    def changed(
        self, stored: Sequence[Stored], change: Change, spec: PartitionSpec, content: int
    ) -> list[Stored]:
        """Return the manifests after a change of those that are `stored`, of one content and partitioning."""
        parts = [_Part(each.start, each) for each in sorted(stored, key=lambda each: each.start) if each.live]
        starts = [part.start for part in parts]
        gone: dict[int, set[str]] = {}
        for path, first_row in change.gone.items():
            gone.setdefault(_index(starts, first_row), set()).add(path)
        came: dict[int, list[Keyed]] = {}
        fresh: list[Keyed] = []
        for keyed in change.came:
            if not parts or keyed.first_row >= self.fresh_from:
                fresh.append(keyed)
            else:
                came.setdefault(_index(starts, keyed.first_row), []).append(keyed)
        made: list[_Part] = []
        for number, part in enumerate(parts):
            if number in gone or number in came:
                made += self._split(self._rewritten(part, gone.get(number, set()), came.get(number, [])))
            else:
                made.append(part)
        made = self._with_fresh(made, sorted(fresh, key=lambda each: each.first_row))
        return [self._written(part, spec, content) for part in made]

    def _rewritten(self, part: _Part, paths: set[str], came: Iterable[Keyed]) -> _Part:
        loaded = self._loaded(part)
        kept = [each for each in loaded.entries if _path(each.entry) not in paths]
        gone = [
            replace(each, entry={**each.entry, "status": DELETED, "snapshot_id": self.snapshot_id})
            for each in loaded.entries
            if _path(each.entry) in paths
        ]
        if len(gone) < len(paths):
            raise Misfit(f"{part.stored and part.stored.path} has {len(gone)} of {len(paths)} files")
        entries = sorted([*kept, *came], key=lambda each: each.first_row)
        return _Part(
            min([part.start, *(each.first_row for each in entries)]), None, tuple(entries), tuple(gone)
        )

    def _loaded(self, part: _Part) -> _Part:
        """Return the entries of a part, those that its manifest has as removed left out."""
        if part.stored is None:
            return part
        entries = [entry for entry in self.read(part.stored) if entry["status"] != DELETED]
        keys = self.first_rows([_path(entry) for entry in entries])
        if None in keys:
            raise Misfit(f"{part.stored.path} has files that the snapshot does not have")
        kept = [
            Keyed(key, {**entry, "status": EXISTING})
            for key, entry in zip(keys, entries, strict=True)
            if key is not None
        ]
        return _Part(part.start, None, tuple(kept))

    def _split(self, part: _Part) -> list[_Part]:
        if len(part.entries) <= FILES_MAX:
            return [part]
        pieces = [part.entries[at : at + FILES_MAX] for at in range(0, len(part.entries), FILES_MAX)]
        parts = [_Part(piece[0].first_row, None, piece) for piece in pieces]
        return [replace(parts[0], start=part.start, gone=part.gone), *parts[1:]]

    def _with_fresh(self, parts: list[_Part], fresh: list[Keyed]) -> list[_Part]:
        if not fresh:
            return parts
        new = _Part(fresh[0].first_row, None, tuple(fresh))
        while parts and parts[-1].live <= 2 * new.live and parts[-1].live + new.live <= FILES_MAX:
            before = self._loaded(parts.pop())
            new = _Part(before.start, None, (*before.entries, *new.entries), before.gone)
        return [*parts, *self._split(new)]

    def _written(self, part: _Part, spec: PartitionSpec, content: int) -> Stored:
        if part.stored is not None:
            return part.stored
        entries = [each.entry for each in (*part.entries, *part.gone)]
        data = avro_files.manifest(entries, spec, self.schema, content)
        kind = "deletes" if content else "data"
        path = self.put(f"{kind}-{spec.id}-{part.start:020d}", "avro", data)
        return Stored(self._record(path, len(data), entries, spec, content, part))

    def _record(
        self, path: str, length: int, entries: Sequence[Entry], spec: PartitionSpec, content: int, part: _Part
    ) -> dict[str, Any]:
        def of(status: int) -> list[Entry]:
            return [entry for entry in entries if entry["status"] == status]

        counted: dict[str, int] = {}
        for name, status in (("added", ADDED), ("existing", EXISTING), ("deleted", DELETED)):
            counted[f"{name}_files_count"] = len(of(status))
            counted[f"{name}_rows_count"] = sum(entry["data_file"]["record_count"] for entry in of(status))
        live = [entry["sequence_number"] for entry in entries if entry["status"] != DELETED]
        return {
            "manifest_path": path,
            "manifest_length": length,
            "partition_spec_id": spec.id,
            "content": content,
            "sequence_number": self.version,
            "min_sequence_number": min(live, default=self.version),
            "added_snapshot_id": self.snapshot_id,
            **counted,
            "partitions": [_partition_summary(entries, field) for field in spec.fields],
            "key_metadata": None,
            "first_row_id": None if content else part.start,
        }


def _path(entry: Entry) -> str:
    """Return the data file that an entry is about."""
    file = entry["data_file"]
    return str(file["referenced_data_file"] or file["file_path"])


def _index(starts: Sequence[int], first_row: int) -> int:
    """Return which interval a row is in, by where they begin: the first one has all before it too."""
    return max(0, bisect_right(starts, first_row) - 1)


def _partition_summary(entries: Sequence[Entry], field: PartitionField) -> dict[str, Any]:
    """Return between which values the files' partitions are."""
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
