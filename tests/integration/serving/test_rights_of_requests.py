"""The rights that each request takes, by verb and namespace; a request without them does nothing and shows nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.iceberg.serving import served
from tests.integration.serving.requests import send
from tests.patience import PATIENCE_S, barrier

from lakelog.catalog import Catalog
from lakelog.rest import WarehouseAnswers, WritableAnswers, documents
from lakelog.rest.access import (
    CREATE,
    DROP,
    READ,
    VERBS,
    WRITE,
    CallerRights,
    KnownCaller,
    NamespaceGrant,
    ReloadedFile,
    TokenGate,
    hash_of,
    new_token,
    rights_of,
    tokens_of,
)
from lakelog.rest.vending import AssumedRole, CredentialVendor, RoleSettings

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "n", "required": False, "type": "long"}],
}
VIEW_VERSION = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "default-namespace": ["a"],
    "representations": [{"type": "sql", "sql": "SELECT 1 AS n", "dialect": "spark"}],
}
VIEW = {"schema": SCHEMA, "view-version": VIEW_VERSION, "properties": {}}
STAGED = [
    {"action": "add-schema", "schema": SCHEMA},
    {"action": "set-current-schema", "schema-id": -1},
    {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
    {"action": "set-default-spec", "spec-id": -1},
    {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
    {"action": "set-default-sort-order", "sort-order-id": -1},
]
COMMIT: dict[str, Any] = {
    "requirements": [],
    "updates": [{"action": "set-properties", "updates": {"x": "y"}}],
}
CREATION = {"requirements": [{"type": "assert-create"}], "updates": STAGED}


def named(namespace: str, name: str) -> dict[str, Any]:
    return {"namespace": namespace.split("."), "name": name}


def rename(source: str, destination: str, name: str = "t") -> dict[str, Any]:
    return {"source": named(source, name), "destination": named(destination, "u")}


def joint(*changes: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"table-changes": [{**change, "identifier": named(place, "t")} for place, change in changes]}


N, T, V = "/v1/namespaces", "/v1/namespaces/a/tables", "/v1/namespaces/a/views"
Needs = dict[str, tuple[str, ...]]
WHOLE = "*"
"""Stands for the root and all below it. Other names stand for a namespace without those below it."""
REQUESTS: list[tuple[str, str, Any, Needs]] = [
    ("GET", "/v1/config", None, {}),
    ("GET", N, None, {}),
    ("GET", f"{N}/a", None, {"a": (READ,)}),
    ("HEAD", f"{N}/a", None, {"a": (READ,)}),
    ("GET", T, None, {"a": (READ,)}),
    ("GET", f"{T}/t", None, {"a": (READ,)}),
    ("HEAD", f"{T}/t", None, {"a": (READ,)}),
    ("GET", f"{T}/none", None, {"a": (READ,)}),
    ("GET", f"{T}/t/credentials", None, {"a": (READ,)}),
    ("GET", V, None, {"a": (READ,)}),
    ("GET", f"{V}/v", None, {"a": (READ,)}),
    ("HEAD", f"{V}/v", None, {"a": (READ,)}),
    ("POST", N, {"namespace": ["new"]}, {"": (CREATE,), "new": (READ, CREATE)}),
    ("POST", N, {"namespace": ["a", "new"]}, {"a": (CREATE,), "a.new": (READ, CREATE)}),
    ("POST", N, {"namespace": ["new"], "properties": {"location": "/tmp/new"}}, {WHOLE: VERBS}),
    ("POST", f"{N}/a/properties", {"updates": {"x": "y"}}, {"a": (READ, WRITE)}),
    ("POST", f"{N}/a/properties", {"updates": {"location": "/tmp/new"}}, {WHOLE: VERBS}),
    ("POST", f"{N}/a/properties", {"removals": ["location"]}, {WHOLE: VERBS}),
    ("DELETE", f"{N}/a%1Fempty", None, {"a": (DROP,), "a.empty": (DROP,)}),
    ("DELETE", f"{N}/empty", None, {"": (DROP,), "empty": (DROP,)}),
    ("POST", T, {"name": "new", "schema": SCHEMA}, {"a": (READ, CREATE)}),
    ("POST", T, {"name": "new", "schema": SCHEMA, "stage-create": True}, {"a": (READ, CREATE)}),
    ("POST", T, {"name": "new", "schema": SCHEMA, "location": "x"}, {WHOLE: VERBS}),
    ("POST", f"{N}/a/register", {"name": "r", "metadata-location": "x"}, {"a": (READ, CREATE)}),
    ("POST", f"{T}/t", COMMIT, {"a": (READ, WRITE)}),
    ("POST", f"{T}/new", CREATION, {"a": (READ, CREATE)}),
    ("DELETE", f"{T}/t", None, {"a": (DROP,)}),
    ("DELETE", f"{T}/t?purgeRequested=true", None, {"a": (DROP,)}),
    ("POST", f"{T}/t/metrics", {}, {"a": (READ,)}),
    ("POST", "/v1/tables/rename", rename("a", "a"), {"a": (READ, WRITE, DROP, CREATE)}),
    ("POST", "/v1/tables/rename", rename("a", "b.c"), {"a": (READ, WRITE, DROP), "b.c": (CREATE,)}),
    ("POST", "/v1/transactions/commit", joint(("a", COMMIT)), {"a": (READ, WRITE)}),
    (
        "POST",
        "/v1/transactions/commit",
        joint(("a", COMMIT), ("b.c", COMMIT)),
        {"a": (READ, WRITE), "b.c": (READ, WRITE)},
    ),
    (
        "POST",
        "/v1/transactions/commit",
        joint(("a", COMMIT), ("b", CREATION)),
        {"a": (READ, WRITE), "b": (READ, CREATE)},
    ),
    ("POST", V, {"name": "new", **VIEW}, {"a": (READ, CREATE)}),
    (
        "POST",
        V,
        {"name": "new", **VIEW, "view-version": {**VIEW_VERSION, "default-namespace": ["b", "c"]}},
        {"a": (READ, CREATE), "b.c": (READ,)},
    ),
    # An error would name a function of the root.
    (
        "POST",
        V,
        {"name": "new", **VIEW, "view-version": {**VIEW_VERSION, "default-namespace": []}},
        {"a": (READ, CREATE), "": (READ,)},
    ),
    ("POST", f"{V}/v", {"requirements": [], "updates": []}, {"a": (READ, WRITE)}),
    (
        "POST",
        f"{V}/v",
        {
            "requirements": [],
            "updates": [
                {
                    "action": "add-view-version",
                    "view-version": {**VIEW_VERSION, "default-namespace": ["b", "c"]},
                }
            ],
        },
        {"a": (READ, WRITE), "b.c": (READ,)},
    ),
    ("DELETE", f"{V}/v", None, {"a": (DROP,)}),
    ("POST", "/v1/views/rename", rename("a", "b.c", "v"), {"a": (READ, WRITE, DROP), "b.c": (CREATE,)}),
]


def caller(needs: Needs) -> KnownCaller:
    """Return a caller with these verbs in these namespaces, and not below them."""
    namespaces = [
        ("a",),
        ("a", "new"),
        ("a", "empty"),
        ("b",),
        ("b", "c"),
        ("b", "new"),
        ("new",),
        ("empty",),
    ]
    grants = []
    for name, verbs in needs.items():
        if name == WHOLE:
            grants.append(NamespaceGrant(frozenset(verbs)))
            continue
        namespace = tuple(name.split(".")) if name else ()
        below = [other for other in namespaces if other != namespace and other[: len(namespace)] == namespace]
        grants.append(NamespaceGrant(frozenset(verbs), namespace, tuple(below)))
    return KnownCaller("ann", CallerRights(tuple(grants)))


def made(path: Path) -> Catalog:
    catalog = Catalog(str(path))
    for name in ("a", "a.empty", "b", "b.c", "empty"):
        catalog.create_namespace(name)
    for name in ("a.t", "b.c.t"):
        catalog.create_table(name, pa.schema({"n": pa.int64()}))
    WritableAnswers(catalog).answer("POST", V, body=json.dumps({"name": "v", **VIEW}).encode())
    return catalog


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse that no request may change."""
    path = tmp_path_factory.mktemp("warehouse") / "w"
    made(path)
    return path


