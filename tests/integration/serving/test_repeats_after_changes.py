"""Requests with an Idempotency-Key that are sent again after their names lead elsewhere, or after the key's time."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.catalog.answers.test_answers import options, seen
from tests.integration.iceberg.commits.test_views_and_command import creation, version
from tests.integration.serving.test_keyed_requests import (
    KEY,
    OTHER_KEY,
    N,
    T,
    V,
    Warehouse,
    between,
    document,
    made,
    updates,
    warehouse,
)

from lakelog.catalog import Catalog, engine
from lakelog.catalog.engine import keyed_requests
from lakelog.catalog.keeping.maintenance import purge
from lakelog.log import Log, MemoryStore
from lakelog.log.clocks import host_clock_us
from lakelog.rest import HttpAnswer, WritableAnswers

__all__ = ["made", "warehouse"]

BENS = pa.schema({"bens": pa.int64()})
Later = Callable[[Catalog], object]


def ask(
    server: WritableAnswers, method: str, path: str, body: Any = None, key: str | None = KEY
) -> HttpAnswer:
    data = b"" if body is None else json.dumps(body).encode()
    return server.answer(method, path, body=data, idempotency_key=key)


def is_unknown(answer: HttpAnswer) -> bool:
    return answer.status == 500 and document(answer)["error"]["type"] == "CommitStateUnknownException"


def again(catalog: Catalog, name: str = "a.t") -> None:
    catalog.drop_table(name)
    catalog.create_table(name, BENS)


def move_around(catalog: Catalog) -> None:
    catalog.rename_table("a.t", "a.t1")
    catalog.rename_table("a.t1", "b.t2")
    catalog.create_table("a.t", BENS)


def purge_and_create(catalog: Catalog) -> None:
    catalog.drop_table("a.t", purge=True)
    catalog.create_table("a.t", BENS)


def drop_namespace(catalog: Catalog) -> None:
    catalog.drop_namespace("a", cascade=True)


def drop_namespace_and_create(catalog: Catalog) -> None:
    drop_namespace(catalog)
    catalog.create_namespace("a")
    catalog.create_table("a.t", BENS)


MOVES: dict[str, Later] = {
    "renamed": lambda catalog: catalog.rename_table("a.t", "a.other"),
    "moved": lambda catalog: catalog.rename_table("a.t", "b.other"),
    "moved twice, and created again": move_around,
    "dropped": lambda catalog: catalog.drop_table("a.t"),
    "dropped, and created again": again,
    "dropped with its namespace": drop_namespace,
    "dropped with its namespace, and created again": drop_namespace_and_create,
}


# Commits to tables


@pytest.mark.parametrize("title", ["commit", "commit to two tables"])
@pytest.mark.parametrize("move", MOVES)
def test_a_commit_to_a_table_whose_name_leads_elsewhere_is_no_failure(
    warehouse: Warehouse, title: str, move: str
) -> None:
    """A client that hears of a failure deletes its files, which the table has under its other name."""
    assert warehouse.ask(title).status in (200, 204)
    MOVES[move](Catalog(warehouse.url))
    state = seen(warehouse.url)
    repeated = warehouse.ask(title)
    assert repeated.status == 204 if title == "commit to two tables" else is_unknown(repeated), repeated
    assert seen(warehouse.url) == state


@pytest.mark.parametrize("move", [*MOVES, "purged, and created again"])
def test_a_commit_to_a_table_that_got_the_name_lately_is_made(warehouse: Warehouse, move: str) -> None:
    MOVES.get(move, purge_and_create)(Catalog(warehouse.url))
    catalog = Catalog(warehouse.url)
    answer = warehouse.ask("commit")
    assert answer.status == (200 if "again" in move else 404)
    if "again" in move:
        assert catalog.load_table("a.t").properties["owner"] == "ann"


def test_a_restored_table_is_known_by_its_name(warehouse: Warehouse) -> None:
    catalog = Catalog(warehouse.url)
    catalog.create_table("a.chosen", BENS, location=f"{warehouse.url}/chosen")
    path = f"{T}/chosen"
    catalog.drop_table("a.chosen")
    catalog.undrop_table("a.chosen")
    for _ in range(2):
        assert ask(warehouse.server(), "POST", path, updates(owner="ann")).status == 200


def test_a_table_that_was_moved_from_a_chosen_place_leaves_it_unknown(warehouse: Warehouse) -> None:
    """Its namespace does not show the place any more."""
    catalog = Catalog(warehouse.url)
    catalog.create_table("a.chosen", BENS, location=f"{warehouse.url}/chosen")
    assert ask(warehouse.server(), "POST", f"{T}/chosen", updates(owner="ann")).status == 200
    catalog.rename_table("a.chosen", "b.chosen")
    catalog.create_table("a.chosen", BENS)
    answer = ask(warehouse.server(), "POST", f"{T}/chosen", updates(owner="ann"))
    assert is_unknown(answer) and "owner" not in Catalog(warehouse.url).load_table("a.chosen").properties


def test_a_commit_to_a_table_that_iceberg_cannot_have_any_more_is_no_failure(warehouse: Warehouse) -> None:
    assert warehouse.ask("commit").status == 200
    column = {"change": "add-column", "name": ["pause"], "type": "interval day to second", "nullable": True}
    Catalog(warehouse.url).load_table("a.t").alter([column])
    assert ask(warehouse.server(), "GET", f"{T}/t").status == 400
    assert is_unknown(warehouse.ask("commit"))


def test_a_repeat_of_several_commits_is_known_if_the_first_changes_nothing(warehouse: Warehouse) -> None:
    names = [{"namespace": ["a"], "name": name} for name in ("t", "u")]
    body = {
        "table-changes": [
            {"identifier": names[0], "requirements": [], "updates": []},
            {"identifier": names[1], **updates(owner="ann")},
        ]
    }
    path = "/v1/transactions/commit"
    assert ask(warehouse.server(), "POST", path, body).status == 204
    assert ask(warehouse.server(), "POST", f"{T}/u", updates(owner="ben"), None).status == 200
    assert ask(warehouse.server(), "POST", path, body).status == 204
    assert Catalog(warehouse.url).load_table("a.u").properties["owner"] == "ben"


@pytest.mark.parametrize("is_created_again", [False, True])
@pytest.mark.parametrize("purged", ["a.t", "a.u"])
def test_a_repeat_of_several_commits_is_known_by_the_tables_that_are_left(
    warehouse: Warehouse, purged: str, is_created_again: bool
) -> None:
    assert warehouse.ask("commit to two tables").status == 204
    catalog = Catalog(warehouse.url)
    catalog.drop_table(purged, purge=True)
    if is_created_again:
        catalog.create_table(purged, BENS)
    left = "a.u" if purged == "a.t" else "a.t"
    assert ask(warehouse.server(), "POST", f"{T}/{left[-1]}", updates(owner="ben"), OTHER_KEY).status == 200
    state = seen(warehouse.url)
    assert warehouse.ask("commit to two tables").status == 204
    assert seen(warehouse.url) == state


def test_a_repeat_of_several_commits_is_known_though_a_table_was_moved_from_a_chosen_place(
    warehouse: Warehouse,
) -> None:
    catalog = Catalog(warehouse.url)
    catalog.create_table("a.chosen", BENS, location=f"{warehouse.url}/chosen")
    names = [{"namespace": ["a"], "name": name} for name in ("chosen", "u")]
    body = {"table-changes": [{"identifier": name, **updates(owner="ann")} for name in names]}
    assert ask(warehouse.server(), "POST", "/v1/transactions/commit", body).status == 204
    catalog.rename_table("a.chosen", "b.chosen")
    assert ask(warehouse.server(), "POST", "/v1/transactions/commit", body).status == 204
    # Another request may have been done in the log that cannot be found.
    body["table-changes"].reverse()
    assert is_unknown(ask(warehouse.server(), "POST", "/v1/transactions/commit", body, OTHER_KEY))


# Names


def drop_new(catalog: Catalog) -> None:
    catalog.drop_namespace("a.new")


def create_new_again(catalog: Catalog) -> None:
    drop_new(catalog)
    catalog.create_namespace("a.new", {"bens": "1"})


AFTER_CREATION: dict[str, tuple[str, Later]] = {
    "a namespace is dropped": ("create a namespace", drop_new),
    "a namespace is created again": ("create a namespace", create_new_again),
    "a table is dropped": ("create a table", lambda catalog: catalog.drop_table("a.new")),
    "a table is created again": ("create a table", lambda catalog: again(catalog, "a.new")),
    "a staged table is dropped": ("create a staged table", lambda catalog: catalog.drop_table("a.new")),
    "a staged table is created again": (
        "create a staged table",
        lambda catalog: again(catalog, "a.new"),
    ),
    "a view is dropped": ("create a view", lambda catalog: catalog.drop_view("a.new")),
    "a replaced view is renamed": ("replace a view", lambda catalog: catalog.rename_view("a.v", "a.w")),
    "the namespace above is dropped": ("create a table", drop_namespace),
}


@pytest.mark.parametrize("case", AFTER_CREATION)
def test_an_object_that_is_gone_is_neither_a_failure_nor_taken_for_another(
    warehouse: Warehouse, case: str
) -> None:
    title, later = AFTER_CREATION[case]
    assert warehouse.ask(title).status == 200
    later(Catalog(warehouse.url))
    state = seen(warehouse.url)
    answer = warehouse.ask(title)
    assert is_unknown(answer) and b"bens" not in answer.body, answer
    assert seen(warehouse.url) == state


@pytest.mark.parametrize("is_created_again", [False, True])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("DELETE", f"{N}/a%1Fx%1Fy", None),
        ("POST", f"{N}/a%1Fx/properties", {"updates": {"p": "1"}}),
        ("POST", f"{N}/a%1Fx/properties", {"removals": ["old"]}),
        ("DELETE", f"{N}/a%1Fx/tables/t", None),
        ("DELETE", f"{N}/a%1Fx/tables/t?purgeRequested=true", None),
    ],
)
def test_a_request_whose_namespace_is_gone_was_done_in_the_former_namespace(
    warehouse: Warehouse, method: str, path: str, body: Any, *, is_created_again: bool
) -> None:
    def create(catalog: Catalog) -> None:
        catalog.create_namespace("a.x", {"old": "1"})
        catalog.create_namespace("a.x.y")
        catalog.create_table("a.x.t", BENS)

    catalog = Catalog(warehouse.url)
    create(catalog)
    first = ask(warehouse.server(), method, path, body)
    assert first.status in (200, 204)
    catalog.drop_namespace("a.x", cascade=True)
    if is_created_again:
        create(catalog)
    state = seen(warehouse.url)
    repeated = ask(warehouse.server(), method, path, body)
    assert (repeated.status, repeated.body) == (first.status, first.body)
    assert seen(warehouse.url) == state


def test_a_repeat_of_a_purge_leaves_another_table_alone(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A purge has several commits in the namespace, and a server may have seen only the first when it looked last."""
    server = warehouse.server()
    take_off_the_list = purge.take_off_the_list

    def look_and_take(*arguments: Any) -> None:
        properties = {"updates": {"p": "1"}}
        assert ask(server, "POST", f"{N}/a/properties", properties, OTHER_KEY).status == 200
        take_off_the_list(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(purge, "take_off_the_list", look_and_take)
        assert warehouse.ask("purge a table").status == 204
    Catalog(warehouse.url).create_table("a.t", BENS)
    for copy in (server, warehouse.server()):
        assert warehouse.ask("purge a table", server=copy).status == 204
        assert Catalog(warehouse.url).load_table("a.t").schema.names == ("bens",)


@pytest.mark.parametrize("title", ["rename a table", "create a staged table", "drop a view"])
def test_work_for_others_is_no_effect_of_a_request(warehouse: Warehouse, title: str) -> None:
    """A table that was dropped by its place loses its name when a request looks it up, by a commit of that request."""
    catalog = Catalog(warehouse.url)
    name = {"rename a table": "a.t", "create a staged table": "a.new", "drop a view": "a.v"}[title]
    if title == "drop a view":
        catalog.drop_view(name)
    if title != "rename a table":
        catalog.create_table(name, BENS)
    engine.drop_table_at(catalog, catalog.load_table(name).location)
    answer = warehouse.ask(title)
    assert answer.status == (200 if title == "create a staged table" else 404), answer
    if title == "rename a table":
        assert not Catalog(warehouse.url).table_exists("b.moved")


def test_a_damaged_table_can_be_dropped_with_a_key(warehouse: Warehouse) -> None:
    folder = Catalog(warehouse.url).load_table("a.t").location.rpartition("/")[2]
    for name, store in MemoryStore._named.items():
        if name.startswith(warehouse.url):
            store._objects = {key: data for key, data in store._objects.items() if folder not in key}
    assert warehouse.ask("drop a table").status == 204


def drop_and_undrop_view(catalog: Catalog) -> None:
    catalog.drop_view("a.v")
    catalog.undrop_view("a.v")


def rename_view_twice(catalog: Catalog) -> None:
    catalog.rename_view("a.v", "a.w")
    catalog.rename_view("a.w", "a.x")


@pytest.mark.parametrize("change", [drop_and_undrop_view, rename_view_twice])
def test_no_log_is_missed_where_a_view_had_the_name(warehouse: Warehouse, change: Later) -> None:
    catalog = Catalog(warehouse.url)
    change(catalog)
    assert ask(warehouse.server(), "POST", f"{T}/v", updates(owner="me")).status == 404
    if not catalog.view_exists("a.v"):
        catalog.create_table("a.v", BENS)
        assert ask(warehouse.server(), "POST", f"{T}/v", updates(owner="me")).status == 200


# The same key, later or for another request


def wait_until_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    later_us = host_clock_us() + 2 * 3600 * 1_000_000
    monkeypatch.setattr(keyed_requests, "host_clock_us", lambda: later_us)


def test_a_forgotten_key_is_a_new_request_for_a_server_that_read_nothing_since(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = warehouse.server()
    assert ask(server, "GET", f"{V}/v").status == 200
    assert warehouse.ask("drop a view").status == 204
    assert ask(warehouse.server(), "POST", V, creation("v", version("SELECT 5 AS n")), None).status == 200
    wait_until_forgotten(monkeypatch)
    assert warehouse.ask("drop a view", server=server).status == 204
    assert ask(warehouse.server(), "GET", f"{V}/v").status == 404


def test_a_key_that_was_used_again_is_known_to_a_server_that_knew_its_first_use(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_us = [host_clock_us()]
    monkeypatch.setattr(keyed_requests, "host_clock_us", lambda: now_us[0])
    monkeypatch.setattr(MemoryStore, "now_us", lambda store, near="": now_us[0])
    log_options = replace(options(), clock_us=lambda: now_us[0])
    server, other_server = (
        WritableAnswers(Catalog(warehouse.url, log_options=log_options)) for _ in range(2)
    )
    path, body = f"{N}/a/properties", {"updates": {"p": "1"}}
    catalog = Catalog(warehouse.url, log_options=log_options)
    for _ in range(2):
        assert ask(server, "POST", path, body).status == 200
    now_us[0] += 61 * 60 * 1_000_000
    catalog.alter_namespace("a", set={"p": "2"})
    assert ask(other_server, "POST", path, body).status == 200
    assert Catalog(warehouse.url).load_namespace("a")["p"] == "1"
    now_us[0] += 60 * 1_000_000
    Catalog(warehouse.url, log_options=log_options).alter_namespace("a", set={"p": "3"})
    assert ask(server, "POST", path, body).status == 200
    assert Catalog(warehouse.url).load_namespace("a")["p"] == "3"


@pytest.mark.parametrize("place", ["", "/chosen"])
@pytest.mark.parametrize(
    ("name", "later"),
    [
        ("x", lambda catalog: catalog.drop_namespace("a.x")),
        ("y", lambda catalog: catalog.drop_namespace("a.x")),
        ("y", lambda catalog: catalog.create_namespace("a.x.inner")),
    ],
)
def test_a_namespace_created_with_a_forgotten_key_is_a_new_namespace(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, place: str, name: str, later: Later
) -> None:
    def create(name: str) -> int:
        properties = {"who": name, **({"location": f"{warehouse.url}{place}"} if place else {})}
        body = {"namespace": ["a", name], "properties": properties}
        return ask(warehouse.server(), "POST", N, body).status

    assert create("x") == 200
    later(Catalog(warehouse.url))
    wait_until_forgotten(monkeypatch)
    assert create(name) == 200
    catalog = Catalog(warehouse.url)
    assert catalog.load_namespace(("a", name))["who"] == name
    assert catalog.list_namespaces(("a", name)) == []


def test_another_request_with_the_same_key_at_once_is_not_called_done(warehouse: Warehouse) -> None:
    view = creation("w", version("SELECT 5 AS n"))
    assert ask(warehouse.server(), "POST", V, view, None).status == 200
    server = warehouse.server()
    between(server, "in_namespace", lambda: warehouse.ask("drop a view"))
    is_done = ask(server, "DELETE", f"{V}/w").status == 204
    assert (ask(warehouse.server(), "GET", f"{V}/w").status == 404) == is_done


# At the same time


@pytest.mark.parametrize("title", ["create a table", "create a staged table"])
@pytest.mark.parametrize("look", [1, 2])
def test_a_table_that_is_dropped_while_a_copy_of_its_creation_is_under_way_stays_dropped(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, title: str, look: int
) -> None:
    server = warehouse.server()
    in_namespace, looks = server._repeats.ledger.in_namespace, [0]

    def create_and_drop() -> None:
        assert warehouse.ask(title).status == 200
        Catalog(warehouse.url).drop_table("a.new")

    def look_and_work(*arguments: Any) -> Any:
        looks[0] += 1
        earlier_commit = in_namespace(*arguments)
        if looks[0] == look:
            create_and_drop()
        return earlier_commit

    monkeypatch.setattr(server._repeats.ledger, "in_namespace", look_and_work)
    assert is_unknown(warehouse.ask(title, server=server))
    assert not Catalog(warehouse.url).table_exists("a.new")


def test_a_look_at_an_older_version_reads_nothing_again(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads take their version first, and then wait for each other."""
    server = warehouse.server()
    catalog = Catalog(warehouse.url, log_options=options())
    ledger, request = server._repeats.ledger, keyed_requests.keyed_request(KEY, "", [b""])
    tracked = catalog._tree.namespace(("a",)).tracked
    old_view = tracked.settled()
    catalog.alter_namespace("a", set={"p": "1"})
    assert ledger.in_namespace(catalog, ("a",), request) is None
    monkeypatch.setattr(Log, "commits", lambda *arguments, **keywords: pytest.fail("it reads again"))
    monkeypatch.setattr(tracked, "settled", lambda: old_view)
    assert ledger.in_namespace(catalog, ("a",), request) is None
