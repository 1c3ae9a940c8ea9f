"""The updates of a commit by a client of Iceberg, applied to a table's present metadata. Pure.

The result is Iceberg's metadata as the client wants it. Other modules translate it. Updates that lakelog cannot
keep are refused by name. Source: the OpenAPI description of Apache Iceberg's REST catalog, `TableUpdate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from lakelog.catalog.core.schema import FIRST_FIELD_ID
from lakelog.catalog.core.state import MAIN
from lakelog.catalog.formats.iceberg import may_be_of_a_version
from lakelog.catalog.formats.iceberg.metadata_json import DERIVED_PROPERTIES
from lakelog.catalog.formats.iceberg_commits.forms import PartForm, SortForm, StructForm, check_form
from lakelog.log.errors import InvalidInput, LakelogError, Unsupported

Json = Mapping[str, Any]
Document = dict[str, Any]

FORMAT_VERSION = "format-version"
_OWN_SPECS_BELOW = 1 << 30
"""Exports give ids from here on to partitionings that only readers see."""
_ID_MAX = 2_147_483_446
"""The highest id of a field. Iceberg reserves those above."""
_LAST = -1
"""The id of the schema, partitioning or order that the same commit has added last."""

_REFUSED = {
    "remove-snapshots": "expire versions with lakelog, which also knows the tags, clones and cuts that need them",
    "set-statistics": "compute statistics with lakelog: ANALYZE TABLE",
    "remove-statistics": "compute statistics with lakelog: ANALYZE TABLE",
    "set-partition-statistics": "leave the statistics of partitions out",
    "remove-partition-statistics": "leave the statistics of partitions out",
    "remove-partition-specs": "leave them: the table's history needs them",
    "remove-schemas": "leave them: the table's history needs them",
    "add-encryption-key": "leave the files unencrypted, or encrypt the bucket",
    "remove-encryption-key": "leave the files unencrypted, or encrypt the bucket",
}
"""Updates that are refused, and the words for what to do instead."""


@dataclass(slots=True)
class UpdatedMetadata:
    """Iceberg's metadata after updates. `document` has the members of the metadata that updates change.

    `added` are the new snapshots by id, and `touched` the tags and branches that updates have set or removed.
    """

    document: Document
    new_snapshots: dict[int, Json] = field(default_factory=dict)
    touched_refs: set[str] = field(default_factory=set)

    @property
    def schema(self) -> Json:
        return self._by_id("schemas", "schema-id", "current-schema-id")

    @property
    def spec(self) -> Json:
        return self._by_id("partition-specs", "spec-id", "default-spec-id")

    @property
    def order(self) -> Json:
        return self._by_id("sort-orders", "order-id", "default-sort-order-id")

    def _by_id(self, parts: str, id_name: str, current: str) -> Json:
        wanted_id = self.document[current]
        part: Json | None = next((part for part in self.document[parts] if part[id_name] == wanted_id), None)
        if part is None:
            raise InvalidInput(f"the commit that creates the table makes none of {parts} the current: add it")
        return part


def updated(document: Json, updates: Sequence[Json]) -> UpdatedMetadata:
    """Return the metadata after `updates`, in their order.

    Raises InvalidInput for an update that is malformed or makes no sense, and Unsupported for an update that lakelog
    cannot keep.
    """
    metadata = UpdatedMetadata(
        {
            **document,
            **{name: list(document[name]) for name in ("schemas", "partition-specs", "sort-orders")},
            "properties": dict(document["properties"]),
            "refs": dict(document["refs"]),
        }
    )
    steps = _Updates(metadata)
    for update in updates:
        action = str(update.get("action"))
        if action in _REFUSED:
            raise Unsupported(f"the update {action} is not supported: {_REFUSED[action]}")
        step: Callable[[Json], None] | None = steps.by_action.get(action)
        if step is None:
            raise InvalidInput(f"the update {action!r} is not known: use one of Iceberg's REST protocol")
        with as_protocol(f"the update {action}"):
            step(update)
    steps.check_all_used()
    return metadata


@contextmanager
def as_protocol(subject: str) -> Iterator[None]:
    """Raise InvalidInput if a part of a request does not have the form that Iceberg's protocol gives it."""
    try:
        yield
    except LakelogError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise InvalidInput(
            f"{subject} is not as Iceberg's protocol has it ({type(error).__name__}: {error})"
        ) from error


