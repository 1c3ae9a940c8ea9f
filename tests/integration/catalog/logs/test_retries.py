"""Requests that are retried because their answer was lost: they happen once, whatever happened in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.catalog.conftest import SCHEMA, rows
from tests.integration.catalog.ddl.test_staging import staged_files

from lakelog.catalog import Catalog, NoSuchTable, TableExists, Token, ViewDefinition, col, engine
from lakelog.catalog.engine import DataFile
from lakelog.log import CommitUnknown, NotFound, expiry

Client = Callable[[], Catalog]


def ids(catalog: Catalog, name: str) -> list[int]:
    return sorted(catalog.load_table(name).to_arrow()["id"].to_pylist())


def test_a_retried_drop_spares_the_table_that_has_the_name_by_now(catalog: Catalog, client: Client) -> None:
    catalog.create_table("t", SCHEMA)
    token = catalog.token("t")
    assert catalog.drop_table("t", token=token)
    client().create_table("t", SCHEMA).append(rows(7))
    assert client().drop_table("t", token=token)
    assert ids(client(), "t") == [7]


def test_a_retried_drop_of_a_namespace_spares_the_new_one(catalog: Catalog, client: Client) -> None:
    catalog.create_namespace("n")
    token = catalog.token("n")
    assert catalog.drop_namespace("n", cascade=True, token=token)
    client().create_namespace("n")
    client().create_table("n.t", SCHEMA)
    assert client().drop_namespace("n", cascade=True, token=token)
    assert client().table_exists("n.t")


def test_a_retried_alteration_of_a_namespace_spares_the_new_one(catalog: Catalog, client: Client) -> None:
    catalog.create_namespace("n")
    token = catalog.token("n")
    catalog.alter_namespace("n", set={"k": "v"}, token=token)
    client().drop_namespace("n")
    client().create_namespace("n")
    client().alter_namespace("n", set={"k": "v"}, token=token)
    assert client().load_namespace("n") == {}


def test_a_retried_alteration_of_a_table_spares_the_new_one(catalog: Catalog, client: Client) -> None:
    change = [{"change": "set-property", "key": "k", "value": "v"}]
    catalog.create_table("t", SCHEMA)
    token = catalog.token("t")
    catalog.load_table("t").alter(change, token=token)
    client().rename_table("t", "u")
    client().create_table("t", SCHEMA)
    client().load_table("t").alter(change, token=token)
    assert dict(client().load_table("t").properties) == {}


def test_a_retried_rename_happens_once(catalog: Catalog, client: Client) -> None:
    catalog.create_table("t", SCHEMA)
    token = catalog.token("t")
    catalog.rename_table("t", "u", token=token)
    client().create_table("t", SCHEMA)
    client().rename_table("t", "u", token=token)
    assert client().list_tables() == [("t",), ("u",)]


RETRIED: dict[str, Callable[[Catalog, Token], object]] = {
    "create a namespace": lambda catalog, token: catalog.create_namespace("n.b", token=token),
    "alter a namespace": lambda catalog, token: catalog.alter_namespace("n", set={"k": "v"}, token=token),
    "rename a table": lambda catalog, token: catalog.rename_table("n.t", "n.u", token=token),
    "move a table": lambda catalog, token: catalog.rename_table("n.t", "u", token=token),
    "rename a view": lambda catalog, token: catalog.rename_view("n.v", "n.w", token=token),
    "move a view": lambda catalog, token: catalog.rename_view("n.v", "w", token=token),
    "create a view": lambda catalog, token: create_view(catalog, "n.x", token),
    "drop a table": lambda catalog, token: catalog.drop_table("n.t", token=token),
    "drop a view": lambda catalog, token: catalog.drop_view("n.v", token=token),
    "drop a cut": lambda catalog, token: catalog.drop_cut("cut", namespace="n", token=token),
}


def create_view(catalog: Catalog, name: str, token: Token | None = None) -> None:
    view = ViewDefinition(text="SELECT 1 AS id", columns=())
    engine.create_view(catalog, name, view, token=token)


@pytest.mark.parametrize("what", RETRIED)
def test_a_request_that_was_applied_has_not_failed_though_its_names_are_gone(
    catalog: Catalog, client: Client, what: str
) -> None:
    catalog.create_namespace("n")
    catalog.create_table("n.t", SCHEMA)
    create_view(catalog, "n.v")
    catalog.save_cut("cut", namespace="n")
    token = catalog.token("n.v" if "view" in what else "n.t" if "table" in what else "n")
    RETRIED[what](catalog, token)
    client().drop_namespace("n", cascade=True)
    before = client().list_tables()
    RETRIED[what](client(), token)
    assert client().list_tables() == before and client().list_namespaces() == []
    with pytest.raises(NotFound):  # another request, which was never applied
        RETRIED[what](client(), Token(commit_id=client().token().commit_id, bases=token.bases))


def test_a_drop_is_known_again_after_its_log_expired(catalog: Catalog, client: Client) -> None:
    table = catalog.create_table("t", SCHEMA)
    token = catalog.token("t")
    catalog.drop_table("t", token=token)
    expiry.expire(table.table_head.tracked.log, table.version + 1)
    assert client().drop_table("t", token=token)


@pytest.mark.parametrize("kind", ["create", "replace", "create-or-replace"])
def test_a_retried_stage_is_known_by_its_commit_and_not_by_its_name(
    catalog: Catalog, client: Client, kind: str
) -> None:
    catalog.create_namespace("n")
    if kind != "create":
        catalog.create_table("n.t", SCHEMA)
    stage = engine.stage(catalog, kind, "n.t", SCHEMA)
    files = staged_files(stage, rows(1))
    id = engine.commit_stage(catalog, stage, files).id
    client().rename_table("n.t", "n.u")
    assert engine.commit_stage(client(), stage, files).id == id
    client().create_table("n.t", SCHEMA)
    assert engine.commit_stage(client(), stage, files).id == id
    assert ids(client(), "n.t") == []
    client().drop_table("n.u")
    engine.commit_stage(client(), stage, files)
    assert client().list_tables("n") == [("n", "t")]
    client().drop_namespace("n", cascade=True)
    engine.commit_stage(client(), stage, files)
    assert client().list_namespaces() == []


def test_a_retried_stage_at_a_place_does_not_bring_its_table_back(
    catalog: Catalog, client: Client, tmp_path: Path
) -> None:
    place = str(tmp_path / "x")
    catalog.create_table("old", SCHEMA, location=place)
    catalog.drop_table("old")
    stage = engine.stage(catalog, "create", None, SCHEMA, location=place)
    engine.commit_stage(catalog, stage)
    engine.drop_table_at(catalog, place)
    other_table = engine.stage(client(), "create", None, SCHEMA, location=place)
    engine.commit_stage(client(), other_table)
    with pytest.raises((TableExists, NoSuchTable)):
        engine.commit_stage(client(), stage)
    engine.drop_table_at(client(), place)
    with pytest.raises(NoSuchTable):
        engine.commit_stage(client(), stage)
    with pytest.raises(NoSuchTable):
        client().table_at(place)


def test_a_retried_change_of_a_branch_says_that_it_happened_where_the_branch_is_gone(
    catalog: Catalog, client: Client
) -> None:
    catalog.create_table("t", SCHEMA).create_branch("b")
    table, other_table = (client().load_table("t", ref="b") for _ in range(2))
    token = catalog.token("t")
    finished_table = catalog.load_table("t", ref="b").append(rows(1), token=token)
    finished_table.drop_branch("b").append(rows(2))
    assert table.append(rows(1), token=token).to_arrow()["id"].to_pylist() == [1]
    catalog.expire("t", retain_last=1, dry_run=False)
    with pytest.raises(
        CommitUnknown, match=f"happened in version {finished_table.version} .* which has expired"
    ):
        other_table.append(rows(1), token=token)
    assert ids(client(), "t") == [2]


def test_the_files_of_one_write_are_added_once(catalog: Catalog, client: Client) -> None:
    table = catalog.create_table("t", SCHEMA)
    write = engine.begin_write(table)
    file = DataFile(path="data/x.parquet", size_bytes=1, rows=1)
    first = engine.commit_write(table, write, "append", [file])
    again = engine.commit_write(client().load_table("t"), write, "append", [file])
    assert (again.version, again.file_count) == (first.version, 1)


def test_a_token_of_a_table_that_was_never_read_knows_its_version(catalog: Catalog, client: Client) -> None:
    catalog.create_table("t", SCHEMA)
    catalog.create_namespace("t")
    fresh = client()
    fresh.list_tables()
    token = fresh.token("t")
    assert sorted(token.bases.values()) == [1, 1, 3]
    assert fresh.load_table("t").append(rows(1), token=token).row_count == 1


def test_what_the_handle_has_seen_is_no_conflict_however_old_the_token(
    catalog: Catalog, client: Client
) -> None:
    catalog.create_table("t", SCHEMA)
    other_catalog = client()
    token = other_catalog.token("t")
    catalog.load_table("t").append(rows(1))
    other_catalog.load_table("t").overwrite(rows(9), token=token)
    assert ids(catalog, "t") == [9]
    token = other_catalog.token("t")
    engine.commit_stage(catalog, engine.stage(catalog, "replace", "t", SCHEMA))
    other_catalog.load_table("t").alter([{"change": "set-property", "key": "k", "value": "v"}], token=token)
    assert catalog.load_table("t").scan(filter=col("id") == 9).to_arrow().num_rows == 0


@pytest.mark.parametrize("change", ["drop", "rename"])
def test_a_client_that_knew_the_table_before_retries_what_a_newer_one_began(
    catalog: Catalog, client: Client, change: str
) -> None:
    catalog.create_table("t", SCHEMA)
    other_catalog = client()
    other_catalog.load_table("t").set_properties({"a": "1"}).set_properties({"a": "2"})
    token = other_catalog.token("t")
    assert max(token.bases.values()) > 1
    if change == "drop":
        catalog.drop_table("t", token=token)
    else:
        catalog.rename_table("t", "u", token=token)
    assert catalog.list_tables() == client().list_tables() == ([] if change == "drop" else [("u",)])
