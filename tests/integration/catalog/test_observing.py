"""What a hook sees of operations: each once, with its requests, whatever threads make them; and that it breaks none."""

from __future__ import annotations

import gc
import logging
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, NoSuchTable, Observation, Table, engine
from lakelog.catalog.keeping.upkeep import automatic
from lakelog.catalog.keeping.upkeep.automatic import wait_for_upkeep
from lakelog.log import CountingStore, LogOptions, wait_for_background

ANY_SHARE = 1e9
"""Upkeep may take all the time that it needs: on a slow machine a tenth may be too little for its first look."""


class Seen(list[Observation]):
    """Records, with those of the background apart."""

    def __init__(self) -> None:
        super().__init__()
        self.background: list[Observation] = []

    def __call__(self, seen: Observation) -> None:
        (self.background if seen.is_background else self).append(seen)

    def only(self) -> Observation:
        [seen_observation] = self
        self.clear()
        return seen_observation


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def observed(warehouse: str, seen: Seen) -> Catalog:
    catalog = Catalog(warehouse, observe=seen)
    catalog.create_namespace("a")
    catalog.create_table("a.t", SCHEMA)
    wait_for_background()
    seen.clear()
    seen.background.clear()
    return catalog


def counted_store(catalog: Catalog) -> CountingStore:
    """Count the requests of a catalog by another piece than the one that its records come from."""
    stores = engine.places(catalog).stores
    store = stores[engine.places(catalog).warehouse] = CountingStore(stores[engine.places(catalog).warehouse])
    return store


def test_what_an_engine_asks_for_is_one_record_too(observed: Catalog, seen: Seen) -> None:
    table = observed.load_table("a.t")
    seen.only()
    finished_table = engine.commit_write(table, engine.begin_write(table), "truncate", ())
    assert (seen[0].operation, seen.only().name) == ("commit_write", "`a`.`t`")
    engine.token_at(observed, finished_table.location)
    assert (seen[0].operation, seen.only().name) == ("token_at", finished_table.location)


def test_each_call_is_one_record_that_names_its_method_and_its_table(observed: Catalog, seen: Seen) -> None:
    table = observed.load_table("a.t")
    assert (seen[0].operation, seen.only().name) == ("load_table", "`a`.`t`")
    table = table.append(rows(1, 2))
    observation = seen.only()
    assert (observation.operation, observation.name, observation.error) == ("append", "`a`.`t`", None)
    assert (observation.attempts, observation.rebases, observation.waits) == (
        1,
        0,
        0,
    ) and observation.duration_s > 0
    table.delete("id = 1")  # it reads, writes a deletion vector, and commits
    assert seen.only().operation == "delete"
    table.merge(rows(2, 3), on="id").when_not_matched_insert_all().execute()
    assert seen.only().operation == "merge"
    observed.expire(table="a.t")
    assert (seen[0].operation, seen.only().name) == ("expire", "`a`.`t`")
    with observed.transaction() as tx:
        tx.load_table("a.t").append(rows(4))
    assert [each_observation.operation for each_observation in seen] == [
        "begin",
        "load_table",
        "append",
        "commit",
    ]


def test_an_operation_that_fails_is_a_record_with_the_kind_of_its_error(
    observed: Catalog, seen: Seen
) -> None:
    with pytest.raises(NoSuchTable):
        observed.load_table("a.none")
    observation = seen.only()
    assert (observation.operation, observation.error, observation.requests) == (
        "load_table",
        "no-such-table",
        {"get": 2},
    )


