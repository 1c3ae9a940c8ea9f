"""Compaction: fewer files, the same rows with the same ids, whatever other writers change meanwhile."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from tests.integration.catalog.rows_changed import deleted

from lakelog.catalog import Catalog, CommitConflict, Table, col, engine
from lakelog.catalog.core.files.data_file import file_path
from lakelog.catalog.core.parquet.copying import copied_files
from lakelog.catalog.core.planning.bound import ConstantCondition
from lakelog.catalog.core.state.compaction import goal_of
from lakelog.catalog.core.writes.compaction_commit import RewrittenFiles
from lakelog.catalog.keeping.maintenance import fsck
from lakelog.log import WriteRef
from lakelog.log.errors import CommitUnknown, InvalidInput, Unsupported

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})
BUCKETS = {"transform": "bucket", "args": [2], "column": ["id"]}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "name": [f"n{id}" for id in ids]}, schema=SCHEMA)


def known(table: Table) -> dict[int, tuple[int, int]]:
    """Return id and version of each row, by its own number, which is there once."""
    rows = table.scan(row_ids=True).to_arrow()
    numbers = rows["id"].to_pylist()
    assert max(Counter(numbers).values(), default=1) == 1
    return dict(
        zip(
            numbers,
            zip(rows["_row_id"].to_pylist(), rows["_row_version"].to_pylist(), strict=True),
            strict=True,
        )
    )


def check(catalog: Catalog, *, leftovers: bool = False) -> None:
    """With `leftovers`, files of writes that gave up may be there."""
    kinds = {
        finding.kind for finding in fsck.check_warehouse(catalog._logs, deep=True, all_versions=True).found
    }
    assert kinds <= ({"data-file-unused"} if leftovers else set())


@pytest.fixture
def table(catalog: Catalog) -> Table:
    """Ten files of ten rows in two partitions, some of them deleted."""
    table = catalog.create_table("t", SCHEMA, partition_by=[BUCKETS])
    for first in range(0, 50, 10):
        table = table.append(rows(*range(first, first + 10)))
    return deleted(table, [3, 14, 44])


def test_small_files_become_one_in_each_partition_with_the_ids_of_their_rows(
    catalog: Catalog, table: Table
) -> None:
    facts_before, files = known(table), table.file_count
    compacted_table = table.compact()
    assert files > 4 and compacted_table.file_count == 2
    assert known(compacted_table) == facts_before
    assert "deletes" not in compacted_table.plan().column_names
    [last] = compacted_table.history(limit=1)
    assert last.operation == "compact"
    assert known(compacted_table.at(version=table.version)) == facts_before
    assert compacted_table.compact().version == compacted_table.version
    check(catalog)


def test_files_are_chosen_by_a_filter_and_by_what_is_known_of_them(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA, partition_by=["name"])
    for id in range(6):
        table = table.append(pa.table({"id": [id], "name": ["a" if id % 2 else "b"]}))
    some_table = table.compact((col("name") == "a") & (col("id") > 1))
    assert some_table.file_count == 5  # of a, 3 and 5 went together
    assert some_table.compact(col("name") == "z").version == some_table.version
    assert some_table.compact().file_count == 2
    with pytest.raises(Unsupported, match="compare columns with values"):
        table.compact({"op": "SPARK:Something", "args": [{"col": ["id"]}]})


def test_large_files_stay_unless_many_of_their_rows_are_deleted(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA)
    for first in (0, 1000, 2000):
        table = table.append(rows(*range(first, first + 1000)))
    size = table.size_bytes // 3
    assert table.compact(target_size_bytes=size).version == table.version
    few = deleted(table, list(range(100)))
    assert few.compact(target_size_bytes=size).version == few.version
    many = deleted(few, list(range(1500, 1900)))
    table_after = many.compact(target_size_bytes=size)
    assert known(table_after) == known(many)
    assert table_after.file_count == 3 and sum(table_after.plan()["deletes"].is_valid().to_pylist()) == 1
    assert table_after.compact(target_size_bytes=10 * size).file_count == 1
    check(catalog)


def test_all_deleted_rows_go_where_that_is_asked_for(catalog: Catalog) -> None:
    table = deleted(catalog.create_table("t", SCHEMA).append(rows(*range(100))), [7])
    assert table.compact().version == table.version
    assert "deletes" not in table.compact(deleted_ratio=0).plan().column_names


def test_files_of_an_earlier_partitioning_find_the_partitions_of_today(catalog: Catalog) -> None:
    table = catalog.create_table("t", pa.schema({"id": pa.int64(), "k": pa.int64()}))
    for first in range(0, 40, 10):
        table = table.append(pa.table({"id": range(first, first + 10), "k": [id % 2 for id in range(10)]}))
    facts_before = known(table)
    table = table.alter([{"change": "add-partition-field", "field": "k"}])
    table = table.append(pa.table({"id": [100], "k": [0]}))
    table = table.compact()
    assert engine.partitions(table).num_rows == 2
    assert {id: known(table)[id] for id in facts_before} == facts_before
    assert table.compact().file_count == 2
    check(catalog)


@pytest.mark.parametrize("given", [{"target_size_bytes": 0}, {"target_size_bytes": -5}, {"deleted_ratio": 1.5},
                                   {"deleted_ratio": float("nan")}])  # fmt: skip
def test_what_makes_no_sense_is_refused(table: Table, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="give"):
        table.compact(**given)
    with pytest.raises(InvalidInput, match="past"):
        table.at(version=2).compact()


# Beside others


def test_files_that_shall_be_as_large_as_can_be_said_have_sizes_that_fit_into_64_bits() -> None:
    goal = goal_of({}, 2**63 - 1, None)
    assert goal.target_size_bytes > 10**15
    assert goal.most_bytes * 1000 < 2**63


def written(table: Table) -> tuple[WriteRef, list[RewrittenFiles]]:
    """Write anew what is to be, a group in each partition."""
    goal = goal_of(table.properties, None, None)
    files, groups = engine.plan_compaction(table, goal, None, until=table.version, limit_bytes=1 << 40)
    write = engine.begin_write(table)
    found, start = [], 0
    for number, group in enumerate(groups):
        part = files.slice(start, group.files)
        start += group.files
        new = copied_files(table.table_head, part, ConstantCondition(False), write)
        assert len(new) == 1
        # Each call counts its files from 0 on, and the next one would write over them.
        store, prefix, path = (
            table.table_head.tracked.store,
            table.table_head.tracked.prefix,
            file_path(write, f"group-{number}"),
        )
        store.put(f"{prefix}/{path}", store.get(f"{prefix}/{new[0].path}"))
        store.delete([f"{prefix}/{new[0].path}"])
        found.append(RewrittenFiles(part["path"].to_pylist(), [msgspec.structs.replace(new[0], path=path)]))
    return write, found


def test_a_request_that_is_retried_when_its_version_has_expired_keeps_its_files(
    catalog: Catalog, table: Table
) -> None:
    write, groups = written(table)
    engine.commit_compaction(table, write, groups)
    catalog.load_table("t").append(rows(50))
    catalog.expire("t", retain_last=1, dry_run=False)
    with pytest.raises(CommitUnknown, match="has expired since"):
        engine.commit_compaction(table, write, groups)


def test_appends_and_deletes_of_other_files_do_not_conflict(catalog: Catalog, table: Table) -> None:
    write, groups = written(table)
    assert len(groups) == 2
    other_table = catalog.load_table("t").append(rows(100, 101))
    table_after, lost_numbers = engine.commit_compaction(table, write, groups)
    assert lost_numbers == [] and known(table_after) == known(other_table)
    check(catalog)


def test_nothing_is_committed_where_others_have_changed_all_of_it(catalog: Catalog, table: Table) -> None:
    write, groups = written(table)
    catalog.load_table("t").truncate()
    table_after, lost_numbers = engine.commit_compaction(table, write, groups)
    assert lost_numbers == [0, 1] and table_after.row_count == 0
    assert [entry.operation for entry in table_after.history(limit=1)] == ["truncate"]


def test_it_is_a_step_of_a_transaction(catalog: Catalog, table: Table) -> None:
    facts_before = known(table)
    with catalog.transaction() as tx:
        mine = tx.load_table("t").append(rows(100)).compact(target_size_bytes=2048)
        assert mine.row_count == 48
        catalog.load_table("t").append(rows(200))
    table_after = catalog.load_table("t")
    assert set(known(table_after)) == {*facts_before, 100, 200}
    assert {id: known(table_after)[id] for id in facts_before} == facts_before
    with catalog.transaction() as tx:
        tx.load_table("t").delete(col("id") == 1)
        tx.load_table("t").compact()
        catalog.load_table("t").delete(col("id") == 2)
    remaining_numbers = {*facts_before, 100, 200} - {1, 2}
    assert set(known(catalog.load_table("t"))) == remaining_numbers
    with pytest.raises(CommitConflict), catalog.transaction() as tx:
        tx.load_table("t").compact(deleted_ratio=0)
        catalog.load_table("t").truncate()
    assert not known(catalog.load_table("t"))
    check(catalog, leftovers=True)


def test_columns_that_are_renamed_meanwhile_fit_and_others_may_not(catalog: Catalog, table: Table) -> None:
    write, groups = written(table)
    rename = {"change": "rename-column", "name": ["name"], "new_name": "title"}
    catalog.load_table("t").alter([rename])
    table_after, lost_numbers = engine.commit_compaction(table, write, groups)
    assert lost_numbers == [] and table_after.schema.fields[1].name == "title"
    table = table_after.append(pa.table({"id": [60, 62], "title": ["a", "b"]}))
    write, groups = written(table)
    required = {"change": "update-column-nullability", "name": ["title"], "nullable": False}
    catalog.load_table("t").alter([required])
    with pytest.raises(CommitConflict, match="NOT NULL"):
        engine.commit_compaction(table, write, groups)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_compacted_the_rows_stay_and_it_ends(catalog: Catalog, seed: int) -> None:
    rng = random.Random(seed)
    table = catalog.create_table("t", SCHEMA, partition_by=[BUCKETS])
    taken_number = 0
    for _ in range(12):
        count = rng.choice((1, 5, 200))
        table = table.append(rows(*range(taken_number, taken_number + count)))
        taken_number += count
        if rng.random() < 0.4:
            table = table.delete(
                col("id").is_in(rng.sample(range(taken_number), min(taken_number, rng.choice((1, 50)))))
            )
    facts_before = known(table)
    target = rng.choice((1024, 4096, 1 << 20))
    table_after = table.compact(target_size_bytes=target)
    assert known(table_after) == facts_before and table_after.file_count <= table.file_count
    again = table_after.compact(target_size_bytes=target)
    assert again.compact(target_size_bytes=target).file_count == again.file_count
    assert known(again) == facts_before
    check(catalog)


def test_a_branch_is_compacted_by_itself(catalog: Catalog, table: Table) -> None:
    table.create_branch("b")
    branch = catalog.load_table("t", ref="b").append(rows(100))
    facts_before, main = known(branch), known(table.refresh())
    branch = branch.compact()
    assert branch.file_count == 2 and known(branch) == facts_before
    assert catalog.load_table("t").file_count == table.file_count
    assert catalog.load_table("t").compact().file_count == 2
    assert known(catalog.load_table("t")) == main
    assert known(catalog.load_table("t", ref="b")) == facts_before
    check(catalog)