class _Updates:
    """A method for each kind of update."""

    def __init__(self, metadata: UpdatedMetadata) -> None:
        self._metadata = metadata
        self._document = metadata.document
        self._last: dict[str, int] = {}
        self._unused: dict[str, set[int]] = {}
        self.by_action: dict[str, Callable[[Json], None]] = {
            "assign-uuid": self._assign_uuid,
            "upgrade-format-version": self._upgrade,
            "add-schema": self._add_schema,
            "set-current-schema": self._set_current_schema,
            "add-spec": self._add_spec,
            "set-default-spec": self._set_default_spec,
            "add-sort-order": self._add_order,
            "set-default-sort-order": self._set_default_order,
            "add-snapshot": self._add_snapshot,
            "set-snapshot-ref": self._set_ref,
            "remove-snapshot-ref": self._remove_ref,
            "set-location": self._set_location,
            "set-properties": self._set_properties,
            "remove-properties": self._remove_properties,
        }

    def _assign_uuid(self, update: Json) -> None:
        if str(update["uuid"]).lower() != self._document["table-uuid"]:
            raise InvalidInput(
                f"the table has the uuid {self._document['table-uuid']}, which cannot be changed to {update['uuid']}"
            )

    def _upgrade(self, update: Json) -> None:
        version = update[FORMAT_VERSION]
        if version not in (2, 3):
            raise Unsupported(f"version {version!r} of Iceberg's format is not supported: use 2 or 3")
        if version < self._document[FORMAT_VERSION]:
            raise InvalidInput(
                f"the table has version {self._document[FORMAT_VERSION]} of Iceberg's format, and cannot go back to "
                f"{version}"
            )
        self._document[FORMAT_VERSION] = version

    # Columns, partitionings, orders

    def _add_schema(self, update: Json) -> None:
        schema = update["schema"]
        if schema["type"] != "struct":
            raise InvalidInput("the schema of a table is a struct")
        check_form(schema, StructForm)
        same_ids = [
            old["schema-id"]
            for old in self._document["schemas"]
            if _plain(old["fields"]) == _plain(schema["fields"])
            and old.get("identifier-field-ids", []) == schema.get("identifier-field-ids", [])
        ]
        if same_ids:
            self._last["schemas"] = same_ids[0]
            return
        new_id = max((old["schema-id"] for old in self._document["schemas"]), default=-1) + 1
        self._document["schemas"].append({**schema, "schema-id": new_id})
        ids = [_number(id) for id in _ids_in(schema["fields"])]
        if max(ids, default=1) > _ID_MAX:
            raise InvalidInput(f"a column has the id {max(ids)}: use ids up to {_ID_MAX}")
        self._document["last-column-id"] = max([self._document["last-column-id"], *ids])
        self._added("schemas", new_id)

    def _set_current_schema(self, update: Json) -> None:
        self._set("schemas", "schema-id", "current-schema-id", update["schema-id"])

    def _add_spec(self, update: Json) -> None:
        known_parts = {
            part["field-id"]: part for spec in self._document["partition-specs"] for part in spec["fields"]
        }
        last = max(self._document["last-partition-id"], FIRST_FIELD_ID - 1)
        fields: list[Document] = []
        for part in update["spec"]["fields"]:
            if part["transform"] == "void":
                raise Unsupported(
                    f"the partition field {part['name']} is void: leave it out, as version 2 of the format does"
                )
            if "source-id" not in part:
                raise Unsupported(f"the partition field {part['name']} is of several columns: use one column")
            check_form(part, PartForm)
            like = [item["field-id"] for item in known_parts.values() if _same_part(item, part)]
            id = part.get("field-id")
            if (
                id is None
                or (id in known_parts and not _same_part(known_parts[id], part))
                or id < FIRST_FIELD_ID
            ):
                id = like[0] if like else last + 1
            last = max(last, _number(id))
            if last > _ID_MAX:
                raise InvalidInput(f"the partition field {part['name']} has the id {id}: use a lower one")
            fields.append(
                {name: part[name] for name in ("source-id", "name", "transform")} | {"field-id": id}
            )
        if len({part["field-id"] for part in fields}) < len(fields):
            raise InvalidInput("the partitioning has a field twice: leave one out")
        same_ids = [
            old["spec-id"] for old in self._document["partition-specs"] if _same(old["fields"], fields)
        ]
        own = [
            old["spec-id"] for old in self._document["partition-specs"] if old["spec-id"] < _OWN_SPECS_BELOW
        ]
        if same_ids:
            self._last["partition-specs"] = same_ids[0]
            return
        new_id = max(own, default=-1) + 1
        self._document["partition-specs"].append({"spec-id": new_id, "fields": fields})
        self._document["last-partition-id"] = last
        self._added("partition-specs", new_id)

    def _set_default_spec(self, update: Json) -> None:
        self._set("partition-specs", "spec-id", "default-spec-id", update["spec-id"])

    def _add_order(self, update: Json) -> None:
        check_form(update["sort-order"]["fields"], list[SortForm])
        fields = [
            {name: part[name] for name in ("transform", "source-id", "direction", "null-order")}
            for part in update["sort-order"]["fields"]
        ]
        same_ids = [old["order-id"] for old in self._document["sort-orders"] if _same(old["fields"], fields)]
        if same_ids:
            self._last["sort-orders"] = same_ids[0]
            return
        new_id = max(old["order-id"] for old in self._document["sort-orders"]) + 1
        self._document["sort-orders"].append({"order-id": new_id, "fields": fields})
        self._added("sort-orders", new_id)

    def _set_default_order(self, update: Json) -> None:
        self._set("sort-orders", "order-id", "default-sort-order-id", update["sort-order-id"])

    def _set(self, parts: str, id_name: str, current: str, id: object) -> None:
        if id == _LAST:
            if parts not in self._last:
                raise InvalidInput(f"the commit has added none of {parts}: name one by its id")
            id = self._last[parts]
        if all(part[id_name] != id for part in self._document[parts]):
            raise InvalidInput(f"the table has none of {parts} with the id {id!r}")
        self._document[current] = id
        self._unused.get(parts, set()).discard(id)

    def _added(self, parts: str, id: int) -> None:
        self._last[parts] = id
        self._unused.setdefault(parts, set()).add(id)

    def check_all_used(self) -> None:
        """Raise Unsupported for a schema, partitioning or order that no update has made the current one."""
        unused_parts = sorted(parts for parts, ids in self._unused.items() if ids)
        if unused_parts:
            raise Unsupported(
                f"the commit adds to {unused_parts[0]} a part that it does not make current, and that lakelog would "
                "not keep: make it current in the same commit"
            )

    # Snapshots

    def _add_snapshot(self, update: Json) -> None:
        snapshot = update["snapshot"]
        id = _number(snapshot["snapshot-id"])
        if not 0 < id < 1 << 63:
            raise InvalidInput(f"{id} is not an id of a snapshot")
        if id in self._metadata.new_snapshots or any(
            old["snapshot-id"] == id for old in self._document["snapshots"]
        ):
            raise InvalidInput(f"the table has a snapshot {id} already")
        if may_be_of_a_version(id):
            raise InvalidInput(
                f"the snapshot has the id {id}, which may also be that of one of lakelog's own versions: choose a "
                "random id of 63 bits"
            )
        parent = snapshot.get("parent-snapshot-id")
        if parent is not None:
            _number(parent)
        if snapshot.get("key-id") is not None:
            raise Unsupported("encrypted snapshots are not supported: leave the files unencrypted")
        if not isinstance(snapshot["manifest-list"], str):
            raise InvalidInput(f"the snapshot {id} has no manifest list")
        summary = snapshot.get("summary") or {}
        if not all(isinstance(text, str) for pair in summary.items() for text in pair):
            raise InvalidInput(f"the summary of the snapshot {id} has values that are no texts")
        self._metadata.new_snapshots[id] = snapshot

    def _set_ref(self, update: Json) -> None:
        name, kind, id = update["ref-name"], update["type"], _number(update["snapshot-id"])
        if not isinstance(name, str) or kind not in ("tag", "branch") or (name == MAIN and kind != "branch"):
            raise InvalidInput(f"{name!r} cannot be a {kind}")
        for member in ("max-ref-age-ms", "max-snapshot-age-ms", "min-snapshots-to-keep"):
            if update.get(member) is not None:
                raise Unsupported(
                    f"{member} of {name} is not supported: lakelog keeps what a tag or branch needs until it is "
                    "dropped, so leave it out"
                )
        listed_ids = {old["snapshot-id"] for old in self._document["snapshots"]}
        if id not in listed_ids and id not in self._metadata.new_snapshots:
            raise InvalidInput(f"{name} cannot be the snapshot {id}, which the table does not list")
        old = self._document["refs"].get(name)
        if old is not None and old["type"] != kind:
            raise InvalidInput(f"{name} is a {old['type']}, and cannot become a {kind}")
        self._document["refs"][name] = {"snapshot-id": id, "type": kind}
        self._metadata.touched_refs.add(name)

    def _remove_ref(self, update: Json) -> None:
        name = update["ref-name"]
        if self._document["refs"].pop(name, None) is not None:
            self._metadata.touched_refs.add(name)

    # The rest

    def _set_location(self, update: Json) -> None:
        if str(update["location"]).rstrip("/") != self._document["location"]:
            raise Unsupported(
                f"the table is at {self._document['location']}, and cannot be moved to {update['location']}: copy its "
                "rows into another table"
            )

    def _set_properties(self, update: Json) -> None:
        for name, value in update["updates"].items():
            if name in DERIVED_PROPERTIES:
                raise InvalidInput(f"the property {name} is derived from the table, and cannot be set")
            if not isinstance(value, str):
                raise InvalidInput(f"the property {name} is {value!r}, and not a text")
            self._document["properties"][name] = value

    def _remove_properties(self, update: Json) -> None:
        for name in update["removals"]:
            if name in DERIVED_PROPERTIES:
                raise InvalidInput(f"the property {name} is derived from the table, and cannot be removed")
            self._document["properties"].pop(name, None)


