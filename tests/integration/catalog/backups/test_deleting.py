"""Backups are deleted with what only they have, and no backup that stays, or is made meanwhile, loses an object."""

from __future__ import annotations

import contextlib
import random
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.integration.catalog.backups.test_backup_kills import Dying, dying, new, small
from tests.integration.catalog.backups.test_backups import ids
from tests.integration.catalog.conftest import SCHEMA, rows
from tests.integration.catalog.test_crashes import Death

from lakelog.catalog import Catalog, engine
from lakelog.catalog.keeping.backups import deleting
from lakelog.catalog.keeping.backups.place import BackupPlace
from lakelog.log.errors import FormatError, InvalidInput, NotFound
from lakelog.log.stores import MemoryStore


def check_all_whole(catalog: Catalog, place: str) -> None:
    for backup in catalog.backups(place):
        assert not catalog.verify_backup(place, backup.id).problems, backup.id


def objects(place: str) -> set[str]:
    return set(MemoryStore.named(place).list_after("objects/"))


@pytest.fixture
def three(place: str) -> tuple[Catalog, list[str]]:
    """Backups of a table's versions, of which each has a file that the others have not."""
    catalog, made = Catalog(new()), []
    table = catalog.create_table("t", SCHEMA)
    for at in range(3):
        table = table.overwrite(rows(at))
        catalog.expire("t", retain_last=1, dry_run=False, trust_clock=True)
        made.append(catalog.backup(place).backup.id)
    return catalog, made


def test_what_only_they_had_goes_and_others_stay_whole(three: Any, place: str) -> None:
    catalog, (first, second, third) = three
    objects_before = objects(place)
    planned_backups = catalog.delete_backups(place, [first])
    assert (
        planned_backups.backups == (first,)
        and planned_backups.objects >= 2
        and objects(place) == objects_before
    )
    backups = catalog.delete_backups(place, [first], dry_run=False)
    assert (
        backups == planned_backups
        and backups.kept == 2
        and len(objects(place)) == len(objects_before) - backups.objects
    )
    assert [backup.id for backup in catalog.backups(place)] == [second, third]
    check_all_whole(catalog, place)
    with pytest.raises(NotFound, match="there is no backup"):
        catalog.verify_backup(place, first)
    # Again, it is nothing; and what is unknown is an error.
    assert catalog.delete_backups(place, [first], dry_run=False).objects == 0
    with pytest.raises(NotFound, match="there is no backup x"):
        catalog.delete_backups(place, ["x"], dry_run=False)
    for wrong in (0, True, "2"):
        with pytest.raises(InvalidInput, match="keep_last"):
            catalog.delete_backups(place, keep_last=wrong)
    for wrong_ids in ("x", None, 7):
        with pytest.raises(InvalidInput, match="give a list of ids"):
            catalog.delete_backups(place, wrong_ids)


def test_the_newest_of_each_thing_that_is_backed_up_stay(three: Any, place: str) -> None:
    catalog, made = three
    of_table = catalog.backup(place, "t").backup.id
    backups = catalog.delete_backups(place, keep_last=1, dry_run=False)
    assert backups.backups == tuple(made[:2])
    assert {backup.id for backup in catalog.backups(place)} == {made[2], of_table}
    check_all_whole(catalog, place)
    restored_catalog = Catalog(new())
    restored_catalog.restore_warehouse(place, made[2])
    assert ids(restored_catalog, "t") == [2]


def test_so_many_stay_of_those_that_are_not_named(three: Any, place: str) -> None:
    catalog, made = three
    backups = catalog.delete_backups(place, [made[2]], keep_last=1, dry_run=False)
    assert backups.backups == (made[0], made[2]) and [backup.id for backup in catalog.backups(place)] == [
        made[1]
    ]
    check_all_whole(catalog, place)


