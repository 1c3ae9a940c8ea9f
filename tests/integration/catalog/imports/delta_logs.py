"""Delta tables for tests: logs that are written by hand, and rows as each reader has them."""

from __future__ import annotations

import base64
import json
import struct
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from lakelog.catalog.core.files import DataFile, check_files, files_to_arrow
from lakelog.catalog.core.logs.places import WarehouseStores
from lakelog.catalog.core.parquet import read_files
from lakelog.catalog.core.schema import PartitionSpec, Schema
from lakelog.catalog.formats.imports.delta import DeltaSource, delta_source
from lakelog.catalog.formats.imports.source import SourceVersion

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
LOG = "_delta_log"
READER = ("columnMapping", "deletionVectors", "v2Checkpoint", "timestampNtz")


# Rows


def source_of(folder: Path | str, time_zone: str | None = None) -> DeltaSource:
    return delta_source(str(folder), WarehouseStores(str(folder), {}).open_url, time_zone=time_zone)


def rows_of(folder: Path | str, files: Iterable[DataFile], version: SourceVersion) -> list[str]:
    """Return the live rows of files by lakelog's own reader, in one order."""
    return sorted(map(repr, _read(folder, list(files), version.schema, version.specs).to_pylist()))


def _read(
    folder: Path | str, files: Sequence[DataFile], schema: Schema, specs: Sequence[PartitionSpec]
) -> pa.Table:
    check_files(files, schema, specs)
    places = WarehouseStores(str(folder), {})
    plan = files_to_arrow(files, schema, specs)
    found, batches = read_files(
        places.store(places.warehouse), "", plan, schema, specs, open_url=places.open_url
    )
    return pa.Table.from_batches(list(batches), found)


def rows_of_delta(folder: Path, version: SourceVersion) -> list[str]:
    """Return the rows of the same version by delta-rs."""
    table = deltalake.DeltaTable(folder, version=int(version.id))
    found_table = deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all()
    names = [field.name for field in version.schema.fields]
    whole_table = pa.table(found_table).select(names)
    ours = _read(folder, [], version.schema, version.specs).schema
    return sorted(
        map(repr, whole_table.cast(pa.schema([each.remove_metadata() for each in ours])).to_pylist())
    )


def versions_with_files(source: DeltaSource, newest: int = 100) -> list[tuple[SourceVersion, list[DataFile]]]:
    """Return versions, each with all that is live then, as its changes and those of the ones before make it."""
    live: dict[str, DataFile] = {}
    found = []
    for version in source.versions(newest):
        for path in version.removed:
            del live[path]
        for file in version.added:
            assert file.path not in live, "a file is added that is there"
            live[file.path] = file
        found.append((version, list(live.values())))
    return found


# Logs by hand


def column(name: str, type: Any, **metadata: Any) -> dict[str, Any]:
    nullable = metadata.pop("nullable", True)
    return {"name": name, "type": type, "nullable": nullable, "metadata": metadata}


def mapped(name: str, type: Any, id: int, physical: str, **metadata: Any) -> dict[str, Any]:
    given = {"delta.columnMapping.id": id, "delta.columnMapping.physicalName": physical}
    return column(name, type, **given, **metadata)


