"""The audit has every commit of a warehouse in a single order, and reports all damage."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.integration.catalog.audit.audited_shop import alter, brief, damage, filled
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog
from lakelog.catalog.errors import NoSuchNamespace, NoSuchTable
from lakelog.catalog.looking.audit.arrow_audit import AUDIT_SCHEMA, audit_table
from lakelog.catalog.looking.audit.audit import AuditEntry
from lakelog.log import Draft, LakelogError, MemoryStore, wait_for_background
from lakelog.log.decisions import WarehouseDecisions
from lakelog.log.errors import InvalidInput, NotFound, Unsupported
from lakelog.log.together import LogPart, commit_together

MICROSECOND = dt.timedelta(microseconds=1)


@pytest.fixture
def shop(catalog: Catalog) -> Catalog:
    return filled(catalog)


@pytest.fixture
def audit(catalog: Catalog) -> Callable[..., list[AuditEntry]]:
    return lambda **asked: list(catalog.audit(**asked))


def test_every_commit_is_listed_newest_first_in_the_order_of_each_log(
    shop: Catalog, audit: Callable[..., list[AuditEntry]]
) -> None:
    entries = audit()
    assert brief(audit(newest_first=False)) == [
        " 1 create namespace",
        "shop 1 create namespace",
        " 2 link",
        "shop.eu 1 create namespace",
        "shop 2 link",
        "shop.orders 1 create",
        "shop 3 link",
        "shop.orders 2 append",
        "shop.orders 3 append",
        "shop.eu.orders 1 create",
        "shop.eu 2 link",
        "shop.eu.orders 2 append",
    ]
    assert entries == audit(newest_first=False)[::-1]
    times = [entry.committed_at for entry in entries]
    assert times == sorted(times, reverse=True)
    newest = entries[0]
    assert (newest.what, newest.kind, newest.dropped, newest.base) == ("commit", "table", False, 1)
    assert newest.details["added_rows"] == 1 and newest.engine == "test" and newest.user is None
    assert newest.location == shop.load_table("shop.eu.orders").location


def test_what_a_writer_says_of_itself_is_listed(
    warehouse: str, shop: Catalog, audit: Callable[..., Any]
) -> None:
    facts = {
        "user": "ada",
        "engine": "spark 4.3.0",
        "application": "nightly",
        "query": "17",
        "statement": "TRUNCATE t",
    }
    Catalog(warehouse, writer=facts).load_table("shop.orders").truncate()
    [entry] = audit(operation="truncate")
    assert {name: getattr(entry, name) for name in facts} == facts


def test_an_audit_is_narrowed_by_time_user_and_operation(
    warehouse: str, shop: Catalog, audit: Callable[..., list[AuditEntry]]
) -> None:
    time_before = audit()[0].committed_at
    Catalog(warehouse, writer={"user": "ada"}).load_table("shop.orders").append(rows(4)).truncate()
    Catalog(warehouse, writer={"user": "adam"}).load_table("shop.orders").append(rows(5))
    assert brief(audit(since=time_before + MICROSECOND)) == [
        "shop.orders 6 append",
        "shop.orders 5 truncate",
        "shop.orders 4 append",
    ]
    assert audit(until=time_before) + audit(since=time_before + MICROSECOND, newest_first=False) != []
    assert audit(since=time_before + MICROSECOND) + audit(until=time_before) == audit()
    assert (
        audit(until=time_before, newest_first=False)
        + audit(since=time_before + MICROSECOND, newest_first=False)
        == audit()[::-1]
    )
    assert [entry.version for entry in audit(user="ada")] == [5, 4]
    assert [entry.version for entry in audit(user="ada*")] == [6, 5, 4]
    assert [entry.version for entry in audit(user="ada", operation="t*")] == [5]
    assert audit(since="2000-01-01", until="2000-01-02") == []


def test_a_range_in_a_long_log_is_found_by_a_search(
    shop: Catalog, audit: Callable[..., list[AuditEntry]]
) -> None:
    alter(shop, "shop.orders", 600)
    entries = audit(table="shop.orders", operation="set properties")
    assert [entry.version for entry in entries] == list(range(603, 3, -1))
    for newest_first in (True, False):
        found_entries = audit(
            table="shop.orders",
            since=entries[120].committed_at,
            until=entries[100].committed_at,
            newest_first=newest_first,
        )
        expected = entries[100:121]
        assert found_entries == (expected if newest_first else expected[::-1])
    assert audit(table="shop.orders", since=entries[0].committed_at) == entries[:1]
    assert audit(table="shop.orders", until=entries[-1].committed_at)[0] == entries[-1]


def test_a_table_is_found_by_a_former_name_and_after_its_drop(
    shop: Catalog, audit: Callable[..., list[AuditEntry]]
) -> None:
    shop.rename_table("shop.orders", "shop.sales")
    shop.create_table("shop.orders", SCHEMA)
    sales = [
        "shop 5 link",
        "shop.orders 1 create",
        "shop.sales 4 move",
        "shop 4 rename",
        "shop.sales 3 append",
    ]
    assert brief(audit(table="shop.orders"))[:5] == sales
    assert "shop.orders 1 create" not in brief(audit(table="shop.sales"))
    assert "shop.sales 3 append" in brief(audit(table="shop.sales"))
    shop.drop_table("shop.sales")
    for name in ("shop.sales", "shop.orders"):
        dropped_entries = [entry for entry in audit(table=name) if entry.name == ("shop", "sales")]
        assert [entry.operations for entry in dropped_entries][-3:] == [("append",), ("append",), ("create",)]
        assert all(entry.dropped for entry in dropped_entries)
    with pytest.raises(NoSuchTable, match="retained history"):
        shop.audit(table="shop.nothing")


def test_a_namespace_is_audited_with_all_below_it_and_after_its_drop(
    shop: Catalog, audit: Callable[..., list[AuditEntry]]
) -> None:
    eu = [
        "shop.eu.orders 2 append",
        "shop.eu 2 link",
        "shop.eu.orders 1 create",
        "shop 2 link",
        "shop.eu 1 create namespace",
    ]
    assert brief(audit(namespace="shop.eu")) == eu
    assert audit(namespace="") == audit()
    shop.drop_namespace("shop.eu", cascade=True)
    assert brief(audit(namespace="shop.eu"))[-5:] == eu
    assert {
        entry.dropped for entry in audit(namespace="shop.eu") if entry.name == ("shop", "eu", "orders")
    } == {True}
    with pytest.raises(NoSuchNamespace, match="retained history"):
        shop.audit(namespace="nowhere")


def test_a_table_without_a_name_is_audited_by_its_place(
    shop: Catalog, audit: Callable[..., list[AuditEntry]]
) -> None:
    location = shop.load_table("shop.orders").location
    assert brief(audit(location=location)) == [" 3 append", " 2 append", " 1 create"]
    with pytest.raises(NotFound, match="no log"):
        shop.audit(location=f"{location}/nothing")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"since": "yesterday"}, "not a time"),
        ({"since": "2026-11-21", "until": "2026-11-20"}, "is empty"),
        ({"operation": "apend"}, "there are .*append"),
        ({"operation": "x*"}, "no operation"),
        ({"table": "a", "namespace": "b"}, "one of them"),
    ],
)
def test_bad_questions_are_refused_before_anything_is_read(
    catalog: Catalog, asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        catalog.audit(**asked)


def test_an_empty_warehouse_has_no_history(audit: Callable[..., list[AuditEntry]]) -> None:
    assert audit() == []


def both(shop: Catalog) -> list[LogPart[Any]]:
    """Parts that set a property in two tables."""
    event = {"event": "table-altered", "set": {"a": "b"}, "removed": []}
    parts = []
    for name in ("shop.orders", "shop.eu.orders"):
        found_table = shop._tree.table(tuple(name.split(".")))
        parts.append(
            LogPart(
                found_table.tracked.location,
                found_table.tracked.log,
                found_table.tracked.current(),
                lambda _v, _p: Draft(events=(event,)),
            )
        )
    return parts


def test_the_entries_of_a_transaction_stand_together(
    shop: Catalog, audit: Callable[..., list[AuditEntry]]
) -> None:
    decisions = WarehouseDecisions(MemoryStore.named(shop.warehouse))
    commit_together(both(shop), decisions=decisions)
    shop.load_table("shop.orders").append(rows(9))
    for newest_first in (True, False):
        entries = audit(newest_first=newest_first)
        of_it = [entry for entry in entries if entry.transaction is not None]
        assert {entry.name for entry in of_it} == {("shop", "orders"), ("shop", "eu", "orders")}
        assert len({(entry.committed_at, entry.commit_id, entry.transaction) for entry in of_it}) == 1
        assert entries.index(of_it[1]) == entries.index(of_it[0]) + 1
    assert damage(audit()) == []


def test_an_aborted_transaction_is_not_listed_and_breaks_no_chain(
    shop: Catalog, audit: Callable[..., list[AuditEntry]]
) -> None:
    def refuse() -> None:
        raise InvalidInput("not today")

    entries_before = audit()
    with pytest.raises(InvalidInput):
        commit_together(
            both(shop), decisions=WarehouseDecisions(MemoryStore.named(shop.warehouse)), validate=refuse
        )
    assert audit() == entries_before
    shop.load_table("shop.orders").append(rows(9))
    assert audit()[1:] == entries_before and audit()[0].version == 5


def test_a_long_history_is_read_as_it_is_asked_for(
    shop: Catalog, client: Callable[[], Catalog], monkeypatch: pytest.MonkeyPatch
) -> None:
    alter(shop, "shop.orders", 2000)
    wait_for_background()
    read: list[int] = []
    get_many = MemoryStore.get_many

    def counted(self: MemoryStore, keys: list[str]) -> list[bytes | None]:
        read.append(len(keys))
        return get_many(self, keys)

    monkeypatch.setattr(MemoryStore, "get_many", counted)
    entries = client().audit()
    assert len(list(itertools.islice(entries, 10))) == 10
    assert sum(read) < 400
    assert sum(1 for _ in entries) == 2002


def test_an_audit_is_a_table_with_a_schema_that_stays(shop: Catalog) -> None:
    reader = audit_table(shop.audit())
    assert reader.schema == AUDIT_SCHEMA
    table = reader.read_all()
    assert table.num_rows == len(list(shop.audit()))
    [newest, *_] = table.to_pylist()
    assert newest["name"] == "`shop`.`eu`.`orders`" and newest["operation"] == "append"
    assert msgspec.json.decode(newest["details"])["added_rows"] == 1
    assert table.column("name").to_pylist().count("") == 2
    assert newest["committed_at"].tzinfo is not None and newest["first_version"] is None


def test_an_audit_of_what_cannot_be_reached_is_an_error_and_no_silence(
    shop: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(self: MemoryStore, prefix: str, after: str = "") -> Any:
        raise LakelogError("no connection")

    monkeypatch.setattr(MemoryStore, "list_after", unreachable)
    with pytest.raises(LakelogError, match="no connection"):
        list(shop.audit())


def test_a_commit_that_links_and_unlinks_shows_both(
    shop: Catalog, audit: Callable[..., list[AuditEntry]]
) -> None:
    with shop.transaction() as tx:
        tx.drop_table("shop.orders")
        tx.create_table("shop.fresh", SCHEMA)
    [entry] = [entry for entry in audit() if entry.name == ("shop",) and entry.transaction is not None]
    changes = sorted(entry.details["changes"], key=lambda change: str(change["operation"]))
    assert changes == [
        {"operation": "link", "kind": "table", "name": "fresh"},
        {"operation": "unlink", "name": "orders"},
    ]


def test_an_audit_is_of_all_history_and_not_of_a_moment(warehouse: str, shop: Catalog) -> None:
    with pytest.raises(Unsupported, match="without as_of"):
        Catalog(warehouse, as_of=next(shop.audit()).committed_at).audit()
