"""Manifests and manifest lists: Iceberg's Avro files, read and written. Pure.

The bytes are a function of the content, so all exporters write the same bytes. Source: the specification of
Iceberg's table format, version 3, "Manifests".
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

from lakelog.catalog.core.schema import PartitionSpec
from lakelog.catalog.formats.iceberg.values import avro_type
from lakelog.log.errors import FormatError

EXISTING, ADDED, DELETED = 0, 1, 2
"""How a manifest's snapshot changed a file."""
DATA, DELETES = 0, 1
"""The content of a manifest. A file of deletion vectors has `POSITION_DELETES`."""
POSITION_DELETES = 1

_SYNC = b"lakelog's mark: "
"""Avro requires 16 bytes between blocks. Other writers choose them at random."""


def manifest(
    entries: Iterable[Mapping[str, Any]], spec: PartitionSpec, schema: Mapping[str, Any], content: int
) -> bytes:
    """Return a manifest of files with the same partitioning."""
    fields = [
        {
            "source-id": field.source_id,
            "field-id": field.id,
            "name": field.name,
            "transform": str(field.transform),
        }
        for field in spec.fields
    ]
    header = {
        "schema": json.dumps(schema),
        "schema-id": str(schema["schema-id"]),
        "partition-spec": json.dumps(fields),
        "partition-spec-id": str(spec.id),
        "format-version": "3",
        "content": "deletes" if content == DELETES else "data",
    }
    return _written(_entry(spec), entries, header)


def manifest_list(manifests: Iterable[Mapping[str, Any]], snapshot: Mapping[str, Any]) -> bytes:
    header = {
        "snapshot-id": str(snapshot["snapshot-id"]),
        "parent-snapshot-id": str(snapshot.get("parent-snapshot-id", "null")),
        "sequence-number": str(snapshot["sequence-number"]),
        "first-row-id": str(snapshot["first-row-id"]),
        "format-version": "3",
    }
    return _written(_MANIFEST_FILE, manifests, header)


def read(data: bytes) -> list[dict[str, Any]]:
    """Return the records of a file.

    Raises FormatError for other bytes, and for dates that Python does not have.
    """
    return read_all(data).records


class AvroFile(NamedTuple):
    """`header` is the writer's metadata of the file, and `schema` its Avro schema."""

    records: list[dict[str, Any]]
    header: Mapping[str, str]
    schema: Any


def read_all(data: bytes) -> AvroFile:
    """Like `read`, but return the file's header and schema too."""
    import fastavro

    try:
        reader = fastavro.reader(io.BytesIO(data))
        records = cast(list[dict[str, Any]], list(reader))
        return AvroFile(records, cast(Mapping[str, str], reader.metadata), reader.writer_schema)
    except Exception as error:  # the reader raises any class, depending on the damage
        raise FormatError(f"an Avro file cannot be read ({type(error).__name__}: {error})") from error


def partition_names(schema: Any) -> dict[int, str]:
    """Return the names of partition fields in a manifest by their ids, if its schema has ids."""
    for field in schema["fields"]:
        if field["name"] == "data_file":
            for part in field["type"]["fields"]:
                if part["name"] == "partition":
                    return {
                        part_field["field-id"]: part_field["name"]
                        for part_field in part["type"]["fields"]
                        if "field-id" in part_field
                    }
    return {}


def _written(schema: Any, records: Iterable[Mapping[str, Any]], header: Mapping[str, str]) -> bytes:
    # Loaded only if a table is exported, because most processes export none.
    import fastavro

    out = io.BytesIO()
    fastavro.writer(
        out, schema, records, codec="deflate", metadata=dict(header), sync_marker=_SYNC, validator=False
    )
    return out.getvalue()


def avro_name(name: str) -> str:
    """Return a partition field's name as Iceberg writes it if Avro does not allow the name."""
    escaped_name = re.sub(r"[^A-Za-z0-9_]", lambda match: f"_x{ord(match[0]):X}", name)
    return f"_{escaped_name}" if escaped_name[:1].isdigit() else escaped_name


def _field(id: int, name: str, type: Any, *, optional: bool = False) -> dict[str, Any]:
    if optional:
        return {"name": name, "type": ["null", type], "default": None, "field-id": id}
    return {"name": name, "type": type, "field-id": id}


def _by_column(id: int, name: str, key_id: int, value_id: int, type: str) -> dict[str, Any]:
    """Return a map from column ids, which is a list of pairs in Avro."""
    pair = {
        "type": "record",
        "name": f"k{key_id}_v{value_id}",
        "fields": [_field(key_id, "key", "int"), _field(value_id, "value", type)],
    }
    return _field(id, name, {"type": "array", "items": pair, "logicalType": "map"}, optional=True)


def _entry(spec: PartitionSpec) -> dict[str, Any]:
    """Return the Avro schema of manifest entries with a partitioning."""
    type_names: set[str] = set()
    parts = []
    for field in spec.fields:
        type = avro_type(field.result)
        if isinstance(type, dict) and "name" in type:
            # Avro allows only one definition of a type.
            name = type["name"]
            type = name if name in type_names else type
            type_names.add(name)
        parts.append(_field(field.id, avro_name(field.name), type, optional=True))
    data_file = [
        _field(134, "content", "int"),
        _field(100, "file_path", "string"),
        _field(101, "file_format", "string"),
        _field(102, "partition", {"type": "record", "name": "r102", "fields": parts}),
        _field(103, "record_count", "long"),
        _field(104, "file_size_in_bytes", "long"),
        _by_column(109, "value_counts", 119, 120, "long"),
        _by_column(110, "null_value_counts", 121, 122, "long"),
        _by_column(137, "nan_value_counts", 138, 139, "long"),
        _by_column(125, "lower_bounds", 126, 127, "bytes"),
        _by_column(128, "upper_bounds", 129, 130, "bytes"),
        _field(140, "sort_order_id", "int", optional=True),
        _field(142, "first_row_id", "long", optional=True),
        _field(143, "referenced_data_file", "string", optional=True),
        _field(144, "content_offset", "long", optional=True),
        _field(145, "content_size_in_bytes", "long", optional=True),
    ]
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            _field(0, "status", "int"),
            _field(1, "snapshot_id", "long", optional=True),
            _field(3, "sequence_number", "long", optional=True),
            _field(4, "file_sequence_number", "long", optional=True),
            _field(2, "data_file", {"type": "record", "name": "r2", "fields": data_file}),
        ],
    }


_SUMMARY = {
    "type": "record",
    "name": "r508",
    "fields": [
        _field(509, "contains_null", "boolean"),
        _field(518, "contains_nan", "boolean", optional=True),
        _field(510, "lower_bound", "bytes", optional=True),
        _field(511, "upper_bound", "bytes", optional=True),
    ],
}
_MANIFEST_FILE = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        _field(500, "manifest_path", "string"),
        _field(501, "manifest_length", "long"),
        _field(502, "partition_spec_id", "int"),
        _field(517, "content", "int"),
        _field(515, "sequence_number", "long"),
        _field(516, "min_sequence_number", "long"),
        _field(503, "added_snapshot_id", "long"),
        _field(504, "added_files_count", "int"),
        _field(505, "existing_files_count", "int"),
        _field(506, "deleted_files_count", "int"),
        _field(512, "added_rows_count", "long"),
        _field(513, "existing_rows_count", "long"),
        _field(514, "deleted_rows_count", "long"),
        _field(507, "partitions", {"type": "array", "items": _SUMMARY, "element-id": 508}, optional=True),
        _field(519, "key_metadata", "bytes", optional=True),
        _field(520, "first_row_id", "long", optional=True),
    ],
}
