"""Changes between versions, tested for each kind, and changes that cannot be shown."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.integration.catalog.rows_changed import (
    compacted,
    deleted,
    paths_of,
    rows,
    rows_of,
    two_files,
    updated,
)

from lakelog.catalog import Catalog, Table, col, engine
from lakelog.catalog.core.parquet.writing import write_files
from lakelog.catalog.errors import NoSuchRef
from lakelog.catalog.looking.changelog.changelog import Changelog, ChangeRange, versions_of
from lakelog.log.errors import InvalidInput, NotFound

Change = tuple[int, str, int, str | None]


@pytest.fixture
def table(catalog: Catalog) -> Table:
    """Version 2 has the rows 0 to 9, version 3 also 10 to 19."""
    return two_files(catalog)


def changes(table: Table, first: int, last: int | None = None, **more: Any) -> list[Change]:
    rows = table.changes(first, last, **more).to_arrow()
    columns = (rows[name].to_pylist() for name in ("_commit_version", "_change_type", "id", "name"))
    return sorted(zip(*columns, strict=True))


def log_of(table: Table, first: int, last: int) -> Changelog:
    return Changelog(table.table_head, first, last)


def moved_table(table: Table) -> Table:
    """Rewrite all files as one, with the ids and versions of rows."""
    write, tracked_log, metadata = engine.begin_write(table), table.table_head.tracked, table.metadata
    files = write_files(
        tracked_log.store,
        tracked_log.prefix,
        write,
        table.scan(row_ids=True).to_reader(),
        metadata.schema,
        metadata.spec,
        metadata.sort_order,
        properties={},
        row_ids=True,
    )
    return engine.commit_rows(table, write, "compact", files, removed=paths_of(table))


def inserts(version: int, ids: range) -> list[Change]:
    return [(version, "insert", id, f"n{id}") for id in ids]


def test_appended_rows_are_inserts_with_the_version_and_time_of_their_commit(table: Table) -> None:
    assert changes(table, 1) == [*inserts(2, range(10)), *inserts(3, range(10, 20))]
    assert changes(table, 3, 3) == inserts(3, range(10, 20))
    rows = table.changes(2, 2).to_arrow()
    assert rows.schema.names == [
        "id", "name", "_change_type", "_commit_version", "_commit_timestamp", "_row_id", "_row_version"
    ]  # fmt: skip
    assert rows.schema.field("_commit_timestamp").type == pa.timestamp("us", "UTC")
    at = table.at(version=2).table_head.time_us
    assert set(rows["_commit_timestamp"].cast(pa.int64()).to_pylist()) == {at}
    assert rows["_row_id"].to_pylist() == list(range(10))
    assert set(rows["_row_version"].to_pylist()) == {2}


def test_columns_can_be_chosen_in_any_order(table: Table) -> None:
    changes = table.changes(2, 2, ["_change_type", "ID", "_row_id"])
    assert changes.schema.names == ["_change_type", "id", "_row_id"]
    assert changes.to_arrow().slice(3, 1).to_pydict() == {
        "_change_type": ["insert"],
        "id": [3],
        "_row_id": [3],
    }
    with pytest.raises(InvalidInput, match="at least one column"):
        table.changes(2, 2, [])
    with pytest.raises(NotFound, match="other"):
        table.changes(2, 2, ["other"])


def test_deleted_rows_are_read_from_their_files(table: Table) -> None:
    for apart in (False, True):
        with patch("lakelog.catalog.core.files.deletion_vectors.INLINE_MAX_BYTES", 0 if apart else 512):
            table = deleted(table, [1, 12] if apart else [5])
    assert changes(table, 4, 4) == [(4, "delete", 5, "n5")]
    assert changes(table, 5, 5) == [(5, "delete", 1, "n1"), (5, "delete", 12, "n12")]
    table = deleted(table, [id for id, _ in rows_of(table) if id < 10])
    remaining_ids = [id for id in range(10) if id not in (1, 5)]
    assert changes(table, 6) == [(6, "delete", id, f"n{id}") for id in remaining_ids]


def test_an_update_is_a_delete_and_an_insert(table: Table) -> None:
    table = updated(table, [4], "new")
    assert changes(table, 4) == [(4, "delete", 4, "n4"), (4, "insert", 4, "new")]


def test_copies_are_no_changes(catalog: Catalog) -> None:
    table = catalog.create_table(
        "t",
        pa.schema({"id": pa.int64(), "name": pa.string()}),
        properties={"lakelog.write.delete.mode": "copy-on-write"},
    )
    table = table.append(rows(range(10))).delete(col("id") == 3)
    assert changes(table, 3) == [(3, "delete", 3, "n3")]
    assert log_of(table, 3, 3).may_carry
    raw = log_of(table, 3, 3).plan()
    assert raw["rows"].to_pylist() == [10, 9]
    table = compacted(deleted(table, [4]))
    assert changes(table, 5) == []
    assert log_of(table, 5, 5).plan().num_rows == 0


def test_what_went_and_came_with_whole_files(table: Table) -> None:
    table = table.overwrite(rows(range(30, 32)))
    removed_numbers = [(4, "delete", id, f"n{id}") for id in range(20)]
    assert changes(table, 4) == [*removed_numbers, *inserts(4, range(30, 32))]
    table = table.truncate()
    assert changes(table, 5) == [(5, "delete", 30, "n30"), (5, "delete", 31, "n31")]
    table = table.rollback_to_version(3)
    assert changes(table, 6) == [(6, "insert", id, f"n{id}") for id in range(20)]


def test_rows_that_a_rollback_brings_back_are_inserts(table: Table) -> None:
    table = deleted(deleted(table, [1, 2]), [3])
    table = table.rollback_to_version(4)
    assert changes(table, 6) == [(6, "insert", 3, "n3")]
    table = updated(table, [5], "new").set_current_version(3)
    assert changes(table, 8) == [
        (8, "delete", 5, "new"), (8, "insert", 1, "n1"), (8, "insert", 2, "n2"), (8, "insert", 5, "n5")
    ]  # fmt: skip


def test_dropped_partitions_are_deletes(catalog: Catalog) -> None:
    table = catalog.create_table(
        "p", pa.schema({"id": pa.int64(), "name": pa.string()}), partition_by=["name"]
    )
    table = engine.drop_partitions(table.append(rows(range(3))), [{"name": "n1"}])
    assert changes(table, 3) == [(3, "delete", 1, "n1")]


def test_net_changes_leave_out_what_came_and_went(table: Table) -> None:
    table = deleted(table.append(rows(range(30, 33))), [0, 31])
    table = table.append(rows(range(40, 41)))
    net = changes(table, 3, net=True)
    assert [id for _, kind, id, _ in net if kind == "insert"] == [*range(10, 20), 30, 32, 40]
    assert [id for _, kind, id, _ in net if kind == "delete"] == [0]


@pytest.mark.parametrize("updates", [False, True])
def test_net_changes_leave_out_rows_that_are_back_as_they_were(table: Table, updates: bool) -> None:
    later = deleted(updated(table, [1, 2], "new"), [3])
    back = later.rollback_to_version(table.version).append(rows(range(30, 31)))
    net = changes(back, 4, net=True, updates=updates)
    assert net == [(back.version, "insert", 30, "n30")]
    assert sorted(id for _, _, id, _ in changes(later, 4, net=True)) == [1, 1, 2, 2, 3]


def test_several_steps_of_one_transaction_are_one_change(catalog: Catalog, table: Table) -> None:
    with catalog.begin() as tx:
        inner = tx.load_table("t").append(rows(range(50, 52)))
        inner = deleted(inner, [50, 3])
        deleted(inner, [4])
    table = table.refresh()
    assert changes(table, 4) == [(4, "delete", 3, "n3"), (4, "delete", 4, "n4"), (4, "insert", 51, "n51")]


def test_each_kind_of_step_counts_where_a_transaction_has_several(catalog: Catalog, table: Table) -> None:
    table.alter([{"change": "set-property", "key": "lakelog.write.delete.mode", "value": "copy-on-write"}])
    with catalog.begin() as tx:
        tx.load_table("t").delete(col("id") == 3).append(rows(range(50, 51)))
    assert changes(table.refresh(), 5) == [(5, "delete", 3, "n3"), (5, "insert", 50, "n50")]
    with catalog.begin() as tx:
        moved_table(tx.load_table("t").append(rows(range(60, 62))))
    assert changes(table.refresh(), 6) == inserts(6, range(60, 62))


def test_files_that_stand_beside_their_commit_are_changes_too(table: Table) -> None:
    with patch("lakelog.catalog.core.logs.commits._is_bulk", bool):
        table = updated(table.append(rows(range(50, 51))), [4], "new").overwrite(rows(range(60, 61)))
    found_rows = table.changes(4, 4).to_arrow()
    assert found_rows["_row_version"].to_pylist() == [4]
    assert [id for _, _, id, _ in changes(table, 5, 5)] == [4, 4]
    removed_ids = [id for _, kind, id, _ in changes(table, 6, 6) if kind == "delete"]
    assert removed_ids == [*range(20), 50]


def test_partitions_without_rows_come_and_go_without_changes(catalog: Catalog) -> None:
    schema = pa.schema({"id": pa.int64(), "name": pa.string()})
    table = engine.add_partitions(catalog.create_table("p", schema, partition_by=["name"]), [{"name": "a"}])
    assert changes(engine.drop_partitions(table, [{"name": "a"}]), 1) == []


def test_a_file_that_is_removed_and_added_once_more_has_other_rows(
    catalog: Catalog, tmp_path: object
) -> None:
    pq.write_table(pa.table({"id": [7], "name": ["n7"]}), f"{tmp_path}/a.parquet")
    catalog.create_table("o", pa.schema({"id": pa.int64(), "name": pa.string()})).add_files(str(tmp_path))
    with catalog.begin() as tx:
        tx.load_table("o").truncate().add_files(str(tmp_path))
    table = catalog.load_table("o")
    rows = table.changes(3, updates=True).to_arrow().select(["_change_type", "_row_id"])
    assert sorted(map(tuple, zip(*rows.to_pydict().values(), strict=True))) == [("delete", 0), ("insert", 1)]


def test_a_transaction_sees_changes_up_to_its_start(catalog: Catalog, table: Table) -> None:
    tx = catalog.begin()
    inner = tx.load_table("t")
    inner.append(rows(range(60, 61)))
    inner.refresh().alter([{"change": "add-column", "name": ["more"], "type": "integer"}])
    assert changes(tx.load_table("t"), 3) == inserts(3, range(10, 20))
    assert "more" not in tx.load_table("t").changes(3).schema.names
    tx.create_table("new", pa.schema({"id": pa.int64()}))
    with pytest.raises(NotFound, match="this transaction creates it"):
        tx.load_table("new").changes(1)
    tx.rollback()


def test_changes_have_the_columns_of_the_last_version(table: Table) -> None:
    add = {
        "change": "add-column",
        "name": ["more"],
        "type": "integer",
        "default": {"current": "7"},
    }
    table = table.alter([add, {"change": "rename-column", "name": ["name"], "new_name": "called"}])
    table = table.append(pa.table({"id": [70], "called": ["n70"], "more": [8]}))
    rows = table.changes(3).to_arrow()
    assert rows.schema.names[:3] == ["id", "called", "more"]
    assert rows["more"].to_pylist() == [7] * 10 + [8]
    assert table.changes(3, 3).to_arrow().schema.names[:3] == ["id", "name", "_change_type"]


def test_rows_of_before_a_column_was_required_are_shown(table: Table) -> None:
    table = table.append(pa.table({"id": [80], "name": pa.array([None], pa.string())}))
    table = table.delete(col("id") == 80)
    table = table.alter([{"change": "update-column-nullability", "name": ["name"], "nullable": False}])
    rows = table.changes(4).to_arrow()
    assert rows["name"].to_pylist() == [None, None] and rows.schema.field("name").nullable


def test_types_that_went_back_are_an_error(catalog: Catalog) -> None:
    table = catalog.create_table("w", pa.schema({"id": pa.int32()})).append(
        pa.table({"id": pa.array([1], pa.int32())})
    )
    table = table.alter([{"change": "update-column-type", "name": ["id"], "type": "long"}])
    table = table.append(pa.table({"id": [2**40]})).rollback_to_version(2)
    assert table.changes(3, 4).to_arrow()["id"].to_pylist() == [2**40]
    for first in (3, 4, 5):
        with pytest.raises(InvalidInput, match="wider type"):
            table.changes(first, 5)


def test_a_replaced_table_is_another_one(catalog: Catalog, table: Table) -> None:
    engine.commit_stage(catalog, engine.stage(catalog, "replace", "t", table.schema))
    current_table = catalog.load_table("t").append(rows(range(3)))
    with pytest.raises(InvalidInput, match="replaced in version 4.*up to version 3, or after version 4"):
        current_table.changes(3)
    assert changes(current_table, 5) == inserts(5, range(3))
    assert changes(current_table, 1, 3) == changes(table, 1)
    back = current_table.rollback_to_version(3)
    with pytest.raises(InvalidInput, match=f"replaced in version {back.version}"):
        back.changes(5)


def test_a_table_at_the_place_of_another_one_has_only_its_own_changes(
    catalog: Catalog, warehouse: str
) -> None:
    place = f"{warehouse}-elsewhere"
    schema = pa.schema({"id": pa.int64(), "name": pa.string()})
    catalog.create_table("one", schema, location=place).append(rows(range(2)))
    catalog.drop_table("one")
    table = catalog.create_table("two", schema, location=place)
    first = table.version
    table = table.append(rows(range(3)))
    assert changes(table, first) == inserts(first + 1, range(3))
    with pytest.raises(NotFound, match="another table"):
        table.changes(first - 1)


def test_changes_of_branches_count_when_the_table_takes_them_over(table: Table) -> None:
    table = table.create_branch("draft")
    branch = table.at(ref="draft")
    branch = deleted(branch, [1]).append(rows(range(30, 31)))
    table = table.refresh()
    assert changes(table, 4) == []
    table = table.fast_forward("main", "draft")
    version = table.version
    assert changes(table, 4) == [(version, "delete", 1, "n1"), (version, "insert", 30, "n30")]


def test_changes_of_a_branch_are_those_of_its_own_rows(table: Table) -> None:
    new_table = table.create_branch("draft")
    version = new_table.version
    branch = deleted(new_table.at(ref="draft"), [1])
    new_table.refresh().append(rows(range(40, 42)))
    branch = updated(branch.refresh(), [2], "new").set_current_version(version)
    first = version + 1
    firsts_after = [
        (first, "delete", 1, "n1"),
        (first + 2, "delete", 2, "n2"), (first + 2, "insert", 2, "new"),
        (first + 3, "delete", 2, "new"), (first + 3, "insert", 1, "n1"), (first + 3, "insert", 2, "n2"),
    ]  # fmt: skip
    assert changes(branch, first) == firsts_after
    assert changes(branch.at(version=first), first) == firsts_after[:1]
    assert changes(new_table.refresh(), first) == inserts(first + 1, range(40, 42))
    for number_before in (1, version):
        with pytest.raises(InvalidInput, match=f"branch that was created in version {version}.*after that"):
            branch.changes(number_before)
    with pytest.raises(NoSuchRef):
        branch.changes(1, 3)
    new_table.refresh().alter([{"change": "rename-column", "name": ["name"], "new_name": "called"}])
    assert branch.refresh().changes(first).schema.names[:2] == ["id", "called"]
    branch = branch.refresh().overwrite(rows(range(2)).rename_columns(["id", "called"])).truncate()
    assert sorted(branch.changes(branch.version).to_arrow()["id"].to_pylist()) == [0, 1]


def test_changes_of_a_branch_go_on_when_it_becomes_what_the_table_is(table: Table) -> None:
    new_table = table.create_branch("draft")
    main = deleted(new_table, [1]).append(rows(range(30, 31)))
    version = main.version
    branch = main.fast_forward("draft", "main").at(ref="draft")
    assert changes(branch, new_table.version + 1) == [
        (version + 1, "delete", 1, "n1"), (version + 1, "insert", 30, "n30")
    ]  # fmt: skip
    again = engine.replace_branch(branch, "draft").at(ref="draft")
    with pytest.raises(InvalidInput, match=f"created in version {again.version}"):
        again.changes(version + 1)
    assert again.append(rows(range(50, 51))).changes(again.version + 1).to_arrow()["id"].to_pylist() == [50]


def test_a_tag_and_what_a_transaction_does_on_a_branch_have_no_changes(
    catalog: Catalog, table: Table
) -> None:
    branch = deleted(table.create_branch("draft").at(ref="draft"), [1])
    version = branch.version
    branch.create_tag("done")
    with pytest.raises(InvalidInput, match="a tag and never changes"):
        table.refresh().at(ref="done").changes(version)
    tx = catalog.begin()
    inner = tx.load_table("t").at(ref="draft")
    deleted(inner, [2])
    assert changes(tx.load_table("t").at(ref="draft"), version) == [(version, "delete", 1, "n1")]
    tx.commit()
    assert changes(branch.refresh(), version)[1:] == [(version + 2, "delete", 2, "n2")]


def test_rows_that_a_branch_brought_back_are_inserts_when_the_table_takes_it_over(table: Table) -> None:
    new_table = table.create_branch("draft")
    branch = deleted(new_table, [1]).fast_forward("draft", "main").at(ref="draft")
    table = branch.set_current_version(new_table.version).fast_forward("main", "draft")
    version = table.version
    assert changes(table, version) == [(version, "insert", 1, "n1")]


def test_what_a_table_was_before_the_same_transaction_replaced_it_is_nothing(catalog: Catalog) -> None:
    with catalog.begin() as tx:
        tx.create_table("new", pa.schema({"x": pa.int64()})).append(pa.table({"x": [1]}))
        engine.commit_stage(tx, engine.stage(tx, "replace", "new", rows(range(1)).schema))
        tx.load_table("new").append(rows(range(3)))
    table = deleted(catalog.load_table("new"), [1])
    assert changes(table, 1) == [*inserts(1, range(3)), (2, "delete", 1, "n1")]


def test_versions_that_there_are_not_are_errors(table: Table) -> None:
    for first, last in ((0, 2), (4, None), (1, 4)):
        with pytest.raises(NotFound, match="has no version"):
            table.changes(first, last)
    with pytest.raises(InvalidInput, match="before"):
        table.changes(3, 2)


def test_expired_versions_are_errors(catalog: Catalog, table: Table) -> None:
    table = deleted(table, [1])
    table = deleted(table, [2]).append(rows(range(30, 31)))
    catalog.expire("t", version=table.version - 1, dry_run=False)
    table = catalog.load_table("t")
    oldest = table.table_head.view.state.expired
    assert changes(table, oldest + 1)[0] == (oldest + 1, "insert", 30, "n30")
    for first in (oldest - 1, oldest):
        with pytest.raises(NotFound, match=f"have expired.*from version {oldest + 1} on"):
            table.changes(first)


def test_rows_without_ids_are_an_error(table: Table) -> None:
    with patch("lakelog.catalog.core.writes.file_changes.with_ids", lambda files, next_row: list(files)):
        table = table.append(rows(range(90, 92)))
    table = table.append(rows(range(95, 96)))
    with pytest.raises(InvalidInput, match="version 4 .* have no ids"):
        table.changes(3).to_arrow()
    assert changes(table, 5) == inserts(5, range(95, 96))


def test_names_that_changes_need_cannot_be_columns(catalog: Catalog) -> None:
    for name in ("_change_type", "_Commit_Version", "_row_id"):
        table = catalog.create_table(f"n{name}", pa.schema({name: pa.int64()}))
        with pytest.raises(InvalidInput, match="rename it"):
            table.changes(1)


def test_files_of_others_are_read_by_their_names_and_constants(catalog: Catalog, tmp_path: object) -> None:
    folder = f"{tmp_path}/name=n7"
    import os

    os.makedirs(folder)
    pq.write_table(pa.table({"id": [7, 8]}), f"{folder}/a.parquet")
    table = catalog.create_table("others", pa.schema({"id": pa.int64(), "name": pa.string()}))
    table = table.add_files(str(tmp_path))
    assert changes(table, 2) == [(2, "insert", 7, "n7"), (2, "insert", 8, "n7")]
    table = table.delete(col("name") == "n7")
    assert changes(table, 3) == [(3, "delete", 7, "n7"), (3, "delete", 8, "n7")]


def test_ranges_of_versions_and_times(table: Table) -> None:
    times = {version: table.at(version=version).table_head.time_us for version in (1, 2, 3)}

    def resolved(**asked: object) -> tuple[int, int]:
        return versions_of(ChangeRange(**asked), table.at(version=3).table_head)  # type: ignore[arg-type]

    assert resolved(start_version=1) == (1, 3)
    assert resolved(start_version=1, end_version=2, with_start=False, with_end=False) == (2, 1)
    assert resolved(start_us=times[2], end_us=times[3]) == (2, 3)
    assert resolved(start_us=times[2], end_us=times[3], with_start=False, with_end=False) == (3, 2)
    assert resolved(start_us=times[2] + 1) == (3, 3)
    assert resolved(start_us=times[3] + 1) == (4, 3)
    assert resolved(start_us=0, end_us=1) == (1, 0)
    assert resolved(start_latest=True) == (4, 3)
    with pytest.raises(InvalidInput, match="begin with the next version"):
        resolved(start_latest=True, end_version=3)
    assert table.changes(3, 3).to_arrow().num_rows == 10
    assert log_of(table, 4, 3).plan().num_rows == 0
    for wrong in ({"start_us": 5, "end_us": 4}, {}, {"start_version": 1, "start_us": 1}):
        with pytest.raises(InvalidInput):
            resolved(**wrong)


def test_only_versions_that_a_filter_wants_are_planned(table: Table) -> None:
    table = deleted(table, [1])
    log = log_of(table, 1, 4)

    def planned_number(filter: object) -> int:
        return log.plan(filter).num_rows  # type: ignore[arg-type]

    assert planned_number(None) == 3
    assert planned_number(col("_commit_version") > 2) == 2
    assert planned_number(col("_change_type") == "delete") == 1
    assert planned_number((col("_change_type") == "delete") & (col("_commit_version") == 2)) == 0
    assert planned_number(col("id") == 1000) == 3, "rows are compared by the reader"


def test_what_cannot_be_among_changes_is_known_without_reading_them(table: Table) -> None:
    def said(table: Table, first: int) -> tuple[bool, bool, bool]:
        log = log_of(table, first, table.version)
        return log.may_carry, log.may_update, log.may_repeat

    assert said(table, 1) == (False, False, False)
    removed_table = deleted(table, [1])
    assert said(removed_table, 4) == (False, False, False)
    assert said(removed_table, 1) == said(removed_table, 3) == (False, False, True)
    changed_table = updated(removed_table, [2], "new")
    assert said(changed_table, 5) == (False, True, False)
    over = changed_table.overwrite(rows(range(5)))
    assert said(over, over.version) == (False, False, False)
    small = compacted(over)
    assert said(small, small.version) == (False, False, False)
    back = small.rollback_to_version(4)
    assert said(back, back.version) == (True, True, False)


def test_changes_have_the_forms_of_rows(table: Table) -> None:
    table = table.delete("id = 1")
    last = table.changes(table.version)
    assert last.to_pandas()[["_change_type", "id"]].to_numpy().tolist() == [["delete", 1]]
    assert last.to_polars().select("id").collect().to_dicts() == [{"id": 1}]
    assert pa.table(last).num_rows == 1 and last.arrow_schema == last.schema
    everything = table.changes(1).to_polars().filter(pl.col("_change_type") == "insert", pl.col("id") < 3)
    assert sorted(everything.collect()["id"].to_list()) == [0, 1, 2]
    assert table.changes(1).to_polars().head(3).collect().height == 3


def test_changes_merges_and_refs_are_shown(table: Table) -> None:
    shown = table.changes(2, 3, net=True)
    assert "versions 2 to 3" in repr(shown) and "to_pandas()" in repr(shown)
    assert "_change_type" in shown._repr_html_() and "2 to 3" in shown._repr_html_()
    merge = table.merge(rows(range(1)), on="id").when_matched_delete()
    assert "1 clause," in repr(merge) and "execute()" in repr(merge)
    table = table.create_tag("checked").create_branch("trial")
    assert repr(dict(table.refs)) == str(table.refs)
    assert "'checked': <tag made from version 3>" in repr(table.refs) and "<branch made from" in repr(
        table.refs
    )