def _number(value: object) -> int:
    if type(value) is not int:
        raise InvalidInput(f"{value!r} is not a number")
    return value


def _ids_in(fields: Sequence[Json]) -> list[object]:
    """Return the ids of all columns and their parts."""
    ids: list[object] = []
    for item in fields:
        ids.append(item["id"])
        ids += _ids_below(item["type"])
    return ids


def _ids_below(type_: Any) -> list[object]:
    if isinstance(type_, str):
        return []
    match type_["type"]:
        case "struct":
            return _ids_in(type_["fields"])
        case "list":
            return [type_["element-id"], *_ids_below(type_["element"])]
        case "map":
            return [
                type_["key-id"],
                type_["value-id"],
                *_ids_below(type_["key"]),
                *_ids_below(type_["value"]),
            ]
        case _:
            return []


def _plain(fields: Sequence[Json]) -> list[Document]:
    """Return columns in the form of exports, in which members that are not set are left out."""
    return [
        {
            name: value
            for name, value in item.items()
            if value is not None and not (name == "doc" and value == "")
        }
        for item in fields
    ]


def _same_part(part: Json, other_part: Json) -> bool:
    return (part["source-id"], part["transform"]) == (other_part["source-id"], other_part["transform"])


def _same(parts: Sequence[Json], other_parts: Sequence[Json]) -> bool:
    return [dict(item) for item in parts] == [dict(item) for item in other_parts]
