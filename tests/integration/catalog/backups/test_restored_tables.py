"""What was restored, or cloned, as a table of its own: its rows, names meanwhile, and their versions in its log."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.integration.catalog.backups.test_backups import check_whole, ids
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog
from lakelog.log.errors import InvalidInput, Unsupported

NOW = dt.timedelta(0)


def test_clones_of_clones_with_long_names_that_begin_alike(
    catalog: Catalog, place: str, elsewhere: str
) -> None:
    """Each has the rows of its own, although all have to wait beside one another under other names."""
    names = [f"{'ü' * 125}{number}" for number in range(4)]
    name_before = "b"
    catalog.create_table(name_before, SCHEMA).append(rows(7))
    for number, name in enumerate(names):
        catalog.clone(name_before, name)
        catalog.load_table(name).append(rows(100 + number))
        name_before = name
    catalog.load_table(names[2]).overwrite(rows(0))
    catalog.backup(place)
    restored_catalog = Catalog(elsewhere)
    restored_catalog.restore_warehouse(place)
    assert restored_catalog.list_tables() == catalog.list_tables()
    for name in ("b", *names):
        assert ids(restored_catalog, name) == ids(catalog, name)
    check_whole(restored_catalog)
    restored_catalog.restore_table(place, names[0], replace=True)
    assert ids(restored_catalog, names[0]) == [7, 100]


def test_a_clone_with_files_outside_does_not_hold_up_a_restore(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path / "w"), options={"fsync": "off"})
    catalog.create_table("t", SCHEMA).append(rows(1, 2))
    (tmp_path / "out").mkdir()
    pq.write_table(rows(3, 4), tmp_path / "out" / "added.parquet")
    catalog.clone("t", "c")
    catalog.load_table("c").add_files(str(tmp_path / "out" / "added.parquet"))
    catalog.load_table("c").delete("id = 1 or id = 4")
    place = str(tmp_path / "backups")
    backup = catalog.backup(place, outside="leave").backup
    assert [(each.kind, each.name) for each in backup.left] == [("file", ("c",))]
    restored_catalog = Catalog(str(tmp_path / "r"), options={"fsync": "off"})
    restored_catalog.restore_warehouse(place)
    # As any other table of a restored warehouse, it goes on to name the file where that was.
    assert ids(restored_catalog, "c") == [2, 3] and ids(restored_catalog, "t") == [1, 2]
    check_whole(restored_catalog)
    restored_catalog.drop_table("c")
    restored_catalog.vacuum(older_than=NOW, dropped_older_than=NOW, dry_run=False)
    assert ids(catalog, "c") == [2, 3]
    with pytest.raises(Unsupported, match="was outside of the warehouse"):
        catalog.restore_table(place, "c", to="again")


@pytest.mark.parametrize("stopped", [False, True])
def test_a_saved_cut_that_is_dropped_meanwhile_does_not_stop_backups_for_ever(
    catalog: Catalog, place: str, elsewhere: str, stopped: bool
) -> None:
    """The version of the run has the cut, whose object is gone with it: the run begins anew with a newer version."""
    catalog.create_table("t", SCHEMA).append(rows(1, 2))
    catalog.save_cut("kept")

    def beside(message: str) -> None:
        if "kept" in catalog.cuts():
            Catalog(catalog.warehouse).drop_cut("kept")
            if stopped:
                raise KeyboardInterrupt

    if stopped:
        with pytest.raises(KeyboardInterrupt):
            catalog.backup(place, progress=beside)
        assert len(catalog.cuts()) == 1
    new_backup = catalog.backup(place, progress=beside)
    assert not catalog.cuts() and not new_backup.resumed
    assert [backup.id for backup in catalog.backups(place)] == [new_backup.backup.id]
    restored_catalog = Catalog(elsewhere)
    restored_catalog.restore_warehouse(place)
    assert ids(restored_catalog, "t") == [1, 2] and not restored_catalog.cuts().keys() - {
        f"backup-{new_backup.backup.id}"
    }
    check_whole(restored_catalog)


@pytest.mark.parametrize("how", ["restore", "copy", "copy a namespace"])
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_clone_that_is_made_anew_has_its_tags_and_branches(
    catalog: Catalog, place: str, elsewhere: str, mode: str, how: str
) -> None:
    catalog.create_namespace("n")
    source = catalog.create_table("n.t", SCHEMA, properties={"lakelog.write.delete.mode": mode})
    source.append(rows(1, 2, 3)).append(rows(4))
    clone = catalog.clone("n.t", "n.c")
    clone.create_tag("first")
    # The tag keeps the files of the other table, lines have copies of the same rows.
    catalog.load_table("n.c").materialize()
    clone = clone.refresh()
    clone.create_branch("behind")
    clone.create_branch("ahead")
    clone = clone.refresh().delete("id = 1")
    clone.create_branch("apart")
    catalog.load_table("n.c", ref="apart").append(rows(7))
    catalog.load_table("n.c").append(rows(8)).delete("id = 4")
    clone.fast_forward("ahead", "main")
    catalog.load_table("n.c", ref="ahead").append(rows(9)).delete("id = 2")
    names = [None, "first", "behind", "ahead", "apart"]
    expected = [ids(catalog, "n.c", ref=name) for name in names]
    if how == "restore":
        catalog.backup(place)
        Catalog(elsewhere).restore_warehouse(place)
    else:
        catalog.copy(elsewhere, None if how == "copy" else "n")
    restored_catalog = Catalog(elsewhere)
    check_whole(restored_catalog)
    assert [ids(restored_catalog, "n.c", ref=name) for name in names] == expected
    table = restored_catalog.load_table("n.c")
    assert {name: ref.kind for name, ref in table.refs.items()} == {
        name: ref.kind for name, ref in catalog.load_table("n.c").refs.items()
    }
    # None of them needs files of the other table, and what could be published still can.
    restored_catalog.drop_table("n.t")
    duration = dt.timedelta(0)
    restored_catalog.vacuum(dropped_older_than=duration, older_than=duration, dry_run=False, trust_clock=True)
    assert [ids(restored_catalog, "n.c", ref=name) for name in names] == expected
    with pytest.raises(InvalidInput):
        table.fast_forward("main", "apart")
    table.fast_forward("behind", "main")
    table.fast_forward("main", "ahead")
    assert ids(restored_catalog, "n.c") == ids(restored_catalog, "n.c", ref="ahead") == expected[3]
    assert ids(restored_catalog, "n.c", ref="behind") == expected[0]
    check_whole(restored_catalog)


@pytest.mark.parametrize("how", ["clone", "restore"])
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_no_change_is_taken_for_a_copy_by_versions_of_the_other_log(
    catalog: Catalog, place: str, how: str, mode: str
) -> None:
    """Rows that were rewritten there have the versions of that log in their file, which come again in the new one."""
    table = catalog.create_table("t", SCHEMA, properties={"lakelog.write.update.mode": mode})
    for number in range(5):
        table = table.append(rows(number))
    table.compact()
    if how == "clone":
        catalog.clone("t", "new")
    else:
        catalog.backup(place)
        catalog.restore_table(place, "t", to="new")
    new = catalog.load_table("new")
    assert set(new.scan(row_ids=True).to_arrow()["_row_version"].to_pylist()) == {1}
    for number in range(5):
        new = new.update({"id": f"id + {100 * (number + 1)}"}, f"id = {number}")
        found_rows = new.changes(new.version).to_arrow().to_pylist()
        assert sorted(each["id"] for each in found_rows) == [number, number + 100 * (number + 1)]
    whole_rows = new.changes(2, net=True).to_arrow().to_pylist()
    assert len(whole_rows) == 10
    if how == "clone":
        new.materialize()
    new = catalog.load_table("new").compact()
    remaining_rows = new.scan(row_ids=True).to_arrow().to_pylist()
    assert {each["id"]: each["_row_version"] for each in remaining_rows} == {
        number + 100 * (number + 1): number + 2 for number in range(5)
    }
