"""What the simulation of the catalog found, each with as few steps as show it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, CommitConflict, NoSuchTable, engine
from lakelog.catalog.core.ddl import restore
from lakelog.log import LogOptions, Unsupported

Client = Callable[[], Catalog]


def test_a_lookup_that_saw_a_drop_does_not_unlink_what_was_restored_meanwhile(
    catalog: Catalog, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create_namespace("a")
    catalog.create_table("a.t", SCHEMA).append(rows(1))
    reader = client()
    reader.load_table("a.t")
    logs = reader._logs
    refresh = logs.refresh

    def in_a_bad_order(path: Sequence[Any]) -> None:
        """The GETs of one round are answered in any order, with any time in between."""
        monkeypatch.undo()
        catalog.drop_table("a.t")
        refresh(path[2:])
        catalog.undrop_table("a.t")
        refresh(path[:2])

    monkeypatch.setattr(logs, "refresh", in_a_bad_order)
    reader.table_exists("a.t")
    assert client().load_table("a.t").to_arrow() == rows(1)
    assert client().dropped("a") == []


def test_a_name_is_still_unlinked_once_its_table_was_dropped_by_its_place(
    catalog: Catalog, client: Client
) -> None:
    table = catalog.create_table("t", SCHEMA).append(rows(1))
    engine.drop_table_at(client(), table.location)
    assert not client().table_exists("t")
    assert client().list_tables() == []
    client().undrop_table("t")
    assert client().load_table("t").to_arrow() == rows(1)


def test_the_past_is_never_shown_as_of_another_moment_than_was_asked_for(
    warehouse: str, catalog: Catalog
) -> None:
    for name in ("one", "two", "three"):
        catalog.create_table(name, SCHEMA)
    # A client whose clock is behind commits, by its time before a moment that another one is just looking at.
    late = Catalog(warehouse, log_options=LogOptions(clock_us=lambda: time.time_ns() // 1000 - 30_000_000))
    two = catalog.load_table("two").append(rows(2))
    past = Catalog(warehouse, as_of=two.committed_at)
    assert past.load_table("one").row_count == 0
    late.load_table("one").append(rows(1))
    for _ in range(2):
        with pytest.raises(CommitConflict, match="Start again"):
            past.load_table("two")
    again = Catalog(warehouse, as_of=two.committed_at)
    assert [again.load_table(name).row_count for name in ("one", "two", "three")] == [1, 1, 0]


def test_a_transaction_does_not_begin_before_what_its_own_client_has_committed(
    warehouse: str, catalog: Catalog
) -> None:
    for name in ("one", "two"):
        catalog.create_table(name, SCHEMA)
    early = Catalog(warehouse, log_options=LogOptions(clock_us=lambda: time.time_ns() // 1000 + 30_000_000))
    early.load_table("two").append(rows(2))
    tx = early.begin()
    assert tx.load_table("one").row_count == 0
    catalog.load_table("one").append(rows(1))
    # As of one moment there was never no row in the one table and one in the other: by time, this came later.
    with pytest.raises(CommitConflict, match="Start again"):
        tx.load_table("two")
    tx.rollback()
    assert [early.begin().load_table(name).row_count for name in ("one", "two")] == [1, 1]
    early.save_cut("now")
    saved_catalog = Catalog(warehouse, as_of="now")
    assert [saved_catalog.load_table(name).row_count for name in ("one", "two")] == [1, 1]


def test_a_clock_of_another_age_does_not_forget_what_its_client_has_seen(
    warehouse: str, catalog: Catalog
) -> None:
    for name in ("cause", "effect"):
        catalog.create_table(name, SCHEMA)
    early = Catalog(warehouse, log_options=LogOptions(clock_us=lambda: time.time_ns() // 1000 + 30_000_000))
    cause = early.load_table("cause").append(rows(1))
    year_us = 365 * 86_400_000_000
    lost_catalog = Catalog(
        warehouse, log_options=LogOptions(clock_us=lambda: time.time_ns() // 1000 + year_us)
    )
    assert lost_catalog.load_table("cause").row_count == 1
    assert lost_catalog.load_table("effect").append(rows(1)).committed_at > cause.committed_at


def test_what_another_client_dropped_is_restored_with_a_token_of_before(
    catalog: Catalog, client: Client
) -> None:
    catalog.create_namespace("a")
    catalog.create_table("a.t", SCHEMA).append(rows(1))
    other_catalog = client()
    other_catalog.drop_table("a.t")
    token = catalog.token("a.t")  # of what this client knows, which is the table before its drop
    assert catalog.undrop_table("a.t", token=token) == ("a", "t")
    assert other_catalog.load_table("a.t").to_arrow() == rows(1)
    assert client().undrop_table("a.t", token=token) == ("a", "t")
    other_catalog.drop_namespace("a", cascade=True)
    token = catalog.token("a")
    assert catalog.undrop_namespace("a", token=token) == ("a",)
    other_catalog.drop_namespace("a", cascade=True)
    assert client().undrop_namespace("a", token=token) == ("a",)
    assert client().list_namespaces() == []


def test_a_namespace_that_was_dropped_with_what_the_same_transaction_created_comes_back_without_it(
    catalog: Catalog, client: Client
) -> None:
    catalog.create_namespace("a")
    catalog.create_table("a.old", SCHEMA).append(rows(1))
    with catalog.transaction() as tx:
        tx.create_table("a.new", SCHEMA).append(rows(2))
        tx.create_namespace("a.below")
        tx.create_table("a.below.new", SCHEMA)
        tx.drop_namespace("a", cascade=True)
    client().undrop_namespace("a")
    again = client()
    assert again.list_tables("a") == [("a", "old")]
    assert again.list_namespaces("a") == []
    assert again.load_table("a.old").to_arrow() == rows(1)
    again.create_table("a.new", SCHEMA)


def test_a_transaction_refuses_at_once_to_drop_what_it_has_restored(catalog: Catalog, client: Client) -> None:
    catalog.create_table("t", SCHEMA)
    catalog.drop_table("t")
    with catalog.transaction() as tx:
        tx.undrop_table("t")
        with pytest.raises(Unsupported, match="restored in the same transaction"):
            tx.drop_table("t")
    assert client().list_tables() == [("t",)]


def test_what_was_dropped_and_restored_by_others_is_dropped_by_a_client_that_knew_it_before(
    catalog: Catalog, client: Client
) -> None:
    catalog.create_namespace("a")
    catalog.create_table("a.t", SCHEMA).append(rows(1))
    for with_token in (False, True):
        for name, kind in (("a.t", "table"), ("a", "namespace")):
            stale = client()
            stale.load_table("a.t")
            other_catalog = client()
            getattr(other_catalog, f"drop_{kind}")(name, **({"cascade": True} if kind == "namespace" else {}))
            getattr(other_catalog, f"undrop_{kind}")(name)
            token = stale.token(name) if with_token else None
            cascade = {"cascade": True} if kind == "namespace" else {}
            assert getattr(stale, f"drop_{kind}")(name, token=token, **cascade)
            assert not client().table_exists("a.t")
            getattr(other_catalog, f"undrop_{kind}")(name)
            if with_token:
                assert getattr(client(), f"drop_{kind}")(name, token=token, **cascade)
            assert client().table_exists("a.t"), "a retry does not drop it twice"
    catalog.drop_table("a.t")
    stale = client()
    stale.load_namespace("a")
    other_catalog = client()
    other_catalog.drop_namespace("a")
    other_catalog.undrop_namespace("a")
    assert stale.drop_namespace("a", token=stale.token("a"))


def test_a_cascade_seals_what_is_restored_while_its_contents_are_collected(
    catalog: Catalog, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", SCHEMA).append(rows(1))
    slow = client()
    slow.load_table("a.t")
    read = slow._logs.table(slow._logs.location(table.location))
    refresh, anew = slow._logs.refresh, read.anew

    def after_a_drop(logs: Sequence[Any]) -> None:
        if list(logs) == [read]:
            catalog.drop_table("a.t")
        refresh(logs)

    def before_its_undrop() -> Any:
        view = anew()
        monkeypatch.undo()
        catalog.undrop_table("a.t")
        return view

    monkeypatch.setattr(slow._logs, "refresh", after_a_drop)
    monkeypatch.setattr(read, "anew", before_its_undrop)
    assert slow.drop_namespace("a", cascade=True)
    with pytest.raises(NoSuchTable):
        table.append(rows(2))
    client().undrop_namespace("a")
    assert client().load_table("a.t").to_arrow() == rows(1)


@pytest.mark.parametrize("change", ["drop", "rename", "move"])
def test_a_name_is_always_found_though_its_table_is_replaced_meanwhile(
    change: str, catalog: Catalog, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create_namespace("a")
    for number, name in enumerate(("t", "u")):
        catalog.create_table(name, SCHEMA).append(rows(number))
    slow = client()
    walk = slow._tree._walk

    def then_they_are_swapped(namespace: Any, fresh: Any) -> Any:
        columns = walk(namespace, fresh)
        monkeypatch.undo()
        with catalog.transaction() as tx:
            tx.rename_table("t", "other")
            tx.rename_table("u", "t")
            tx.rename_table("other", "u")
        return columns

    monkeypatch.setattr(slow._tree, "_walk", then_they_are_swapped)
    if change == "drop":
        assert slow.drop_table("t"), "there was a table of that name all the time"
    else:
        slow.rename_table("t", "a.new" if change == "move" else "new")
    assert not client().table_exists("t")
    assert client().load_table("u").to_arrow() == rows(0)


@pytest.mark.parametrize("after", ["_dropped", "_linking", "transaction"])
def test_what_another_client_restores_under_another_name_meanwhile_is_a_conflict_and_no_forgery(
    after: str, catalog: Catalog, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create_table("t", SCHEMA).append(rows(1))
    catalog.drop_table("t")
    slow = client()

    def other() -> None:
        monkeypatch.undo()
        catalog.undrop_table("t", to="u")

    with pytest.raises(CommitConflict, match="restored or purged by another client meanwhile"):
        if after == "transaction":
            with slow.transaction() as tx:
                tx.undrop_table("t")
                other()
        else:
            step = getattr(restore, after)

            def then_it_is_restored(*given: Any) -> Any:
                finished_step = step(*given)
                other()
                return finished_step

            monkeypatch.setattr(restore, after, then_it_is_restored)
            slow.undrop_table("t")
    assert client().list_tables() == [("u",)]
