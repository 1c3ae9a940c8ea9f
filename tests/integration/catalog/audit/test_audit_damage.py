"""An audit of histories that are not whole any more: what expired is listed as such, and no damage passes unseen."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable

import pytest
from tests.integration.catalog.audit.audited_shop import Objects, alter, brief, damage, filled

from lakelog.catalog import Catalog
from lakelog.catalog.looking.audit.audit import AuditEntry
from lakelog.log.burial import bury_versions, tombstone_of
from lakelog.log.expiry import expire, expiring
from lakelog.log.format import Commit, encode


@pytest.fixture
def shop(catalog: Catalog) -> Catalog:
    return filled(catalog)


@pytest.fixture
def audit(catalog: Catalog) -> Callable[..., list[AuditEntry]]:
    return lambda **asked: list(catalog.audit(**asked))


def test_expired_versions_are_listed_as_such_and_break_no_chain(
    shop: Catalog, audit: Callable[..., list[AuditEntry]]
) -> None:
    alter(shop, "shop.orders", 50)
    expire(Objects(shop, "shop.orders").log, 40)
    entries = audit(table="shop.orders")
    assert [entry.version for entry in entries if entry.kind == "table"] == [*range(53, 40, -1), 40]
    [expired_entry] = [entry for entry in entries if entry.what == "expired"]
    assert (expired_entry.first_version, expired_entry.version, expired_entry.note) == (
        1,
        40,
        "versions 1-40 expired",
    )
    assert audit(newest_first=False) == audit()[::-1]
    assert damage(audit()) == []


def test_expire_and_vacuum_are_listed_and_leave_no_damage(
    shop: Catalog, audit: Callable[..., list[AuditEntry]], client: Callable[[], Catalog]
) -> None:
    at_once = dt.timedelta(0)
    purged_id = shop.load_table("shop.eu.orders").id
    shop.drop_table("shop.eu.orders")
    shop.rename_table("shop.orders", "shop.eu.sales")
    shop.expire(older_than=at_once, dry_run=False)
    assert "shop.eu.orders 3 drop" in brief(audit())
    shop.vacuum(older_than=at_once, dropped_older_than=at_once, dry_run=False)
    for catalog in (shop, client()):
        entries = list(catalog.audit())
        assert damage(entries) == []
        assert {entry.name for entry in entries if entry.kind == "table"} == {("shop", "eu", "sales")}
        [purge] = [entry for entry in entries if "purge" in entry.operations]
        assert purge.name == ("shop", "eu") and purge.details == {"id": purged_id}
        assert {
            entry.version for entry in catalog.audit(table="shop.eu.sales") if entry.what == "expired"
        } != set()


def test_an_altered_tombstone_is_found(shop: Catalog, audit: Callable[..., list[AuditEntry]]) -> None:
    alter(shop, "shop.orders", 50)
    objects = Objects(shop, "shop.orders")
    expire(objects.log, 40)
    objects.forge(30, commit_hash="0" * 64)
    assert [(entry.version, entry.what) for entry in damage(audit())] == [(31, "damage")]
    assert "between versions 30 and 31" in (damage(audit())[0].note or "")


@pytest.mark.parametrize("newest_first", [True, False])
def test_a_commit_that_was_altered_in_the_middle_is_named(
    shop: Catalog, audit: Callable[..., list[AuditEntry]], newest_first: bool
) -> None:
    alter(shop, "shop.orders", 20)
    objects = Objects(shop, "shop.orders")
    data = objects.store.get(objects.keys.commit(7)) or b""
    objects.put(7, data.replace(b'"n":"3"', b'"n":"4"'))
    [found_entry] = damage(audit(newest_first=newest_first))
    assert (
        found_entry.version == 7
        and found_entry.name == ("shop", "orders")
        and objects.keys.commit(7) in (found_entry.note or "")
    )
    versions = [
        entry.version for entry in audit(newest_first=newest_first) if entry.name == ("shop", "orders")
    ]
    assert versions == list(range(23, 0, -1) if newest_first else range(1, 24))


@pytest.mark.parametrize("newest_first", [True, False])
def test_a_commit_that_was_forged_with_a_hash_of_its_own_breaks_the_chain(
    shop: Catalog, audit: Callable[..., list[AuditEntry]], newest_first: bool
) -> None:
    alter(shop, "shop.orders", 20)
    objects = Objects(shop, "shop.orders")
    objects.forge(7, writer={"user": "mallory"})
    [entry] = damage(audit(newest_first=newest_first))
    assert entry.version == 8 and "between versions 7 and 8" in (entry.note or "")
    assert len(audit()) == 1 + len(audit(verify=False)) and damage(audit(verify=False)) == []


def test_a_tail_that_was_forged_as_a_whole_does_not_fit_the_hint(
    shop: Catalog, audit: Callable[..., list[AuditEntry]]
) -> None:
    alter(shop, "shop.orders", 20)
    objects = Objects(shop, "shop.orders")
    prev = objects.forge(18, writer={"user": "mallory"})
    for version in range(19, 24):
        prev = objects.forge(version, prev=prev)
    assert [entry.version for entry in damage(audit())] == [20]
    assert "latest.json" in (damage(audit())[0].note or "")


@pytest.mark.parametrize("newest_first", [True, False])
@pytest.mark.parametrize("version", [1, 2, 7, 20, 22])
def test_a_commit_that_was_deleted_is_named(
    shop: Catalog, audit: Callable[..., list[AuditEntry]], newest_first: bool, version: int
) -> None:
    alter(shop, "shop.orders", 20)
    objects = Objects(shop, "shop.orders")
    objects.store.delete([objects.keys.commit(version)])
    [entry] = damage(audit(newest_first=newest_first))
    assert entry.version == version and "missing" in (entry.note or "")


def test_commits_that_were_cut_off_behind_a_snapshot_are_missed(
    shop: Catalog, audit: Callable[..., list[AuditEntry]]
) -> None:
    alter(shop, "shop.orders", 20)
    objects = Objects(shop, "shop.orders")
    objects.store.delete([objects.keys.commit(version) for version in range(15, 24)])
    assert {entry.version for entry in damage(audit())} == set(range(15, 21))


def test_a_commit_that_was_replaced_by_a_tombstone_is_named(
    shop: Catalog, audit: Callable[..., list[AuditEntry]]
) -> None:
    alter(shop, "shop.orders", 20)
    objects = Objects(shop, "shop.orders")
    commit = objects.commit(7)
    assert isinstance(commit, Commit)
    objects.put(7, encode(tombstone_of(commit, None)))
    [entry] = damage(audit())
    assert entry.version == 7 and "no base says that version 7 expired" in (entry.note or "")


def test_a_damaged_namespace_hides_nothing_below_it(
    warehouse: str, shop: Catalog, client: Callable[[], Catalog]
) -> None:
    expected = [entry for entry in brief(shop.audit()) if not entry.startswith("shop 2 ")]
    objects = Objects(shop, "shop")
    objects.put(2, b"{}")
    objects.store.delete([objects.keys.latest])  # else no reader comes by the damage
    entries = list(client().audit())
    assert {entry.version for entry in damage(entries)} == {0, 2}
    texts = brief(entry for entry in entries if entry.what == "commit")
    # What links shop.eu is lost with that version, and so is the way to it.
    assert texts == [entry for entry in expected if not entry.startswith("shop.eu")]
    assert brief(client().audit(table="shop.orders"))


def test_a_table_whose_objects_are_gone_is_named(shop: Catalog, client: Callable[[], Catalog]) -> None:
    objects = Objects(shop, "shop.orders")
    objects.store.delete(list(objects.store.list_after(f"{objects.keys.log}/")))
    [entry] = damage(client().audit())
    assert entry.name == ("shop", "orders") and "is missing" in (entry.note or "")


@pytest.mark.parametrize("newest_first", [True, False])
def test_an_audit_beside_an_expiry_reports_what_has_expired_once(shop: Catalog, newest_first: bool) -> None:
    """Tombstones come in any order, and more of them while it is read."""
    alter(shop, "shop.orders", 150)
    log = Objects(shop, "shop.orders").log
    window = next(expiring(log, 140))
    entries: list[AuditEntry] = []
    for entry in shop.audit(table="shop.orders", newest_first=newest_first):
        if not entries:
            for version in random.Random(2).sample(window[:-1], 100):
                bury_versions(log, range(version, version + 1))
        entries.append(entry)
    [expired_entry] = [entry for entry in entries if entry.what == "expired"]
    at = entries.index(expired_entry)
    retained_entries = entries[:at] if newest_first else entries[at + 1 :]
    assert all(entry.version > expired_entry.version for entry in retained_entries if entry.kind == "table")
    assert damage(entries) == []


def test_versions_of_a_time_are_found_beside_those_that_cannot_be_read(
    shop: Catalog, audit: Callable[..., list[AuditEntry]]
) -> None:
    alter(shop, "shop.orders", 600)
    entries = [entry for entry in audit(table="shop.orders") if entry.kind == "table"]
    times = {entry.version: entry.committed_at for entry in entries}
    objects = Objects(shop, "shop.orders")
    lost_range = {*range(60, 90), *range(300, 330), 470}
    objects.store.delete([objects.keys.commit(version) for version in lost_range])

    def found_numbers(**asked: dt.datetime | None) -> set[int]:
        each_version = audit(table="shop.orders", **asked)
        return {entry.version for entry in each_version if entry.kind == "table" and entry.what == "commit"}

    for at in (1, 59, 75, 90, 200, 315, 331, 470, 471, 603):
        assert found_numbers(since=times[at]) == {version for version in times if version >= at} - lost_range
        assert found_numbers(until=times[at]) == {version for version in times if version <= at} - lost_range
