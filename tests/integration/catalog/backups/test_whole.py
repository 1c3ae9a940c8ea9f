"""What is restored or copied can be checked, backed up, copied and vacuumed at once, and is apart from its source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.catalog.backups.lives import NOW
from tests.integration.catalog.backups.test_backup_kills import new
from tests.integration.catalog.backups.test_backups import check_whole, ids
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, LeftOut
from lakelog.cli.main import run
from lakelog.log import MemoryStore
from lakelog.log.errors import InvalidInput

Step = Callable[[Catalog], object]


def clone(catalog: Catalog) -> None:
    catalog.clone("a.p", "a.q")


def clone_again(catalog: Catalog) -> None:
    catalog.clone("a.q", "r")


def drop_all(catalog: Catalog) -> None:
    catalog.drop_namespace("a", cascade=True)


def restored(source: Catalog, how: str) -> tuple[Catalog, tuple[LeftOut, ...]]:
    """Make another warehouse of one, and lose that."""
    target, place = new(), new()
    if how == "copy":
        left = source.copy(target, outside="leave").left
    else:
        source.backup(place, outside="leave")
        left = Catalog(target).restore_warehouse(place).left
    MemoryStore.named(source.warehouse)._objects = {}
    return Catalog(target), left


@pytest.mark.parametrize("how", ["copy", "restore"])
@pytest.mark.parametrize(
    ("steps", "shown"),
    [
        ([clone], set()),
        ([clone, lambda c: c.save_cut("monday")], {("monday",)}),
        ([clone, lambda c: c.save_cut("monday", namespace="a")], {("a", "monday")}),
        ([clone, lambda c: c.drop_table("a.q")], set()),
        ([clone, lambda c: c.save_cut("monday"), lambda c: c.drop_table("a.q")], {("monday",)}),
        ([clone, lambda c: c.save_cut("monday"), lambda c: c.drop_table("a.p")], {("monday",)}),
        ([clone, clone_again, lambda c: c.drop_table("a.q"), lambda c: c.save_cut("m")], {("m",)}),
        ([clone, lambda c: c.save_cut("m", namespace="a"), drop_all], {("a", "m")}),
        ([clone, lambda c: c.rename_table("a.q", "q"), drop_all], set()),
    ],
)  # fmt: skip
def test_a_warehouse_with_clones_is_whole_at_once(
    how: str, steps: list[Step], shown: set[tuple[str, ...]]
) -> None:
    catalog = Catalog(new())
    catalog.create_namespace("a")
    catalog.create_table("a.p", SCHEMA).append(rows(1, 2))
    for step in steps:
        step(catalog)
    for generation in range(3):
        catalog, left = restored(catalog, how)
        check_whole(catalog)
        if generation == 0:
            assert {each.name for each in left if each.kind == "cut"} == shown
            assert all("`q`" in each.text or "`r`" in each.text for each in left if each.kind == "cut")
        for dropped_entry in catalog.dropped(()) if generation == 1 else ():
            (catalog.undrop_namespace if dropped_entry.kind == "namespace" else catalog.undrop_table)(
                dropped_entry.name
            )
            check_whole(catalog)
        catalog.create_table(f"new{generation}", SCHEMA).append(rows(9))
    report = catalog.vacuum(older_than=NOW, dropped_older_than=NOW, dry_run=False, trust_clock=True)
    assert not [each.error for each in report if each.error]
    check_whole(catalog)


def test_a_saved_cut_without_its_clone_shows_all_else_and_says_what_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog = Catalog(str(tmp_path / "w"), options={"fsync": "off"})
    catalog.create_namespace("a")
    catalog.create_table("a.p", SCHEMA).append(rows(1, 2))
    catalog.clone("a.p", "a.q")
    catalog.save_cut("monday")
    catalog.load_table("a.p").append(rows(3))
    assert run(["copy", str(tmp_path / "copy"), "--warehouse", catalog.warehouse]) == 0
    assert (
        "Not in the backup: `a`.`q` in the saved cut monday, which shows all else." in capsys.readouterr().out
    )
    past_catalog = Catalog(str(tmp_path / "copy"), as_of="monday")
    assert ids(past_catalog, "a.p") == [1, 2]
    with pytest.raises(InvalidInput, match="the saved cut cannot show .* has no clones in the saved cuts"):
        past_catalog.load_table("a.q")
    assert ids(Catalog(str(tmp_path / "copy")), "a.q") == [1, 2]


def test_a_saved_cut_is_named_though_a_dropped_namespace_of_that_name_has_one_too() -> None:
    catalog = Catalog(new())
    for name in ("first", "second"):
        catalog.create_namespace("a")
        catalog.create_table("a.p", SCHEMA).append(rows(1))
        if name == "second":
            catalog.clone("a.p", "a.q")
        catalog.save_cut("monday", namespace="a")
        if name == "first":
            drop_all(catalog)
    left = catalog.backup(new()).backup.left
    assert [(each.kind, each.name, each.place) for each in left] == [("cut", ("a", "monday"), "`a`.`q`")]


def test_what_led_out_of_a_dropped_namespace_stays_the_sources(tmp_path: Path) -> None:
    """A vacuum of the copy would purge it there, though the source has brought it back."""
    source = Catalog(str(tmp_path / "w"), options={"fsync": "off"})
    source.create_namespace("n", {"location": str(tmp_path / "away")})
    source.create_namespace("n.m")
    source.create_table("n.old", SCHEMA).append(rows(1))
    source.create_table("n.m.own", SCHEMA, location=str(tmp_path / "own")).append(rows(2))
    source.create_table("n.m.gone", SCHEMA).append(rows(3))
    source.create_table("n.m.inside", SCHEMA).append(rows(4))
    source.drop_table("n.m.gone")
    source.drop_namespace("n.m", cascade=True)
    source.create_table("n.more", SCHEMA).append(rows(5))
    source.drop_namespace("n", cascade=True)
    place = str(tmp_path / "place")
    left = source.backup(place).backup.left
    assert {each.name[-1] for each in left} == {"old", "own", "more"}
    copies = [
        Catalog(str(tmp_path / name), options={"fsync": "off"}) for name in ("copy", "restored", "undropped")
    ]
    source.copy(copies[0].warehouse)
    for copy in copies[1:]:
        copy.restore_warehouse(place)
    source.undrop_namespace("n")
    source.undrop_namespace("n.m")
    for copy in copies:
        check_whole(copy)
        copy.backup(str(tmp_path / f"of-{copy.warehouse.rpartition('/')[2]}"))
    for copy in copies[:2]:
        copy.vacuum(older_than=NOW, dropped_older_than=NOW, dry_run=False, trust_clock=True)
        check_whole(copy)
    copies[2].undrop_namespace("n")
    copies[2].undrop_namespace("n.m")
    assert copies[2].list_tables("n") == [] and copies[2].list_tables("n.m") == [("n", "m", "inside")]
    copies[2].drop_namespace("n", cascade=True)
    check_whole(copies[2])
    assert [ids(source, f"n.{name}") for name in ("old", "more", "m.own", "m.inside")] == [[1], [5], [2], [4]]
    source.undrop_table("n.m.gone")
    check_whole(source)


def test_a_restore_that_died_with_a_dropped_namespace_brought_back_drops_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakelog.catalog.keeping.backups import restoring

    source = Catalog(str(tmp_path / "w"), options={"fsync": "off"})
    source.create_namespace("n")
    source.create_table("n.own", SCHEMA, location=str(tmp_path / "own")).append(rows(2))
    source.drop_namespace("n", cascade=True)
    source.backup(str(tmp_path / "place"))
    copy = Catalog(str(tmp_path / "copy"), options={"fsync": "off"})

    class Death(BaseException):
        pass

    def died(*given: object, **more: object) -> None:
        raise Death

    with monkeypatch.context() as meanwhile, pytest.raises(Death):
        meanwhile.setattr(restoring, "drop_namespace", died)
        copy.restore_warehouse(str(tmp_path / "place"))
    copy = Catalog(copy.warehouse, options={"fsync": "off"})
    copy.restore_warehouse(str(tmp_path / "place"))
    assert copy.list_namespaces() == [] and [entry.name for entry in copy.dropped()] == [("n",)]
    check_whole(copy)
    assert source.undrop_namespace("n") == ("n",) and ids(source, "n.own") == [2]


def test_what_was_dropped_with_files_of_an_import_refuses_no_backup(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    (tmp_path / "theirs").mkdir()
    pq.write_table(rows(7, 8), tmp_path / "theirs" / "a.parquet")
    source = Catalog(str(tmp_path / "w"), options={"fsync": "off"})
    source.import_table(str(tmp_path / "theirs"), "t", format="parquet")
    source.drop_table("t")
    backup = source.backup(str(tmp_path / "place")).backup
    assert [(each.kind, each.name, each.files) for each in backup.left] == [("dropped", ("t",), 1)]
    copy = Catalog(str(tmp_path / "copy"), options={"fsync": "off"})
    copy.restore_warehouse(str(tmp_path / "place"))
    copy.undrop_table("t")
    assert ids(copy, "t") == [7, 8]


def test_files_that_were_kept_for_a_clone_of_then_may_be_gone(catalog: Catalog) -> None:
    """They were promised at the oldest version that can be read, and no reader goes back to a promise."""
    catalog.create_table("p", SCHEMA).append(rows(1))
    catalog.clone("p", "q")
    catalog.load_table("p").delete("id = 1")
    catalog.expire("p", retain_last=1, dry_run=False)
    catalog.drop_table("q", purge=True)
    catalog.vacuum(older_than=NOW, dropped_older_than=NOW, dry_run=False, trust_clock=True)
    check_whole(catalog)
