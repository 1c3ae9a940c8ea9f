"""Transactions across logs: all parts or none, once, whichever process dies; and how readers see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.log.projections import Words, say
from tests.unit.log.transactions import (
    Stopping,
    decision_keys,
    entry_at,
    log_in,
    logs_in,
    stopped,
    together,
    with_options,
)

from lakelog.log import (
    Commit,
    CommitUnknown,
    ConflictError,
    Draft,
    InvalidInput,
    LocalStore,
    Log,
    LogPart,
    LogSealed,
    LogView,
    PermissionDenied,
    StorageError,
    WarehouseDecisions,
    commit_together,
    refresh_many,
)
from lakelog.log.expiry import expire
from lakelog.log.format import Tombstone, decode_decision, decode_entry
from lakelog.log.participants import is_listed, is_of

NO = "no"


def refuse(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
    raise ConflictError(NO)


def test_all_parts_happen_at_one_time_and_all_clients_see_them() -> None:
    store = Stopping()
    a, b = logs_in(store, "a", "deep/er/b")
    warm = [a.load(), b.load()]
    b.commit(b.load(), say("two"))
    changes = together([a, b], "both", views=warm)
    assert [d.version for d in changes] == [2, 3]
    assert (
        [d.view for d in changes]
        == [a.load(), b.load()]
        == refresh_many(list(zip([a, b], warm, strict=True)))
    )
    assert a.load().state == ("one", "both") and b.load().state == ("one", "two", "both")
    assert a.load().time_us == b.load().time_us
    [key] = decision_keys(store)
    decision = decode_decision(store.get(key) or b"", key)
    assert decision.outcome == "committed" and decision.positions == {"a": 2, "deep/er/b": 3}
    assert decision.time_us == a.load().time_us
    intents = [entry.intent for log, v in ((a, 2), (b, 3)) if (entry := entry_at(log, v)).intent]
    assert [(intent.log, intent.index, intent.count) for intent in intents] == [
        ("a", 0, 2),
        ("deep/er/b", 1, 2),
    ]
    assert {intent.decision for intent in intents} == {key} and all(map(is_listed, intents))
    assert is_of(decision.txn, "", list(decision.positions))
    assert not is_of(decision.txn, "", ["a"]) and not is_of(decision.txn, "deep", list(decision.positions))


def test_the_commit_after_an_intent_says_what_became_of_it() -> None:
    store = Stopping()
    a, b = logs_in(store, "a", "b")
    view = together([a, b], "both")[0].view
    a.commit(view, say("next"))
    settles = entry_at(a, 3).settles
    assert settles is not None and (settles.outcome, settles.time_us) == ("committed", view.time_us)
    stopped(store, [a, b], "_txn")
    b.commit(b.load(), say("next"))
    settles = entry_at(b, 4).settles
    assert settles is not None and (settles.outcome, settles.time_us) == ("aborted", 0)
    assert b.load().state == ("one", "both", "next")
    assert [log.load() for log in (a, b)] == [log_in(store, n).load() for n in ("a", "b")]


@pytest.mark.parametrize("at", ["a/_log/00000000000000000002", "b/_log/00000000000000000002", "_txn/"])
@pytest.mark.parametrize("after", [False, True])
def test_a_death_at_any_point_leaves_all_or_nothing(at: str, after: bool) -> None:
    store = Stopping()
    a, b = logs_in(store, "a", "b")
    warm = [a.load(), b.load()]
    stopped(store, [a, b], at, after=after)
    is_happened = after and at == "_txn/"
    expected = ("one", "lost") if is_happened else ("one",)
    for view in (a.load(), b.load(), a.refresh(warm[0]), *refresh_many([(a, warm[0]), (b, warm[1])])):
        assert view.state == expected
    # Others go on, cold and warm.
    assert a.commit(warm[0], say("next")).view.state == (*expected, "next")
    assert b.commit(b.load(), say("next")).view.state == (*expected, "next")
    assert together([a, b], "again")[1].view.state == (*expected, "next", "again")
    assert a.load().state == log_in(store, "a").load().state == (*expected, "next", "again")


def test_refreshing_settled_leaves_nothing_behind_the_view() -> None:
    store = Stopping()
    a, b = logs_in(store, "a", "b")
    view = a.load()
    assert a.refresh_settled(view) is view
    stopped(store, [a, b], "_txn")
    assert a.refresh(view) is view
    settled_view = a.refresh_settled(view)
    assert (settled_view.version, settled_view.state) == (2, ("one",)) and a.load() == settled_view
    assert b.load().version == 2
    changes = together([a, b], "both")
    assert a.refresh_settled(view) == changes[0].view


def test_a_refusal_of_one_part_undoes_all() -> None:
    store = Stopping()
    a, b = logs_in(store, "a", "b")
    with pytest.raises(ConflictError, match=NO):
        together([a, b], "x", decides=[say("x"), refuse])
    assert (a.load().state, b.load().version) == (("one",), 1)
    a.commit(a.load(), lambda view, passed: Draft(seals=True))
    with pytest.raises(LogSealed):
        together([a, b], "x")
    assert b.load().state == ("one",)


def test_what_validate_raises_undoes_all_and_it_sees_all_intents() -> None:
    store = Stopping()
    a, b = logs_in(store, "a", "b")

    def validate() -> None:
        assert entry_at(a, 2).intent and entry_at(b, 2).intent and not decision_keys(store)
        raise ConflictError(NO)

    with pytest.raises(ConflictError, match=NO):
        together([a, b], "x", validate=validate)
    assert (a.load().state, b.load().state) == (("one",), ("one",))
    assert together([a], "x", validate=lambda: None)[0].view.state == ("one", "x")


class Overtaken(Stopping):
    """Lets something happen right before a transaction is committed, once."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], None] | None = None

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if self.meanwhile is not None and b'"outcome":"committed","time_us"' in data and "_txn" in key:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return super().put_if_absent(key, data)


