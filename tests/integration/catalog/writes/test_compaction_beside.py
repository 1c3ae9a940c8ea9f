"""Compaction beside writers: rows that they change meanwhile are dead in the new files, and no work is lost."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tests.integration.catalog.rows_changed import deleted, deletes_of
from tests.integration.catalog.writes.test_compaction import BUCKETS, SCHEMA, check, known, rows, written

from lakelog.catalog import Catalog, CommitConflict, Table, col, engine
from lakelog.catalog.core.files import deletion_vectors
from lakelog.catalog.core.files.data_file import DataFile
from lakelog.catalog.core.logs.commits import Token
from lakelog.catalog.core.parquet.copying import copied_files
from lakelog.catalog.core.writes import file_changes, row_reader
from lakelog.catalog.core.writes.compaction_commit import RewrittenFiles
from lakelog.log.errors import InvalidInput

COPYING = [
    {"change": "set-property", "key": f"lakelog.write.{operation}.mode", "value": "copy-on-write"}
    for operation in ("delete", "update", "merge")
]


@pytest.fixture
def table(catalog: Catalog) -> Table:
    """Ten files of ten rows in two partitions, some of them deleted."""
    table = catalog.create_table("t", SCHEMA, partition_by=[BUCKETS])
    for first in range(0, 50, 10):
        table = table.append(rows(*range(first, first + 10)))
    return deleted(table, [3, 14, 44])


def other_table(catalog: Catalog) -> Table:
    return Catalog(catalog.warehouse).load_table("t")


def changed_counts(table: Table, version: int) -> Counter[tuple[str, int, str]]:
    rows = table.changes(version + 1).to_arrow().to_pylist()
    return Counter((each["_change_type"][:6], each["id"], each["name"]) for each in rows)


def files_of(table: Table) -> set[str]:
    return set(table.plan()["path"].to_pylist())


@pytest.mark.parametrize("apart", [False, True])
def test_rows_that_others_change_meanwhile_are_dead_in_the_new_files(
    catalog: Catalog, table: Table, apart: bool
) -> None:
    write, groups = written(table)
    with patch.object(deletion_vectors, "INLINE_MAX_BYTES", 0 if apart else 512):
        other_table(catalog).delete(col("id").is_in([20, 5]))
        other_table(catalog).update({"name": "'new'"}, col("id").is_in([21, 44, 30]))
        facts_before = known(other_table(catalog))
        token = Token(commit_id=write.id, bases={table.table_head.tracked.location: table.version})
        table_after, lost_numbers = engine.commit_compaction(table, write, groups, token=token)
    assert lost_numbers == [] and known(table_after) == facts_before
    assert files_of(table_after).isdisjoint({path for group in groups for path in group.removed})
    assert changed_counts(table_after, table.version) == Counter(
        [("delete", id, f"n{id}") for id in (5, 20)]
        + [("delete", id, f"n{id}") for id in (21, 30)]
        + [("insert", id, "new") for id in (21, 30)]
    )
    assert not changed_counts(table_after, table_after.version - 1), "the compaction itself changes no row"
    # A retry gives the same, whatever has happened since.
    other_table(catalog).append(rows(500)).compact(deleted_ratio=0)
    for asking_table in (table, other_table(catalog)):
        assert engine.commit_compaction(asking_table, write, groups, token=token)[1] == []
    assert set(known(other_table(catalog))) == {*facts_before, 500}
    check(catalog, leftovers=True)


def test_rows_of_files_that_others_have_rewritten_are_dead_in_the_new_files(
    catalog: Catalog, table: Table
) -> None:
    table = table.alter(COPYING)
    write, groups = written(table)
    other_table(catalog).update({"name": "'new'"}, col("id") == 20)
    other_table(catalog).delete(col("id") == 41)
    facts_before = known(other_table(catalog))
    table_after, lost_numbers = engine.commit_compaction(table, write, groups)
    assert lost_numbers == [] and known(table_after) == facts_before
    assert table_after.file_count == 2 + 2, (
        "a new one in each partition, and the two that others have rewritten"
    )
    again = table_after.compact(deleted_ratio=0)
    assert known(again) == facts_before and again.file_count == 2
    check(catalog, leftovers=True)


def test_a_group_is_left_out_where_most_of_its_files_are_gone(catalog: Catalog, table: Table) -> None:
    table = table.alter(COPYING)
    write, groups = written(table)
    of_first = set(groups[0].removed)
    ids = [
        min(id for id in known(table) if id // 10 == at and path_of(table, id) in of_first) for at in range(4)
    ]
    other_table(catalog).delete(col("id").is_in(ids))
    facts_before = known(other_table(catalog))
    table_after, lost_numbers = engine.commit_compaction(table, write, groups)
    assert lost_numbers == [0] and known(table_after) == facts_before
    assert len(of_first & files_of(table_after)) == 1
    check(catalog, leftovers=True)


def path_of(table: Table, id: int) -> str:
    [one] = deletes_of(table, [id])
    return one["path"]


def test_rows_that_come_back_meanwhile_are_not_lost(catalog: Catalog, table: Table) -> None:
    write, groups = written(table)
    back = other_table(catalog).set_current_version(table.version - 1)
    assert {3, 14, 44} < set(known(back))
    table_after, lost_numbers = engine.commit_compaction(table, write, groups)
    assert lost_numbers and known(table_after) == known(back)
    live = files_of(table_after)
    assert all(live.issuperset(groups[at].removed) for at in lost_numbers)


def test_rows_that_came_back_and_went_again_are_as_they_were(catalog: Catalog, table: Table) -> None:
    write, groups = written(table)
    other_table(catalog).delete(col("id") >= 0)
    assert not known(other_table(catalog))
    other_table(catalog).set_current_version(table.version - 1)
    again = deleted(other_table(catalog), [3, 14, 44, 7])
    table_after, lost_numbers = engine.commit_compaction(table, write, groups)
    assert lost_numbers == [] and known(table_after) == known(again) and 7 not in known(table_after)
    check(catalog, leftovers=True)


def test_the_later_of_two_compactions_changes_nothing(catalog: Catalog, table: Table) -> None:
    write, groups = written(table)
    table_before = other_table(catalog).compact()
    table_after, lost_numbers = engine.commit_compaction(table, write, groups)
    assert (
        lost_numbers == [0, 1]
        and table_after.version == table_before.version
        and known(table_after) == known(table_before)
    )


def test_ids_are_looked_up_in_parts_and_without_room_to_remember_them(
    catalog: Catalog, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_reader, "PART_ROWS", 4)
    monkeypatch.setattr(row_reader, "KEPT_BYTES", 0)
    monkeypatch.setattr(row_reader, "ROWS_LIMIT", 0)
    write, groups = written(table)
    other_table(catalog).delete(col("id") >= 12)
    mine = engine.begin_write(table)
    positions = deletes_of(table, [1, 2, 7])
    table_after, lost_numbers = engine.commit_compaction(table, write, groups)
    assert lost_numbers == [] and set(known(table_after)) == set(range(12)) - {3}
    # The other way round, a writer finds its rows in the files of the compaction.
    finished_table = engine.commit_rows(
        table, mine, "delete", deletes=positions, condition=col("id").is_in([1, 2, 7])
    )
    assert set(known(finished_table)) == {0, 4, 5, 6, 8, 9, 10, 11}
    check(catalog, leftovers=True)


def beside(catalog: Catalog, work: Callable[[], object]) -> Any:
    """Let others do something whenever a compaction has read the rows of its files."""

    def meanwhile(*arguments: Any, **named: Any) -> list[DataFile]:
        files = copied_files(*arguments, **named)
        work()
        return files

    return patch("lakelog.catalog.core.writes.compaction_commit.copied_files", meanwhile)


def test_a_compaction_in_a_loop_beside_changes_of_rows_loses_none_of_its_work(
    catalog: Catalog, table: Table
) -> None:
    numbers, fresh, written = iter(range(60)), iter(range(1000, 2000)), 0

    def work() -> None:
        nonlocal written
        written += 1
        other_table(catalog).delete(col("id") == next(numbers))
        other_table(catalog).update({"name": "'u'"}, col("id").is_in([next(numbers), next(numbers)]))
        other_table(catalog).append(rows(next(fresh)))

    expected = set(known(table))
    for _ in range(6):
        with beside(catalog, work):
            other_table(catalog).compact(deleted_ratio=0)
    operations = Counter(entry.operation for entry in other_table(catalog).history(limit=100))
    assert operations["compact"] == written >= 6
    removed_numbers = {number for number in range(0, next(numbers), 3)}
    assert set(known(other_table(catalog))) == expected - removed_numbers | set(range(1000, next(fresh)))
    updated_rows = other_table(catalog).scan(filter=col("name") == "u").to_arrow()["id"].to_pylist()
    assert set(updated_rows) == {id for id in expected if id < 3 * written and id % 3}
    check(catalog, leftovers=True)


def test_files_without_row_ids_are_planned_anew_and_it_gives_up_where_others_are_always_faster(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_changes, "with_ids", lambda files, next_row: list(files))
    table = catalog.create_table("t", SCHEMA)
    for first in range(0, 50, 10):
        table = table.append(rows(*range(first, first + 10)))
    numbers = iter(range(50))
    with (
        beside(catalog, lambda: other_table(catalog).delete(col("id").is_in([next(numbers), next(numbers)]))),
        pytest.raises(CommitConflict, match="5 times"),
    ):
        table.compact()
    assert table.refresh().row_count == 50 - 10
    assert other_table(catalog).compact().file_count == 1
    check(catalog)


def test_a_file_is_in_one_group_only(table: Table) -> None:
    write, groups = written(table)
    twice = RewrittenFiles(groups[0].removed, groups[1].files)
    with pytest.raises(InvalidInput, match="occurs twice"):
        engine.commit_compaction(table, write, [groups[0], twice])


def a_writer(catalog: Catalog, seconds: float, seed: int) -> tuple[set[int], dict[int, str]]:
    """Change rows ten times a second, and return which are gone, and the last name of those that were updated."""
    rng, removed_numbers, names = random.Random(seed), set[int](), dict[int, str]()
    table = Catalog(catalog.warehouse).load_table("t")
    for turn in range(int(seconds * 10)):
        start_time = time.monotonic()
        id = rng.choice([id for id in range(seed, ROWS, WRITERS) if id not in removed_numbers])
        table = table.refresh()
        if turn % 3:
            names[id] = f"{seed}-{turn}"
            table = table.update({"name": f"'{names[id]}'"}, col("id") == id)
        else:
            table = table.delete(col("id") == id)
            removed_numbers.add(id)
        time.sleep(max(0.0, 0.1 - (time.monotonic() - start_time)))
    return removed_numbers, names


ROWS, WRITERS = 2000, 2


@pytest.mark.parametrize("seconds", [3, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_no_writer_conflicts_and_no_compaction_is_thrown_away(
    tmp_path: Path, seconds: float, mode: str
) -> None:
    catalog = Catalog(str(tmp_path))
    modes = {f"lakelog.write.{operation}.mode": mode for operation in ("delete", "update")}
    table = catalog.create_table("t", SCHEMA, properties=modes)
    for first in range(0, ROWS, ROWS // 10):
        table = table.append(rows(*range(first, first + ROWS // 10)))
    start, ids, written = table, {id: row for id, (row, _) in known(table).items()}, 0

    def count() -> None:
        nonlocal written
        written += 1

    with ThreadPoolExecutor() as pool:
        writers = [pool.submit(a_writer, catalog, seconds, seed) for seed in range(WRITERS)]
        with beside(catalog, count):
            while not all(future.done() for future in writers):
                other_table(catalog).compact(deleted_ratio=0.0)
    results = [future.result() for future in writers]
    names = {id: f"n{id}" for id in range(ROWS)}
    for removed_numbers, changed_names in results:
        names |= changed_names
        for id in removed_numbers:
            names.pop(id, None)
    table_after = other_table(catalog)
    found_rows = table_after.to_arrow()
    assert dict(zip(found_rows["id"].to_pylist(), found_rows["name"].to_pylist(), strict=True)) == names
    assert found_rows.num_rows == len(names)
    assert {id: row for id, (row, _) in known(table_after).items()} == {id: ids[id] for id in names}
    operations = Counter(entry.operation for entry in table_after.history(limit=10_000))
    if mode == "merge-on-read":
        assert operations["compact"] == written > 0
    else:
        # Where others have rewritten all but one of its files, a compaction would only make that one larger.
        assert operations["compact"] > 0.8 * written
    net = Counter({(id, f"n{id}"): 1 for id in range(ROWS)})
    for (label, id, name), count_ in changed_counts(table_after, start.version).items():
        net[(id, name)] += count_ if label == "insert" else -count_
    assert {each_pair: count_ for each_pair, count_ in net.items() if count_} == dict.fromkeys(
        names.items(), 1
    )


@pytest.mark.parametrize("copying", [False, True])
@pytest.mark.parametrize("change", ["add", "rename", "drop"])
def test_a_change_of_rows_beside_a_compaction_and_new_columns(
    catalog: Catalog, table: Table, change: str, copying: bool
) -> None:
    """Columns that were added or renamed meanwhile leave rows as they are; what a dropped one had, no file says."""
    if copying:
        table = table.alter(COPYING)
    altered = {
        "add": {"change": "add-column", "name": ["more"], "type": "integer"},
        "rename": {"change": "rename-column", "name": ["name"], "new_name": "title"},
        "drop": {"change": "delete-column", "name": ["name"]},
    }
    other_table(catalog).alter([altered[change]])
    if change == "add":
        other_table(catalog).update({"more": "7"}, "id = 21")
    other_table(catalog).compact()
    if change == "drop":
        with pytest.raises(CommitConflict, match="removed or rewritten"):
            table.update({"name": "'new'"}, "id = 20")
        return
    if change == "add":
        with pytest.raises(CommitConflict):
            table.update({"name": "'lost'"}, "id = 21")
    table.update({"name": "'new'"}, "id = 20")
    found_rows = {row["id"]: row for row in other_table(catalog).to_arrow().to_pylist()}
    assert len(found_rows) == 47
    assert found_rows[20]["title" if change == "rename" else "name"] == "new"
    if change == "add":
        assert [id for id, row in found_rows.items() if row["more"]] == [21]
