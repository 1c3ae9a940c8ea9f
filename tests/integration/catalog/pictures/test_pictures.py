"""Pictures of real logs are true, even if a log is damaged, and have no secrets."""

from __future__ import annotations

import datetime as dt
import json
import shlex
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.catalog.audit.audited_shop import Objects, alter

from lakelog.catalog import Catalog, InvalidInput, NoSuchTable, Sheet, engine
from lakelog.catalog.looking.pictures.model import ChangePicture, Picture
from lakelog.catalog.names import identifier

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string(), "day": pa.date32()})


def rows(*ids: int) -> pa.Table:
    days = [dt.date(2026, 1, 1 + id % 2) for id in ids]
    return pa.table({"id": list(ids), "name": [f"n{id}" for id in ids], "day": days}, schema=SCHEMA)


def orders(catalog: Catalog, **options: Any) -> Any:
    catalog.create_namespace("shop")
    return catalog.create_table("shop.orders", SCHEMA, **options)


def at(picture: Picture, version: int) -> ChangePicture:
    return next(change for change in picture.changes if change.version == version)


def test_a_table_s_picture_has_what_happened(catalog: Catalog) -> None:
    table = orders(catalog, partition_by=["day"], cluster_by=["id"]).append(rows(1, 2, 3, 4))
    other_table = Catalog(catalog.warehouse, writer={"user": "joan", "engine": "test"}).load_table(
        "shop.orders"
    )
    table = table.append(rows(5)).append(rows(6))
    other_table.append(rows(7))  # prepared on version 2, and committed after 4
    table = table.refresh().create_branch("trial").create_tag("checked")
    table.at(ref="trial").append(rows(8))
    table = table.refresh().fast_forward("main", "trial").delete("id = 3")
    facts = catalog.picture("shop.orders").facts
    assert [change.version for change in facts.changes] == list(range(10, 0, -1))
    assert at(facts, 5).base == 2 and at(facts, 4).base is None
    joan = facts.writers[at(facts, 5).writer or 0]
    assert (joan.user, joan.changes, joan.added_rows) == ("joan", 1, 1)
    assert at(facts, 8).text == "append: +1 row in 1 file, on the branch trial" and at(facts, 8).lane == 1
    assert at(facts, 9).joins == 1
    assert [(ref.name, ref.kind, ref.version) for ref in facts.refs] == [
        ("main", "branch", 10),
        ("checked", "tag", 6),
        ("trial", "branch", 5),
    ]
    (log,) = facts.logs
    assert (log.version, log.rows, log.changes) == (10, 7, 10)
    layout = facts.layout
    assert layout is not None and layout.rows == 7 and layout.key == "id" and layout.overlap is not None
    assert sum(part.files for part in layout.partitions) == layout.file_count
    assert {part.values for part in layout.partitions} == {"day=2026-01-01", "day=2026-01-02"}
    assert sum(size.files for size in layout.sizes) == layout.file_count


def test_deleted_rows_are_counted_where_they_are(catalog: Catalog) -> None:
    orders(catalog, partition_by=["day"]).append(rows(*range(100))).delete("id IN (2, 4)")
    layout = catalog.picture("shop.orders").facts.layout
    assert layout is not None and (layout.rows, layout.deleted_rows) == (98, 2)
    assert {part.values: part.deleted_rows for part in layout.partitions} == {
        "day=2026-01-01": 2,
        "day=2026-01-02": 0,
    }
    assert max(file.deleted_rows for file in layout.files) == 2


