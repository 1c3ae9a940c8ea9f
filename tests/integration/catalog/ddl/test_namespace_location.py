"""A namespace's location: where the tables go that are created in it."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from tests.integration.catalog.clock import Clock
from tests.integration.catalog.conftest import SCHEMA, rows
from tests.integration.catalog.maintenance.test_vacuum_unlinked import Death, unlinked, written

from lakelog.catalog import Catalog, engine
from lakelog.catalog.core.ddl import staging
from lakelog.catalog.keeping.maintenance.fsck import check_warehouse
from lakelog.log import LocalStore, open_store, wait_for_background
from lakelog.log.errors import InvalidInput


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock().govern(monkeypatch)
    monkeypatch.setattr(LocalStore, "now_us", lambda store, near="": clock.now_us)  # tables are in folders
    return clock


@pytest.fixture
def catalog(warehouse: str, clock: Clock) -> Catalog:
    return clock.client(warehouse)


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet"))


def test_tables_are_created_below_the_location_of_their_namespace(catalog: Catalog, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    catalog.create_namespace("a", {"location": f"file:{place}/"})
    assert catalog.load_namespace("a")["location"] == str(place)
    table = catalog.create_table("a.t", SCHEMA).append(rows(1))
    assert table.location.startswith(f"{place}/n-") and not table.metadata.own_location
    assert len(files(place)) == 1
    catalog.create_namespace("a.b")
    assert not catalog.create_table("a.b.t", SCHEMA).location.startswith(str(place))
    assert catalog.load_table("a.t").row_count == 1
    assert check_warehouse(catalog._logs).found == []


def test_a_new_location_is_for_tables_that_come_after_it(catalog: Catalog, tmp_path: Path) -> None:
    catalog.create_namespace("a")
    first = catalog.create_table("a.first", SCHEMA)
    catalog.alter_namespace("a", set={"location": str(tmp_path / "one")})
    second = catalog.create_table("a.second", SCHEMA)
    catalog.alter_namespace("a", remove=["location"])
    third = catalog.create_table("a.third", SCHEMA)
    assert second.location.startswith(str(tmp_path / "one"))
    for table in (first, second, third):
        assert catalog.load_table(table.identifier).location == table.location
        assert (table is second) == table.location.startswith(str(tmp_path / "one"))
    moved_table = catalog.rename_table("a.second", "a.renamed") or catalog.load_table("a.renamed")
    assert moved_table.location == second.location


def test_a_transaction_places_tables_by_the_location_that_it_gave(catalog: Catalog, tmp_path: Path) -> None:
    catalog.create_namespace("a")
    with catalog.transaction() as tx:
        tx.alter_namespace("a", set={"location": str(tmp_path / "one")})
        tx.create_table("a.t", SCHEMA).append(rows(1, 2))
    table = catalog.load_table("a.t")
    assert table.location.startswith(str(tmp_path / "one")) and table.row_count == 2


def test_what_was_dropped_there_is_restored_or_purged(catalog: Catalog, clock: Clock, tmp_path: Path) -> None:
    place = tmp_path / "one"
    catalog.create_namespace("a", {"location": str(place)})
    for name in ("t", "u"):
        catalog.create_table(f"a.{name}", SCHEMA).append(rows(1))
        catalog.drop_table(f"a.{name}")
    catalog.undrop_table("a.t")
    clock.days_later(30)
    catalog.vacuum(dry_run=False)
    assert len(files(place)) == 1 and catalog.load_table("a.t").row_count == 1
    catalog.drop_namespace("a", cascade=True)
    clock.days_later(30)
    catalog.vacuum(dry_run=False)
    assert files(place) == []


def test_tables_that_outlive_their_warehouse_are_not_taken_for_those_of_the_next_one_at_its_url(
    clock: Clock, tmp_path: Path
) -> None:
    place, url = tmp_path / "one", f"memory://{uuid.uuid4().hex}"
    for _ in range(2):
        # Its place follows from its name.
        catalog = clock.client(url)
        catalog.create_namespace("a")
        catalog.alter_namespace("a", set={"location": str(place)})
        table = catalog.create_table("a.t", SCHEMA).append(rows(1))
        wait_for_background()
        clock.days_later(40)
        reports = catalog.vacuum(dry_run=False)
        store = open_store(url)
        store.delete(list(store.list_after("")))
    [error] = [report.error for report in reports if report.error is not None]
    assert "is older than the namespace" in error and "Register it" in error
    assert len(files(place)) == 2 and len(list(place.iterdir())) == 1 and table.row_count == 1


@pytest.mark.parametrize("former", [False, True])
def test_creations_that_never_ended_are_found_there(
    catalog: Catalog,
    clock: Clock,
    warehouse: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    former: bool,
) -> None:
    place = tmp_path / "one"
    catalog.create_namespace("a", {"location": str(place)})
    catalog.create_namespace("b", {"location": str(place)})
    catalog.create_table("a.kept", SCHEMA).append(rows(7))
    creator = clock.client(warehouse)
    started_table = engine.stage(creator, "create", "a.begun", SCHEMA)
    written(creator, started_table, 1)

    def stop(*_arguments: Any) -> None:
        raise Death

    lost_table = engine.stage(creator, "create", "b.lost", SCHEMA)
    with monkeypatch.context() as patch, pytest.raises(Death):
        patch.setattr(staging, "_link", stop)
        engine.commit_stage(creator, lost_table, written(creator, lost_table, 2))
    assert len(files(place)) == 3
    if former:
        catalog.alter_namespace("a", set={"location": str(tmp_path / "two")})
    clock.days_later(4)
    found = unlinked(catalog.vacuum(dry_run=False))
    assert sorted(found) == [("unlinked-table", 0, 1), ("unlinked-table", 1, 0)]
    clock.days_later(4)
    assert unlinked(catalog.vacuum(dry_run=False)) == [("unlinked-table", 1, 0)]
    assert len(files(place)) == 1
    assert catalog.load_table("a.kept").to_arrow()["id"].to_pylist() == [7]
    assert unlinked(catalog.vacuum(dry_run=False)) == []


@pytest.mark.parametrize("inside", ["chosen", "chosen/deeper"])
def test_a_location_inside_of_the_warehouse_is_one(
    catalog: Catalog, clock: Clock, warehouse: str, inside: str
) -> None:
    catalog.create_namespace("a", {"location": f"{warehouse}/{inside}"})
    table = catalog.create_table("a.t", SCHEMA).append(rows(1))
    assert table.location.startswith(f"{warehouse}/{inside}/n-")
    assert catalog.load_table("a.t").row_count == 1
    assert check_warehouse(catalog._logs).found == []
    catalog.drop_table("a.t")
    clock.days_later(30)
    catalog.vacuum(dry_run=False)
    assert {finding.kind for finding in check_warehouse(catalog._logs).found} <= {"log-unlinked"}


@pytest.mark.parametrize(
    "place",
    ["", "rel/path", "x" * 2000, "{warehouse}", "{warehouse}/_log", "{warehouse}/n-{id}/x", "hdfs://a/b"],
)
def test_what_cannot_be_a_location_is_refused(catalog: Catalog, warehouse: str, place: str) -> None:
    catalog.create_namespace("a")
    place = place.format(warehouse=warehouse, id="a" * 26)
    with pytest.raises(InvalidInput, match="location|scheme"):
        catalog.create_namespace("b", {"location": place})
    with pytest.raises(InvalidInput, match="location|scheme"):
        catalog.alter_namespace("a", set={"location": place})
    assert catalog.list_namespaces() == [("a",)]
    assert catalog.load_namespace("a") == {}