@cache
def vendor() -> CredentialVendor:
    """Credentials of a role that no request here reaches, as the tables are in a folder."""
    return CredentialVendor(
        AssumedRole(RoleSettings(arn="arn:aws:iam::123456789012:role/none", region="us-east-1"))
    )


def commits(catalog: Catalog) -> int:
    return sum(1 for _ in catalog.audit())


def less(needs: Needs) -> Iterator[Needs]:
    """Yield the rights without one of them, and without all of a namespace's."""
    for name, verbs in needs.items():
        for fewer in [*combinations(verbs, len(verbs) - 1), ()]:
            others = tuple(verb for verb in VERBS if verb not in verbs)
            yield {**needs, name: (*fewer, *others)}


def test_every_endpoint_is_tried() -> None:
    tried_endpoints = set()
    for method, path, _, _ in REQUESTS:
        parts = path.partition("?")[0].split("/")[1:]
        names = iter(("{namespace}", "{table}" if "tables" in parts else "{view}"))
        is_object = len(parts) > 2 and parts[1] == "namespaces"
        shown_parts = [
            next(names) if is_object and at in (2, 4) else part for at, part in enumerate(parts[1:], 1)
        ]
        tried_endpoints.add(f"{method} /v1/{{prefix}}/{'/'.join(shown_parts)}")
    all_endpoints = {*documents.ENDPOINTS, *documents.WRITE_ENDPOINTS, documents.CREDENTIALS_ENDPOINT}
    assert all_endpoints <= tried_endpoints