def costs() -> list[tuple[str, Callable[[Catalog], Any]]]:
    def table(catalog: Catalog) -> Table:
        return catalog.load_table("a.t")

    return [
        ("load_table", table),
        ("append", lambda catalog: table(catalog).append(rows(7))),
        ("delete", lambda catalog: table(catalog).delete("id = 1")),
        ("update", lambda catalog: table(catalog).update({"region": "'x'"}, "id > 1")),
        ("upsert", lambda catalog: table(catalog).upsert(rows(3, 400), on="id")),
        ("plan", lambda catalog: table(catalog).plan("id = 2")),
        ("scan", lambda catalog: table(catalog).to_arrow()),
        ("history", lambda catalog: list(table(catalog).history())),
        ("read_changes", lambda catalog: table(catalog).changes(1).to_arrow()),
        ("compact", lambda catalog: table(catalog).compact()),
        ("fsck", lambda catalog: catalog.fsck(deep=True)),
        ("vacuum", lambda catalog: catalog.vacuum(dry_run=False)),
        ("expire", lambda catalog: catalog.expire(retain_last=1, dry_run=False)),
        ("audit", lambda catalog: list(catalog.audit())),
        ("create_table", lambda catalog: catalog.create_table("a.u", SCHEMA)),
        ("dropped", lambda catalog: catalog.drop_table("a.t") and catalog.dropped(recursive=True)),
    ]


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_requests_and_bytes_are_those_that_a_counting_store_counts(
    kind: str, tmp_path: Path, warehouse: str
) -> None:
    """Also those that are made side by side, by libraries, and after the operation has returned."""
    place = warehouse if kind == "memory" else str(tmp_path / "lake")
    first = Catalog(place)
    first.create_namespace("a")
    table = first.create_table("a.t", SCHEMA, partition_by=["region"])
    for number in range(12):
        table = table.append(rows(number, number + 100, region=f"r{number}"))
    wait_for_background()
    for operation, run in costs():
        seen = Seen()
        catalog = Catalog(place, observe=seen, log_options=LogOptions(snapshot_every_versions=5))
        store = counted_store(catalog)
        run(catalog)
        wait_for_background()
        assert operation in {observation.operation for observation in seen}
        every = [*seen, *seen.background]
        requests = sum((Counter(each.requests) for each in every), Counter())
        assert requests == +store.by_kind, operation
        assert sum(each.bytes_written for each in every) == store.bytes_written, operation
        if "open" not in requests:  # the other store does not see what is read of opened objects
            assert sum(each.bytes_read for each in every) == store.bytes_read, operation


def test_bytes_of_files_that_arrow_reads_by_its_own_threads_are_counted(tmp_path: Path, seen: Seen) -> None:
    catalog = Catalog(str(tmp_path), observe=seen)
    table = catalog.create_table("t", pa.schema({"text": pa.string()}))
    texts = [f"{number * 2654435761 % 2**32:08x}" * 3 for number in range(100_000)]
    table = table.append(pa.table({"text": texts}))
    size = table.size_bytes
    assert size > 400_000
    seen.clear()
    table.to_arrow()
    observation = seen.only()
    assert observation.operation == "scan" and size <= observation.bytes_read < 1.2 * size


def test_a_read_is_a_record_once_it_ends_and_not_before(observed: Catalog, seen: Seen) -> None:
    table = observed.load_table("a.t").append(rows(1)).append(rows(2))
    seen.clear()
    reader = table.to_reader()
    next(reader)
    assert not seen
    observed.table_exists("a.t")  # between two batches: no part of the read
    assert seen.only().operation == "table_exists"
    reader.read_all()
    assert seen.only().requests == {"open": 2}
    abandoned_reader = table.to_reader()
    del abandoned_reader
    gc.collect()
    assert seen.only().operation == "scan"


def test_a_rebase_and_the_race_before_it_are_counted(observed: Catalog, warehouse: str, seen: Seen) -> None:
    table = observed.load_table("a.t")
    Catalog(warehouse).load_table("a.t").append(rows(1))
    seen.clear()
    table.append(rows(2))
    observation = seen.only()
    assert (observation.attempts, observation.rebases) == (2, 1)
    assert observation.requests == {"put": 1, "put_if_absent": 2, "get": 1}


