"""Vacuum purges tables that were dropped long ago. After a first commit they cannot be restored."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from tests.integration.catalog.clock import Clock
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, NoSuchTable, Table
from lakelog.catalog.core.state import NameLink
from lakelog.catalog.keeping.maintenance import purge
from lakelog.log import ConflictError, NotFound, ObjectStore, open_store

DAY = dt.timedelta(days=1)
NOW = dt.timedelta(0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock().govern(monkeypatch)


@pytest.fixture
def client(warehouse: str, clock: Clock) -> Callable[[], Catalog]:
    return lambda: clock.client(warehouse)


@pytest.fixture
def store(warehouse: str) -> ObjectStore:
    return open_store(warehouse)


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow().column("id").to_pylist())


def by_kind(answers: list[Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for answer in answers:
        found.setdefault(answer.kind, []).append(answer.name)
    return found


def test_a_table_that_was_dropped_long_ago_is_purged_and_one_of_yesterday_is_not(
    catalog: Catalog, clock: Clock, store: ObjectStore
) -> None:
    old = catalog.create_table("old", SCHEMA).append(rows(1)).append(rows(2))
    new = catalog.create_table("new", SCHEMA).append(rows(3))
    catalog.drop_table("old")
    clock.days_later(7)
    catalog.drop_table("new")
    clock.days_later(1)
    planned_report = catalog.vacuum()
    assert by_kind(planned_report)["dropped-table"] == ["`old`"]
    assert store.get(f"{old.table_head.tracked.prefix}/{old.plan()['path'][0]}") is not None
    report = catalog.vacuum(dry_run=False)
    assert [(a.kind, a.files, a.size_bytes) for a in report] == [
        (a.kind, a.files, a.size_bytes) for a in planned_report
    ]
    assert report[0].files == 2
    place = old.table_head.tracked.prefix
    assert not [key for key in store.list_after(f"{place}/data/")]
    assert not [key for key in store.list_after(f"{place}/_log/manifests/")]
    with pytest.raises(NotFound, match="can be restored"):
        catalog.undrop_table("old")
    catalog.undrop_table("new")
    assert ids(catalog.load_table("new")) == [3] and new.file_count == 1
    assert "dropped-table" not in by_kind(catalog.vacuum())


def test_what_is_left_of_a_purged_table_says_so_and_keeps_late_writers_out(
    client: Callable[[], Catalog], clock: Clock, store: ObjectStore
) -> None:
    catalog, late = client(), client()
    catalog.create_table("t", SCHEMA).append(rows(1))
    held_table = late.load_table("t")
    place = held_table.table_head.tracked.prefix
    catalog.drop_table("t")
    clock.days_later(8)
    catalog.vacuum(dry_run=False)
    with pytest.raises((NoSuchTable, ConflictError), match="dropped|has expired since"):
        held_table.append(rows(2))
    with pytest.raises(NoSuchTable, match="dropped"):
        held_table.refresh()
    with pytest.raises(NoSuchTable, match="dropped"):
        client().table_at(held_table.location)
    view = client()._logs.table(held_table.table_head.tracked.location).current()
    assert view.purged and view.state.files.file_count == 0
    kinds = [data.split(b'"kind":"', 1)[1].split(b'"', 1)[0] for key in store.list_after(f"{place}/_log/0")
             if (data := store.get(key)) and key.removeprefix(f"{place}/_log/")[0] == "0"]  # fmt: skip
    assert kinds == [b"tombstone"] * 4
    assert ids(catalog.create_table("t", SCHEMA).append(rows(7))) == [7]


def test_a_restore_and_a_purge_exclude_each_other(client: Callable[[], Catalog], clock: Clock) -> None:
    catalog, other_catalog = client(), client()
    catalog.create_table("t", SCHEMA).append(rows(1))
    catalog.drop_table("t")
    clock.days_later(8)
    namespace = catalog._tree.namespace(())
    [(kind, name, entry)] = purge.due(namespace.view.state, clock.now_us).values()
    planned = purge.plan_purge(catalog._tree, kind, name, entry, link=NameLink(namespace="", name="t"))
    assert planned is not None
    other_catalog.undrop_table("t")
    assert not purge.do(catalog._tree, planned)
    assert ids(catalog.load_table("t")) == [1]
    catalog.drop_table("t")
    planned = purge.plan_purge(catalog._tree, kind, name, entry, link=NameLink(namespace="", name="t"))
    assert planned is not None and purge.do(catalog._tree, planned)
    # The namespace still lists it, as after a crash: the log itself says that it is over.
    with pytest.raises(NotFound, match="purged"):
        other_catalog.undrop_table("t")
    clock.days_later(8)
    assert by_kind(catalog.vacuum(dry_run=False))["dropped-table"] == ["`t`"]
    assert not catalog._tree.namespace(()).view.state.dropped


def test_a_table_that_was_restored_is_kept_whatever_its_first_drop(catalog: Catalog, clock: Clock) -> None:
    catalog.create_table("t", SCHEMA).append(rows(1))
    catalog.drop_table("t")
    catalog.undrop_table("t")
    clock.days_later(30)
    catalog.vacuum(dry_run=False)
    assert ids(catalog.load_table("t")) == [1]
    catalog.drop_table("t")
    catalog.vacuum(dry_run=False)
    catalog.undrop_table("t", to="u")
    assert ids(catalog.load_table("u")) == [1]


def test_a_namespace_is_purged_with_all_that_was_in_it_but_not_with_what_moved_away(
    client: Callable[[], Catalog], clock: Clock, store: ObjectStore
) -> None:
    catalog = client()
    for namespace in ("a", "a.b", "keep"):
        catalog.create_namespace(namespace)
    inside = [catalog.create_table(name, SCHEMA).append(rows(1)) for name in ("a.t", "a.b.u", "a.gone")]
    moved_table = catalog.create_table("a.moved", SCHEMA).append(rows(5))
    came = catalog.create_table("keep.came", SCHEMA).append(rows(6))
    catalog.rename_table("a.moved", "keep.moved")
    catalog.rename_table("keep.came", "a.came")
    catalog.drop_table("a.gone")
    catalog.drop_namespace("a", cascade=True)
    clock.days_later(8)
    purged_kind = by_kind(catalog.vacuum(dry_run=False))
    assert sorted(purged_kind["dropped-table"]) == ["`a`.`b`.`u`", "`a`.`came`", "`a`.`gone`", "`a`.`t`"]
    assert sorted(purged_kind["dropped-namespace"]) == ["`a`", "`a`.`b`"]
    for table in (*inside, came):
        assert not list(store.list_after(f"{table.table_head.tracked.prefix}/data/"))
    assert ids(client().load_table("keep.moved")) == [5] and moved_table.table_head.tracked.prefix.startswith(
        "n-"
    )
    with pytest.raises(NotFound):
        catalog.undrop_namespace("a")
    assert set(by_kind(catalog.vacuum())) == {"namespace", "table"}
    catalog.create_namespace("a")
    assert catalog.list_tables("a") == []


def test_a_table_at_a_place_that_the_user_chose_keeps_everything(
    catalog: Catalog, clock: Clock, warehouse: str, store: ObjectStore
) -> None:
    place = f"{warehouse}/mine"
    catalog.create_table("t", SCHEMA, location=place).append(rows(1))
    catalog.drop_table("t")
    sizes_before = dict(store.list_sizes("mine/"))
    clock.days_later(8)
    [answer] = [answer for answer in catalog.vacuum(dry_run=False) if answer.kind == "dropped-table"]
    assert (answer.files, answer.objects) == (0, 0)
    assert dict(store.list_sizes("mine/")) == sizes_before
    with pytest.raises(NotFound):
        catalog.undrop_table("t")
    assert ids(catalog.create_table("u", SCHEMA, location=place).append(rows(2))) == [2]


def test_a_table_whose_objects_were_removed_by_hand_is_taken_off_the_list(
    client: Callable[[], Catalog], clock: Clock, store: ObjectStore
) -> None:
    catalog = client()
    table = catalog.create_table("t", SCHEMA)
    catalog.drop_table("t")
    store.delete(list(store.list_after(f"{table.table_head.tracked.prefix}/")))
    clock.days_later(8)
    fresh = client()
    assert by_kind(fresh.vacuum(dry_run=False))["dropped-table"] == ["`t`"]
    assert not fresh._tree.namespace(()).view.state.dropped


def test_what_a_saved_cut_has_is_not_purged(catalog: Catalog, clock: Clock, warehouse: str) -> None:
    catalog.create_namespace("a")
    catalog.create_table("a.t", SCHEMA).append(rows(1))
    catalog.save_cut("before")
    catalog.drop_namespace("a", cascade=True)
    clock.days_later(8)
    answers = [answer for answer in catalog.vacuum(dry_run=False) if answer.kind.startswith("dropped")]
    assert [(answer.kept_for_cuts, answer.files) for answer in answers] == [(True, 0)] * 2
    assert ids(Catalog(warehouse, as_of="before").load_table("a.t")) == [1]
    catalog.drop_cut("before")
    assert len(by_kind(catalog.vacuum(dry_run=False))["dropped-table"]) == 1


def test_the_age_of_what_is_purged_can_be_chosen(catalog: Catalog, clock: Clock) -> None:
    catalog.create_table("t", SCHEMA)
    catalog.drop_table("t")
    clock.days_later(2)
    assert "dropped-table" not in by_kind(catalog.vacuum(dropped_older_than=3 * DAY))
    assert "dropped-table" in by_kind(catalog.vacuum(dropped_older_than=DAY))
    assert "dropped-table" in by_kind(catalog.vacuum(namespace=(), dropped_older_than=NOW))


def test_foreign_files_of_a_purged_table_stay(catalog: Catalog, clock: Clock, store: ObjectStore) -> None:
    table = catalog.create_table("t", SCHEMA).append(rows(1))
    foreign = f"{table.table_head.tracked.prefix}/data/notes.txt"
    store.put(foreign, b"mine")
    catalog.drop_table("t")
    clock.days_later(8)
    [answer] = [answer for answer in catalog.vacuum(dry_run=False) if answer.kind == "dropped-table"]
    assert (answer.files, answer.foreign) == (1, 1) and store.get(foreign) == b"mine"


def test_what_was_restored_moved_and_dropped_again_since_the_plan_is_not_purged_by_it(
    catalog: Catalog, client: Callable[[], Catalog], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan of a dropped namespace has a table in it which stands in another namespace by now."""
    catalog.create_namespace("n")
    catalog.create_namespace("m")
    catalog.create_table("n.t", SCHEMA).append(rows(1, 2))
    catalog.drop_namespace("n", cascade=True)
    clock.days_later(8)
    other_catalog, do, late = client(), purge.do, [True]

    def restore_first(*arguments: Any, **named: Any) -> bool:
        while late:
            late.pop()
            other_catalog.undrop_namespace("n")
            other_catalog.rename_table("n.t", "m.t")
            other_catalog.drop_namespace("n")
        return do(*arguments, **named)

    monkeypatch.setattr(purge, "do", restore_first)
    catalog.vacuum(dry_run=False)
    assert ids(client().load_table("m.t")) == [1, 2]
    assert client().undrop_namespace("n") == ("n",)
