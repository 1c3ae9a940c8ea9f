"""Tables that clients of Iceberg create, at once or staged.

A staged creation stores nothing. The client gets the metadata of a table with a new id, and writes files at its place.
It sends the metadata back with its commit. The place has the id. So any server can commit it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lakelog.catalog.core.ddl import CREATE, StagedTable, StageRequest, stage_table
from lakelog.catalog.core.ddl import new_table as new_table_place
from lakelog.catalog.core.logs import NameTree
from lakelog.catalog.core.schema import FIRST_FIELD_ID, ICEBERG_VERSION, AlteredDefinition, Metadata
from lakelog.catalog.errors import TableExists
from lakelog.catalog.formats.iceberg.metadata_json import (
    DERIVED_PROPERTIES,
    Document,
    empty_document,
    with_metadata,
)
from lakelog.catalog.formats.iceberg_commits.definitions import new_definition
from lakelog.catalog.formats.iceberg_commits.updates import FORMAT_VERSION, UpdatedMetadata, updated
from lakelog.catalog.names import Identifier
from lakelog.log.errors import InvalidInput, NotFound, Unsupported

Json = Mapping[str, Any]

_PLACE = re.compile(r"(?:.*/)?t-([a-z2-7]{26})")
_DEFAULT_VERSION = "2"
"""The version of a table whose client asks for none, as in Iceberg's own catalogs."""


def creation_updates(request: Json) -> list[Json]:
    """Return the request to create a table as updates of no table. Its ids are replaced by fresh ids."""
    with_form: dict[str, Any] = dict(request)
    schema, ids = _fresh(with_form["schema"])
    spec = with_form.get("partition-spec") or {"fields": []}
    order = with_form.get("write-order") or {"fields": []}
    properties = dict(with_form.get("properties") or {})
    parts = [
        {**part, "source-id": _known(ids, part["source-id"]), "field-id": FIRST_FIELD_ID + number}
        for number, part in enumerate(spec["fields"])
    ]
    orders = [{**part, "source-id": _known(ids, part["source-id"])} for part in order["fields"]]
    return [
        {"action": "add-schema", "schema": schema},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"fields": parts}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"fields": orders}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-properties", "updates": {FORMAT_VERSION: _DEFAULT_VERSION, **properties}},
    ]


def new_table(
    tree: NameTree, identifier: Identifier, updates: Sequence[Json], location: str | None, *, is_resumed: bool
) -> tuple[StagedTable, UpdatedMetadata]:
    """Return a new table after `updates`, not committed, and its metadata. Raises TableExists, or NoSuchNamespace.

    `location` is the place that the client wants. With `is_resumed`, it is the place of an earlier staging, or the
    table gets a place by its namespace. A place of the client's own has to be inside of the warehouse.
    """
    client_place = None if is_resumed else location
    request = StageRequest(
        kind=CREATE,
        identifier=identifier,
        schema=_PLACEHOLDER,
        partitioning=(),
        sort_by=(),
        cluster_by=(),
        properties={},
        location=None if client_place is None else _checked_place(tree, client_place),
        comment=None,
        provider=None,
        is_quiet=True,
    )
    stage = stage_table(tree, request)
    if is_resumed and location is not None:
        stage = _resumed(tree, stage, identifier, location)
    target = updated(empty_document(stage.url, stage.table_id) | {FORMAT_VERSION: 2}, updates)
    definition = new_definition(target)
    return _defined(stage, definition), target


def staged_document(stage: StagedTable) -> Document:
    """Return Iceberg's metadata of a staged table."""
    metadata = Metadata(
        schema=stage.schema,
        specs=(stage.spec,),
        sort_order=stage.sort_order,
        properties=stage.properties,
        comment=stage.comment,
    )
    document = with_metadata(empty_document(stage.url, stage.table_id), metadata, stage.table_id, 0, 0)
    version = int(ICEBERG_VERSION.of(stage.properties))
    if version < 3:
        del document["next-row-id"]
    properties = {
        name: value for name, value in document["properties"].items() if name not in DERIVED_PROPERTIES
    }
    return document | {FORMAT_VERSION: version, "properties": properties}


