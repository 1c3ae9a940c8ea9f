"""A request is kept as a whole, or refused: no part of it is lost, and no snapshot is taken that readers misread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.integration.iceberg.commits.handwriting import IDS_AND_TEXTS, HandWriter, column, ref_set
from tests.integration.iceberg.commits.test_forged_commits import is_clean

from lakelog.catalog.formats.iceberg import avro_files

CREATES = [{"type": "assert-create"}]


@pytest.fixture
def client(tmp_path: Path) -> HandWriter:
    client = HandWriter(str(tmp_path / "w"))
    assert client.create()[0] == 200
    return client


def at(name: str, client: HandWriter) -> HandWriter:
    """Return a client of another table of the warehouse."""
    other_client = HandWriter(client.warehouse)
    other_client.path = f"/v1/namespaces/ns/tables/{name}"
    return other_client


def change(name: str, updates: list[Any], requirements: list[Any] | None = None) -> dict[str, Any]:
    identifier = {"namespace": ["ns"], "name": name}
    return {"identifier": identifier, "requirements": requirements or [], "updates": updates}


def append(client: HandWriter, id: int) -> list[Any]:
    """Return the updates that append a row."""
    snapshot = client.snapshot([*client.records(), client.manifest([client.ids(id)])])
    return [{"action": "add-snapshot", "snapshot": snapshot}, ref_set("main", snapshot["snapshot-id"])]


def together(client: HandWriter, *changes: Any) -> tuple[int, Any]:
    return client.ask("/v1/transactions/commit", {"table-changes": list(changes)})


def ids(client: HandWriter, name: str) -> list[int]:
    rows: list[int] = client.catalog.load_table(f"ns.{name}").scan().to_arrow()["id"].to_pylist()
    return sorted(rows)


def test_a_part_that_was_committed_before_does_not_hide_the_others(client: HandWriter) -> None:
    other_client = at("u", client)
    assert other_client.create()[0] == 200
    first, second = change("t", append(client, 1)), change("u", append(other_client, 2))
    assert client.send(*first["updates"])[0] == 200
    status, error = together(client, first, second)
    assert (status, error["type"]) == (409, "CommitFailedException")
    assert "`ns`.`u` was not" in error["message"] and ids(client, "u") == []
    assert together(client, second)[0] == 204
    assert together(client, first, second)[0] == 204  # now all of it was
    assert (ids(client, "t"), ids(client, "u")) == ([1], [2])
    # A part without a snapshot does not say so, and goes with the others.
    properties = {"action": "set-properties", "updates": {"a": "b"}}
    assert together(client, first, change("u", [properties]))[0] == 204
    assert is_clean(client.catalog)


def test_a_creation_that_was_committed_before_does_not_hide_the_others(client: HandWriter) -> None:
    schema = {"type": "struct", "schema-id": 0, "fields": IDS_AND_TEXTS}
    body = {"name": "u", "schema": schema, "stage-create": True}
    _, staged = client.ask("/v1/namespaces/ns/tables", body)
    updates = [
        {"action": "assign-uuid", "uuid": staged["metadata"]["table-uuid"]},
        {"action": "add-schema", "schema": schema},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "set-location", "location": staged["metadata"]["location"]},
    ]
    status, error = client.ask(at("u", client).path, {"requirements": CREATES, "updates": updates})
    assert status == 400 and "none of partition-specs" in error["message"]
    updates += [
        {"action": "add-spec", "spec": {"fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
    ]
    creation, appended = change("u", updates, CREATES), change("t", append(client, 1))
    assert together(client, creation)[0] == 204
    assert together(client, creation, appended)[0] == 409
    assert ids(client, "t") == []
    # If a table of a request that was made is gone since, the request was still made.
    assert together(client, appended)[0] == 204
    client.catalog.drop_table("ns.u")
    assert together(client, appended, change("u", append(client, 2)))[0] == 204
    assert ids(client, "t") == [1]


UNUSED = [
    {"action": "add-schema", "schema": {"type": "struct", "fields": [*IDS_AND_TEXTS, column(3, "n", "int")]}},
    {"action": "add-spec", "spec": {"fields": [{"source-id": 1, "name": "p", "transform": "bucket[4]"}]}},
    {"action": "add-spec", "spec": {"fields": [{"source-id": 99, "name": "p", "transform": "tea"}]}},
    {
        "action": "add-sort-order",
        "sort-order": {
            "fields": [
                {"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}
            ]
        },
    },
]


@pytest.mark.parametrize("update", UNUSED)
def test_a_definition_that_does_not_become_current_is_refused(
    client: HandWriter, update: dict[str, Any]
) -> None:
    status, error = client.send(update)
    assert status == 400 and "make it current" in error["message"]


def test_a_definition_may_be_a_step_to_another(client: HandWriter) -> None:
    current = {"action": "set-current-schema", "schema-id": -1}
    fields = [*IDS_AND_TEXTS, column(3, "n", "int"), column(4, "m", "int")]
    last = {"action": "add-schema", "schema": {"type": "struct", "fields": fields}}
    assert client.send(UNUSED[0], current, last, current)[0] == 200
    assert client.catalog.load_table("ns.t").schema.names == ("id", "s", "n", "m")


PART = {"source-id": 1, "name": "p", "transform": "bucket[4]"}
SORT = {"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}
FORMS = [
    {"action": "add-spec", "spec": {"fields": [PART | {"name": 1e300}]}},
    {"action": "add-spec", "spec": {"fields": [PART | {"transform": 7}]}},
    {"action": "add-spec", "spec": {"fields": [PART | {"source-id": "1"}]}},
    {"action": "add-spec", "spec": {"fields": [PART | {"field-id": 1.5}]}},
    {"action": "add-sort-order", "sort-order": {"fields": [SORT | {"direction": ["asc"]}]}},
    {"action": "add-schema", "schema": {"type": "struct", "fields": [column(3, "n", "int") | {"name": 5}]}},
    {"action": "add-schema", "schema": {"type": "struct", "fields": [column(3, "n", "int") | {"doc": 5}]}},
    {
        "action": "add-schema",
        "schema": {"type": "struct", "fields": [column(3, "n", "int") | {"required": 5}]},
    },
    {"action": "add-schema", "schema": {"type": "struct", "fields": [column(3, "n", {"type": "set"})]}},
]


@pytest.mark.parametrize("update", FORMS)
def test_definitions_of_another_form_are_refused(client: HandWriter, update: dict[str, Any]) -> None:
    status, error = client.send(update)
    assert status == 400 and "is not as Iceberg's protocol has it" in error["message"], error


def deep(levels: int) -> dict[str, Any]:
    """Return a type that is nested."""
    type: Any = "int"
    for level in range(levels):
        type = {"type": "list", "element-id": level + 9, "element": type, "element-required": False}
    return {"type": "struct", "fields": [column(3, "deep", type)]}


@pytest.mark.parametrize("levels", [240, 400])
def test_types_that_are_nested_too_deeply_are_refused(client: HandWriter, levels: int) -> None:
    current = {"action": "set-current-schema", "schema-id": -1}
    assert client.send({"action": "add-schema", "schema": deep(levels)}, current)[0] == 400
    body = {"name": "deep", "schema": deep(levels)}
    assert client.ask("/v1/namespaces/ns/tables", body)[0] == 400


def sent(client: HandWriter, records: list[Any]) -> tuple[int, Any]:
    """Commit a snapshot with exactly these manifests."""
    snapshot = client.snapshot(records)
    return client.send(
        {"action": "add-snapshot", "snapshot": snapshot}, ref_set("main", snapshot["snapshot-id"])
    )


def test_manifests_that_readers_misread_are_refused(client: HandWriter) -> None:
    assert client.commit([client.ids(1)])[0] == 200
    (old,) = client.records()
    entry = client.ids(2)
    requests = {
        "twice in one snapshot": [old, old],
        "status 7": [old, client.manifest([{**entry, "status": 7}])],
        "files of another kind": [old, client.manifest([entry], avro_files.DELETES)],
    }
    for words, records in requests.items():
        status, error = sent(client, records)
        assert status == 400 and words in error["message"], error
    assert client.rows() == [1] and is_clean(client.catalog)


def test_a_table_keeps_a_namespace(client: HandWriter) -> None:
    source = {"namespace": ["ns"], "name": "t"}
    body = {"source": source, "destination": {"namespace": [], "name": "u"}}
    status, error = client.ask("/v1/tables/rename", body)
    assert status == 400 and "in no namespace" in error["message"]
    assert client.catalog.table_exists("ns.t")
