"""Expiry removes old versions only. Kept versions can be read as before, and the dry run reports what is done."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from tests.integration.catalog.clock import Clock
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, Table
from lakelog.catalog.core.ddl import saved_cuts
from lakelog.catalog.errors import CommitConflict
from lakelog.catalog.keeping.maintenance import expire
from lakelog.log import InvalidInput, NotFound, open_store, wait_for_background
from lakelog.log.replay import LogReplay

DAY = dt.timedelta(days=1)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock().govern(monkeypatch)


@pytest.fixture
def client(warehouse: str, clock: Clock) -> Callable[[], Catalog]:
    return lambda: clock.client(warehouse)


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow().column("id").to_pylist())


def grown(catalog: Catalog, appends: int) -> Table:
    """A table with so many appends, one row each: version n has the rows 1 to n - 1."""
    table = catalog.create_table("t", SCHEMA)
    for number in range(1, appends + 1):
        table = table.append(rows(number))
    return table


def plain(answers: list[Any]) -> list[tuple[str, int, int]]:
    return [(answer.kind, answer.versions, answer.first) for answer in answers]


def test_the_dry_run_is_the_default_and_changes_nothing(catalog: Catalog, warehouse: str) -> None:
    grown(catalog, 5)
    sizes_before = dict(open_store(warehouse).list_sizes(""))
    planned_report = catalog.expire("t", version=4)
    assert plain(planned_report) == [("table", 3, 4)]
    assert dict(open_store(warehouse).list_sizes("")) == sizes_before


def test_a_table_is_not_cleaned_from_another_warehouse_whose_cuts_it_does_not_know(
    catalog: Catalog, clock: Clock, warehouse: str
) -> None:
    """A table at a location of the user's is found by it from everywhere."""
    place = f"{warehouse}-elsewhere/t"
    catalog.create_table("t", SCHEMA, location=place).append(rows(1)).append(rows(2))
    catalog.save_cut("monday")
    other_catalog = clock.client(f"{warehouse}-other")
    other_catalog.create_table("u", SCHEMA)
    for clean in (other_catalog.expire, other_catalog.vacuum):
        with pytest.raises(InvalidInput, match="has its name in another warehouse"):
            clean(location=place, dry_run=False)
    assert [each.kind for each in catalog.expire(location=place, retain_last=1)] == ["table"]


def test_versions_before_the_one_that_was_asked_for_go_and_the_others_stay(catalog: Catalog) -> None:
    table = grown(catalog, 5)
    dry = catalog.expire("t", version=4)
    assert catalog.expire("t", version=4, dry_run=False) == dry
    for version in (1, 2, 3):
        with pytest.raises(NotFound, match="versions from 4 to 7 can be read"):
            table.at(version=version)
    assert [ids(table.refresh().at(version=version)) for version in (4, 5, 6, 7)] == [
        [1, 2, 3],
        [1, 2, 3, 4],
        [1, 2, 3, 4, 5],
        [1, 2, 3, 4, 5],
    ]
    newest = next(table.refresh().history(limit=1))
    assert (newest.operation, newest.details, newest.writer) == ("expire", {"version": 4}, {"engine": "test"})


def test_what_was_current_at_the_limit_or_later_stays(catalog: Catalog, clock: Clock) -> None:
    table = grown(catalog, 2)
    clock.days_later(5)
    table = table.append(rows(3))
    clock.days_later(5)
    # Version 3 was replaced 5 days ago, so 7 days ago it was what readers saw.
    assert plain(catalog.expire("t")) == [("table", 2, 3)]
    assert plain(catalog.expire("t", older_than=4 * DAY)) == [("table", 3, 4)]
    assert plain(catalog.expire("t", older_than=30 * DAY)) == [("table", 0, 1)]
    assert plain(catalog.expire("t", older_than=DAY, dry_run=False)) == [("table", 3, 4)]
    assert ids(table.refresh()) == [1, 2, 3]


def test_without_an_age_a_policy_says_how_long_versions_are_kept(catalog: Catalog, clock: Clock) -> None:
    keep = "lakelog.maintenance.keep-for"
    catalog.create_namespace("n", properties={keep: "30d"})
    for name, properties in {
        "n.year": {keep: "365d"},
        "n.month": {},
        "n.ever": {keep: "never"},
        "t": {},
    }.items():
        catalog.create_table(name, SCHEMA, properties=properties).append(rows(1)).append(rows(2))
    clock.days_later(20)
    assert {each.name for each in catalog.expire() if each.versions} == {"`t`", catalog.warehouse}
    clock.days_later(20)
    removed_names = {each.name for each in catalog.expire() if each.versions}
    assert removed_names == {"`t`", catalog.warehouse, "`n`", "`n`.`month`"}
    assert plain(catalog.expire("n.year", older_than=DAY)) == plain(catalog.expire("n.ever", retain_last=1))
    assert plain(catalog.expire("n.ever", dry_run=False)) == [("table", 0, 1)]
    advice = {health.name: [to.action for to in health.advice] for health in catalog.health("n")}
    assert "expire" in advice["`n`.`month`"] and "expire" not in advice["`n`.`ever`"]
    clock.days_later(400)
    assert plain(catalog.expire("n.year", dry_run=False)) == [("table", 2, 3)]