@pytest.mark.parametrize(("method", "path", "body", "needs"), REQUESTS)
def test_a_request_without_a_right_is_refused_and_does_nothing(
    warehouse: Path, method: str, path: str, body: Any, needs: Needs
) -> None:
    catalog = Catalog(str(warehouse))
    answers, before = WritableAnswers(catalog, vendor()), commits(catalog)
    for lacking in less(needs):
        answer = answers.answer(
            method, path, body=json.dumps(body).encode() if body is not None else b"", caller=caller(lacking)
        )
        assert answer.status == 403, (lacking, answer)
        error = json.loads(answer.body)["error"]
        assert error["type"] == "ForbiddenException" and error["message"].startswith("ann may not ")
    assert commits(Catalog(str(warehouse))) == before


@pytest.mark.parametrize(("method", "path", "body", "needs"), REQUESTS)
def test_a_request_with_just_its_rights_is_not_forbidden(
    tmp_path: Path, method: str, path: str, body: Any, needs: Needs
) -> None:
    answers = WritableAnswers(made(tmp_path / "w"), vendor())
    data = json.dumps(body).encode() if body is not None else b""
    answer = answers.answer(method, path, body=data, caller=caller(needs))
    impossible = (
        any(word in path for word in ("register", "none", "credentials"))
        or '"location": "x"' in data.decode()
    )
    assert answer.status in ((400, 404) if impossible else (200, 204)), answer.body


def test_a_refusal_does_not_show_what_exists(warehouse: Path) -> None:
    answers = WarehouseAnswers(Catalog(str(warehouse)))
    stranger = caller({"b.c": (READ,)})
    texts = {
        answers.answer("GET", f"{N}/a/tables/{name}", caller=stranger).body for name in ("t", "none", "v")
    }
    assert len(texts) == 1
    for present, missing in (("a", "zzz"), ("a%1Fempty", "a%1Fzzz"), ("b", "zzz")):
        pair = [answers.answer("GET", f"{N}/{name}", caller=stranger) for name in (present, missing)]
        assert [answer.status for answer in pair] == [403, 403]
    for parent in ("a", "zzz"):
        assert answers.answer("GET", f"{N}?parent={parent}", caller=stranger).status == 403


