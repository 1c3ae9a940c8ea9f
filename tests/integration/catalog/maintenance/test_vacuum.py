"""Vacuum deletes files that no client can reach, and no file that a retained version or a running write may need."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.catalog.clock import Clock
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, NoSuchTable, Table, engine
from lakelog.catalog.core.logs import places
from lakelog.catalog.core.logs.cache import JointLogChange
from lakelog.catalog.core.parquet.ingest import written_files
from lakelog.catalog.engine import DataFile
from lakelog.catalog.keeping.maintenance.reachable import all_named
from lakelog.log import (
    CountingStore,
    Draft,
    InvalidInput,
    ObjectStore,
    WriteFenced,
    WriteRef,
    open_store,
    wait_for_background,
)
from lakelog.log.replay import LogReplay

NOW = dt.timedelta(0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock().govern(monkeypatch)


@pytest.fixture
def client(warehouse: str, clock: Clock) -> Callable[[], Catalog]:
    return lambda: clock.client(warehouse)


@pytest.fixture
def store(warehouse: str) -> ObjectStore:
    return open_store(warehouse)


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow().column("id").to_pylist())


def files_in(store: ObjectStore, part: str = "/data/") -> set[str]:
    return {key for key in store.list_after("") if part in key}


def begun(table: Table, *numbers: int) -> tuple[WriteRef, list[DataFile]]:
    """A write whose files are there, and not committed."""
    write = engine.begin_write(table)
    return write, written_files(table.table_head.tracked, table.metadata, write, rows(*numbers))


def vacuumed(catalog: Catalog, **how: Any) -> dict[str, Any]:
    return {answer.name: answer for answer in catalog.vacuum(dry_run=False, **how)}


def test_rows_with_which_a_transaction_created_a_table_stay_as_long_as_its_first_version(
    client: Callable[[], Catalog],
) -> None:
    catalog = client()
    with catalog.transaction() as transaction:
        transaction.create_table("t", SCHEMA).append(rows(1, 2))
    catalog.load_table("t").append(rows(3))
    catalog.load_table("t").truncate()
    catalog.vacuum(older_than=NOW, dry_run=False)
    assert ids(catalog.load_table("t", version=1)) == [1, 2]
    assert ids(catalog.load_table("t", version=2)) == [1, 2, 3]


def test_files_that_only_expired_versions_had_go_and_the_dry_run_names_exactly_these(
    catalog: Catalog, clock: Clock, store: ObjectStore
) -> None:
    table = catalog.create_table("t", SCHEMA).append(rows(1)).append(rows(2))
    table = table.overwrite(rows(3)).append(rows(4))
    clock.days_later(8)
    table = table.append(rows(5))
    assert catalog.vacuum("t")[0].files == 0  # every version can still be read
    catalog.expire("t", dry_run=False)
    files_before = files_in(store)
    [planned] = catalog.vacuum("t", keys=True)
    assert files_in(store) == files_before and table.refresh().version == 7
    [done] = catalog.vacuum("t", keys=True, dry_run=False)
    assert (done.files, done.size_bytes, done.keys) == (planned.files, planned.size_bytes, planned.keys)
    assert done.files == 2 and files_before - files_in(store) == {
        key for key in planned.keys if "/data/" in key
    }
    newest = next(table.refresh().history(limit=1))
    assert (newest.operation, newest.details["files"]) == ("vacuum", 2)
    assert ids(table.refresh()) == [3, 4, 5] == ids(table.at(version=6))
    assert ids(table.at(version=5)) == [3, 4]


def test_what_was_added_and_removed_in_retained_versions_stays_for_time_travel(
    catalog: Catalog, clock: Clock, store: ObjectStore
) -> None:
    table = catalog.create_table("t", SCHEMA).append(rows(1))
    table = table.truncate().append(rows(2)).truncate()
    engine.commit_stage(catalog, engine.stage(catalog, "replace", "t", SCHEMA))
    clock.days_later(30)
    begun(table.refresh(), 9)
    table.refresh().append(rows(3))
    clock.days_later(30)
    assert vacuumed(catalog)["`t`"].files == 1
    assert [ids(table.refresh().at(version=v)) for v in range(1, 8)] == [[], [1], [], [2], [], [], [3]]


def test_what_is_there_is_judged_page_by_page_and_deleted_in_several_requests(
    catalog: Catalog, clock: Clock, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakelog.catalog.keeping.maintenance.vacuum.PAGE", 3)
    monkeypatch.setattr("lakelog.catalog.keeping.maintenance.purge.DELETE_MAX", 2)
    table = catalog.create_table("t", SCHEMA)
    for number in range(20):
        table = table.append(rows(number))
        if number % 2:
            begun(table, 100 + number)
    store.put(f"{table.table_head.tracked.prefix}/data/foreign.txt", b"")
    table = table.delete([("id", "<", 5)])
    clock.days_later(9)
    table = table.append(rows(200))
    catalog.expire("t", dry_run=False)
    [planned] = catalog.vacuum("t", keys=True)
    assert (planned.files, planned.foreign) == (15, 1)
    files_before = files_in(store)
    [done] = catalog.vacuum("t", keys=True, dry_run=False)
    assert files_before - files_in(store) == {key for key in planned.keys if "/data/" in key}
    assert done.files == 15 and ids(table.refresh()) == [*range(5, 20), 200]
    assert len(files_in(store)) == 16 + 1


def test_many_files_in_sidecars_are_reachable_too(
    catalog: Catalog, clock: Clock, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakelog.catalog.core.logs.commits.SIDECAR_FROM_FILES", 1)
    table = catalog.create_table("t", SCHEMA, partition_by=["region"])
    write = engine.begin_write(table)
    parts = [rows(number, region=region) for number, region in enumerate(["EU", "US", "ASIA"])]
    files = written_files(table.table_head.tracked, table.metadata, write, pa.concat_tables(parts))
    table = engine.commit_write(table, write, "append", files).truncate()
    clock.days_later(9)
    begun(table, 5)
    table.append(rows(6))
    clock.days_later(9)
    assert vacuumed(catalog)["`t`"].files == 1
    assert ids(catalog.load_table("t", version=2)) == [0, 1, 2]


def test_a_write_under_way_keeps_its_files_until_it_is_older_than_the_limit(
    client: Callable[[], Catalog], clock: Clock, store: ObjectStore
) -> None:
    catalog, writer = client(), client()
    catalog.create_table("t", SCHEMA).append(rows(1))
    slow = writer.load_table("t")
    write, files = begun(slow, 2)
    clock.days_later(1)
    catalog.load_table("t").append(rows(3))
    answer = vacuumed(catalog)["`t`"]
    assert (answer.files, answer.waiting) == (0, 1)
    assert ids(engine.commit_write(slow, write, "append", files)) == [1, 2, 3]


def test_a_write_older_than_the_limit_is_refused_and_its_files_are_gone(
    client: Callable[[], Catalog], clock: Clock, store: ObjectStore
) -> None:
    catalog, writer = client(), client()
    catalog.create_table("t", SCHEMA).append(rows(1))
    slow = writer.load_table("t")
    write, files = begun(slow, 2)
    clock.days_later(1)
    fast = catalog.load_table("t").append(rows(3))
    newer, newer_files = begun(fast, 4)
    clock.days_later(4)
    answer = vacuumed(catalog)["`t`"]
    assert (answer.files, answer.fence, answer.waiting) == (1, 3, 1)
    with pytest.raises(WriteFenced, match="started at version 2, and writes older than version 3"):
        engine.commit_write(slow, write, "append", files)
    assert ids(engine.commit_write(fast, newer, "append", newer_files)) == [1, 3, 4]
    assert ids(writer.load_table("t").append(rows(5))) == [1, 3, 4, 5]


def test_an_idle_table_is_cleaned_by_the_second_run_after_the_limit(
    catalog: Catalog, clock: Clock, store: ObjectStore
) -> None:
    table = catalog.create_table("t", SCHEMA).append(rows(1))
    begun(table, 2)
    clock.days_later(10)
    # The write began from the current version: for all that the log knows, a second ago.
    first = vacuumed(catalog)["`t`"]
    assert (first.files, first.waiting, first.fence) == (0, 1, 2)
    assert vacuumed(catalog)["`t`"].waiting == 1 and table.refresh().version == 3
    clock.days_later(4)
    assert vacuumed(catalog)["`t`"].files == 1
    version = table.refresh().version
    clock.days_later(4)
    assert vacuumed(catalog)["`t`"].fence is None and table.refresh().version == version


def test_without_a_limit_every_write_that_has_begun_is_fenced_off(
    catalog: Catalog, store: ObjectStore
) -> None:
    table = catalog.create_table("t", SCHEMA).append(rows(1))
    write, files = begun(table, 2)
    assert vacuumed(catalog, older_than=NOW)["`t`"].files == 1
    with pytest.raises(WriteFenced):
        engine.commit_write(table, write, "append", files)
    assert ids(table.refresh().append(rows(3))) == [1, 3]


def test_an_append_that_lands_during_a_vacuum_keeps_its_files(
    client: Callable[[], Catalog], monkeypatch: pytest.MonkeyPatch, store: ObjectStore
) -> None:
    catalog, writer = client(), client()
    catalog.create_table("t", SCHEMA).append(rows(1))
    slow = writer.load_table("t")
    write, files = begun(slow, 2)
    begun(slow, 3)
    tracked_log = catalog.load_table("t").table_head.tracked
    commit = type(tracked_log).commit

    def late(self: Any, *arguments: Any, **named: Any) -> Any:
        if self is tracked_log:
            # Its file was listed and belonged to nothing; it is committed before the fence.
            engine.commit_write(slow, write, "append", files)
        return commit(self, *arguments, **named)

    monkeypatch.setattr(type(tracked_log), "commit", late)
    assert vacuumed(catalog, older_than=NOW)["`t`"].files == 1
    assert ids(catalog.load_table("t")) == [1, 2]


def test_a_file_that_a_fenced_off_writer_puts_after_the_listing_is_the_next_runs(
    client: Callable[[], Catalog], store: ObjectStore
) -> None:
    catalog, writer = client(), client()
    slow = catalog.create_table("t", SCHEMA).append(rows(1))
    write = engine.begin_write(writer.load_table("t"))
    begun(slow, 5)
    assert vacuumed(catalog, older_than=NOW)["`t`"].files == 1
    files = written_files(slow.table_head.tracked, slow.metadata, write, rows(2))
    with pytest.raises(WriteFenced):
        engine.commit_write(writer.load_table("t"), write, "append", files)
    assert vacuumed(catalog, older_than=NOW)["`t`"].files == 1
    assert ids(slow.refresh()) == [1]


def test_a_write_of_unknown_outcome_is_retried_with_success_after_a_vacuum(
    client: Callable[[], Catalog], store: ObjectStore
) -> None:
    catalog, writer = client(), client()
    table = catalog.create_table("t", SCHEMA)
    write, files = begun(writer.load_table("t"), 1)
    engine.commit_write(writer.load_table("t"), write, "append", files)
    begun(table.refresh(), 2)
    vacuumed(catalog, older_than=NOW)
    # The same write again, as by a writer that did not get the answer: it is there, once.
    assert ids(engine.commit_write(client().load_table("t"), write, "append", files)) == [1]


def test_a_file_is_committed_by_no_other_write_than_its_own(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA).append(rows(1))
    _, files = begun(table, 2)
    newer = table.append(rows(3))
    # Its name says that a fence may have given it up, while this write is behind no fence.
    with pytest.raises(InvalidInput, match="was not written by write"):
        engine.commit_write(newer, engine.begin_write(newer), "append", files)
    with pytest.raises(InvalidInput, match="which has no id"):
        engine.commit_write(newer, None, "append", files)
    stage = engine.stage(catalog, "replace", "t", SCHEMA)
    with pytest.raises(InvalidInput, match="was not written by write"):
        engine.commit_stage(catalog, stage, files)
    assert ids(newer.refresh()) == [1, 3]


def test_foreign_files_are_counted_and_stay(catalog: Catalog, store: ObjectStore) -> None:
    table = catalog.create_table("t", SCHEMA).append(rows(1))
    place = table.table_head.tracked.prefix
    foreign = [
        f"{place}/data/notes.txt",
        f"{place}/data/{0:020d}-foreign-1.parquet",
        f"{place}/data/sub/{0:020d}-{'a' * 26}-1.parquet",
        f"{place}/other/{0:020d}-{'a' * 26}-1.parquet",
        f"{place}/_log/sidecars/notes.bin",
    ]
    for key in foreign:
        store.put(key, b"mine")
    own = f"{place}/data/{0:020d}-{'a' * 26}-1.parquet"
    store.put(own, b"ours")
    answer = vacuumed(catalog, older_than=NOW)["`t`"]
    assert (answer.files, answer.foreign) == (1, 3)
    assert store.get(own) is None and all(store.get(key) == b"mine" for key in foreign)


def test_sidecars_of_attempts_that_lost_go_and_those_of_commits_to_come_stay(
    catalog: Catalog, store: ObjectStore
) -> None:
    table = catalog.create_table("t", SCHEMA).append(rows(1))
    place = f"{table.table_head.tracked.prefix}/_log/sidecars/"
    lost_text = f"{place}{2:020d}-{'a' * 26}-{'0' * 16}.bin"
    to_come = f"{place}{9:020d}-{'a' * 26}-{'0' * 16}.bin"
    for key in (lost_text, to_come):
        store.put(key, b"bulk")
    answer = vacuumed(catalog)["`t`"]
    assert (answer.objects, answer.object_bytes) == (1, 4)
    assert store.get(lost_text) is None and store.get(to_come) == b"bulk"


def test_sidecars_of_retained_commits_stay(
    catalog: Catalog, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakelog.catalog.core.logs.commits.SIDECAR_FROM_FILES", 1)
    table = catalog.create_table("t", SCHEMA, partition_by=["region"])
    write = engine.begin_write(table)
    parts = [rows(number, region=region) for number, region in enumerate(["EU", "US"])]
    files = written_files(table.table_head.tracked, table.metadata, write, pa.concat_tables(parts))
    engine.commit_write(table, write, "append", files).append(rows(7))
    files_before = files_in(store, "/sidecars/")
    assert len(files_before) == 1 and vacuumed(catalog, older_than=NOW)["`t`"].objects == 0
    assert files_in(store, "/sidecars/") == files_before
    assert ids(catalog.load_table("t", version=2)) == [0, 1]


def test_late_snapshots_and_manifests_of_expired_versions_go(
    client: Callable[[], Catalog], store: ObjectStore
) -> None:
    catalog = client()
    table = catalog.create_table("t", SCHEMA)
    for number in range(30):
        table = table.append(rows(number))
    wait_for_background()
    old = {
        key: store.get(key) for key in store.list_after("") if "/snapshots/" in key or "/manifests/" in key
    }
    catalog.expire("t", version=25, dry_run=False)
    again = {key for key in old if store.get(key) is None}
    for key in again:
        store.put(key, old[key] or b"")
    assert again and set(catalog.vacuum("t", keys=True)[0].keys) == again
    assert vacuumed(catalog)["`t`"].objects == len(again)
    assert not again & set(store.list_after(""))
    assert ids(client().load_table("t")) == list(range(30)) == ids(table.refresh())


def test_a_table_that_is_dropped_meanwhile_is_left_alone(
    client: Callable[[], Catalog], monkeypatch: pytest.MonkeyPatch, store: ObjectStore
) -> None:
    catalog = client()
    begun(catalog.create_table("t", SCHEMA).append(rows(1)), 2)
    tracked_log = catalog.load_table("t").table_head.tracked
    other_catalog, commit = client(), type(tracked_log).commit

    def late(self: Any, *arguments: Any, **named: Any) -> Any:
        if self is tracked_log:
            other_catalog.drop_table("t")
        return commit(self, *arguments, **named)

    files_before = files_in(store)
    with monkeypatch.context() as patch:
        patch.setattr(type(tracked_log), "commit", late)
        assert "dropped meanwhile" in vacuumed(catalog, older_than=NOW)["`t`"].error
    assert files_in(store) == files_before
    other_catalog.undrop_table("t")
    assert ids(catalog.load_table("t")) == [1]


def test_a_reopened_place_keeps_what_its_retained_versions_reach_and_takes_new_writes(
    client: Callable[[], Catalog], warehouse: str, store: ObjectStore
) -> None:
    catalog = client()
    place = f"{warehouse}/mine"
    old = catalog.create_table("t", SCHEMA, location=place).append(rows(1))
    begun(old, 2)
    assert vacuumed(catalog, older_than=NOW)["`t`"].files == 1
    catalog.drop_table("t")
    stage = engine.stage(catalog, "create", "t", SCHEMA, location=place)
    files = written_files(old.table_head.tracked, old.metadata, stage.write, rows(3))
    new = engine.commit_stage(catalog, stage, files)
    assert ids(new) == [3]
    assert vacuumed(catalog, older_than=NOW)["`t`"].files == 0 and len(files_in(store, "mine/data")) == 2
    catalog.expire("t", retain_last=1, dry_run=False)
    assert vacuumed(catalog, older_than=NOW)["`t`"].files == 1
    assert ids(client().load_table("t")) == [3]


def test_a_creation_at_a_place_that_was_fenced_meanwhile_is_refused(
    client: Callable[[], Catalog], warehouse: str
) -> None:
    catalog, creator = client(), client()
    place = f"{warehouse}/mine"
    old = catalog.create_table("t", SCHEMA, location=place).append(rows(1))
    catalog.drop_table("t")
    stage = engine.stage(creator, "create", "t", SCHEMA, location=place)
    files = written_files(old.table_head.tracked, old.metadata, stage.write, rows(3))
    other_table = catalog.create_table("u", SCHEMA, location=place)
    assert vacuumed(catalog, older_than=NOW)["`u`"].files == 1
    catalog.drop_table("u")
    with pytest.raises(WriteFenced):
        engine.commit_stage(creator, stage, files)
    assert not catalog.table_exists("t") and other_table.location == place
    assert ids(catalog.create_table("t", SCHEMA, location=place).append(rows(4))) == [4]


def test_a_table_can_be_vacuumed_by_its_place(catalog: Catalog, warehouse: str) -> None:
    begun(catalog.create_table("t", SCHEMA, location=f"{warehouse}/mine"), 1)
    [answer] = catalog.vacuum(location=f"{warehouse}/mine", older_than=NOW, dry_run=False)
    assert (answer.files, answer.name) == (1, f"{warehouse}/mine")
    with pytest.raises(NoSuchTable, match="no table at"):
        catalog.vacuum(location=f"{warehouse}/nowhere")


def test_what_a_table_without_work_costs_does_not_depend_on_its_size(
    warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores: list[CountingStore] = []

    def counting_store(url: str, options: dict[str, str]) -> ObjectStore:
        stores.append(CountingStore(open_store(url, options)))
        return stores[-1]

    table = Catalog(warehouse).create_table("t", SCHEMA)
    for number in range(30):
        table = table.append(rows(number))
    wait_for_background()
    monkeypatch.setattr(places, "open_store", counting_store)
    catalog = Catalog(warehouse)
    for is_expired, lists, gets in ((False, 4, 4), (True, 6, 5)):
        if is_expired:
            catalog.expire("t", retain_last=2, dry_run=False)
        catalog.load_table("t").to_arrow()
        stores[0].reset()
        assert catalog.vacuum("t")[0].files == 0
        assert stores[0].by_kind["list"] == lists and stores[0].by_kind["get"] <= gets
        stores[0].reset()
        assert catalog.expire("t", retain_last=50)[0].versions == 0
        assert stores[0].by_kind["list"] == 0 and stores[0].by_kind["get"] <= gets + 1


def test_what_cannot_be_meant_is_refused(catalog: Catalog) -> None:
    with pytest.raises(InvalidInput, match="older_than is .* 0 or more"):
        catalog.vacuum(older_than=dt.timedelta(days=-1))
    with pytest.raises(InvalidInput, match="dropped_older_than"):
        catalog.vacuum(dropped_older_than=dt.timedelta(days=-1))
    with pytest.raises(NoSuchTable):
        catalog.vacuum("nothing")


def test_a_dry_run_writes_nothing_not_even_an_end_to_what_stands_undecided(
    warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    catalog = Catalog(warehouse)
    for name in ("a", "b"):
        catalog.create_table(name, SCHEMA)
    store = open_store(warehouse)
    seen_texts: list[set[str]] = []

    def look() -> None:
        if not seen_texts:
            wait_for_background()
            keys_before = set(store.list_after(""))
            Catalog(warehouse).vacuum(older_than=dt.timedelta(0), dropped_older_than=dt.timedelta(0))
            seen_texts.append(set(store.list_after("")) - keys_before)

    changes = []
    for name in ("a", "b"):
        table = catalog.load_table(name)
        draft = Draft(events=({"event": "table-altered", "set": {"k": "v"}},))
        changes.append(
            JointLogChange(
                table.table_head.tracked,
                table.table_head.view,
                lambda view, passed, draft=draft: draft,  # type: ignore[misc]
            )
        )
    catalog._logs.commit_together(changes, validate=look)
    assert seen_texts == [set()]


def test_of_retained_versions_those_are_read_that_can_have_a_file_that_is_left(
    client: Callable[[], Catalog], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = client().create_table("t", SCHEMA)
    for number in range(30):
        table = table.append(rows(number))
    write, files = begun(table, 90)
    begun(table, 91)
    clock.days_later(9)
    table = engine.commit_write(table.append(rows(32)), write, "append", files).truncate()
    clock.days_later(9)
    table.append(rows(33))
    read: list[tuple[int, int]] = []
    real = LogReplay.effects

    def effects(replay: LogReplay[Any], first: int, last: int) -> Any:
        read.append((first, last))
        return real(replay, first, last)

    monkeypatch.setattr(LogReplay, "effects", effects)
    # All files are in older versions only, the first of them in version 2, but the one of a write that never ended.
    [answer] = client().vacuum("t")
    assert (answer.files, read) == (1, [(2, 35)])
    client().expire("t", version=31, dry_run=False)
    begun(client().load_table("t"), 92)
    read.clear()
    [answer] = client().vacuum("t")
    # Version 31 has all of the others.
    assert (answer.files, answer.waiting, read) == (1, 1, [(32, 36)])
    table = client().load_table("t")
    table = client().load_table("t").overwrite(rows(40))
    for number in range(10):
        table = table.append(rows(number))
    begun(table, 93)
    clock.days_later(9)
    client().expire("t", retain_last=3, dry_run=False)
    client().vacuum("t", dry_run=False)
    begun(client().load_table("t"), 94)
    read.clear()
    client().vacuum("t")
    assert read and min(read) > (40, 0)


def test_tags_of_the_same_files_are_held_once(client: Callable[[], Catalog], store: ObjectStore) -> None:
    table = client().create_table("t", SCHEMA)
    for number in range(3):
        table = table.append(rows(number)).create_tag(f"g{number}")
    table = table.delete("id = 0")
    tracked_log = client().load_table("t").table_head.tracked
    held = all_named(tracked_log, tracked_log.current())
    assert sum(part.num_rows for part in held) == len(files_in(store)) == 3
