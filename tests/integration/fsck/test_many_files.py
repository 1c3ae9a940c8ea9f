"""A check of a table of many files goes through them in parts, and finds what it finds in small ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.integration.fsck.test_fsck import Folder, kinds
from tests.integration.fsck.world import rows

from lakelog.catalog.core.files import DataFile, file_set, manifests
from lakelog.catalog.core.files.row_ids import with_ids
from lakelog.catalog.core.writes import file_changes
from lakelog.catalog.keeping.maintenance.fsck import table_files

FILES = 9


@pytest.fixture(autouse=True)
def parts_of_few_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(file_set, "MANY_FILES", 1)
    monkeypatch.setattr(manifests, "LEAF_ENTRIES", 2)
    monkeypatch.setattr(manifests, "READ_AT_ONCE", 2)
    monkeypatch.setattr(table_files, "KEYS_AT_ONCE", 3)
    yield


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    new_folder = Folder(tmp_path / "warehouse")
    new_folder.catalog.create_namespace("a")
    return new_folder


def test_each_file_is_checked_once_though_tags_and_branches_have_it_too(folder: Folder) -> None:
    folder.table("a.t", FILES)
    table = folder.client().load_table("a.t")
    table.create_tag("x")
    table.create_branch("b").append(rows(100))
    findings = folder.check()
    assert kinds(findings) == set()
    assert findings.checked["data files"] == FILES + 1
    assert folder.check(all_versions=True).found == []


def test_a_missing_file_and_one_that_nothing_names_are_found(folder: Folder) -> None:
    place = folder.table("a.t", FILES)
    removed_path = sorted(place.glob("data/*.parquet"))[4]
    removed_path.rename(
        removed_path.with_name("00000000000000000002-aaaaaaaaaaaaaaaaaaaaaaaaaa-00000.parquet")
    )
    assert kinds(folder.check()) == {"data-file-missing", "data-file-unused"}


def test_ids_of_rows_that_two_files_have_are_named_with_both(folder: Folder) -> None:
    def faulty(files: list[DataFile], next_row: int) -> list[DataFile]:
        return with_ids(files, 2)

    place = folder.table("a.t", FILES)
    paths_before = set(place.glob("data/*.parquet"))
    with patch.object(file_changes, "with_ids", faulty):
        folder.client().load_table("a.t").append(rows(50))
    [new] = set(place.glob("data/*.parquet")) - paths_before
    [finding] = folder.check().found
    assert finding.kind == "row-ids-twice" and new.name in finding.what
    assert sum(path.name in finding.what for path in paths_before) == 1
