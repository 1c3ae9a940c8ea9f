"""Copies of warehouses, namespaces and tables: warehouses elsewhere, with history, ids and all that belongs to them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.integration.catalog.backups.test_backup_kills import dying, lived, new, small
from tests.integration.catalog.backups.test_backups import check_whole, filled, ids
from tests.integration.catalog.conftest import SCHEMA, rows
from tests.integration.catalog.test_crashes import Death, quick

from lakelog.catalog import Catalog, NoSuchTable, TableExists, engine
from lakelog.catalog.keeping.backups import CopyPlace
from lakelog.catalog.keeping.backups.restoring import mark_at
from lakelog.log import LogOptions, MemoryStore
from lakelog.log.errors import FormatError, InvalidInput, LakelogError, NotFound

__all__ = ["filled"]


def keys(url: str) -> list[str]:
    return list(MemoryStore.named(url).list_after(""))


def check_same(source: Catalog, target: Catalog, name: str) -> None:
    table = source.load_table(name)
    assert target.load_table(name).table_head.id == table.table_head.id
    for version in range(1, table.version + 1):
        assert ids(target, name, version=version) == ids(source, name, version=version)
    assert target.load_table(name).refs.keys() == table.refs.keys()
    for ref in table.refs:
        assert ids(target, name, ref=ref) == ids(source, name, ref=ref)


def test_a_copy_is_brought_up_to_date_until_it_is_finished(
    filled: Catalog, warehouse: str, elsewhere: str
) -> None:
    first = filled.copy(elsewhere, finish=False)
    assert not first.finished and first.copied == first.backup.objects
    # It is no warehouse yet, for no client.
    with pytest.raises(LakelogError, match=r"not a lakelog warehouse|is missing"):
        Catalog(elsewhere).create_table("t", SCHEMA)
    filled.load_table("b").append(rows(20))
    table = filled.create_table("n.c", SCHEMA).append(rows(1)).append(rows(2))
    removed_rows = table.table_head.all_files()["path"].to_pylist()
    filled.copy(elsewhere, finish=False)
    table.compact()
    filled.expire("n.c", retain_last=1, dry_run=False)
    again = filled.copy(elsewhere, finish=False)
    assert 0 < again.copied < 30
    finished_elsewhere = filled.copy(elsewhere)
    assert (
        finished_elsewhere.finished and finished_elsewhere.copied < 10 and not filled.cuts().keys() - {"kept"}
    )
    copy = Catalog(elsewhere)
    check_whole(copy)
    assert ids(copy, "b") == [7, 8, 20]
    check_same(filled, copy, "n.a")
    assert ids(Catalog(elsewhere, as_of="kept"), "n.a") == [1, 3, 4, 5]
    # Nothing is left of the way here: neither what only a copy needs, nor what has expired meanwhile.
    assert not [key for key in keys(elsewhere) if key.startswith("_lakelog")]
    assert not [key for key in keys(elsewhere) if key.endswith(removed_rows[-1])]
    copy.load_table("b").append(rows(100))
    assert ids(copy, "b") == [7, 8, 20, 100] and ids(Catalog(warehouse), "b") == [7, 8, 20]
    with pytest.raises(InvalidInput, match="is a warehouse already, and goes its own way"):
        filled.copy(elsewhere)


def test_a_copy_is_finished_without_its_source(filled: Catalog, warehouse: str, elsewhere: str) -> None:
    with pytest.raises(NotFound):
        Catalog(elsewhere).finish_copy()
    filled.copy(elsewhere, finish=False)
    filled.load_table("b").append(rows(20))
    # A run that does not come to its end changes nothing of what is there already.
    at = len(keys(elsewhere))
    while True:
        try:
            dying(warehouse, elsewhere, 6, False).copy(elsewhere, finish=False)
        except Death:
            break
    assert len(keys(elsewhere)) > at
    MemoryStore.named(warehouse)._objects = {}
    Catalog(elsewhere).finish_copy()
    assert ids(Catalog(elsewhere), "b") == [7, 8]
    check_whole(Catalog(elsewhere))
    with pytest.raises(InvalidInput, match="no copy to finish"):
        Catalog(elsewhere).finish_copy()


def test_a_table_and_a_namespace_are_copied_with_their_history(catalog: Catalog) -> None:
    catalog.create_namespace("a")
    catalog.create_namespace("a.b", {"lakelog.maintenance": "off"})
    catalog.create_namespace("z")
    table = catalog.create_table("a.b.t", SCHEMA).append(rows(1, 2)).append(rows(3))
    table.create_tag("old").delete("id = 1")
    catalog.create_table("a.b.gone", SCHEMA).append(rows(9))
    catalog.drop_table("a.b.gone")
    catalog.create_table("z.u", SCHEMA).append(rows(7))
    with catalog.transaction() as transaction:
        for name in ("a.b.t", "z.u"):
            transaction.load_table(name).append(rows(8))
    catalog.save_cut("here", namespace="a.b")
    catalog.clone("a.b.t", "z.of t")
    catalog.clone("z.u", "a.b.of u")
    for name in ("a", "a.b", "a.b.t"):
        target = new()
        catalog.copy(target, name)
        copy = Catalog(target)
        check_whole(copy)
        check_same(catalog, copy, "a.b.t")
        assert copy.list_namespaces() == [("a",)] and copy.list_tables("a") == []
        tables = ["t"] if name == "a.b.t" else ["of u", "t"]
        assert [table[-1] for table in copy.list_tables("a.b")] == tables
        if name != "a.b.t":
            assert ids(copy, "a.b.of u") == [7, 8]
            copy.undrop_table("a.b.gone")
            assert ids(copy, "a.b.gone") == [9]
        copy.load_table("a.b.t").append(rows(50))
        copy.rename_table("a.b.t", "t")
        assert ids(copy, "t") == [2, 3, 8, 50] and ids(copy, "t", ref="old") == [1, 2, 3]
        assert not copy.load_table("t").table_head.state.clones
        copy.vacuum(dry_run=False)
        check_whole(copy)


def test_a_table_is_copied_into_a_warehouse_in_use(filled: Catalog, elsewhere: str) -> None:
    with pytest.raises(InvalidInput, match="no warehouse at"):
        filled.copy_table(elsewhere, "n.a")
    other_catalog = Catalog(elsewhere)
    other_catalog.create_namespace("n")
    table = filled.copy_table(elsewhere, "n.a")
    assert (table.files, table.table.version) == (3, 1)
    filled.clone("n.a", "c").delete("id = 3")
    filled.copy_table(elsewhere, "c", target="n.c")
    assert ids(other_catalog, "n.a") == [1, 3, 4, 5, 10] and ids(other_catalog, "n.c") == [1, 4, 5, 10]
    check_whole(other_catalog)
    with pytest.raises(TableExists):
        filled.copy_table(elsewhere, "n.a")
    with pytest.raises(NoSuchTable):
        filled.copy_table(elsewhere, "n.nothing")
    path = filled.load_table("b").table_head.all_files()["path"].to_pylist()[0]
    [key] = [text for text in keys(engine.places(filled).warehouse) if text.endswith(path)]
    MemoryStore.named(engine.places(filled).warehouse)._objects[key] += b"!"
    with pytest.raises(FormatError, match="is not what the log of .* says"):
        filled.copy_table(elsewhere, "b")


def test_what_is_outside_is_carried_as_tables_of_the_copy(tmp_path: Path) -> None:
    catalog, target = Catalog(str(tmp_path / "warehouse")), str(tmp_path / "copy")
    catalog.create_namespace("n")
    away = catalog.create_table("n.away", SCHEMA, location=str(tmp_path / "away")).append(rows(1, 2))
    catalog.create_table("n.gone", SCHEMA, location=str(tmp_path / "gone")).append(rows(3))
    catalog.drop_table("n.gone")
    (tmp_path / "theirs").mkdir()
    pq.write_table(rows(7, 8), tmp_path / "theirs" / "a.parquet")
    catalog.import_table(str(tmp_path / "theirs"), "n.imported", format="parquet")
    catalog.load_table("n.imported").delete("id = 7")
    with pytest.raises(InvalidInput, match="is at a place of its own"):
        catalog.copy(target, "n.away")
    with pytest.raises(InvalidInput, match="which only a copy can do"):
        catalog.backup(target, outside="carry")
    finished_target = catalog.copy(target, "n", outside="carry")
    copy = Catalog(target)
    assert {each.name[-1] for each in finished_target.carried} == {"away", "imported"}
    assert [each.kind for each in finished_target.left] == ["dropped"]
    assert ids(copy, "n.away") == [1, 2] and ids(copy, "n.imported") == [8]
    away.append(rows(5))
    copy.drop_table("n.away")
    duration = dt.timedelta(0)
    copy.vacuum(dropped_older_than=duration, older_than=duration, dry_run=False, trust_clock=True)
    assert ids(catalog, "n.away") == [1, 2, 5] and ids(catalog, "n.imported") == [8]
    assert all(not row.startswith("/") for row in copy.load_table("n.imported").plan()["path"].to_pylist())
    check_whole(copy)


def test_a_run_that_is_overtaken_leaves_the_finished_copy_as_it_is(
    filled: Catalog, elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.copy(elsewhere, "b", finish=False)
    store = MemoryStore.named(elsewhere)
    way = {key: store.get(key) for key in keys(elsewhere)}
    Catalog(elsewhere).finish_copy()
    # Another run has looked before that, and reads what the finished one is about to remove.
    store._objects |= {key: data for key, data in way.items() if data is not None}
    monkeypatch.setattr(CopyPlace, "check_of", lambda *given: None)
    filled.load_table("b").compact()
    filled.expire("b", retain_last=1, dry_run=False)
    with pytest.raises(InvalidInput, match="another run has finished it meanwhile"):
        filled.copy(elsewhere, "b")
    assert ids(Catalog(elsewhere), "b") == [7, 8]
    assert "_lakelog_restoring.json" not in keys(elsewhere)


def writes(request: str, place: object) -> bool:
    return request in ("put", "put_if_absent", "delete")


def lists_all(request: str, place: object) -> bool:
    return request in ("list_after", "list_sizes") and place == ""


class Interrupted:
    """A store before one of whose requests, of a kind, something else happens."""

    def __init__(
        self,
        inner: MemoryStore,
        left: int,
        meanwhile: Callable[[], None],
        counts: Callable[[str, object], bool] = writes,
    ) -> None:
        self.inner, self.left, self.meanwhile, self.counts = inner, left, meanwhile, counts

    def __getattr__(self, name: str) -> object:
        found = getattr(self.inner, name)
        if not callable(found):
            return found

        def request(*given: object) -> object:
            if self.counts(name, given[0] if given else None):
                self.left -= 1
                if self.left == -1:
                    self.meanwhile()
            return found(*given)

        return request


@pytest.mark.parametrize("finishes", [True, False])
def test_of_two_copies_at_once_the_one_that_began_last_goes_on_and_the_other_says_so(finishes: bool) -> None:
    """Before each write of one, the other one comes and ends, and what it has finished is written to."""
    at = stopped_number = 0
    while True:
        warehouse, target = small(), new()
        store = MemoryStore.named(target)

        def client(url: str = warehouse) -> Catalog:
            return Catalog(url, log_options=LogOptions(in_background=lambda name, work: None))

        def other(warehouse: str = warehouse, target: str = target) -> None:
            client(warehouse).load_table("n.a").append(rows(9))
            if client(warehouse).copy(target, finish=finishes).finished:
                client(target).load_table("n.a").append(rows(100))
                client(target).expire("n.a", retain_last=1, dry_run=False)

        first = client()
        interrupted = Interrupted(store, at, other)
        engine.places(first).stores[target] = interrupted  # type: ignore[assignment]
        try:
            first.copy(target)
        except InvalidInput as error:
            assert "another run has" in str(error), f"write {at}"
            stopped_number += 1
        if interrupted.left >= 0:
            assert stopped_number > 2
            return
        if not finishes and (mark_at(store) or store.get("_log/00000000000000000001.json") is None):
            client().copy(target)
        assert not client().cuts(), f"write {at}"
        check_whole(Catalog(target))
        found_ids = ids(Catalog(target), "n.a")
        assert set(found_ids) in ({2}, {2, 9}, {2, 100}, {2, 9, 100}), f"write {at}"
        assert not finishes or 100 in found_ids, f"write {at}"
        assert not [key for key in keys(target) if key.startswith("_lakelog")], f"write {at}"
        at += 9  # each of the 57 passes


def test_a_run_that_looks_just_before_another_one_finishes_removes_nothing_that_clients_have_written() -> (
    None
):
    """Before each listing of a run that finishes a copy, another one finishes it, and it is written to."""
    at = 0
    while True:
        target = new()
        Catalog(small()).copy(target, finish=False)
        store = MemoryStore.named(target)

        def other(target: str = target) -> None:
            with suppress(InvalidInput):
                Catalog(target).finish_copy()
            Catalog(target).load_table("n.a").append(rows(100))
            Catalog(target).expire("n.a", retain_last=1, dry_run=False)

        first = Catalog(target, log_options=LogOptions(in_background=lambda name, work: None))
        interrupted = Interrupted(store, at, other, lists_all)
        engine.places(first).stores[target] = interrupted  # type: ignore[assignment]
        try:
            first.finish_copy()
        except LakelogError as error:
            assert not isinstance(error, FormatError), f"listing {at}"
        if interrupted.left >= 0:
            assert at > 1
            return
        check_whole(Catalog(target))
        assert ids(Catalog(target), "n.a") == [2, 100], f"listing {at}"
        at += 1


def test_a_run_that_is_overtaken_leaves_no_cut_in_the_source() -> None:
    """Before each of its listings another one comes to the end of the run that both have found."""
    at = stopped_number = 0
    while True:
        warehouse, target = small(), new()

        def other(warehouse: str = warehouse, target: str = target) -> None:
            Catalog(warehouse).copy(target, finish=False)

        first = Catalog(warehouse)
        interrupted = Interrupted(MemoryStore.named(target), at, other, lists_all)
        engine.places(first).stores[target] = interrupted  # type: ignore[assignment]
        try:
            first.copy(target, finish=False)
        except InvalidInput as error:
            assert "another run has begun" in str(error)
            stopped_number += 1
        assert not Catalog(warehouse).cuts(), f"listing {at}"
        if interrupted.left >= 0:
            assert stopped_number
            return
        at += 1


def test_of_two_restores_at_once_none_takes_what_clients_wrote_for_a_clone_of_the_backup() -> None:
    """Before each write of one, the other one comes and ends, and what was a clone is written to."""
    warehouse, place = small(), new()
    Catalog(warehouse).backup(place)
    at, tried_number = 19, 0
    while True:
        target = new()

        def other(target: str = target) -> None:
            quick(target).restore_warehouse(place)
            quick(target).load_table("c").append(rows(7))

        first = Catalog(target, log_options=LogOptions(in_background=lambda name, work: None))
        interrupted = Interrupted(MemoryStore.named(target), at, other)
        engine.places(first).stores[target] = interrupted  # type: ignore[assignment]
        with suppress(InvalidInput):
            first.restore_warehouse(place)
        if interrupted.left >= 0:
            assert tried_number > 2
            return
        assert ids(Catalog(target), "c") == [2, 7], f"write {at}"
        assert Catalog(target).list_tables(()) == [("c",)], f"write {at}"
        tried_number += 1
        at += 2 if at < 25 else 9


@pytest.mark.parametrize("without_source", [False, True])
def test_a_copy_is_as_of_its_last_run_though_its_cut_is_of_another_namespace(
    catalog: Catalog, elsewhere: str, without_source: bool
) -> None:
    for name in ("m", "n"):
        catalog.create_namespace(name)
    table = catalog.create_table("n.a", SCHEMA).append(rows(1))
    for number in range(2, 45):
        table = table.append(rows(number))
    catalog.clone("n.a", "n.c").delete("id = 1")
    catalog.create_table("m.b", SCHEMA)
    catalog.copy(elsewhere, "n", finish=False)
    catalog.rename_table("n.c", "m.c")
    catalog.rename_table(
        "m.b", "n.b"
    )  # It is outside of the namespace's folder, so the next cut is the root's.
    table.append(rows(50))
    with catalog.transaction() as transaction:
        transaction.load_table("n.a").append(rows(51))
        transaction.create_table("of the root", SCHEMA)
    if without_source:
        catalog.copy(elsewhere, "n", finish=False)
        Catalog(elsewhere).finish_copy()
    else:
        catalog.copy(elsewhere, "n")
    copy = Catalog(elsewhere)
    assert copy.list_tables("n") == [("n", "a"), ("n", "b")]
    assert ids(copy, "n.a") == [*range(1, 45), 50, 51]
    check_whole(copy)
    for number in range(8):
        copy.create_table(f"t{number}", SCHEMA)
    check_whole(copy)


def test_bad_targets(filled: Catalog, elsewhere: str, warehouse: str, client: Callable[[], Catalog]) -> None:
    with pytest.raises(InvalidInput, match="inside"):
        filled.copy(f"{warehouse}/copy")
    with pytest.raises(NoSuchTable):
        filled.copy(elsewhere, "nothing")
    filled.copy(elsewhere, "n.a", finish=False)
    with pytest.raises(InvalidInput, match="unfinished copy of the table `n`.`a`, not of the warehouse"):
        filled.copy(elsewhere)
    other_text = new()
    MemoryStore.named(other_text).put("mine.txt", b"")
    with pytest.raises(InvalidInput, match=r"not empty, it holds 'mine.txt'"):
        filled.copy(other_text)


@pytest.mark.parametrize("name", [None, "n"])
def test_a_copy_that_dies_at_any_write_goes_on(name: str | None) -> None:
    writes = 0
    while True:
        warehouse, target = small(), new()
        try:
            dying(warehouse, target, writes, writes % 2 == 0).copy(target, name)
            has_died = False
        except Death:
            has_died = True
        if not has_died:
            assert writes > 20
            return
        catalog = quick(warehouse)
        is_finished = engine.places(catalog).store(target).get("_log/00000000000000000001.json") is not None
        is_begun = engine.places(catalog).store(target).get("_lakelog_restoring.json") is not None
        if is_begun or not is_finished:
            catalog.copy(target, name)
        copy = Catalog(target)
        assert ids(copy, "n.a") == [2], f"death at write {writes}"
        if name is None:
            assert ids(copy, "c") == [2]
        assert not catalog.cuts()
        check_whole(copy)
        writes += 3


@pytest.mark.parametrize("seed", range(4))
def test_a_random_warehouse_is_copied_with_the_rows_of_every_version(seed: int) -> None:
    source, target = lived(100 + seed), new()
    source.copy(target, finish=False)
    finished_target = source.copy(target)
    copy = Catalog(target)
    check_whole(copy)
    for at in finished_target.backup.tables:
        name = ".".join(at.name)
        assert ids(copy, name) == ids(source, name)
        for version in range(1, source.load_table(name).version + 1):
            if at.name in finished_target.backup.clones:
                continue
            try:
                expected = ids(source, name, version=version)
            except LakelogError as error:
                with pytest.raises(type(error)):
                    ids(copy, name, version=version)
                continue
            assert ids(copy, name, version=version) == expected
