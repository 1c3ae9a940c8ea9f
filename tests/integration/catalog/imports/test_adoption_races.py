"""Adoption beside imports, other adoptions and vacuums, and after lost answers and processes that were killed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.integration.catalog.imports.adopting import (
    NOW,
    during,
    end,
    files,
    imported,
    let_go,
    refused,
    source_with_two_files,
)

from lakelog.catalog import Catalog, CommitConflict, CommitUnknown, DoneInPart
from lakelog.catalog.core.logs import TableHead
from lakelog.catalog.core.writes import file_changes
from lakelog.catalog.formats.imports import first_import
from lakelog.catalog.formats.imports.claims import CLAIM
from lakelog.catalog.keeping.maintenance import adopted, adoption, other_owners, purge
from lakelog.log.errors import InvalidInput, NotFound, StorageError
from lakelog.log.stores import LocalStore


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return source_with_two_files(tmp_path / "above" / "delta")


@pytest.fixture
def catalog(tmp_path: Path, source: Path) -> Catalog:
    return imported(tmp_path, source)


def adopt_and_delete(source: Path, warehouse: str) -> None:
    catalog = Catalog(warehouse)
    end(source)
    catalog.adopt_files("t", dry_run=False)
    let_go(catalog)
    assert not files(source)


def test_an_import_that_ends_after_all_was_deleted_is_no_success(
    source: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    during(monkeypatch, first_import, "create_from", lambda: adopt_and_delete(source, catalog.warehouse))
    with pytest.raises(DoneInPart, match="`other` was imported, and meanwhile the files in .* were adopted"):
        catalog.import_table(source, "other", format="delta", versions=1)


def test_files_that_are_added_after_all_was_deleted_are_no_success(
    source: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_table = catalog.create_table("other", pa.schema([("id", pa.int64())]))
    during(monkeypatch, file_changes, "commit_write", lambda: adopt_and_delete(source, catalog.warehouse))
    with pytest.raises(DoneInPart, match="files were added to `other`, and meanwhile the files in"):
        other_table.add_files(str(source / "kind=a"), ignore_extra_columns=True)


def test_an_import_between_the_claim_and_the_commit_is_seen(
    source: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def comes() -> None:
        claim = (source / CLAIM).read_bytes()
        (source / CLAIM).unlink()
        shutil.move(source.parent / "delta_log", source / "_delta_log")
        Catalog(catalog.warehouse).import_table(source, "other", format="delta")
        end(source)
        (source / CLAIM).write_bytes(claim)

    end(source)
    during(monkeypatch, adoption, "check_not_held", comes)
    assert "`other` has the file" in refused(catalog, source)
    assert not (source / CLAIM).exists()


@pytest.mark.parametrize("comes", ["the source", "another table", "another file"])
def test_what_comes_before_the_claim_is_seen_after_it(
    source: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, comes: str
) -> None:
    end(source)

    def happens() -> None:
        if comes == "the source":
            shutil.move(source.parent / "delta_log", source / "_delta_log")
        elif comes == "another table":
            (source / "kind=a" / "_delta_log").mkdir()
            (source / "kind=a" / "_delta_log" / "0.json").touch()
        else:
            next((source / "kind=a").glob("*.parquet")).write_bytes(b"x")

    during(monkeypatch, adoption, "put_claim", happens)
    words = {
        "the source": "is there",
        "another table": "is of a table in",
        "another file": "or are others by now",
    }
    assert words[comes] in refused(catalog, source)
    assert not (source / CLAIM).exists()


def test_without_the_claim_nothing_is_deleted(
    source: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    end(source)
    catalog.adopt_files("t", dry_run=False)
    during(monkeypatch, adopted, "holders", (source / CLAIM).unlink)
    (answer,) = let_go(catalog)
    assert "by now no table has adopted" in (answer.error or "") and len(files(source)) == 2
    assert "by now no table" in (catalog.vacuum("t")[-1].error or "")


def test_of_two_adoptions_at_once_one_has_to_start_over(
    source: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    end(source)
    client = Catalog(catalog.warehouse)
    during(monkeypatch, adoption, "put_claim", lambda: client.adopt_files("t", dry_run=False))
    with pytest.raises(CommitConflict, match="or its files were adopted meanwhile"):
        catalog.adopt_files("t", dry_run=False)
    assert (source / CLAIM).exists()
    (answer,) = let_go(catalog)
    assert answer.files == 2 and not files(source)


def import_once_more(source: Path, warehouse: str) -> None:
    shutil.move(source.parent / "delta_log", source / "_delta_log")
    write_deltalake(source, pa.table({"id": [9], "kind": ["a"]}), mode="append")
    Catalog(warehouse).import_table(source, "t", format="delta")
    end(source)


def test_an_adoption_that_lost_against_an_import_leaves_no_claim(
    source: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    end(source)
    during(monkeypatch, adoption, "put_claim", lambda: import_once_more(source, catalog.warehouse))
    with pytest.raises(CommitConflict, match="was imported again"):
        catalog.adopt_files("t", dry_run=False)
    assert not (source / CLAIM).exists()
    assert catalog.adopt_files("t", dry_run=False).files == 3


def test_the_claim_of_another_adoption_of_the_table_is_not_taken_back(
    source: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    end(source)
    during(monkeypatch, adoption, "put_claim", lambda: import_once_more(source, catalog.warehouse))
    client = Catalog(catalog.warehouse)
    during(monkeypatch, adoption, "drop_claim", lambda: client.adopt_files("t", dry_run=False))
    with pytest.raises(CommitConflict, match="was imported again"):
        catalog.adopt_files("t", dry_run=False)
    assert (source / CLAIM).exists()
    (answer,) = let_go(catalog)
    assert answer.files == 3 and not files(source)


def test_a_claim_that_another_adoption_took_back_is_there_after_the_commit(
    source: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    end(source)
    during(monkeypatch, adoption, "naming", (source / CLAIM).unlink)
    catalog.adopt_files("t", dry_run=False)
    assert (source / CLAIM).exists()


def test_a_store_that_fails_while_owners_are_looked_for_leaves_no_claim_or_the_words_for_it(
    source: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: Any, **named: Any) -> None:
        raise StorageError("the store does not answer", location="t")

    end(source)
    with monkeypatch.context() as patch:
        patch.setattr(adoption, "check_not_held", fails)
        with pytest.raises(StorageError):
            catalog.adopt_files("t", dry_run=False)
        assert not (source / CLAIM).exists()
        patch.setattr(adoption, "drop_claim", fails)
        with pytest.raises(
            DoneInPart, match="does not answer.* still says that `t` adopts .* adopt them again"
        ):
            catalog.adopt_files("t", dry_run=False)
    assert (source / CLAIM).exists()
    assert catalog.adopt_files("t", dry_run=False).files == 2


@pytest.mark.parametrize("happened", [True, False])
def test_a_commit_of_unknown_outcome_is_looked_up_by_adopting_again(
    source: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, happened: bool
) -> None:
    end(source)
    commit = TableHead.commit_or_refresh

    def lost_head(self: TableHead, *given: Any) -> TableHead:
        if happened:
            commit(self, *given)
        raise CommitUnknown("the answer was lost", commit_id="x", location="t")

    with monkeypatch.context() as patch:
        patch.setattr(TableHead, "commit_or_refresh", lost_head)
        with pytest.raises(CommitUnknown):
            catalog.adopt_files("t", dry_run=False)
    if happened:
        with pytest.raises(InvalidInput, match="has adopted the files of .* already"):
            catalog.adopt_files("t", dry_run=False)
    else:
        with pytest.raises(InvalidInput, match="were adopted by the table at"):
            catalog.import_table(source, "other", format="parquet")
        assert catalog.adopt_files("t", dry_run=False).files == 2
    (answer,) = let_go(catalog)
    assert answer.files == 2


def test_a_vacuum_that_was_killed_is_done_again(
    source: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    end(source)
    catalog.adopt_files("t", dry_run=False)
    delete = LocalStore.delete

    def killed(self: LocalStore, keys: Any) -> None:
        delete(self, keys)
        if any("kind=" in key for key in keys):
            raise KeyboardInterrupt

    monkeypatch.setattr(adopted, "DELETE_MAX", 1)
    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "delete", killed)
        with pytest.raises(KeyboardInterrupt):
            let_go(catalog)
    assert len(files(source)) == 1
    (answer,) = let_go(catalog)
    assert answer.files == 1 and not files(source)
    state = catalog.load_table("t").table_head.state
    assert state.adopted is not None and not state.adopted.files.file_count


def test_a_purge_that_was_killed_is_done_again(
    source: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    end(source)
    catalog.adopt_files("t", dry_run=False)
    catalog.drop_table("t")

    def killed() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        during(patch, purge, "delete_files", killed)
        with pytest.raises(KeyboardInterrupt):
            catalog.vacuum(dropped_older_than=NOW, dry_run=False)
    with pytest.raises(NotFound):
        catalog.undrop_table("t")
    assert len(files(source)) == 2
    catalog.vacuum(dropped_older_than=NOW, dry_run=False)
    assert not files(source)


def test_a_purge_that_cannot_see_who_has_the_files_is_done_again(
    source: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    end(source)
    catalog.adopt_files("t", dry_run=False)
    catalog.create_table("other", pa.schema([("id", pa.int64())]))
    catalog.drop_table("t")

    def fails(*given: Any) -> None:
        raise StorageError("the store does not answer", location="other")

    def purged() -> list[str | None]:
        report = catalog.vacuum(dropped_older_than=NOW, dry_run=False)
        return [each.error for each in report if each.name == "`t`"]

    for owner, name in ((other_owners, "reachable"), (purge, "_purged")):
        with monkeypatch.context() as patch:
            if name == "_purged":
                # From here on the purge is planned: the store fails once it has begun.
                during(patch, purge, name, lambda: patch.setattr(other_owners, "reachable", fails))
            else:
                patch.setattr(owner, name, fails)
            (error,) = purged()
            assert "`other` cannot be read, and may have files" in (error or ""), name
        assert len(files(source)) == 2
    assert set(purged()) == {None} and not files(source)
    assert not purged()


def test_a_purge_says_which_files_stay_where_their_source_is_there_again(
    source: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    end(source)
    catalog.adopt_files("t", dry_run=False)
    catalog.drop_table("t")

    def comes_back() -> None:
        shutil.move(source.parent / "delta_log", source / "_delta_log")

    during(monkeypatch, purge, "_delete_adopted", comes_back)
    for words in ("is there", f"{source} is there.* No vacuum deletes the files that `t` has adopted"):
        report = catalog.vacuum(dropped_older_than=NOW, dry_run=False)
        (error,) = [each.error for each in report if each.error]
        assert re.search(words, error)
    assert len(files(source)) == 2
    assert all(each.kind == "namespace" for each in catalog.vacuum(dropped_older_than=NOW))


def test_a_source_that_comes_back_while_files_are_deleted_keeps_the_rest(
    source: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    end(source)
    catalog.adopt_files("t", dry_run=False)
    monkeypatch.setattr(adopted, "DELETE_MAX", 1)
    delete = LocalStore.delete

    def comes_back(self: LocalStore, keys: Any) -> None:
        delete(self, keys)
        if any("kind=a" in key for key in keys):
            shutil.move(source.parent / "delta_log", source / "_delta_log")

    monkeypatch.setattr(LocalStore, "delete", comes_back)
    (answer,) = let_go(catalog)
    assert "is there" in (answer.error or "") and files(source / "kind=b")
