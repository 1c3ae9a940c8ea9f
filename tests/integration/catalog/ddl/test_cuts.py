"""The catalog as it stood: by time, and by saved cuts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.catalog.conftest import SCHEMA, rows

from lakelog.catalog import Catalog, CommitConflict, NoSuchTable
from lakelog.catalog.core.ddl import NeededVersions, kept_for_cuts, saved_cuts
from lakelog.catalog.core.logs.consistent_cut import ConsistentCut
from lakelog.log import (
    AlreadyExists,
    FormatError,
    InvalidInput,
    LogOptions,
    NotFound,
    Unsupported,
    open_store,
)

Client = Callable[[], Catalog]


def as_of(warehouse: str, when: object) -> Catalog:
    return Catalog(warehouse, as_of=when)  # type: ignore[arg-type]


def test_a_catalog_as_of_a_time_shows_what_was_there_also_what_was_dropped(
    catalog: Catalog, warehouse: str
) -> None:
    catalog.create_namespace("a", {"k": "1"})
    catalog.create_table("a.t", SCHEMA).append(rows(1))
    past_time = catalog.create_table("a.u", SCHEMA).append(rows(5)).committed_at
    catalog.load_table("a.t").append(rows(2))
    catalog.alter_namespace("a", set={"k": "2"})
    catalog.rename_table("a.t", "a.renamed")
    catalog.create_namespace("later")
    catalog.drop_namespace("a", cascade=True)
    old = as_of(warehouse, past_time)
    assert old.list_namespaces() == [("a",)]
    assert old.list_tables("a") == [("a", "t"), ("a", "u")]
    assert old.load_namespace("a") == {"k": "1"}
    assert old.load_table("a.t").to_arrow() == rows(1)
    assert old.load_table("a.u").to_arrow() == rows(5)
    assert not old.table_exists("a.renamed")
    catalog_before = as_of(warehouse, dt.datetime(2001, 2, 3))
    with pytest.raises((NotFound, InvalidInput)):
        catalog_before.load_table("a.t")


def test_a_catalog_as_of_then_is_read_only(catalog: Catalog, warehouse: str) -> None:
    table = catalog.create_table("t", SCHEMA).append(rows(1))
    old = as_of(warehouse, table.committed_at)
    for change in (
        lambda: old.create_namespace("n"),
        lambda: old.create_table("u", SCHEMA),
        lambda: old.drop_table("t"),
        lambda: old.rename_table("t", "u"),
        lambda: old.load_table("t").append(rows(2)),
        lambda: old.load_table("t").alter([{"change": "set-property", "key": "a", "value": "b"}]),
        lambda: old.save_cut("x"),
    ):
        with pytest.raises(Unsupported, match="read-only"):
            change()
    assert catalog.load_table("t").row_count == 1


def test_a_cut_by_time_never_tears_a_transaction(catalog: Catalog, warehouse: str) -> None:
    for name in ("a", "b"):
        catalog.create_table(name, SCHEMA)
    times = []
    for number in range(5):
        with catalog.transaction() as tx:
            tx.load_table("a").append(rows(number))
            tx.load_table("b").append(rows(number))
        times.append(catalog.load_table("a").table_head.time_us)
        catalog.load_table("b").alter([{"change": "set-property", "key": "n", "value": str(number)}])
    for count, time_us in enumerate(times):
        for moment, expected in ((time_us - 1, count), (time_us, count + 1)):
            old = as_of(warehouse, moment)
            assert [old.load_table(name).row_count for name in ("a", "b")] == [expected, expected]


@pytest.mark.parametrize("bad", ["2999-01-01", "yesterday evening", 2**61])
def test_a_time_that_is_none_or_in_the_future_is_refused(
    warehouse: str, bad: object, catalog: Catalog
) -> None:
    with pytest.raises((InvalidInput, NotFound)):
        as_of(warehouse, bad).list_tables()


def test_a_saved_cut_is_the_catalog_as_it_was_when_it_was_saved(
    catalog: Catalog, client: Client, warehouse: str
) -> None:
    catalog.create_namespace("a")
    catalog.create_table("a.t", SCHEMA).append(rows(1))
    saved_cut = catalog.save_cut("friday")
    assert saved_cut.logs == 3
    catalog.load_table("a.t").append(rows(2))
    catalog.create_table("a.u", SCHEMA)
    catalog.drop_table("a.t")
    friday = as_of(warehouse, "friday")
    assert friday.list_tables("a") == [("a", "t")]
    assert friday.load_table("a.t").to_arrow() == rows(1)
    with pytest.raises(NoSuchTable):
        friday.load_table("a.u")
    assert list(client().cuts()) == ["friday"]
    with pytest.raises(AlreadyExists):
        client().save_cut("friday")
    client().drop_cut("friday")
    with pytest.raises(NotFound, match="no saved cut"):
        as_of(warehouse, "friday")
    with pytest.raises(NotFound):
        client().drop_cut("friday")
    with pytest.raises(InvalidInput, match="time"):
        client().save_cut("2026-11-20")


def test_a_damaged_cut_is_named(catalog: Catalog, warehouse: str) -> None:
    catalog.create_namespace("a")
    cut = catalog.save_cut("friday")
    store = open_store(warehouse)
    data = store.get(f"_cut/{cut.object}")
    assert data is not None
    store.put(f"_cut/{cut.object}", data.replace(b"1", b"2"))
    with pytest.raises(FormatError, match="_cut/.*altered"):
        as_of(warehouse, "friday")


def test_a_commit_is_later_than_all_that_its_process_has_read(warehouse: str) -> None:
    """Clocks differ: what was caused must not come before its cause."""
    minute_us = 60_000_000
    now = LogOptions().clock_us
    fast = Catalog(warehouse, log_options=LogOptions(clock_us=lambda: now() + minute_us // 2))
    slow = Catalog(warehouse, log_options=LogOptions(clock_us=lambda: now() - minute_us // 2))
    fast.create_table("cause", SCHEMA)
    slow.create_table("effect", SCHEMA)
    cause = fast.load_table("cause").append(rows(1))
    slow.load_table("cause")
    effect = slow.load_table("effect").append(rows(1))
    assert effect.committed_at > cause.committed_at


def test_a_cut_that_no_moment_has_is_a_conflict(catalog: Catalog, warehouse: str) -> None:
    """A writer with a slow clock changes what was read, at a time before something that was read too."""
    now = LogOptions().clock_us
    slow = Catalog(warehouse, log_options=LogOptions(clock_us=lambda: now() - 30_000_000))
    slow.create_table("a", SCHEMA)
    slow_a = slow.load_table("a")
    catalog.create_table("b", SCHEMA)
    catalog.create_table("c", SCHEMA)
    logs = catalog._logs
    cut = ConsistentCut(logs)
    catalog.load_table("a"), catalog.load_table("b"), catalog.load_table("c")
    a, b, c = (catalog.load_table(name).table_head.tracked for name in "abc")
    assert cut.view_of(a).version == 1
    assert cut.view_of(b).version == 1
    slow_a.append(rows(1))
    with pytest.raises(CommitConflict, match="one moment"):
        cut.begin_batch()
        cut.view_of(c)


def test_a_cut_of_a_log_that_gave_way_to_another_one_while_it_was_saved_is_taken_back(
    catalog: Catalog, client: Client, warehouse: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new log at that place knows nothing of what expired in the old one."""
    place, other_catalog = str(tmp_path / "place"), client()
    catalog.create_table("t", SCHEMA, location=place).append(rows(1))
    collect = saved_cuts.collect

    def slow(*given: Any) -> dict[str, int]:
        versions = collect(*given)
        other_catalog.load_table("t").append(rows(2))
        other_catalog.expire("t", retain_last=1, dry_run=False)
        other_catalog.drop_table("t")
        other_catalog.create_table("t", SCHEMA, location=place)
        return versions

    with monkeypatch.context() as patch, pytest.raises(CommitConflict, match="expired while the cut"):
        patch.setattr(saved_cuts, "collect", slow)
        catalog.save_cut("late")
    assert catalog.cuts() == {}
    catalog.save_cut("late")
    assert as_of(warehouse, "late").load_table("t").row_count == 0