def test_definitions_are_those_of_each_version(catalog: Catalog) -> None:
    table = orders(catalog, properties={"a": "1", "b": "2"}, comment="first")
    table = table.append(rows(1)).alter([{"change": "rename-column", "name": ["name"], "new_name": "label"}])
    table = table.append(rows(2).rename_columns(["id", "label", "day"]))
    table.alter(
        [{"change": "set-property", "key": "a", "value": "9"}, {"change": "remove-property", "key": "b"}]
    )
    table.refresh().rollback_to_version(2)
    definitions = catalog.picture("shop.orders").facts.definitions
    assert [definition.version for definition in definitions] == [1, 3, 5, 6]
    for definition in definitions:
        past_table = catalog.load_table("shop.orders", version=definition.version)
        assert [column.name for column in definition.columns] == [
            field.name for field in past_table.schema.fields
        ]
        assert (
            definition.properties == dict(past_table.properties) and definition.comment == past_table.comment
        )
    newest = catalog.picture("shop.orders", versions=2).facts
    assert [definition.version for definition in newest.definitions] == [4, 5, 6]
    assert newest.changes[-1].kind == "older" and newest.changes[-1].version == 4


def test_a_warehouse_s_picture_has_sizes_transactions_and_what_was_dropped(catalog: Catalog) -> None:
    table = orders(catalog).append(rows(1, 2))
    catalog.create_table("shop.archive", SCHEMA)
    with catalog.transaction() as tx:
        tx.load_table("shop.archive").append(table.to_arrow())
        tx.load_table("shop.orders").truncate()
    catalog.create_table("shop.gone", SCHEMA)
    catalog.drop_table("shop.gone")
    facts = catalog.picture().facts
    assert facts.kind == "warehouse" and catalog.picture("shop").facts.kind == "namespace"
    sizes = {log.name: (log.rows, log.dropped) for log in facts.logs if log.kind == "table"}
    assert sizes == {"shop.archive": (2, False), "shop.orders": (0, False), "shop.gone": (0, True)}
    together = [
        change
        for change in facts.changes
        if change.transaction and facts.logs[change.log].name != "shop.gone"
    ]
    by_transaction: dict[str, set[str]] = {}
    for change in together:
        by_transaction.setdefault(change.transaction or "", set()).add(facts.logs[change.log].name)
    assert {"shop.archive", "shop.orders"} in by_transaction.values()
    assert {change.transaction_logs for change in together} == {2}
    (gone,) = facts.dropped
    assert gone.name == "shop.gone" and gone.command.startswith("lakelog undrop shop.gone --id ")


def test_health_names_what_a_compaction_would_do_and_a_compaction_mends_it(catalog: Catalog) -> None:
    table = orders(catalog)
    for id in range(5):
        table = table.append(rows(id))
    (advice,) = catalog.picture("shop.orders").facts.health
    assert advice.level == "could" and advice.what.startswith("A compaction would turn 5 files (")
    assert advice.command == "lakelog compact shop.orders"
    assert advice.sql == "CALL lake.system.compact(table => '`shop`.`orders`')"
    table.compact()
    assert [advice.level for advice in catalog.picture("shop.orders").facts.health] == ["good"]


def test_commands_are_safe_to_paste_whatever_a_table_is_called(catalog: Catalog) -> None:
    catalog.create_namespace("shop")
    name = ("shop", "o'r \\ $(touch x); `d`")
    table = catalog.create_table(name, SCHEMA).append(rows(1)).append(rows(2))
    (advice,) = catalog.picture(name).facts.health
    command = shlex.split(advice.command or "")
    assert command[:2] == ["lakelog", "compact"] and identifier(command[2]) == table.identifier == name
    assert advice.sql == "CALL lake.system.compact(table => '`shop`.`o\\'r \\\\ $(touch x); ``d```')"


def test_a_damaged_commit_is_named_and_hides_no_other(catalog: Catalog) -> None:
    table = orders(catalog)
    alter(catalog, "shop.orders", 30)
    objects = Objects(catalog, "shop.orders")
    objects.put(9, b"{")
    fresh = Catalog(table.table_head.logs.warehouse)
    facts = fresh.picture("shop.orders").facts
    assert any(change.kind == "damage" and change.version == 9 for change in facts.changes)
    assert {change.version for change in facts.changes if change.kind == "commit"} == set(range(1, 32)) - {9}
    assert facts.health[0].level == "damage" and "lakelog fsck" in (facts.health[0].command or "")
    assert Sheet(facts).to_html()


