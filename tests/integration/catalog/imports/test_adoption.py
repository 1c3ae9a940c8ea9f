"""Files of a source become a table's own once nothing else has them, and a vacuum deletes them then, and not before."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.integration.catalog.imports.adopting import NOW, adopted, end, files, let_go
from tests.integration.catalog.imports.written import Folder

from lakelog.catalog import Catalog, SourceDiverged
from lakelog.catalog.formats.imports.claims import CLAIM
from lakelog.cli.main import run
from lakelog.log.errors import InvalidInput, Unsupported


@pytest.fixture
def source(tmp_path: Path) -> Path:
    source = tmp_path / "delta"
    write_deltalake(source, pa.table({"id": range(5)}))
    write_deltalake(source, pa.table({"id": range(5, 9)}), mode="append")
    return source


@pytest.fixture
def catalog(tmp_path: Path, source: Path) -> Catalog:
    catalog = Catalog(tmp_path / "w")
    catalog.import_table(source, "t", format="delta")
    return catalog


def test_adopted_files_go_when_no_version_has_them(source: Path, catalog: Catalog) -> None:
    end(source)
    assert catalog.adopt_files("t").version is None and not (source / CLAIM).exists()
    adoption = catalog.adopt_files("t", dry_run=False)
    assert (adoption.files, adoption.left_out, adoption.version) == (2, 0, 3)
    table = catalog.load_table("t")
    assert table.row_count == 9 and "imported" not in table.refs
    table.overwrite(table.to_arrow())
    assert not adopted(catalog.vacuum("t", older_than=NOW)), "versions that can be read have them"
    assert catalog.expire("t", retain_last=1, dry_run=False)[0].files == 2
    (planned,) = adopted(catalog.vacuum("t", older_than=NOW, keys=True))
    assert planned.files == 2 and {Path(key).name for key in planned.keys} == files(source)
    (gone,) = adopted(catalog.vacuum("t", older_than=NOW, dry_run=False))
    assert gone.files == 2 and not files(source) and (source / CLAIM).exists()
    assert catalog.load_table("t").to_arrow().num_rows == 9
    assert not adopted(catalog.vacuum("t", older_than=NOW, dry_run=False))
    fresh = Catalog(catalog.warehouse)
    assert not fresh.fsck(deep=True).found
    state = fresh.load_table("t").table_head.state
    assert state.adopted is not None and not state.adopted.files.file_count


def test_nothing_is_adopted_while_the_source_is_there(source: Path, catalog: Catalog) -> None:
    with pytest.raises(SourceDiverged, match="is there: .*_delta_log"):
        catalog.adopt_files("t", dry_run=False)
    assert not (source / CLAIM).exists()
    end(source)
    catalog.adopt_files("t", dry_run=False)
    shutil.move(source.parent / "delta_log", source / "_delta_log")
    (answer,) = let_go(catalog)
    assert "is there" in (answer.error or "") and len(files(source)) == 2
    assert DeltaTable(source).to_pyarrow_table().num_rows == 9


def test_nothing_is_adopted_that_another_table_has(source: Path, catalog: Catalog) -> None:
    catalog.import_table(source, "other", format="delta")
    end(source)
    with pytest.raises(InvalidInput, match=r"`other` has the file .*, and 1 more files"):
        catalog.adopt_files("t", dry_run=False)
    assert not (source / CLAIM).exists()
    catalog.drop_table("other")
    with pytest.raises(InvalidInput, match="`other` has the file"):
        catalog.adopt_files("t", dry_run=False)
    catalog.vacuum(dropped_older_than=NOW, dry_run=False)
    assert catalog.adopt_files("t", dry_run=False).files == 2


def test_a_file_that_another_table_has_taken_since_stays(source: Path, catalog: Catalog) -> None:
    end(source)
    catalog.adopt_files("t", dry_run=False)
    with pytest.raises(InvalidInput, match="were adopted by the table at"):
        catalog.import_table(source, "other", format="parquet")
    other_table = catalog.create_table("other", pa.schema([("id", pa.int64())]))
    path = sorted(source.glob("*.parquet"))[0]
    with pytest.raises(InvalidInput, match="were adopted by the table at"):
        other_table.add_files(str(path))
    claim = (source / CLAIM).read_bytes()
    (source / CLAIM).unlink()
    other_table.add_files(str(path))
    (source / CLAIM).write_bytes(claim)
    (answer,) = let_go(catalog)
    assert (answer.files, answer.foreign) == (1, 1) and len(files(source)) == 1
    assert other_table.refresh().to_arrow().num_rows
    (source / CLAIM).unlink()
    with pytest.raises(InvalidInput, match="may delete it"):
        catalog.load_table("t").add_files(str(path))


def test_the_copy_of_a_warehouse_deletes_nothing_of_it(
    source: Path, catalog: Catalog, tmp_path: Path
) -> None:
    end(source)
    catalog.adopt_files("t", dry_run=False)
    shutil.copytree(tmp_path / "w", tmp_path / "copy")
    (answer,) = let_go(Catalog(tmp_path / "copy"))
    assert "the table at" in (answer.error or "") and len(files(source)) == 2
    assert catalog.load_table("t").to_arrow().num_rows == 9


def test_files_outside_of_the_source_s_folder_stay_its_own(tmp_path: Path) -> None:
    lent, source, catalog = tmp_path / "lent", tmp_path / "delta", Catalog(tmp_path / "w")
    write_deltalake(source, pa.table({"id": range(3)}))
    write_deltalake(lent, pa.table({"id": range(3, 5)}))
    path = next(lent.glob("*.parquet"))
    log = source / "_delta_log" / f"{1:020d}.json"
    words = (lent / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    (added_line,) = [line for line in words if '"add"' in line]
    log.write_text(added_line.replace(path.name, f"file://{path}") + "\n")
    catalog.import_table(source, "t", format="delta")
    end(source)
    adoption = catalog.adopt_files("t", dry_run=False)
    assert (adoption.files, adoption.left_out) == (1, 1)
    let_go(catalog)
    assert files(lent) and not files(source)


def test_a_purge_deletes_adopted_files_too(source: Path, catalog: Catalog) -> None:
    end(source)
    catalog.adopt_files("t", dry_run=False)
    catalog.drop_table("t")
    assert len(files(source)) == 2
    report = catalog.vacuum(dropped_older_than=NOW, dry_run=False)
    assert [each.files for each in adopted(report)] == [2]
    assert not files(source)
    with pytest.raises(InvalidInput, match="Where the folder has other files by now, delete that object"):
        catalog.import_table(source.parent, "other", format="parquet")


def test_a_claim_that_cannot_be_read_ends_no_other_purge(source: Path, catalog: Catalog) -> None:
    end(source)
    catalog.adopt_files("t", dry_run=False)
    claim = (source / CLAIM).read_bytes()
    (source / CLAIM).write_bytes(claim[:-9])
    for name in ("before", "u"):
        catalog.create_table(name, pa.schema([("id", pa.int64())]))
        catalog.drop_table(name)
    catalog.drop_table("t")

    def purged() -> dict[str, bool]:
        report = catalog.vacuum(dropped_older_than=NOW, dry_run=False)
        return {each.name: each.error is None for each in report if each.kind == "dropped-table"}

    assert purged() == {"`before`": True, "`u`": True, "`t`": False}
    assert len(files(source)) == 2
    (source / CLAIM).write_bytes(claim)
    assert purged() == {"`t`": True} and not files(source)


def test_a_table_that_was_not_imported_has_nothing_to_adopt(
    tmp_path: Path, source: Path, catalog: Catalog
) -> None:
    catalog.create_table("own", pa.schema([("id", pa.int64())]))
    with pytest.raises(InvalidInput, match="was not imported"):
        catalog.adopt_files("own")
    shutil.copytree(source, tmp_path / "plain", ignore=shutil.ignore_patterns("_delta_log"))
    catalog.import_table(tmp_path / "plain", "folder", format="parquet")
    with pytest.raises(Unsupported, match="from a folder of files"):
        catalog.adopt_files("folder")
    catalog.import_table(source, "copied", format="delta", copy=True)
    with pytest.raises(InvalidInput, match="imported with copies, .* there is nothing to adopt"):
        catalog.adopt_files("copied")
    with pytest.raises(Unsupported, match="transaction"), catalog.transaction() as transaction:
        transaction.adopt_files("t")
    end(source)
    assert run(["adopt", "t", "--apply", "--warehouse", str(tmp_path / "w")]) == 0
    with pytest.raises(InvalidInput, match="adopted the files of .* already"):
        catalog.adopt_files("t")
    shutil.move(source.parent / "delta_log", source / "_delta_log")
    with pytest.raises(InvalidInput, match="were adopted by the table"):
        catalog.import_table(source, "t", format="delta")


def test_data_files_of_an_iceberg_table_are_adopted_without_its_metadata(tmp_path: Path) -> None:
    source, catalog = tmp_path / "ice", Catalog(tmp_path / "w")
    table = Folder(source).create(pa.schema([("id", pa.int64())]))
    for id in range(3):
        table.append(pa.table({"id": [id]}))
    catalog.import_table(source, "t", format="iceberg", versions=2)
    shutil.move(source / "metadata", tmp_path / "kept")
    (source / "metadata").mkdir()
    assert catalog.adopt_files("t").files == 3, "an empty folder is no table"
    (source / "metadata" / "version-hint.text").write_text("1")
    with pytest.raises(SourceDiverged, match="is there: .*version-hint"):
        catalog.adopt_files("t", dry_run=False)
    shutil.rmtree(source / "metadata")
    write_deltalake(source / "data" / "nested", pa.table({"id": [1]}))
    with pytest.raises(SourceDiverged, match="is of a table in"):
        catalog.adopt_files("t", dry_run=False)
    shutil.rmtree(source / "data" / "nested")
    path = sorted(source.rglob("*.parquet"))[0]
    bytes = path.read_bytes()
    path.write_bytes(bytes + b"more")
    with pytest.raises(SourceDiverged, match="are not in .* any more, or are others"):
        catalog.adopt_files("t", dry_run=False)
    path.write_bytes(bytes)
    assert catalog.adopt_files("t", dry_run=False).files == 3
    let_go(catalog)
    assert not files(source) and catalog.load_table("t").to_arrow().num_rows == 3