def test_a_cut_whose_save_is_retried_is_checked_as_it_was_saved_at_first(
    catalog: Catalog, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("t", SCHEMA).append(rows(1))
    token = catalog.token()
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(saved_cuts, "_check_kept", lambda *arguments: 1 // 0)  # the process dies
        catalog.save_cut("friday", token=token)
    # As if it had looked before the cut was there.
    monkeypatch.setattr(
        "lakelog.catalog.keeping.maintenance.expire.NeededVersions", lambda tree, settled=False: {}
    )
    table.append(rows(2))
    client().expire("t", retain_last=1, dry_run=False)
    with pytest.raises(CommitConflict, match="expired while the cut"):
        catalog.save_cut("friday", token=token)
    assert NeededVersions(catalog._tree).get("") is None


def test_a_cut_that_was_dropped_before_its_save_was_retried_is_not_there(
    catalog: Catalog, client: Client
) -> None:
    catalog.create_namespace("a")
    token = catalog.token()
    catalog.save_cut("friday", token=token)
    assert catalog.save_cut("friday", token=token).object
    client().drop_cut("friday")
    with pytest.raises(NotFound, match="dropped since"):
        catalog.save_cut("friday", token=token)


def test_the_object_of_a_dropped_cut_goes_and_no_reader_meanwhile_takes_that_for_damage(
    catalog: Catalog, client: Client, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_catalog = client()
    for name in ("friday", "saturday"):
        catalog.create_table(name, SCHEMA)
        catalog.save_cut(name)
    read = saved_cuts.versions_of

    def after_a_drop(tracked: Any, name: str, cut: Any) -> Any:
        if "friday" in other_catalog.cuts():
            other_catalog.drop_cut("friday")
        return read(tracked, name, cut)

    monkeypatch.setattr(kept_for_cuts, "versions_of", after_a_drop)
    assert NeededVersions(catalog._tree).get("") == 4, "of the second cut: the first one has version 2"
    monkeypatch.undo()
    kept_cut = catalog.cuts()["saturday"]
    assert list(open_store(warehouse).list_after("_cut/")) == [f"_cut/{kept_cut.object}"]
    assert not catalog.fsck().found


@pytest.mark.parametrize("is_retried", [False, True])
def test_a_version_that_expires_between_the_check_and_the_decision_of_a_cut_prevents_it(
    catalog: Catalog, warehouse: str, monkeypatch: pytest.MonkeyPatch, is_retried: bool
) -> None:
    """Expiry does not go on while it is undecided whether a cut is saved that needs what has expired."""
    cleaner = Catalog(warehouse, log_options=LogOptions(patience_s=0, patience_each_s=0))
    table = catalog.create_table("t", SCHEMA).append(rows(1))
    check = saved_cuts._check_kept
    expired: list[Any] = []

    def then_expires(*given: Any) -> None:
        check(*given)
        if not expired:
            cleaner.load_table("t").append(rows(2))
            expired.extend(cleaner.expire("t", retain_last=1, dry_run=False))

    monkeypatch.setattr(saved_cuts, "_check_kept", then_expires)
    token = catalog.token()
    with pytest.raises(CommitConflict, match="expired while the cut"):
        catalog.save_cut("friday", token=token)
    assert [each.versions for each in expired] == [2] and catalog.cuts() == {}
    assert not list(open_store(warehouse).list_after("_cut/"))
    again = catalog.save_cut("friday", token=token if is_retried else None)
    assert as_of(warehouse, "friday").load_table("t").to_arrow().num_rows == 2
    assert again.logs == 2 and table.version == 2


def test_a_cut_whose_client_died_undecided_is_not_saved_and_holds_up_nothing(
    catalog: Catalog, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create_table("t", SCHEMA).append(rows(1))

    class Death(BaseException):
        """No code catches it by accident."""

    def die(*given: Any) -> None:
        raise Death

    monkeypatch.setattr(saved_cuts, "_check_kept", die)
    with pytest.raises(Death):
        catalog.save_cut("friday")
    monkeypatch.undo()
    other_catalog = Catalog(warehouse, log_options=LogOptions(patience_s=0, patience_each_s=0))
    assert other_catalog.cuts() == {}
    other_catalog.create_table("u", SCHEMA)
    other_catalog.save_cut("friday")
    assert sorted(as_of(warehouse, "friday").list_tables()) == [("t",), ("u",)]
