"""Backups: a warehouse as of one moment at another place, and back from there, with its history and its ids."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.catalog.conftest import SCHEMA, rows
from tests.integration.catalog.writes.test_identity import create, of

from lakelog.catalog import Catalog, NoSuchTable, TableExists, Token
from lakelog.catalog.core.files import deletion_vectors
from lakelog.catalog.errors import DoneInPart
from lakelog.catalog.keeping.maintenance import Severity
from lakelog.log import LogOptions, MemoryStore, expiry
from lakelog.log.errors import FormatError, InvalidInput, LakelogError, NotFound, StorageError, Unsupported

NOW = dt.timedelta(0)


def ids(catalog: Catalog, name: str, **which: Any) -> list[int]:
    return sorted(catalog.load_table(name, **which).to_arrow().column("id").to_pylist())


def check_whole(catalog: Catalog) -> None:
    report = catalog.fsck(deep=True, all_versions=True)
    assert not report.of(Severity.DAMAGE), report.of(Severity.DAMAGE)


@pytest.fixture
def filled(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """All that a warehouse has: namespaces, versions, vectors in objects, refs, drops, cuts, a clone, a transaction."""
    monkeypatch.setattr(deletion_vectors, "INLINE_MAX_BYTES", 0)
    catalog.create_namespace("n")
    table = catalog.create_table("n.a", SCHEMA).append(rows(1, 2, 3)).append(rows(4, 5))
    table.create_tag("old")
    table.delete("id = 2")
    catalog.create_table("b", SCHEMA).append(rows(7))
    catalog.create_table("gone", SCHEMA).append(rows(9))
    catalog.drop_table("gone")
    catalog.save_cut("kept")
    with catalog.transaction() as transaction:
        transaction.load_table("b").append(rows(8))
        transaction.load_table("n.a").append(rows(10))
    return catalog


def test_a_warehouse_comes_back_with_its_history(
    filled: Catalog, warehouse: str, place: str, elsewhere: str
) -> None:
    backup = filled.backup(place)
    assert not backup.resumed and backup.copied == backup.backup.objects
    filled.load_table("b").append(rows(99))
    restored_warehouse = Catalog(elsewhere).restore_warehouse(place)
    assert (restored_warehouse.tables, restored_warehouse.left) == (2, ())
    again = Catalog(elsewhere)
    check_whole(again)
    assert ids(again, "n.a") == [1, 3, 4, 5, 10] and ids(again, "b") == [7, 8]
    assert ids(again, "n.a", ref="old") == [1, 2, 3, 4, 5]
    of_source = filled.load_table("n.a")
    for version in range(1, of_source.version + 1):
        assert ids(again, "n.a", version=version) == ids(filled, "n.a", version=version)
    assert again.load_table("n.a").table_head.id == of_source.table_head.id
    assert [entry.commit_id for entry in again.load_table("n.a").history()] == [
        entry.commit_id for entry in of_source.history()
    ]
    assert ids(Catalog(elsewhere, as_of="kept"), "b") == [7]
    again.undrop_table("gone")
    assert ids(again, "gone") == [9]
    # Each goes on by itself.
    again.load_table("b").append(rows(100))
    assert ids(again, "b") == [7, 8, 100] and ids(Catalog(warehouse), "b") == [7, 8, 99]
    check_whole(again)


def test_what_is_there_is_not_copied_again_and_older_backups_stay(
    filled: Catalog, place: str, elsewhere: str
) -> None:
    first = filled.backup(place).backup
    backup = filled.backup(place)
    # Dropping the cut of the first one is a commit of its own.
    assert backup.copied <= 4 and backup.copied_bytes < 5_000
    filled.load_table("b").append(rows(11))
    last = filled.backup(place)
    assert last.copied < 8
    assert [each_backup.id for each_backup in filled.backups(place)] == [
        first.id,
        backup.backup.id,
        last.backup.id,
    ]
    Catalog(elsewhere).restore_warehouse(place, first.id)
    assert ids(Catalog(elsewhere), "b") == [7, 8]


def test_two_runs_of_one_backup_leave_it_readable(filled: Catalog, warehouse: str, place: str) -> None:
    """The one that is done last has seen another state of the logs, by an expiry meanwhile: its list is not used."""
    table = filled.load_table("b")
    for number in range(8):
        table = table.append(rows(20 + number))
    other_texts: list[str] = []

    def beside(message: str) -> None:
        if not other_texts and message.startswith("object"):
            other_catalog = Catalog(warehouse)
            other_catalog.expire("b", retain_last=1, dry_run=False)
            other_texts.append(other_catalog.backup(place).backup.id)

    assert filled.backup(place, progress=beside).backup.id == other_texts[0]
    assert not filled.verify_backup(place).problems
    lists = list(MemoryStore.named(place).list_after("lists/"))
    assert len(lists) == 1 and not filled.cuts().keys() - {"kept"}


def test_copies_that_went_different_ways_have_cuts_of_their_own(
    filled: Catalog, place: str, elsewhere: str
) -> None:
    """The same job, with the same token, saves a cut in both; its object has the same name, and other versions."""
    filled.backup(place)
    restored_catalog = Catalog(elsewhere)
    restored_catalog.restore_warehouse(place)
    restored_catalog.load_table("b").append(rows(20)).append(rows(21))
    for catalog in (filled, restored_catalog):
        catalog.save_cut("nightly", token=Token(commit_id="a" * 26, bases={}))
    filled.backup(place)
    restored_catalog.backup(place)
    again = Catalog(f"{elsewhere}-again")
    again.restore_warehouse(place)
    assert ids(Catalog(again.warehouse, as_of="nightly"), "b") == [7, 8, 20, 21]
    check_whole(again)


def test_the_cut_that_kept_the_versions_is_dropped(filled: Catalog, place: str) -> None:
    filled.backup(place)
    assert list(filled.cuts()) == ["kept"]
    filled.backup(place, "n")
    assert not filled.cuts("n")


def test_expiry_and_vacuum_in_the_middle_take_nothing_that_the_backup_has(
    filled: Catalog, warehouse: str, place: str, elsewhere: str
) -> None:
    other_catalog = Catalog(warehouse)
    stages: list[str] = []

    def meanwhile(message: str) -> None:
        stages.append(message)
        table = other_catalog.load_table("b")
        table.overwrite(rows(len(stages) + 100))
        other_catalog.expire(retain_last=1, dry_run=False)
        other_catalog.vacuum(older_than=NOW, dry_run=False)

    filled.backup(place, progress=meanwhile)
    assert stages
    restored_catalog = Catalog(elsewhere)
    restored_catalog.restore_warehouse(place)
    check_whole(restored_catalog)
    assert ids(restored_catalog, "b") == [7, 8] and ids(restored_catalog, "n.a") == [1, 3, 4, 5, 10]


def test_what_has_expired_is_not_in_a_backup(filled: Catalog, place: str, elsewhere: str) -> None:
    filled.load_table("n.a").compact()
    filled.drop_cut("kept")
    filled.expire(retain_last=1, dry_run=False)
    filled.vacuum(older_than=NOW, dropped_older_than=NOW, dry_run=False)
    filled.load_table("n.a").append(rows(12))
    filled.backup(place)
    restored_catalog = Catalog(elsewhere)
    restored_catalog.restore_warehouse(place)
    check_whole(restored_catalog)
    assert ids(restored_catalog, "n.a") == [1, 3, 4, 5, 10, 12]
    with pytest.raises(NotFound, match="expired"):
        restored_catalog.load_table("n.a", version=2)
    restored_catalog.expire(retain_last=1, dry_run=False)
    restored_catalog.vacuum(older_than=NOW, dry_run=False)
    check_whole(restored_catalog)


def test_a_clone_has_files_of_its_own_afterwards(filled: Catalog, place: str, elsewhere: str) -> None:
    filled.clone("n.a", "copy")
    filled.load_table("copy").append(rows(20))
    filled.load_table("n.a").overwrite(rows(0))
    filled.backup(place)
    restored_catalog = Catalog(elsewhere)
    assert restored_catalog.restore_warehouse(place).backup.clones == (("copy",),)
    assert ids(restored_catalog, "copy") == [1, 3, 4, 5, 10, 20] and ids(restored_catalog, "n.a") == [0]
    assert not [
        path for path in restored_catalog.load_table("copy").plan()["path"].to_pylist() if "://" in path
    ]
    check_whole(restored_catalog)


def test_a_table_comes_back_beside_the_one_that_is_there(filled: Catalog, place: str) -> None:
    source = filled.load_table("n.a")
    filled.backup(place)
    source.overwrite(rows(0))
    table = filled.restore_table(place, "n.a", to="n.again")
    assert ids(filled, "n.again") == [1, 3, 4, 5, 10] and ids(filled, "n.a") == [0]
    assert table.table.id != source.table_head.id and table.table.version == 1
    assert table.table.state.next_row == source.table_head.state.next_row
    check_whole(filled)
    with pytest.raises(TableExists):
        filled.restore_table(place, "n.a")


def test_a_table_comes_back_in_place_of_the_one_that_is_there(filled: Catalog, place: str) -> None:
    filled.backup(place)
    old = filled.load_table("b")
    old = old.overwrite(rows(0))
    filled.restore_table(place, "b", replace=True)
    assert ids(filled, "b") == [7, 8]
    # A writer that holds the old one does not write into the new one.
    with pytest.raises(NoSuchTable):
        old.append(rows(1))
    assert filled.list_tables() == [("b",)]
    filled.undrop_table("b", to="old")
    assert ids(filled, "old") == [0]
    check_whole(filled)


def test_a_backup_of_a_namespace_or_a_table_has_these_alone(filled: Catalog, place: str) -> None:
    backup = filled.backup(place, "n.a").backup
    assert [table.name for table in backup.tables] == [("n", "a")] and backup.kind == "table"
    all_below = filled.backup(place, "n").backup
    assert [table.name for table in all_below.tables] == [("n", "a")] and all_below.kind == "namespace"
    filled.drop_table("n.a")
    filled.restore_table(place, "n.a", backup=backup.id)
    assert ids(filled, "n.a") == [1, 3, 4, 5, 10]
    with pytest.raises(NoSuchTable, match="its tables are `n`.`a`"):
        filled.restore_table(place, "b")
    with pytest.raises(InvalidInput, match="not of a warehouse"):
        Catalog("memory://empty").restore_warehouse(place)


def test_identity_columns_go_on(catalog: Catalog, place: str, elsewhere: str) -> None:
    create(catalog).append(of("a", "b"))
    catalog.backup(place)
    restored_catalog = Catalog(elsewhere)
    restored_catalog.restore_warehouse(place)
    catalog.restore_table(place, "t", to="u")
    for each_catalog, name in ((restored_catalog, "t"), (catalog, "u")):
        each_catalog.load_table(name).append(of("c"))
        assert ids(each_catalog, name) == [1, 2, 3]


@pytest.mark.parametrize("what", ["altered", "missing"])
def test_damage_of_a_backup_is_named(filled: Catalog, place: str, elsewhere: str, what: str) -> None:
    filled.backup(place)
    store = MemoryStore.named(place)
    data = next(key for key in store.list_after("objects/") if key.endswith(".parquet"))
    whole_data = store.get(data)
    assert whole_data is not None
    if what == "altered":
        store.put(data, b"x" + whole_data[1:])
    else:
        store.delete([data])
    checked_backup = filled.verify_backup(place)
    assert [(problem.what, problem.place) for problem in checked_backup.problems] == [
        (what, f"{place}/{data}")
    ]
    with pytest.raises(FormatError, match=data):
        Catalog(elsewhere).restore_warehouse(place)
    # Nothing is a warehouse before all of it is there.
    with pytest.raises(InvalidInput, match="not a lakelog warehouse"):
        Catalog(elsewhere).list_tables()
    # What is missing is copied again.
    if what == "missing":
        filled.backup(place)
        assert not filled.verify_backup(place).problems


def test_an_altered_list_is_an_error(filled: Catalog, place: str) -> None:
    backup = filled.backup(place).backup
    MemoryStore.named(place).put(f"lists/{backup.id}/{backup.list_hash}.parquet", b"nothing")
    with pytest.raises(FormatError, match="was altered"):
        filled.verify_backup(place)


def test_another_version_in_the_object_of_a_backup_is_an_error(filled: Catalog, place: str) -> None:
    new_backup = filled.backup(place).backup
    store, key = MemoryStore.named(place), f"backups/{new_backup.id}.json"
    data = store.get(key)
    assert data is not None
    (version,) = {at.version for at in new_backup.tables if at.name == ("b",)}
    store.put(key, data.replace(b'"version":%d' % version, b'"version":%d' % (version - 1)))
    for refused_backups in (
        filled.backups,
        filled.verify_backup,
        lambda there: filled.restore_table(there, "b", to="c"),
    ):
        with pytest.raises(FormatError, match="was altered: delete it, and use another backup"):
            refused_backups(place)
    store.put(key, data)
    store.put(f"backups/{filled.backup(place).backup.id}.json", b"{}")
    assert not filled.verify_backup(place, new_backup.id).problems, "the other one is of use still"


def test_bad_places_are_refused(filled: Catalog, warehouse: str, place: str, elsewhere: str) -> None:
    with pytest.raises(InvalidInput, match="inside of"):
        filled.backup(f"{warehouse}/backups")
    with pytest.raises(InvalidInput, match="inside of"):
        filled.backup(warehouse)
    MemoryStore.named(elsewhere).put("a.txt", b"")
    with pytest.raises(InvalidInput, match="not a place of backups: it holds 'a.txt'"):
        filled.backup(elsewhere)
    with pytest.raises(NotFound, match="there are no backups at"):
        filled.backups(place)
    with pytest.raises(InvalidInput, match="is not empty"):
        filled.backup(place)
        filled.restore_warehouse(place)
    with pytest.raises(NotFound, match="there is no backup none"):
        filled.verify_backup(place, "none")
    other_catalog = Catalog("memory://another-warehouse")
    other_catalog.create_table("x", SCHEMA)
    with pytest.raises(InvalidInput, match="backups of another warehouse"):
        other_catalog.backup(place)
    with pytest.raises(NoSuchTable):
        filled.backup(place, "n.none")


def test_a_place_inside_by_a_link_is_refused(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path / "w"), options={"fsync": "off"})
    catalog.create_table("t", SCHEMA)
    (tmp_path / "link").symlink_to(tmp_path / "w")
    with pytest.raises(InvalidInput, match="inside of"):
        catalog.backup(str(tmp_path / "link" / "backups"))


def test_what_is_outside_is_refused_or_left_by_name(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path / "w"), options={"fsync": "off"})
    catalog.create_table("inside", SCHEMA).append(rows(1))
    catalog.create_table("outside", SCHEMA, location=str(tmp_path / "away")).append(rows(2))
    place = str(tmp_path / "backups")
    with pytest.raises(InvalidInput, match="`outside` at .*away is outside"):
        catalog.backup(place)
    assert not catalog.cuts()
    backup = catalog.backup(place, outside="leave").backup
    assert [(each.name, each.place) for each in backup.left] == [(("outside",), str(tmp_path / "away"))]
    restored_catalog = Catalog(str(tmp_path / "r"), options={"fsync": "off"})
    restored_catalog.restore_warehouse(place)
    # Two warehouses with one table would each drop it for the other.
    assert restored_catalog.list_tables() == [("inside",)]
    with pytest.raises(Unsupported, match="left out"):
        restored_catalog.restore_table(place, "outside")
    check_whole(restored_catalog)


def test_a_place_that_is_full_says_how_to_go_on(
    filled: Catalog, place: str, elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    remaining_numbers = [9]

    def full(put: Callable[[MemoryStore, str, bytes], object]) -> Callable[[MemoryStore, str, bytes], object]:
        def put_unless_full(self: MemoryStore, key: str, data: bytes) -> object:
            if self.url in (place, elsewhere):
                remaining_numbers[0] -= 1
                if remaining_numbers[0] < 0:
                    at = f"{self.url}/{key}"
                    raise StorageError("no space left on device", location=at, without_effect=True)
            return put(self, key, data)

        return put_unless_full

    for name in ("put", "put_if_absent"):
        monkeypatch.setattr(MemoryStore, name, full(getattr(MemoryStore, name)))
    with pytest.raises(StorageError, match="stopped after .* run it again, and it goes on"):
        filled.backup(place)
    remaining_numbers[0] = 1_000
    assert filled.backup(place).resumed
    remaining_numbers[0] = 9
    with pytest.raises(StorageError, match="the restore stopped after 7 of"):
        Catalog(elsewhere).restore_warehouse(place)
    remaining_numbers[0] = 1_000
    assert Catalog(elsewhere).restore_warehouse(place).copied < filled.backup(place).backup.objects
    assert ids(Catalog(elsewhere), "b") == [7, 8]


def test_what_a_killed_run_has_left_half_made_goes_with_the_next_one(tmp_path: Path) -> None:
    catalog, place, target = Catalog(str(tmp_path / "a")), tmp_path / "place", tmp_path / "restored"
    catalog.create_table("t", SCHEMA).append(rows(1))
    catalog.backup(str(place))

    def torn(folder: Path) -> Path:
        file = folder / f".lakelog-tmp-{'a' * 26}"
        folder.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"half")
        return file

    remaining_paths = [
        torn(place / "objects" / "t" / "data"),
        torn(target / "t" / "data"),
        torn(tmp_path / "copy" / "_log"),
    ]
    catalog.backup(str(place))
    Catalog(str(target)).restore_warehouse(str(place))
    catalog.copy(str(tmp_path / "copy"))
    assert not any(file.exists() for file in remaining_paths)


@pytest.mark.parametrize("applied", [False, True])
def test_an_answer_that_is_lost_once_is_settled(
    filled: Catalog, place: str, elsewhere: str, monkeypatch: pytest.MonkeyPatch, applied: bool
) -> None:
    """For what is created once and is no commit as well: cuts, places, marks, backups, and what is restored."""
    put, lost_texts = MemoryStore.put_if_absent, set[str]()

    def losing_flag(self: MemoryStore, key: str, data: bytes) -> bool:
        if key in lost_texts:
            return put(self, key, data)
        lost_texts.add(key)
        if applied:
            put(self, key, data)
        raise StorageError("503 SlowDown", location=f"{self.url}/{key}")

    monkeypatch.setattr(MemoryStore, "put_if_absent", losing_flag)
    filled.save_cut("more")
    filled.backup(place)
    restored_catalog = Catalog(elsewhere, log_options=LogOptions(sleep_s=lambda seconds: None))
    restored_catalog.restore_warehouse(place)
    filled.copy(f"{elsewhere}-copy")
    assert any(key.startswith("_cut/") for key in lost_texts) and any(
        key.startswith("backups/") for key in lost_texts
    )
    check_whole(restored_catalog)
    assert ids(restored_catalog, "b") == ids(Catalog(f"{elsewhere}-copy"), "b") == [7, 8]


@pytest.mark.parametrize("how", ["restore", "copy"])
def test_expiry_that_was_under_way_is_ended_in_what_comes_of_it(
    filled: Catalog, place: str, elsewhere: str, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Commits that were no tombstones yet name files that are not needed any more, and have not come."""
    table = filled.create_table("t", SCHEMA).append(rows(1)).append(rows(2))
    table.compact()

    def stopped(*given: object) -> None:
        raise StorageError("stopped", location="")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(expiry, "bury_versions", stopped)
        with pytest.raises(DoneInPart):
            filled.expire("t", retain_last=1, dry_run=False)
    if how == "copy":
        filled.copy(elsewhere)
    else:
        filled.backup(place)
        Catalog(elsewhere).restore_warehouse(place)
    check_whole(Catalog(elsewhere))
    assert ids(Catalog(elsewhere), "t") == [1, 2]


