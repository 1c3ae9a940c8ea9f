"""Health of real tables is right, reads metadata alone, and names commands that mend the fault."""

from __future__ import annotations

import datetime as dt
import shlex
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from tests.integration.catalog.audit.audited_shop import Objects

from lakelog.catalog import Catalog, InvalidInput, NoSuchTable, engine

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "name": [f"n{id}" for id in ids]}, schema=SCHEMA)


def orders(catalog: Catalog, **options: Any) -> Any:
    catalog.create_namespace("shop")
    return catalog.create_table("shop.orders", SCHEMA, **options)


def test_health_counts_what_there_is(catalog: Catalog) -> None:
    table = orders(catalog, cluster_by=["id"])
    for id in range(4):
        table = table.append(rows(id, id + 2))
    size_bytes = table.size_bytes
    late = Catalog(catalog.warehouse).load_table("shop.orders")
    table = table.append(rows(9)).delete("id = 9")
    late.append(rows(10))
    report = late.health()
    assert (report.version, report.files, report.rows, report.small_files) == (8, 5, 9, 5)
    assert sum(size.files for size in report.sizes) == 5
    (key,) = report.keys
    # Spans 0-2, 1-3, 2-4, 3-5 and 10: three files may hold 2 and 3.
    assert (key.column, key.files, key.deepest) == ("id", 5, 3) and key.overlap == 3.0
    assert report.old_versions == 7 and (report.past_files, report.read_from) == (1, 1)
    assert 0 < report.past_bytes < size_bytes
    assert (report.last_day.commits, report.last_day.upkeep) == (8, 0)
    assert (report.last_day.rebased, report.last_day.passed) == (1, 2)
    assert report.policy["lakelog.maintenance"] == "on-demand" and report.problem is None


def test_advice_says_what_a_compaction_reads_and_writes_and_it_does(catalog: Catalog) -> None:
    table = orders(catalog)
    for id in range(6):
        table = table.append(rows(id))
    size_bytes_before = table.size_bytes
    (advice,) = table.health().advice
    assert advice.action == "compact" and advice.command == "lakelog compact shop.orders"
    assert (advice.reads_files, advice.writes_files, advice.saves_files) == (6, 1, 5)
    assert advice.reads_bytes == advice.writes_bytes == size_bytes_before
    table.compact()
    (after,) = table.health().advice
    assert after.level == "good" and table.health().last_day.upkeep == 1
    assert (
        "No file needs to be rewritten. 7 old versions are kept" in after.what and "7 days ago" in after.what
    )
    assert after.command == "lakelog expire shop.orders --retain-last 1 --apply"
    table.set_properties({"lakelog.maintenance.keep-for": "never"})
    (after,) = table.health().advice
    assert after.what.endswith("8 old versions are kept, as the policy says.") and after.command is None


def test_health_is_read_from_metadata_alone(catalog: Catalog) -> None:
    table = orders(catalog)
    for id in range(3):
        table = table.append(rows(id))
    store, prefix = engine.places(catalog).open(table.table_head.tracked.location)
    keys = [key for key, _ in store.list_sizes(f"{prefix}/data/")]
    store.delete(keys)
    assert len(keys) == 3
    assert Catalog(catalog.warehouse).load_table("shop.orders").health().files == 3


def test_vacuum_is_counted_on_request_only(catalog: Catalog) -> None:
    table = orders(catalog).append(rows(1)).overwrite(rows(2))
    catalog.expire("shop.orders", retain_last=1, dry_run=False)
    assert table.health().unreachable_files is None
    report = table.health(listing=True)
    reported = catalog.vacuum("shop.orders", older_than=dt.timedelta(days=3))
    assert report.unreachable_files == sum(each.files + each.objects for each in reported)
    assert report.unreachable_bytes == sum(each.size_bytes + each.object_bytes for each in reported)


