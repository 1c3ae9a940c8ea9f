"""An import with copies needs nothing of its source once it has ended, and catches up with copies."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.integration.catalog.imports.delta_logs import READER, DeltaLog, column

from lakelog.catalog import Catalog, SourceDiverged, col
from lakelog.catalog.formats.imports import copies
from lakelog.log.errors import InvalidInput, NotFound, Unsupported
from lakelog.log.stores import copy_object


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path / "w")


def ids(catalog: Catalog, version: int | None = None) -> list[int]:
    table = catalog.load_table("t")
    table = table if version is None else table.at(version=version)
    return sorted(table.scan(["id"]).to_arrow()["id"].to_pylist())


def test_history_and_later_versions_are_copied_and_the_source_may_go(
    tmp_path: Path, catalog: Catalog
) -> None:
    source = tmp_path / "delta"
    write_deltalake(source, pa.table({"id": range(5), "kind": ["a"] * 5}), partition_by=["kind"])
    DeltaTable(source).delete("id = 1")
    write_deltalake(source, pa.table({"id": range(5, 9), "kind": ["b"] * 4}), mode="append")
    assert catalog.import_table(source, "t", format="delta", copy=True, dry_run=True).added_files == 2
    catalog.import_table(source, "t", format="delta", copy=True)
    catalog.load_table("t").delete(col("id") == 6)
    copied_rows = catalog.load_table("t").table_head.all_files()["path"].to_pylist()
    assert len(copied_rows) == 2 and all(path.startswith("data/") for path in copied_rows)
    assert catalog.import_table(source, "t", format="delta").versions == 0
    DeltaTable(source).delete("id = 0")
    write_deltalake(source, pa.table({"id": [20], "kind": ["b"]}), mode="append")
    table = catalog.import_table(source, "t", format="delta")
    assert (table.added_files, table.removed_files, table.versions) == (2, 1, 1)
    rows = catalog.load_table("t").table_head.all_files()["path"].to_pylist()
    assert len(set(rows) & set(copied_rows)) == 1
    shutil.rmtree(source)
    assert ids(catalog) == [2, 3, 4, 5, 7, 8, 20]
    assert ids(catalog, 1) == [0, 1, 2, 3, 4] and ids(catalog, 3) == [0, 2, 3, 4, 5, 6, 7, 8]
    assert not catalog.fsck(deep=True).found
    catalog.load_table("t").compact()
    catalog.expire("t", retain_last=1, dry_run=False)
    assert sum(each.files for each in catalog.vacuum("t", dry_run=True)) == 0, "writes of the last days stay"
    assert ids(catalog) == [2, 3, 4, 5, 7, 8, 20]


def test_folders_are_copied_and_other_files_of_a_name_once_more(tmp_path: Path, catalog: Catalog) -> None:
    source = tmp_path / "files"
    source.mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), source / "a.parquet")
    pq.write_table(pa.table({"id": [3]}), source / "b.parquet")
    catalog.import_table(source, "t", format="parquet", copy=True)
    pq.write_table(pa.table({"id": [4, 5, 6], "more": ["x", "y", "z"]}), source / "a.parquet")
    catalog.import_table(source, "t", format="parquet", copy=True)
    (source / "b.parquet").unlink()
    catalog.import_table(source, "t", format="parquet")
    assert ids(catalog) == [4, 5, 6] and ids(catalog, 2) == [3, 4, 5, 6] and ids(catalog, 1) == [1, 2, 3]
    assert catalog.load_table("t").scan(filter="more = 'y'").to_arrow()["id"].to_pylist() == [5]


def test_a_file_that_comes_back_is_known_by_its_copy(tmp_path: Path, catalog: Catalog) -> None:
    source = tmp_path / "delta"
    for start in (0, 5):
        write_deltalake(source, pa.table({"id": range(start, start + 5)}), mode="append")
    for name in ("t", "rolled"):
        catalog.import_table(source, name, format="delta", copy=True)
    catalog.load_table("t").delete(col("id") == 1)
    DeltaTable(source).delete("id < 5")
    for name in ("t", "rolled"):
        catalog.import_table(source, name, format="delta")
    DeltaTable(source).restore(1)
    with pytest.raises(SourceDiverged, match="again, which was removed by an import"):
        catalog.import_table(source, "t", format="delta")
    assert ids(catalog) == [5, 6, 7, 8, 9]
    catalog.load_table("rolled").rollback_to_version(2)
    with pytest.raises(SourceDiverged, match="already, which its source has added"):
        catalog.import_table(source, "rolled", format="delta")
    assert catalog.load_table("rolled").row_count == 10


def test_rows_that_come_back_to_a_file_without_any_are_there(tmp_path: Path, catalog: Catalog) -> None:
    log = DeltaLog(tmp_path / "delta")
    old = log.write("0.parquet", pa.table({"id": [1, 2]}))
    none = {"add": {**old["add"], "deletionVector": log.vector([0, 1])}}
    log.commit(0, log.protocol(*READER), log.metadata(column("id", "long")), none)
    log.commit(1, log.remove(none), old)
    catalog.import_table(log.folder, "t", format="delta", copy=True)
    shutil.rmtree(log.folder)
    assert ids(catalog, 1) == [] and ids(catalog) == [1, 2]


def test_copies_cannot_begin_later_and_a_failed_copy_leaves_nothing(
    tmp_path: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "delta"
    write_deltalake(source, pa.table({"id": [1]}))
    catalog.import_table(source, "plain", format="delta")
    with pytest.raises(InvalidInput, match="was imported without copies"):
        catalog.import_table(source, "plain", format="delta", copy=True)
    (file,) = source.glob("*.parquet")

    def of_another_file(*given: Any) -> bool:
        pq.write_table(pa.table({"id": range(99)}), file)
        copy_object(*given)
        return True

    monkeypatch.setattr(copies, "copy_object", of_another_file)
    with pytest.raises(InvalidInput, match=r"\.parquet of the source was replaced since the source was read"):
        catalog.import_table(source, "t", format="delta", copy=True)
    monkeypatch.undo()
    file.unlink()
    with pytest.raises(NotFound, match=r"\.parquet of the source is gone"):
        catalog.import_table(source, "t", format="delta", copy=True)
    assert not catalog.table_exists("t")


def replaced(path: Path, rows: pa.Table) -> None:
    """Put another file of the same size in the place of one, as its reader may find it."""
    size = path.stat().st_size
    pq.write_table(rows, path.with_name("_new"))
    assert path.with_name("_new").stat().st_size == size
    path.with_name("_new").rename(path)


@pytest.mark.parametrize("when", ["before it is copied", "while it is copied"])
def test_a_file_of_the_same_size_in_the_place_of_another_is_an_error(
    tmp_path: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    log = DeltaLog(tmp_path / "delta")
    rows, other_tables = pa.table({"id": [1, 2, 3]}), pa.table({"id": [1, 3, 2]})
    log.commit(0, log.protocol(*READER), log.metadata(column("id", "long")), log.write("0.parquet", rows))
    log.commit(1, log.write("1.parquet", rows))
    files = [log.folder / f"{number}.parquet" for number in range(2)]
    copied_texts: list[str] = []

    def slow(*given: Any) -> bool:
        copied_texts.append(given[1])
        if when == "before it is copied" and len(copied_texts) == 1:
            # The second file is known from the listing, long before its version is met.
            replaced(files[1], other_tables)
        object_ = copy_object(*given)
        if when == "while it is copied" and len(copied_texts) == 2:
            replaced(files[1], other_tables)
            return copy_object(*given)
        return object_

    monkeypatch.setattr(copies, "copy_object", slow)
    with pytest.raises(InvalidInput, match=r"1\.parquet of the source was replaced .*another object there"):
        catalog.import_table(log.folder, "t", format="delta", copy=True)
    monkeypatch.undo()
    catalog.import_table(log.folder, "t", format="delta", copy=True)
    assert ids(catalog) == [1, 1, 2, 2, 3, 3]


def test_a_file_that_a_later_import_copies_has_to_stay_what_it_was(
    tmp_path: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = DeltaLog(tmp_path / "delta")
    log.commit(0, log.protocol(*READER), log.metadata(column("id", "long")))
    catalog.import_table(log.folder, "t", format="delta", copy=True)
    log.commit(1, log.write("0.parquet", pa.table({"id": [1, 2, 3]})))

    def slow(*given: Any) -> bool:
        replaced(log.folder / "0.parquet", pa.table({"id": [1, 3, 2]}))
        return copy_object(*given)

    with monkeypatch.context() as patch:
        patch.setattr(copies, "copy_object", slow)
        with pytest.raises(InvalidInput, match="was replaced since the source was read"):
            catalog.import_table(log.folder, "t", format="delta")
    assert ids(catalog) == []
    pq.write_table(pa.table({"id": [4]}), log.folder / "0.parquet")
    with pytest.raises(InvalidInput, match="has .* bytes, and was written with"):
        catalog.import_table(log.folder, "t", format="delta")


def test_a_file_with_other_rows_than_its_log_says_is_not_copied(tmp_path: Path, catalog: Catalog) -> None:
    log = DeltaLog(tmp_path / "delta")
    said = log.write("0.parquet", pa.table({"id": [1, 2, 3]}))
    stats = json.dumps({**json.loads(said["add"]["stats"]), "numRecords": 2})
    log.commit(
        0, log.protocol(*READER), log.metadata(column("id", "long")), {"add": {**said["add"], "stats": stats}}
    )
    with pytest.raises(InvalidInput, match="it has 3 rows, and the source says 2"):
        catalog.import_table(log.folder, "t", format="delta", copy=True)


def test_a_migration_is_refused_with_the_way_to_do_it(tmp_path: Path, catalog: Catalog) -> None:
    with pytest.raises(Unsupported, match="rename the source in its own catalog"):
        catalog.import_table(tmp_path, "t", format="delta", mode="migrate")
    with pytest.raises(Unsupported, match="the mode other does not exist"):
        catalog.import_table(tmp_path, "t", format="delta", mode="other")