def test_a_place_of_the_callers_own_takes_the_whole_warehouse_without_exceptions(warehouse: Path) -> None:
    """It could be the folder of the namespace that a grant leaves out."""
    answers, before = WritableAnswers(Catalog(str(warehouse))), commits(Catalog(str(warehouse)))
    ann = KnownCaller("ann", CallerRights((NamespaceGrant(frozenset(VERBS), (), (("b", "c"),)),)))
    secret = Catalog(str(warehouse)).load_table("b.c.t").location
    for path, body in (
        (T, {"name": "thief", "schema": SCHEMA, "location": f"{secret}/x"}),
        (N, {"namespace": ["thief"], "properties": {"location": secret}}),
        (f"{N}/a/properties", {"updates": {"location": secret}}),
    ):
        answer = answers.answer("POST", path, body=json.dumps(body).encode(), caller=ann)
        assert answer.status == 403 and b"in the whole warehouse" in answer.body
    assert commits(Catalog(str(warehouse))) == before


def test_a_grant_with_exceptions_shows_no_names_that_it_leaves_out(warehouse: Path) -> None:
    answers = WritableAnswers(Catalog(str(warehouse)))
    ann = KnownCaller("ann", CallerRights((NamespaceGrant(frozenset(VERBS), (), (("empty",),)),)))
    full = KnownCaller("admin", CallerRights((NamespaceGrant(frozenset(VERBS)),)))
    for path in (f"{N}/empti", f"{N}/empti/tables"):
        assert b"`empty`" in answers.answer("GET", path, caller=full).body
        answer = answers.answer("GET", path, caller=ann)
        assert answer.status == 404 and b"`empty`" not in answer.body


def test_errors_show_no_names_that_may_not_be_seen(warehouse: Path) -> None:
    """They suggest names like a missing name, or say what is in the way: also names that a grant leaves out."""
    answers = WritableAnswers(Catalog(str(warehouse)))
    ann = KnownCaller("ann", CallerRights((NamespaceGrant(frozenset(VERBS), ("a",), (("a", "empty"),)),)))
    full = KnownCaller("admin", CallerRights((NamespaceGrant(frozenset(VERBS)),)))
    for method, path in (
        ("GET", f"{N}/a%1Fempt"),
        ("GET", f"{N}/a%1Fempt/tables/t"),
        ("GET", f"{N}/a/tables/empty"),
        ("GET", f"{N}/a/views/empty"),
    ):
        shown_message = str(answers.answer(method, path, caller=full).body)
        hidden_message = str(answers.answer(method, path, caller=ann).body)
        assert "empty" in shown_message.replace(path.rpartition("/")[2], "") or "namespace" in shown_message
        assert "did you mean" not in hidden_message and "it is a namespace" not in hidden_message
    ben = KnownCaller("ben", CallerRights((NamespaceGrant(frozenset((DROP,)), (), (("a", "empty"),)),)))
    assert b"`empty`" in answers.answer("DELETE", f"{N}/a", caller=full).body
    answer = answers.answer("DELETE", f"{N}/a", caller=ben)
    assert answer.status == 409 and b"empty`" not in answer.body


# By HTTP, with tokens

RIGHTS = """
[[grants]]
callers = ["ann"]
namespace = "a"
except = ["a.secret"]
verbs = ["read", "write", "create", "drop"]

[[grants]]
callers = ["ann"]
namespace = "b.c"
verbs = ["read", "create"]

[[grants]]
callers = ["ben"]
namespace = "b"
verbs = ["read", "write", "create", "drop"]

[[grants]]
callers = ["admin"]
whole_warehouse = true
verbs = ["read", "write", "create", "drop"]
"""