def struct_of(*fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def vector_bytes(positions: Iterable[int], magic: int = 1681511377) -> bytes:
    return struct.pack("<I", magic) + BitMap64(positions).serialize()


def z85(data: bytes) -> str:
    padded_data = data + b"\0" * (-len(data) % 4)
    return base64.b85encode(padded_data).decode().translate(str.maketrans(B85, Z85))


class DeltaLog:
    """A Delta table in a folder, action by action."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / LOG).mkdir(parents=True, exist_ok=True)

    def write(self, name: str, rows: pa.Table, **more: Any) -> dict[str, Any]:
        """Write a data file, and return the action that adds it, by `uri` if its path has to be encoded."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path)
        stats = json.dumps({"numRecords": rows.num_rows})
        return self.add(more.pop("uri", name), path.stat().st_size, stats=stats, **more)

    @staticmethod
    def add(path: str, size: int, **more: Any) -> dict[str, Any]:
        given = {"path": path, "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True}
        return {"add": {**given, **more}}

    @staticmethod
    def remove(add: Mapping[str, Any]) -> dict[str, Any]:
        kept = {key: add["add"][key] for key in ("path", "deletionVector") if key in add["add"]}
        return {"remove": {**kept, "dataChange": True, "deletionTimestamp": 0}}

    @staticmethod
    def protocol(*features: str, reader: int = 3) -> dict[str, Any]:
        lists = {"readerFeatures": list(features), "writerFeatures": list(features)} if reader == 3 else {}
        writer = 7 if reader == 3 else 5
        return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer, **lists}}

    @staticmethod
    def metadata(
        *fields: Mapping[str, Any], partition: Sequence[str] = (), **configuration: str
    ) -> dict[str, Any]:
        return {
            "metaData": {
                "id": "5f0f5e3c-7c0e-4f3c-9f53-0c6a3d1a2b3c",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(struct_of(*fields)),
                "partitionColumns": list(partition),
                "configuration": configuration,
            }
        }

    def commit(self, version: int, *actions: Mapping[str, Any]) -> None:
        text = "\n".join(json.dumps(action) for action in actions)
        (self.folder / LOG / f"{version:020d}.json").write_text(text + "\n")

    def checkpoint(self, name: str, actions: Sequence[Mapping[str, Any]]) -> None:
        """Write a checkpoint, a part or a sidecar of one, as its name says."""
        path = self.folder / LOG / name
        path.parent.mkdir(exist_ok=True)
        if name.endswith(".json"):
            path.write_text("\n".join(json.dumps(action) for action in actions))
            return
        kinds = list(dict.fromkeys(kind for action in actions for kind in action))
        columns = [pa.array([action.get(kind) for action in actions], TYPES[kind]) for kind in kinds]
        pq.write_table(pa.table(columns, names=kinds), path)

    def vector(self, positions: Iterable[int], at: str = "u", prefix: str = "") -> dict[str, Any]:
        """Store a deletion vector: inline, beside the table, or at a path."""
        data = vector_bytes(positions)
        given = {"sizeInBytes": len(data), "cardinality": len(set(positions))}
        if at == "i":
            return {"storageType": "i", "pathOrInlineDv": z85(data), **given}
        id = uuid.uuid4()
        path = self.folder / prefix / f"deletion_vector_{id}.bin"
        path.parent.mkdir(exist_ok=True)
        other_vector_bytes = vector_bytes([1, 2, 3])
        path.write_bytes(b"\1" + _framed_data(other_vector_bytes) + _framed_data(data))
        place = prefix + z85(id.bytes) if at == "u" else path.as_uri()
        offset = 1 + len(_framed_data(other_vector_bytes))
        return {"storageType": at, "pathOrInlineDv": place, "offset": offset, **given}


def _framed_data(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))


_TEXTS = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    {
        "storageType": pa.string(),
        "pathOrInlineDv": pa.string(),
        "offset": pa.int32(),
        "sizeInBytes": pa.int32(),
        "cardinality": pa.int64(),
    }
)
_VALUES = pa.struct({"id": pa.int64(), "day": pa.date32(), "at": pa.timestamp("us", "UTC")})
TYPES = {
    "add": pa.struct(
        {
            "path": pa.string(),
            "partitionValues": _TEXTS,
            "size": pa.int64(),
            "modificationTime": pa.int64(),
            "dataChange": pa.bool_(),
            "stats": pa.string(),
            "stats_parsed": pa.struct(
                {
                    "numRecords": pa.int64(),
                    "minValues": _VALUES,
                    "maxValues": _VALUES,
                    "nullCount": pa.struct({"id": pa.int64(), "day": pa.int64(), "at": pa.int64()}),
                }
            ),
            "partitionValues_parsed": pa.struct({"id": pa.int64()}),
            "deletionVector": _VECTOR,
        }
    ),
    "remove": pa.struct({"path": pa.string(), "deletionTimestamp": pa.int64()}),
    "metaData": pa.struct(
        {
            "id": pa.string(),
            "format": pa.struct({"provider": pa.string(), "options": _TEXTS}),
            "schemaString": pa.string(),
            "partitionColumns": pa.list_(pa.string()),
            "configuration": _TEXTS,
        }
    ),
    "protocol": pa.struct(
        {
            "minReaderVersion": pa.int32(),
            "minWriterVersion": pa.int32(),
            "readerFeatures": pa.list_(pa.string()),
            "writerFeatures": pa.list_(pa.string()),
        }
    ),
    "txn": pa.struct({"appId": pa.string(), "version": pa.int64()}),
    "checkpointMetadata": pa.struct({"version": pa.int64()}),
    "sidecar": pa.struct({"path": pa.string(), "sizeInBytes": pa.int64(), "modificationTime": pa.int64()}),
}
"""Columns of checkpoints, as Delta's protocol has them."""
