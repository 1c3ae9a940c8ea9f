"""Transactions with one protection removed: each must make some seed of the second world fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import msgspec
from tests.sim import ledger_readers
from tests.sim.mutations import removing

from lakelog.log import (
    Commit,
    ConflictError,
    Decision,
    SettledIntent,
    decisions,
    following,
    history,
    log,
    placing,
    replay,
    snapshots,
    together,
    view,
    writing,
)
from lakelog.log.burial import tombstones
from lakelog.log.format import ABORTED, COMMITTED, FORMAT, Intent, encode
from lakelog.log.rounds import commit_round

LEDGER_MUTATIONS: dict[str, Callable[[], AbstractContextManager[None]]] = {}
removes = removing(LEDGER_MUTATIONS)


@removes(decisions, "is_listed")
def an_id_without_the_hash_of_its_list_is_believed(real: Any, intent: Intent) -> bool:
    return True


@removes(decisions, "_warehouse_of")
def an_intent_outside_of_its_list_is_followed(real: Any, intent: Intent, log_url: str) -> str:
    return "memory://simulation"


@removes(together._Transaction, "_place")
def the_decision_comes_before_the_last_intent(
    real: Any, self: Any, i: int, txn: str, found: Any, **kw: Any
) -> None:
    if len(standing_of(self, found)) == len(found) - 1 > 0:
        decide_at_once(self, txn, found)
    real(self, i, txn, found, **kw)


@removes(together._Transaction, "_place")
def what_stands_is_committed_without_what_was_refused(
    real: Any, self: Any, i: int, txn: str, found: Any, **kw: Any
) -> None:
    real(self, i, txn, found, **kw)
    if standing_of(self, found) and isinstance(found[i], ConflictError):
        decide_at_once(self, txn, found)


def standing_of(self: Any, found: Any) -> dict[str, Commit]:
    parts = zip(self.parts, found, strict=True)
    return {part.name: one.commit for part, one in parts if isinstance(one, writing.PlacedCommit)}


def decide_at_once(self: Any, txn: str, found: Any) -> None:
    standing_commits = standing_of(self, found)
    decision = Decision(
        format=FORMAT,
        txn=txn,
        commit_id=self.commit_id,
        outcome=COMMITTED,
        time_us=max(commit.time_us for commit in standing_commits.values()) + 1_000_000,
        positions={name: commit.version for name, commit in standing_commits.items()},
    )
    self.decisions.place(txn).create(decision, self.options)


@removes(replay.LogReplay, "decided")
def what_is_undecided_counts_as_committed(real: Any, self: Any, intent: Commit) -> SettledIntent:
    return real(self, intent) or SettledIntent(outcome=COMMITTED, time_us=intent.time_us)


@contextmanager
def _time_of_the_intent() -> Iterator[None]:
    def effect(entry: Any, settled: Any) -> Any:
        return None if replay.is_aborted(settled) else entry

    with ExitStack() as stack:
        for module in (view, placing, replay, history):
            stack.enter_context(patch.object(module, "effective", effect))
        yield


LEDGER_MUTATIONS["the-time-is-that-of-the-intent"] = _time_of_the_intent


@contextmanager
def _settles_missing() -> Iterator[None]:
    """No commit says what became of an intent, and only the decision is asked for it."""
    real_commit, real_check = Commit, view.check_succession

    def check(before: Any, commit: Any, location: str) -> None:
        real_check(before, msgspec.structs.replace(commit, settles=before.settles), location)

    with (
        patch.object(writing, "Commit", lambda **members: real_commit(**(members | {"settles": None}))),
        patch.object(view, "check_succession", check),
        patch.object(replay.LogReplay, "_settled_by", lambda self, entry, intent: self.decided(intent)),
    ):
        yield


LEDGER_MUTATIONS["nothing-says-what-became-of-an-intent"] = _settles_missing


@removes(tombstones, "tombstone_of")
def a_tombstone_lacks_the_outcome(real: Any, commit: Commit, settled: SettledIntent | None = None) -> Any:
    return msgspec.structs.replace(real(commit, settled), outcome="")


@removes(writing.LogWriter, "put")
def a_snapshot_is_written_of_an_undecided_head(real: Any, self: Any, *args: Any, **kw: Any) -> Any:
    put = real(self, *args, **kw)
    if isinstance(put, writing.PlacedCommit) and put.commit.intent is not None:
        self.replay.options.in_background(
            self.replay.location, lambda: snapshots.write(self.replay, put.after)
        )
    return put


@removes(ledger_readers, "is_same_cut")
def a_cut_is_not_checked_again(real: Any, before: Any, after: Any) -> bool:
    return True


@removes(decisions.DecisionPlace, "abort")
def aborted_is_put_over_whatever_was_decided(real: Any, self: Any, commit_id: str, options: Any) -> Decision:
    aborted_decision = Decision(format=FORMAT, txn=self.txn, commit_id=commit_id, outcome=ABORTED)
    self.store.put(self.key, encode(aborted_decision))
    return aborted_decision


@removes(following, "wait_or_abort")
def who_gave_up_waiting_does_not_obey(real: Any, place: Any, commit: Commit, options: Any) -> Decision:
    decision = real(place, commit, options)
    return msgspec.structs.replace(decision, outcome=ABORTED, time_us=0)


@removes(following, "wait_or_abort")
def who_waits_skips_the_intent(real: Any, place: Any, commit: Commit, options: Any) -> Decision:
    """Takes it for aborted without saying so where all can see it."""
    return Decision(format=FORMAT, txn=place.txn, commit_id=commit.commit_id, outcome=ABORTED)


@contextmanager
def _aborted_attempts_count() -> Iterator[None]:
    def effect(entry: Any, settled: Any) -> Any:
        return entry

    with ExitStack() as stack:
        for module in (placing, replay, history):
            stack.enter_context(patch.object(module, "effective", effect))
        yield


LEDGER_MUTATIONS["aborted-attempts-count-as-the-commit"] = _aborted_attempts_count


@removes(placing, "is_same_commit")
def commit_ids_are_not_compared(real: Any, entry: Any, commit_id: str) -> bool:
    return False


@removes(together._Transaction, "__init__")
def what_was_only_read_is_not_checked_again(
    real: Any, self: Any, parts: Any, decisions: Any, *rest: Any
) -> None:
    commit_id, validate = rest
    real(self, parts, decisions, commit_id, validate and (lambda: None))


@removes(commit_round.ThreadRound, "commit")
def an_intent_is_judged_once(real: Any, self: Any) -> None:
    drafts: list[Any] = []
    cursor = self.waiting[0].cursor
    judge = cursor.decide

    def once(view: Any) -> Any:
        if not drafts:
            drafts.append(judge(view))
        return drafts[0]

    with patch.object(cursor, "decide", once):
        real(self)


@removes(writing.LogWriter, "write_sidecars")
def attempts_share_their_sidecars(real: Any, self: Any, blobs: Any, version: int, owner: str) -> Any:
    return real(self, blobs, 0, "shared")


@removes(together, "commit_time_us")
def the_decision_has_the_coordinators_own_time(
    real: Any, previous_us: int, own_us: int, store_us: int | None
) -> int:
    return own_us


@removes(placing, "check_may_follow")
def what_was_purged_can_be_restored(real: Any, view: Any, draft: Any, location: str) -> None:
    if not view.sealed:
        real(view, draft, location)


@removes(log.Log, "refresh_settled")
def readers_who_have_to_wait_do_not(real: Any, self: Any, view: Any) -> Any:
    return self.refresh(view)