def test_threads_that_share_versions_have_a_record_each_and_no_request_is_counted_twice(
    observed: Catalog, warehouse: str, seen: Seen
) -> None:
    catalog = Catalog(warehouse, observe=seen)
    store = counted_store(catalog)
    table = catalog.load_table("a.t")
    wait_for_background()
    store.reset()
    seen.clear()
    seen.background.clear()
    threads = [threading.Thread(target=table.append, args=(rows(number),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_for_background()
    assert [observation.operation for observation in seen] == ["append"] * 8
    assert all(observation.attempts or observation.waits for observation in seen)
    assert sum((Counter(each.requests) for each in [*seen, *seen.background]), Counter()) == +store.by_kind


def test_what_goes_on_in_the_background_is_a_record_of_its_own(warehouse: str, seen: Seen) -> None:
    catalog = Catalog(warehouse, observe=seen, log_options=LogOptions(snapshot_every_versions=1))
    catalog.create_namespace("a")
    wait_for_background()
    assert [observation.operation for observation in seen] == ["create_namespace"]
    assert {observation.operation for observation in seen.background} == {"background"}
    assert sum(observation.requests.get("put", 0) for observation in seen.background) >= 2


def test_upkeep_by_a_writer_is_a_record_of_the_background(
    observed: Catalog, warehouse: str, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(automatic, "SHARE", ANY_SHARE)
    observed.create_table("a.kept", SCHEMA, properties={"lakelog.maintenance": "auto"})
    wait_for_background()
    catalog = Catalog(warehouse, observe=seen)
    store = counted_store(catalog)
    seen.clear()
    seen.background.clear()
    table = catalog.load_table("a.kept")
    for number in range(20):
        table = table.append(rows(number))
        wait_for_upkeep()
    wait_for_background()
    kept_background = [
        observation for observation in seen.background if observation.name.endswith(table.location)
    ]
    assert "compact" in {entry.operation for entry in table.refresh().history()} and kept_background
    assert sum((Counter(each.requests) for each in [*seen, *seen.background]), Counter()) == +store.by_kind


def test_a_hook_that_fails_breaks_nothing_and_is_logged_once(
    warehouse: str, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(seen: Observation) -> None:
        raise ValueError("to s3://user:secret@there")

    catalog = Catalog(warehouse, observe=broken)
    catalog.create_namespace("a")
    catalog.create_table("a.t", SCHEMA).append(rows(1))
    assert catalog.load_table("a.t").row_count == 1
    [record] = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "a hook for operations failed" in record.message and "secret" not in record.message


def test_what_a_hook_does_itself_is_not_observed(warehouse: str) -> None:
    seen = []

    def looking(each: Observation) -> None:
        seen.append(each.operation)
        catalog.list_tables()

    catalog = Catalog(warehouse, observe=looking, log_options=LogOptions(snapshot_every_versions=0))
    catalog.create_namespace("a")
    assert seen == ["create_namespace"]


def test_no_record_and_no_line_of_a_log_has_a_secret(
    observed: Catalog, seen: Seen, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "lakelog")
    with pytest.raises(Exception, match="keys"):
        observed.table_at("s3://AKIAABCDEFGHIJKLMNOP:hunter2@bucket/t")
    observed.load_table("a.t").append(rows(1))
    assert "hunter2" not in f"{seen[0]}" and seen[0].error == "invalid-input"
    assert caplog.records and "hunter2" not in caplog.text
    assert any(record.name == "lakelog.log.requests" for record in caplog.records)


def test_without_a_hook_nothing_is_measured(
    client: Callable[[], Catalog], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operation costs a look at one member, and a request one at a variable."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("something was measured")

    monkeypatch.setattr("lakelog.catalog.core.logs.observing.WatchedOperation.__init__", refuse)
    monkeypatch.setattr("lakelog.log.costs.tally.CostTally.request", refuse)
    catalog = client()
    catalog.create_namespace("a")
    catalog.create_table("a.t", SCHEMA).append(rows(1)).to_arrow()
