"""The requirements of a commit by a client of Iceberg: conditions on a table's present metadata. Pure.

A commit happens only if all of them hold. Source: the OpenAPI description of Apache Iceberg's REST catalog,
`TableRequirement`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakelog.catalog.errors import CommitConflict
from lakelog.log.errors import InvalidInput

Json = Mapping[str, Any]

CREATE = "assert-create"

_MEMBERS = {
    "assert-table-uuid": ("uuid", "table-uuid"),
    "assert-last-assigned-field-id": ("last-assigned-field-id", "last-column-id"),
    "assert-current-schema-id": ("current-schema-id", "current-schema-id"),
    "assert-last-assigned-partition-id": ("last-assigned-partition-id", "last-partition-id"),
    "assert-default-spec-id": ("default-spec-id", "default-spec-id"),
    "assert-default-sort-order-id": ("default-sort-order-id", "default-sort-order-id"),
}
"""The member of each requirement, and the member of the metadata that has to be equal."""

_WORDS = {
    CREATE: "table already exists",
    "assert-ref-snapshot-id": "branch or tag has changed",
    "assert-table-uuid": "UUID does not match",
    "assert-last-assigned-field-id": "last assigned field id changed",
    "assert-current-schema-id": "current schema changed",
    "assert-last-assigned-partition-id": "last assigned partition id changed",
    "assert-default-spec-id": "default partition spec changed",
    "assert-default-sort-order-id": "default sort order changed",
}
"""The words that clients know for a requirement that does not hold."""


def is_create(requirements: Sequence[Json]) -> bool:
    """Return whether a commit creates the table."""
    return any(requirement.get("type") == CREATE for requirement in requirements)


def check_requirements(requirements: Sequence[Json], document: Json, name: str, version: int) -> None:
    """Raise CommitConflict if a requirement does not hold for the metadata of an existing table.

    Raises InvalidInput for a requirement that is not known.
    """
    for requirement in requirements:
        wanted_value, present = _compared(requirement, document)
        if wanted_value != present:
            raise CommitConflict(
                f"Requirement failed: {_WORDS[requirement['type']]} ({requirement['type']} does not hold for {name}: "
                f"the client has {wanted_value}, and version {version} of the table has {present}. Nothing was "
                "changed: load the table, and commit again)",
                version=version,
            )


def _compared(requirement: Json, document: Json) -> tuple[object, object]:
    """Return the value that a requirement asks for, and the metadata's."""
    kind = str(requirement.get("type"))
    if kind == CREATE:
        return "no table", "been created"
    if kind == "assert-ref-snapshot-id":
        ref = document["refs"].get(_member(requirement, "ref", str))
        wanted_value = requirement.get("snapshot-id")
        if wanted_value is not None and type(wanted_value) is not int:
            raise InvalidInput(
                f"the requirement {kind} has the snapshot-id {wanted_value!r}: give a number, or null"
            )
        return wanted_value, None if ref is None else ref["snapshot-id"]
    if kind not in _MEMBERS:
        raise InvalidInput(f"the requirement {kind!r} is not known: use one of Iceberg's REST protocol")
    member, in_document = _MEMBERS[kind]
    wanted_value = _member(requirement, member, str if member == "uuid" else int)
    present = document[in_document]
    return (
        (wanted_value.lower(), present.lower()) if isinstance(wanted_value, str) else (wanted_value, present)
    )


def _member(requirement: Json, name: str, type_: type) -> Any:
    value = requirement.get(name)
    if type(value) is not type_:
        raise InvalidInput(f"the requirement {requirement.get('type')} needs {name}: it has {value!r}")
    return value
