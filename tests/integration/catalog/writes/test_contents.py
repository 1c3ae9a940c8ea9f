"""Changes of a table's rows by one or several writers, and their conflicts by the matrix."""

from __future__ import annotations

import threading
from collections.abc import Callable

import polars as pl
import pyarrow as pa
import pytest
from pyarrow.dataset import dataset
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, CommitConflict, Table, col, engine
from lakelog.catalog.engine import DataFile
from lakelog.log import InvalidInput, wait_for_background

Client = Callable[[], Catalog]


def ids(table: Table) -> list[int]:
    return sorted(table.refresh().to_arrow()["id"].to_pylist())


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.create_table("t", SCHEMA, partition_by=["region"])


@pytest.fixture
def other(client: Client, table: Table) -> Table:
    """The same table, held by another process."""
    return client().load_table("t")


def test_rows_come_back_as_they_went_in(table: Table, other: Table) -> None:
    table.append(pa.concat_tables([rows(1, 2), rows(3, region="US"), rows(4, region="EU")]))
    seen_table = other.refresh()
    assert ids(seen_table) == [1, 2, 3, 4]
    assert (seen_table.row_count, seen_table.file_count) == (4, 2)
    assert seen_table.scan(columns=["amount"], filter=col("region") == "US").to_arrow().to_pydict() == {
        "amount": [3.0]
    }
    assert seen_table.scan(filter=[("id", ">", 3)]).to_arrow()["id"].to_pylist() == [4]
    assert seen_table.scan(limit=3).to_arrow().num_rows == 3
    assert seen_table.scan(limit=10**20).to_arrow().num_rows == seen_table.scan().to_arrow().num_rows
    with pytest.raises(InvalidInput, match="no columns"):
        seen_table.scan(columns=[])
    assert seen_table.scan(filter=col("region") == "US").plan().num_rows == 1
    assert seen_table.scan().to_reader().read_all().num_rows == 4


def test_appends_of_a_reader_a_batch_and_a_stream_are_taken(table: Table) -> None:
    table.append(rows(1).to_reader())
    table.append(rows(2).to_batches()[0])

    class Stream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return rows(3).__arrow_c_stream__(requested_schema)

    table.append(Stream())
    assert ids(table) == [1, 2, 3]
    with pytest.raises(InvalidInput, match="list"):
        table.append([1, 2])
    lazy = pl.DataFrame(rows(4)).lazy()
    data_set = dataset(rows(4))
    for data, method in ((lazy, "collect"), (data_set, "to_table"), (data_set.scanner(), "to_reader")):
        with pytest.raises(InvalidInput, match=rf"give its \.{method}\(\)"):
            table.append(data)
        with pytest.raises(InvalidInput, match=rf"give its \.{method}\(\)"):
            table.upsert(data, on=["id"])
        with pytest.raises(InvalidInput, match=rf"give its \.{method}\(\)"):
            table.merge(data, on="target.id = source.id").when_not_matched_insert_all().execute()
    table.append(data_set.scanner().to_reader())
    assert ids(table) == [1, 2, 3, 4]


def test_data_that_does_not_fit_changes_nothing(table: Table) -> None:
    with pytest.raises(InvalidInput, match="colour"):
        table.append(pa.table({"id": [1], "colour": ["red"]}))
    with pytest.raises(InvalidInput, match="id"):
        table.append(pa.table({"id": ["one"], "region": ["EU"], "amount": [1.0]}))
    assert table.refresh().version == table.version


def test_concurrent_appends_rebase_without_reading_data(table: Table, other: Table) -> None:
    table.append(rows(1))
    appended_table = other.append(rows(2))
    assert appended_table.version == 3
    assert next(iter(appended_table.history())).rebased
    assert ids(table) == [1, 2]


