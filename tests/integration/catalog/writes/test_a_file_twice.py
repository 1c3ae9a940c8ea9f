"""A commit that adds a file which is live already is another client's mistake: no reader returns its rows twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from tests.integration.catalog.writes.test_row_maintenance import problems

from lakelog.catalog import Catalog, Table, col
from lakelog.catalog.core.files import DataFile, file_set, manifests
from lakelog.catalog.core.files.row_ids import with_ids
from lakelog.catalog.core.writes import file_changes
from lakelog.log import FormatError, LogOptions

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.int64())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "day": [id % 2 for id in ids]}, schema=SCHEMA)


def added_again(table: Table) -> Table:
    """Return the table after an append whose client adds the files once more, with ids of their own."""
    files: list[DataFile] = []

    def noted(new: list[DataFile], next_row: int) -> list[DataFile]:
        files[:] = new
        return with_ids(new, next_row)

    def again(new: list[DataFile], next_row: int) -> list[DataFile]:
        return with_ids([*new, *files], next_row)

    with patch.object(file_changes, "with_ids", noted):
        table = table.append(rows(1, 2))
    with patch.object(file_changes, "with_ids", again):
        return table.append(rows(3, 4))


READS: dict[str, Callable[[Table], object]] = {
    "all rows": lambda table: table.to_arrow(),
    "some rows": lambda table: table.scan(filter=col("id") == 1).to_arrow(),
    "another partition": lambda table: table.scan(filter=col("day") == 1).to_arrow(),
    "a delete": lambda table: table.delete(col("id") == 1),
    "a compaction": lambda table: table.compact(),
    "changes": lambda table: table.changes(1).to_arrow(),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("snapshot_every", [0, 1])
@pytest.mark.parametrize("are_many", [False, True])
def test_readers_refuse_the_table(
    read: str, snapshot_every: int, are_many: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if are_many:
        # A set of many files is searched in its manifests.
        for name in ("MANY_FILES", "FEW_MANIFESTS", "FEW_LEAVES"):
            monkeypatch.setattr(file_set, name, 1)
        monkeypatch.setattr(manifests, "LEAF_ENTRIES", 2)
    options = LogOptions(snapshot_every_versions=snapshot_every)
    catalog = Catalog(str(tmp_path), log_options=options)
    table = catalog.create_table("t", SCHEMA, partition_by=["day"]).append(rows(5, 6))
    faulty = added_again(table)
    for reader in (faulty, Catalog(str(tmp_path), log_options=options).load_table("t")):
        with pytest.raises(FormatError, match="is live twice"):
            READS[read](reader)


@pytest.mark.parametrize("back", [1, 2])
@pytest.mark.parametrize("snapshot_every", [0, 1])
def test_the_check_names_it_and_a_rollback_mends_it_for_all_clients(
    back: int, snapshot_every: int, tmp_path: Path
) -> None:
    options = LogOptions(snapshot_every_versions=snapshot_every)
    catalog = Catalog(str(tmp_path), log_options=options)
    faulty = added_again(catalog.create_table("t", SCHEMA))
    assert problems(catalog) == ["file-twice"]
    mended = faulty.rollback_to_version(faulty.version - back).append(rows(9))
    expected = [1, 2, 9] if back == 1 else [9]
    for reader in (mended, Catalog(str(tmp_path), log_options=options).load_table("t")):
        assert sorted(reader.to_arrow()["id"].to_pylist()) == expected
        assert reader.row_count == len(expected)
    assert problems(catalog) == []


def test_a_process_that_has_read_the_version_before_looks_at_new_files_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Catalog(str(tmp_path)).create_table("t", SCHEMA).append(rows(1))
    assert table.to_arrow().num_rows == 1
    monkeypatch.setattr(file_set, "check_distinct", lambda tables: pytest.fail("all files are compared"))
    for id in range(2, 6):
        table = table.append(rows(id))
        assert table.to_arrow().num_rows == id
    table = table.delete(col("id") == 3)
    assert table.to_arrow().num_rows == 4
    monkeypatch.undo()
    assert table.to_arrow().num_rows == 4
    with pytest.raises(FormatError, match="is live twice"):
        added_again(table).to_arrow()
