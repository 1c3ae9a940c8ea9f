"""Overwriting rows of files that hold others too: which go and which stay, and what others may do meanwhile."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.integration.catalog.rows_changed import (
    compacted,
    deleted,
    path_with,
    positions,
    rows,
    rows_of,
    two_files,
)

from lakelog.catalog import Catalog, CommitConflict, Table, col, engine
from lakelog.catalog.core.parquet.copying import copied_files
from lakelog.catalog.core.planning import bind
from lakelog.catalog.core.schema.predicate import Predicate
from lakelog.catalog.keeping.maintenance import fsck
from lakelog.log import InvalidInput, Unsupported

MODES = ("merge-on-read", "copy-on-write")


@pytest.fixture(params=MODES)
def table(catalog: Catalog, request: pytest.FixtureRequest) -> Table:
    """The rows 0 to 9 in one file, 10 to 19 in another."""
    mode = {"change": "set-property", "key": "lakelog.write.delete.mode", "value": request.param}
    return two_files(catalog).alter([mode])


def copies(table: Table) -> bool:
    return table.properties["lakelog.write.delete.mode"] == "copy-on-write"


def ids(table: Table) -> list[int]:
    return [id for id, _ in rows_of(table.refresh())]


def row_facts(table: Table) -> dict[int, tuple[int, int]]:
    found_columns = table.scan(row_ids=True).to_arrow().to_pydict()
    columns = (found_columns["_row_id"], found_columns["_row_version"])
    return dict(zip(found_columns["id"], zip(*columns, strict=True), strict=True))


def test_rows_that_match_are_replaced_and_those_beside_them_stay_as_they_are(
    catalog: Catalog, table: Table
) -> None:
    row_facts_before = row_facts(table)
    table_after = table.overwrite(
        rows(range(100, 102)), ((col("id") >= 8) & (col("id") <= 12)) | (col("id") == 3)
    )
    assert ids(table_after) == [*range(3), *range(4, 8), *range(13, 20), 100, 101]
    current_row_facts = row_facts(table_after)
    assert {id: current_row_facts[id] for id in current_row_facts if id < 100} == {
        id: row_facts_before[id] for id in current_row_facts if id < 100
    }
    assert {current_row_facts[100][1], current_row_facts[101][1]} == {table_after.version}
    assert len({row_id for row_id, _ in current_row_facts.values()}) == len(current_row_facts)
    assert ("deletes" in table_after.plan().column_names) == (not copies(table))
    assert [id for id, _ in rows_of(table_after.at(version=table.version))] == list(range(20))
    assert fsck.check_warehouse(catalog._logs, deep=True, all_versions=True).found == []


def test_columns_of_structs_and_what_became_of_them_stay_as_they_are(catalog: Catalog, table: Table) -> None:
    """Their parts are called otherwise in files."""
    kind = {"type": "struct", "fields": [{"name": "x", "type": "integer", "nullable": True, "metadata": {}}]}
    table = table.alter([{"change": "add-column", "name": ["s"], "type": kind}])
    new = rows(range(20, 23)).append_column("s", pa.array([{"x": 1}, {"x": None}, None]))
    table = table.append(new.cast(table.to_arrow().schema))
    table = table.alter([{"change": "rename-column", "name": ["s", "x"], "new_name": "y"}])
    row_facts_before = row_facts(table)
    table = table.overwrite(table.to_arrow().slice(0, 0), (col("s", "y") == 1) | (col("id") < 9))
    assert dict(zip(ids(table), table.to_arrow().sort_by("id")["s"].to_pylist(), strict=True)) == {
        **dict.fromkeys([*range(9, 20), 22]), 21: {"y": None},
    }  # fmt: skip
    assert row_facts(table) == {id: row_facts_before[id] for id in ids(table)}
    assert row_facts(table.delete(col("id") == 10).compact()) == {
        id: row_facts_before[id] for id in ids(table) if id != 10
    }
    assert fsck.check_warehouse(catalog._logs, deep=True).found == []


def test_rows_for_which_the_condition_is_null_stay(catalog: Catalog, table: Table) -> None:
    table = table.append(pa.table({"id": [20, 21], "name": [None, "n21"]}))
    table = table.overwrite(rows(range(0)), col("name") != "n3")
    assert ids(table) == [3, 20]


def test_rows_that_are_deleted_already_stay_deleted(table: Table) -> None:
    table = deleted(table, [4, 5])
    table = table.overwrite(rows(range(50, 51)), col("id") > 6)
    assert ids(table) == [0, 1, 2, 3, 6, 50]
    assert table.row_count == 6
    table = table.overwrite(rows(range(51, 52)), col("name").is_in([f"n{id}" for id in range(5)]))
    assert ids(table) == [6, 50, 51]


def test_a_file_of_which_no_row_is_left_is_removed(table: Table) -> None:
    # Statistics do not prove it: the names of the first file are not all of those between its extremes.
    table_after = table.overwrite(rows(range(0)), col("name").contains("n"))
    assert (table_after.file_count, table_after.row_count) == (0, 0)


def test_files_without_rows_that_match_are_left_alone(table: Table) -> None:
    paths = set(table.plan()["path"].to_pylist())
    table_after = table.overwrite(rows(range(30, 31)), col("name") == "n1x")
    assert paths < set(table_after.plan()["path"].to_pylist())
    assert next(iter(table_after.history())).operation == "overwrite"


def test_the_commit_says_how_many_rows_it_has_deleted(table: Table) -> None:
    table_after = table.overwrite(rows(range(50, 52)), col("id") < 3)
    entry = next(iter(table_after.history()))
    if copies(table):
        assert entry.operation == "delete, overwrite"
        counts = [
            (change.get("removed_rows", 0), change.get("added_rows", 0))
            for change in changes_in(entry.details)
        ]
        assert counts == [(10, 7), (0, 2)]
    else:
        assert entry.operation == "overwrite"
        assert (entry.details["added_rows"], entry.details["deleted_rows"]) == (2, 3)


def changes_in(details: Any) -> list[Any]:
    found_changes: list[Any] = details["changes"]
    return found_changes


def test_a_filter_that_cannot_be_decided_exactly_is_refused(table: Table) -> None:
    unknown = Predicate("SPARK:Rand", ())
    assert not engine.can_overwrite(table, unknown)
    with pytest.raises(Unsupported):
        table.overwrite(rows(range(1)), unknown)
    assert engine.can_overwrite(table, col("id") == 1)


def test_rows_that_others_add_or_delete_meanwhile_are_not_lost(client: Any, table: Table) -> None:
    other_table = client().load_table("t")
    write = engine.begin_write(table)
    other_table = other_table.append(rows(range(30, 32)))
    assert ids(engine.commit_write(table, write, "overwrite", (), filter=col("id").is_in([3, 4])))[-2:] == [
        30,
        31,
    ]
    for change in (
        lambda: other_table.refresh().append(rows(range(5, 6))),
        lambda: other_table.refresh().delete(col("id") == 7),
    ):
        stale = table.refresh()
        write = engine.begin_write(stale)
        change()
        with pytest.raises(CommitConflict):
            engine.commit_write(stale, write, "overwrite", (), filter=(col("id") >= 5) & (col("id") <= 8))
    assert ids(table) == [0, 1, 2, 5, 5, 6, 8, 9, *range(10, 20), 30, 31]


def test_others_cannot_change_rows_that_were_overwritten(client: Any, table: Table) -> None:
    other_table = client().load_table("t")
    table.overwrite(rows(range(50, 51)), col("id") < 3)
    with pytest.raises(CommitConflict):
        compacted(other_table)
    with pytest.raises(CommitConflict):
        other_table.overwrite(rows(range(60, 61)), col("id") == 5)
    assert ids(table) == [*range(3, 20), 50]


def test_rows_that_an_engine_has_found_are_taken_from_it_where_they_can_be_so(table: Table) -> None:
    path, other_text = path_with(table, 3), path_with(table, 13)
    asked: dict[str, Any] = {"operation": "overwrite", "files": (), "filter": col("name").is_in(["n3", "n5"])}
    for wrong in ([positions(other_text, [3])], [positions(path, [10])], [positions(path, [3])] * 2):
        with pytest.raises(InvalidInput):
            engine.commit_write(table, engine.begin_write(table), deletes=wrong, **asked)
    table = engine.commit_write(table, engine.begin_write(table), deletes=[positions(path, [3, 5])], **asked)
    assert ids(table) == [0, 1, 2, 4, *range(6, 20)]


def test_a_condition_that_only_an_engine_evaluates_takes_the_rows_that_it_has_found(
    client: Any, table: Table
) -> None:
    unknown = Predicate("SPARK:(id % 4) = 3")
    asked: dict[str, Any] = {"operation": "overwrite", "files": (), "filter": (col("id") < 10) & unknown}
    with pytest.raises(Unsupported, match=r"SPARK:\(id % 4\) = 3"):
        engine.commit_write(table, engine.begin_write(table), **asked)
    # Only the files are asked for in which the condition may be true.
    path, other_text = path_with(table, 3), path_with(table, 13)
    assert engine.plan_partial(table, asked["filter"])["path"].to_pylist() == [path]
    with pytest.raises(InvalidInput, match="does not match"):
        engine.commit_write(table, engine.begin_write(table), deletes=[positions(other_text, [3])], **asked)
    write = engine.begin_write(table)
    stay = copied_files(
        table.table_head,
        engine.plan_partial(table, asked["filter"]),
        bind(col("id").is_in([3, 7]), table.schema),
        write,
    )
    found: dict[str, Any] = {"deletes": [positions(path, [3, 7])], "copies": stay if copies(table) else None}
    table_after = engine.commit_write(table, write, **found, **asked)
    assert ids(table_after) == [0, 1, 2, 4, 5, 6, 8, 9, *range(10, 20)]
    # What is not known may be true of rows that others add, and of those that were moved; not of others.
    for change in (
        lambda: client().load_table("t").append(rows(range(8, 9))),
        lambda: compacted(client().load_table("t")),
    ):
        stale = table.refresh()
        place, write = path_with(stale, 0), engine.begin_write(stale)
        change()
        with pytest.raises(CommitConflict):
            engine.commit_write(stale, write, deletes=[positions(place, [0])], copies=[], **asked)
    stale = table.refresh()
    write = engine.begin_write(stale)
    client().load_table("t").append(rows(range(30, 31)))
    assert 30 in ids(engine.commit_write(stale, write, deletes=[], **asked))


def test_rows_that_an_engine_has_copied_are_taken_from_it(catalog: Catalog, table: Table) -> None:
    row_facts_before, path = row_facts(table), path_with(table, 3)
    write, plan = engine.begin_write(table), table.plan()
    asked: dict[str, Any] = {"operation": "overwrite", "files": (), "filter": col("id").is_in([3, 5])}
    some_plan = plan.filter(pa.array([row == path for row in plan["path"].to_pylist()]))
    engines = copied_files(table.table_head, some_plan, bind(asked["filter"], table.schema), write)
    with pytest.raises(InvalidInput, match="must copy the rows that stay: 9, not 8"):
        engine.commit_write(table, write, deletes=[positions(path, [3])], copies=engines, **asked)
    table_after = engine.commit_write(
        table, write, deletes=[positions(path, [3, 5])], copies=engines, **asked
    )
    assert row_facts(table_after) == {id: row for id, row in row_facts_before.items() if id not in (3, 5)}
    assert (engines[0].path in table_after.plan()["path"].to_pylist()) == copies(table)


def test_copies_of_rows_that_a_compaction_has_moved_are_not_needed(catalog: Catalog, table: Table) -> None:
    row_facts_before, path = row_facts(table), path_with(table, 3)
    write, plan = engine.begin_write(table), table.plan()
    filter = col("id").is_in([3, 5])
    some_plan = plan.filter(pa.array([row == path for row in plan["path"].to_pylist()]))
    engines = copied_files(table.table_head, some_plan, bind(filter, table.schema), write)
    table.compact(target_size_bytes=1 << 20)
    deletes = [positions(path, [3, 5])]
    table_after = engine.commit_write(
        table, write, "overwrite", (), filter=filter, deletes=deletes, copies=engines
    )
    assert row_facts(table_after) == {id: row for id, row in row_facts_before.items() if id not in (3, 5)}
    assert table_after.file_count == 1 and "deletes" in table_after.plan().column_names


def test_rows_that_a_compaction_has_moved_without_the_column_of_the_condition_are_a_conflict(
    client: Any, table: Table
) -> None:
    seen_table = table.add_column("c", "integer").update({"c": "id"})
    row = pa.table({"id": [99], "c": [99]}, schema=seen_table.scan(columns=["id", "c"]).to_arrow().schema)
    seen_table = seen_table.append(row)
    dropped = client().load_table("t").drop_column("c")
    with_others = dropped.compact(target_size_bytes=1 << 20)
    assert with_others.file_count == 1
    with pytest.raises(CommitConflict, match="by c, which was dropped meanwhile"):
        seen_table.overwrite(row, col("c") == 3)
    assert ids(table) == [*range(20), 99]
    # By a column that is there, the rows are found.
    seen_table.overwrite(row, col("id") == 3)
    assert ids(table) == [0, 1, 2, *range(4, 20), 99, 99]


def test_a_write_that_is_committed_again_is_one_commit(client: Any, table: Table) -> None:
    write = engine.begin_write(table)
    first = engine.commit_write(table, write, "overwrite", (), filter=col("id") < 3)
    again = engine.commit_write(client().load_table("t"), write, "overwrite", (), filter=col("id") < 3)
    assert again.version == first.version
    assert ids(table) == list(range(3, 20))


def test_steps_of_a_transaction_cut_files_of_each_other(catalog: Catalog, table: Table) -> None:
    with catalog.transaction() as tx:
        mine = tx.load_table("t").overwrite(rows(range(50, 53)), col("id") < 3)
        mine = mine.overwrite(rows(range(60, 61)), col("id").is_in([4, 51]))
        mine.append(rows(range(70, 71)))
        catalog.load_table("t").append(rows(range(80, 81)))
    assert ids(table) == [3, *range(5, 20), 50, 52, 60, 70, 80]


def test_a_transaction_fails_where_others_deleted_rows_beside(catalog: Catalog, table: Table) -> None:
    tx = catalog.begin()
    tx.load_table("t").overwrite(rows(range(50, 51)), col("id") < 3)
    catalog.load_table("t").delete(col("id") == 8)
    with pytest.raises(CommitConflict):
        tx.commit()
    assert ids(table) == [*range(8), *range(9, 20)]


def test_a_branch_is_overwritten_and_the_table_is_not(catalog: Catalog, table: Table) -> None:
    table.create_branch("b")
    branch = catalog.load_table("t", ref="b")
    assert ids(branch.overwrite(rows(range(50, 51)), col("id") < 18)) == [18, 19, 50]
    assert ids(table) == list(range(20))
    table.refresh().fast_forward("main", "b")
    assert ids(table) == [18, 19, 50]


def test_files_of_an_older_partitioning_are_cut_by_partitions(catalog: Catalog, table: Table) -> None:
    fields = [{"transform": "truncate", "args": [4], "column": ["id"]}]
    table = table.alter([{"change": "set-partitioning", "fields": fields}])
    table = table.overwrite_partitions(rows(range(5, 6)))
    assert ids(table) == [*range(4), 5, *range(8, 20)]
    table = table.overwrite_partitions(rows(range(6, 8)))
    assert ids(table) == [*range(4), 6, 7, *range(8, 20)]


@pytest.mark.parametrize("net", [False, True])
def test_changes_show_the_rows_that_came_and_went(table: Table, net: bool) -> None:
    table_after = table.overwrite(rows(range(50, 52)), col("id").is_in([3, 14]))
    found_rows = table_after.changes(table_after.version, net=net).to_arrow()
    changes = sorted(zip(found_rows["_change_type"].to_pylist(), found_rows["id"].to_pylist(), strict=True))
    assert changes == [("delete", 3), ("delete", 14), ("insert", 50), ("insert", 51)]
