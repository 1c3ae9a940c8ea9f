"""Iceberg's metadata of a table: a JSON object for each export, made from the previous export's. Pure.

Source: the specification of Iceberg's table format, version 3, "Table Metadata".
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lakelog.catalog.core.schema import FIRST_FIELD_ID, Metadata, PartitionSpec, Schema
from lakelog.catalog.core.state import MAIN
from lakelog.catalog.formats.iceberg.schemas import exported_specs, order_json, schema_json, spec_json
from lakelog.log.decoding import decoded
from lakelog.log.errors import FormatError

VERSION, LOG_ID, DIGEST = "lakelog.version", "lakelog.log-id", "lakelog.digest"
"""The properties that say which version of which log was exported, and that no other program has changed it.
"""

DERIVED_PROPERTIES = frozenset((VERSION, LOG_ID, DIGEST))

Document = dict[str, Any]


class _Properties(msgspec.Struct):
    properties: dict[str, str]


_DOCUMENT = msgspec.json.Decoder(Document)
_PROPERTIES = msgspec.json.Decoder(_Properties)
_SIZE_MAX = 1 << 30


def table_uuid(log_id: str) -> str:
    """Return the UUID of a table. All exporters make the same UUID."""
    digits = hashlib.sha256(log_id.encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"


def empty_document(location: str, log_id: str) -> Document:
    """Return the metadata that the first export of a table continues."""
    return {
        "format-version": 3,
        "table-uuid": table_uuid(log_id),
        "location": location,
        "last-sequence-number": 0,
        "last-updated-ms": 0,
        "last-column-id": 0,
        "current-schema-id": 0,
        "schemas": [],
        "default-spec-id": 0,
        "partition-specs": [],
        "last-partition-id": FIRST_FIELD_ID - 1,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
        "current-snapshot-id": -1,
        "refs": {},
        "snapshots": [],
        "snapshot-log": [],
        "metadata-log": [],
        "next-row-id": 0,
    }


def with_metadata(
    document: Document, metadata: Metadata, log_id: str, version: int, time_us: int
) -> Document:
    """Return the document with the columns, partitioning, order and properties of a version."""
    document, schema = with_schema(document, metadata)
    all_specs = exported_specs(metadata, metadata.schema)
    document = with_specs(document, all_specs)
    parts = [field.id for spec in metadata.specs for field in spec.fields]
    order = order_json(metadata.sort_order, 0)
    orders = document["sort-orders"]
    order_id = next(
        (sort_order["order-id"] for sort_order in orders if sort_order["fields"] == order["fields"]), None
    )
    if order_id is None:
        order_id = max(sort_order["order-id"] for sort_order in orders) + 1
        orders = [*orders, {**order, "order-id": order_id}]
    properties = dict(sorted(metadata.properties.items()))
    if metadata.comment is not None:
        properties["comment"] = metadata.comment
    return document | {
        "current-schema-id": schema["schema-id"],
        "last-column-id": max(document["last-column-id"], metadata.schema.last_id),
        "default-spec-id": all_specs[metadata.spec.id].id,
        "last-partition-id": max([document["last-partition-id"], *parts]),
        "sort-orders": orders,
        "default-sort-order-id": order_id,
        "properties": {**properties, VERSION: str(version), LOG_ID: log_id},
        "last-updated-ms": time_us // 1000,
    }


def with_schema(document: Document, metadata: Metadata) -> tuple[Document, Document]:
    """Return the document with these columns, and their schema. A schema that the document has is reused."""
    fields = schema_json(metadata.schema, 0)["fields"]
    for schema in document["schemas"]:
        if schema["fields"] == fields:
            return document, schema
    new_schema = schema_json(
        metadata.schema,
        max((json_schema["schema-id"] for json_schema in document["schemas"]), default=-1) + 1,
    )
    return document | {"schemas": [*document["schemas"], new_schema]}, new_schema


def with_specs(document: Document, exported_specs: Mapping[int, PartitionSpec]) -> Document:
    """Return the document with these partitionings too."""
    specs = {json_spec["spec-id"]: json_spec for json_spec in document["partition-specs"]}
    specs |= {spec.id: spec_json(spec) for spec in exported_specs.values()}
    return document | {"partition-specs": [specs[id] for id in sorted(specs)]}


def is_partitioned_by_others(document: Document, columns: Schema) -> bool:
    """Return whether some partitioning of the document has a column that is not among `columns`."""
    return not all(
        columns.has_id(field["source-id"]) for spec in document["partition-specs"] for field in spec["fields"]
    )


def with_snapshots(
    document: Document,
    snapshots: Sequence[Document],
    main_log: Sequence[Document],
    refs: Mapping[str, Document],
    next_row: int,
    listed: int,
    expired: int,
) -> Document:
    """Return the document with more snapshots. The newest `listed` and the snapshots of `refs` stay.

    `main_log` has the snapshots that became main's, for the snapshot log.

    Of versions before `expired`, only snapshots of `refs` stay because the files of others may be gone.
    """
    snapshots_by_id = {snapshot["snapshot-id"]: snapshot for snapshot in [*document["snapshots"], *snapshots]}
    all_snapshots = sorted(
        snapshots_by_id.values(), key=lambda snapshot: (snapshot["sequence-number"], snapshot["snapshot-id"])
    )
    wanted_ids = {snapshot["snapshot-id"] for snapshot in refs.values()}
    wanted_ids |= {
        snapshot["snapshot-id"]
        for snapshot in all_snapshots[-listed:]
        if snapshot["sequence-number"] >= expired
    }
    listed_snapshots = [snapshot for snapshot in all_snapshots if snapshot["snapshot-id"] in wanted_ids]
    for number, snapshot in enumerate(listed_snapshots):
        # Leave out a parent that is not listed any more because readers look it up.
        if snapshot.get("parent-snapshot-id") not in wanted_ids:
            listed_snapshots[number] = {
                name: value for name, value in snapshot.items() if name != "parent-snapshot-id"
            }
    main = refs.get(MAIN)
    log = [*document["snapshot-log"], *main_log]
    return document | {
        "snapshots": listed_snapshots,
        "refs": dict(sorted(refs.items())),
        "current-snapshot-id": -1 if main is None else main["snapshot-id"],
        "snapshot-log": [snapshot for snapshot in log if snapshot["snapshot-id"] in wanted_ids],
        "last-sequence-number": max(
            (snapshot["sequence-number"] for snapshot in listed_snapshots), default=0
        ),
        "next-row-id": next_row,
    }


def encode(document: Document) -> bytes:
    """Return the bytes of any document."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1)


