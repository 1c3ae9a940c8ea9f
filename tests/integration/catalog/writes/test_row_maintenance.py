"""Vectors and what keeps a warehouse in order: expire, vacuum, purge, fsck, registering."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from tests.integration.catalog.rows_changed import compacted, deleted, paths_of, positions, rows_of, updated

from lakelog.catalog import Catalog, Table, col, engine
from lakelog.catalog.core.files import deletion_vectors
from lakelog.catalog.core.files.row_ids import with_ids
from lakelog.catalog.core.writes import file_changes
from lakelog.catalog.engine import DataFile
from lakelog.catalog.keeping.maintenance import fsck
from lakelog.log import ConflictError
from lakelog.log.checks.findings import Severity

NO_TIME = dt.timedelta(0)


@pytest.fixture(autouse=True)
def apart() -> Iterator[None]:
    """Put all vectors into objects, however small."""
    with patch.object(deletion_vectors, "INLINE_MAX_BYTES", 0):
        yield


@pytest.fixture
def table(catalog: Catalog) -> Table:
    table = catalog.create_table("t", pa.schema({"id": pa.int64(), "name": pa.string()}))
    for first in (0, 10):
        ids = range(first, first + 10)
        table = table.append(pa.table({"id": list(ids), "name": [f"n{id}" for id in ids]}))
    return table


def vectors(table: Table) -> list[str]:
    prefix = f"{table.table_head.tracked.prefix}/data/"
    return [key for key in table.table_head.tracked.store.list_after(prefix) if key.endswith(".puffin")]


def ids(table: Table) -> list[int]:
    return [id for id, _ in rows_of(table.refresh())]


def problems(catalog: Catalog, **depth: Any) -> list[str]:
    return [finding.kind for finding in fsck.check_warehouse(catalog._logs, **depth).found]


def test_vectors_live_as_long_as_a_version_that_can_be_read_names_them(
    catalog: Catalog, table: Table
) -> None:
    first = deleted(table, [1, 11])
    second = deleted(first, [2])
    third = deleted(second, [12])
    assert len(vectors(table)) == 3
    catalog.vacuum(older_than=NO_TIME, dry_run=False)
    assert len(vectors(table)) == 3, "all versions can be read"
    assert rows_of(table.refresh().at(version=second.version)) == rows_of(second)
    catalog.expire(retain_last=1, dry_run=False)
    report = catalog.vacuum(older_than=NO_TIME, dry_run=False)
    # The first one has a vector of a file that was not changed since: none. Of both files there are newer ones.
    assert sum(each.files for each in report) == 1
    assert len(vectors(table)) == 2
    assert rows_of(Catalog(catalog.warehouse).load_table("t")) == rows_of(third)
    assert problems(catalog, deep=True, all_versions=True) == []


def test_vectors_of_a_write_that_gave_up_are_vacuumed_behind_its_fence(
    catalog: Catalog, table: Table
) -> None:
    write = engine.begin_write(table)
    path = paths_of(table)[0]
    compacted(Catalog(catalog.warehouse).load_table("t"))
    with pytest.raises(ConflictError):
        engine.commit_rows(table, write, "update", deletes=[positions(path, [1])])
    updated(table.refresh(), [3], "new")
    given_up = [key for key in vectors(table) if write.id in key]
    # It was put for a commit that lost its race, and then had to give up.
    assert len(given_up) == 1
    catalog.vacuum(older_than=NO_TIME, dry_run=False)
    assert len(vectors(table)) == 1 and given_up[0] not in vectors(table)
    assert ids(table) == list(range(20))
    # The fence refuses what that write would still commit.
    with pytest.raises(ConflictError):
        engine.commit_rows(table, write, "delete", deletes=[positions(path, [1])])
    assert problems(catalog) == []


def test_fsck_counts_the_rows_that_a_file_has(catalog: Catalog, table: Table) -> None:
    table = updated(deleted(table, [1, 2, 11]), [3], "new")
    assert problems(catalog, deep=True, all_versions=True) == []
    table.table_head.tracked.store.put(vectors(table)[-1], b"something else altogether")
    findings = fsck.check_warehouse(catalog._logs).of(Severity.DAMAGE)
    assert {finding.kind for finding in findings} == {"deletion-vector-damaged"}
    table.table_head.tracked.store.delete(vectors(table))
    assert set(problems(catalog)) == {"deletion-vector-damaged"}


def test_a_purge_takes_vectors_along(catalog: Catalog, table: Table) -> None:
    table = deleted(table, [1])
    catalog.drop_table("t", purge=True)
    assert vectors(table) == []


def test_statistics_of_deleted_rows_mislead_no_reader(catalog: Catalog) -> None:
    table = catalog.create_table("nulls", pa.schema({"id": pa.int64(), "name": pa.string()}))
    table = table.append(pa.table({"id": [1, 2, 3], "name": [None, "a", None]}))
    # Of the two rows that are left, as many were NULL when the file was written.
    table = deleted(table, [1])
    assert table.scan(filter=col("name") == "a").to_arrow()["id"].to_pylist() == [2]
    assert table.scan(filter=col("name").is_null()).to_arrow()["id"].to_pylist() == [3]
    assert not engine.can_delete(table, col("name").is_null())
    assert ids(table.delete(col("name").is_null())) == [2]


def test_a_table_that_is_registered_keeps_what_is_deleted(catalog: Catalog) -> None:
    place = f"{catalog.warehouse}-away/t"
    table = catalog.create_table("away", pa.schema({"id": pa.int64(), "name": pa.string()}), location=place)
    table = deleted(table.append(pa.table({"id": [1, 2], "name": ["a", "b"]})), [1])
    other_catalog = Catalog(f"{catalog.warehouse}-other")
    other_catalog.create_namespace("n")
    other_catalog.register_table("n.t", place, take_over=True)
    assert ids(other_catalog.load_table("n.t")) == [2]


def test_files_of_others_can_have_deleted_rows(catalog: Catalog, tmp_path: object) -> None:
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}), f"{tmp_path}/x.parquet")
    table = catalog.create_table("t2", pa.schema({"id": pa.int64(), "name": pa.string()}))
    table = table.add_files(str(tmp_path)).delete(col("id") == 2)
    assert rows_of(table) == [(1, "a"), (3, "c")]
    assert problems(catalog, deep=True) == []


def test_widened_and_dropped_columns_do_not_hinder_a_delete(catalog: Catalog) -> None:
    schema = pa.schema({"id": pa.int32(), "day": pa.date32(), "name": pa.string()})
    table = catalog.create_table("wide", schema, partition_by=["id"])
    days = [dt.date(2024, 1, 1), dt.date(2024, 1, 1), None]
    table = table.append(pa.table({"id": [1, 2, 3], "day": days, "name": ["a", "b", None]}, schema=schema))
    table = table.alter(
        [
            {"change": "update-column-type", "name": ["id"], "type": "long"},
            {"change": "update-column-type", "name": ["day"], "type": "timestamp_ntz"},
            {"change": "delete-column", "name": ["name"]},
        ]
    )
    table = table.delete(col("id") == 1)
    assert table.scan(filter=col("day") == dt.datetime(2024, 1, 1)).to_arrow()["id"].to_pylist() == [2]
    assert table.scan(filter=col("day").is_null()).to_arrow()["id"].to_pylist() == [3]
    assert table.scan(filter=col("id") > 2).to_arrow()["id"].to_pylist() == [3]
    fresh = Catalog(catalog.warehouse).load_table("wide")
    assert sorted(fresh.to_arrow()["id"].to_pylist()) == [2, 3]
    assert problems(catalog, deep=True) == []


def test_fsck_names_row_ids_that_were_given_twice(catalog: Catalog) -> None:
    schema = pa.schema({"id": pa.int64(), "name": pa.string()})

    def faulty(files: list[DataFile], next_row: int) -> list[DataFile]:
        return with_ids(files, 1)

    table = catalog.create_table("t", schema).append(pa.table({"id": [1, 2], "name": ["a", "b"]}))
    with patch.object(file_changes, "with_ids", faulty):
        table.append(pa.table({"id": [3], "name": ["c"]}))
    assert problems(catalog) == ["row-ids-twice"]
