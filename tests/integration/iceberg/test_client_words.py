"""Errors begin with the words that Iceberg's clients know, and only if they are about the name that was asked for."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.iceberg.commits.test_views_and_command import SCHEMA, creation, version

from lakelog.catalog import Catalog
from lakelog.rest import WritableAnswers

CREATE = {"requirements": [{"type": "assert-create"}], "updates": []}


def to_rename(source: str, destination: str, namespace: str = "ns") -> dict[str, Any]:
    return {
        "source": {"namespace": ["ns"], "name": source},
        "destination": {"namespace": [namespace], "name": destination},
    }


def new_view(name: str) -> dict[str, Any]:
    return creation(name, version("SELECT 1 AS n"))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> WritableAnswers:
    path: Path = tmp_path_factory.mktemp("words")
    catalog = Catalog(str(path / "w"))
    catalog.create_namespace("ns")
    catalog.create_table("ns.table", pa.schema({"n": pa.int64()}))
    catalog.create_table("ns.other", pa.schema({"n": pa.int64()}))
    answers = WritableAnswers(catalog)
    created = answers.answer("POST", "/v1/namespaces/ns/views", body=json.dumps(new_view("view")).encode())
    assert created.status == 200
    return answers


@pytest.mark.parametrize(
    ("request_line", "body", "words"),
    [
        ("GET /v1/namespaces/gone", None, "Namespace does not exist: gone"),
        ("GET /v1/namespaces/gone/tables", None, "Namespace does not exist: gone"),
        ("GET /v1/namespaces?parent=ns%1Fgone", None, "Namespace does not exist: ns.gone"),
        ("GET /v1/namespaces/ns/tables/gone", None, "Table does not exist: ns.gone"),
        ("GET /v1/namespaces/ns/tables/view", None, "Table does not exist: ns.view"),
        ("GET /v1/namespaces/gone/views/view", None, "View does not exist: gone.view"),
        ("GET /v1/namespaces/ns/views/table", None, "View does not exist: ns.table"),
        ("DELETE /v1/namespaces/gone", None, "Namespace does not exist: gone"),
        ("DELETE /v1/namespaces/ns/tables/gone", None, "Table does not exist: ns.gone"),
        ("DELETE /v1/namespaces/ns/views/gone", None, "View does not exist: ns.gone"),
        ("POST /v1/namespaces", {"namespace": ["ns"]}, "Namespace already exists: ns"),
        ("POST /v1/namespaces/gone/properties", {"updates": {"a": "b"}}, "Namespace does not exist: gone"),
        (
            "POST /v1/namespaces/gone/tables",
            {"name": "t", "schema": SCHEMA},
            "Namespace does not exist: gone",
        ),
        (
            "POST /v1/namespaces/ns/tables",
            {"name": "table", "schema": SCHEMA},
            "Table already exists: ns.table",
        ),
        (
            "POST /v1/namespaces/ns/tables",
            {"name": "view", "schema": SCHEMA},
            "View with same name already exists: ns.view",
        ),
        ("POST /v1/namespaces/ns/tables/table", CREATE, "Requirement failed: table already exists"),
        ("POST /v1/namespaces/ns/views", new_view("view"), "View already exists: ns.view"),
        ("POST /v1/namespaces/ns/views", new_view("table"), "Table with same name already exists: ns.table"),
        (
            "POST /v1/tables/rename",
            to_rename("table", "other"),
            "Cannot rename ns.table to ns.other. Table already exists",
        ),
        (
            "POST /v1/tables/rename",
            to_rename("table", "view"),
            "Cannot rename ns.table to ns.view. View already exists",
        ),
        ("POST /v1/tables/rename", to_rename("gone", "t"), "Table does not exist: ns.gone"),
        ("POST /v1/tables/rename", to_rename("table", "t", "nss"), "Namespace does not exist: nss"),
        ("POST /v1/views/rename", to_rename("gone", "v"), "View does not exist: ns.gone"),
        (
            "POST /v1/views/rename",
            to_rename("view", "table"),
            "Cannot rename ns.view to ns.table. Table already exists",
        ),
    ],
)
def test_an_error_begins_with_the_words_that_clients_know(
    answers: WritableAnswers, request_line: str, body: dict[str, Any] | None, words: str
) -> None:
    method, target = request_line.split(" ")
    answer = answers.answer(method, target, body=json.dumps(body or {}).encode())
    message = json.loads(answer.body)["error"]["message"]
    assert answer.status in (404, 409)
    assert message.startswith(f"{words} ("), message


def test_requirements_that_do_not_hold_are_named_as_clients_know_them(answers: WritableAnswers) -> None:
    requirement = {"type": "assert-default-spec-id", "default-spec-id": 7}
    body = json.dumps({"requirements": [requirement], "updates": []}).encode()
    answer = answers.answer("POST", "/v1/namespaces/ns/tables/table", body=body)
    assert answer.status == 409
    assert json.loads(answer.body)["error"]["message"].startswith(
        "Requirement failed: default partition spec changed ("
    )


@pytest.mark.parametrize(
    ("method", "path", "body", "advice"),
    [
        ("POST", "/v1/namespaces", {"namespace": ["ns"]}, "choose another name)"),
        ("DELETE", "/v1/namespaces/ns", None, "Drop these first"),
    ],
)
def test_errors_do_not_advise_to_write_python(
    answers: WritableAnswers, method: str, path: str, body: Any, advice: str
) -> None:
    answer = answers.answer(method, path, body=b"" if body is None else json.dumps(body).encode())
    message = json.loads(answer.body)["error"]["message"]
    assert answer.status == 409 and message.endswith(advice) and "True" not in message


def test_the_log_has_the_beginning_of_a_report(
    answers: WritableAnswers, caplog: pytest.LogCaptureFixture
) -> None:
    report = {"report-type": "scan-report", "filter": "x" * 100_000, "line": "a\nb"}
    with caplog.at_level(logging.INFO, "lakelog.rest"):
        path = "/v1/namespaces/ns/tables/table/metrics"
        assert answers.answer("POST", path, body=json.dumps(report).encode()).status == 204
    (message,) = caplog.messages
    assert "scan-report" in message and len(message) < 5000 and "\n" not in message