def test_an_append_goes_over_a_changed_schema_and_over_changed_partitioning(
    table: Table, other: Table
) -> None:
    table.alter(
        [
            {"change": "add-column", "name": ["note"], "type": "string", "nullable": True},
            {"change": "rename-column", "name": ["amount"], "new_name": "total"},
            {
                "change": "set-partitioning",
                "fields": [{"transform": "bucket", "args": [4], "column": ["id"]}],
            },
        ]
    )
    other.append(rows(1))
    assert table.refresh().to_arrow().to_pydict() == {
        "id": [1],
        "region": ["EU"],
        "total": [1.0],
        "note": [None],
    }
    table.refresh().append(pa.table({"id": [2], "region": ["US"], "total": [2.0], "note": ["x"]}))
    assert table.refresh().scan(filter=col("id") == 2).to_arrow()["note"].to_pylist() == ["x"]


def test_an_append_does_not_go_over_a_replaced_table(catalog: Catalog, other: Table) -> None:
    engine.commit_stage(catalog, engine.stage(catalog, "replace", "t", SCHEMA))
    with pytest.raises(CommitConflict, match="replaced the table") as caught:
        other.append(rows(1))
    assert caught.value.version == 2
    assert "engine=test" in str(caught.value)


def test_an_overwrite_by_filter_replaces_what_matches(table: Table, other: Table) -> None:
    table.append(pa.concat_tables([rows(1), rows(2, region="US")]))
    other.refresh().overwrite(rows(3, 4, region="US"), col("region") == "US")
    assert ids(table) == [1, 3, 4]
    table.refresh().overwrite(rows(9))
    assert ids(table) == [9]


def test_an_overwrite_conflicts_with_rows_added_where_it_replaces_only(table: Table, other: Table) -> None:
    table.append(rows(1))
    other = other.refresh()
    write = engine.begin_write(other)
    table.append(rows(2, region="US"))
    assert engine.commit_write(other, write, "overwrite", (), filter=col("region") == "EU").version == 4
    assert ids(table) == [2]
    stale = table.refresh()
    write = engine.begin_write(stale)
    other.append(rows(5, region="US"))
    with pytest.raises(CommitConflict, match="added files"):
        engine.commit_write(stale, write, "overwrite", (), filter=col("region") == "US")
    assert ids(table) == [2, 5]


def test_partitions_are_overwritten_by_what_is_written_into_them(table: Table, other: Table) -> None:
    table = table.append(pa.concat_tables([rows(1), rows(2, region="US"), rows(3, region="JP")]))
    table.overwrite_partitions(pa.concat_tables([rows(10), rows(30, region="JP")]))
    assert ids(other) == [2, 10, 30]


def test_overwritten_partitions_conflict_with_rows_added_there_only(table: Table, other: Table) -> None:
    table.append(rows(1))
    stale = other.refresh()
    write = engine.begin_write(stale)
    table.append(rows(2, region="US"))
    assert engine.commit_write(stale, write, "overwrite-partitions", ()).version == 4


def test_a_truncate_leaves_nothing_and_its_history_everything(table: Table) -> None:
    full = table.append(rows(1, 2))
    empty = full.truncate()
    assert (empty.row_count, empty.file_count, empty.size_bytes) == (0, 0, 0)
    assert ids(table) == []
    assert empty.at(version=full.version).to_arrow().num_rows == 2


def test_a_delete_removes_whole_files_by_their_partition_or_statistics_and_rows_else(table: Table) -> None:
    table.append(rows(1, 2)).append(rows(5, 6)).append(rows(7, region="US"))
    assert engine.can_delete(table.refresh(), col("region") == "US")
    assert not engine.can_delete(table.refresh(), col("id") == 1)
    table.refresh().delete(col("region") == "US")
    assert ids(table) == [1, 2, 5, 6]
    table.refresh().delete(col("id") >= 5)
    assert ids(table) == [1, 2]
    table.refresh().delete(col("id") == 1)
    assert ids(table) == [2], "and else rows of a file"


def test_a_delete_is_decided_anew_over_rows_added_meanwhile(table: Table, other: Table) -> None:
    table.append(rows(1))
    other.refresh()
    table.append(rows(2))
    other.delete(col("region") == "EU")
    assert ids(table) == []