def test_a_table_whose_state_cannot_be_read_shows_its_history(catalog: Catalog) -> None:
    orders(catalog).append(rows(1))
    objects = Objects(catalog, "shop.orders")
    objects.put(2, objects.store.get(objects.keys.commit(2))[:-20])
    fresh = Catalog(catalog.warehouse)
    facts = fresh.picture("shop.orders").facts
    assert [(change.kind, change.version) for change in facts.changes] == [("damage", 2), ("commit", 1)]
    assert facts.logs[0].problem and facts.health[0].level == "damage" and facts.layout is None
    warehouse = fresh.picture().facts
    assert [log.problem is not None for log in warehouse.logs if log.name == "`shop`.`orders`"] == [True]
    assert any(advice.level == "damage" for advice in warehouse.health)


def test_expired_versions_are_one_row(catalog: Catalog) -> None:
    table = orders(catalog)
    for id in range(4):
        table = table.append(rows(id))
    catalog.expire("shop.orders", version=4, dry_run=False)
    facts = catalog.picture("shop.orders").facts
    (expired_change,) = [change for change in facts.changes if change.kind == "expired"]
    assert (expired_change.first_version, expired_change.version) == (1, 4)  # of which the state of 4 is kept
    assert any("no vacuum has deleted" in advice.what for advice in facts.health)


def test_no_secret_is_in_a_picture(catalog: Catalog) -> None:
    secrets = ("hunter2", "AKIAABCDEFGHIJKLMNOP", "s3cr3tkey", "t0ken")
    table = orders(
        catalog,
        properties={
            "db.password": "hunter2",
            "where": "s3://AKIAABCDEFGHIJKLMNOP:s3cr3tkey@bucket/x",
            "api.token": "t0ken",
        },
        comment="see s3://key:s3cr3tkey@bucket/ with password=hunter2",
    )
    with engine.writing_as(
        {"statement": "COPY FROM x WITH (password='hunter2', token='t0ken')", "query": "token=t0ken"}
    ):
        table.append(rows(1)).alter([{"change": "set-property", "key": "other.secret", "value": "hunter2"}])
    for sheet in (catalog.picture("shop.orders"), catalog.picture()):
        for text in (sheet.to_html(), json.dumps(sheet.to_dict()), sheet._repr_html_()):
            assert [secret for secret in secrets if secret in text] == []


def test_pictures_of_what_is_empty(catalog: Catalog) -> None:
    catalog.create_namespace("shop")
    schema = pa.schema({"x": pa.float64(), "s": pa.struct([("y", pa.int64())])})
    for name, key in (("plain", ["x"]), ("nested", [["s", "y"]])):
        table = catalog.create_table(("shop", name), schema, cluster_by=key)
        layout = catalog.picture(("shop", name)).facts.layout
        assert layout is not None and layout.file_count == 0 and layout.key is None
        for row in ({"x": float("nan")}, {"x": None}, {"x": 1.5, "s": {"y": 1}}):
            table = table.append(pa.Table.from_pylist([row], schema=schema))
    layout = catalog.picture("shop.plain").facts.layout
    assert layout is not None and (layout.key, layout.overlap) == ("x", 1.0)
    assert [file.low for file in layout.files if file.low] == ["1.5"]
    layout = catalog.picture("shop.nested").facts.layout
    assert layout is not None and layout.key is None, "there are no statistics of nested columns"
    assert catalog.picture("shop").to_html() and catalog.picture("shop.plain").to_html()


def test_what_does_not_exist_and_the_past_are_refused(catalog: Catalog) -> None:
    orders(catalog)
    with pytest.raises(NoSuchTable):
        catalog.picture("shop.nothing")
    with pytest.raises(InvalidInput):
        catalog.picture(versions=0)
    by_place = catalog.picture(location=catalog.load_table("shop.orders").location).facts
    assert by_place.kind == "table" and by_place.logs[0].version == 1