class Server:
    """A server with callers, and the token of each."""

    def __init__(self, url: str, warehouse: str, tokens: dict[str, str]) -> None:
        self.url, self.warehouse, self.tokens = url, warehouse, tokens

    def lake(self, name: str) -> Any:
        from pyiceberg.catalog import load_catalog

        return load_catalog("lake", type="rest", uri=self.url, token=self.tokens[name])

    def send(self, name: str, path: str, method: str = "GET", body: Any = None) -> tuple[int, Any]:
        return send(self.url, path, method, body, token=self.tokens[name])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    tokens = {name: new_token() for name in ("ann", "ben", "admin", "nil")}
    lines = "".join(f'{name} = "{hash_of(token)}"\n' for name, token in tokens.items())
    for file, text in (("tokens", f"[tokens]\n{lines}"), ("rights", RIGHTS)):
        (tmp_path / file).write_text(text)
        (tmp_path / file).chmod(0o600)
    gate = TokenGate(
        ReloadedFile(str(tmp_path / "tokens"), tokens_of, secret=True),
        ReloadedFile(str(tmp_path / "rights"), rights_of),
    )
    warehouse = str(tmp_path / "w")
    catalog, properties = Catalog(warehouse), {"lakelog.iceberg.version": "2"}
    for name in ("a", "a.deep", "a.deep.er", "a.secret", "b", "b.c", "d"):
        catalog.create_namespace(name)
        table = catalog.create_table(f"{name}.t", pa.schema({"n": pa.int64()}), properties=properties)
        table.append(pa.table({"n": [1]}))
    with served(warehouse, writes=True, gate=gate) as url:
        yield Server(url, warehouse, tokens)


def namespaces(server: Server, name: str, parent: str = "") -> list[list[str]]:
    status, answer = server.send(name, f"{N}?parent={parent}" if parent else N)
    assert status == 200
    return answer["namespaces"]


def test_lists_show_only_what_may_be_seen(server: Server) -> None:
    assert namespaces(server, "admin") == [["a"], ["b"], ["d"]]
    assert namespaces(server, "ann") == [["a"], ["b"]]
    assert namespaces(server, "ann", "a") == [["a", "deep"]]
    assert namespaces(server, "admin", "a") == [["a", "deep"], ["a", "secret"]]
    assert namespaces(server, "ann", "a%1Fdeep") == [["a", "deep", "er"]]
    assert namespaces(server, "ann", "b") == [["b", "c"]]
    assert namespaces(server, "ben") == [["b"]]
    assert namespaces(server, "nil") == []
    assert server.send("ann", f"{N}?parent=d")[0] == 403
    # Pages count what is shown.
    status, page = server.send("ann", f"{N}?pageToken=&pageSize=1")
    assert (status, page["namespaces"]) == (200, [["a"]])
    assert server.send("ann", f"{N}?pageToken={page['next-page-token']}&pageSize=1")[1] == {
        "namespaces": [["b"]]
    }
    for place, status in (
        ("a", 200),
        ("a%1Fdeep%1Fer", 200),
        ("a%1Fsecret", 403),
        ("b", 403),
        ("b%1Fc", 200),
    ):
        assert server.send("ann", f"{N}/{place}/tables")[0] == status, place


def test_clients_work_within_their_rights(server: Server) -> None:
    from pyiceberg.exceptions import ForbiddenError

    rows = pa.table({"n": pa.array([2, 3], pa.int64())})
    ann, ben = server.lake("ann"), server.lake("ben")
    ann.load_table("a.t").append(rows)
    ann.create_namespace("a.new")
    ann.create_table("a.new.t", schema=rows.schema).append(rows)
    for forbidden in (
        lambda: ann.load_table("a.secret.t"),
        lambda: ann.load_table("d.t"),
        lambda: ann.load_table("b.c.t").append(rows),
        lambda: ann.create_namespace("e"),
        lambda: ann.create_namespace("a.secret"),
        lambda: ann.drop_namespace("a"),
        lambda: ann.drop_table("b.c.t"),
        lambda: ann.rename_table("a.t", "a.secret.u"),
        lambda: ann.rename_table("b.c.t", "a.stolen"),
        lambda: ben.load_table("a.t"),
        lambda: server.lake("nil").load_table("a.t"),
    ):
        with pytest.raises(ForbiddenError):
            forbidden()
    ann.rename_table("a.t", "b.c.moved")
    ben.load_table("b.c.moved").append(rows)
    with pytest.raises(ForbiddenError):
        ann.load_table("b.c.moved").append(rows)  # she has given it away
    history = Catalog(server.warehouse).load_table("b.c.moved").history()
    users = {entry.version: entry.writer["user"] for entry in history}
    assert list(users.values()).count("ann") >= 1 and users[max(users)] == "ben"


