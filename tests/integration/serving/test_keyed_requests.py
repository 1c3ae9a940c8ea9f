"""Requests with an Idempotency-Key that are sent again: to another server, after each lost answer, at the same time."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.catalog.answers.failing_store import Death, Fault
from tests.integration.catalog.answers.test_answers import failing, objects_of, options, seen
from tests.integration.iceberg.commits.test_views_and_command import SCHEMA, creation, version
from tests.integration.iceberg.serving import served
from tests.integration.serving.requests import send

from lakelog.catalog import Catalog
from lakelog.catalog.engine import keyed_requests
from lakelog.log import CommitUnknown, MemoryStore
from lakelog.log.background import wait_for_background
from lakelog.log.clocks import host_clock_us
from lakelog.rest import HttpAnswer, WarehouseAnswers, WritableAnswers
from lakelog.rest.access import VERBS, CallerRights, KnownCaller, NamespaceGrant

KEY, OTHER_KEY = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "017F22E2-79B0-7CC3-98C4-DC0C0C073990"
N, T, V = "/v1/namespaces", "/v1/namespaces/a/tables", "/v1/namespaces/a/views"
NEW_VIEW = creation("new", version("SELECT 1 AS n"))


def updates(**properties: str) -> dict[str, Any]:
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": properties}]}


def rename(old: str, new: str) -> dict[str, Any]:
    return {
        "source": {"namespace": ["a"], "name": old},
        "destination": {"namespace": ["b"], "name": new},
    }


STAGED: dict[str, Any] = {
    "requirements": [{"type": "assert-create"}],
    "updates": [
        {"action": "add-schema", "schema": SCHEMA},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ],
}
JOINT = {
    "table-changes": [
        {"identifier": {"namespace": ["a"], "name": name}, **updates(owner="ann")} for name in ("t", "u")
    ]
}
REQUESTS: dict[str, tuple[str, str, Any]] = {
    "create a namespace": ("POST", N, {"namespace": ["a", "new"], "properties": {"x": "y"}}),
    "set properties": ("POST", f"{N}/a/properties", {"updates": {"x": "y"}, "removals": ["old"]}),
    "drop a namespace": ("DELETE", f"{N}/empty", None),
    "create a table": ("POST", T, {"name": "new", "schema": SCHEMA}),
    "create a staged table": ("POST", f"{T}/new", STAGED),
    "commit": ("POST", f"{T}/t", updates(owner="ann")),
    "commit to two tables": ("POST", "/v1/transactions/commit", JOINT),
    "drop a table": ("DELETE", f"{T}/t", None),
    "purge a table": ("DELETE", f"{T}/t?purgeRequested=true", None),
    "rename a table": ("POST", "/v1/tables/rename", rename("t", "moved")),
    "create a view": ("POST", V, NEW_VIEW),
    "replace a view": ("POST", f"{V}/v", {"requirements": [], "updates": [
        {"action": "add-view-version", "view-version": version("SELECT 2 AS n")},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]}),
    "drop a view": ("DELETE", f"{V}/v", None),
    "rename a view": ("POST", "/v1/views/rename", rename("v", "moved")),
}  # fmt: skip


@dataclass
class Warehouse:
    """A warehouse in memory, which can be put back to how it was made."""

    url: str
    objects: dict[str, dict[str, bytes]]

    def put_back(self) -> None:
        # What an earlier test left to do would be written into this one.
        wait_for_background()
        for name, store in MemoryStore._named.items():
            if name.startswith(self.url):
                store._objects = dict(self.objects.get(name, {}))

    def server(self) -> WritableAnswers:
        """Return a server of its own, as after a restart."""
        return WritableAnswers(Catalog(self.url, log_options=options()))

    def ask(self, title: str, key: str | None = KEY, server: WritableAnswers | None = None) -> HttpAnswer:
        method, path, body = REQUESTS[title]
        data = b"" if body is None else json.dumps(body).encode()
        return (server or self.server()).answer(method, path, body=data, idempotency_key=key)


@pytest.fixture(scope="module")
def made() -> Iterator[Warehouse]:
    url = f"memory://{uuid.uuid4().hex}"
    catalog = Catalog(url, log_options=options())
    for name in ("a", "b", "empty"):
        catalog.create_namespace(name, {"old": "1"} if name == "a" else {})
    for name in ("a.t", "a.u"):
        catalog.create_table(name, pa.schema({"n": pa.int64()}))
    view = creation("v", version("SELECT 1 AS n"))
    assert WritableAnswers(catalog).answer("POST", V, body=json.dumps(view).encode()).status == 200
    yield Warehouse(url, objects_of(url))
    for name in [name for name in MemoryStore._named if name.startswith(url)]:
        del MemoryStore._named[name]


@pytest.fixture
def warehouse(made: Warehouse) -> Warehouse:
    made.put_back()
    return made


def document(answer: HttpAnswer) -> Any:
    return json.loads(answer.body or b"{}")


# Sent again


@pytest.mark.parametrize("title", REQUESTS)
def test_a_request_that_is_sent_again_has_its_effect_once(warehouse: Warehouse, title: str) -> None:
    first = warehouse.ask(title)
    assert first.status in (200, 204), first
    state = seen(warehouse.url)
    for _ in range(2):
        again = warehouse.ask(title)
        assert (again.status, document(again)) == (first.status, document(first))
    assert seen(warehouse.url) == state


@pytest.mark.parametrize("title", REQUESTS)
def test_another_request_with_the_same_key_is_refused(warehouse: Warehouse, title: str) -> None:
    assert warehouse.ask(title).status in (200, 204)
    state = seen(warehouse.url)
    method, path, body = REQUESTS[title]
    data = json.dumps({**(body or {}), "more": 1}).encode()
    answer = warehouse.server().answer(method, path, body=data, idempotency_key=KEY)
    assert (answer.status, document(answer)["error"]["type"]) == (422, "UnprocessableEntityException")
    assert seen(warehouse.url) == state


@pytest.mark.parametrize("title", REQUESTS)
@pytest.mark.parametrize("fault", [
    Fault.LOST_DIES,
    *(pytest.param(fault, marks=pytest.mark.slow) for fault in Fault if fault is not Fault.LOST_DIES),
])  # fmt: skip
def test_whichever_answer_of_the_store_is_lost_the_request_can_be_sent_again(
    warehouse: Warehouse, title: str, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    with failing(monkeypatch, None, Fault.ONCE) as counted:
        assert warehouse.ask(title).status in (200, 204)
    state = seen(warehouse.url)
    for number in sorted(counted.writes):
        warehouse.put_back()
        with failing(monkeypatch, number, fault), suppress(Death):
            warehouse.ask(title)
        again = warehouse.ask(title)
        assert again.status in (200, 204), (number, again)
        assert seen(warehouse.url) == state, number


# Keys


def test_a_key_is_of_its_caller_alone(warehouse: Warehouse) -> None:
    rights = CallerRights((NamespaceGrant(frozenset(VERBS)),))
    statuses = [
        warehouse.server()
        .answer(
            "POST",
            N,
            body=b'{"namespace": ["new"]}',
            idempotency_key=KEY,
            caller=KnownCaller(name, rights),
        )
        .status
        for name in ("ann", "ben", "ann")
    ]
    assert statuses == [200, 409, 200]


def test_another_key_is_another_request_and_case_is_no_matter(warehouse: Warehouse) -> None:
    for key, status in ((KEY, 200), (OTHER_KEY, 409), (KEY.upper(), 200), (None, 409)):
        assert warehouse.ask("create a namespace", key).status == status


@pytest.mark.parametrize("key", ["", "x", KEY[1:], f"{KEY}, {KEY}", KEY.replace("-", ""), KEY * 100])
def test_a_key_that_is_no_uuid_is_refused(warehouse: Warehouse, key: str) -> None:
    answer = warehouse.ask("create a namespace", key)
    assert answer.status == 400 and b"is no UUID" in answer.body
    assert objects_of(warehouse.url) == warehouse.objects


@pytest.mark.parametrize(
    ("later_s", "owner"), [(0, "ben"), (keyed_requests.LIFETIME_S + 60, "ben"), (2 * 3600, "ann")]
)
def test_a_key_is_known_for_longer_than_its_time(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, later_s: int, owner: str
) -> None:
    """Both by a server that has seen the request, and by another."""
    server = warehouse.server()
    assert warehouse.ask("commit", server=server).status == 200
    body = json.dumps(updates(owner="ben")).encode()
    assert server.answer("POST", f"{T}/t", body=body).status == 200
    later_us = host_clock_us() + later_s * 1_000_000
    monkeypatch.setattr(keyed_requests, "host_clock_us", lambda: later_us)
    for copy in (server, warehouse.server()):
        assert warehouse.ask("commit", server=copy).status == 200
        assert Catalog(warehouse.url).load_table("a.t").properties["owner"] == owner


def test_a_refused_request_is_decided_again(warehouse: Warehouse) -> None:
    """It has had no effect that could happen twice."""
    catalog = Catalog(warehouse.url)
    catalog.create_namespace("a.new")
    assert warehouse.ask("create a namespace").status == 409
    catalog.drop_namespace("a.new")
    assert warehouse.ask("create a namespace").status == 200


def test_an_unknown_outcome_is_settled_by_the_same_key(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def create_namespace(*arguments: Any, **options: Any) -> None:
        raise CommitUnknown("it is not known", commit_id="x", location="y")

    with monkeypatch.context() as patch:
        patch.setattr(Catalog, "create_namespace", create_namespace)
        answer = warehouse.ask("create a namespace")
        assert answer.status == 503 and b"Send the request again with the same Idempotency-Key" in answer.body
        assert warehouse.ask("create a namespace", None).status == 500
    assert warehouse.ask("create a namespace").status == 200


def test_a_staged_table_takes_no_key(warehouse: Warehouse) -> None:
    body = json.dumps({"name": "later", "schema": SCHEMA, "stage-create": True}).encode()
    ids = {
        document(warehouse.server().answer("POST", T, body=body, idempotency_key=KEY))["metadata"][
            "table-uuid"
        ]
        for _ in range(2)
    }
    assert len(ids) == 2


# At the same time


def between(server: WritableAnswers, look: str, work: Callable[[], object]) -> None:
    """Let `work` happen after the first look of a server for a request, which found nothing."""
    looked, is_first = getattr(server._repeats.ledger, look), [True]

    def look_and_work(*arguments: Any) -> Any:
        earlier_commit = looked(*arguments)
        if is_first:
            is_first.clear()
            assert earlier_commit is None
            work()
        return earlier_commit

    setattr(server._repeats.ledger, look, look_and_work)


@pytest.mark.parametrize("title", REQUESTS)
def test_two_servers_that_have_the_same_request_at_once_make_one_change(
    warehouse: Warehouse, title: str
) -> None:
    assert warehouse.ask(title).status in (200, 204)
    state = seen(warehouse.url)
    warehouse.put_back()
    server = warehouse.server()
    look = "in_table" if title in ("commit", "commit to two tables") else "in_namespace"
    between(server, look, lambda: warehouse.ask(title))
    assert warehouse.ask(title, server=server).status in (200, 204)
    assert seen(warehouse.url) == state


@pytest.mark.parametrize("title", ["drop a table", "rename a table"])
def test_a_table_that_got_the_name_in_between_is_left_alone(warehouse: Warehouse, title: str) -> None:
    def other_server() -> None:
        assert warehouse.ask(title).status == 204
        Catalog(warehouse.url).create_table("a.t", pa.schema({"another": pa.int64()}))

    server = warehouse.server()
    between(server, "in_namespace", other_server)
    assert warehouse.ask(title, server=server).status == 204
    assert Catalog(warehouse.url).load_table("a.t").schema.names == ("another",)


# By HTTP


def test_a_server_that_writes_takes_the_header_and_says_so(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path / "w"))
    catalog.create_namespace("a")
    assert "idempotency-key-lifetime" not in document(WarehouseAnswers(catalog).answer("GET", "/v1/config"))
    with served(catalog, writes=True) as url:
        assert send(url, "/v1/config")[1]["idempotency-key-lifetime"] == "PT30M"
        for key, status in ((KEY, 200), (KEY, 200), (OTHER_KEY, 409)):
            body, headers = {"namespace": ["b"]}, {"Idempotency-Key": key}
            assert send(url, N, "POST", body, headers=headers)[0] == status