def test_health_of_a_namespace_has_each_table_and_hides_none_for_a_damaged_one(catalog: Catalog) -> None:
    table = orders(catalog).append(rows(1))
    catalog.create_table("shop.other", SCHEMA).append(rows(2))
    assert [each_health.name for each_health in catalog.health("shop")] == [
        "`shop`.`orders`",
        "`shop`.`other`",
    ]
    assert len(catalog.health()) == 2 and len(catalog.health(location=table.location)) == 1
    objects = Objects(catalog, "shop.orders")
    objects.put(2, objects.store.get(objects.keys.commit(2))[:-20])
    damaged_health, health = Catalog(catalog.warehouse).health("shop")
    assert damaged_health.problem and not health.problem and health.rows == 1
    with pytest.raises(NoSuchTable):
        catalog.health("shop.nothing")
    with pytest.raises(InvalidInput):
        catalog.health("shop", commits=0)


def test_a_policy_is_inherited_and_its_commands_follow_it(catalog: Catalog) -> None:
    table = orders(catalog, properties={"lakelog.write.target-file-size-bytes": "1024"})
    table = table.append(rows(*range(100))).delete("id < 20")
    assert table.file_count == 1 and table.size_bytes > 1024
    assert [advice_item.action for advice_item in table.health().advice] == [None]
    catalog.alter_namespace("shop", set={"lakelog.maintenance.deleted-ratio": "0.1"})
    (advice,) = table.health().advice
    assert advice.command == "lakelog compact shop.orders --deleted-ratio 0.1"
    assert advice.sql and advice.sql.endswith(", deleted_ratio => 0.1)")
    assert shlex.split(advice.command)[:2] == ["lakelog", "compact"]
    assert advice.writes_bytes and advice.reads_bytes and advice.writes_bytes < advice.reads_bytes


def test_a_policy_that_contradicts_what_it_inherits_is_named(catalog: Catalog) -> None:
    table = orders(catalog, properties={"lakelog.maintenance.keep-for": "2d"})
    catalog.alter_namespace("shop", set={"lakelog.maintenance.vacuum-age": "3d"})
    problem = table.health().problem
    assert (
        problem and "keep-for of `shop`.`orders` is 2d" in problem and "of the namespace shop, 3d" in problem
    )
    table = table.alter([{"change": "set-property", "key": "lakelog.maintenance.keep-for", "value": "30d"}])
    assert table.health().problem is None
    assert table.health().policy["lakelog.maintenance.keep-for"] == "30d"


def test_properties_that_contradict_each_other_are_refused_together(catalog: Catalog) -> None:
    contradiction = {"lakelog.maintenance.keep-for": "1d", "lakelog.maintenance.vacuum-age": "3d"}
    with pytest.raises(InvalidInput, match="shorter than lakelog.maintenance.vacuum-age, 3d"):
        orders(catalog, properties=contradiction)
    table = catalog.create_table("shop.orders", SCHEMA)
    with pytest.raises(InvalidInput, match="shorter than"):
        table.alter(
            [{"change": "set-property", "key": key, "value": value} for key, value in contradiction.items()]
        )
    with pytest.raises(InvalidInput, match="shorter than"):
        catalog.alter_namespace("shop", set=contradiction)
    catalog.alter_namespace("shop", set={"lakelog.maintenance.keep-for": "1d"})
    with pytest.raises(InvalidInput, match="shorter than"):
        catalog.alter_namespace("shop", set={"lakelog.maintenance.vacuum-age": "3d"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("lakelog.maintenance", "yes"),
        ("lakelog.maintenance.deleted-ratio", "1.5"),
        ("lakelog.maintenance.deleted-ratio", "-0.1"),
        ("lakelog.maintenance.keep-for", "0d"),
        ("lakelog.maintenance.keep-for", "soon"),
        ("lakelog.maintenance.vacuum-age", ""),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(catalog: Catalog, key: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=key):
        orders(catalog, properties={key: value})
    with pytest.raises(InvalidInput, match=key):
        catalog.alter_namespace("shop", set={key: value})


def test_a_picture_has_the_same_advice(catalog: Catalog) -> None:
    table = orders(catalog)
    for id in range(5):
        table = table.append(rows(id))
    assert catalog.picture("shop.orders").facts.health == table.health().advice
    assert msgspec.to_builtins(table.health())["advice"][0]["action"] == "compact"
