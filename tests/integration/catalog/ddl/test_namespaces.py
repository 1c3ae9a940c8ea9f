"""Namespaces through the Python client, always looked at by a second client too."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.catalog.conftest import SCHEMA

from lakelog.catalog import Catalog, NamespaceExists, NamespaceNotEmpty, NoSuchNamespace, NoSuchTable, engine
from lakelog.catalog.core.logs.places import likely_id, place_in
from lakelog.catalog.core.state import NAMESPACE
from lakelog.log import InvalidInput, open_store, wait_for_background
from lakelog.log.keys import LogKeys

Client = Callable[[], Catalog]


def test_an_empty_warehouse_shows_an_empty_catalog(catalog: Catalog) -> None:
    assert catalog.list_namespaces() == []
    assert catalog.list_tables() == []
    assert catalog.load_namespace(()) == {}
    assert not catalog.namespace_exists("a")


def test_namespaces_nest_to_any_depth_and_other_clients_see_them(catalog: Catalog, client: Client) -> None:
    catalog.create_namespace("a", {"owner": "ada"})
    catalog.create_namespace("a.b")
    catalog.create_namespace(("a", "b", "with.dots and spaces/é"))
    other_catalog = client()
    assert other_catalog.list_namespaces() == [("a",)]
    assert other_catalog.list_namespaces("a") == [("a", "b")]
    assert other_catalog.list_namespaces("a.b") == [("a", "b", "with.dots and spaces/é")]
    assert other_catalog.load_namespace("a") == {"owner": "ada"}
    assert other_catalog.namespace_exists("a.b.`with.dots and spaces/é`")


def test_creating_what_exists_fails_unless_it_may_exist(catalog: Catalog) -> None:
    catalog.create_namespace("a")
    with pytest.raises(NamespaceExists):
        catalog.create_namespace("a")
    catalog.create_namespace("a", if_not_exists=True)


def test_a_namespace_needs_its_parent(catalog: Catalog) -> None:
    with pytest.raises(NoSuchNamespace, match="`a`"):
        catalog.create_namespace("a.b")
    with pytest.raises(NoSuchNamespace):
        catalog.list_namespaces("a")
    with pytest.raises(NoSuchNamespace):
        catalog.list_tables("a")
    with pytest.raises(NoSuchNamespace):
        catalog.load_namespace("a")


def test_a_change_of_no_property_is_no_commit(catalog: Catalog) -> None:
    catalog.create_namespace("a")
    catalog.alter_namespace("a", set={}, remove=[])
    assert len(list(catalog.history("a"))) == 1
    with pytest.raises(NoSuchNamespace):
        catalog.alter_namespace("b")


def test_properties_are_set_and_removed_in_one_commit(catalog: Catalog, client: Client) -> None:
    catalog.create_namespace("a", {"x": "1", "y": "2"})
    catalog.alter_namespace("a", set={"z": "3"}, remove=["x"])
    assert client().load_namespace("a") == {"y": "2", "z": "3"}
    assert [entry.operation for entry in catalog.history("a")] == ["set properties", "create namespace"]


def test_a_namespace_that_holds_something_is_not_dropped_without_cascade(
    catalog: Catalog, client: Client
) -> None:
    catalog.create_namespace("a")
    catalog.create_namespace("a.b")
    catalog.create_table("a.b.t", SCHEMA)
    held_table = catalog.load_table("a.b.t")
    with pytest.raises(NamespaceNotEmpty, match="`b`"):
        catalog.drop_namespace("a")
    with pytest.raises(NamespaceNotEmpty, match="`t`"):
        client().drop_namespace("a.b")
    assert catalog.drop_namespace("a", cascade=True)
    assert not client().namespace_exists("a")
    with pytest.raises(NoSuchTable):
        held_table.refresh()


def test_dropping_what_is_not_there_says_so(catalog: Catalog) -> None:
    assert not catalog.drop_namespace("a", missing_ok=True)
    catalog.create_namespace("a")
    assert catalog.drop_namespace("a")
    assert not catalog.drop_namespace("a", missing_ok=True)


def test_a_dropped_namespace_can_be_made_again_and_is_empty(catalog: Catalog, client: Client) -> None:
    other_catalog = client()
    catalog.create_namespace("a")
    catalog.create_table("a.t", SCHEMA)
    assert other_catalog.table_exists("a.t")
    catalog.drop_namespace("a", cascade=True)
    catalog.create_namespace("a")
    assert other_catalog.list_tables("a") == []
    assert not other_catalog.table_exists("a.t")


def test_a_holder_of_a_dropped_namespace_cannot_link_into_it(catalog: Catalog, client: Client) -> None:
    catalog.create_namespace("a")
    other_catalog = client()
    stage = engine.stage(other_catalog, "create", "a.t", SCHEMA)
    catalog.drop_namespace("a")
    with pytest.raises(NoSuchNamespace):
        engine.commit_stage(other_catalog, stage)
    assert catalog.list_namespaces() == []


@pytest.mark.parametrize("name", ["", "tab\there", "nul\0", "x" * 256])
def test_names_that_cannot_be_are_refused_by_name(catalog: Catalog, name: str) -> None:
    with pytest.raises(InvalidInput, match="name of"):
        catalog.create_namespace((name,))
    with pytest.raises(InvalidInput, match="name of"):
        catalog.create_table((name,), SCHEMA)
    assert catalog.list_namespaces() == []


def test_a_reserved_property_is_refused_rather_than_ignored(catalog: Catalog) -> None:
    with pytest.raises(InvalidInput, match=r"lakelog\.nonsense"):
        catalog.create_namespace("a", {"lakelog.nonsense": "1"})
    with pytest.raises(InvalidInput, match="root"):
        catalog.drop_namespace(())


def test_the_same_token_makes_a_request_happen_once(catalog: Catalog, client: Client) -> None:
    token = catalog.token("a")
    catalog.create_namespace("a", token=token)
    client().create_namespace("a", token=token)
    token = catalog.token("a")
    catalog.drop_namespace("a", token=token)
    assert client().drop_namespace("a", token=token)
    catalog.create_namespace("a")
    with pytest.raises(NamespaceExists):
        client().create_namespace("a", token=catalog.token("a"))


def place_of(catalog: Catalog, *path: str) -> str:
    parent = catalog._tree.namespace(path[:-1])
    entry = parent.view.state.entry(NAMESPACE, path[-1])
    assert entry is not None
    return entry.location


@pytest.mark.parametrize("there", [b"", b"what was damaged", b'{"format":99}'])
def test_what_is_at_the_likely_place_of_a_name_keeps_no_one_from_creating_it(
    catalog: Catalog, client: Client, warehouse: str, there: bytes
) -> None:
    catalog.create_namespace("other")
    likely = place_in("", likely_id(warehouse, "a"))
    open_store(warehouse).put(LogKeys(likely).commit(1), there)
    catalog.create_namespace("a", {"owner": "ada"})
    assert client().load_namespace("a") == {"owner": "ada"}
    assert place_of(catalog, "a") != likely
    assert open_store(warehouse).get(LogKeys(likely).commit(1)) == there


def test_namespaces_of_warehouses_that_have_had_the_same_place_have_places_of_their_own(
    tmp_path: Path,
) -> None:
    """Folders of several machines may have one path; and a location outlives the warehouse whose tables are there."""
    location = f"memory://{uuid.uuid4().hex}"
    url = f"memory://{uuid.uuid4().hex}"
    folders, located = set(), set()
    for _ in range(2):
        folder = Catalog(str(tmp_path / "w"), options={"fsync": "off"})
        folder.create_namespace("a")
        folders.add(place_of(folder, "a"))
        wait_for_background()
        shutil.rmtree(tmp_path / "w")
        catalog = Catalog(url)
        catalog.create_namespace("a", {"location": location})
        located.add(place_of(catalog, "a"))
        wait_for_background()
        store = open_store(url)
        store.delete(list(store.list_after("")))
    assert len(folders) == len(located) == 2


def test_what_is_made_in_a_copy_has_another_place_than_what_is_made_in_its_source(
    catalog: Catalog, warehouse: str
) -> None:
    catalog.create_namespace("a")
    catalog.copy(f"{warehouse}-copy")
    copy = Catalog(f"{warehouse}-copy")
    for each_catalog in (catalog, copy):
        each_catalog.create_namespace("a.b")
    assert place_of(catalog, "a") == place_of(copy, "a") == place_in("", likely_id(warehouse, "a"))
    assert place_of(catalog, "a", "b") != place_of(copy, "a", "b")
