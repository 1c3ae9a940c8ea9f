"""Changes of rows against commits since they were prepared: some go on, and others fail."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from tests.integration.catalog.rows_changed import (
    compacted,
    deleted,
    deletes_of,
    files_of,
    paths_of,
    rewritten,
    rows,
    rows_of,
    two_files,
    updated,
)

from lakelog.catalog import Catalog, CommitConflict, NoSuchTable, Table, col, engine
from lakelog.catalog.core.writes import delete, file_changes, row_reader
from lakelog.log import ConflictError

Change = Callable[[Table], Table]


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return two_files(catalog)


def ids(table: Table) -> list[int]:
    return [id for id, _ in rows_of(table.refresh())]


EVERY = list(range(20))


def test_disjoint_rows_of_one_file_can_be_deleted_and_updated_at_once(table: Table) -> None:
    deleted(table, [1])
    deleted(table, [2], condition=col("id") == 2)
    updated(table, [3, 13], "new", condition=col("id").is_in([3, 13]))
    current_table = table.refresh()
    assert rows_of(current_table) == [
        (id, "new" if id in (3, 13) else f"n{id}") for id in EVERY if id not in (1, 2)
    ]
    assert current_table.row_count == 18


def test_a_row_can_be_updated_once_only(table: Table) -> None:
    updated(table, [3], "first", condition=col("id") == 3)
    with pytest.raises(CommitConflict, match="conflicts with version 4"):
        updated(table, [3], "second", condition=col("id") == 3)
    assert rows_of(table.refresh())[3] == (3, "first")


def test_the_same_row_can_be_deleted_twice_but_not_updated_and_deleted(table: Table) -> None:
    deleted(table, [3, 4], condition=col("id").is_in([3, 4]))
    table_after = deleted(table, [4, 5], condition=col("id").is_in([4, 5]))
    assert ids(table_after) == [id for id in EVERY if id not in (3, 4, 5)]
    with pytest.raises(CommitConflict, match="the same rows"):
        updated(table, [3], "new", condition=col("id") == 3)
    fresh = table_after.refresh()
    updated(fresh, [6], "new", condition=col("id") == 6)
    # The row is there under the same id, so that a delete by id has to see it.
    with pytest.raises(CommitConflict, match="should have seen"):
        deleted(fresh, [6], condition=col("id") == 6)


@pytest.mark.parametrize("others", [[3], EVERY[:10]])
def test_a_delete_of_rows_that_others_have_deleted_makes_no_version(table: Table, others: list[int]) -> None:
    newest = deleted(table, others, condition=col("id").is_in(others)).version
    assert deleted(table, [3], condition=col("id") == 3).version == newest
    assert table.delete(col("id") == 3).version == newest
    assert ids(table) == [id for id in EVERY if id not in others]


def test_a_delete_whose_file_is_gone_with_all_of_its_rows_goes_on(table: Table) -> None:
    table.delete(col("id") < 10)
    table_after = deleted(table, [3, 12], condition=col("id").is_in([3, 12]))
    assert ids(table_after) == [id for id in range(10, 20) if id != 12]


def test_a_file_that_was_rewritten_has_no_rows_to_be_changed(table: Table) -> None:
    compacted(table)
    for change in (
        lambda: deleted(table, [3]),
        lambda: updated(table, [3], "new"),
        lambda: rewritten(table, "delete", [paths_of(table)[0]], rows(range(1, 10))),
        lambda: compacted(table),
    ):
        with pytest.raises(CommitConflict, match="removed or rewritten|the same rows"):
            change()
    assert ids(table) == EVERY


def test_a_file_of_which_rows_were_deleted_is_not_rewritten_with_them(table: Table) -> None:
    first, second = paths_of(table)
    deleted(table, [3])
    for operation in ("compact", "update", "merge"):
        with pytest.raises(CommitConflict, match="which this operation rewrites|the same rows"):
            rewritten(table, operation, [first], rows(range(10)))
    table_after = rewritten(table, "compact", [second], rows(range(10, 20)))
    assert ids(table_after) == [id for id in EVERY if id != 3], "another file is"


def test_appends_come_later_under_snapshot_isolation_only(table: Table) -> None:
    predicate = col("id") >= 0
    serializable = table.alter(
        [{"change": "set-property", "key": "lakelog.isolation", "value": "serializable"}]
    )
    table.append(rows(range(20, 21)))
    # The property was read on the base.
    assert ids(updated(table, [3], "new", condition=predicate)) == [*EVERY, 20]
    with pytest.raises(CommitConflict, match="should have seen"):
        updated(serializable, [4], "new", condition=predicate)
    with pytest.raises(CommitConflict, match="should have seen|the same rows"):
        deleted(serializable, [4], condition=predicate)
    elsewhere = serializable.refresh()
    table.refresh().append(rows(range(100, 101)))
    assert len(ids(updated(elsewhere, [5], "new", condition=col("id") < 50))) == 22


def test_serializable_changes_that_depend_on_rows_fail_where_these_are_gone(table: Table) -> None:
    table = table.alter([{"change": "set-property", "key": "lakelog.isolation", "value": "serializable"}])
    deleted(table, [7], condition=col("id") == 7)
    with pytest.raises(CommitConflict, match="that this operation has read"):
        updated(table, [3], "new", condition=col("id") < 10)
    assert rows_of(updated(table, [13], "new", condition=col("id") >= 10))[12] == (13, "new")
    with pytest.raises(CommitConflict, match="that this operation has read"):
        deleted(table, [4], condition=col("id") < 10, reads_others=True)
    deleted(table, [4], condition=col("id") < 10)


def test_rows_that_were_merged_are_seen_even_after_they_were_compacted(table: Table) -> None:
    def merged_table(table: Table) -> Table:
        write = engine.begin_write(table)
        files = files_of(table, write, rows(range(50, 51)))
        return engine.commit_rows(table, write, "merge", files, condition=col("id") == 50)

    compacted(merged_table(table))
    with pytest.raises(CommitConflict, match="should have seen"):
        merged_table(table)
    assert ids(table) == [*EVERY, 50]


def test_a_rollback_brings_rows_back_that_a_change_has_not_seen(table: Table) -> None:
    later_table = deleted(table, [3])
    later_table.rollback_to_version(table.version)
    with pytest.raises(CommitConflict, match="came back|should have seen"):
        deleted(later_table, [4], condition=col("id") < 10)
    with pytest.raises(CommitConflict, match="should have seen"):
        updated(later_table, [14], "new", condition=col("id") < 50)
    assert ids(table) == EVERY


def test_going_back_brings_back_the_rows_of_then_and_no_others(table: Table) -> None:
    first_table = deleted(table, [3, 13])
    two = deleted(first_table, [4])
    three = updated(two, [5], "new")
    for back in (lambda t, v: t.rollback_to_version(v), lambda t, v: t.set_current_version(v)):
        for version, removed_pair in (
            (first_table.version, (3, 13)),
            (two.version, (3, 4, 13)),
            (table.version, ()),
        ):
            three = back(three.refresh(), version)
            assert rows_of(three) == [(id, f"n{id}") for id in EVERY if id not in removed_pair]
            assert three.row_count == 20 - len(removed_pair)


def test_overwrites_and_replaces_fail_over_changes_of_rows(catalog: Catalog, table: Table) -> None:
    stage = engine.stage(catalog, "replace", "t", table.schema)
    deleted(table, [3])
    with pytest.raises(CommitConflict):
        table.overwrite(rows(range(1)))
    with pytest.raises(CommitConflict):
        engine.commit_stage(catalog, stage)
    assert ids(table.truncate()) == [], "a truncate is decided anew"


def test_a_check_is_proven_and_held_though_rows_are_deleted(table: Table) -> None:
    over = {"kind": "check", "name": "c", "sql": "id >= 0", "columns": [["id"]],
            "predicate": (col("id") >= 0).to_json()}  # fmt: skip
    add = [{"change": "add-constraint", "constraint": over}]
    table_before = table
    table.alter(add)
    with pytest.raises(CommitConflict, match="added a CHECK"):
        updated(table_before, [3], "new")
    assert ids(deleted(table_before, [3])) == [id for id in EVERY if id != 3]
    assert ids(rewritten(table_before, "compact", [paths_of(table_before)[1]], rows(range(10, 20)))) == [
        id for id in EVERY if id != 3
    ]


def test_a_dropped_or_replaced_table_has_no_rows_to_be_changed(catalog: Catalog, table: Table) -> None:
    engine.commit_stage(catalog, engine.stage(catalog, "replace", "t", table.schema))
    with pytest.raises(ConflictError):
        deleted(table, [3])
    catalog.drop_table("t")
    with pytest.raises(NoSuchTable):
        deleted(table, [3])


# By rows, where files would be in the way


BETWEEN = col("id").is_in([1, 5])


def test_a_row_between_others_is_not_one_of_them(table: Table) -> None:
    updated(table, [3], "new", condition=col("id") == 3)
    updated(table, [1, 5], "new", condition=BETWEEN)
    # The statistics of the second change say from 1 to 5.
    assert ids(updated(table, [4], "new", condition=col("id") == 4)) == EVERY


def inserted_table(table: Table, id: int) -> Table:
    return table.append(rows(range(id, id + 1)))


def inserted_and_moved_in(catalog: Catalog, id: int) -> None:
    with catalog.transaction() as tx:
        table = inserted_table(tx.load_table("t"), 50)
        write = engine.begin_write(table)
        files = files_of(table, write, rows(range(id, id + 1)))
        engine.commit_rows(
            table, write, "update", files, deletes=deletes_of(table, [15]), condition=col("id") == 15
        )


def test_under_snapshot_isolation_inserted_rows_come_later_and_others_of_their_version_do_not(
    catalog: Catalog, table: Table
) -> None:
    # The statistics of the second change say from 1 to 5.
    updated(table, [1, 5], "new", condition=BETWEEN)
    inserted_table(table, 4)
    inserted_table(table, 6).compact(target_size_bytes=1 << 20)
    assert ids(updated(table, [4], "new", condition=col("id") == 4)) == sorted([*EVERY, 4, 6])
    inserted_and_moved_in(catalog, 3)
    with pytest.raises(CommitConflict, match="should have seen"):
        updated(table, [3], "new", condition=col("id") == 3)


def no_rows(table: Table, monkeypatch: pytest.MonkeyPatch) -> Table:
    monkeypatch.setattr(row_reader, "ROWS_LIMIT", 0)
    return table


def less_columns(table: Table, monkeypatch: pytest.MonkeyPatch) -> Table:
    table.alter([{"change": "delete-column", "name": ["name"]}])
    return table


def gone_back(table: Table, monkeypatch: pytest.MonkeyPatch) -> Table:
    current_table = updated(table.refresh(), [7], "new", condition=col("id") == 7)
    current_table.set_current_version(current_table.version - 1)
    return table


@pytest.mark.parametrize("unclear", [no_rows, less_columns, gone_back])
def test_what_is_not_certain_is_a_conflict(
    table: Table, monkeypatch: pytest.MonkeyPatch, unclear: Callable[[Table, pytest.MonkeyPatch], Table]
) -> None:
    updated(table, [1, 5], "new", condition=BETWEEN)
    table = unclear(table, monkeypatch)
    with pytest.raises(CommitConflict, match="should have seen"):
        updated(table, [4], "new", condition=col("id") == 4)


def test_steps_of_a_transaction_are_judged_by_rows_too(catalog: Catalog, table: Table) -> None:
    tx, other_transaction = catalog.begin(), catalog.begin()
    updated(tx.load_table("t"), [4], "new", condition=col("id") == 4)
    updated(other_transaction.load_table("t"), [5], "other", condition=col("id") == 5)
    updated(table, [1, 5], "new", condition=BETWEEN)
    tx.commit()
    with pytest.raises(CommitConflict):
        other_transaction.commit()
    assert [id for id, name in rows_of(table.refresh()) if name == "new"] == [1, 4, 5]


def test_rows_without_ids_are_not_looked_for(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_changes, "with_ids", lambda files, next_row: list(files))
    table = two_files(catalog)
    table.compact(target_size_bytes=1 << 20)
    with pytest.raises(CommitConflict, match="removed or rewritten"):
        updated(table, [3], "new", condition=col("id") == 3)


def test_a_file_is_rewritten_without_rows_that_were_deleted_twice(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table.alter(
        [{"change": "set-property", "key": "lakelog.write.delete.mode", "value": "copy-on-write"}]
    )
    deleted(table, [3, 4])
    monkeypatch.setattr(delete, "TRIES_MAX", 1)
    table.delete(col("id").is_in([4, 5]))
    assert ids(table) == [id for id in EVERY if id not in (3, 4, 5)]


def test_copies_without_ids_bring_no_row_back(table: Table) -> None:
    first, _ = paths_of(table)
    deleted(table, [3])
    with pytest.raises(CommitConflict, match="which this operation rewrites"):
        rewritten(table, "delete", [first], rows(range(1, 10)))
    assert ids(table) == [id for id in EVERY if id != 3]


# Transactions


def test_a_transaction_sees_and_commits_its_changes_of_rows(catalog: Catalog, table: Table) -> None:
    with catalog.transaction() as tx:
        first_table = deleted(tx.load_table("t"), [1])
        two = updated(first_table, [2], "new")
        three = deleted(two, [2, 3])
        assert ids(three) == [id for id in EVERY if id not in (1, 2, 3)]
        deleted(table, [4])
    assert ids(table) == [id for id in EVERY if id not in (1, 2, 3, 4)]
    assert table.refresh().version == table.version + 2


def test_a_stale_handle_in_a_transaction_conflicts(catalog: Catalog, table: Table) -> None:
    tx = catalog.begin()
    stale = tx.load_table("t")
    deleted(stale, [1])
    with pytest.raises(CommitConflict, match="same transaction"):
        deleted(stale, [2])
    tx.rollback()


def test_transactions_that_delete_the_same_row_conflict(catalog: Catalog, table: Table) -> None:
    tx = catalog.begin()
    deleted(tx.load_table("t"), [1, 2], condition=col("id") < 3)
    deleted(table, [2, 3])
    with pytest.raises(CommitConflict):
        tx.commit()
    assert ids(table) == [id for id in EVERY if id not in (2, 3)]


def test_whole_files_that_a_transaction_removes_are_as_it_saw_them(catalog: Catalog, table: Table) -> None:
    for remove in (lambda t: t.truncate(), lambda t: t.delete(col("id") < 10)):
        tx = catalog.begin()
        remove(tx.load_table("t"))
        current_table = table.refresh()
        deleted(current_table, [rows_of(current_table)[0][0]])
        with pytest.raises(CommitConflict, match="rows that it deletes were changed"):
            tx.commit()
    assert ids(table) == EVERY[2:]


def test_serializable_transactions_see_that_rows_were_deleted(catalog: Catalog, table: Table) -> None:
    tx = catalog.begin("serializable")
    read = tx.load_table("t").scan(filter=col("id") < 10).to_arrow().num_rows
    tx.load_table("t").append(rows(range(read + 90, read + 91)))
    deleted(table, [15], condition=col("id") == 15)
    other_transaction = catalog.begin("serializable")
    other_transaction.load_table("t").scan(filter=col("id") < 10).to_arrow()
    other_transaction.load_table("t").append(rows(range(200, 201)))
    deleted(table.refresh(), [5], condition=col("id") == 5)
    for transaction in (tx, other_transaction):
        with pytest.raises(CommitConflict, match="has other rows now"):
            transaction.commit()


# By filter


def test_a_delete_by_filter_is_prepared_again_over_others(catalog: Catalog, table: Table) -> None:
    other_table = Catalog(catalog.warehouse).load_table("t")
    updated(other_table, [3], "new", condition=col("id") == 3)
    table_after = table.delete(col("id").is_in([3, 4, 12]))
    assert ids(table_after) == [id for id in EVERY if id not in (3, 4, 12)]


@pytest.mark.parametrize("others_delete", [False, True])
def test_a_delete_by_filter_is_not_prepared_again_by_another_column(
    catalog: Catalog, others_delete: bool
) -> None:
    schema = pa.schema([("id", pa.int64()), ("c", pa.int64()), ("e", pa.int64())])
    stale = catalog.create_table("s", schema).append(
        pa.table({"id": [1, 2, 3], "c": [1, 2, 3], "e": [3, 1, 2]}, schema=schema)
    )
    newest = catalog.load_table("s")
    if others_delete:
        newest = newest.update({"id": "id + 100"}, col("c") == 2)
    newest.rename_column("c", "z").rename_column("e", "c")
    if others_delete:
        with pytest.raises(CommitConflict):
            stale.delete(col("c") == 2)
    else:
        stale.delete(col("c") == 2)
    left = stale.refresh().to_arrow()["id"].to_pylist()
    assert sorted(left) == ([1, 3, 102] if others_delete else [1, 3])


def test_a_delete_by_filter_in_a_transaction_fails_over_others(catalog: Catalog, table: Table) -> None:
    tx = catalog.begin()
    tx.load_table("t").delete(col("id").is_in([3, 4]))
    updated(table, [3], "new", condition=col("id") == 3)
    with pytest.raises(CommitConflict):
        tx.commit()
