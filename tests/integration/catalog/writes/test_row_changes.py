"""Deleting and updating rows of files: the written files, and the rows that readers get."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.integration.catalog.rows_changed import (
    compacted,
    deleted,
    files_of,
    paths_of,
    positions,
    rewritten,
    rows,
    rows_of,
    two_files,
    updated,
)

from lakelog.catalog import Catalog, Table, col, engine
from lakelog.catalog.core.files.data_file import DataFile
from lakelog.catalog.core.files.puffin import AROUND_BYTES, HEAD_BYTES, MAGIC
from lakelog.log.errors import FormatError, InvalidInput


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return two_files(catalog)


def ids(table: Table) -> list[int]:
    return [id for id, _ in rows_of(table)]


def test_deleted_rows_are_gone_and_their_file_stays(table: Table) -> None:
    table_after = deleted(table, [3, 4, 12])
    assert ids(table_after) == [id for id in range(20) if id not in (3, 4, 12)]
    assert (
        table_after.row_count == 17
        and table_after.file_count == 2
        and paths_of(table_after) == paths_of(table)
    )
    assert ids(table) == list(range(20)), "an older version keeps its rows"
    entry = next(iter(table_after.history()))
    assert entry.operation == "delete"
    assert entry.details == {"changed_files": 2, "deleted_rows": 3}


def test_more_rows_of_the_same_file_can_be_deleted_until_none_is_left(table: Table) -> None:
    table = deleted(deleted(table, [0, 9]), [5])
    assert ids(table) == [1, 2, 3, 4, 6, 7, 8, *range(10, 20)]
    table = deleted(table, [1, 2, 3, 4, 6, 7, 8])
    assert ids(table) == list(range(10, 20))
    assert table.file_count == 1, "a file without rows is removed"
    assert next(iter(table.history())).details == {
        "removed_files": 1, "removed_rows": 7, "removed_bytes": table.at(version=3).plan()["size"][0].as_py()
    }  # fmt: skip


def test_an_update_is_a_delete_and_an_add(table: Table) -> None:
    table_after = updated(table, [4, 14], "new")
    assert rows_of(table_after) == [(id, "new" if id in (4, 14) else f"n{id}") for id in range(20)]
    assert table_after.file_count == 3


def test_a_file_can_be_rewritten(table: Table) -> None:
    first = paths_of(table)[0]
    table_after = rewritten(table, "delete", [first], rows(range(1, 10)))
    assert ids(table_after) == list(range(1, 20))
    table_after = rewritten(table_after, "update", [paths_of(table_after)[0]], rows(range(100, 110)))
    assert len(ids(table_after)) == 19


def test_a_compaction_leaves_out_what_is_deleted(table: Table) -> None:
    table_after = compacted(deleted(table, [1, 11]))
    assert ids(table_after) == [id for id in range(20) if id not in (1, 11)]
    assert table_after.file_count == 1 and "deletes" not in table_after.plan().column_names


def test_scans_with_filters_and_limits_leave_out_what_is_deleted(table: Table) -> None:
    table = deleted(table, [0, 1, 2, 10])
    assert table.scan(filter=col("id") < 5).to_arrow()["id"].to_pylist() == [3, 4]
    assert table.scan(filter=col("id").is_in([0, 10])).to_arrow().num_rows == 0
    assert table.scan(limit=8).to_arrow()["id"].to_pylist() == [3, 4, 5, 6, 7, 8, 9, 11]
    assert table.scan(columns=["name"], filter=col("id") == 11).to_arrow().to_pydict() == {"name": ["n11"]}


def test_large_vectors_stand_in_one_object_of_the_commit(catalog: Catalog) -> None:
    table = catalog.create_table("large", pa.schema({"id": pa.int64(), "name": pa.string()}))
    count = 20_000
    for first in (0, count):
        table = table.append(rows(range(first, first + count)))
    write = engine.begin_write(table)
    both = [positions(path, range(0, count, 2)) for path in paths_of(table)]
    table_after = engine.commit_rows(table, write, "delete", deletes=both)
    assert ids(table_after) == list(range(1, 2 * count, 2))
    deletes = [file.deletes for file in _files(table_after)]
    assert deletes[0] is not None and deletes[1] is not None
    assert deletes[0].path == deletes[1].path and deletes[0].path is not None
    assert deletes[0].path.startswith(f"data/{write.version:020d}-{write.id}-")
    first = len(MAGIC) + HEAD_BYTES
    assert {delete.offset for delete in deletes if delete} == {
        first,
        first + deletes[0].size_bytes + AROUND_BYTES,
    }


def test_a_vector_that_is_not_what_was_written_is_an_error(catalog: Catalog) -> None:
    table = catalog.create_table("large", pa.schema({"id": pa.int64(), "name": pa.string()}))
    table = table.append(rows(range(20_000)))
    table = engine.commit_rows(
        table,
        engine.begin_write(table),
        "delete",
        deletes=[positions(paths_of(table)[0], range(0, 20_000, 2))],
    )
    deletes = _files(table)[0].deletes
    assert deletes is not None and deletes.path is not None
    store, key = table.table_head.tracked.store, f"{table.table_head.tracked.prefix}/{deletes.path}"
    with store.open_input(key) as source:
        content = source.read()
    assert deletes.offset is not None
    begin, end = deletes.offset, deletes.offset + deletes.size_bytes
    for broken_content in (
        content[: end - 1],
        content[:begin] + b"\0" + content[begin + 1 :],
        bytes([*content[: begin + 100], content[begin + 100] ^ 1, *content[begin + 101 :]]),
    ):
        store.put(key, broken_content)
        with pytest.raises(FormatError, match="vector"):
            table.to_arrow()
    store.delete([key])
    with pytest.raises(FormatError, match="vector of its deleted rows is missing"):
        table.to_arrow()


def test_bad_requests_are_refused_and_change_nothing(table: Table) -> None:
    first, second = paths_of(table)
    write = engine.begin_write(table)
    table_after = deleted(table, [0])
    for change, why in (
        ({"deletes": [positions("data/other.parquet", [0])]}, "has no data file"),
        ({"removed": ["data/other.parquet"]}, "has no data file"),
        ({"deletes": [positions(first, [10])]}, "the file has 10 rows"),
        ({"deletes": [positions(first, [1]), positions(first, [2])]}, "name a file twice"),
        ({"deletes": [positions(first, [1])], "removed": [first]}, "occurs twice among"),
        ({"deletes": [{"path": first, "positions": "!"}]}, "not a Roaring bitmap"),
    ):
        with pytest.raises(InvalidInput, match=why):
            engine.commit_rows(table, write, "delete", **change)
    with pytest.raises(InvalidInput, match="deleted already"):
        engine.commit_rows(
            table_after, engine.begin_write(table_after), "delete", deletes=[positions(first, [0])]
        )
    with pytest.raises(InvalidInput, match="compaction must preserve rows: removed .*, wrote"):
        rewritten(table, "compact", [first], rows(range(9)))
    with pytest.raises(InvalidInput, match="a delete must not add rows"):
        rewritten(table, "delete", [first], rows(range(11)))
    with pytest.raises(InvalidInput, match="not an operation on rows"):
        engine.commit_rows(table, write, "append", removed=[second])
    assert table.refresh().version == table_after.version


def test_a_change_that_is_retried_happens_once(table: Table) -> None:
    write = engine.begin_write(table)
    files = files_of(table, write, rows(range(20, 21)))
    change: dict[str, Any] = {"deletes": [positions(paths_of(table)[0], [0])]}
    first = engine.commit_rows(table, write, "merge", files, **change)
    again = engine.commit_rows(table, write, "merge", files, **change)
    assert first.version == again.version and ids(again) == list(range(1, 21))


def test_a_change_of_nothing_commits_nothing(table: Table) -> None:
    assert engine.commit_rows(table, engine.begin_write(table), "update").version == table.version


def test_vectors_survive_snapshots(table: Table) -> None:
    for id in range(0, 20, 3):
        table = deleted(table, [id])
    table.table_head.tracked.log.snapshot(table.table_head.view)
    fresh = table.table_head.tracked.anew()
    assert fresh.version == table.version
    assert ids(table.refresh()) == [id for id in range(20) if id % 3]


def _files(table: Table) -> list[DataFile]:
    from lakelog.catalog.core.files.data_file import files_from_arrow
    from lakelog.catalog.core.logs.live_files import all_files

    return sorted(
        files_from_arrow(all_files(table.table_head.tracked, table.table_head.view)),
        key=lambda file: file.path,
    )


@pytest.mark.parametrize("by", [[], ["id"]])
def test_no_partition_is_truncated_or_dropped_without_a_new_version(catalog: Catalog, by: list[str]) -> None:
    table = catalog.create_table("t", pa.schema({"id": pa.int64()}), partition_by=by)
    table = table.append(pa.table({"id": [1]}))
    assert engine.truncate_partitions(table, []).version == table.version
    assert engine.drop_partitions(table, []).version == table.version


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
@pytest.mark.parametrize("group", [5, 7])
def test_a_partition_without_rows_is_dropped_whatever_older_files_hold(
    catalog: Catalog, mode: str, group: int
) -> None:
    schema = pa.schema({"id": pa.int64(), "g": pa.int64()})
    table = catalog.create_table("t", schema, properties={"lakelog.write.delete.mode": mode})
    table = table.append(pa.table({"id": [1, 2, 3], "g": [0, 9, group]}))
    table = engine.add_partitions(table.alter([{"change": "set-partitioning", "fields": ["g"]}]), [{"g": 5}])
    table = engine.drop_partitions(table, [{"g": 5}])
    assert 0 not in table.plan()["rows"].to_pylist()
    assert sorted(table.to_arrow()["g"].to_pylist()) == sorted({0, 9, group} - {5})