@pytest.mark.parametrize("waits", [False, True])
def test_only_a_reader_that_waits_for_the_undecided_sees_one_order_with_what_was_checked_and_not_written(
    waits: bool,
) -> None:
    store = Overtaken()
    log, checked_log = logs_in(store, "written", "checked")
    seen_pairs: list[tuple[Words, Words]] = []

    def meanwhile() -> None:
        checked_log.commit(checked_log.load(), say("after the check"))
        view = log.load()
        seen_pairs.append(((log.refresh_settled(view) if waits else view).state, checked_log.load().state))

    def validate() -> None:
        if checked_log.refresh_settled(checked_log.load()).version != 1:
            raise ConflictError(NO)

    store.meanwhile = meanwhile
    if waits:
        with pytest.raises(ConflictError, match=NO):
            together([log], "x", validate=validate)
    else:
        together([log], "x", validate=validate)
    # The transaction comes before what overtook its check; this reader saw the latter, and not the former.
    assert seen_pairs == [(("one",), ("one", "after the check"))]
    assert log.load().state == (("one",) if waits else ("one", "x"))


def test_a_retry_gives_the_first_commit_from_any_views() -> None:
    store = Stopping()
    a, b = logs_in(store, "a", "b")
    views = [a.load(), b.load()]
    first = together([a, b], "x", views=views, commit_id="c")
    a.commit(first[0].view, say("other"))
    for again in (views, [a.load(), views[1]], [views[0], b.load()], [a.load(), b.load()]):
        changes = together([a, b], "x", views=again, commit_id="c", bases=[1, 1])
        assert [d.version for d in changes] == [2, 2]
        changes = together([a, b], "x", views=again, commit_id="c", bases=[1, 1], decides=[refuse, refuse])
        assert [d.version for d in changes] == [2, 2]
    assert a.load().state == ("one", "x", "other")
    expire(a, 3)
    changes = together([a, b], "x", views=views, commit_id="c", bases=[1, 1])
    assert [d.version for d in changes] == [2, 2]


@pytest.mark.parametrize("after", [False, True])
def test_a_retry_after_the_coordinator_died_happens_once(after: bool) -> None:
    store = Stopping()
    a, b = logs_in(store, "a", "b")
    views = [a.load(), b.load()]
    stopped(store, [a, b], "_txn", after=after, commit_id="c")
    changes = together([a, b], "lost", views=views, commit_id="c", bases=[1, 1])
    assert [d.version for d in changes] == ([2, 2] if after else [3, 3])
    assert [a.load().state, b.load().state] == [("one", "lost")] * 2


