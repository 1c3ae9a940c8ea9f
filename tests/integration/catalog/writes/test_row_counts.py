"""How many rows a change says that it has changed: in the table that it returns, in its history, beside others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lakelog.catalog import Catalog, RowCounts, StreamBatch, Table, col, engine
from lakelog.log.errors import InvalidInput

SCHEMA = pa.schema({"id": pa.int64(), "v": pa.int64()})
COPYING = {f"lakelog.write.{operation}.mode": "copy-on-write" for operation in ("delete", "update", "merge")}
NOTHING = RowCounts()


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "v": [0] * len(ids)}, schema=SCHEMA)


@pytest.fixture(params=[{}, COPYING], ids=["marked", "copied"])
def table(catalog: Catalog, request: pytest.FixtureRequest) -> Table:
    return catalog.create_table("t", SCHEMA, properties=request.param).append(rows(1, 2, 3, 4, 5))


def copied(table: Table, count: int) -> int:
    return count if table.properties else 0


def newest(table: Table) -> RowCounts | None:
    return next(table.history()).rows


def test_each_change_returns_how_many_rows_it_has_changed(table: Table) -> None:
    assert table.rows_changed == newest(table) == RowCounts(inserted=5)
    for change, expected in (
        (lambda t: t.update({"v": 1}, col("id") <= 2), RowCounts(updated=2, copied=copied(table, 3))),
        (lambda t: t.delete(col("id") == 5), RowCounts(deleted=1, copied=copied(table, 4))),
        (lambda t: t.upsert(rows(4, 6), "id"), RowCounts(inserted=1, updated=1, copied=copied(table, 3))),
        (lambda t: t.delete(col("id") > 0), RowCounts(deleted=5)),
        (lambda t: t.append(rows(1, 2)), RowCounts(inserted=2)),
        (lambda t: t.overwrite(rows(7), col("id") == 1), RowCounts(inserted=1, deleted=1, copied=copied(table, 1))),
        (lambda t: t.overwrite(rows(8, 9)), RowCounts(inserted=2, deleted=2)),
        (lambda t: t.truncate(), RowCounts(deleted=2)),
    ):  # fmt: skip
        table_before, table = table, change(table)
        counts = table.rows_changed
        assert counts == newest(table) == expected, next(table.history()).operation
        assert counts is not None and counts.inserted is not None and counts.deleted is not None
        assert table.row_count == table_before.row_count + counts.inserted - counts.deleted


def test_what_changes_nothing_says_so_and_what_moves_rows_says_nothing(table: Table) -> None:
    for same_table in (
        table.delete(col("id") == 77),
        table.update({"v": 1}, col("id") == 77),
        table.upsert(rows(), "id"),
        table.upsert(rows(1), "id").truncate().truncate(),
    ):
        assert same_table.rows_changed == NOTHING
    table = table.append(rows(1)).append(rows(2))
    moved_table = table.compact()
    assert moved_table.rows_changed is newest(moved_table) is None
    assert table.rollback_to_version(2).rows_changed is None
    assert table.refresh().rows_changed is table.at(version=1).rows_changed is None


def test_a_delete_that_met_another_one_counts_its_own_rows(
    client: Callable[[], Catalog], table: Table
) -> None:
    mine, other_table = table, client().load_table("t")
    other_table.delete(col("id") <= 2)
    finished_table = mine.delete(col("id") <= 3)
    assert (
        finished_table.rows_changed == newest(finished_table) == RowCounts(deleted=1, copied=copied(table, 2))
    )


def test_an_update_that_finds_its_rows_elsewhere_counts_them_all_the_same(
    client: Callable[[], Catalog], table: Table
) -> None:
    table = table.append(rows(6, 7))
    other_table = client().load_table("t").compact()
    other_table.delete(col("id") == 7)
    finished_table = table.update({"v": 1}, col("id") <= 2)
    assert finished_table.version == other_table.version + 2
    assert finished_table.rows_changed == newest(finished_table) == RowCounts(updated=2)
    assert finished_table.row_count == 6


def test_steps_of_a_transaction_have_their_numbers_and_the_commit_their_sum(
    catalog: Catalog, table: Table
) -> None:
    with catalog.transaction() as transaction:
        step = transaction.load_table("t").append(rows(6, 7))
        assert step.rows_changed == RowCounts(inserted=2)
        step = step.update({"v": 1}, col("id") >= 6)
        assert step.rows_changed == RowCounts(updated=2)
        assert step.delete(col("id") == 7).rows_changed == RowCounts(deleted=1, copied=copied(table, 1))
    finished_table = table.refresh()
    assert newest(finished_table) == RowCounts(inserted=2, updated=2, deleted=1, copied=copied(table, 1))
    assert finished_table.row_count == 6


def test_a_retry_says_what_the_first_try_did(catalog: Catalog, table: Table) -> None:
    token = catalog.token("t")
    first = table.update({"v": 1}, col("id") <= 2, token=token)
    again = table.update({"v": 1}, col("id") <= 2, token=token)
    assert again.version == first.version
    assert again.rows_changed == first.rows_changed == RowCounts(updated=2, copied=copied(table, 3))
    batch = StreamBatch(stream="s", number=1)
    assert table.append(rows(8), batch=batch).rows_changed == RowCounts(inserted=1)
    assert table.append(rows(8), batch=batch).rows_changed == NOTHING


def test_threads_that_share_versions_have_their_own_numbers(catalog: Catalog) -> None:
    catalog.create_table("t", SCHEMA)
    counts: dict[int, RowCounts | None] = {}

    def append(count: int) -> None:
        counts[count] = catalog.load_table("t").append(rows(*range(count))).rows_changed

    threads = [threading.Thread(target=append, args=(count,)) for count in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == {count: RowCounts(inserted=count) for count in range(1, 9)}
    entries = [entry for entry in catalog.load_table("t").history() if entry.rows is not None]
    assert sorted(entry.rows.inserted or 0 for entry in entries if entry.rows) == list(range(1, 9))


def test_branches_count_their_own_changes(table: Table) -> None:
    branch = table.create_branch("b").at(ref="b").update({"v": 1}, col("id") == 1)
    assert branch.rows_changed == RowCounts(updated=1, copied=copied(table, 4))
    assert newest(branch) == branch.rows_changed


@pytest.mark.parametrize(
    ("operation", "numbers", "message"),
    [
        ("update", {"updated": 3}, "are not those of this update, which takes"),
        ("update", {"inserted": 1, "updated": 1}, "only a merge inserts"),
        ("delete", {"updated": 1}, "only a merge and an update update some"),
        ("merge", {"inserted": 1}, "give both numbers"),
        ("merge", {"inserted": -1, "updated": 1}, "are not those of this merge"),
    ],
)
def test_numbers_that_cannot_be_are_refused(
    table: Table, operation: str, numbers: dict[str, Any], message: str
) -> None:
    file = table.plan().to_pylist()[0]["path"]
    with pytest.raises(InvalidInput, match=message):
        engine.commit_rows(table, engine.begin_write(table), operation, removed=[file], **numbers)


def test_an_engine_that_does_not_count_leaves_numbers_unknown(table: Table) -> None:
    file = table.plan().to_pylist()[0]["path"]
    finished_table = engine.commit_rows(table, engine.begin_write(table), "merge", removed=[file])
    assert finished_table.rows_changed == RowCounts(inserted=None, updated=None, deleted=None, copied=None)
    rows = finished_table.inspect("history").read_all().slice(0, 2).to_pylist()
    names = [f"rows_{name}" for name in ("inserted", "updated", "deleted", "copied")]
    assert [[row[name] for name in names] for row in rows] == [[None] * 4, [5, 0, 0, 0]]
