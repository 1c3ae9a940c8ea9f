"""Changes of threads that share a version: the outcome of each, and the view of other clients."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.patience import PATIENCE_S
from tests.unit.log.projections import Words, WordsProjection, begin, new_log, say

from lakelog.log import (
    Commit,
    CommittedChange,
    CommitUnknown,
    ConflictError,
    Draft,
    FormatError,
    InvalidInput,
    LocalStore,
    Log,
    LogOptions,
    LogSealed,
    LogView,
    MemoryStore,
    StorageError,
    WriteFenced,
    WriteRef,
    each_change,
    expiry,
)
from lakelog.log.burial import tombstone_of
from lakelog.log.following import REMEMBERED
from lakelog.log.format import CHANGES_MAX, SharedChange, Tombstone, decode_entry, encode
from lakelog.log.ids import new_id, own_id
from lakelog.log.placing import Decide

Outcome = CommittedChange[Words] | BaseException


class Gated(MemoryStore):
    """A store of which a test can spoil the next put of a commit."""

    def __init__(self) -> None:
        super().__init__()
        self.puts = 0
        self.before_put: Callable[[str], None] = lambda key: None

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self.puts += 1
        self.before_put(key)
        return super().put_if_absent(key, data)


def together(
    log: Log[Words],
    view: LogView[Words],
    decides: Sequence[Decide[Words]],
    *,
    ids: Sequence[str] = (),
    views: Sequence[LogView[Words]] = (),
    meanwhile: Callable[[], None] = lambda: None,
) -> list[Outcome]:
    """Commit a word, and while that is decided have a thread for each of `decides` wait; return what becomes of these.

    They are one group, in their order.
    """
    outcomes: list[Any] = [None] * len(decides)
    leads, all_wait = threading.Event(), threading.Event()

    def first(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        leads.set()
        assert all_wait.wait(PATIENCE_S)
        return Draft(events=({"word": "first"},))

    def change(i: int) -> None:
        try:
            commit_id = ids[i] if ids else own_id(f"own-{i}")
            seen_view = views[i] if views else view
            outcomes[i] = log.commit(seen_view, decides[i], commit_id=commit_id, shared=True)
        except BaseException as error:
            outcomes[i] = error

    def lead() -> None:
        with suppress(LogSealed, StorageError):
            log.commit(view, first, shared=True)

    leader = threading.Thread(target=lead)
    leader.start()
    while not leads.wait(0.001) and leader.is_alive():
        pass  # another one would lead, and not wait
    threads = [threading.Thread(target=change, args=(i,)) for i in range(len(decides))]
    for i, thread in enumerate(threads):
        thread.start()
        while log.sharing.waiting <= i:
            threading.Event().wait(0.001)
    meanwhile()
    all_wait.set()
    for thread in [leader, *threads]:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    return outcomes


def versions(outcomes: Sequence[Outcome]) -> list[int]:
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome.version for outcome in outcomes if isinstance(outcome, CommittedChange)]


def claim(word: str) -> Decide[Words]:
    def decide(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        if word in view.state:
            raise ConflictError(f"{word} was said", version=view.version)
        return Draft(events=({"word": word},))

    return decide


def test_what_waits_shares_a_version_in_its_order_and_each_is_known_by_its_own_id() -> None:
    store = Gated()
    log = new_log(store)
    view = begin(log)
    store.puts = 0
    outcomes = together(log, view, [say(f"w{i}") for i in range(5)])
    assert versions(outcomes) == [3] * 5
    assert store.puts == 2
    head = new_log(store).load()
    assert head.state == ("one", "first", "w0", "w1", "w2", "w3", "w4")
    assert all(isinstance(outcome, CommittedChange) and outcome.view.is_same(head) for outcome in outcomes)
    assert [log.find(f"own-{i}", 1, 3) for i in range(5)] == [3] * 5
    assert log.find("own-9", 1, 3) is None
    [shared_commit] = log.commits(first=3)
    changes = each_change(shared_commit)
    assert [(commit.commit_id, commit.base, commit.events) for commit in changes] == [
        (f"own-{i}", 1, ({"word": f"w{i}"},)) for i in range(5)
    ]
    assert {(commit.version, commit.hash) for commit in changes} == {(3, shared_commit.hash)}
    assert shared_commit.commit_id not in {commit.commit_id for commit in changes}


@pytest.mark.parametrize(("word_size", "snapshots"), [(500, 0), (1_100, 1)])
def test_a_version_of_many_is_large_by_the_size_of_each(word_size: int, snapshots: int) -> None:
    store = Gated()
    options = LogOptions(
        snapshot_every_versions=1_000_000, snapshot_size_bytes=1_000, in_background=lambda name, work: work()
    )
    log = Log(store, "t", WordsProjection(), options=options)
    view = log.create(Draft(events=({"word": "one"},)), log_id="log")
    assert versions(together(log, view, [say(f"{i}" * word_size) for i in range(4)])) == [3] * 4
    assert len(list(store.list_after(log.keys.snapshots))) == snapshots


def test_a_change_that_is_alone_is_a_plain_commit() -> None:
    log = new_log()
    change = log.commit(begin(log), say("two"), commit_id="own", shared=True)
    [commit] = log.commits(first=2)
    assert (change.version, commit.commit_id, commit.changes) == (2, "own", ())


def test_each_is_judged_on_what_those_before_it_leave() -> None:
    log = new_log()
    outcomes = together(log, begin(log), [claim("a"), claim("b"), claim("a"), claim("first")])
    assert versions(outcomes[:2]) == [3, 3]
    assert isinstance(outcomes[2], ConflictError) and isinstance(outcomes[3], ConflictError)
    assert log.load().state == ("one", "first", "a", "b")


def test_those_before_it_in_its_version_are_in_the_state_and_not_among_what_a_change_passes() -> None:
    log, seen_pairs = new_log(), list[tuple[int, list[int]]]()

    def decide(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        seen_pairs.append((len(view.state), [commit.version for commit in passed]))
        return Draft(events=({"word": f"w{len(seen_pairs)}"},))

    together(log, begin(log), [decide, decide, decide])
    assert seen_pairs == [(2, [2]), (3, [2]), (4, [2])]


def test_after_a_lost_race_all_are_decided_again_by_one_read() -> None:
    store = Gated()
    log, other_log = new_log(store), new_log(store)
    view, gets = begin(log), list[str]()
    lost_texts = list[str]()

    def before_put(key: str) -> None:
        if key == log.keys.commit(3) and not lost_texts:
            lost_texts.append(key)
            other_log.commit(other_log.load(), say("a"))
            plain = store.get

            def get(key: str) -> bytes | None:
                gets.append(key)
                return plain(key)

            store.get = get  # type: ignore[method-assign]

    store.before_put = before_put
    outcomes = together(log, view, [say("x"), claim("a"), say("y")])
    assert isinstance(outcomes[1], ConflictError)
    assert versions([outcomes[0], outcomes[2]]) == [4, 4]
    assert gets == [log.keys.commit(3)]
    assert log.load().state == ("one", "first", "a", "x", "y")


def test_one_change_in_two_threads_happens_once() -> None:
    log = new_log()
    outcomes = together(log, begin(log), [say("x"), say("x"), say("y")], ids=["same", "same", "other"])
    assert versions(outcomes) == [3, 3, 3]
    assert log.load().state == ("one", "first", "x", "y")


def test_a_retry_finds_its_change_in_a_version_of_many_and_behind_a_tombstone() -> None:
    log = new_log()
    view = begin(log)
    together(log, view, [say("x"), say("y")])
    assert log.commit(view, say("y"), commit_id="own-1", shared=True).version == 3
    expiry.expire(log, log.commit(log.load(), say("z")).version)
    stored_data = log.store.get(log.keys.commit(3))
    assert stored_data is not None and isinstance(tombstone := decode_entry(stored_data, "3"), Tombstone)
    assert len(tombstone.applied) == 2
    assert log.commit(view, say("y"), commit_id="own-1").version == 3
    with pytest.raises(ConflictError, match="expired"):
        log.commit(view, say("y"), commit_id="another")
    assert log.load().state == ("one", "first", "x", "y", "z")


def test_what_is_left_of_a_version_of_as_many_changes_as_it_may_have_is_small() -> None:
    log = new_log()
    together(log, begin(log), [say("x"), say("y")])
    commit = log.entry_at(3)
    assert isinstance(commit, Commit) and len(commit.changes) == 2
    many = tuple(
        msgspec.structs.replace(commit.changes[0], commit_id=f"{'i' * 100}-{number}", events=0)
        for number in range(CHANGES_MAX)
    )
    stone = tombstone_of(msgspec.structs.replace(commit, changes=many))
    assert len(stone.applied) == CHANGES_MAX and len(encode(stone)) < 20 * 1024


def test_an_error_is_reported_to_its_own_thread_alone() -> None:
    def fails(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        raise ZeroDivisionError

    def not_foldable(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        return Draft(events=({"no": "word"},))

    def not_text(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        return Draft(events=({"word": "\ud800"},))

    def fenced_draft(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        return Draft(events=({"word": "late"},), write=WriteRef(id="w", version=0))

    def seals(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        return Draft(seals=True)

    log = new_log()
    view = log.commit(begin(log), lambda view, passed: Draft(fence=1)).view
    outcomes = together(
        log, view, [fails, say("x"), not_foldable, not_text, fenced_draft, say("y"), seals], ids="abcdefg"
    )
    kinds = [ZeroDivisionError, None, FormatError, InvalidInput, WriteFenced, None]
    assert [type(outcome) if isinstance(outcome, Exception) else None for outcome in outcomes[:-1]] == kinds
    assert versions([outcomes[1], outcomes[5], outcomes[6]]) == [4, 4, 5]
    head = log.load()
    assert head.state == ("one", "first", "x", "y") and head.sealed


def test_of_changes_with_sidecars_one_goes_into_a_version() -> None:
    def blob(word: str) -> Decide[Words]:
        return lambda view, passed: Draft(events=({"blob": 0},), blobs=(word.encode(),))

    log = new_log(store := Gated())
    view, puts = begin(log), store.puts
    outcomes = together(log, view, [say("x"), blob("b1"), blob("b2"), say("y")])
    assert versions(outcomes) == [3, 3, 4, 3]
    assert log.load().state == ("one", "first", "x", "b1", "y", "b2")
    assert len([*store.list_after(log.keys.sidecar(""))]) == 2
    assert store.puts - puts == 3


def test_one_that_waited_alone_knows_what_was_put_meanwhile() -> None:
    log = new_log(store := Gated())
    view, puts = begin(log), store.puts
    assert versions(together(log, view, [say("x")])) == [3]
    assert store.puts - puts == 2


def test_no_version_has_more_changes_than_a_tombstone_can_keep() -> None:
    log = new_log()
    changes = [SharedChange(commit_id=f"c{i}", base=1, events=0) for i in range(CHANGES_MAX + 1)]
    draft_of = {
        "format": 1, "log_id": "log", "version": 2, "commit_id": "v", "attempt_id": "a", "base": 1,
        "prev": begin(log).hash, "time_us": 2_000_000_000_000_000,
    }  # fmt: skip
    log.store.put(log.keys.commit(2), encode(Commit(**draft_of, changes=tuple(changes))))  # type: ignore[arg-type]
    with pytest.raises(FormatError, match=f"length <= {CHANGES_MAX}"):
        log.load()


def test_where_nothing_can_be_put_each_fails_and_an_earlier_try_is_looked_for() -> None:
    store = Gated()
    log, other_log = new_log(store), new_log(store)
    view = begin(log)

    def before_put(key: str) -> None:
        if key == log.keys.commit(3):
            store.before_put = lambda key: None
            # An earlier try of one, of which the answer was lost, lands only now.
            other_log.commit(other_log.load(), say("y"), commit_id="own-1", base=1)
            raise StorageError("full", location=key, without_effect=True)

    store.before_put = before_put
    outcomes = together(log, view, [say("x"), say("y")])
    assert isinstance(outcomes[0], StorageError) and not isinstance(outcomes[0], CommitUnknown)
    assert versions(outcomes[1:]) == [3]
    assert log.load().state == ("one", "first", "y")


def test_where_nothing_can_be_put_all_earlier_tries_are_looked_for() -> None:
    store = Gated()
    log, other_log = new_log(store), new_log(store)
    view = begin(log)

    def before_put(key: str) -> None:
        if key == log.keys.commit(3):
            store.before_put = lambda key: None
            for i in range(2):
                other_log.commit(other_log.load(), say(f"w{i}"), commit_id=f"own-{i}", base=1)
            raise StorageError("full", location=key, without_effect=True)

    store.before_put = before_put
    outcomes = together(log, view, [say("w0"), say("w1"), say("w2"), say("w3")])
    assert versions(outcomes[:2]) == [3, 4]
    assert all(type(outcome) is StorageError and outcome.without_effect for outcome in outcomes[2:])
    assert outcomes[2] is not outcomes[3]  # each thread raises its own
    assert log.load().state == ("one", "first", "w0", "w1")


def test_where_the_outcome_is_unknown_it_is_unknown_to_each_by_its_own_id() -> None:
    store = Gated()
    log = new_log(store)
    view = begin(log)

    def before_put(key: str) -> None:
        if key == log.keys.commit(3):
            raise StorageError("no answer", location=key)

    store.before_put = before_put
    outcomes = together(log, view, [say("x"), claim("x"), say("y")])
    ids = [outcome.commit_id for outcome in outcomes if isinstance(outcome, CommitUnknown)]
    assert ids == ["own-0", "own-1", "own-2"]  # what was refused would be judged anew, and that failed too
    store.before_put = lambda key: None
    assert log.commit(view, say("y"), commit_id="own-2").version == 3


def test_an_interrupted_leader_leaves_no_thread_waiting() -> None:
    store = Gated()
    log = new_log(store)
    view = begin(log)

    def before_put(key: str) -> None:
        if key == log.keys.commit(3):
            store.before_put = lambda key: None
            raise KeyboardInterrupt

    store.before_put = before_put
    outcomes = together(log, view, [say("x"), say("y")])
    assert isinstance(outcomes[0], KeyboardInterrupt)
    assert isinstance(outcomes[1], CommitUnknown) and outcomes[1].commit_id == "own-1"
    assert log.commit(view, say("z"), shared=True).version == 3


@pytest.mark.parametrize("is_led", [False, True])
def test_an_interrupted_thread_that_waits_is_not_waited_for(is_led: bool) -> None:
    is_interrupted = threading.Event()

    def wait(woken: threading.Event, timeout_s: float | None) -> None:
        if threading.current_thread().name == "interrupted":
            assert (woken if is_led else is_interrupted).wait(PATIENCE_S)
            raise KeyboardInterrupt
        assert woken.wait(PATIENCE_S)

    log = new_log()
    log = Log(log.store, "t", WordsProjection(), options=replace(log.options, wait=wait))
    view, outcomes = begin(log), dict[str, Any]()
    leads, all_wait = threading.Event(), threading.Event()

    def first(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        leads.set()
        assert all_wait.wait(PATIENCE_S)
        return Draft(events=({"word": "first"},))

    def change(name: str, decide: Decide[Words]) -> threading.Thread:
        def commit() -> None:
            try:
                outcomes[name] = log.commit(view, decide, shared=True)
            except BaseException as error:
                outcomes[name] = error

        waiting_number = log.sharing.waiting
        thread = threading.Thread(target=commit, name=name, daemon=True)
        thread.start()
        while decide is not first and log.sharing.waiting == waiting_number:
            threading.Event().wait(0.001)
        return thread

    threads = [change("first", first)]
    assert leads.wait(PATIENCE_S)
    threads += [change("interrupted", say("x")), change("other", say("y"))]
    if not is_led:
        is_interrupted.set()
        threads[1].join(PATIENCE_S)
    all_wait.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert isinstance(outcomes["interrupted"], KeyboardInterrupt)
    assert versions([outcomes["other"], log.commit(view, say("z"), shared=True)]) == [3, 4]
    assert log.load().state == ("one", "first", "y", "z")


def test_a_handler_of_a_signal_commits_while_its_thread_does() -> None:
    log = new_log()
    view = begin(log)

    def interrupted(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        if view.version == 1:
            assert log.commit(view, say("handler"), shared=True).version == 2
        return Draft(events=({"word": "x"},))

    committed_changes = list[CommittedChange[Words]]()
    thread = threading.Thread(
        target=lambda: committed_changes.append(log.commit(view, interrupted, shared=True)), daemon=True
    )
    thread.start()
    thread.join(PATIENCE_S)
    assert versions(committed_changes) == [3]
    assert log.load().state == ("one", "handler", "x")


def test_a_forked_child_does_not_wait_for_threads_that_it_has_not(tmp_path: Path) -> None:
    log = new_log()
    log = Log(LocalStore(str(tmp_path)), "t", WordsProjection(), options=replace(log.options, new_id=new_id))
    view = begin(log)
    child = 0

    def meanwhile() -> None:
        nonlocal child
        child = os.fork()
        if child == 0:
            signal.alarm(4)
            os._exit(log.commit(view, say("child"), shared=True).version)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork of a process with threads
        assert versions(together(log, view, [say("x")], meanwhile=meanwhile))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) > 1
    assert sorted(log.load().state) == ["child", "first", "one", "x"]


@pytest.mark.parametrize("leader_fails", [False, True])
def test_a_view_of_a_log_that_was_removed_is_not_judged_with_those_of_the_log_there_now(
    leader_fails: bool,
) -> None:
    log = new_log(store := Gated())
    removed_view = begin(log)
    store.delete([*store.list_after("")])
    view = log.create(Draft(events=({"word": "new"},)), log_id="log-2")
    seen_pairs = list[tuple[str, str]]()

    def decide(name: str) -> Decide[Words]:
        def decide(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
            seen_pairs.append((name, view.log_id))
            return Draft(events=({"word": name},))

        return decide

    def fail(key: str) -> None:
        store.before_put = lambda key: None
        raise StorageError("full", location=key, without_effect=True)

    if leader_fails:
        store.before_put = fail
    views = {"x": view, "old": removed_view, "y": view}
    outcomes = together(log, view, [decide(name) for name in views], views=[*views.values()])
    assert len({*versions([outcomes[0], outcomes[2]])}) == 1
    assert isinstance(outcomes[1], FormatError)
    assert ("old", "log-2") not in seen_pairs
    assert [word for word in log.load().state if word != "first"] == ["new", "x", "y"]


def test_a_seal_ends_all_that_wait() -> None:
    log, other_log = new_log(store := Gated()), new_log(store)
    view = begin(log)

    def seal() -> None:
        other_log.commit(other_log.load(), lambda view, passed: Draft(seals=True))

    outcomes = together(log, view, [say("x"), say("y")], meanwhile=seal)
    assert [getattr(outcome, "kind", None) for outcome in outcomes] == ["log-sealed"] * 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"events": ({"word": "x"},)},
        {"changes": (SharedChange(commit_id="a", base=1, events=3),)},
        {
            "changes": (
                SharedChange(commit_id="a", base=1, events=1),
                SharedChange(commit_id="a", base=1, events=1),
            )
        },
        {"changes": (SharedChange(commit_id="a", base=2, events=2),)},
        {"seals": True},
        {"fence": 1},
        {"write": WriteRef(id="w", version=1)},
    ],
)
def test_a_version_that_contradicts_itself_is_refused(wrong: dict[str, Any]) -> None:
    log = new_log()
    view = begin(log)
    commit = Commit(
        format=1,
        log_id="log",
        version=2,
        commit_id="v",
        attempt_id="a",
        base=1,
        prev=view.hash,
        time_us=view.time_us + 1,
        events=({"word": "x"}, {"word": "y"}),
        changes=tuple(SharedChange(commit_id=text, base=1, events=1) for text in "ab"),
    )
    log.store.put(log.keys.commit(2), encode(commit))
    assert log.load().state == ("one", "x", "y")
    log.store.put(log.keys.commit(2), encode(msgspec.structs.replace(commit, **wrong)))
    with pytest.raises(FormatError):
        log.load()
    with pytest.raises(FormatError):
        [*log.replay.effects(2, 2)]  # as histories and audits read it, which fold nothing


def test_threads_that_never_stop_are_a_serial_order() -> None:
    log = new_log(every=20)
    view, results, tried_texts = begin(log), list[str](), list[str]()

    def work(name: str) -> None:
        for i in range(30):
            word = f"{name}-{i}" if i % 3 else f"claim-{i}"
            tried_texts.append(word)
            try:
                log.commit(log.load() if i % 5 == 0 else view, claim(word), shared=i % 7 > 0)
                results.append(word)
            except ConflictError:
                pass

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    head = log.load()
    assert sorted(head.state) == sorted(["one", *results])
    assert len(results) == len({*tried_texts}) == 8 * 20 + 10
    assert log.replay.load_without_hint().state == head.state


def test_the_projection_is_given_only_plain_commits_and_whole_versions() -> None:
    class Watching(WordsProjection):
        seen: list[tuple[str, ...]] = []

        def apply(self, state: Words, commit: Commit, blobs: Sequence[bytes]) -> Words:
            self.seen.append(tuple(event["word"] for event in commit.events))
            return super().apply(state, commit, blobs)

    log = new_log()
    together(log, begin(log), [say("x"), say("y")])
    reader = Log(log.store, "t", Watching(), options=replace(log.options))
    assert reader.load().state == ("one", "first", "x", "y")
    assert Watching.seen == [("one",), ("first",), ("x", "y")]


def test_a_grown_log_is_shared_from_old_views() -> None:
    log = new_log()
    old = begin(log)
    newest = old
    while newest.version < 2 * REMEMBERED:
        newest = log.commit(newest, say("w")).view
    assert versions(together(log, old, [say("x"), say("y")])) == [newest.version + 2] * 2
