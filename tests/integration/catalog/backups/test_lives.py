"""Warehouses of random lives, restored and copied twice over: each is whole at once, and has what was not said to be
left out."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.catalog.backups.lives import NOW, Life, Seen, all_tables, seen
from tests.integration.catalog.backups.test_backup_kills import new
from tests.integration.catalog.conftest import rows

from lakelog.catalog import Catalog, LeftOut
from lakelog.catalog.choices import LEAVE
from lakelog.catalog.keeping.backups import Backup
from lakelog.catalog.keeping.maintenance import Severity


def check_whole(url: str, why: str) -> None:
    report = Catalog(url).fsck(deep=True, all_versions=True)
    assert not report.of(Severity.DAMAGE), f"{why}: {report.of(Severity.DAMAGE)}"


def check_same(before: Seen, after: Seen, backup: Backup, left: tuple[LeftOut, ...], why: str) -> None:
    """Compare a warehouse with what was made of it: all that differs has to be said."""
    removed_names = {each.name for each in left if each.kind == "table"}
    assert after.names == {name: ids for name, ids in before.names.items() if name not in removed_names}, why
    histories = {
        key: ids
        for key, ids in before.versions.items()
        if key[0] not in removed_names and key[0] not in backup.clones
    }
    assert histories.items() <= after.versions.items(), why
    assert after.refs == {key: ids for key, ids in before.refs.items() if key[0] not in removed_names}, why
    lost_names = {each.name for each in left if each.kind == "dropped"}
    assert before.dropped - lost_names <= after.dropped <= before.dropped, why
    names = {each.name for each in left if each.kind == "cut"}
    outside = {each.place for each in left}
    for (cut, name), ids in before.cuts.items():
        current_cut = after.cuts[cut, name]
        assert current_cut == ids or cut in names or name in removed_names | lost_names, (
            f"{why}: {cut} shows {name} with {current_cut}, not {ids}; {outside}"
        )


def came_of(url: str, how: str) -> tuple[str, Backup, tuple[LeftOut, ...]]:
    """Copy, or back up and restore, a warehouse; return where to, of which backup, and what was said to be left out."""
    target = new()
    if how == "copy":
        finished_target = Catalog(url).copy(target, outside=LEAVE)
        return target, finished_target.backup, finished_target.left
    place = new()
    Catalog(url).backup(place, outside=LEAVE)
    assert not Catalog(url).verify_backup(place).problems
    restored_warehouse = Catalog(target).restore_warehouse(place)
    return target, restored_warehouse.backup, restored_warehouse.left


def check_lives(seed: int, folder: Path, *, steps: int, generations: int) -> None:
    chance = random.Random(seed)
    life = Life(chance, folder)
    life.live(steps)
    first = url = life.catalog.warehouse
    check_whole(url, f"seed {seed}, before")
    was_state, all_said, not_there = seen(url), set[tuple[str, ...]](), set[str]()
    for number in range(generations):
        how = chance.choice(["copy", "restore"])
        why = f"seed {seed}, {how} {number}"
        state_before = seen(url)
        target, backup, left = came_of(url, how)
        check_whole(target, why)
        check_same(state_before, seen(target), backup, left, why)
        all_said |= {each.name for each in left if each.kind == "cut"}
        not_there |= {each.place for each in left if each.kind == "dropped"}
        catalog = Catalog(target)
        for name in all_tables(catalog):
            catalog.load_table(name).append(rows(10_000 + number))
        state_after = seen(target)
        if chance.random() < 0.7:
            for done in catalog.vacuum(
                older_than=NOW, dropped_older_than=NOW, dry_run=False, trust_clock=True
            ):
                assert done.error is None, f"{why}: {done.error}"
            assert (
                same_state := seen(target)
            ).names == state_after.names and same_state.cuts == state_after.cuts, why
            check_whole(target, f"{why}, after a vacuum")
        else:
            undrop_all(catalog, number, not_there)
            check_whole(target, f"{why}, after all was undropped")
        url = target
        if chance.random() < 0.5:
            life.catalog = Catalog(url)
            life.live(steps // 3)
            check_whole(url, f"{why}, after more of a life")
    at_last = seen(first)  # with versions that end a transaction, where another client has done that
    assert at_last.names == was_state.names and was_state.versions.items() <= at_last.versions.items(), (
        f"seed {seed}: the source"
    )
    past_without_cuts = without_cuts(seen(url), all_said)
    source = Catalog(first)
    source.expire(retain_last=1, dry_run=False)
    source.vacuum(older_than=NOW, dropped_older_than=NOW, dry_run=False, trust_clock=True)
    assert without_cuts(seen(url), all_said) == past_without_cuts, f"seed {seed}: a vacuum of the source"
    check_whole(first, f"seed {seed}, the source at the end")


def without_cuts(found: Seen, said: set[tuple[str, ...]]) -> Seen:
    """Return what was seen without cuts of which a part may be at the source's places."""
    return replace(found, cuts={key: ids for key, ids in found.cuts.items() if key[0] not in said})


def undrop_all(catalog: Catalog, number: int, not_there: set[str]) -> None:
    """Restore all that was dropped. What was left out of a namespace that was dropped itself stays on that one's list
    until a vacuum."""
    for at, entry in enumerate(catalog.dropped((), recursive=True)):
        if any(entry.id in place for place in not_there):
            continue
        if entry.kind == "namespace":
            catalog.undrop_namespace(entry.name, id=entry.id, to=f"undropped{number}x{at}")
        elif entry.kind == "table":
            catalog.undrop_table(entry.name, id=entry.id, to=f"undropped{number}x{at}")


@pytest.mark.parametrize("seed", range(4))
def test_a_warehouse_restored_or_copied_twice_over_is_whole_at_once(seed: int, tmp_path: Path) -> None:
    check_lives(seed, tmp_path, steps=40, generations=2)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(100, 180, 10))
def test_many_warehouses_restored_or_copied_over_and_over_are_whole_at_once(
    start: int, tmp_path: Path
) -> None:
    for seed in range(start, start + 10):
        check_lives(seed, tmp_path, steps=60, generations=3)