def test_aborted_attempts_are_not_the_commit_also_after_they_expired() -> None:
    store = Stopping()
    a, b = logs_in(store, "a", "b")
    views = [a.load(), b.load()]
    stopped(store, [a, b], "_txn", commit_id="c")
    a.commit(a.load(), say("next"))
    expire(a, 3)
    tombstone = decode_entry(store.get(a.keys.commit(2)) or b"", "here")
    assert isinstance(tombstone, Tombstone) and tombstone.outcome == "aborted"
    assert a.find("c", 1, 3) is None
    with pytest.raises(ConflictError, match="expired"):
        together([a, b], "lost", views=views, commit_id="c", bases=[1, 1])
    assert b.load().state == ("one",)


class CountingAborts(Stopping):
    def __init__(self) -> None:
        super().__init__()
        self.lost: list[str] = []

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if self.lost and self.lost[0] in key:
            self.lost.pop(0)
            raise StorageError("503", location=key)
        return super().put_if_absent(key, data)


def test_an_intent_whose_answer_is_lost_for_good_means_that_nothing_happened() -> None:
    store = CountingAborts()
    a, b = logs_in(store, "a", "b")
    store.lost = ["b/_log"] * 8
    with pytest.raises(StorageError, match="nothing happened"):
        together([a, b], "x")
    assert [a.load().state, b.load().state] == [("one",)] * 2
    assert a.commit(a.load(), say("next")).version == 3


def test_a_decision_whose_answer_is_lost_for_good_is_unknown_and_can_be_retried() -> None:
    store = CountingAborts()
    a, b = logs_in(store, "a", "b")
    views = [a.load(), b.load()]
    together([a, b], "first", views=views)
    views = [a.load(), b.load()]
    store.lost = ["_txn"] * 8
    with pytest.raises(CommitUnknown, match="c's decision"):
        together([a, b], "x", views=views, commit_id="c")
    changes = together([a, b], "x", views=views, commit_id="c", bases=[2, 2])
    assert [d.version for d in changes] == [4, 4] and a.load().state == ("one", "first", "x")


def test_a_decision_that_may_not_be_written_means_that_nothing_happened() -> None:
    class Denied(Stopping):
        def put_if_absent(self, key: str, data: bytes) -> bool:
            if b'"committed"' in data and "_txn" in key:
                raise PermissionDenied("403", location=key)
            return super().put_if_absent(key, data)

    store = Denied()
    a, b = logs_in(store, "a", "b")
    with pytest.raises(PermissionDenied):
        together([a, b], "x")
    assert a.commit(a.load(), say("next")).view.state == ("one", "next")


def test_a_coordinator_who_was_aborted_by_others_tries_again_in_order() -> None:
    store = Stopping()
    a, b = logs_in(store, "a", "b")
    rounds: list[str] = []

    def validate() -> None:
        rounds.append("validated")
        if len(rounds) < 3:
            log_in(store, "a").commit(a.load(), say(f"impatient {len(rounds)}"))

    changes = together([b, a], "x", validate=validate)
    assert len(rounds) == 3
    assert changes[1].view.state == ("one", "impatient 1", "impatient 2", "x")
    assert changes[0].view.state == ("one", "x") and len(decision_keys(store)) == 3


def test_a_coordinator_who_is_always_aborted_gives_up_with_a_conflict() -> None:
    store = Stopping()
    a, b = logs_in(store, "a", "b")
    with pytest.raises(ConflictError, match="aborted by other clients 20 times"):
        together([a, b], "x", validate=lambda: log_in(store, "a").commit(a.load(), say("y")) and None)
    assert "x" not in a.load().state and b.load().state == ("one",)


def test_a_transaction_waits_for_another_one_before_it_locks_anything() -> None:
    store = Stopping()
    a, b = logs_in(store, "a", "b")
    slept: list[float] = []
    stopped(store, [a, b], "_txn")
    patient = [with_options(log, sleep_s=slept.append) for log in (a, b)]
    assert [d.version for d in together(patient, "x")] == [3, 3]
    assert sum(slept) > 2.0 and sum(slept) < 10.0


