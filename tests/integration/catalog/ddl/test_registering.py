"""Giving names to tables that stand somewhere and have none, and refusing those that have one."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, engine
from lakelog.catalog.core.schema.definition import ViewDefinition
from lakelog.catalog.errors import LocationTaken, NoSuchNamespace, NoSuchTable, TableExists, ViewExists
from lakelog.log.errors import InvalidInput

COLUMNS = pa.schema([("id", pa.int64())])


@pytest.fixture
def catalog(tmp_path) -> Catalog:
    new_catalog = Catalog(tmp_path / "w", options={"fsync": "off"})
    new_catalog.create_namespace("a")
    return new_catalog


def table_at(catalog: Catalog, place: str):
    table = engine.commit_stage(catalog, engine.stage(catalog, "create", None, COLUMNS, location=place))
    return table.append(pa.table({"id": [1]}))


def ids(catalog: Catalog, name: str) -> list[int]:
    return catalog.load_table(name).to_arrow()["id"].to_pylist()


def test_a_table_that_is_only_known_by_its_place_gets_a_name(catalog, tmp_path):
    place = str(tmp_path / "place")
    table = table_at(catalog, place)
    register_table = catalog.register_table("a.t", place)
    assert (register_table.id, register_table.version, register_table.name) == (table.id, 3, "`a`.`t`")
    register_table.append(pa.table({"id": [2]}))
    other_catalog = Catalog(catalog.warehouse)
    assert sorted(ids(other_catalog, "a.t")) == [1, 2]
    assert [entry.operation for entry in other_catalog.load_table("a.t").history()][1] == "move"
    with pytest.raises(TableExists, match="already has the name `t`"):
        catalog.register_table("u", place)
    catalog.rename_table("a.t", "moved")
    with pytest.raises(TableExists, match="already has the name `moved`"):
        catalog.register_table("u", place)
    assert not catalog.fsck().found


def test_a_location_that_is_taken_names_register_table(catalog, tmp_path):
    place = str(tmp_path / "place")
    table_at(catalog, place)
    with pytest.raises(LocationTaken, match=rf"register_table\('<name>', '{place}'\)"):
        catalog.create_table("a.t", COLUMNS, location=place)
    assert not catalog.table_exists("a.t")


def test_the_name_of_a_view_is_not_given_to_a_table(catalog, tmp_path):
    place = str(tmp_path / "place")
    table_at(catalog, place)
    engine.create_view(catalog, "a.v", ViewDefinition(text="SELECT 1", columns=()))
    with pytest.raises(ViewExists):
        catalog.register_table("a.v", place)
    assert engine.list_relations(catalog, "a") == ([], [("a", "v")])
    assert catalog.register_table("a.t", place).name == "`a`.`t`"


def test_what_cannot_be_registered_is_refused_and_nothing_changes(catalog, tmp_path):
    place = str(tmp_path / "place")
    table_at(catalog, place)
    catalog.create_table("a.t", COLUMNS)
    with pytest.raises(NoSuchTable, match="check the path"):
        catalog.register_table("a.u", str(tmp_path / "nothing"))
    with pytest.raises(NoSuchNamespace):
        catalog.register_table("b.u", place)
    with pytest.raises(TableExists, match="there is a table `a`.`t` already"):
        catalog.register_table("a.t", place)
    with pytest.raises(TableExists, match="already has the name"):
        catalog.register_table("a.u", catalog.load_table("a.t").location)
    with pytest.raises(InvalidInput):
        catalog.register_table("a.u", str(tmp_path / "w"))
    assert catalog.list_tables("a") == [("a", "t")]


def test_a_dropped_table_is_restored_only_where_nothing_remembers_it(catalog, tmp_path):
    place = str(tmp_path / "place")
    catalog.create_table("a.t", COLUMNS, location=place).append(pa.table({"id": [1]}))
    catalog.drop_table("a.t")
    with pytest.raises(TableExists, match="undrop_table"):
        catalog.register_table("a.u", place)
    catalog.vacuum(dropped_older_than=dt.timedelta(0), dry_run=False)
    assert catalog.dropped("a") == []
    catalog.register_table("a.u", place).append(pa.table({"id": [2]}))
    assert sorted(ids(Catalog(catalog.warehouse), "a.u")) == [1, 2]
    assert not catalog.fsck().found


def test_a_table_dropped_by_its_place_leaves_no_second_name(catalog, tmp_path):
    place = str(tmp_path / "place")
    catalog.create_table("a.t", COLUMNS, location=place)
    engine.drop_table_at(catalog, place)
    catalog.register_table("a.u", place)
    assert Catalog(catalog.warehouse).list_tables("a") == [("a", "u")]


def test_a_table_of_another_warehouse_is_taken_over_only_when_asked(catalog, tmp_path):
    place = str(tmp_path / "place")
    other_catalog = Catalog(tmp_path / "other", options={"fsync": "off"})
    other_catalog.create_namespace("n")
    other_catalog.create_table("n.t", COLUMNS, location=place).append(pa.table({"id": [1]}))
    with pytest.raises(TableExists, match="another warehouse, which links it as t.*take_over"):
        catalog.register_table("a.t", place)
    assert ids(catalog.register_table("a.t", place, take_over=True).refresh() and catalog, "a.t") == [1]


def test_a_name_is_found_where_the_commit_that_gave_it_has_expired(catalog, tmp_path):
    place = str(tmp_path / "place")
    table = catalog.create_table("a.t", COLUMNS, location=place)
    table.append(pa.table({"id": [1]}))
    catalog.expire("a.t", retain_last=1, dry_run=False)
    with pytest.raises(TableExists, match="already has the name `t`"):
        catalog.register_table("a.u", place)


def test_registering_joins_transactions_and_a_retry_is_the_same_change(catalog, tmp_path):
    place, second = str(tmp_path / "place"), str(tmp_path / "second")
    table_at(catalog, place)
    table_at(catalog, second)
    with catalog.transaction() as tx:
        tx.register_table("a.t", place)
        tx.load_table("a.t").append(pa.table({"id": [2]}))
        assert not catalog.table_exists("a.t")
    assert sorted(ids(catalog, "a.t")) == [1, 2]
    token = catalog.token("a.u")
    for _ in range(2):
        assert catalog.register_table("a.u", second, token=token).version == 3
