"""Attacks on adoption: ways in which a file could be deleted that is not the table's alone, each refused."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.integration.catalog.imports.adopting import (
    NOW,
    end,
    files,
    imported,
    let_go,
    refused,
    source_with_two_files,
)
from tests.integration.catalog.imports.written import Folder

from lakelog.catalog import Catalog
from lakelog.catalog.core.logs import TrackedLog
from lakelog.catalog.formats.imports.claims import CLAIM
from lakelog.catalog.keeping.maintenance.other_owners import SoughtFiles
from lakelog.log.errors import InvalidInput


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return source_with_two_files(tmp_path / "above" / "delta")


@pytest.fixture
def catalog(tmp_path: Path, source: Path) -> Catalog:
    return imported(tmp_path, source)


# The same files under other names


def test_a_table_that_has_the_files_by_a_link_keeps_them(
    tmp_path: Path, source: Path, catalog: Catalog
) -> None:
    link = tmp_path / "link"
    link.symlink_to(source.parent)
    catalog.import_table(link / "delta", "other", format="delta")
    end(source)
    assert "`other` has the file" in refused(catalog, source)
    catalog.drop_table("other", purge=True)
    other_table = catalog.create_table("other", pa.schema([("id", pa.int64())]))
    linked_path = tmp_path / "linked.parquet"
    linked_path.symlink_to(next((source / "kind=a").glob("*.parquet")))
    other_table.add_files(str(linked_path))
    assert "`other` has the file" in refused(catalog, source)


def test_a_claim_is_found_behind_a_link(tmp_path: Path, source: Path, catalog: Catalog) -> None:
    end(source)
    catalog.adopt_files("t", dry_run=False)
    (tmp_path / "link").symlink_to(source / "kind=a")
    with pytest.raises(InvalidInput, match="were adopted by the table at"):
        catalog.import_table(tmp_path / "link", "other", format="parquet")


def test_a_table_s_own_second_name_of_a_file_keeps_it(tmp_path: Path, source: Path, catalog: Catalog) -> None:
    link = tmp_path / "link"
    link.symlink_to(source)
    added_table = catalog.load_table("t").add_files(str(link / "kind=a"))
    assert added_table.row_count == 15
    DeltaTable(source).delete("kind = 'a'")
    catalog.import_table(source, "t", format="delta")
    end(source)
    assert catalog.adopt_files("t", dry_run=False).files == 2
    catalog.load_table("t").append(pa.table({"id": [9], "kind": ["c"]}))
    catalog.expire("t", retain_last=1, dry_run=False)
    catalog.vacuum("t", dry_run=False)
    assert len(files(source)) == 2 and catalog.load_table("t").to_arrow().num_rows == 11


def test_files_on_s3_are_found_under_each_spelling() -> None:
    sought_files = SoughtFiles(["s3://b/t/f.parquet", "s3://b/t/g.parquet"])
    assert sought_files.among(["s3a://b/t//f.parquet", "data/g.parquet", "gs://b/t/g.parquet"]) == {
        "s3://b/t/f.parquet"
    }


def test_a_place_behind_a_link_is_one_place_whether_its_file_is_there_or_not(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    sought_files = SoughtFiles([str(tmp_path / "real" / "f.parquet")])
    assert sought_files.among([str(tmp_path / "link" / "f.parquet")])
    assert not sought_files.among([str(tmp_path / "link" / "g.parquet")])


def test_a_link_in_place_of_a_folder_leads_to_no_deletion(
    tmp_path: Path, source: Path, catalog: Catalog
) -> None:
    end(source)
    catalog.adopt_files("t", dry_run=False)
    shutil.move(source / "kind=a", tmp_path / "kept")
    (source / "kind=a").symlink_to(tmp_path / "kept")
    (answer,) = let_go(catalog)
    assert answer.files == 1 and files(tmp_path / "kept") and not files(source / "kind=b")


# Other tables in folders around


@pytest.mark.parametrize("object", ["_delta_log/0.json", ".hoodie/x", "metadata/v1.metadata.json"])
def test_a_table_in_a_folder_above_may_have_the_files(source: Path, catalog: Catalog, object: str) -> None:
    end(source)
    path = source.parent / object
    path.parent.mkdir()
    path.touch()
    assert f"{path} is of a table in" in refused(catalog, source)
    path.unlink()
    catalog.adopt_files("t", dry_run=False)
    path.touch()
    (answer,) = let_go(catalog)
    assert f"{path} is of a table in" in (answer.error or "") and len(files(source)) == 2


def test_of_folders_within_each_other_one_is_adopted(tmp_path: Path, source: Path, catalog: Catalog) -> None:
    end(source)
    for place in (source.parent, source / "kind=a"):
        (place / CLAIM).write_text('{"table": "/other", "log_id": "x"}')
        assert f"{place / CLAIM} says" in refused(catalog, source)
        (place / CLAIM).unlink()
    catalog.adopt_files("t", dry_run=False)
    with pytest.raises(InvalidInput, match="were adopted by the table at"):
        Catalog(tmp_path / "elsewhere").import_table(source.parent, "t", format="parquet")
    (source / CLAIM).rename(source / "kind=a" / CLAIM)
    table = catalog.create_table("u", pa.schema([("id", pa.int64())]))
    with pytest.raises(InvalidInput, match="were adopted by the table at"):
        table.add_files(str(source), ignore_extra_columns=True)


def test_a_clone_is_not_imported_with_files_that_were_adopted(
    tmp_path: Path, source: Path, catalog: Catalog
) -> None:
    clone = tmp_path / "clone"
    write_deltalake(clone, pa.table({"id": [1], "kind": ["a"]}))
    path = next((source / "kind=a").glob("*.parquet"))
    words = (clone / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    (added_line,) = [line for line in words if '"add"' in line]
    name = next(clone.glob("*.parquet")).name
    (clone / "_delta_log" / f"{1:020d}.json").write_text(added_line.replace(name, f"file://{path}") + "\n")
    end(source)
    catalog.adopt_files("t", dry_run=False)
    for dry_run in (True, False):
        with pytest.raises(InvalidInput, match="were adopted by the table at"):
            Catalog(tmp_path / "elsewhere").import_table(clone, "t", format="delta", dry_run=dry_run)


def test_a_source_whose_metadata_is_elsewhere_is_never_known_to_be_gone(tmp_path: Path) -> None:
    source, catalog = tmp_path / "ice", Catalog(tmp_path / "w")
    table = Folder(source).create(pa.schema([("id", pa.int64())]))
    for id in range(2):
        table.append(pa.table({"id": [id]}))
    shutil.move(source / "metadata", tmp_path / "metadata")
    (tmp_path / "copied").mkdir()
    newest = max((tmp_path / "metadata").glob("*.metadata.json"))
    (source / "metadata").symlink_to(tmp_path / "metadata")
    copied_path = shutil.copy(newest, tmp_path / "copied")
    catalog.import_table(copied_path, "t", format="iceberg")
    (source / "metadata").unlink()
    assert "whether the source is gone cannot be seen" in refused(catalog, source)


# What cannot be known


def test_tables_and_folders_that_cannot_be_read_may_have_the_files(
    tmp_path: Path, source: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    other_table = catalog.create_table("other", pa.schema([("id", pa.int64())]), location=str(place))
    taken_text = str(next((source / "kind=a").glob("*.parquet")))
    other_table.add_files(taken_text)
    end(source)
    shutil.move(place, tmp_path / "not mounted")
    assert "`other` cannot be read, and may have files" in refused(Catalog(catalog.warehouse), source)
    shutil.move(tmp_path / "not mounted", place)
    # A client that knows the log of an earlier table at that place reads the one that is there.
    for _ in range(3):
        other_table = other_table.append(pa.table({"id": [1]}))
    client = Catalog(catalog.warehouse)
    client.drop_table("other")
    shutil.rmtree(place)
    client.create_table("other", pa.schema([("id", pa.int64())]), location=str(place)).add_files(taken_text)
    assert "`other` has the file" in refused(catalog, source)

    listdir = os.listdir

    def denied_texts(path: str) -> list[str]:
        if path == str(source / "_delta_log"):
            raise PermissionError(13, "Permission denied")
        return listdir(path)

    monkeypatch.setattr(os, "listdir", denied_texts)
    assert "_delta_log (Permission denied)" in refused(catalog, source)
    assert not (source / CLAIM).exists()


def test_a_table_that_is_moved_while_it_is_looked_for_is_found(
    source: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        catalog.create_namespace(name)
    catalog.import_table(source, "a.other", format="delta")
    end(source)
    client = Catalog(catalog.warehouse)
    settled = TrackedLog.settled
    met: list[str] = []

    def slow(self: TrackedLog[Any]) -> Any:
        view = settled(self)
        if view.state.link is not None and view.state.link.name == "b" and not met:
            met.append(self.location)
            client.rename_table("a.other", "b.other")
        return view

    monkeypatch.setattr(TrackedLog, "settled", slow)
    assert "`b`.`other` has the file" in refused(catalog, source)
    assert met


# What still reads them in the warehouse


def test_branches_tags_and_cuts_of_the_table_keep_files(source: Path, catalog: Catalog) -> None:
    end(source)
    catalog.adopt_files("t", dry_run=False)
    table = catalog.load_table("t")
    table.create_tag("kept")
    assert not let_go(catalog) and len(files(source)) == 2
    table.refresh().drop_tag("kept")
    catalog.load_table("t").append(pa.table({"id": [1], "kind": ["x"]}))
    (answer,) = let_go(catalog)
    assert answer.files == 2


def test_a_saved_cut_keeps_the_files_of_a_dropped_table(source: Path, catalog: Catalog) -> None:
    end(source)
    catalog.adopt_files("t", dry_run=False)
    catalog.save_cut("cut")
    catalog.drop_table("t")
    catalog.vacuum(dropped_older_than=NOW, dry_run=False)
    assert len(files(source)) == 2
    catalog.undrop_table("t")
    assert catalog.load_table("t").to_arrow().num_rows == 10
