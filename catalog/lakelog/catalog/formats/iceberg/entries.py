"""Data files and their deletion vectors as entries of Iceberg's manifests. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lakelog.catalog.core.files import (
    AROUND_BYTES,
    HEAD_BYTES,
    DataFile,
    is_elsewhere,
    is_of_iceberg_client,
)
from lakelog.catalog.core.schema import AtomicType, PartitionSpec, Schema
from lakelog.catalog.formats.iceberg.avro_files import ADDED, DATA, EXISTING, POSITION_DELETES, avro_name
from lakelog.catalog.formats.iceberg.values import binary, in_partition
from lakelog.log.errors import Unsupported

_REWRITE = (
    "write its rows anew, by CREATE OR REPLACE TABLE … AS SELECT, or by a compaction where it is small and not the "
    "only file of its partition, and export the table again"
)


_STATISTICS = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


@dataclass(frozen=True, slots=True)
class VectorBlob:
    """The place of a file's vector for Iceberg: a blob in a puffin file of `file_size_bytes`."""

    path: str
    offset: int
    size_bytes: int
    file_size_bytes: int


@dataclass(frozen=True, slots=True)
class EntryWriter:
    """Makes the entries of a version of the table at `location`, which is the snapshot `snapshot_id`."""

    location: str
    schema: Schema
    specs: Mapping[int, PartitionSpec]
    snapshot_id: int
    version: int

    def absolute(self, path: str) -> str:
        return path if is_elsewhere(path) else f"{self.location}/{path}"

    def data(self, file: DataFile, *, is_new: bool) -> dict[str, Any]:
        """Return the entry of a data file. A new file of this snapshot may come from an older version."""
        if file.first_row is None:
            raise Unsupported(
                f"the data file {file.path} is of a time before there were row ids, which Iceberg needs: "
                f"{_REWRITE}"
            )
        if file.names is not None and not is_of_iceberg_client(file):
            raise Unsupported(
                f"the data file {file.path} has column ids that are not the table's, or none: {_REWRITE}"
            )
        version = self.version if file.version in (None, 0) else file.version
        data_file = self._of_file(file) | {
            "content": DATA,
            "file_path": self.absolute(file.path),
            "file_format": "PARQUET",
            "record_count": file.physical_rows,
            "file_size_in_bytes": file.size_bytes,
            "first_row_id": file.first_row,
            **self._statistics(file),
        }
        if is_new or version == self.version:
            return _entry(ADDED, self.snapshot_id, version, self.version, data_file)
        return _entry(EXISTING, version, version, version, data_file)

    def vector(self, file: DataFile, blob: VectorBlob, *, is_new: bool) -> dict[str, Any]:
        """Return the entry of a file's deletion vector."""
        assert file.deletes is not None
        data_file = self._of_file(file) | {
            "content": POSITION_DELETES,
            "file_path": blob.path,
            "file_format": "PUFFIN",
            "record_count": file.deletes.rows,
            "file_size_in_bytes": blob.file_size_bytes,
            "referenced_data_file": self.absolute(file.path),
            "content_offset": blob.offset,
            "content_size_in_bytes": blob.size_bytes,
        }
        status = ADDED if is_new else EXISTING
        return _entry(status, self.snapshot_id, self.version, self.version, data_file)

    def _of_file(self, file: DataFile) -> dict[str, Any]:
        spec = self.specs[file.spec_id]
        return {
            "partition": {
                avro_name(field.name): in_partition(file.partition.get(field.id), field.result)
                for field in spec.fields
            }
        }

    def _statistics(self, file: DataFile) -> dict[str, Any]:
        pairs_by_name: dict[str, list[dict[str, Any]]] = {name: [] for name in _STATISTICS}

        def add(name: str, id: int, value: object) -> None:
            pairs_by_name[name].append({"key": id, "value": value})

        for id, column_stats in sorted(file.stats.items()):
            type = self.schema.field_by_id(id).type if self.schema.has_id(id) else None
            if not isinstance(type, AtomicType):
                continue
            if column_stats.nulls is not None:
                add("value_counts", id, file.physical_rows)
                add("null_value_counts", id, column_stats.nulls)
            if column_stats.nans is not None:
                add("nan_value_counts", id, column_stats.nans)
            if type.family in ("float", "double") and column_stats.nans:
                continue  # bounds leave NaN out, and not every reader checks the count of NaN
            if column_stats.min is not None:
                add("lower_bounds", id, binary(column_stats.min, type))
            if column_stats.max is not None:
                add("upper_bounds", id, binary(column_stats.max, type))
        return {name: pairs or None for name, pairs in pairs_by_name.items()}


def _entry(
    status: int, snapshot_id: int, version: int, added_in: int, data_file: dict[str, Any]
) -> dict[str, Any]:
    return {
        "status": status,
        "snapshot_id": snapshot_id,
        "sequence_number": version,
        "file_sequence_number": added_in,
        "data_file": data_file,
    }


def blob_of(file: DataFile, absolute: Callable[[str], str]) -> VectorBlob | None:
    """Return the place of a file's vector as a blob. None if the log itself contains the vector."""
    deletes = file.deletes
    if deletes is None or deletes.path is None:
        return None
    assert deletes.offset is not None and deletes.object_size_bytes is not None
    return VectorBlob(
        absolute(deletes.path),
        deletes.offset - HEAD_BYTES,
        deletes.size_bytes + AROUND_BYTES,
        deletes.object_size_bytes,
    )
