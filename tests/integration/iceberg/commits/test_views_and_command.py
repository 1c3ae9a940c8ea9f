"""Views that clients of Iceberg define, and the command that lets clients write."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.iceberg.commits.test_forged_commits import Client, is_clean
from tests.integration.iceberg.serving import served

from lakelog.catalog import Catalog

VIEWS = "/v1/namespaces/ns/views"
SCHEMA: dict[str, Any] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "n", "required": False, "type": "long"}],
}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with served(str(tmp_path / "w"), writes=True) as url:
        yield Client(url, str(tmp_path / "w"))


def version(sql: Any, dialect: str = "spark", **more: Any) -> dict[str, Any]:
    return {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["ns"],
        "representations": [{"type": "sql", "sql": sql, "dialect": dialect}],
        **more,
    }


def creation(name: str, view_version: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "schema": SCHEMA,
        "view-version": view_version,
        "properties": {"owner": "me"},
        **more,
    }


@pytest.mark.parametrize(
    "forgery",
    [
        {"schema": {**SCHEMA, "fields": [{**SCHEMA["fields"][0], "name": 1e300}]}},
        {"schema": {**SCHEMA, "fields": [{**SCHEMA["fields"][0], "doc": 7}]}},
        {"view-version": version("SELECT 1 AS n") | {"default-namespace": [7]}},
        {"view-version": version("SELECT 1 AS n") | {"default-catalog": {}}},
        {"view-version": version(7)},
        {"properties": {"owner": 7}},
    ],
)
def test_a_view_of_another_form_does_not_close_its_namespace(client: Client, forgery: dict[str, Any]) -> None:
    status, error = client.send(creation("v", version("SELECT 1 AS n"), **forgery), VIEWS)
    assert status == 400, error
    assert client.lake.list_tables("ns") == [("ns", "t")]
    assert client.is_unchanged()


def test_views_are_created_replaced_renamed_and_dropped(client: Client) -> None:
    status, answer = client.send(creation("v", version("SELECT count(*) AS n FROM t")), VIEWS)
    assert status == 200, answer
    view = Catalog(client.warehouse).load_view("ns.v")
    assert (view.text, view.namespace, view.properties) == (
        "SELECT count(*) AS n FROM t",
        ("ns",),
        {"owner": "me"},
    )
    assert [(column.name, column.type) for column in view.columns] == [("n", "long")]
    assert client.send(creation("v", version("SELECT 1 AS n")), VIEWS)[0] == 409
    assert client.send(creation("t", version("SELECT 1 AS n")), VIEWS)[0] == 409
    uuid = answer["metadata"]["view-uuid"]
    updates: list[dict[str, Any]] = [
        {"action": "add-view-version", "view-version": {**version("SELECT 2 AS n"), "version-id": 2}},
        {"action": "set-current-view-version", "view-version-id": -1},
        {"action": "set-properties", "updates": {"owner": "you"}},
    ]
    wrong = {"requirements": [{"type": "assert-view-uuid", "uuid": "0"}], "updates": updates}
    assert client.send(wrong, f"{VIEWS}/v")[0] == 409
    right = {"requirements": [{"type": "assert-view-uuid", "uuid": uuid}], "updates": updates}
    status, answer = client.send(right, f"{VIEWS}/v")
    assert status == 200 and answer["metadata"]["properties"] == {"owner": "you"}
    assert Catalog(client.warehouse).load_view("ns.v").text == "SELECT 2 AS n"
    rename = {"source": {"namespace": ["ns"], "name": "v"}, "destination": {"namespace": ["ns"], "name": "w"}}
    assert client.send(rename, "/v1/views/rename")[0] == 204
    assert client.send(rename, "/v1/views/rename")[0] == 404
    assert client.send({}, f"{VIEWS}/w", "DELETE")[0] == 204
    assert client.send({}, f"{VIEWS}/w", "DELETE")[0] == 404
    assert is_clean(Catalog(client.warehouse))


@pytest.mark.parametrize(
    ("request_body", "words"),
    [
        (creation("v", version("SELECT 1 AS n", "trino")), "not of trino"),
        (creation("v", version("SELECT 1 AS n", representations=[])), "a single representation"),
        (creation("v", version("SELECT n FROM t VERSION AS OF 1")), "VERSION AS OF"),
        (creation("v", version("SELECT 1 AS n"), location="/tmp/elsewhere"), "leave the location out"),
        ({"name": "v"}, "is not as Iceberg's protocol has it"),
        ({}, "has no name"),
    ],
)
def test_views_that_would_not_be_shown_again_are_refused(
    client: Client, request_body: Any, words: str
) -> None:
    status, error = client.send(request_body, VIEWS)
    assert status == 400 and words in error["message"]
    assert Catalog(client.warehouse).list_views("ns") == []


def test_the_command_lets_clients_write_only_from_its_own_host(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lakelog.cli", "serve", "--write", "--warehouse", str(tmp_path)]
    refused = subprocess.run([*command, "--host", "0.0.0.0"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "it would let all of them in" in " ".join(refused.stderr.split())
    with subprocess.Popen([*command, "--port", "0"], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        assert "for reading and writing" in server.stderr.readline()
        server.kill()
