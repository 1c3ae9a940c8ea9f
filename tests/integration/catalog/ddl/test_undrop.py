"""Drops as transactions, and undoing them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, NamespaceExists, NoSuchNamespace, NoSuchTable, TableExists, engine
from lakelog.catalog.core.ddl import drop
from lakelog.log import ConflictError, Draft, NotFound

Client = Callable[[], Catalog]


def test_a_dropped_table_comes_back_with_its_rows_its_history_and_its_id(
    catalog: Catalog, client: Client
) -> None:
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", SCHEMA, properties={"k": "v"}).append(rows(1, 2))
    catalog.drop_table("a.t")
    assert client().undrop_table("a.t") == ("a", "t")
    restored_table = catalog.load_table("a.t")
    assert restored_table.id == table.id
    assert restored_table.to_arrow() == rows(1, 2)
    assert restored_table.properties == {"k": "v"}
    assert [entry.operation for entry in restored_table.history()] == ["restore", "drop", "append", "create"]
    assert restored_table.append(rows(3)).row_count == 3
    with pytest.raises(NotFound, match="nothing that can be restored"):
        client().undrop_table("a.t")


def test_a_taken_name_is_refused_and_another_one_is_possible(catalog: Catalog, client: Client) -> None:
    catalog.create_namespace("a")
    catalog.create_namespace("b")
    catalog.create_table("a.t", SCHEMA).append(rows(1))
    catalog.drop_table("a.t")
    catalog.create_table("a.t", SCHEMA).append(rows(2))
    with pytest.raises(TableExists):
        catalog.undrop_table("a.t")
    assert client().undrop_table("a.t", to="b.old") == ("b", "old")
    assert client().load_table("b.old").to_arrow() == rows(1)
    assert client().load_table("a.t").to_arrow() == rows(2)
    with pytest.raises(NotFound, match="was dropped and can be restored"):
        catalog.undrop_table("a.t", to="b.older")


def test_of_several_of_one_name_the_last_comes_back_unless_an_id_says_which(
    catalog: Catalog, client: Client
) -> None:
    ids = []
    for number in range(3):
        ids.append(catalog.create_table("t", SCHEMA).append(rows(number)).id)
        catalog.drop_table("t")
    client().undrop_table("t", id=ids[0])
    assert client().load_table("t").to_arrow() == rows(0)
    client().undrop_table("t", to="last")
    assert client().load_table("last").to_arrow() == rows(2)
    with pytest.raises(NotFound, match="its namespace has `t`"):
        client().undrop_table("x")


def test_a_writer_that_held_the_table_before_the_drop_is_refused_after_it_is_restored(
    catalog: Catalog, client: Client
) -> None:
    catalog.create_table("t", SCHEMA)
    held_table = client().load_table("t")
    write = engine.begin_write(held_table)
    catalog.drop_table("t")
    catalog.undrop_table("t")
    with pytest.raises(ConflictError, match="dropped at version 2 and restored since"):
        engine.commit_write(held_table, write, "append", ())
    assert client().load_table("t").append(rows(1)).row_count == 1


def test_a_dropped_namespace_comes_back_with_what_was_dropped_with_it(
    catalog: Catalog, client: Client
) -> None:
    for name in ("a", "a.b", "a.b.c"):
        catalog.create_namespace(name, {"named": name})
    catalog.create_table("a.t", SCHEMA).append(rows(1))
    catalog.create_table("a.b.c.deep", SCHEMA).append(rows(2))
    catalog.create_table("a.gone", SCHEMA)
    catalog.drop_table("a.gone")
    held_table = client().load_table("a.b.c.deep")
    assert catalog.drop_namespace("a", cascade=True)
    with pytest.raises(NoSuchTable):
        held_table.append(rows(9))
    assert client().list_namespaces() == []
    catalog.create_namespace("a")
    with pytest.raises(NamespaceExists):
        catalog.undrop_namespace("a")
    assert client().undrop_namespace("a", to="z") == ("z",)
    other_catalog = client()
    assert other_catalog.list_tables("z") == [("z", "t")]
    assert other_catalog.load_table("z.b.c.deep").to_arrow() == rows(2)
    assert other_catalog.load_namespace("z.b") == {"named": "a.b"}
    assert other_catalog.load_table("z.b.c.deep").append(rows(3)).row_count == 2
    assert other_catalog.undrop_table("z.gone") == ("z", "gone")
    with pytest.raises(NotFound):
        other_catalog.undrop_namespace("a")


def test_a_table_at_its_own_place_comes_back_unless_another_one_is_there(
    catalog: Catalog, client: Client, tmp_path: Path
) -> None:
    place = f"{tmp_path}/place"
    catalog.create_table("t", SCHEMA, location=place).append(rows(1))
    catalog.drop_table("t")
    catalog.undrop_table("t")
    assert client().load_table("t").to_arrow() == rows(1)
    catalog.drop_table("t")
    catalog.create_table("u", SCHEMA, location=place)
    with pytest.raises(NotFound, match="another table"):
        client().undrop_table("t")


def test_a_drop_beside_a_drop_and_an_undrop_seals_the_table(
    catalog: Catalog, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is read before another client drops the table, and the table before it is restored."""
    catalog.create_table("t", SCHEMA).append(rows(1))
    other_catalog, real, between = client(), drop._head, iter(("drop", "go on"))

    def head(*arguments: Any) -> Any:
        if next(between, None) != "drop":
            return real(*arguments)
        other_catalog.drop_table("t")
        view = real(*arguments)
        other_catalog.undrop_table("t")
        return view

    monkeypatch.setattr(drop, "_head", head)
    assert client().drop_table("t")
    monkeypatch.undo()
    assert not client().table_exists("t")
    client().undrop_table("t")
    assert client().load_table("t").to_arrow() == rows(1)