def test_the_last_versions_are_kept_where_that_is_asked_for(catalog: Catalog) -> None:
    table = grown(catalog, 5)
    assert plain(catalog.expire("t", retain_last=100, dry_run=False)) == [("table", 0, 1)]
    assert plain(catalog.expire("t", retain_last=2, dry_run=False)) == [("table", 4, 5)]
    assert ids(table.refresh()) == [1, 2, 3, 4, 5]
    assert table.refresh().version == 7


def test_nothing_to_expire_writes_nothing(catalog: Catalog, warehouse: str) -> None:
    grown(catalog, 3)
    catalog.expire("t", version=3, dry_run=False)
    sizes_before = dict(open_store(warehouse).list_sizes(""))
    assert plain(catalog.expire("t", version=3, dry_run=False)) == [("table", 0, 3)]
    assert plain(catalog.expire("t", version=1, dry_run=False)) == [("table", 0, 3)]
    assert dict(open_store(warehouse).list_sizes("")) == sizes_before


def test_data_files_that_only_old_versions_had_are_reported_and_stay(
    catalog: Catalog, warehouse: str
) -> None:
    table = grown(catalog, 2)
    table.overwrite(rows(7)).append(rows(8))
    store = open_store(warehouse)
    data = {key: size for key, size in store.list_sizes("") if "/data/" in key}
    removed_rows = [catalog.load_table("t", version=3).plan()["path"].to_pylist()]
    [answer] = catalog.expire("t", retain_last=1, dry_run=False)
    assert answer.files == 2 == len(removed_rows[0])
    assert answer.file_bytes == sum(
        size for key, size in data.items() if key.endswith(tuple(removed_rows[0]))
    )
    assert {key: size for key, size in store.list_sizes("") if "/data/" in key} == data
    assert answer.commits == 5 and answer.size_bytes > 0


def test_files_that_a_later_rollback_brought_back_are_not_lost_with_the_versions(catalog: Catalog) -> None:
    table = grown(catalog, 2).overwrite(rows(7))
    table = table.set_current_version(3).truncate()
    [answer] = catalog.expire("t", version=4)
    assert (answer.versions, answer.files) == (3, 0)
    [answer] = catalog.expire("t", version=6)
    assert (answer.versions, answer.files) == (5, 3)


