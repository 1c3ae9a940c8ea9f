"""Backups and restores that die at each of their writes, and random warehouses that come back as they were."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Sequence

import pytest
from tests.integration.catalog.backups.test_backups import check_whole, ids
from tests.integration.catalog.conftest import SCHEMA, rows
from tests.integration.catalog.test_crashes import Death, DyingStore, quick

from lakelog.catalog import Catalog, NoSuchTable, engine
from lakelog.catalog.keeping.backups import restoring
from lakelog.log import LogOptions, ObjectStore
from lakelog.log.stores import MemoryStore


def new() -> str:
    return f"memory://{uuid.uuid4().hex}"


class Dying(DyingStore):
    """One of several stores that die together: `left` is how many writes they still make."""

    def __init__(self, inner: ObjectStore, left: list[int], after: bool) -> None:
        super().__init__(inner, 0, after)
        self.left = left

    def list_folders(self, prefix: str) -> list[str]:
        return self.inner.list_folders(prefix)

    def _write(self, request: Callable[[], object]) -> object:
        self.at = self.left[0]
        try:
            return super()._write(request)
        finally:
            self.left[0] = self.at


def dying(warehouse: str, also: str, writes: int, after: bool) -> Catalog:
    def one_by_one(works: Sequence[Callable[[], None]]) -> None:
        for work in works:
            work()

    options = LogOptions(in_parallel=one_by_one, in_background=lambda name, work: None)
    catalog = Catalog(warehouse, log_options=options)
    remaining_writes = [writes]
    for url in (warehouse, also):
        engine.places(catalog).stores[url] = Dying(MemoryStore.named(url), remaining_writes, after)
    return catalog


def small() -> str:
    warehouse = new()
    catalog = Catalog(warehouse)
    catalog.create_namespace("n")
    catalog.create_table("n.a", SCHEMA).append(rows(1, 2)).delete("id = 1")
    catalog.clone("n.a", "c")
    return warehouse


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_backup_that_dies_at_any_write_goes_on(after: bool) -> None:
    writes = 0
    while True:
        warehouse, place, target = small(), new(), new()
        try:
            dying(warehouse, place, writes, after).backup(place)
            has_died = False
        except Death:
            has_died = True
        catalog = quick(warehouse)
        catalog.load_table("n.a").append(rows(50))
        backup = catalog.backup(place)
        if not has_died:
            assert writes > 10
            return
        assert not catalog.cuts(), f"death at write {writes}"
        assert not catalog.verify_backup(place).problems
        restored_catalog = Catalog(target)
        restored_catalog.restore_warehouse(place)
        # With the cut of the run that died, where it had one.
        assert ids(restored_catalog, "n.a") in ([2], [2, 50]), backup
        check_whole(restored_catalog)
        writes += 1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_restore_that_dies_at_any_write_goes_on(after: bool) -> None:
    warehouse, place = small(), new()
    Catalog(warehouse).save_cut("monday")  # no vacuum purges what it has
    Catalog(warehouse).backup(place)
    writes = 0
    while True:
        target = new()
        try:
            dying(target, new(), writes, after).restore_warehouse(place)
            has_died = False
        except Death:
            has_died = True
        restored_catalog = quick(target)
        if not has_died:
            assert writes > 10
            return
        if engine.places(restored_catalog).store(target).get("_lakelog_restoring.json") or not list(
            engine.places(restored_catalog).store(target).list_after("")
        ):
            restored_catalog.restore_warehouse(place)
        assert ids(restored_catalog, "n.a") == [2] and ids(restored_catalog, "c") == [2], (
            f"death at write {writes}"
        )
        assert all(
            "://" not in path for path in restored_catalog.load_table("c").plan()["path"].to_pylist()
        ), writes
        assert not restored_catalog.dropped(), writes
        check_whole(restored_catalog)
        writes += 1


def test_a_restore_beside_one_that_dies_leaves_the_mark_of_that_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its look for a mark and its own mark, the other one comes as far as to a warehouse with a clone."""
    warehouse, place, target = small(), new(), new()
    Catalog(warehouse).backup(place)
    put, started_flags = MemoryStore.put_if_absent, list[bool]()

    def other_first(self: MemoryStore, key: str, data: bytes) -> bool:
        if key == "_lakelog_restoring.json" and not started_flags:
            started_flags.append(True)
            with monkeypatch.context() as meanwhile, pytest.raises(Death):
                meanwhile.setattr(restoring, "end_expiry", died)
                quick(target).restore_warehouse(place)
        return put(self, key, data)

    def died(*given: object) -> None:
        raise Death

    monkeypatch.setattr(MemoryStore, "put_if_absent", other_first)
    quick(target).restore_warehouse(place)
    MemoryStore.named(warehouse)._objects = {}
    assert ids(quick(target), "n.a") == ids(quick(target), "c") == [2]


def lived(seed: int) -> Catalog:
    """Return a warehouse that has had a random life."""
    chance, catalog = random.Random(seed), Catalog(new())
    catalog.create_namespace("n")
    names = ["a", "n.b", "n.c"]
    for name in names:
        catalog.create_table(name, SCHEMA)
    numbers = [0]

    def some() -> list[int]:
        numbers[0] += 3
        return list(range(numbers[0] - 3, numbers[0]))

    for step in range(25):
        name = chance.choice(names)
        if not catalog.table_exists(name):
            catalog.undrop_table(name)
        table = catalog.load_table(name)
        match chance.randrange(11):
            case 0 | 1 | 2:
                table.append(rows(*some()))
            case 3:
                table.delete(f"id < {chance.randrange(numbers[0] + 1)}")
            case 4:
                table.overwrite(rows(*some()))
            case 5:
                table.compact()
            case 6:
                table.create_tag(f"t{step}")
            case 7:
                catalog.drop_table(name)
            case 8:
                catalog.expire(name, retain_last=3, dry_run=False)
            case 9:
                with catalog.transaction() as transaction:
                    for each_name in names:
                        if transaction.table_exists(each_name):
                            transaction.load_table(each_name).append(rows(*some()))
            case 10:
                try:
                    catalog.clone(name, f"clone{step}")
                except NoSuchTable:
                    continue  # the owner of its files was dropped
                names.append(f"clone{step}")
    return catalog


@pytest.mark.parametrize("seed", range(8))
def test_a_random_warehouse_comes_back_with_the_rows_of_every_version(seed: int) -> None:
    source, place, target = lived(seed), new(), new()
    backup = source.backup(place)
    restored_catalog = Catalog(target)
    restored_catalog.restore_warehouse(place)
    check_whole(restored_catalog)
    for at in backup.backup.tables:
        name = ".".join(at.name)
        table = source.load_table(name)
        assert ids(restored_catalog, name) == ids(source, name)
        if at.name in backup.backup.clones:
            continue
        for version in range(1, table.version + 1):
            try:
                expected = ids(source, name, version=version)
            except Exception as error:
                with pytest.raises(type(error)):
                    ids(restored_catalog, name, version=version)
                continue
            assert ids(restored_catalog, name, version=version) == expected
        for ref in table.refs:
            assert ids(restored_catalog, name, ref=ref) == ids(source, name, ref=ref)