def encode_signed(document: Document) -> bytes:
    """Return the bytes of a table's metadata.

    The property `lakelog.digest` has the SHA-256 of the bytes without it.
    """

    def encoded(digest: str) -> bytes:
        return encode(document | {"properties": document["properties"] | {DIGEST: digest}})

    return encoded(hashlib.sha256(encoded("")).hexdigest())


def is_as_signed(document: Document, data: bytes) -> bool:
    """Return whether `encode_signed` has returned these bytes of a document."""
    properties = document.get("properties")
    digest = properties.get(DIGEST) if isinstance(properties, dict) else None
    if not isinstance(digest, str) or not digest:
        return False
    return hashlib.sha256(data.replace(digest.encode(), b"", 1)).hexdigest() == digest


def decoded_document(data: bytes) -> Document:
    """Return the object in JSON bytes. Raises FormatError for other bytes."""
    return decoded(_DOCUMENT, data, "Iceberg's metadata", size_max=_SIZE_MAX)


def exported_version(data: bytes) -> int:
    """Return the version of an export. Raises FormatError for other bytes."""
    version = decoded(_PROPERTIES, data, "Iceberg's metadata", size_max=_SIZE_MAX).properties.get(VERSION, "")
    if not version.isdigit():
        raise FormatError("Iceberg's metadata does not say which version of the table it is of")
    return int(version)


def in_version_2(document: Document) -> Document | None:
    """Return an export in version 2 of Iceberg's format. None if it needs version 3.

    Its manifests have members that readers of version 2 skip.
    """
    has_vectors = any(
        snapshot["summary"].get("total-delete-files", "0") != "0" for snapshot in document["snapshots"]
    )
    if has_vectors or any(_has_defaults(schema) for schema in document["schemas"]):
        return None
    result = {name: value for name, value in document.items() if name != "next-row-id"}
    snapshots = [
        {name: value for name, value in snapshot.items() if name not in ("first-row-id", "added-rows")}
        for snapshot in document["snapshots"]
    ]
    return result | {"format-version": 2, "snapshots": snapshots}


def _has_defaults(type_json: Any) -> bool:
    if not isinstance(type_json, dict):
        return False
    if "initial-default" in type_json or "write-default" in type_json:
        return True
    parts = [type_json.get(part) for part in ("type", "element", "key", "value")]
    return any(map(_has_defaults, [*type_json.get("fields", ()), *parts]))