_PLACEHOLDER = {"placeholder": "int"}
"""Columns while a table is staged. Those that the client wants replace them."""


def _defined(stage: StagedTable, definition: AlteredDefinition) -> StagedTable:
    return msgspec.structs.replace(
        stage,
        schema=definition.schema,
        spec=definition.spec,
        sort_order=definition.sort_order,
        properties=dict(definition.properties),
        comment=definition.comment,
    )


def _checked_place(tree: NameTree, url: str) -> str:
    location = tree.logs.location(url)
    if tree.logs.url(location) == location:
        raise Unsupported(
            f"the place {url} is outside of the warehouse {tree.logs.warehouse}: leave the location out, or choose a "
            "folder in the warehouse"
        )
    return url


def _resumed(tree: NameTree, stage: StagedTable, identifier: Identifier, url: str) -> StagedTable:
    """Return the stage with the id and the place that its client got before."""
    location = tree.logs.location(url.rstrip("/"))
    match = _PLACE.fullmatch(location)
    namespace = tree.known_namespace(identifier[:-1])
    if match is None or new_table_place(tree.logs, namespace, match[1]) != location:
        raise InvalidInput(
            f"the place {url} was not given to a staged table of this namespace: stage the table again, and keep the "
            "location that the answer has"
        )
    try:
        tree.logs.table(location).at_its_place()
    except NotFound:
        return msgspec.structs.replace(
            stage, table_id=match[1], location=location, url=tree.logs.url(location)
        )
    raise TableExists(f"the place {url} has a table already, or had one: stage the table again")


# Fresh ids: those of a struct's fields before those in them, as Iceberg's own catalogs assign them


def _fresh(schema: Json) -> tuple[Json, dict[int, int]]:
    """Return the schema with ids from 1 on, and the new ids by the old."""
    counter = iter(range(1, 1 << 31))
    ids: dict[int, int] = {}
    fields = _fresh_fields(schema["fields"], counter, ids)
    identifiers = [_known(ids, id) for id in schema.get("identifier-field-ids") or ()]
    return {
        "type": schema["type"],
        "fields": fields,
        **({"identifier-field-ids": identifiers} if identifiers else {}),
    }, ids


def _fresh_fields(fields: Sequence[Json], counter: Iterator[int], ids: dict[int, int]) -> list[Json]:
    new_ids = [_give(field["id"], counter, ids) for field in fields]
    return [
        {**field, "id": id, "type": _fresh_type(field["type"], counter, ids)}
        for field, id in zip(fields, new_ids, strict=True)
    ]


def _fresh_type(type_: Any, counter: Iterator[int], ids: dict[int, int]) -> Any:
    if isinstance(type_, str):
        return type_
    match type_["type"]:
        case "struct":
            return {**type_, "fields": _fresh_fields(type_["fields"], counter, ids)}
        case "list":
            id = _give(type_["element-id"], counter, ids)
            return {**type_, "element-id": id, "element": _fresh_type(type_["element"], counter, ids)}
        case "map":
            key_id = _give(type_["key-id"], counter, ids)
            value_id = _give(type_["value-id"], counter, ids)
            return {
                **type_,
                "key-id": key_id,
                "value-id": value_id,
                "key": _fresh_type(type_["key"], counter, ids),
                "value": _fresh_type(type_["value"], counter, ids),
            }
        case _:
            return type_


def _give(old: int, counter: Iterator[int], ids: dict[int, int]) -> int:
    if old in ids:
        raise InvalidInput(f"two columns have the id {old}: give each its own")
    ids[old] = next(counter)
    return ids[old]


def _known(ids: Mapping[int, int], old: int) -> int:
    if old not in ids:
        raise InvalidInput(f"there is no column with the id {old}, which the partitioning or order names")
    return ids[old]
