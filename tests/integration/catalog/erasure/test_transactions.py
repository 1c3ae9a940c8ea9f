"""Transactions that were stopped or aborted: their commits count for nothing, and their objects stay in the logs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import partial
from unittest.mock import patch

import pyarrow as pa
import pytest
from tests.integration.catalog.erasure.lives import client
from tests.integration.catalog.erasure.searching import found_in
from tests.integration.catalog.erasure.test_forgetting import MARKERS, NAME, SCHEMA, WHERE, rows, store_of
from tests.integration.catalog.erasure.test_what_stays import warehouse
from tests.integration.catalog.maintenance.test_vacuum_crashes import Death

from lakelog.catalog import Catalog
from lakelog.catalog.core.logs import commits, writing_as
from lakelog.catalog.core.parquet.row_bytes import encoded_rows
from lakelog.catalog.keeping.erasure import checking, forgetting
from lakelog.log import Commit, Json, wait_for_background
from lakelog.log.decisions import DecisionPlace
from lakelog.log.format import Proposal, ProposedChange, encode

__all__ = ["warehouse"]

NOW = dt.timedelta(0)


def left_in(warehouse: str) -> set[str]:
    wait_for_background()
    return set(found_in(store_of(warehouse), MARKERS))


def undecided(warehouse: str, change: Callable[[Catalog], object]) -> None:
    """Make a change whose client dies once all of its intents stand."""

    def die(*_: object) -> None:
        raise Death

    with patch.object(DecisionPlace, "create", die), pytest.raises(Death):
        change(client(warehouse))


def two_tables(catalog: Catalog, marked: bool = True) -> None:
    with catalog.transaction() as transaction:
        transaction.load_table("a.t").append(rows(7, marked=marked))
        transaction.load_table("a.u").append(rows(7))


def vacuum_files(warehouse: str) -> None:
    """Delete data files with the values alone: of the log, all stays."""
    store_of(warehouse).delete([key for key in left_in(warehouse) if "/data/" in key])


def vacuum(catalog: Catalog) -> None:
    catalog.vacuum("a.t", older_than=NOW, dry_run=False, trust_clock=True)


@pytest.fixture
def tables(warehouse: str) -> Catalog:
    catalog = client(warehouse)
    catalog.create_namespace("a")
    for name in ("a.t", "a.u"):
        catalog.create_table(name, SCHEMA).append(rows(1, 2))
    return catalog


@pytest.mark.parametrize("ended", [False, True], ids=["undecided", "aborted"])
def test_bounds_in_a_transaction_that_failed_go(ended: bool, tables: Catalog, warehouse: str) -> None:
    undecided(warehouse, two_tables)
    if ended:
        client(warehouse).load_table("a.t").append(rows(3))
    vacuum(tables)
    (key,) = left_in(warehouse)
    assert "/_log/" in key, "its file is gone, and its commit has bounds of it"
    report = client(warehouse).forget("a.t", WHERE, dry_run=False)
    assert report.left == () and report.tables[0].old_bounds == 1
    assert left_in(warehouse) == set()


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("in_sidecar", [True, False])
def test_bounds_in_a_transaction_that_fails_at_the_end_go(
    marked: bool, in_sidecar: bool, tables: Catalog, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_sidecar:
        monkeypatch.setattr(commits, "_is_bulk", bool)
    tables.load_table("a.t").append(rows(9, marked=True))
    check = checking.check
    checks: list[object] = []

    def after_a_transaction(*what: object) -> object:
        checks.append(what)
        if len(checks) == 1:
            undecided(warehouse, two_tables if marked else partial(two_tables, marked=False))
            client(warehouse).load_table("a.t").append(rows(3))
            if marked:
                vacuum_files(warehouse)
            head = what[0]
            what = (head.at(head.tracked.current()), *what[1:])  # type: ignore[attr-defined]
        return check(*what)  # type: ignore[arg-type]

    monkeypatch.setattr(forgetting, "check", after_a_transaction)
    report = client(warehouse).forget("a.t", WHERE, dry_run=False)
    assert report.left == () and left_in(warehouse) == set()
    assert len(checks) == (2 if marked else 1), "what has none of its rows is no reason to begin again"


@pytest.mark.parametrize("in_sidecar", [True, False])
def test_bounds_of_columns_that_only_a_failed_transaction_has_go(
    in_sidecar: bool, tables: Catalog, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gives the name to another column; what the table calls so has a bound of its own there."""
    if in_sidecar:
        monkeypatch.setattr(commits, "_is_bulk", bool)

    def renamed(catalog: Catalog) -> None:
        with catalog.transaction() as transaction:
            rename = {"change": "rename-column", "name": ["name"], "new_name": "former"}
            add = {"change": "add-column", "name": ["name"], "type": "string"}
            transaction.load_table("a.t").alter([rename, add])
            transaction.load_table("a.t").append(pa.table({"id": [7], "former": ["n"], "name": [NAME]}))
            transaction.load_table("a.u").append(rows(7))

    undecided(warehouse, renamed)
    client(warehouse).load_table("a.t").append(rows(3))
    vacuum(tables)
    assert left_in(warehouse)
    report = client(warehouse).forget("a.t", WHERE, dry_run=False)
    assert report.left == () and left_in(warehouse) == set()