def test_retained_versions_are_read_only_where_files_were_removed(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = grown(catalog, 40)
    read: list[tuple[int, int]] = []
    real = LogReplay.effects

    def effects(replay: LogReplay[Any], first: int, last: int) -> Any:
        read.append((first, last))
        return real(replay, first, last)

    monkeypatch.setattr(LogReplay, "effects", effects)
    catalog.expire("t", version=30)
    assert read == [(2, 30)]
    table.delete([("id", "<=", 1)]).append(rows(50))
    read.clear()
    assert catalog.expire("t", version=42)[0].files == 1
    assert read == [(2, 42), (43, 43)]


def test_snapshots_from_before_an_expiry_are_used_after_it(
    catalog: Catalog, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown(catalog, 200)
    wait_for_background()
    read: list[int] = []
    real = LogReplay.get_versions

    def get_versions(replay: LogReplay[Any], versions: Any) -> Any:
        read.extend(versions)
        return real(replay, versions)

    # The cleaner dies before it writes a snapshot of its own: the hint is from before the base.
    monkeypatch.setattr("lakelog.catalog.keeping.maintenance.expire.refresh_snapshot", lambda tracked: None)
    catalog.expire("t", version=30, dry_run=False)
    monkeypatch.undo()
    monkeypatch.setattr(LogReplay, "get_versions", get_versions)
    for version, least in ((None, 200), (190, 160)):
        read.clear()
        table = Catalog(warehouse).load_table("t", version=version)
        assert ids(table) == list(range(1, version or 201))
        assert min(number for number in read if number > 30) >= least
    # By now a base has given up manifests that this snapshot uses.
    Catalog(warehouse).expire("t", version=199, dry_run=False)
    assert ids(Catalog(warehouse).load_table("t", version=200)) == list(range(1, 200))


def test_logs_whose_snapshots_need_no_manifests_expire_again_and_again(catalog: Catalog) -> None:
    """Such a snapshot is not asked about bases, as none can have given up what it needs."""
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", SCHEMA)
    while table.version < 50:
        catalog.alter_namespace("a", set={"p": str(table.version)})
        change = {"change": "set-property", "key": "p", "value": str(table.version)}
        table = table.alter([change]) if table.version < 42 else table.append(rows(table.version))
    wait_for_background()
    for retained_count in (40, 5):
        report = catalog.expire(namespace="a", retain_last=retained_count, dry_run=False)
        assert [(each.kind, each.error) for each in report] == [("table", None), ("namespace", None)]
    assert [each.head - each.first for each in report] == [4, 4]
    assert ids(catalog.load_table("a.t", version=47)) == list(range(42, 47))


def test_all_logs_of_a_namespace_or_of_the_catalog_are_expired(catalog: Catalog) -> None:
    catalog.create_namespace("a")
    catalog.create_namespace("a.b")
    catalog.create_table("a.b.t", SCHEMA).append(rows(1)).append(rows(2))
    catalog.create_table("u", SCHEMA).append(rows(1)).append(rows(2))
    names = [answer.name for answer in catalog.expire(namespace="a", retain_last=1)]
    assert names == ["`a`.`b`.`t`", "`a`", "`a`.`b`"]
    answers = catalog.expire(retain_last=1, dry_run=False)
    assert {(answer.name, answer.versions) for answer in answers} == {
        ("`u`", 2),
        ("`a`.`b`.`t`", 2),
        (catalog.warehouse, 2),
        ("`a`", 1),
        ("`a`.`b`", 1),
    }
    fresh = Catalog(catalog.warehouse)
    assert fresh.list_namespaces() == [("a",)] and fresh.list_tables("a.b") == [("a", "b", "t")]
    assert ids(fresh.load_table("a.b.t")) == [1, 2] == ids(fresh.load_table("u"))


@pytest.mark.parametrize(
    ("wish", "error", "message"),
    [
        ({"version": 0}, InvalidInput, "at least 1"),
        ({"version": -3}, InvalidInput, "at least 1"),
        ({"retain_last": 0}, InvalidInput, "at least 1"),
        ({"version": True}, InvalidInput, "whole number"),
        ({"version": 99}, NotFound, "no version 99: the newest is 3"),
        ({"version": 2, "older_than": DAY}, InvalidInput, "older_than and version cannot be combined"),
        ({"retain_last": 2, "version": 2}, InvalidInput, "version and retain_last cannot be combined"),
        ({"older_than": -DAY}, InvalidInput, "0 or more"),
        ({"older_than": 7}, InvalidInput, "timedelta"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    catalog: Catalog, wish: dict[str, Any], error: type[Exception], message: str
) -> None:
    grown(catalog, 2)
    with pytest.raises(error, match=message):
        catalog.expire("t", **wish, dry_run=False)


def test_a_version_is_one_tables(catalog: Catalog) -> None:
    grown(catalog, 2)
    with pytest.raises(InvalidInput, match="a version belongs to a single table"):
        catalog.expire(version=2)
    with pytest.raises(InvalidInput, match="give one of them"):
        catalog.expire("t", namespace="a")


def test_what_a_saved_cut_needs_stays_until_the_cut_is_dropped(catalog: Catalog) -> None:
    table = grown(catalog, 3)
    catalog.save_cut("year end")
    table = table.overwrite(rows(9)).append(rows(10))
    answers = {answer.name: answer for answer in catalog.expire(retain_last=1, dry_run=False)}
    assert (answers["`t`"].first, answers["`t`"].kept_for_cuts) == (4, True)
    assert ids(Catalog(catalog.warehouse, as_of="year end").load_table("t")) == [1, 2, 3]
    assert catalog.expire("t", version=3)[0].versions == 0
    catalog.drop_cut("year end")
    assert not any(answer.kept_for_cuts for answer in catalog.expire(retain_last=1, dry_run=False))
    assert ids(table.refresh()) == [9, 10]
    with pytest.raises(NotFound):
        table.at(version=4)


def test_a_cut_whose_versions_expired_while_it_was_saved_is_taken_back(
    catalog: Catalog, client: Callable[[], Catalog], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = grown(catalog, 3)
    collect, cleaner = saved_cuts.collect, client()

    def slow(*given: Any) -> dict[str, int]:
        versions = collect(*given)
        table.overwrite(rows(9))
        cleaner.expire(retain_last=1, dry_run=False)
        return versions

    with monkeypatch.context() as patch, pytest.raises(CommitConflict, match="version 4 of .* expired while"):
        patch.setattr(saved_cuts, "collect", slow)
        catalog.save_cut("late")
    assert catalog.cuts() == {}
    catalog.save_cut("late")
    assert ids(Catalog(catalog.warehouse, as_of="late").load_table("t")) == [9]


def test_a_cut_that_is_saved_after_an_expiry_was_planned_still_holds_it_back(
    catalog: Catalog, client: Callable[[], Catalog], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, saver = grown(catalog, 3), client()
    answers = iter([{}, {table.table_head.tracked.location: 3}])
    monkeypatch.setattr(
        "lakelog.catalog.keeping.maintenance.expire.NeededVersions", lambda tree, settled=False: next(answers)
    )
    [answer] = catalog.expire("t", version=4, dry_run=False)
    assert (answer.kept_for_cuts, answer.versions) == (True, 0)
    assert [ids(saver.load_table("t", version=version)) for version in (1, 2, 3)] == [[], [1], [1, 2]]
    # What was said is carried out by the next run, once nothing needs those versions any more.
    monkeypatch.undo()
    assert plain(catalog.expire("t", retain_last=100, dry_run=False)) == [("table", 3, 4)]


def test_readers_that_hold_a_kept_version_go_on_and_others_get_an_error(
    client: Callable[[], Catalog],
) -> None:
    catalog, reader = client(), client()
    table = grown(catalog, 25)
    table = table.overwrite(rows(100))
    for number in range(101, 125):
        table = table.append(rows(number))
    # Loaded from a snapshot, whose manifests no client has read yet.
    kept_table, old = client().load_table("t", version=45), client().load_table("t", version=26)
    held_table = reader.load_table("t")
    catalog.expire("t", version=43, dry_run=False)
    assert ids(kept_table) == list(range(100, 119))
    assert ids(held_table) == list(range(100, 125))
    with pytest.raises(NotFound, match="version 26 .* has expired: versions from 43"):
        old.to_arrow()
    assert ids(held_table.append(rows(200))) == [*range(100, 125), 200]
    assert held_table.refresh().truncate().row_count == 0


def test_a_writer_that_began_before_an_expiry_commits_after_it(client: Callable[[], Catalog]) -> None:
    catalog, writer = client(), client()
    grown(catalog, 30)
    stale = writer.load_table("t")
    catalog.load_table("t").append(rows(31))
    catalog.expire("t", retain_last=1, dry_run=False)
    with pytest.raises(Exception, match="expired|conflict"):
        stale.overwrite(rows(0))
    assert ids(stale.refresh().append(rows(32))) == list(range(1, 33))


def test_a_table_whose_versions_expired_since_it_was_read_can_be_dropped(
    client: Callable[[], Catalog],
) -> None:
    catalog, other_catalog = client(), client()
    table = grown(catalog, 3)
    other_catalog.load_table("t")
    table.append(rows(4)).append(rows(5))
    catalog.expire("t", retain_last=1, dry_run=False)
    assert other_catalog.drop_table("t")


def test_one_broken_table_does_not_stop_the_others(catalog: Catalog, warehouse: str) -> None:
    grown(catalog, 3)
    broken_table = catalog.create_table("broken", SCHEMA)
    catalog.create_table("gone", SCHEMA)
    store = open_store(warehouse)
    store.put(f"{broken_table.location.removeprefix(warehouse + '/')}/_log/{2:020d}.json", b"nonsense")
    removed_text = catalog.load_table("gone").location.removeprefix(warehouse + "/")
    store.delete(list(store.list_after(f"{removed_text}/")))
    answers = {answer.name: answer for answer in Catalog(warehouse).expire(retain_last=1, dry_run=False)}
    assert answers["`t`"].versions == 3 and answers["`t`"].error is None
    assert "truncated or altered" in (answers["`broken`"].error or "")
    assert "there is no log" in (answers["`gone`"].error or "")
    with pytest.raises(Exception, match="truncated or altered"):
        Catalog(warehouse).expire("broken", retain_last=1)


def test_the_past_and_transactions_have_no_maintenance(catalog: Catalog) -> None:
    grown(catalog, 2)
    catalog.save_cut("c")
    with pytest.raises(InvalidInput, match="cannot run in a transaction or on a catalog of the past"):
        Catalog(catalog.warehouse, as_of="c").expire("t")
    with (
        pytest.raises(InvalidInput, match="cannot run in a transaction or on a catalog of the past"),
        catalog.transaction() as transaction,
    ):
        transaction.expire("t")


def test_an_expiry_beside_another_one_plans_again_with_its_base(
    catalog: Catalog, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown(catalog, 6)
    planned_unreachable = expire._unreachable
    calls = 0

    def after_another(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            # The real one, of another client, in the middle of this one's plan.
            with monkeypatch.context() as context:
                context.setattr(expire, "_unreachable", planned_unreachable)
                Catalog(warehouse).expire("t", version=5, dry_run=False)
        return planned_unreachable(*arguments)

    monkeypatch.setattr(expire, "_unreachable", after_another)
    assert plain(catalog.expire("t", version=7, dry_run=False)) == [("table", 2, 7)]
    assert calls == 2
    assert ids(catalog.load_table("t")) == [1, 2, 3, 4, 5, 6]