def test_a_table_dropped_by_its_place_can_be_restored_by_its_name(catalog: Catalog, client: Client) -> None:
    table = catalog.create_table("t", SCHEMA).append(rows(1))
    assert engine.drop_table_at(client(), table.location)
    assert not client().table_exists("t")
    catalog.undrop_table("t")
    assert client().load_table("t").to_arrow() == rows(1)


def test_what_was_purged_cannot_be_restored(catalog: Catalog, client: Client) -> None:
    table = catalog.create_table("t", SCHEMA)
    catalog.drop_table("t")
    tracked_log = table.table_head.tracked
    tracked_log.commit(tracked_log.current(), lambda _view, _passed: Draft(purges=True))
    with pytest.raises(NotFound, match="purged"):
        client().undrop_table("t")
    assert not client().table_exists("t")


def test_a_drop_without_cascade_leaves_what_was_linked_meanwhile(catalog: Catalog, client: Client) -> None:
    catalog.create_namespace("a")
    slow = client()
    slow.list_tables("a")
    catalog.create_table("a.t", SCHEMA)
    with pytest.raises(Exception, match="not empty"):
        slow.drop_namespace("a")
    assert client().list_tables("a") == [("a", "t")]


def test_a_cascading_drop_takes_what_was_linked_meanwhile(
    catalog: Catalog, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakelog.catalog.core.ddl import drop

    catalog.create_namespace("a")
    catalog.create_table("a.t", SCHEMA)
    collect, late = drop._below, client()

    def collect_then_grow(*arguments: object) -> object:
        changes = collect(*arguments)  # type: ignore[arg-type]
        if not late.table_exists("a.u"):
            late.create_table("a.u", SCHEMA)
        return changes

    monkeypatch.setattr(drop, "_below", collect_then_grow)
    held_table = late.load_table("a.t")
    assert catalog.drop_namespace("a", cascade=True)
    assert client().list_namespaces() == []
    with pytest.raises(NoSuchTable):
        held_table.append(rows(1))
    with pytest.raises((NoSuchNamespace, NoSuchTable, ConflictError)):
        late.load_table("a.u").append(rows(1))


def test_a_table_that_was_restored_since_it_was_read_can_be_dropped_again(
    catalog: Catalog, client: Client
) -> None:
    other_catalog = client()
    catalog.create_table("t", SCHEMA)
    other_catalog.load_table("t")
    catalog.drop_table("t")
    catalog.undrop_table("t")
    assert other_catalog.drop_table("t")
    assert not catalog.table_exists("t")


def test_a_restored_namespace_has_no_name_for_a_place_that_is_another_tables_by_now(
    catalog: Catalog, client: Client, tmp_path: Path
) -> None:
    place = f"{tmp_path}/place"
    catalog.create_namespace("n")
    catalog.create_table("n.t", SCHEMA, location=place)
    catalog.create_table("n.u", SCHEMA)
    catalog.drop_namespace("n", cascade=True)
    catalog.create_table("z", SCHEMA, location=place)
    catalog.undrop_namespace("n")
    assert client().list_tables("n") == [("n", "u")]
    assert client().table_exists("z")
