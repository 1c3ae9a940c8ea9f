"""Maintenance by policy: it does what is due and nothing else, stops if it has to, and loses nothing."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.catalog.clock import Clock
from tests.integration.catalog.test_crashes import Death, DyingStore
from tests.unit.log.transactions import one_by_one

from lakelog.catalog import Catalog, InvalidInput, NoSuchTable, Unsupported, engine
from lakelog.catalog.core.logs import places
from lakelog.catalog.core.parquet.ingest import written_files
from lakelog.catalog.engine.upkeep import plan_upkeep
from lakelog.catalog.keeping.maintenance import Severity, vacuum_logs
from lakelog.log import LogOptions, open_store
from lakelog.log.errors import StorageError

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "name": [f"n{id}" for id in ids]}, schema=SCHEMA)


def filled(catalog: Catalog, files: int = 9, name: str = "shop.orders", **options: Any) -> Any:
    if catalog.list_namespaces() == []:
        catalog.create_namespace("shop")
    table = catalog.create_table(name, SCHEMA, **options)
    for id in range(files):
        table = table.append(rows(id))
    return table


def ids(table: Any) -> list[int]:
    rows: list[int] = sorted(table.refresh().to_arrow()["id"].to_pylist())
    return rows


def test_small_files_of_about_one_size_are_joined_and_then_nothing_is_due(catalog: Catalog) -> None:
    table = filled(catalog, 9)
    version = table.version
    (planned,) = catalog.maintain("shop.orders", dry_run=True)
    assert (planned.compacted.read_files, table.refresh().version) == (9, version)
    (done,) = catalog.maintain("shop.orders")
    assert (done.compacted.read_files, done.compacted.written_files) == (9, 1) and not done.is_left
    assert (table.refresh().version, table.refresh().file_count) == (version + 1, 1)
    assert next(table.refresh().history(limit=1)).operation == "compact" and ids(table) == list(range(9))
    (again,) = catalog.maintain("shop.orders")
    assert again.compacted.read_files == 0 and table.refresh().version == version + 1


def test_few_files_wait_for_others_so_that_no_row_is_rewritten_again_and_again(catalog: Catalog) -> None:
    table = filled(catalog, 0)
    read = 0
    for id in range(64):
        table = table.refresh().append(rows(id))
        read += sum(each.compacted.read_files for each in catalog.maintain("shop.orders"))
    # 64 files in eight rounds of eight, and the eight of these once more where they count as one size.
    assert read <= 72 and table.refresh().file_count <= 16 and ids(table) == list(range(64))


def test_a_file_with_many_deleted_rows_is_rewritten_by_itself(catalog: Catalog) -> None:
    table = filled(catalog, 0).append(rows(*range(10))).delete("id < 4")
    (done,) = catalog.maintain("shop.orders")
    assert (done.compacted.deleted_rows, done.compacted.written_files) == (4, 1)
    assert ids(table) == [4, 5, 6, 7, 8, 9]


def test_nothing_expires_and_nothing_is_deleted_unless_a_policy_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock().govern(monkeypatch)
    catalog = clock.client(f"memory://{uuid.uuid4().hex}")
    table = filled(catalog, 3).overwrite(rows(9))
    clock.days_later(100)
    (done,) = catalog.maintain()
    assert (done.versions, done.freed_files) == (0, 0) and table.at(version=1).to_arrow().num_rows == 0
    catalog.alter_namespace("shop", set={"lakelog.maintenance.keep-for": "30d"})
    done, names = catalog.maintain()
    assert done.error is None and done.versions == 4 and done.freed_files == 0
    # The namespace's own log has a version for each change of its properties too.
    assert (names.kind, names.name, names.versions) == ("namespace", "`shop`", 1)
    assert catalog.maintain()[0].versions == 0
    catalog.alter_namespace("shop", set={"lakelog.maintenance.vacuum-age": "1d"})
    (planned,) = catalog.maintain(dry_run=True)
    (done,) = catalog.maintain()
    assert planned.freed_files == done.freed_files >= 3 and ids(table) == [9]


def test_a_vacuum_is_due_once_in_the_time_of_its_age_and_after_an_expiry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock().govern(monkeypatch)
    catalog = clock.client(f"memory://{uuid.uuid4().hex}")
    listed_numbers: list[int] = []
    real = vacuum_logs

    def vacuum(*given: Any) -> Any:
        listed_numbers.append(day)
        return real(*given)

    monkeypatch.setattr("lakelog.catalog.keeping.upkeep.maintain.vacuum_logs", vacuum)
    policy = {"lakelog.maintenance.vacuum-age": "2d"}
    table = filled(catalog, 1, properties=policy)
    for day in range(40):
        if day < 20:
            table = table.refresh().append(rows(day))
        clock.days_later(0.5)
        assert [each.error for each in catalog.maintain("shop.orders")] == [None]
        if day == 30:
            head = table.refresh().table_head
            written_files(head.tracked, head.metadata, head.begin_write(), rows(99))
        clock.days_later(0.5)
        catalog.maintain("shop.orders")
    # Each four days or so while it is written to, and once for the last of it.
    assert 4 <= len(listed_numbers) <= 9 and max(listed_numbers) <= 25, listed_numbers
    table = table.refresh().append(rows(100))
    day = 50
    clock.days_later(5)
    (done,) = catalog.maintain("shop.orders")
    assert done.freed_files == 1 and listed_numbers[-1] == 50
    catalog.alter_namespace("shop", set={"lakelog.maintenance.keep-for": "3d"})
    (done,) = catalog.maintain("shop.orders")
    assert done.versions > 0 and len(listed_numbers) >= 6 and ids(table) == sorted([0, *range(20), 100])


def test_an_idle_table_and_namespace_expire_once_and_have_no_version_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock().govern(monkeypatch)
    catalog = clock.client(f"memory://{uuid.uuid4().hex}")
    table = filled(catalog, 3)
    keep = {"lakelog.maintenance.keep-for": "3d", "lakelog.maintenance.vacuum-age": "1d"}
    catalog.alter_namespace("shop", set=keep)
    clock.days_later(1)
    table = table.refresh().overwrite(rows(7))
    expired = []
    for _ in range(30):
        clock.days_later(1)
        expired.append(sum(each.versions for each in catalog.maintain()))
    # What was replaced on the second day went by itself, though an expiry came after it.
    assert sum(expired) >= 5 and not any(expired[10:])
    assert len(list(table.refresh().history())) <= 5 and ids(table) == [7]
    versions = [table.refresh().version, *(entry.version for entry in catalog.history("shop"))]
    clock.days_later(30)
    assert not any(each.versions for each in catalog.maintain())
    assert versions == [table.refresh().version, *(entry.version for entry in catalog.history("shop"))]


def test_off_leaves_a_table_alone_and_a_table_s_own_word_counts_more(catalog: Catalog) -> None:
    table = filled(catalog, 9)
    other = filled(catalog, 9, "shop.other", properties={"lakelog.maintenance": "on-demand"})
    catalog.alter_namespace("shop", set={"lakelog.maintenance": "off"})
    left, done = catalog.maintain("shop")
    assert left.note == "lakelog.maintenance is off" and table.refresh().file_count == 9
    assert done.compacted.read_files == 9 and other.refresh().file_count == 1


def test_a_limit_of_bytes_stops_it_and_the_next_run_goes_on(catalog: Catalog) -> None:
    tables = [filled(catalog, 9, f"shop.t{at}") for at in range(3)]
    runs = 0
    while any(each.is_left for each in catalog.maintain(limit_bytes=1)) and runs < 10:
        runs += 1
    assert runs >= 2 and [table.refresh().file_count for table in tables] == [1, 1, 1]
    for limit in ({"limit_bytes": 0}, {"limit_time": dt.timedelta(0)}):
        with pytest.raises(InvalidInput, match="limit"):
            catalog.maintain(**limit)


def test_a_limit_of_time_begins_nothing_more() -> None:
    seconds = [0.0]

    def monotonic_s() -> float:
        seconds[0] += 1.0
        return seconds[0]

    catalog = Catalog(f"memory://{uuid.uuid4().hex}", log_options=LogOptions(monotonic_s=monotonic_s))
    table = filled(catalog, 9)
    (left,) = catalog.maintain(limit_time=dt.timedelta(milliseconds=500))
    assert left.is_left and table.refresh().file_count == 9


def test_only_the_actions_that_are_named_are_done(catalog: Catalog) -> None:
    filled(catalog, 9)
    (done,) = catalog.maintain("shop.orders", actions=("expire", "vacuum"))
    assert done.compacted.read_files == 0 and not done.is_left
    with pytest.raises(InvalidInput, match="compact, cluster, statistics, expire, vacuum"):
        catalog.maintain(actions=("count",))
    (due,) = plan_upkeep(catalog)
    assert (due.path, due.compacts, due.statistics) == (("shop", "orders"), True, ())
    assert catalog.maintain("shop.orders", actions=("compact",))[0].compacted.read_files == 9
    assert plan_upkeep(catalog) == []


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ({"limit_bytes": "1GB"}, "number of bytes"),
        ({"limit_bytes": 0.5}, "number of bytes"),
        ({"limit_bytes": True}, "number of bytes"),
        ({"limit_bytes": 0}, "leaves nothing"),
        ({"limit_time": 5}, "not a time"),
        ({"limit_time": dt.timedelta(0)}, "leaves no time"),
    ],
)
def test_a_limit_that_is_none_is_refused(catalog: Catalog, limit: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        catalog.maintain(**limit)


def test_it_stops_in_the_middle_of_a_step_where_it_is_asked_to_and_leaves_nothing(catalog: Catalog) -> None:
    table = filled(catalog, 9)
    store, prefix = engine.places(catalog).open(table.table_head.tracked.location)
    sizes_before = set(store.list_sizes(f"{prefix}/data/"))
    asked_flags = iter([False, False, False, True])
    (left,) = catalog.maintain(stopped=lambda: next(asked_flags, True))
    assert left.is_left and left.error is None and table.refresh().file_count == 9
    assert set(store.list_sizes(f"{prefix}/data/")) == sizes_before


def test_a_table_that_fails_hides_no_other(catalog: Catalog) -> None:
    filled(catalog, 9, properties={"lakelog.maintenance.keep-for": "1d"})
    other = filled(catalog, 9, "shop.other", properties={"lakelog.maintenance.keep-for": "9d"})
    catalog.alter_namespace("shop", set={"lakelog.maintenance.vacuum-age": "2d"})
    failed, done = catalog.maintain()
    assert failed.error and "shorter than" in failed.error and done.error is None
    assert other.refresh().file_count == 1
    with pytest.raises(NoSuchTable):
        catalog.maintain("shop.nothing")
    with pytest.raises(Unsupported):
        catalog.begin().maintain()


def test_two_at_once_cost_work_and_never_rows(catalog: Catalog) -> None:
    table = filled(catalog, 9)
    other_catalog = Catalog(catalog.warehouse)
    came: list[Any] = []

    def meanwhile() -> bool:
        if not came:
            came.append(None)  # before the other begins, which asks nothing
            came.extend(other_catalog.maintain("shop.orders"))
        return False

    (done,) = catalog.maintain("shop.orders", stopped=meanwhile)
    assert done.error is None and ids(table) == list(range(9)) and table.refresh().file_count == 1
    assert came[1].compacted.read_files == 9
    assert not catalog.fsck(deep=True).of(Severity.DAMAGE)


def test_a_writer_that_deletes_meanwhile_does_not_fail_and_keeps_its_delete(catalog: Catalog) -> None:
    table = filled(catalog, 0)
    for id in range(9):
        table = table.append(rows(id, id + 100))
    writer = Catalog(catalog.warehouse).load_table("shop.orders")
    deleted: list[Any] = []
    calls: list[None] = []

    def meanwhile() -> bool:
        calls.append(None)
        if len(calls) > 2 and len(deleted) < 3:  # in the first steps, that is, before the commit
            deleted.append(writer.refresh().delete(f"id = {len(deleted)}"))
        return False

    (done,) = catalog.maintain("shop.orders", stopped=meanwhile)
    assert done.error is None and len(deleted) == 3
    assert ids(table) == [*range(3, 9), *range(100, 109)]
    assert (done.compacted.lost, done.compacted.read_files) == (0, 9)


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_those_of_the_writers_whatever_they_change_meanwhile(seed: int) -> None:
    chance = random.Random(seed)
    catalog = Catalog(f"memory://{uuid.uuid4().hex}")
    table = filled(catalog, 0)
    other_catalog = Catalog(catalog.warehouse)
    model: set[int] = set()

    def change() -> None:
        writer, new = (
            other_catalog.load_table("shop.orders"),
            {chance.randrange(1000) for _ in range(4)} - model,
        )
        match chance.choice(("append", "append", "append", "delete", "compact", "maintain")):
            case "append" if new:
                writer.append(rows(*new))
                model.update(new)
            case "delete" if model:
                removed_model = chance.sample(sorted(model), min(len(model), 3))
                writer.delete(f"id IN ({', '.join(map(str, removed_model))})")
                model.difference_update(removed_model)
            case "compact":
                writer.compact()
            case "maintain":
                other_catalog.maintain("shop.orders")

    def meanwhile() -> bool:
        if chance.random() < 0.3:
            change()
        return False

    for _ in range(6):
        for _ in range(12):
            change()
        (done,) = catalog.maintain("shop.orders", stopped=meanwhile)
        assert done.error is None and ids(table) == sorted(model), f"seed {seed}"
    assert not catalog.fsck(deep=True).of(Severity.DAMAGE)


class FullDisk(DyingStore):
    """Has no room for a data file."""

    def put(self, key: str, data: bytes) -> None:
        if "/data/" in key:
            raise StorageError(f"cannot write {key}: no space left on device", location=key)
        super().put(key, data)


def test_a_full_disk_is_reported_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = f"memory://{uuid.uuid4().hex}"
    table = filled(Catalog(warehouse), 9)
    with monkeypatch.context() as patch:
        patch.setattr(
            places, "open_store", lambda url, options: FullDisk(open_store(url, options), 1 << 30, True)
        )
        (failed,) = Catalog(warehouse).maintain()
    assert failed.error and "no space left" in failed.error
    assert ids(table) == list(range(9)) and table.refresh().file_count == 9
    assert Catalog(warehouse).maintain()[0].compacted.read_files == 9


@pytest.mark.parametrize("after", [False, True])
def test_killed_at_any_write_it_is_finished_by_the_next(monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    policy = {"lakelog.maintenance.keep-for": "2d", "lakelog.maintenance.vacuum-age": "1d"}
    clock, at = Clock().govern(monkeypatch), 0
    while True:
        warehouse = f"memory://{uuid.uuid4().hex}"
        options = LogOptions(clock_us=clock, in_background=lambda name, work: None, in_parallel=one_by_one)
        table = filled(Catalog(warehouse, log_options=options), 9, properties=policy).delete("id = 4")
        clock.days_later(20)
        with monkeypatch.context() as patch:
            patch.setattr(
                places,
                "open_store",
                lambda url, options, at=at, after=after: DyingStore(open_store(url, options), at, after),
            )
            try:
                Catalog(warehouse, log_options=options).maintain()
                has_died = False
            except Death:
                has_died = True
        again = Catalog(warehouse, log_options=options)
        (done,) = again.maintain()
        remaining_numbers = [0, 1, 2, 3, 5, 6, 7, 8]
        assert done.error is None and ids(table) == remaining_numbers and table.refresh().file_count == 1, at
        assert ids(Catalog(warehouse).load_table("shop.orders")) == remaining_numbers
        if not has_died:
            break
        at += 1
    assert at > 8