def test_changes_go_on_in_what_was_restored(filled: Catalog, place: str, elsewhere: str) -> None:
    changes = filled.load_table("b").version
    filled.backup(place)
    restored_catalog = Catalog(elsewhere)
    restored_catalog.restore_warehouse(place)
    restored_catalog.load_table("b").append(rows(12))
    found_changes = restored_catalog.load_table("b").changes(changes + 1)
    assert found_changes.to_arrow().column("id").to_pylist() == [12]


def test_a_dropped_namespace_comes_back_dropped(filled: Catalog, place: str, elsewhere: str) -> None:
    filled.create_table("n.gone", SCHEMA).append(rows(3))
    filled.drop_namespace("n", cascade=True)
    assert [table.name for table in filled.backup(place).backup.tables] == [("b",)]
    restored_catalog = Catalog(elsewhere)
    restored_catalog.restore_warehouse(place)
    check_whole(restored_catalog)
    restored_catalog.undrop_namespace("n")
    assert ids(restored_catalog, "n.a") == [1, 3, 4, 5, 10] and ids(restored_catalog, "n.gone") == [3]


def test_what_was_dropped_outside_is_the_sources_alone(tmp_path: Path) -> None:
    source = Catalog(str(tmp_path / "w"), options={"fsync": "off"})
    source.create_namespace("n", {"location": str(tmp_path / "away")})
    source.create_table("n.t", SCHEMA).append(rows(1))
    source.drop_table("n.t")
    backup = source.backup(str(tmp_path / "backups")).backup
    assert [(each.kind, each.name) for each in backup.left] == [("dropped", ("n", "t"))]
    restored_catalog = Catalog(str(tmp_path / "r"), options={"fsync": "off"})
    restored_catalog.restore_warehouse(str(tmp_path / "backups"))
    assert not restored_catalog.dropped("n")
    restored_catalog.vacuum(older_than=NOW, dropped_older_than=NOW, dry_run=False)
    source.undrop_table("n.t")
    assert ids(source, "n.t") == [1]


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("copied", [False, True])
def test_a_vacuum_of_what_was_restored_leaves_the_tables_at_the_sources_locations(
    tmp_path: Path, inside: bool, copied: bool
) -> None:
    away = str(tmp_path / "w/tables" if inside else tmp_path / "away")
    source = Catalog(str(tmp_path / "w"), options={"fsync": "off"})
    source.create_namespace("n", {"location": away, "owner": "ada"})
    source.create_table("n.old", SCHEMA).append(rows(1))
    other_catalog = Catalog(str(tmp_path / "r"), options={"fsync": "off"})
    if copied:
        source.copy(str(tmp_path / "r"), outside="leave")
    else:
        source.backup(str(tmp_path / "backups"), outside="leave")
        other_catalog.restore_warehouse(str(tmp_path / "backups"))
    source.create_table("n.new", SCHEMA).append(rows(2))
    assert other_catalog.load_namespace("n") == {"owner": "ada"}
    table = other_catalog.create_table("n.made", SCHEMA).append(rows(3))
    other_catalog.vacuum(older_than=NOW, dropped_older_than=NOW, dry_run=False)
    assert table.location.startswith(str(tmp_path / "r"))
    assert ids(source, "n.old") == [1] and ids(source, "n.new") == [2] and ids(other_catalog, "n.made") == [3]
    assert [entry.name for entry in source.dropped("n")] == []
    check_whole(source)
    check_whole(other_catalog)


def test_a_dropped_clone_is_named_and_cannot_be_undropped_where_its_source_is_not(
    place: str, elsewhere: str
) -> None:
    catalog = Catalog(f"memory://{uuid.uuid4().hex}")
    for name in ("a", "b"):
        catalog.create_table(name, SCHEMA).append(rows(1, 2))
    for name in ("live", "gone"):
        catalog.clone("a", name)
    catalog.drop_table("gone")
    catalog.drop_table("b")
    catalog.drop_table("a")
    backup = catalog.backup(place).backup
    assert [(each.kind, each.name, each.files) for each in backup.left] == [("dropped", ("gone",), 1)]
    restored_catalog = Catalog(elsewhere)
    restored_catalog.restore_warehouse(place)
    assert ids(restored_catalog, "live") == [1, 2]
    assert all("://" not in path for path in restored_catalog.load_table("live").plan()["path"].to_pylist())
    assert sorted(entry.name for entry in restored_catalog.dropped()) == [("a",), ("b",)]
    with pytest.raises(LakelogError, match="gone"):
        restored_catalog.undrop_table("gone")
    assert ids(catalog, "live") == [1, 2]
    catalog.undrop_table("gone")
    assert ids(catalog, "gone") == [1, 2]
