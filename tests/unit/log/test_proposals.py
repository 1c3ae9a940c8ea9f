"""Proposals: their keys and bytes, ignored objects, refusals, and leftovers."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import msgspec
import pytest
from tests.patience import PATIENCE_S
from tests.unit.log.projections import Words, WordsProjection, begin, new_log, say

from lakelog.log import (
    CarriedChange,
    Commit,
    CommitUnknown,
    ConflictError,
    Draft,
    FeatureNames,
    FormatError,
    LocalStore,
    Log,
    LogView,
    MemoryStore,
    NotFound,
    ObjectStore,
    StorageError,
    UnsupportedFormat,
    each_change,
    expiry,
)
from lakelog.log.checks.findings import Findings
from lakelog.log.checks.verify_inbox import check_inbox
from lakelog.log.format import (
    PROPOSALS,
    WINDOW,
    ChangeRefusal,
    Proposal,
    ProposedChange,
    SharedChange,
    decode_entry,
    encode,
)
from lakelog.log.ids import new_id
from lakelog.log.keys import LogKeys
from lakelog.log.leftovers import unreferenced
from lakelog.log.options import LogOptions
from lakelog.log.proposals.inbox import proposal_at, proposals_of
from lakelog.log.proposals.pending import PendingChanges
from lakelog.log.proposals.refusals import error_of, refusal_of
from lakelog.log.replay import LogReplay
from lakelog.log.rounds.commit_round import ThreadRound
from lakelog.log.rounds.waiting import WaitingChange

KEYS = LogKeys("t")


class WordsByData:
    def lets_pass(self, commit: Commit) -> bool:
        return True

    def redo(self, view: LogView[Words], draft: Draft) -> Draft:
        return draft

    def gather(self, view: LogView[Words], rows: Sequence[bytes]) -> None:
        return None


def log_of(
    store: ObjectStore, *, proposals: bool = True, by: str = "one", rebases_max: int = 1000
) -> Log[Words]:
    return Log(
        store,
        "t",
        WordsProjection(),
        writer={"by": by},
        options=LogOptions(proposals=proposals, snapshot_every_versions=0, rebases_max=rebases_max),
        by_data=WordsByData(),
    )


def ended() -> None:
    """Wait for what looks, and wishes, beside commits."""
    for thread in threading.enumerate():
        if thread.name.startswith(("lakelog-wish", "lakelog-look")):
            thread.join()


def proposal(
    seen: int = 5, *, ids: Sequence[str] = ("a",), base: int = 3, until: int | None = None
) -> Proposal:
    return Proposal(
        format=1,
        log_id="log",
        seen=seen,
        until=seen + WINDOW if until is None else until,
        changes=tuple(ProposedChange(commit_id=id, base=base, events=({"word": id},)) for id in ids),
    )


def test_a_proposal_is_in_the_folder_of_its_version_under_its_first_id() -> None:
    assert KEYS.proposal(513, "x-1") == f"t/_log/inbox/{2:020d}/{513:020d}-x-1.json"
    assert KEYS.proposal_of(KEYS.proposal(513, "x-1")) == (513, "x-1")
    for other_text in (
        f"{1:020d}/{513:020d}-x.json",
        f"{2:020d}/{513:020d}-x.jsn",
        f"{2:020d}/513-x.json",
        "x",
    ):
        assert KEYS.proposal_of(f"t/_log/inbox/{other_text}") is None
    assert KEYS.inbox_until(KEYS.proposal(513, "x")) == 513 + WINDOW
    assert KEYS.inbox_until(f"t/_log/inbox/{2:020d}/anything") == 4 * WINDOW - 1
    assert KEYS.inbox_until("t/_log/inbox/anything") is None


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (proposal(6), "it was copied or moved"),
        (proposal(ids=("b",)), "it was copied or moved"),
        (proposal(until=5), "may be applied up to version 5"),
        (proposal(until=5 + WINDOW + 1), "may be applied up to version"),
        (proposal(ids=("a", "a")), "has one change twice"),
        (proposal(base=6), "prepared on a later version"),
    ],
)
def test_what_does_not_belong_at_its_key_is_refused(wrong: Proposal, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        proposal_at(KEYS.proposal(5, "a"), encode(wrong), KEYS, "here")


def test_what_saw_no_version_is_refused() -> None:
    with pytest.raises(FormatError, match="saw version 0"):
        proposal_at(KEYS.proposal(0, "a"), encode(proposal(0, base=0)), KEYS, "here")


@pytest.mark.parametrize(
    "bend",
    [
        lambda data: data[:-20],
        lambda data: data.replace(b'"a"', b'"b"', 1),
        lambda data: b"{}",
        lambda data: encode(begin_commit()),
        lambda data: b'{"kind":"proposal"' + b"," * 2_000_000,
    ],
)
def test_what_is_no_proposal_is_refused(bend: Callable[[bytes], bytes]) -> None:
    with pytest.raises(FormatError):
        proposal_at(KEYS.proposal(5, "a"), bend(encode(proposal())), KEYS, "here")


def begin_commit() -> Commit:
    return Commit(
        format=1, log_id="log", version=1, commit_id="c", attempt_id="a", base=0, prev="", time_us=1
    )


def test_a_proposal_from_the_future_is_refused_by_name() -> None:
    newer = msgspec.structs.replace(proposal(), features=("rows",))
    with pytest.raises(UnsupportedFormat, match="`rows`"):
        proposal_at(KEYS.proposal(5, "a"), encode(newer), KEYS, "here")
    assert proposal_at(KEYS.proposal(5, "a"), encode(newer), KEYS, "here", ("rows",)) is not None
    newer = msgspec.structs.replace(proposal(), writer_features=("rules",))
    with pytest.raises(UnsupportedFormat, match="`rules`, which this lakelog .* to write to it"):
        proposal_at(KEYS.proposal(5, "a"), encode(newer), KEYS, "here")
    with pytest.raises(FormatError):
        encode_id = msgspec.structs.replace(proposal().changes[0], commit_id="../../x")
        forged_proposal = msgspec.structs.replace(proposal(), changes=(encode_id,))
        proposal_at(KEYS.proposal(5, "a"), encode(forged_proposal), KEYS, "here")


def test_many_changes_are_several_proposals_and_one_too_big_is_none() -> None:
    changes = [ProposedChange(commit_id=f"c{i}", base=1, events=()) for i in range(300)]
    big = ProposedChange(commit_id="big", base=1, events=({"word": "x" * 2_000_000},))
    parts = list(proposals_of("log", 5, FeatureNames(), [*changes, big]))
    assert sum(len(part) for _, part in parts) == 301
    assert [part[0].commit_id for data, part in parts if data is None] == ["big"]
    assert all(data is None or len(data) <= 1024 * 1024 for data, _ in parts)


def test_a_refusal_is_the_error_of_its_kind_again() -> None:
    error = error_of(refusal_of(NotFound("gone")), "c", 7)
    assert type(error) is NotFound and "gone" in error.message and "version 7" in error.message
    conflict = error_of(refusal_of(ConflictError("taken", version=3, by="other")), "c", 7)
    assert isinstance(conflict, ConflictError) and (conflict.version, conflict.by) == (3, "other")
    assert type(error_of(ChangeRefusal(kind="of a newer client", message="no"), "c", 7)) is ConflictError
    worded_refusal = refusal_of(ConflictError("taken by root, python", version=3, by="root, python"))
    assert (
        worded_refusal.by is None and "root, python" in worded_refusal.message
    )  # the format has an id there
    for text in ("x" * 100_000, "it breaks\n" * 150, "\u200b" * 1700):
        long = refusal_of(ConflictError(text))
        assert len(msgspec.json.decode(msgspec.json.encode(long), type=ChangeRefusal).message) < 2000


def test_a_version_may_refuse_only_where_the_log_says_so() -> None:
    log = new_log()
    view = begin(log)
    draft = SharedChange(commit_id="c", base=1, refused=ChangeRefusal(kind="conflict", message="no"))
    commit = msgspec.structs.replace(
        begin_commit(), log_id=view.log_id, version=2, base=1, prev=view.hash, time_us=view.time_us + 1
    )
    for features, changes, why in (
        ((), (draft,), "the feature"),
        (("proposals",), (msgspec.structs.replace(draft, events=1),), "events"),
        (("proposals",), (SharedChange(commit_id="c", base=1, seen=2),), "for other versions"),
    ):
        bad = msgspec.structs.replace(
            commit,
            writer_features=features,
            changes=changes,
            events=({"word": "x"},) if changes[0].events else (),
        )
        log.store.put(log.keys.commit(2), encode(bad))
        with pytest.raises(FormatError, match=why):
            log.refresh(view)


def marked(store: ObjectStore) -> tuple[Log[Words], LogView[Words]]:
    log = log_of(store)
    view = log.create(Draft(events=({"word": "one"},), proposals=True), log_id=new_id())
    return log, view


def taken(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
    raise ConflictError("it is taken")


def test_a_retry_that_is_refused_is_refused_in_the_log_for_good() -> None:
    log, view = marked(MemoryStore())
    with pytest.raises(ConflictError, match="it is taken"):
        log.commit(view, taken, commit_id="mine", base=1, shared=True)
    [entry] = log.commits(first=2)
    assert [(change.commit_id, change.refused is not None) for change in entry.changes] == [("mine", True)]
    assert each_change(entry) == () and entry.events == ()
    # Another try of it is not judged again, also where it would be allowed now, and with another process.
    for other_log in (log, log_of(log.store)):
        with pytest.raises(ConflictError, match="refused in version 2"):
            other_log.commit(other_log.load(), say("mine"), commit_id="mine", base=1, shared=True)
    log.commit(log.load(), say("two"))
    expiry.expire(log, 3)
    tombstone = decode_entry(log.store.get(log.keys.commit(2)) or b"", "2")
    assert len(getattr(tombstone, "refused")) == 1  # noqa: B009
    with pytest.raises(ConflictError, match="has expired"):
        log.commit(log.load(), say("mine"), commit_id="mine", base=1, shared=True)
    assert log.load().state == ("one", "two")


def test_a_first_try_with_an_id_of_its_own_puts_no_refusal() -> None:
    log, view = marked(MemoryStore())
    with pytest.raises(ConflictError, match="it is taken"):
        log.commit(view, taken, shared=True)
    assert log.load().version == 1


@pytest.mark.parametrize(
    "failure", [StorageError("down", location="here"), UnsupportedFormat("what follows cannot be read")]
)
def test_a_failure_of_what_is_proposed_is_unknown(failure: Exception) -> None:
    log, view = marked(MemoryStore())

    def put(self: ThreadRound[Words], *args: object, **options: object) -> None:
        self.waiting[0].cursor.proposed_seen = 1
        raise failure

    with patch.object(ThreadRound, "put", put), pytest.raises(CommitUnknown, match="proposed to other"):
        log.commit(view, say("x"), commit_id="mine", shared=True)


class Refusing(MemoryStore):
    """A store that refuses puts of a version, certainly without an effect, and fails reads of it."""

    refuses = False

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if self.refuses and key == KEYS.commit(2):
            raise StorageError("down", location=key, without_effect=True)
        return super().put_if_absent(key, data)

    def get(self, key: str) -> bytes | None:
        if self.refuses and key == KEYS.commit(2):
            raise StorageError("down", location=key)
        return super().get(key)


@pytest.mark.parametrize("is_retry", [False, True])
@pytest.mark.parametrize("is_there", [False, True])
def test_a_retry_whose_put_fails_is_unknown(is_retry: bool, is_there: bool) -> None:
    """The put had no effect, but a combiner may have applied what an earlier try proposed, or does so later."""
    store = Refusing()
    log, view = marked(store)
    if is_there:
        other_log = log_of(store, by="other")
        other_log.commit(view, say("mine"), commit_id="mine", base=1, shared=True)
    store.refuses = True
    with pytest.raises(CommitUnknown if is_retry else StorageError, match="down"):
        log.commit(view, say("mine"), commit_id="mine" if is_retry else None, base=1, shared=True)
    store.refuses = False
    if is_retry:
        assert log.commit(view, say("mine"), commit_id="mine", base=1, shared=True).version == 2


def test_a_retry_that_cannot_read_what_follows_is_unknown() -> None:
    log, view = marked(MemoryStore())
    log.commit(view, say("other"))
    failure = StorageError("down", location="here")
    with (
        patch.object(LogReplay, "entry", side_effect=failure),
        pytest.raises(CommitUnknown, match="down"),
    ):
        log.commit(view, say("mine"), commit_id="mine", base=1, shared=True)


@pytest.mark.parametrize("is_retry", [False, True])
def test_a_retry_that_loses_all_races_is_unknown(is_retry: bool) -> None:
    """An earlier try may have left a proposal that another client applies later."""
    log, view = marked(MemoryStore())
    log = log_of(log.store, proposals=False, rebases_max=3)
    other_log = log_of(log.store, proposals=False)

    def beaten(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        other_log.commit(other_log.load(), say("first"))
        return Draft(events=({"word": "mine"},))

    expected = CommitUnknown if is_retry else ConflictError
    with pytest.raises(expected, match="lost"):
        log.commit(view, beaten, commit_id="mine" if is_retry else None, shared=True)
    assert log.load().state == ("one", "first", "first", "first")


def test_what_others_do_not_pass_shares_no_version_with_them() -> None:
    """However a change came to be shared: what was proposed before it is not decided behind it."""
    log, view = marked(MemoryStore())
    theirs = msgspec.structs.replace(proposal(1, ids=["theirs"], base=1), log_id=view.log_id)
    log.store.put(KEYS.proposal(1, "theirs"), encode(theirs))

    def lets_pass(self: WordsByData, commit: Commit) -> bool:
        return {"word": "barrier"} not in commit.events

    with (
        patch.object(WordsByData, "lets_pass", lets_pass),
        patch("lakelog.log.placing.RACES_BEFORE_PROPOSING", 0),
    ):
        other_log = log_of(log.store)
        other_log.commit(view, say("barrier"), shared=True)
        other_log.commit(other_log.load(), say("after"), shared=True)
    # Either is right for what was proposed: before the barrier, or not at all. Which one, is chance.
    state = log.load().state
    assert state in (("one", "barrier", "after"), ("one", "theirs", "barrier", "after"))


@pytest.mark.parametrize("id", [None, "mine"])
@pytest.mark.parametrize("is_for_its_author", [False, True])
def test_what_carries_others_is_for_these_to_propose_one_by_one(
    id: str | None, is_for_its_author: bool
) -> None:
    """Put by its own process, it would lose one race after another to who combines. Its id may be that of its files."""
    log, view = marked(MemoryStore())
    carried_change = CarriedChange("theirs", 1, {}, ({"word": "theirs"},))
    draft = Draft(events=({"word": "mine"},), carries=(carried_change,))
    refusal = ConflictError("only its author knows")
    with (
        patch("lakelog.log.placing.RACES_BEFORE_PROPOSING", 0),
        patch.object(WordsByData, "redo", side_effect=refusal if is_for_its_author else None),
        pytest.raises(ConflictError, match="lost"),
    ):
        log.commit(view, lambda view, passed: draft, commit_id=id, shared=True)
    assert log.load().state == ("one",)
    log = log_of(log.store, proposals=False)
    assert log.commit(view, lambda view, passed: draft, shared=True).view.state == ("one", "theirs", "mine")


def test_a_retry_behind_what_has_expired_is_not_refused_before_the_log_says_so() -> None:
    log, view = marked(MemoryStore())
    log.commit(view, say("two"))
    expiry.expire(log, log.commit(log.load(), say("three")).version)
    head = log.load()
    change = log.propose(head, say("mine"), commit_id="mine", base=1, retried=True)
    assert change is None  # so it is tried under its id, which puts the refusal
    with pytest.raises(ConflictError, match="has expired"):
        log.commit(head, say("mine"), commit_id="mine", base=1, shared=True)
    assert [each_change.refused is not None for each_change in next(log.commits(first=4)).changes] == [True]


def test_a_refusal_in_the_log_is_final_though_its_kind_is_that_of_a_failed_read() -> None:
    log, view = marked(MemoryStore())

    def refused(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        raise UnsupportedFormat("a newer lakelog reads it")

    for decide in (refused, say("mine")):
        with pytest.raises(UnsupportedFormat, match="a newer lakelog"):
            log.commit(view, decide, commit_id="mine", shared=True)
    assert log.load().state == ("one",)


class Raced(MemoryStore):
    """A store on which others commit a version, and expire it, before the first put of it is there."""

    races: Callable[[], None] | None = None
    puts = 0

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if self.races is not None and key == KEYS.commit(4):
            races, self.races = self.races, None
            races()
            self.puts = 0
        self.puts += 1
        return super().put_if_absent(key, data)


@pytest.mark.parametrize("later", [0, 1, 2])
def test_a_refusal_of_what_has_expired_is_put_though_more_expires_meanwhile(later: int) -> None:
    store = Raced()
    log, view = marked(store)
    log.commit(view, say("two"))
    expiry.expire(log, log.commit(log.load(), say("three")).version)

    def race() -> None:
        expiry.expire(log, log.commit(log.load(), say("four")).version)
        for number in range(later):
            log.commit(log.load(), say(f"later {number}"))

    store.races = race
    with pytest.raises(ConflictError, match="has expired"):
        log.commit(log.load(), say("mine"), commit_id="mine", base=1, shared=True)
    assert store.puts <= 3
    assert [change.commit_id for change in next(log.commits(first=5 + later)).changes] == ["mine"]


@pytest.mark.parametrize("expires", [False, True])
def test_what_a_change_held_is_free_at_once_though_its_refusal_lost_a_race(expires: bool) -> None:
    class Held:
        pass

    store = Raced()
    log, view = marked(store)
    log.commit(view, say("two"))
    base = log.commit(log.load(), say("three")).version
    if expires:
        expiry.expire(log, base)

    def race() -> None:
        log.commit(log.load(), say("four"))

    store.races = None if expires else race
    held_refs: list[weakref.ref[Held]] = []

    def refused() -> None:
        rows = Held()
        held_refs.append(weakref.ref(rows))

        def decide(view: LogView[Words], passed: Sequence[Commit], rows: Held = rows) -> Draft:
            raise ConflictError("it is taken")

        with suppress(ConflictError):
            log.commit(view if expires else log.load(), decide, commit_id="mine", shared=not expires)

    gc.disable()
    try:
        refused()
        assert [ref() for ref in held_refs] == [None]
    finally:
        gc.enable()


def test_a_change_that_goes_back_to_its_thread_is_moved_by_no_other() -> None:
    """It goes back as it is taken, for the log has to refuse it, and the courier is ahead of it by then."""
    log, view = marked(MemoryStore())
    log.commit(view, say("two"))
    expiry.expire(log, log.commit(log.load(), say("three")).version)
    head = log.load()
    cursor = log.cursor(head, say("mine"), "mine", 1, retried=True)
    assert cursor.asked_before() is None and cursor.refusal is not None
    pending_changes = PendingChanges(log.writer, WordsByData(), log.commit(head, say("four")).view)
    own = WaitingChange(cursor=cursor)
    assert pending_changes.submit(own)
    pending_changes.take()
    assert own.returned.is_set() and cursor.view is head


def test_what_cannot_share_a_version_is_sent_to_a_courier_though_others_were_sent_before() -> None:
    store = Raced()
    log, view = marked(store)
    view = log.commit(log.commit(view, say("two")).view, say("three")).view

    def apart(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        if "shared" in view.state:
            raise ValueError("it does not go with others")
        return say("apart")(view, passed)

    sent_texts: list[list[str]] = []

    def send(waiting: Sequence[WaitingChange[Words]]) -> None:
        sent_texts.append([each_change.cursor.commit_id for each_change in waiting])
        for change in waiting:
            change.sent = True

    def race() -> None:
        log.commit(log.load(), say("race"))

    store.races = race
    cursors = [log.cursor(view, say("shared"), "shared"), log.cursor(view, apart, "apart")]
    for cursor, lost_number in zip(cursors, (1, 2), strict=True):
        cursor.lost = lost_number
    ThreadRound(log.writer, [WaitingChange(cursor=cursor) for cursor in cursors], send=send).commit()
    assert sent_texts == [["shared"], ["apart"]]


def test_the_feature_is_set_by_what_has_lost_two_races() -> None:
    store = MemoryStore()
    log, other_log = log_of(store), log_of(store)
    view = begin(log)
    races = 0

    def slow(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        nonlocal races
        if races < 2:
            races += 1
            other_log.commit(other_log.load(), say(f"race {races}"))
        return Draft(events=({"word": "slow"},))

    log.commit(view, slow, shared=True)
    assert [PROPOSALS in commit.writer_features for commit in log.commits(first=2)] == [False, False, True]
    ended()
    assert not list(store.list_after(log.keys.inbox))


def test_processes_commit_what_others_propose(tmp_path: Path) -> None:
    with patch("lakelog.log.placing.RACES_BEFORE_PROPOSING", 0):
        marked(LocalStore(str(tmp_path)))
        logs = [log_of(LocalStore(str(tmp_path)), by=str(i)) for i in range(3)]
        results: list[str] = []

        def work(log: Log[Words], name: str) -> None:
            view = log.load()
            for i in range(12):
                view = log.commit(view, say(f"{name}.{i}"), shared=True).view
                results.append(f"{name}.{i}")

        threads = [
            threading.Thread(target=work, args=(log, f"{n}-{k}"))
            for n, log in enumerate(logs)
            for k in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
    head = logs[0].load()
    assert sorted(head.state) == sorted(["one", *results]) and len(results) == 72
    assert any(change.seen for commit in logs[0].commits() for change in commit.changes)


def test_a_process_ends_though_its_log_is_contended(tmp_path: Path) -> None:
    marked(LocalStore(str(tmp_path)))
    code = (
        "import sys; from tests.unit.log import test_proposals as t; from tests.unit.log.projections import say\n"
        "from lakelog.log import placing; placing.RACES_BEFORE_PROPOSING = 0\n"
        "log = t.log_of(t.LocalStore(sys.argv[1])); print(log.commit(log.load(), say('x'), shared=True).version)\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert (process.stdout, process.stderr) == ("2\n", "")


def test_vacuum_and_fsck_see_what_is_left_in_the_inbox() -> None:
    store = MemoryStore()
    log, view = marked(store)
    open_, over = KEYS.proposal(1, "a"), f"t/_log/inbox/{0:020d}/anything"
    store.put(open_, encode(msgspec.structs.replace(proposal(1, base=1), log_id=view.log_id)))
    store.put(KEYS.proposal(1, "b"), encode(proposal(1, base=1)))
    store.put(over, b"x")
    findings = Findings()
    check_inbox(log, findings, list(store.list_after(log.keys.inbox)), view.version)
    assert {(finding.kind, finding.where) for finding in findings.found} == {
        ("proposal-unreadable", log.replay.at(KEYS.proposal(1, "b"))),
        ("proposal-unreadable", log.replay.at(over)),
    }
    assert not unreferenced(log, view, None)
    later = LogView(
        view.log_id, 2 * WINDOW, view.hash, view.time_us, view.state, writer_features=view.writer_features
    )
    assert unreferenced(log, later, None).keys() == {open_, KEYS.proposal(1, "b"), over}
    findings = Findings()
    check_inbox(log, findings, list(store.list_after(log.keys.inbox)), later.version)
    assert [finding.kind for finding in findings.found] == ["proposals-left"]