def test_the_patience_grows_with_the_participants() -> None:
    waited = []
    for names in ("ab", "abcdefgh"):
        store = Stopping()
        logs = logs_in(store, *names)
        stopped(store, logs, "_txn")
        slept: list[float] = []
        with_options(logs[0], sleep_s=slept.append, random=lambda: 0.5).commit(logs[0].load(), say("x"))
        waited.append(sum(slept))
    assert waited[0] < waited[1] < 10.0


def test_what_reads_before_a_transaction_is_decided_on_what_it_left() -> None:
    """A writer that lost to an intent is judged on its effect, and gets it only if it has one."""
    store = Stopping()
    a, b = logs_in(store, "a", "b")
    view = a.load()
    stopped(store, [a, b], "_txn")
    together([a, b], "both", commit_id="c")
    seen_pairs: list[tuple[Words, list[tuple[str, int]]]] = []

    def decide(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        seen_pairs.append((view.state, [(commit.commit_id, commit.time_us) for commit in passed]))
        return Draft(events=({"word": "x"},))

    a.commit(view, decide)
    assert seen_pairs[-1] == (("one", "both"), [("c", b.load().time_us)])


def test_logs_in_other_stores_find_the_decision_by_its_url(tmp_path: Path) -> None:
    home, away = LocalStore(str(tmp_path / "home")), LocalStore(str(tmp_path / "away"))
    asked_texts: list[str] = []

    def open_url(url: str) -> tuple[LocalStore, str]:
        asked_texts.append(url)
        return home, url.removeprefix(f"{home.url}/")

    a = logs_in(home, "sub/n/a")[0]
    plain = logs_in(away, "b")[0]
    b = Log(away, "b", plain.projection, options=plain.options, open_url=open_url)
    parts = [
        LogPart("n/a", a, a.load(), say("both")),
        LogPart(b.location, b, b.load(), say("both"), home="n"),
    ]
    commit_together(parts, decisions=WarehouseDecisions(home, "sub"))
    assert b.load().state == ("one", "both") and asked_texts[-1].startswith(f"{tmp_path}/home/sub/n/_txn/")
    with pytest.raises(InvalidInput, match="open this log through its catalog"):
        plain.load()
    above = Log(LocalStore(str(tmp_path)), "away/b", plain.projection, options=plain.options)
    assert above.load().state == ("one", "both")
    with pytest.raises(InvalidInput, match="is not the place of"):
        commit_together([replace(parts[0], name="a"), parts[1]], decisions=WarehouseDecisions(home, "sub"))


def test_a_sealed_log_is_restored_or_purged_by_a_transaction() -> None:
    store = Stopping()
    a, b = logs_in(store, "a", "b")
    sealed_view = a.commit(a.load(), lambda view, passed: Draft(seals=True)).view

    def restore(view: LogView[Words], passed: Sequence[Commit]) -> Draft:
        return Draft(restores=True)

    stopped(store, [a, b], "_txn", decides=[restore, say("linked")])
    assert a.load().sealed
    with pytest.raises(LogSealed):
        a.commit(sealed_view, say("late"))
    changes = together([a, b], "x", decides=[restore, say("linked")])
    assert not changes[0].view.sealed and changes[0].view.state == ("one",)
    together([a, b], "x", decides=[lambda view, passed: Draft(seals=True), say("unlinked")])
    stopped(store, [a, b], "_txn", decides=[restore, say("linked")])
    anew = a.create(Draft(events=({"word": "anew"},)), log_id="second")
    assert anew.state == ("anew",) and a.load() == anew


def test_too_many_logs_are_refused_by_the_limit() -> None:
    store = Stopping()
    logs = [with_options(log, participants_max=2) for log in logs_in(store, "a", "b", "c")]
    with pytest.raises(InvalidInput, match="3 logs is above the limit of 2"):
        together(logs, "x")


def test_nothing_and_a_single_part_are_what_they_are_without_a_transaction() -> None:
    store = Stopping()
    [a] = logs_in(store, "a")
    assert together([a], "x", commit_id="c")[0].version == 2 and entry_at(a, 2).intent is None
    assert commit_together([], decisions=WarehouseDecisions(store)) == []
    with pytest.raises(ConflictError):
        commit_together([], decisions=WarehouseDecisions(store), validate=lambda: refuse(a.load(), ()))  # type: ignore[arg-type]
