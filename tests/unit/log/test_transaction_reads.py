"""What readers of every kind make of intents: undecided, committed, aborted, expired; and of damage to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.unit.log.projections import START_US, Clock, Words, say
from tests.unit.log.test_reading import altered
from tests.unit.log.transactions import (
    Stopping,
    decision_keys,
    entry_at,
    log_in,
    logs_in,
    stopped,
    together,
)

from lakelog.log import (
    Commit,
    Draft,
    FormatError,
    InvalidInput,
    LocalStore,
    Log,
    LogView,
    MemoryStore,
    NotFound,
)
from lakelog.log.expiry import expire
from lakelog.log.format import Tombstone, decode_entry


def test_tombstones_of_intents_have_the_outcome_and_the_time_of_the_transaction() -> None:
    store = Stopping()
    a, b = logs_in(store, "a", "b")
    changes = together([a, b], "x", commit_id="c")
    expire(a, 2)
    tombstone = decode_entry(store.get(a.keys.commit(2)) or b"", "here")
    assert isinstance(tombstone, Tombstone)
    assert (tombstone.outcome, tombstone.time_us) == ("committed", changes[0].view.time_us)
    assert log_in(store, "a").load().state == ("one", "x")
    assert a.commit(changes[0].view, say("next")).view.state == ("one", "x", "next")
    assert a.find("c", 1, 3) == 2


def test_an_undecided_version_cannot_be_read_in_any_way() -> None:
    store = Stopping()
    a, b = logs_in(store, "a", "b", every=2)
    stopped(store, [a, b], "_txn")
    assert a.load().version == 1 and a.version_at_time(START_US * 2) == 1
    assert [c.version for c in a.commits()] == [c.version for c in a.commits(newest_first=True)] == [1]
    assert list(a.commits(2, 2)) == []
    with pytest.raises(NotFound, match="no version 2: the newest is 1"):
        a.view_at(2)
    with pytest.raises(NotFound):
        expire(a, 2)
    assert a.commit(a.load(), say("next")).version == 3
    assert a.view_at(2).state == ("one",) and [c.version for c in a.commits()] == [1, 3]
    assert [c.version for c in a.commits(newest_first=True)] == [3, 1]


def test_times_are_the_transactions_and_versions_are_found_by_them() -> None:
    clock, late = Clock(), Clock()
    store = Stopping(clock)
    a, b = logs_in(store, "a", "b", clock=clock)
    late.now_us += 30_000_000
    for _ in range(5):
        stopped(store, [a, b], "_txn")
        a.refresh_settled(a.load())
    together([log_in(store, "a", clock=late), log_in(store, "b", clock=clock)], "both")
    b.commit(b.load(), say("after"))
    a.commit(a.load(), say("after"))
    time_us = a.view_at(7).time_us
    assert time_us == b.view_at(7).time_us
    for log in (a, b):
        assert [c.time_us for c in log.commits()] == sorted({c.time_us for c in log.commits()})
        assert log.version_at_time(time_us) == 7 and log.view_at(7).state == ("one", "both")
        assert log.view_at(log.version_at_time(time_us - 1)).state == ("one",)
        expire(log, 7)
        assert log.version_at_time(time_us) == 7
        assert log.view_at(log.version_at_time(log.load().time_us)).state == ("one", "both", "after")


@pytest.mark.parametrize("decided", [False, True])
def test_snapshots_hints_and_bases_at_an_intent_know_what_became_of_it(decided: bool) -> None:
    store = Stopping()
    a, b = logs_in(store, "a", "b", every=2)
    if decided:
        together([a, b], "both")
    else:
        stopped(store, [a, b], "_txn")
        a.refresh_settled(a.load())
        a.snapshot(a.load())
    expected = ("one", "both") if decided else ("one",)
    cold = log_in(store, "a")
    assert store.get(a.keys.latest) is not None and cold.load().version == 2
    assert cold.load().settles == a.load().settles and cold.load().settles is not None
    assert cold.commit(cold.load(), say("next")).view.state == (*expected, "next")
    expire(b, b.refresh_settled(b.load()).version)
    store.delete([b.keys.latest, *store.list_after(b.keys.snapshots)])
    cold = log_in(store, "b")
    assert cold.commit(cold.load(), say("next")).view.state == (*expected, "next")


def test_the_turn_of_an_aborted_version_to_have_a_snapshot_goes_to_the_next() -> None:
    store = Stopping()
    a, b = logs_in(store, "a", "b", every=2)
    stopped(store, [a, b], "_txn")
    assert store.get(a.keys.latest) is None
    a.commit(a.load(), say("next"))
    assert store.get(a.keys.latest) is not None


def test_sidecars_of_an_aborted_attempt_are_not_those_of_the_next() -> None:
    store = Stopping()
    a, b = logs_in(store, "a", "b")

    def bulk(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        return Draft(events=({"blob": 0},), blobs=(b"bulk",))

    views = [a.load(), b.load()]
    stopped(store, [a, b], "_txn", decides=[bulk, bulk], commit_id="c")
    together([a, b], "x", views=views, decides=[bulk, bulk], commit_id="c", bases=[1, 1])
    expire(a, 2)
    assert log_in(store, "a").load().state == ("one", "bulk")


def broken(change: Callable[[MemoryStore, Log[Words]], None], match: str) -> None:
    store = Stopping()
    a, b = logs_in(store, "a", "b")
    together([a, b], "both")
    a.commit(a.load(), say("next"))
    change(store, a)
    with pytest.raises(FormatError, match=match):
        a.load()


def test_an_intent_and_the_commit_after_it_that_do_not_fit_are_damage() -> None:
    broken(
        lambda store, log: altered(store, log.keys.commit(3), b'"settles":{', b'"settles":{"x":1,'),
        "does not know",
    )
    broken(
        lambda store, log: altered(store, log.keys.commit(3), b'"committed"', b'"perhaps"'),
        "does not know",
    )
    broken(
        lambda store, log: altered(store, log.keys.commit(3), b'"time_us":17', b'"time_us":16'),
        "before its own|belongs",
    )

    def without(store: MemoryStore, log: Log[Words]) -> None:
        settles = entry_at(log, 3).settles
        assert settles is not None
        text = f'"settles":{{"outcome":"committed","time_us":{settles.time_us}}},'
        altered(store, log.keys.commit(3), text.encode(), b"")

    broken(without, "does not say what became of the intent")


def test_a_settlement_without_an_intent_or_against_the_decision_is_damage() -> None:
    store = Stopping()
    a, b = logs_in(store, "a", "b")
    a.commit(a.load(), say("two"))
    altered(store, a.keys.commit(2), b'"events":', b'"settles":{"outcome":"aborted"},"events":')
    with pytest.raises(FormatError, match="says that an intent aborted before it, but there was no intent"):
        a.load()
    view = together([b, log_in(store, "c")], "x", views=[b.load(), logs_in(store, "c")[0].load()])[0].view
    b.commit(view, say("next"))
    altered(store, b.keys.commit(3), b'"outcome":"committed"', b'"outcome":"aborted"')
    with pytest.raises(FormatError, match="says that an intent aborted"):
        b.refresh(view)


def test_a_decision_of_another_transaction_commit_or_version_is_refused() -> None:
    store = Stopping()
    a, b = logs_in(store, "a", "b")
    together([a, b], "x", commit_id="c1")
    together([a, b], "y", commit_id="c2")
    first, second = decision_keys(store)
    good = store.get(second) or b""
    store.put(second, store.get(first) or b"")
    with pytest.raises(FormatError, match="holds the decision of transaction"):
        a.load()
    store.put(second, good)
    for old, new in ((b'"c2"', b'"c1"'), (b'"a":3,"b":3', b'"a":4,"b":4')):
        altered(store, second, old, new)
        with pytest.raises(FormatError, match="is not the decision of version 3"):
            a.load()
        store.put(second, good)
    altered(store, a.keys.commit(3), b'"folder":""', b'"folder":"../b"')
    with pytest.raises(FormatError, match=r"of the form that it has - at `\$.intent.folder`"):
        a.load()


def test_a_log_that_is_opened_by_itself_finds_the_decision_above_its_store(tmp_path: Path) -> None:
    home = LocalStore(str(tmp_path))
    a, b = logs_in(home, "n/a", "m/b")
    together([a, b], "x")
    alone = Log(LocalStore(f"{tmp_path}/n"), "a", a.projection)
    with pytest.raises(InvalidInput, match=f"decided at {tmp_path}/_txn/"):
        alone.load()
    opened_log = Log(
        alone.store, "a", a.projection, open_url=lambda url: (home, url.removeprefix(f"{tmp_path}/"))
    )
    assert opened_log.load().state == ("one", "x")