def test_a_commit_to_several_tables_with_a_forbidden_table_does_nothing(server: Server) -> None:
    catalog = Catalog(server.warehouse)
    before = {name: catalog.load_table(name).version for name in ("a.t", "b.t")}
    for order in (("a", "b"), ("b", "a")):
        body = joint(*((place, COMMIT) for place in order))
        status, error = server.send("ann", "/v1/transactions/commit", "POST", body)
        assert status == 403 and error["type"] == "ForbiddenException"
    assert {name: Catalog(server.warehouse).load_table(name).version for name in before} == before
    assert (
        server.send("admin", "/v1/transactions/commit", "POST", joint(("a", COMMIT), ("b", COMMIT)))[0] == 204
    )
    for name in before:
        (newest,) = [
            entry
            for entry in Catalog(server.warehouse).load_table(name).history()
            if entry.version == before[name] + 1
        ]
        assert newest.writer["user"] == "admin"


def test_a_place_of_the_callers_own_takes_all_rights(server: Server) -> None:
    """It could be the folder of another namespace's table, whose files would become the new table's."""
    foreign = Catalog(server.warehouse).load_table("a.secret.t").location
    body = {"name": "thief", "schema": SCHEMA, "location": f"{foreign}/data"}
    assert server.send("ann", T, "POST", body)[0] == 403
    assert server.send("ann", T, "POST", {**body, "stage-create": True})[0] == 403


def test_a_name_with_a_plus_leads_to_no_other_rights(server: Server) -> None:
    """A path with + has two readings; each is decided by the rights in its own namespace."""
    admin = server.lake("admin")
    for name in ("a b", "a+b"):
        admin.create_namespace(name)
    assert server.send("ann", f"{N}/a+b/tables")[0] == 403
    assert server.send("ann", f"{N}/a+b/properties", "POST", {"updates": {"x": "y"}})[0] == 403
    assert server.send("ann", f"{N}/a+b", "DELETE")[0] == 403


def test_commits_of_callers_at_the_same_time_have_their_own_names(server: Server) -> None:
    """Threads that change a table at once share versions: each change keeps its own writer."""
    start, rounds = barrier(2), 6
    statuses: list[int] = []

    def change(name: str) -> None:
        start.wait(PATIENCE_S)
        for number in range(rounds):
            updates = [{"action": "set-properties", "updates": {f"{name}-{number}": name}}]
            body = {"requirements": [], "updates": updates}
            statuses.append(server.send(name, f"{N}/b%1Fc/tables/t", "POST", body)[0])

    threads = [threading.Thread(target=change, args=(name,)) for name in ("ben", "admin")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 2 * rounds
    table = Catalog(server.warehouse).load_table("b.c.t")
    writers = [entry.writer["user"] for entry in table.history()]
    assert (writers.count("ben"), writers.count("admin")) == (rounds, rounds)


def test_the_history_of_a_namespace_names_the_caller(server: Server) -> None:
    assert server.send("ann", N, "POST", {"namespace": ["a", "new"]})[0] == 200
    assert server.send("ann", f"{N}/a%1Fnew/properties", "POST", {"updates": {"x": "y"}})[0] == 200
    assert server.send("ann", f"{N}/a%1Fnew", "DELETE")[0] == 204
    users = [entry.user for entry in Catalog(server.warehouse).audit()]
    assert users.count("ann") >= 3