def test_what_was_deleted_is_backed_up_again_under_a_name_that_no_deletion_knows(place: str) -> None:
    catalog = Catalog(new())
    catalog.create_table("t", SCHEMA).append(rows(1))
    for round in range(3):
        id = catalog.backup(place).backup.id
        check_all_whole(catalog, place)
        [file] = [text for text in objects(place) if ".parquet" in text]
        assert file.endswith("" if round == 0 else f"~{round}")
        assert catalog.delete_backups(place, [id], dry_run=False).kept == 0 and not objects(place)
    catalog.backup(place)
    restored_catalog = Catalog(new())
    restored_catalog.restore_warehouse(place)
    assert ids(restored_catalog, "t") == [1]


def test_backups_that_cannot_be_read_are_named_and_can_be_deleted(three: Any, place: str) -> None:
    catalog, (first, second, third) = three
    store = MemoryStore.named(place)
    store.put(f"backups/{second}.json", b"{}")
    with pytest.raises(FormatError, match=f"{second}.*nothing was deleted"):
        catalog.delete_backups(place, [first], dry_run=False)
    [listed_text] = store.list_after(f"lists/{third}/")
    store.delete([listed_text])
    with pytest.raises(FormatError, match=f"(?s){third}.*Nothing was deleted"):
        catalog.delete_backups(place, [second], dry_run=False)
    assert catalog.delete_backups(place, [second, third], dry_run=False).kept == 1
    check_all_whole(catalog, place)


def test_while_a_backup_has_not_ended_nothing_is_deleted(three: Any, place: str) -> None:
    catalog, made = three
    catalog.load_table("t").append(rows(9))
    with pytest.raises(Death):
        dying(catalog.warehouse, place, 4, True).backup(place)
    for dry_run in (True, False):
        with pytest.raises(InvalidInput, match="has begun and not ended"):
            catalog.delete_backups(place, [made[0]], dry_run=dry_run)
    catalog.backup(place)
    assert catalog.delete_backups(place, [made[0]], dry_run=False).kept == 3
    check_all_whole(catalog, place)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_deletion_that_dies_at_any_write_is_finished_by_the_next(after: bool) -> None:
    writes = 0
    while True:
        warehouse, place = small(), new()
        catalog = Catalog(warehouse)
        first = catalog.backup(place).backup.id
        catalog.load_table("n.a").overwrite(rows(7))
        catalog.expire(retain_last=1, dry_run=False, trust_clock=True)
        catalog.backup(place)
        try:
            dying(warehouse, place, writes, after).delete_backups(place, [first], dry_run=False)
            has_died = False
        except Death:
            has_died = True
        # In between a backup is made, as it would be each night.
        last = catalog.backup(place).backup.id
        assert not catalog.verify_backup(place, last).problems
        catalog.delete_backups(place, [first] if writes % 2 or not has_died else [], dry_run=False)
        catalog.delete_backups(place, [first], dry_run=False)
        assert len(catalog.backups(place)) == 2
        check_all_whole(catalog, place)
        found_place = BackupPlace(MemoryStore.named(place), catalog._logs.log_options)
        needed_texts = {
            object_.stored for backup in found_place.backups() for object_ in found_place.objects_of(backup)
        }
        assert objects(place) == needed_texts, f"death at write {writes}"
        if not has_died:
            assert writes >= 3
            return
        writes += 1


class Interrupted(Dying):
    """A store at one of whose requests something else happens first."""

    def __init__(self, inner: MemoryStore, at: int, what: Callable[[], None]) -> None:
        super().__init__(inner, [1 << 40], False)
        self.requests, self._at, self._what = 0, at, what

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in ("get", "put", "put_if_absent", "delete", "list_after", "list_sizes", "open_input"):
            return found

        def request(*given: Any, **how: Any) -> Any:
            self.requests += 1
            if self.requests == self._at + 1:
                self._what()
            return found(*given, **how)

        return request


def interrupted(warehouse: str, place: str, at: int, what: Callable[[], None]) -> tuple[Catalog, Interrupted]:
    catalog = dying(warehouse, new(), 1 << 40, False)
    store = Interrupted(MemoryStore.named(place), at, what)
    engine.places(catalog).stores[place] = store
    return catalog, store


