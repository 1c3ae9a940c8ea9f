"""Iceberg's metadata of a table: a JSON object for each export, made from the one before it. Pure.

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
"""The properties that say which version of which log was exported, and that no other program has changed it since."""

Document = dict[str, Any]


class _Properties(msgspec.Struct):
    properties: dict[str, str]


_DOCUMENT = msgspec.json.Decoder(Document)
_PROPERTIES = msgspec.json.Decoder(_Properties)
_SIZE_MAX = 1 << 30


def table_uuid(log_id: str) -> str:
    """Return the same UUID for the same table, by any exporter."""
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
    exported = exported_specs(metadata, metadata.schema)
    document = with_specs(document, exported)
    parts = [field.id for spec in metadata.specs for field in spec.fields]
    order = order_json(metadata.sort_order, 0)
    orders = document["sort-orders"]
    order_id = next((each["order-id"] for each in orders if each["fields"] == order["fields"]), None)
    if order_id is None:
        order_id = max(each["order-id"] for each in orders) + 1
        orders = [*orders, {**order, "order-id": order_id}]
    properties = dict(sorted(metadata.properties.items()))
    if metadata.comment is not None:
        properties["comment"] = metadata.comment
    return document | {
        "current-schema-id": schema["schema-id"],
        "last-column-id": max(document["last-column-id"], metadata.schema.last_id),
        "default-spec-id": exported[metadata.spec.id].id,
        "last-partition-id": max([document["last-partition-id"], *parts]),
        "sort-orders": orders,
        "default-sort-order-id": order_id,
        "properties": {**properties, VERSION: str(version), LOG_ID: log_id},
        "last-updated-ms": time_us // 1000,
    }


def with_schema(document: Document, metadata: Metadata) -> tuple[Document, Document]:
    """Return the document with these columns, and their schema: a known one, if there is one."""
    wanted = schema_json(metadata.schema, 0)["fields"]
    for schema in document["schemas"]:
        if schema["fields"] == wanted:
            return document, schema
    made = schema_json(
        metadata.schema, max((each["schema-id"] for each in document["schemas"]), default=-1) + 1
    )
    return document | {"schemas": [*document["schemas"], made]}, made


def with_specs(document: Document, exported: Mapping[int, PartitionSpec]) -> Document:
    """Return the document with these partitionings too."""
    specs = {each["spec-id"]: each for each in document["partition-specs"]}
    specs |= {spec.id: spec_json(spec) for spec in exported.values()}
    return document | {"partition-specs": [specs[id] for id in sorted(specs)]}


def is_partitioned_by_others(document: Document, columns: Schema) -> bool:
    """Return whether some partitioning of the document has a column that is not among `columns`."""
    return not all(
        columns.has_id(field["source-id"]) for spec in document["partition-specs"] for field in spec["fields"]
    )


def with_snapshots(
    document: Document,
    snapshots: Sequence[Document],
    refs: Mapping[str, Document],
    next_row: int,
    listed: int,
    expired: int,
) -> Document:
    """Return the document with more snapshots, of which the newest `listed` and those of `refs` stay.

    Of versions before `expired`, none stay but those of `refs`: their files may be gone.
    """
    known = {each["snapshot-id"]: each for each in [*document["snapshots"], *snapshots]}
    ordered = sorted(known.values(), key=lambda each: (each["sequence-number"], each["snapshot-id"]))
    wanted = {each["snapshot-id"] for each in refs.values()}
    wanted |= {each["snapshot-id"] for each in ordered[-listed:] if each["sequence-number"] >= expired}
    kept = [each for each in ordered if each["snapshot-id"] in wanted]
    for number, each in enumerate(kept):
        # A parent that is listed no more is no parent: readers look for it.
        if each.get("parent-snapshot-id") not in wanted:
            kept[number] = {name: value for name, value in each.items() if name != "parent-snapshot-id"}
    main = refs.get(MAIN)
    log = [*document["snapshot-log"]]
    log += [
        {"snapshot-id": each["snapshot-id"], "timestamp-ms": each["timestamp-ms"]}
        for each in snapshots
        if each["snapshot-id"] == each["sequence-number"]
    ]
    return document | {
        "snapshots": kept,
        "refs": dict(sorted(refs.items())),
        "current-snapshot-id": -1 if main is None else main["snapshot-id"],
        "snapshot-log": [each for each in log if each["snapshot-id"] in wanted],
        "last-sequence-number": max((each["sequence-number"] for each in kept), default=0),
        "next-row-id": next_row,
    }


def encode(document: Document) -> bytes:
    """Return the bytes of any document."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1)


def encode_signed(document: Document) -> bytes:
    """Return the bytes of a table's metadata, whose property `lakelog.digest` has their SHA-256 without that."""

    def encoded(digest: str) -> bytes:
        return encode(document | {"properties": document["properties"] | {DIGEST: digest}})

    return encoded(hashlib.sha256(encoded("")).hexdigest())


def is_as_signed(document: Document, data: bytes) -> bool:
    """Return whether these bytes of a document are what `encode_signed` has returned."""
    properties = document.get("properties")
    digest = properties.get(DIGEST) if isinstance(properties, dict) else None
    if not isinstance(digest, str) or not digest:
        return False
    return hashlib.sha256(data.replace(digest.encode(), b"", 1)).hexdigest() == digest


def decoded_document(data: bytes) -> Document:
    """Return the object that JSON has. FormatError for other bytes."""
    return decoded(_DOCUMENT, data, "Iceberg's metadata", size_max=_SIZE_MAX)


def exported_version(data: bytes) -> int:
    """Return the version that an export is of. FormatError for other bytes."""
    found = decoded(_PROPERTIES, data, "Iceberg's metadata", size_max=_SIZE_MAX).properties.get(VERSION, "")
    if not found.isdigit():
        raise FormatError("Iceberg's metadata does not say which version of the table it is of")
    return int(found)
