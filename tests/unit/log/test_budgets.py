"""What operations cost in requests and sequential round trips; exact, and the same on every machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from tests.unit.log.projections import Words, begin, grown, new_log, say

from lakelog.log import ConflictError, CountingStore, Draft, Log, LogOptions, MemoryStore, refresh_many


def counted(versions: int, every: int = 20) -> tuple[CountingStore, Log[Words]]:
    store = CountingStore(MemoryStore())
    log = new_log(store, every=every)
    grown(log, versions)
    store.reset()
    return store, log


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


@pytest.mark.parametrize("versions", [1, 2, 19, 20, 21, 39, 40, 41, 59])
def test_a_cold_load_is_two_round_trips_and_no_list(versions: int) -> None:
    store, log = counted(versions)
    assert log.load().version == versions
    assert store.rounds == 2 and set(store.by_kind) == {"get"}


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


def _handing_over(log: Log[Words], waiting: list[Callable[[], None]]) -> LogOptions:
    return dataclasses.replace(log.options, in_background=lambda name, work: waiting.append(work))
