"""Creations that were stopped or are under way: what they have of forgotten rows goes or is named, nothing else."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from typing import Any

import pytest
from tests.integration.catalog.erasure.test_copies import (
    ADA,
    ids,
    left_in,
    people,
)
from tests.integration.catalog.erasure.test_forgetting import client
from tests.integration.catalog.erasure.test_what_stays import catalog, warehouse
from tests.integration.catalog.maintenance.test_vacuum_crashes import Death

from lakelog.catalog import Catalog
from lakelog.catalog.core.ddl import staging
from lakelog.catalog.core.logs import TrackedLog
from lakelog.catalog.keeping.clones import cloning
from lakelog.catalog.keeping.erasure import looking
from lakelog.catalog.keeping.maintenance import promises, purge
from lakelog.log.errors import LakelogError

__all__ = ["catalog", "warehouse"]

WHERE = f"email = '{ADA}'"


def stopped(warehouse: str, monkeypatch: pytest.MonkeyPatch, source: str, name: str) -> None:
    """A clone dies once it has its first commit, before its source has promised anything."""

    def dying(*given: Any) -> None:
        raise Death

    with monkeypatch.context() as patch, pytest.raises(Death):
        patch.setattr(cloning, "promise_all", dying)
        client(warehouse).clone(source, name)


def is_whole(catalog: Catalog) -> bool:
    return not [
        finding for finding in client(catalog.warehouse).fsck().found if finding.severity.name != "NOTE"
    ]


@pytest.mark.parametrize("name", ["a.c", "b.c"])
def test_a_clone_that_was_stopped_before_the_promise_is_purged(
    name: str, catalog: Catalog, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create_namespace("b")
    people(catalog)
    stopped(warehouse, monkeypatch, "a.t", name)
    assert "unfinished-clone" in {each.kind for each in catalog.forget("a.t", WHERE).lost}
    assert catalog.forget("a.t", WHERE, dry_run=False).left == ()
    assert left_in(warehouse) == set() and ids(catalog) == [2, 3] and is_whole(catalog)


def test_a_clone_that_was_refused_is_purged(catalog: Catalog, warehouse: str) -> None:
    people(catalog)
    catalog.clone("a.t", "a.c")
    catalog.drop_table("a.t")
    with pytest.raises(LakelogError, match="was dropped"):
        catalog.clone("a.c", "a.d")
    people(catalog)
    assert catalog.forget("a.t", WHERE, dry_run=False).left == ()
    assert left_in(warehouse) == set() and ids(catalog, "a.c") == [2, 3] and is_whole(catalog)


def test_a_clone_whose_name_was_taken_is_purged(
    catalog: Catalog, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    people(catalog)
    link = staging._link

    def late(*given: Any) -> Any:
        monkeypatch.setattr(staging, "_link", link)
        people(client(warehouse), "a.c")
        return link(*given)

    monkeypatch.setattr(staging, "_link", late)
    with pytest.raises(LakelogError, match="already"):
        client(warehouse).clone("a.t", "a.c")
    client(warehouse).drop_table("a.c", purge=True)
    assert catalog.forget("a.t", WHERE, dry_run=False).left == ()
    assert left_in(warehouse) == set() and is_whole(catalog)


def test_a_clone_that_begins_while_rows_are_erased_is_purged(
    catalog: Catalog, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    people(catalog)
    source = client(warehouse).load_table("a.t")
    look = looking.ErasureSearch.look

    def late(self: Any, **how: Any) -> None:
        look(self, **how)
        with monkeypatch.context() as patch, pytest.raises(Death):
            patch.setattr(cloning, "promise_all", lambda *given: (_ for _ in ()).throw(Death()))
            cloning.clone_table(client(warehouse)._tree, source.table_head, ("a", "c"), None)

    monkeypatch.setattr(looking.ErasureSearch, "look", late)
    assert catalog.forget("a.t", WHERE, dry_run=False).left == ()
    assert left_in(warehouse) == set() and is_whole(catalog)


@pytest.mark.parametrize("drops", [False, True])
def test_a_clone_that_moves_while_it_is_looked_at_stays(
    drops: bool, catalog: Catalog, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create_namespace("b")
    people(catalog)
    clone = catalog.clone("a.t", "a.c")
    at_its_place = TrackedLog.at_its_place

    def late(self: TrackedLog[Any]) -> Any:
        view = at_its_place(self)
        if self.location == clone.table_head.tracked.location and not moved_flags:
            moved_flags.append(True)
            client(warehouse).rename_table("a.c", "b.c")
            if drops:
                client(warehouse).drop_table("b.c")
        return view

    moved_flags: list[bool] = []
    with monkeypatch.context() as patch:
        patch.setattr(TrackedLog, "at_its_place", late)
        with suppress(LakelogError):
            catalog.forget("a.t", WHERE, dry_run=False)
    assert moved_flags
    catalog = client(warehouse)
    assert catalog.forget("a.t", WHERE, dry_run=False).left == ()
    assert left_in(warehouse) == set()
    if not drops:
        assert ids(catalog, "b.c") == [2, 3]
    assert is_whole(catalog)


@pytest.mark.parametrize("condition", [WHERE, "email = 'none'"])
def test_a_clone_of_what_is_left_that_another_user_is_making_stays(
    condition: str, catalog: Catalog, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    people(catalog).alter([{"change": "set-clustering", "columns": [["email"]]}]).cluster()
    end = looking.ErasureSearch.look_again_at_unlinked
    look = looking.ErasureSearch.look_at_unlinked
    promise_all = cloning.promise_all

    def late(self: Any) -> None:
        """The erasure looks between the first commit of the clone and the promise."""

        def first(*given: Any) -> Any:
            monkeypatch.setattr(cloning, "promise_all", promise_all)
            (end if condition == WHERE else look)(self)
            return promise_all(*given)

        monkeypatch.setattr(cloning, "promise_all", first)
        client(warehouse).clone("a.t", "a.c")

    name = "look_again_at_unlinked" if condition == WHERE else "look_at_unlinked"
    monkeypatch.setattr(looking.ErasureSearch, name, late)
    assert catalog.forget("a.t", condition, dry_run=False).left == ()
    assert ids(client(warehouse), "a.c") == ids(client(warehouse)) and is_whole(catalog)
    assert left_in(warehouse) == set() or condition != WHERE


@pytest.mark.parametrize("drops", [True, False])
def test_what_is_kept_for_a_purged_clone_is_not_read_and_goes(
    drops: bool, catalog: Catalog, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    people(catalog)
    clone = catalog.clone("a.t", "a.c")
    catalog.clone("a.c", "a.d")
    clone = clone.delete("id = 1")
    catalog.expire("a.c", version=clone.version, dry_run=False)
    if drops:
        catalog.drop_table("a.c")
    with monkeypatch.context() as patch:
        # The clone of the clone ends what is kept for it in the first of both only.
        patch.setattr(promises, "end_at_origins", lambda *given: None)
        catalog.drop_table("a.d", purge=True)
    table = catalog.load_table("a.t").delete("id = 1")
    catalog.expire("a.t", version=table.version, dry_run=False)
    catalog.vacuum("a.t", older_than=dt.timedelta(0), dry_run=False, trust_clock=True)
    assert catalog.forget("a.t", WHERE, dry_run=False).left == ()
    assert left_in(warehouse) == set() and ids(catalog) == [2, 3] and is_whole(catalog)
    assert drops or ids(catalog, "a.c") == [2, 3]


@pytest.mark.parametrize("drops", [False, True])
def test_a_clone_that_needs_no_file_of_its_source_any_more_is_a_clone(
    drops: bool, catalog: Catalog, warehouse: str
) -> None:
    people(catalog, properties={"lakelog.write.update.mode": "copy-on-write"})
    catalog.clone("a.t", "a.c")
    clone = catalog.load_table("a.c").update({"flag": "'x'", "email": f"'{ADA}'"}, "id > 0")
    catalog.expire("a.c", version=clone.version, dry_run=False)
    catalog.vacuum("a.c", older_than=dt.timedelta(0), dry_run=False, trust_clock=True)
    assert not client(warehouse).load_table("a.t").table_head.state.clones
    if drops:
        catalog.drop_table("a.c")
    assert catalog.forget("a.t", "id = 1", dry_run=False).left == ()
    assert ids(client(warehouse)) == [2, 3] and is_whole(catalog)
    if not drops:
        assert ids(client(warehouse), "a.c") == [2, 3]
    else:
        assert left_in(warehouse) == set()


def test_a_purge_of_a_clone_that_was_stopped_is_ended(
    catalog: Catalog, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    people(catalog)
    catalog.clone("a.t", "a.c")
    catalog.drop_table("a.c")

    def dying(*given: Any) -> None:
        raise Death

    with monkeypatch.context() as patch, pytest.raises(Death):
        patch.setattr(purge, "_empty", dying)
        catalog.forget("a.t", WHERE, dry_run=False)
    assert client(warehouse).forget("a.t", WHERE, dry_run=False).left == ()
    assert left_in(warehouse) == set() and is_whole(catalog)
