"""A cold load shows what a replay of all commits shows, whatever the hint is; and hints that are written alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.log.projections import Words, WordsProjection, begin, grown, inline, new_log, say

from lakelog.log import (
    CountingStore,
    Draft,
    FormatError,
    Log,
    LogView,
    MemoryStore,
    StateDump,
    decoding,
    history,
    snapshots,
)
from lakelog.log import replay as reading
from lakelog.log.errors import Unsupported
from lakelog.log.expiry import expire
from lakelog.log.snapshots import write_hint
from lakelog.log.view import NewestView

LENGTH = 150
Hint = tuple[str, int]


@cache
def whole() -> tuple[MemoryStore, tuple[LogView[Words], ...], bytes]:
    """Return a log with a snapshot of each version, its views, and the hint of another log."""
    store, log = MemoryStore(), new_log(every=1)
    log = Log(store, "t", log.projection, options=log.options)
    views = [begin(log)]
    while views[-1].version < LENGTH:
        views.append(log.commit(views[-1], say(f"w{views[-1].version + 1}")).view)
    stranger = new_log(MemoryStore(), every=1)
    stranger.create(Draft(events=({"word": "else"},)), log_id="else")
    return store, tuple(views), stranger.store.get(stranger.keys.latest) or b""


def log_of(versions: int, hint: Hint, expired: int) -> tuple[MemoryStore, Log[Words]]:
    store, views, foreign = whole()
    copy = MemoryStore()
    log = new_log(copy)
    for view in views[:versions]:
        for key in (log.keys.commit(view.version), log.keys.snapshot(view.version, view.hash)):
            copy.put(key, store.get(key) or b"")
    kind, version = hint
    if kind != "missing":
        own = store.get(log.keys.snapshot(version, views[version - 1].hash)) or b""
        copy.put(log.keys.latest, {"own": own, "broken": own[:-9], "foreign": foreign}[kind])
    if expired:
        expire(log, min(expired, versions), head=views[versions - 1])
    return copy, new_log(copy)


def hints() -> st.SearchStrategy[Hint]:
    return st.tuples(st.sampled_from(["own", "own", "missing", "broken", "foreign"]), st.integers(1, LENGTH))


@given(st.integers(1, LENGTH), hints(), st.sampled_from([0, 0, 1, 7, 30, 100]))
def test_any_hint_costs_time_only(versions: int, hint: Hint, expired: int) -> None:
    store, log = log_of(versions, hint, expired)
    seen_views: list[LogView[Words]] = []
    if hint[0] == "own" and hint[1] > versions:
        # What it was made of is lost: only that is worse than slow.
        with pytest.raises(FormatError, match="is missing although"):
            log.load()
        return
    view = log.load(seen_views.append)
    expected = whole()[1][versions - 1]
    assert (view.version, view.hash, view.state) == (versions, expected.hash, expected.state)
    assert view == replace(expected, base=view.base)
    for older in seen_views:
        if hint[0] != "foreign":
            assert older.state == expected.state[: older.version]
    store.delete([log.keys.latest])
    assert log.load().is_same(view)


def test_a_load_shows_what_the_hint_says_while_the_rest_is_read() -> None:
    _, log = log_of(60, ("own", 40), 0)
    seen_views: list[LogView[Words]] = []
    assert log.load(seen_views.append).version == 60
    assert [view.version for view in seen_views] == [40]
    del seen_views[:]
    _, log = log_of(60, ("missing", 1), 0)
    assert log.load(seen_views.append).version == 60
    assert [view.version for view in seen_views] == [8]
    del seen_views[:]
    _, log = log_of(5, ("missing", 1), 0)
    assert log.load(seen_views.append).version == 5 and seen_views == []


def test_a_log_that_grows_while_it_is_loaded_is_read_to_a_head_of_that_time() -> None:
    store, views, _ = whole()

    class Growing(CountingStore):
        """Another client commits after each round."""

        def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
            found = super().get_many(keys)
            for _ in range(9):
                grow()
            return found

    copy, log = log_of(30, ("own", 30), 0)
    at = 30

    def grow() -> None:
        nonlocal at
        if at < LENGTH:
            at += 1
            copy.put(log.keys.commit(at), store.get(log.keys.commit(at)) or b"")

    view = Log(Growing(copy), "t", log.projection, options=log.options).load()
    assert 30 <= view.version <= LENGTH and view.state == views[view.version - 1].state


def test_large_commits_and_sidecars_are_not_all_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "ROUND_BYTES_MAX", 10_000)
    store = CountingStore(MemoryStore())
    log = new_log(store)
    view = begin(log)
    for n in range(300):
        draft = (
            Draft(events=({"blob": 0},), blobs=(b"x" * 3000,)) if n < 9 else Draft(events=({"word": "w"},))
        )
        view = log.commit(view, lambda view, passed, draft=draft: draft).view  # type: ignore[misc]
    largest: list[int] = []
    real = store.get_many

    def get_many(keys: list[str]) -> list[bytes | None]:
        found = real(keys)
        largest.append(sum(len(data) for data in found if data is not None))
        return found

    monkeypatch.setattr(store, "get_many", get_many)
    assert log.load().state == view.state
    assert max(largest) < 64 * 700, (
        "no more than 64 commits of this size, or three of these sidecars, at once"
    )


# Hints that are written alone


def hinting_log(
    store: MemoryStore, every: Callable[[Words], int], waiting: list[Callable[[], None]]
) -> Log[Words]:
    log = new_log(store, every=20)
    options = replace(
        log.options,
        hint_every_versions=every,
        in_background=lambda name, work: waiting.append(work),
    )
    return Log(store, "t", log.projection, options=options)


def hinted_number(log: Log[Words]) -> int:
    root = log.replay.hinted_root()
    return 0 if root is None else root.version


def test_a_hint_that_is_due_is_one_put_and_of_the_newest_commit_by_then() -> None:
    store, waiting = MemoryStore(), list[Callable[[], None]]()
    counting_store = CountingStore(store)
    log = hinting_log(counting_store, lambda state: 1, waiting)  # type: ignore[arg-type]
    grown(log, 5)
    counting_store.reset()
    for work in waiting:
        work()
    assert dict(counting_store.by_kind) == {"put": 1}, (
        "five were due, and the first to run makes the others needless"
    )
    assert hinted_number(log) == 5 and new_log(store).load().state == log.load().state
    assert list(store.list_after(log.keys.snapshots)) == []


def test_a_large_state_has_fewer_hints() -> None:
    store, waiting = MemoryStore(), list[Callable[[], None]]()
    log = hinting_log(store, lambda state: 1 + len(state) // 4, waiting)
    seen = []
    view = begin(log)
    while view.version < 19:
        for work in waiting:
            work()
        del waiting[:]
        seen.append(hinted_number(log))
        view = log.commit(view, say("w")).view
    assert seen == [1, 2, 3, 4, 4, 6, 6, 6, 9, 9, 9, 12, 12, 12, 12, 12, 12, 12]


def test_a_hint_is_not_written_alone_where_it_needs_manifests() -> None:
    class Needing(WordsProjection):
        def dump(self, state: Words, version: int, for_base: bool = False) -> StateDump:
            return replace(super().dump(state, version, for_base), uses=(f"{version:020d}-some",))

    log = new_log()
    log = Log(log.store, "t", Needing(), options=log.options)
    view = begin(log)
    write_hint(log.replay, view)
    assert (
        log.store.get(log.keys.latest)
        == log.store.get(log.keys.snapshot(view.version, view.hash))
        is not None
    )


def test_the_newest_view_that_threads_offered_is_taken_once() -> None:
    _, views, _ = whole()
    newest = NewestView[Words]()
    for version in (3, 5, 4):
        newest.offer(views[version - 1])
    assert newest.take() is views[4] and newest.take() is None


# States that are too large to be read again


class Nested(WordsProjection):
    """Dumps each word as an object, as states do."""

    def dump(self, state: Words, version: int, for_base: bool = False) -> StateDump:
        return StateDump([{"word": word} for word in state], {}, ())


def test_a_state_that_no_reader_would_take_becomes_no_base_no_snapshot_and_no_hint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore()
    plain = new_log(store)
    view = grown(plain, 400)
    log = Log(store, "t", Nested(), options=plain.options)
    monkeypatch.setattr(decoding, "VALUES_MAX", 300)
    derived: list[Callable[[], object]] = [
        lambda: expire(log, 350),
        lambda: log.snapshot(view),
        lambda: write_hint(log.replay, view),
    ]
    for write in derived:
        with pytest.raises(Unsupported, match="nothing was written, as the state is too large"):
            write()
    # A base is never replaced: a broken one would be met by all later expiries.
    assert store.get(log.keys.base(1)) is None and store.get(log.keys.latest) is None
    monkeypatch.undo()
    assert expire(new_log(store), 350) == 350 and new_log(store).load().state == view.state


def test_snapshots_of_a_large_state_are_rare_and_never_more_than_a_round_behind() -> None:
    store = MemoryStore()
    size = 1
    log = hinting_log(store, lambda state: size, [])
    log = Log(store, "t", log.projection, options=replace(log.options, in_background=inline))
    view = begin(log)

    def written_until(version: int) -> list[int]:
        nonlocal view
        while view.version < version:
            view = log.commit(view, say("w")).view
        keys = list(store.list_after(log.keys.snapshots))
        store.delete(keys)
        return [log.keys.snapshot_version(key) or 0 for key in keys]

    assert written_until(60) == [20, 40, 60]
    size = 250
    assert written_until(180) == [120, 180]
    size = 10**9
    assert snapshots.snapshot_every(log.replay, view) == 1020 <= max(reading.PROBES)


def test_a_version_is_read_from_the_snapshot_before_a_rare_one_that_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, plain = MemoryStore(), new_log(every=2)
    options = replace(plain.options, hint_every_versions=lambda state: 10**9)
    log = Log(store, "t", plain.projection, options=options)
    words = grown(log, 300).state
    keys = list(store.list_after(log.keys.snapshots))
    assert [log.keys.snapshot_version(key) for key in keys] == [102, 204]
    store.delete([keys[1], log.keys.latest])
    monkeypatch.setattr(history, "SNAPSHOT_WINDOW", 60)
    read: list[int] = []
    real = log.replay.get_versions
    log.replay.get_versions = lambda versions: (read.extend(versions), real(versions))[1]  # type: ignore[method-assign]
    assert log.view_at(300).state == words
    assert min(read) > 100
