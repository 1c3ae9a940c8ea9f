"""Saved cuts of a namespace: their contents, the versions that they keep, and their end."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.catalog.clock import Clock
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, NoSuchNamespace, NoSuchTable, Table
from lakelog.catalog.core.ddl import saved_cuts
from lakelog.catalog.keeping.maintenance.fsck import Severity
from lakelog.log import (
    AlreadyExists,
    FormatError,
    InvalidInput,
    LogOptions,
    NotFound,
    Unsupported,
    open_store,
)

Client = Callable[[], Catalog]
NOW = dt.timedelta(0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock().govern(monkeypatch)


@pytest.fixture
def client(warehouse: str, clock: Clock) -> Client:
    return lambda: clock.client(warehouse)


@pytest.fixture
def shop(catalog: Catalog) -> Catalog:
    """`shop.eu` with the tables `t` and `u` and the namespace `past` with another; and `other.t`."""
    for namespace in ("shop", "shop.eu", "shop.eu.past", "other"):
        catalog.create_namespace(namespace)
    for name in ("shop.eu.t", "shop.eu.u", "shop.eu.past.t", "shop.t", "other.t"):
        catalog.create_table(name, SCHEMA).append(rows(1))
    return catalog


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow().column("id").to_pylist())


def opened_catalog(catalog: Catalog, name: str, namespace: str = "shop.eu") -> Catalog:
    return Catalog(catalog.warehouse, as_of=name, as_of_namespace=namespace)


def grown(catalog: Catalog, name: str) -> Table:
    return catalog.load_table(name).append(rows(2)).append(rows(3))


def test_it_shows_the_namespace_as_it_was_and_nothing_else(shop: Catalog, client: Client) -> None:
    saved_cut = shop.save_cut("friday", namespace="shop.eu")
    assert saved_cut.logs == 5 and client().cuts("shop.eu") == {"friday": saved_cut} and client().cuts() == {}
    grown(shop, "shop.eu.t")
    shop.drop_table("shop.eu.u")
    shop.rename_table("shop.eu.past.t", "shop.eu.past.renamed")
    shop.create_table("shop.eu.late", SCHEMA)
    friday = opened_catalog(shop, "friday")
    assert friday.list_namespaces() == [("shop",)] and friday.list_namespaces("shop") == [("shop", "eu")]
    assert friday.list_tables("shop") == []
    assert friday.list_tables("shop.eu") == [("shop", "eu", "t"), ("shop", "eu", "u")]
    assert [ids(friday.load_table(f"shop.eu.{name}")) for name in ("t", "u", "past.t")] == [[1]] * 3
    for name in ("shop.eu.late", "shop.t", "other.t"):
        with pytest.raises((NoSuchTable, NoSuchNamespace)):
            friday.load_table(name)
    with pytest.raises(NotFound, match="there is no table at"):
        friday.table_at(shop.load_table("other.t").location)
    for change in (
        lambda: friday.load_table("shop.eu.t").append(rows(4)),
        lambda: friday.create_namespace("shop.us"),
        lambda: friday.save_cut("x", namespace="shop.eu"),
    ):
        with pytest.raises(Unsupported, match="read-only"):
            change()


def test_it_has_the_name_that_its_namespace_has_now(shop: Catalog) -> None:
    """What is above it is not in the cut: a name that it had then would lead nowhere."""
    shop.save_cut("friday", namespace="shop.eu")
    shop.drop_namespace("shop.eu", cascade=True)
    shop.undrop_namespace("shop.eu", to="shop.west")
    grown(shop, "shop.west.t")
    friday = opened_catalog(shop, "friday", "shop.west")
    assert friday.list_namespaces("shop") == [("shop", "west")]
    assert [ids(friday.load_table(f"shop.west.{name}")) for name in ("t", "past.t")] == [[1], [1]]


def test_names_of_cuts_are_a_namespaces_own_and_hide_no_other(shop: Catalog) -> None:
    for namespace in ("shop.eu", "shop", (), "other"):
        shop.save_cut("friday", namespace=namespace)
        with pytest.raises(AlreadyExists, match="friday"):
            shop.save_cut("friday", namespace=namespace)
    grown(shop, "shop.t")
    assert ids(Catalog(shop.warehouse, as_of="friday").load_table("shop.t")) == [1]
    shop.drop_cut("friday")
    with pytest.raises(NotFound, match="no saved cut 'friday': the saved cuts are none; a namespace's own"):
        Catalog(shop.warehouse, as_of="friday")
    with pytest.raises(NotFound, match=r"no saved cut 'friday' of `shop`\.`eu`\.`past`"):
        opened_catalog(shop, "friday", "shop.eu.past")
    with pytest.raises(NoSuchNamespace):
        shop.save_cut("friday", namespace="nowhere")
    assert ids(opened_catalog(shop, "friday", "shop").load_table("shop.t")) == [1]
    for when in (None, "2026-11-20", 1):
        with pytest.raises(InvalidInput, match="give the name of a cut"):
            Catalog(shop.warehouse, as_of=when, as_of_namespace="shop")


def test_a_table_outside_of_the_folder_is_refused_by_name(shop: Catalog, tmp_path: Path) -> None:
    shop.rename_table("other.t", "shop.eu.moved")
    shop.create_table("shop.placed", SCHEMA, location=str(tmp_path / "placed"))
    for namespace, named_text in (("shop.eu", "`shop`.`eu`.`moved`"), ("shop", "`shop`.`placed`")):
        with pytest.raises(
            InvalidInput, match=f"no cut was saved: {named_text} is at .*, outside of the folder"
        ):
            shop.save_cut("friday", namespace=namespace)
        assert shop.cuts(namespace) == {}
    assert not list(open_store(shop.warehouse).list_after("_cut/")) and not shop.fsck().found
    assert shop.save_cut("friday").logs == 11


@pytest.mark.parametrize("by", ["place", "name", "new name"])
def test_what_it_needs_stays_also_by_maintenance_of_one_table(shop: Catalog, client: Client, by: str) -> None:
    """Also where the table has another name since: its folder shows where its cuts are."""
    place = grown(shop, "shop.eu.t").location
    shop.save_cut("friday", namespace="shop.eu")
    shop.load_table("shop.eu.t").overwrite(rows(9))
    table = "shop.eu.t"
    if by == "new name":
        table = "other.moved"
        shop.rename_table("shop.eu.t", table)
    which: dict[str, Any] = {"location": place} if by == "place" else {"table": table}
    [answer] = client().expire(**which, retain_last=1, dry_run=False)
    assert answer.kept_for_cuts and answer.first == 4
    client().vacuum(**which, older_than=NOW, dry_run=False)
    assert ids(opened_catalog(shop, "friday").load_table("shop.eu.t")) == [1, 2, 3]
    assert not client().fsck(all_versions=True).found
    shop.drop_cut("friday", namespace="shop.eu")
    [answer] = client().expire(**which, retain_last=1, dry_run=False)
    assert not answer.kept_for_cuts and answer.first > 4


def test_what_it_has_is_not_purged_while_its_namespace_is_there(shop: Catalog, clock: Clock) -> None:
    shop.save_cut("friday", namespace="shop.eu")
    with pytest.raises(Unsupported, match="a saved cut has versions"):
        shop.drop_table("shop.eu.t", purge=True)
    shop.drop_table("shop.eu.t")
    shop.drop_namespace("shop.eu.past", cascade=True)
    clock.days_later(8)
    removed_report = [each for each in shop.vacuum(dry_run=False) if each.kind.startswith("dropped")]
    assert removed_report and all(each.kept_for_cuts for each in removed_report)
    assert [
        ids(opened_catalog(shop, "friday").load_table(f"shop.eu.{name}")) for name in ("t", "past.t")
    ] == [
        [1],
        [1],
    ]
    shop.drop_cut("friday", namespace="shop.eu")
    removed_report = [each for each in shop.vacuum(dry_run=False) if each.kind.startswith("dropped")]
    assert removed_report and not any(each.kept_for_cuts for each in removed_report)


def test_it_goes_with_its_namespace_and_comes_back_with_it(
    shop: Catalog, clock: Clock, client: Client
) -> None:
    shop.save_cut("friday", namespace="shop.eu")
    shop.rename_table("shop.eu.t", "other.moved")
    shop.drop_namespace("shop.eu", cascade=True)
    with pytest.raises(NoSuchNamespace):
        opened_catalog(shop, "friday")
    # It can come back: so what it needs is kept, wherever that is by now.
    shop.load_table("other.moved").overwrite(rows(9))
    [answer] = shop.expire("other.moved", retain_last=1, dry_run=False)
    assert answer.kept_for_cuts
    shop.undrop_namespace("shop.eu")
    assert ids(opened_catalog(shop, "friday").load_table("shop.eu.t")) == [1] and not client().fsck().found
    shop.drop_namespace("shop.eu", cascade=True)
    clock.days_later(8)
    purged_report = [each for each in client().vacuum(dry_run=False) if each.kind.startswith("dropped")]
    assert purged_report and not any(each.kept_for_cuts or each.error for each in purged_report)
    assert not [key for key in open_store(shop.warehouse).list_after("") if "_cut/" in key]
    assert not client().fsck().of(Severity.DAMAGE)
    [answer] = client().expire("other.moved", retain_last=1, dry_run=False)
    assert not answer.kept_for_cuts and answer.first > 2


def test_a_cut_of_the_whole_catalog_keeps_a_namespace_that_has_cuts_of_its_own(
    shop: Catalog, clock: Clock
) -> None:
    shop.save_cut("own", namespace="shop.eu")
    shop.save_cut("all")
    shop.drop_namespace("shop.eu", cascade=True)
    clock.days_later(8)
    removed_report = [each for each in shop.vacuum(dry_run=False) if each.kind.startswith("dropped")]
    assert removed_report and all(each.kept_for_cuts for each in removed_report)
    assert ids(Catalog(shop.warehouse, as_of="all").load_table("shop.eu.past.t")) == [1]


def test_a_version_that_expires_between_the_check_and_the_decision_prevents_it(
    shop: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleaner = Catalog(shop.warehouse, log_options=LogOptions(patience_s=0, patience_each_s=0))
    check = saved_cuts._check_kept

    def then_expires(*given: Any) -> None:
        check(*given)
        if not cleaner.cuts("shop.eu") and cleaner.load_table("shop.eu.t").version == 2:
            grown(cleaner, "shop.eu.t")
            cleaner.expire("shop.eu.t", retain_last=1, dry_run=False)

    monkeypatch.setattr(saved_cuts, "_check_kept", then_expires)
    with pytest.raises(Exception, match="expired while the cut"):
        shop.save_cut("friday", namespace="shop.eu")
    assert shop.cuts("shop.eu") == {} and not shop.fsck().found
    shop.save_cut("friday", namespace="shop.eu")
    assert ids(opened_catalog(shop, "friday").load_table("shop.eu.t")) == [1, 2, 3]


def test_a_namespace_that_is_dropped_while_a_cut_of_it_is_saved_has_none(
    shop: Catalog, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect, other_catalog = saved_cuts.collect, client()

    def slow(*given: Any) -> Any:
        versions = collect(*given)
        other_catalog.drop_namespace("shop.eu", cascade=True)
        return versions

    with monkeypatch.context() as patch, pytest.raises(NoSuchNamespace):
        patch.setattr(saved_cuts, "collect", slow)
        shop.save_cut("friday", namespace="shop.eu")
    other_catalog.undrop_namespace("shop.eu")
    assert client().cuts("shop.eu") == {}
    assert {finding.kind for finding in client().fsck().found} == {"cut-unused"}


def test_a_forged_cut_of_logs_elsewhere_is_damage_and_keeps_nothing_there(
    shop: Catalog, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.rename_table("other.t", "shop.eu.victim")
    with monkeypatch.context() as patch:
        patch.setattr(saved_cuts, "is_inside", lambda location, folder: True)
        shop.save_cut("forged", namespace="shop.eu")
    shop.rename_table("shop.eu.victim", "other.t")
    with pytest.raises(FormatError, match="which is not in the folder"):
        opened_catalog(shop, "forged")
    shop.load_table("other.t").overwrite(rows(9))
    [answer] = client().expire("other.t", retain_last=1, dry_run=False)
    assert not answer.kept_for_cuts and answer.first > 2
    report = client().expire(retain_last=1, dry_run=False)
    assert {each.name for each in report if each.error} == {
        "`shop`.`eu`", "`shop`.`eu`.`past`", "`shop`.`eu`.`past`.`t`", "`shop`.`eu`.`t`", "`shop`.`eu`.`u`"
    }  # fmt: skip
    assert [finding.kind for finding in client().fsck().of(Severity.DAMAGE)] == ["cut-altered"]
    client().drop_cut("forged", namespace="shop.eu")
    assert not any(each.error for each in client().expire(retain_last=1, dry_run=False))
    assert not client().fsck().of(Severity.DAMAGE)


@pytest.mark.parametrize("name", [None, "shop.eu"])
def test_its_object_is_checked_with_its_namespace(shop: Catalog, client: Client, name: str | None) -> None:
    saved_cut = shop.save_cut("friday", namespace="shop.eu")
    store = open_store(shop.warehouse)
    [key] = [key for key in store.list_after("") if key.endswith(saved_cut.object)]

    def kinds() -> set[str]:
        return {finding.kind for finding in client().fsck(*([name] if name else [])).found}

    assert key.startswith("n-") and kinds() == set()
    data = store.get(key) or b""
    store.put(key, data.replace(b"1", b"2"))
    assert kinds() == {"cut-altered"}
    store.delete([key])
    assert kinds() == {"cut-missing"}
    store.put(key, data)
    store.put(key.replace(saved_cut.object, "x.json"), data)
    assert kinds() == {"cut-unused"}


def test_saving_and_dropping_one_is_in_the_history_of_its_namespace(shop: Catalog) -> None:
    shop.save_cut("friday", namespace="shop.eu")
    shop.drop_cut("friday", namespace="shop.eu")
    assert [entry.operation for entry in shop.history("shop.eu")][:2] == ["drop cut", "save cut"]
    operations = [
        operation
        for entry in shop.audit(namespace="shop.eu")
        for operation in entry.operations
        if "cut" in operation
    ]
    assert operations == ["drop cut", "save cut"]