def test_many_files_in_one_commit_go_into_a_sidecar(table: Table, other: Table) -> None:
    names = [f"r{n:03}" for n in range(300)]
    data = pa.table({"id": list(range(300)), "region": names, "amount": [0.5] * 300}, schema=SCHEMA)
    version = table.append(data).version
    assert ids(other) == list(range(300))
    assert other.refresh().scan(filter=col("region") == "r007").plan().num_rows == 1
    table.truncate()
    assert ids(other) == []
    assert other.refresh().at(version=version).file_count == 300


def test_files_without_their_partition_are_refused(table: Table) -> None:
    file = DataFile(path="data/x.parquet", size_bytes=1, rows=1)
    with pytest.raises(InvalidInput, match=r"data/x\.parquet"):
        engine.commit_write(table, engine.begin_write(table), "append", [file])
    assert table.refresh().version == table.version


def test_a_writer_that_only_appends_keeps_its_manifests_few(client: Client, table: Table) -> None:
    for n in range(120):
        client().load_table("t").append(rows(n))
    wait_for_background()
    log = client()._logs.table(client().load_table("t").table_head.tracked.location).log
    manifests = [key for key in log.store.list_after(log.keys.manifests)]
    root = log.store.get(log.keys.latest)
    assert root is not None
    assert root.count(b'"sha256"') <= 3, "small manifests are merged, also by writers that did not write them"
    assert manifests


def test_an_unknown_operation_is_refused(table: Table) -> None:
    with pytest.raises(InvalidInput, match="upsert"):
        engine.commit_write(table, engine.begin_write(table), "upsert", ())


def test_every_acknowledged_append_of_many_threads_is_there_once(client: Client, table: Table) -> None:
    def work(start: int) -> None:
        mine = client().load_table("t")
        for n in range(start, start + 10):
            mine = mine.append(rows(n))

    threads = [threading.Thread(target=work, args=(start,)) for start in range(0, 60, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ids(table) == list(range(60))
    assert table.refresh().version == 61


def test_an_overwrite_starts_from_the_version_it_was_asked_of(
    catalog: Catalog, table: Table, other: Table
) -> None:
    seen_table = table.append(rows(1))
    other.append(rows(2))
    catalog.table_exists("t")
    with pytest.raises(CommitConflict, match="added files"):
        seen_table.overwrite(seen_table.to_arrow())
    assert ids(table) == [1, 2]


@pytest.mark.parametrize("replace", [False, True])
def test_deleted_rows_are_not_brought_back(
    catalog: Catalog, table: Table, other: Table, replace: bool
) -> None:
    seen_table = table.append(rows(1)).append(rows(2, region="US"))
    stage = engine.stage(catalog, "replace", "t", SCHEMA)
    other.refresh().delete(col("region") == "US")
    with pytest.raises(CommitConflict, match="removed files"):
        engine.commit_stage(catalog, stage) if replace else seen_table.overwrite(seen_table.to_arrow())
    assert ids(table) == [1]
    assert seen_table.overwrite(rows(5), col("region") == "EU").version == 5
    assert ids(table) == [5]


def test_a_filter_means_the_columns_that_had_its_names_then(catalog: Catalog) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    table = catalog.create_table("u", schema)
    table = table.append(pa.table({"a": [1], "b": [2]})).append(pa.table({"a": [2], "b": [1]}))
    write = engine.begin_write(table)
    renames = [("a", "x"), ("b", "a"), ("x", "b")]
    table.alter([{"change": "rename-column", "name": [old], "new_name": new} for old, new in renames])
    engine.commit_write(table, write, "overwrite", (), filter=col("a") == 1)
    assert table.refresh().to_arrow().to_pydict() == {"b": [2], "a": [1]}


def test_a_filter_without_a_use_and_an_overwrite_without_a_filter_are_refused(table: Table) -> None:
    with pytest.raises(InvalidInput, match="filter"):
        engine.commit_write(table, engine.begin_write(table), "append", (), filter=col("nonsense") == 1)
    with pytest.raises(InvalidInput, match="filter"):
        engine.commit_write(table, engine.begin_write(table), "overwrite", ())
    with pytest.raises(InvalidInput, match="twice"):
        table.scan(columns=["id", "ID"])
