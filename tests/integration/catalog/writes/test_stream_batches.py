"""Batches of streams: each is committed to a table once, however often it is asked for."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from tests.patience import barrier, wait_until

from lakelog.catalog import Catalog, CommitConflict, StreamBatch, Table, engine
from lakelog.catalog.errors import BatchCommitted
from lakelog.log import InvalidInput, MemoryStore


@pytest.fixture
def table(catalog):
    return catalog.create_table("t", pa.schema([("x", pa.int64())]))


def rows(*values: int) -> pa.Table:
    return pa.table({"x": pa.array(values, pa.int64())})


def batch(number: int, stream: str = "s", *, from_checkpoint: bool = False) -> StreamBatch:
    return StreamBatch(stream=stream, number=number, from_checkpoint=from_checkpoint)


def values(catalog) -> list[int]:
    return sorted(catalog.load_table("t").to_arrow()["x"].to_pylist())


def test_a_batch_that_is_retried_is_not_added_twice(catalog, table):
    once = table.append(rows(1), batch=batch(0))
    again = table.append(rows(1), batch=batch(0))
    assert (once.version, again.version) == (2, 2)
    assert table.append(rows(2), batch=batch(1)).version == 3
    assert table.append(rows(0), batch=batch(0)).version == 3
    assert values(catalog) == [1, 2]


def test_streams_do_not_know_of_each_other(catalog, table):
    for stream in ("s", "t"):
        table.append(rows(1), batch=batch(7, stream))
    assert values(catalog) == [1, 1]


def test_the_history_shows_which_batch_a_commit_was(catalog, table):
    entry = next(table.append(rows(1), batch=batch(3, "hourly")).history())
    assert entry.operation == "append, stream"
    assert (entry.details["stream"], entry.details["batch"], entry.details["added_rows"]) == ("hourly", 3, 1)


def test_a_checkpoint_that_is_older_than_the_table_is_refused(catalog, table):
    for number in range(3):
        table = table.append(rows(number), batch=batch(number, from_checkpoint=True))
    assert table.append(rows(2), batch=batch(2, from_checkpoint=True)).version == table.version
    with pytest.raises(InvalidInput, match="the checkpoint is older than the table"):
        table.append(rows(1), batch=batch(1, from_checkpoint=True))


@pytest.mark.parametrize("name", ["", "x" * 257])
def test_a_stream_needs_a_name_of_bounded_length(name):
    with pytest.raises(InvalidInput, match="1 to 256 bytes"):
        batch(0, name)


@pytest.mark.parametrize("number", [-1, 2**63, True])
def test_a_batch_has_a_number(number):
    with pytest.raises(InvalidInput, match="not a valid batch number"):
        batch(number)


def test_a_batch_stays_committed_through_expiry_snapshots_and_a_new_process(table, tmp_path, catalog):
    table = table.append(rows(1), batch=batch(0))
    for number in range(2, 40):
        table = table.append(rows(number))
    catalog.expire("t", retain_last=1, dry_run=False)
    fresh = Catalog(catalog.warehouse)
    assert fresh.load_table("t").append(rows(1), batch=batch(0)).row_count == 39


def test_a_batch_stays_committed_when_its_rows_are_rolled_back_or_replaced(catalog, table):
    table = table.append(rows(1), batch=batch(0))
    table = table.rollback_to_version(1)
    assert table.append(rows(1), batch=batch(0)).row_count == 0
    stage = engine.stage(catalog, "replace", "t", pa.schema([("x", pa.int64())]))
    engine.commit_stage(catalog, stage, ())
    assert catalog.load_table("t").append(rows(1), batch=batch(0)).row_count == 0


def test_a_batch_stays_committed_when_the_table_is_dropped_and_restored(catalog, table):
    table.append(rows(1), batch=batch(0))
    catalog.drop_table("t")
    catalog.undrop_table("t")
    assert catalog.load_table("t").append(rows(1), batch=batch(0)).row_count == 1


def test_another_table_of_the_same_name_knows_of_no_batches(catalog, table):
    table.append(rows(1), batch=batch(0))
    catalog.drop_table("t")
    assert catalog.create_table("t", table.schema).append(rows(1), batch=batch(0)).row_count == 1


def test_of_two_writers_of_the_same_batch_one_gets_an_error(catalog, table):
    write = engine.begin_write(table)
    table.append(rows(1), batch=batch(0))
    with pytest.raises(BatchCommitted):
        engine.commit_write(table, write, "append", (), batch=batch(0))
    assert values(catalog) == [1]


def test_a_transaction_writes_a_batch_to_several_tables_or_to_none(catalog, table):
    catalog.create_table("u", table.schema)
    for _ in range(2):
        with catalog.begin() as tx:
            for name in "tu":
                tx.load_table(name).append(rows(5), batch=batch(0))
    assert [catalog.load_table(name).row_count for name in "tu"] == [1, 1]


def test_a_transaction_conflicts_with_a_writer_that_commits_its_batch_meanwhile(catalog, table):
    catalog.create_table("u", table.schema)
    tx = catalog.begin()
    for name in "tu":
        tx.load_table(name).append(rows(5), batch=batch(0))
    catalog.load_table("u").append(rows(5), batch=batch(0))
    with pytest.raises(CommitConflict, match="a batch of a stream that it writes has been committed"):
        tx.commit()
    assert catalog.load_table("t").row_count == 0


def test_batches_of_many_queries_share_versions_and_each_is_there_once(
    catalog: Catalog, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many streaming queries of one session of Spark do, whose commits are made by threads of one process."""
    queries, batches = 6, 4
    put = MemoryStore.put_if_absent
    sharing, met = table.table_head.tracked.log.sharing, threading.Event()

    def held_flag(self: MemoryStore, key: str, data: bytes) -> bool:
        if "/_log/" in key and not met.is_set():
            # The first version waits until another query has a batch for the next one.
            wait_until(lambda: sharing.waiting, "that another query commits")
            met.set()
        return put(self, key, data)

    monkeypatch.setattr(MemoryStore, "put_if_absent", held_flag)
    together = barrier(queries)

    def query(number: int) -> None:
        own = catalog.load_table("t")
        for i in range(batches):
            together.wait()
            # Sent again, as after an answer that was lost.
            for _ in range(2):
                own = own.append(rows(10 * number + i), batch=batch(i, f"q{number}"))

    with ThreadPoolExecutor(queries) as threads:
        list(threads.map(query, range(queries)))
    finished_table = catalog.load_table("t").refresh()
    assert values(catalog) == [10 * number + i for number in range(queries) for i in range(batches)]
    assert finished_table.version - 1 < queries * batches
    entries = [entry for entry in finished_table.history() if entry.operation == "append, stream"]
    assert sorted((entry.details["stream"], entry.details["batch"]) for entry in entries) == [
        (f"q{number}", i) for number in range(queries) for i in range(batches)
    ]