def quietly(work: Callable[[], object], seen: set[bool]) -> None:
    try:
        work()
        seen.add(True)
    except (InvalidInput, NotFound):
        seen.add(False)


def beside(deletes: bool) -> set[bool]:
    """Have one of a deletion and a backup happen as a whole at each request of the other, and return whether some of
    them have done what they were to do, and not."""
    at, seen_flags = 0, set[bool]()
    while True:
        warehouse, place = small(), new()
        catalog = Catalog(warehouse)
        first = catalog.backup(place).backup.id
        backup = partial(catalog.backup, place)
        delete = partial(catalog.delete_backups, place, [first], dry_run=False)
        meanwhile = partial(quietly, backup if deletes else delete, seen_flags)
        other_catalog, store = interrupted(warehouse, place, at, meanwhile)
        if deletes:
            quietly(partial(other_catalog.delete_backups, place, [first], dry_run=False), seen_flags)
        else:
            quietly(partial(other_catalog.backup, place), seen_flags)
        check_all_whole(catalog, place)
        last = catalog.backup(place).backup.id
        assert not catalog.verify_backup(place, last).problems, at
        if store.requests <= at:
            return seen_flags
        at += 1


def test_a_backup_and_a_deletion_beside_each_other_leave_what_is_whole() -> None:
    assert beside(deletes=True) == {True}
    assert beside(deletes=False) == {True, False}


@pytest.mark.parametrize(("taken", "deletes"), [("run", False), ("doomed", True), ("second look", True)])
def test_each_rule_taken_away_is_caught(monkeypatch: pytest.MonkeyPatch, taken: str, deletes: bool) -> None:
    match taken:
        case "run":
            monkeypatch.setattr(deleting, "_check_no_run", lambda place: None)
        case "doomed":
            monkeypatch.setattr(BackupPlace, "avoid_doomed", lambda place: None)
        case _:
            real, looks = deleting._needed, [0]

            def once(place: Any, there: Any, going: Any) -> set[str]:
                looks[0] += 1
                return real(place, there, going) if looks[0] % 2 else set()

            monkeypatch.setattr(deleting, "_needed", once)
    with pytest.raises(AssertionError):
        beside(deletes)


@pytest.mark.parametrize("seed", range(6))
def test_random_lives_of_a_place(seed: int) -> None:
    """Backups, deletions and deaths of both; all that is said to be whole is."""
    chance, warehouse, place = random.Random(seed), new(), new()
    catalog = Catalog(warehouse)
    table = catalog.create_table("t", SCHEMA)
    for at in range(30):
        match chance.randrange(5):
            case 0:
                table = table.refresh().append(rows(at))
            case 1:
                table = table.refresh().overwrite(rows(at))
                catalog.expire("t", retain_last=2, dry_run=False, trust_clock=True)
            case 2:
                lasts = chance.choice([1 << 40, chance.randrange(30)])
                with contextlib.suppress(Death):
                    dying(warehouse, place, lasts, chance.random() < 0.5).backup(place)
            case _ if chance.random() < 0.4 and engine.places(catalog).store(place).get(
                "_lakelog_backups.json"
            ):
                known_ids = [backup.id for backup in catalog.backups(place)]
                lasts = chance.choice([1 << 40, chance.randrange(8)])
                some_texts = chance.sample(known_ids, min(len(known_ids), chance.randrange(3)))
                with contextlib.suppress(Death, InvalidInput):
                    dying(warehouse, place, lasts, chance.random() < 0.5).delete_backups(
                        place, some_texts, keep_last=chance.choice([None, 2]), dry_run=False
                    )
            case _:
                catalog.backup(place)
                check_all_whole(catalog, place)
    catalog.backup(place)
    check_all_whole(catalog, place)
    restored_catalog = Catalog(f"memory://{uuid.uuid4().hex}")
    restored_catalog.restore_warehouse(place)
    assert ids(restored_catalog, "t") == ids(catalog, "t")