def test_bounds_in_a_transaction_that_failed_are_read_by_the_types_of_then(warehouse: str) -> None:
    catalog = client(warehouse)
    catalog.create_namespace("a")
    row = pa.table({"day": [dt.date(2020, 1, 2)]})
    for name in ("a.t", "a.u"):
        catalog.create_table(name, row.schema).append(row.slice(0, 0))

    def both(catalog: Catalog) -> None:
        with catalog.transaction() as transaction:
            for name in ("a.t", "a.u"):
                transaction.load_table(name).append(row)

    undecided(warehouse, both)
    change = {"change": "update-column-type", "name": ["day"], "type": "timestamp_ntz"}
    client(warehouse).load_table("a.t").alter([change])
    vacuum(catalog)
    assert client(warehouse).forget("a.t", "day = TIMESTAMP_NTZ '2020-01-02 00:00:00'").is_needed
    assert not client(warehouse).forget("a.t", "day = TIMESTAMP_NTZ '2020-01-03 00:00:00'").is_needed


@pytest.mark.parametrize("ended", [False, True], ids=["undecided", "aborted"])
def test_a_statement_of_a_transaction_of_the_namespace_that_failed_goes(
    ended: bool, tables: Catalog, warehouse: str
) -> None:
    tables.create_namespace("a.b")

    def rename(catalog: Catalog) -> None:
        with writing_as({"statement": f"ALTER TABLE u RENAME TO b.u -- '{NAME}'"}):
            catalog.rename_table("a.t", "a.b.t")

    undecided(warehouse, rename)
    if ended:
        client(warehouse).create_table("a.v", SCHEMA)
    space = tables._tree.find_namespace(("a",))
    assert space is not None
    log = f"{space.tracked.location}/_log/"
    assert [key for key in left_in(warehouse) if key.startswith(log)]
    report = client(warehouse).forget("a.t", WHERE, dry_run=False)
    assert report.left == () and space.tracked.log.location in {each.name for each in report.lost}
    assert not [key for key in left_in(warehouse) if key.startswith(log)]
    assert client(warehouse).load_table("a.t").to_arrow().num_rows == 2


@pytest.mark.parametrize("what", ["rows", "bounds", "statement"])
def test_a_proposal_of_a_client_that_died_goes_where_nothing_else_has_such_rows(
    what: str, tables: Catalog, warehouse: str
) -> None:
    table = tables.load_table("a.t")
    log, seen_version = table.table_head.tracked.log, table.version
    undecided(warehouse, two_tables)
    stopped_commit = log.entry_at(seen_version + 1)
    table = client(warehouse).load_table("a.t").append(rows(3))
    client(warehouse).expire("a.t", version=table.version, dry_run=False)
    vacuum(tables)
    assert left_in(warehouse) == set() and isinstance(stopped_commit, Commit)
    change = ProposedChange(
        commit_id=log.options.new_id(),
        base=table.version,
        writer={"statement": f"INSERT INTO t VALUES ('{NAME}')"} if what == "statement" else {},
        events=stopped_commit.events if what == "bounds" else (),
        rows=encoded_rows(rows(8, marked=True)) if what == "rows" else b"",
    )
    proposal = Proposal(
        format=1, log_id=table.id, seen=table.version, until=table.version + 1, changes=(change,)
    )
    store_of(warehouse).put(log.keys.proposal(table.version, change.commit_id), encode(proposal))
    (key,) = store_of(warehouse).list_after(log.keys.inbox)
    assert what == "rows" or left_in(warehouse) == {key}
    report = client(warehouse).forget("a.t", WHERE, dry_run=False)
    assert report.left == () and left_in(warehouse) == set()
    assert not list(store_of(warehouse).list_after(log.keys.inbox))


def test_a_proposal_to_a_namespace_of_a_client_that_died_goes_with_what_it_quotes(
    tables: Catalog, warehouse: str
) -> None:
    space = tables._tree.find_namespace(("a",))
    assert space is not None
    log, seen_version = space.tracked.log, space.view.version
    for id, name in ((log.options.new_id(), NAME), (log.options.new_id(), "another")):
        writer: dict[str, Json] = {"statement": f"CREATE TABLE v AS SELECT '{name}'"}
        change = ProposedChange(
            commit_id=id,
            base=seen_version,
            writer=writer,
            events=({"event": "namespace-altered", "set": {}},),
        )
        proposal = Proposal(
            format=1, log_id=space.view.log_id, seen=seen_version, until=seen_version + 1, changes=(change,)
        )
        store_of(warehouse).put(log.keys.proposal(seen_version, id), encode(proposal))
    report = client(warehouse).forget("a.t", WHERE, dry_run=False)
    assert report.left == () and left_in(warehouse) == set()
    assert len(list(store_of(warehouse).list_after(log.keys.inbox))) == 1


def test_what_a_repair_has_moved_away_is_named_if_nothing_else_has_such_rows(
    tables: Catalog, warehouse: str
) -> None:
    log = tables.load_table("a.t").table_head.tracked.log
    store_of(warehouse).put(f"{log.keys.lost}20260101-x/00000000000000000001.json", NAME.encode())
    report = client(warehouse).forget("a.t", WHERE, dry_run=False)
    assert not report.is_needed and ["_lost/" in text for text in report.left] == [True]
