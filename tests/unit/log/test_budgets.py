"""What operations cost in requests and sequential round trips; exact, and the same on every machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from tests.unit.log.projections import Words, begin, grown, new_log, say
from tests.unit.log.transactions import logs_in, together, with_options

from lakelog.log import ConflictError, CountingStore, Draft, Log, LogOptions, MemoryStore, refresh_many


def counted(versions: int, every: int = 20) -> tuple[CountingStore, Log[Words]]:
    store = CountingStore(MemoryStore())
    log = new_log(store, every=every)
    grown(log, versions)
    store.reset()
    return store, log


def test_bytes_are_counted_of_what_is_there() -> None:
    store = CountingStore(MemoryStore())
    store.put("a", b"one")
    assert store.put_if_absent("b", b"four")
    assert store.get_many(["a", "c"]) == [b"one", None] and store.get("b") == b"four"
    assert (store.bytes_written, store.bytes_read) == (7, 7)


def test_a_warm_append_is_one_put() -> None:
    store, log = counted(3)
    view = log.load()
    store.reset()
    log.commit(view, say("x"))
    assert (dict(store.by_kind), store.rounds) == ({"put_if_absent": 1}, 1)


def test_each_lost_race_is_one_get_and_one_put_more() -> None:
    store, log = counted(3)
    view = log.load()
    log.commit(view, say("winner"))
    store.reset()
    log.commit(view, say("x"))
    assert (dict(store.by_kind), store.rounds) == ({"put_if_absent": 2, "get": 1}, 3)


def test_a_refusal_costs_one_get() -> None:
    store, log = counted(3)
    view = log.load()
    store.reset()

    def refuse(view: object, passed: object) -> Draft:
        raise ConflictError("no")

    with pytest.raises(ConflictError):
        log.commit(view, refuse)
    assert (dict(store.by_kind), store.rounds) == ({"get": 1}, 1)


def test_a_writer_that_is_far_behind_catches_up_in_few_rounds() -> None:
    store, log = counted(100)
    view = log.view_at(2)
    store.reset()
    assert log.commit(view, say("x")).version == 101
    assert store.by_kind["put_if_absent"] == 3 and store.rounds <= 11


def test_a_warm_refresh_is_one_get() -> None:
    store, log = counted(30)
    view = log.load()
    store.reset()
    assert log.refresh(view) is view
    assert (dict(store.by_kind), store.rounds) == ({"get": 1}, 1)


@pytest.mark.parametrize(
    ("behind", "gets", "rounds"),
    [(0, 3, 2), (1, 26, 3), (19, 26, 3), (21, 71, 4), (60, 71, 4), (200, 263, 4), (1000, 1031, 4)],
)
def test_a_cold_load_costs_two_rounds_and_two_more_however_far_the_hint_is_behind(
    behind: int, gets: int, rounds: int
) -> None:
    store, log = counted(5 + behind, every=0)
    log.snapshot(log.view_at(5))
    store.reset()
    assert log.load().version == 5 + behind
    assert (dict(store.by_kind), store.rounds) == ({"get": gets}, rounds)


@pytest.mark.parametrize(
    ("versions", "gets", "rounds"), [(1, 9, 2), (7, 9, 2), (8, 32, 3), (27, 32, 3), (1000, 1037, 4)]
)
def test_a_cold_load_without_a_hint_reads_few_versions_first(versions: int, gets: int, rounds: int) -> None:
    store, log = counted(versions, every=0)
    assert log.load().version == versions
    assert (dict(store.by_kind), store.rounds) == ({"get": gets}, rounds)


def test_a_warm_log_that_is_far_behind_is_refreshed_in_four_rounds() -> None:
    store, log = counted(1000, every=0)
    view = log.view_at(2)
    store.reset()
    assert log.refresh(view).version == 1000
    assert store.rounds == 4 and store.requests <= 1100


def test_any_number_of_logs_is_refreshed_in_one_round() -> None:
    store = CountingStore(MemoryStore())
    logs = [Log(store, f"t{i}", new_log().projection) for i in range(9)]
    views = [log.create(Draft(events=({"word": "a"},)), log_id=str(i)) for i, log in enumerate(logs)]
    store.reset()
    refresh_many(list(zip(logs, views, strict=True)))
    assert (dict(store.by_kind), store.rounds) == ({"get": 9}, 1)


def test_a_version_by_time_is_found_in_logarithmically_many_gets() -> None:
    store, log = counted(2000)
    store.reset()
    log.version_at_time(log.view_at(777).time_us)
    assert store.requests < 120


def test_an_older_version_is_read_without_a_list_however_many_snapshots_there_are() -> None:
    store = CountingStore(MemoryStore())
    log = new_log(store, every=20)
    words = grown(log, 300).state
    for version, versions_read in ((25, 6), (157, 18), (280, 1), (299, 20)):
        store.reset()
        assert new_log(store, every=20).view_at(version).state == words[:version]
        assert dict(store.by_kind) == {"get": versions_read + 1} and store.rounds == 2
    store.delete([key for key in store.list_after(log.keys.snapshots) if "280-" not in key])
    store.reset()
    assert new_log(store, every=20).view_at(299).state == words[:299]
    assert store.by_kind["list"] == 0
    assert new_log(store, every=20).view_at(279).state == words[:279]
    assert store.by_kind["list"] == 1


def test_snapshots_come_after_acknowledging_and_by_one_of_the_writers() -> None:
    store = CountingStore(MemoryStore())
    waiting: list[Callable[[], None]] = []
    log = new_log(store, every=20)
    log = Log(store, "t", log.projection, options=_handing_over(log, waiting))
    view = begin(log)
    for _ in range(19):
        view = log.commit(view, say("x")).view
    assert store.by_kind == {"put_if_absent": 20} and len(waiting) == 1
    waiting[0]()
    assert store.by_kind == {"put_if_absent": 20, "get": 1, "put": 2}


def test_a_large_commit_is_followed_by_a_snapshot_so_that_a_cold_load_stays_at_two_rounds() -> None:
    store = CountingStore(MemoryStore())
    log = new_log(store, every=20)
    log.commit(begin(log), lambda view, passed: Draft(events=({"blob": 0},), blobs=(b"x" * 70_000,)))
    store.reset()
    log.load()
    assert store.rounds == 2


def counted_logs(count: int) -> tuple[CountingStore, list[Log[Words]]]:
    store = CountingStore(MemoryStore())
    logs = logs_in(store, *(f"t{i}" for i in range(count)))
    return store, [with_options(log, in_parallel=store.side_by_side) for log in logs]


@pytest.mark.parametrize("count", [2, 5])
def test_a_transaction_is_one_put_for_each_log_side_by_side_and_one_more(count: int) -> None:
    store, logs = counted_logs(count)
    views = [log.load() for log in logs]
    store.reset()
    changes = together(logs, "first", views=views)
    # Once for each folder and process it is tried whether decisions may be written there.
    assert (dict(store.by_kind), store.rounds) == ({"put_if_absent": count + 2}, 3)
    views = [change.view for change in changes]
    store.reset()
    changes = together(logs, "x", views=views)
    assert (dict(store.by_kind), store.rounds) == ({"put_if_absent": count + 1}, 2)
    store.reset()
    logs[0].commit(changes[0].view, say("next"))
    assert (dict(store.by_kind), store.rounds) == ({"put_if_absent": 1}, 1)


def test_a_transaction_of_one_log_costs_what_a_commit_costs() -> None:
    store, logs = counted_logs(1)
    views = [log.load() for log in logs]
    store.reset()
    together(logs, "x", views=views)
    assert (dict(store.by_kind), store.rounds) == ({"put_if_absent": 1}, 1)


def test_what_a_transaction_left_at_the_head_costs_readers_one_get_more_until_the_next_commit() -> None:
    store, logs = counted_logs(2)
    views = [log.load() for log in logs]
    changes = together(logs, "x", views=views)
    store.reset()
    assert logs[0].refresh(views[0]) == changes[0].view
    assert (dict(store.by_kind), store.rounds) == ({"get": 1 + 4 + 1}, 3)
    view = logs[0].commit(changes[0].view, say("next")).view
    store.reset()
    assert logs[0].refresh(views[0]) == view
    assert (dict(store.by_kind), store.rounds) == ({"get": 1 + 4}, 2)
    store.reset()
    assert logs[0].load() == view
    assert store.rounds == 2


def test_a_writer_who_lost_to_a_decided_transaction_reads_the_decision_once() -> None:
    store, logs = counted_logs(2)
    views = [log.load() for log in logs]
    together(logs, "x", views=views)
    store.reset()
    logs[0].commit(views[0], say("late"))
    assert (dict(store.by_kind), store.rounds) == ({"put_if_absent": 2, "get": 2}, 4)


def _handing_over(log: Log[Words], waiting: list[Callable[[], None]]) -> LogOptions:
    return dataclasses.replace(log.options, in_background=lambda name, work: waiting.append(work))
