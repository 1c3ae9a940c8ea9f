"""Tables through the Python client: create, load, list, rename, drop, alter, and their past."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, NoSuchColumn, NoSuchNamespace, NoSuchTable, TableExists
from lakelog.log import InvalidInput, NotFound, Unsupported

Client = Callable[[], Catalog]


def test_a_table_is_there_for_all_clients_once_it_is_created(catalog: Catalog, client: Client) -> None:
    catalog.create_namespace("a")
    created_table = catalog.create_table(
        "a.t", SCHEMA, properties={"k": "v"}, comment="orders", partition_by=["region"]
    )
    assert created_table.version == 1
    seen_table = client().load_table("a.t")
    assert seen_table.schema == created_table.schema
    assert seen_table.schema.names == ("id", "region", "amount")
    assert dict(seen_table.properties) == {"k": "v"}
    assert seen_table.comment == "orders"
    assert [field.name for field in seen_table.spec.fields] == ["region"]
    assert client().list_tables("a") == [("a", "t")]
    assert seen_table.to_arrow().num_rows == 0


def test_tables_can_stand_in_the_root(catalog: Catalog, client: Client) -> None:
    catalog.create_table("t", SCHEMA).append(rows(1, 2))
    assert client().load_table("t").to_arrow() == rows(1, 2)


def test_a_table_and_a_namespace_may_share_a_name(catalog: Catalog, client: Client) -> None:
    catalog.create_table("a", SCHEMA)
    catalog.create_namespace("a")
    catalog.create_table("a.a", SCHEMA)
    assert client().list_tables() == [("a",)]
    assert client().list_tables("a") == [("a", "a")]


def test_a_taken_name_is_refused(catalog: Catalog, client: Client) -> None:
    first = catalog.create_table("t", SCHEMA)
    with pytest.raises(TableExists, match="`t`"):
        client().create_table("t", SCHEMA)
    assert client().create_table("t", SCHEMA, if_not_exists=True).id == first.id


def test_names_are_case_sensitive_and_columns_are_not(catalog: Catalog) -> None:
    catalog.create_table("t", SCHEMA).append(rows(1))
    assert not catalog.table_exists("T")
    assert catalog.load_table("t").scan(columns=["ID"]).to_arrow().column_names == ["id"]


def test_what_is_not_there_is_said_by_name(catalog: Catalog) -> None:
    with pytest.raises(NoSuchTable, match="`t`"):
        catalog.load_table("t")
    with pytest.raises(NoSuchNamespace, match="`a`"):
        catalog.create_table("a.t", SCHEMA)
    with pytest.raises(NoSuchTable):
        catalog.table_at("memory://nowhere/at-all")
    assert not catalog.drop_table("a.t", missing_ok=True)


def test_a_renamed_table_is_the_same_table(catalog: Catalog, client: Client) -> None:
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", SCHEMA).append(rows(1))
    other_catalog = client()
    other_catalog.load_table("a.t")
    catalog.rename_table("a.t", "a.u")
    assert other_catalog.load_table("a.u").id == table.id
    assert not other_catalog.table_exists("a.t")
    catalog.create_table("a.t", SCHEMA)
    assert other_catalog.load_table("a.t").to_arrow().num_rows == 0
    with pytest.raises(TableExists):
        other_catalog.rename_table("a.t", "a.u")
    with pytest.raises(NoSuchTable):
        other_catalog.rename_table("a.x", "a.y")
    catalog.create_namespace("b")
    other_catalog.rename_table("a.u", "b.t")
    assert catalog.load_table("b.t").id == table.id
    assert catalog.list_tables("a") == [("a", "t")]
    with pytest.raises(TableExists):
        catalog.rename_table("a.t", "b.t")


def test_a_dropped_table_is_gone_for_clients_that_hold_it(catalog: Catalog, client: Client) -> None:
    catalog.create_table("t", SCHEMA)
    held_table = client().load_table("t")
    assert catalog.drop_table("t")
    with pytest.raises(NoSuchTable):
        held_table.append(rows(1))
    with pytest.raises(NoSuchTable):
        held_table.refresh()
    with pytest.raises(NoSuchTable):
        held_table.alter([{"change": "set-property", "key": "a", "value": "b"}])
    assert catalog.list_tables() == []
    assert not catalog.drop_table("t", missing_ok=True)
    again = catalog.create_table("t", SCHEMA)
    assert again.id != held_table.id
    assert again.to_arrow().num_rows == 0


def test_alterations_are_one_commit_or_none(catalog: Catalog, client: Client) -> None:
    table = catalog.create_table("t", SCHEMA).append(rows(1, 2))
    version_before = table.version
    altered_table = table.alter(
        [
            {"change": "add-column", "name": ["note"], "type": "string", "nullable": True},
            {"change": "rename-column", "name": ["amount"], "new_name": "total"},
            {"change": "set-property", "key": "k", "value": "v"},
        ]
    )
    assert altered_table.version == version_before + 1
    seen_table = client().load_table("t")
    assert seen_table.schema.names == ("id", "region", "total", "note")
    assert seen_table.to_arrow().to_pydict() == {
        "id": [1, 2], "region": ["EU", "EU"], "total": [1.0, 2.0], "note": [None, None],
    }  # fmt: skip
    with pytest.raises(NoSuchColumn, match="nonsense"):
        seen_table.alter(
            [
                {"change": "set-property", "key": "k", "value": "w"},
                {"change": "delete-column", "name": ["nonsense"], "if_exists": False},
            ]
        )
    assert client().load_table("t").version == altered_table.version


def test_an_alteration_that_changes_nothing_makes_no_version(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA, properties={"k": "v"})
    assert table.alter([{"change": "set-property", "key": "k", "value": "v"}]).version == table.version


def test_a_column_that_comes_back_does_not_bring_its_old_values(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA).append(rows(1))
    table = table.alter([{"change": "delete-column", "name": ["amount"], "if_exists": False}])
    table = table.alter([{"change": "add-column", "name": ["amount"], "type": "double", "nullable": True}])
    assert table.to_arrow()["amount"].to_pylist() == [None]
    assert table.append(rows(7)).to_arrow()["amount"].to_pylist() == [None, 7.0]


def test_the_past_is_found_by_version_and_by_time_and_is_read_only(catalog: Catalog, client: Client) -> None:
    table = catalog.create_table("t", SCHEMA)
    first = table.append(rows(1))
    second = first.alter([{"change": "rename-column", "name": ["id"], "new_name": "key"}]).append(
        rows(2).rename_columns(["key", "region", "amount"])
    )
    other_catalog = client()
    past = other_catalog.load_table("t", version=first.version)
    assert past.to_arrow() == rows(1)
    assert other_catalog.load_table("t", timestamp=first.committed_at).version == first.version
    assert other_catalog.load_table("t").at(version=second.version).to_arrow()["key"].to_pylist() == [1, 2]
    with pytest.raises(InvalidInput, match="read-only"):
        past.append(rows(3))
    with pytest.raises(NotFound, match="99"):
        other_catalog.load_table("t", version=99)
    with pytest.raises(NotFound):
        other_catalog.load_table("t", timestamp=1)


def test_history_says_what_happened(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA).append(rows(1, 2)).overwrite(rows(3))
    history = list(table.history())
    assert [entry.operation for entry in history] == ["overwrite", "append", "create"]
    assert history[0].details["removed_rows"] == 2
    assert history[1].details["added_rows"] == 2
    assert [entry.version for entry in table.history(limit=1)] == [3]
    assert history[0].writer == {"engine": "test"}


def test_a_location_of_the_users_choice_is_used_as_it_is(
    catalog: Catalog, client: Client, tmp_path: Path
) -> None:
    place = str(tmp_path / "mine")
    table = catalog.create_table("t", SCHEMA, location=place).append(rows(1))
    assert table.location == place
    assert table.metadata.own_location
    assert sorted(path.name for path in Path(place).iterdir()) == ["_log", "data"]
    assert client().load_table("t").to_arrow() == rows(1)
    assert client().table_at(place + "/").to_arrow() == rows(1)
    assert client().table_at("file://" + place).id == table.id
    with pytest.raises(TableExists, match="mine"):
        catalog.create_table("u", SCHEMA, location=place)
    assert catalog.drop_table("t")
    assert list(Path(place).glob("data/*.parquet")), "a drop never deletes data at an own location"


def test_a_place_can_be_used_again_once_its_table_was_dropped(
    catalog: Catalog, client: Client, tmp_path: Path
) -> None:
    place = str(tmp_path / "mine")
    old = catalog.create_table("t", SCHEMA, location=place).append(rows(1))
    held_table = client().load_table("t")
    catalog.drop_table("t")
    new = client().create_table("u", SCHEMA, location=place).append(rows(2))
    assert new.id != old.id
    assert catalog.load_table("u").to_arrow() == rows(2)
    assert catalog.table_at(place).id == new.id
    assert [entry.operation for entry in new.history()] == ["append", "create"]
    with pytest.raises(NotFound, match="another table"):
        new.at(version=old.version)
    for change in (lambda: held_table.append(rows(3)), lambda: held_table.refresh(), lambda: old.truncate()):
        with pytest.raises(NoSuchTable):
            change()
    assert client().load_table("u").to_arrow() == rows(2)
    assert not catalog.table_exists("t")


def test_an_unknown_reserved_property_is_refused(catalog: Catalog) -> None:
    with pytest.raises(InvalidInput, match=r"lakelog\.speed"):
        catalog.create_table("t", SCHEMA, properties={"lakelog.speed": "high"})
    table = catalog.create_table("t", SCHEMA)
    with pytest.raises(InvalidInput, match=r"lakelog\.speed"):
        table.alter([{"change": "set-property", "key": "lakelog.speed", "value": "high"}])


def test_an_unsupported_transform_is_refused_by_name(catalog: Catalog) -> None:
    with pytest.raises(Unsupported, match="zorder"):
        catalog.create_table(
            "t", SCHEMA, partition_by=[{"transform": "zorder", "args": [], "column": ["id"]}]
        )
    assert catalog.list_tables() == []


def test_a_folder_with_something_else_in_it_is_not_taken_for_a_warehouse(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    catalog = Catalog(str(tmp_path))
    with pytest.raises(InvalidInput, match=r"thesis\.txt"):
        catalog.list_tables()
    with pytest.raises(InvalidInput, match="not a lakelog warehouse"):
        catalog.create_table("t", SCHEMA)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_required_columns_stay_required(catalog: Catalog) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("note", pa.string())])
    table = catalog.create_table("t", schema)
    with pytest.raises(InvalidInput, match="id"):
        table.append(pa.table({"id": pa.array([None], pa.int64()), "note": ["x"]}))
    assert table.refresh().version == table.version


def test_a_name_without_a_table_is_not_dropped_in_silence(catalog: Catalog) -> None:
    catalog.create_table("orders", SCHEMA)
    for purge in (False, True):
        with pytest.raises(NoSuchTable, match="did you mean .*orders"):
            catalog.drop_table("order", purge=purge)
        assert not catalog.drop_table("order", purge=purge, missing_ok=True)
    with catalog.transaction() as transaction:
        with pytest.raises(NoSuchTable):
            transaction.drop_table("order")
        assert transaction.drop_table("orders")
    assert not catalog.table_exists("orders")


def test_tables_are_listed_with_those_of_namespaces_below(catalog: Catalog) -> None:
    for namespace in ("a", "a.b", "a.b.c", "z"):
        catalog.create_namespace(namespace)
    names = [("a", "b", "c", "deep"), ("a", "t"), ("root",), ("z", "t")]
    for name in names:
        catalog.create_table(name, SCHEMA)
    assert catalog.list_tables(recursive=True) == names
    assert catalog.list_tables("a", recursive=True) == names[:2]
    assert catalog.list_tables("a.b") == [] and catalog.list_tables() == [("root",)]
    with catalog.transaction() as transaction:
        transaction.create_namespace("a.new")
        transaction.create_table("a.new.t", SCHEMA)
        transaction.drop_namespace("a.b", cascade=True)
        assert transaction.list_tables("a", recursive=True) == [("a", "new", "t"), ("a", "t")]
        assert catalog.list_tables("a", recursive=True) == names[:2]
    with pytest.raises(NoSuchNamespace):
        catalog.list_tables("a.b", recursive=True)


def test_a_schema_may_be_types_by_names(catalog: Catalog) -> None:
    types = {"id": "bigint", "price": "decimal(10,2)", "at": pa.timestamp("us", "UTC"), "n": "int"}
    table = catalog.create_table("t", types, partition_by=["bucket(4, id)"], sort_by=["at desc"])
    assert [str(field.type) for field in table.schema.fields] == [
        "long",
        "decimal(10,2)",
        "timestamp",
        "integer",
    ]
    assert table.spec.fields[0].name == "id_bucket" and table.sort_order.fields[0].direction == "desc"
    table = table.add_partition_field("days(at)").drop_partition_field("bucket(4, id)")
    assert [field.name for field in table.spec.fields] == ["at_day"]
    assert table.append(pa.table({"id": [1], "n": [2]})).row_count == 1


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("id bigint", 'a dict of types by names, such as {"id": "bigint"'),
        (pa.table({"id": [1]}), "write rows.schema"),
        (pd.DataFrame({"id": [1]}), r"write pyarrow.table\(rows\).schema"),
        ({"id": int}, "such as pa.int64"),
        ({}, "is not a schema"),
    ],
)
def test_anything_else_is_no_schema(catalog: Catalog, given: Any, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        catalog.create_table("t", given)
