"""What a writer that never loses does for those that do: it looks into the inbox, marks the log, and combines."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from tests.patience import wait_until
from tests.unit.log.projections import begin, say
from tests.unit.log.test_proposals import KEYS, ended, log_of, proposal

from lakelog.log import CountingStore, MemoryStore, StorageError, open_store
from lakelog.log.format import PROPOSALS, encode
from lakelog.log.keys import LogKeys
from lakelog.log.options import LogOptions
from lakelog.log.proposals import watch
from lakelog.log.proposals.inbox import ProposalInbox


def lists_of(commits: int, pause_s: float) -> int:
    store = CountingStore(MemoryStore())
    log = log_of(store)
    view = begin(log)
    for number in range(commits):
        view = log.commit(view, say(f"{number}"), shared=True).view
        ended()
        time.sleep(pause_s)
    return store.by_kind["list"]


def test_only_who_commits_in_quick_succession_looks_and_ever_more_rarely() -> None:
    with patch.object(watch, "PAUSE_COMMITS", 1e9):
        assert lists_of(3, 0) == 0
        assert lists_of(4, 0) == 1
        assert lists_of(24, 0) == 6  # beside the 4th, 6th, 10th, 14th, 18th and 22nd
    with patch.object(watch, "PAUSE_COMMITS", 0.0):
        assert lists_of(8, 0.001) == 0


def test_a_wish_has_the_winner_mark_the_log() -> None:
    store = MemoryStore()
    log = log_of(store)
    view = begin(log)
    store.put(KEYS.wish(1, "loser"), b"")
    assert KEYS.proposal_of(KEYS.wish(1, "loser")) is None
    with patch.object(watch, "QUICK_COMMITS", 1), patch.object(watch, "PAUSE_COMMITS", 1e9):
        for number in range(2):
            view = log.commit(view, say(f"{number}"), shared=True).view
            ended()
    assert [PROPOSALS in commit.writer_features for commit in log.commits(first=2)] == [False, True]


def test_a_winner_that_finds_proposals_combines() -> None:
    store = MemoryStore()
    with patch.object(watch, "QUICK_COMMITS", 1), patch.object(watch, "PAUSE_COMMITS", 1e9):
        log = log_of(store)
        view = begin(log)
        theirs = proposal(2, ids=["theirs"], base=2)
        with patch("lakelog.log.rounds.commit_round.ThreadRound.marks", True):
            view = log.commit(view, say("marks"), shared=True).view
        ended()
        store.put(KEYS.proposal(2, "theirs"), encode(msgspec.structs.replace(theirs, log_id=view.log_id)))
        for number in range(4):
            view = log.commit(view, say(f"{number}"), shared=True).view
            ended()
    state = log.load().state
    assert state[:3] == ("one", "marks", "0")
    assert sorted(state[2:]) == ["0", "1", "2", "3", "theirs"]
    assert log.load().version == 6  # without a version of its own


def test_who_loses_in_a_log_without_the_mark_wishes_and_proposes_nothing() -> None:
    store = MemoryStore()
    log, other_log = log_of(store), log_of(store)
    view = begin(log)
    listed_texts: list[list[str]] = []

    def slow(view: object, passed: object) -> object:
        if len(listed_texts) < 5:
            if len(listed_texts) == 4:
                wait_until(lambda: list(store.list_after(KEYS.inbox)), "a wish")
            listed_texts.append(list(store.list_after(KEYS.inbox)))
            with patch("lakelog.log.rounds.commit_round.ThreadRound.marks", False):
                other_log.commit(other_log.load(), say(f"race {len(listed_texts)}"))
        return say("slow")(view, passed)  # type: ignore[arg-type]

    log.commit(view, slow, shared=True)  # type: ignore[arg-type]
    ended()
    keys = {key for texts in listed_texts for key in texts}
    assert [KEYS.is_wish(key) for key in keys] == [True]
    assert not list(store.list_after(KEYS.inbox))


def test_a_thread_that_was_interrupted_leaves_no_wish() -> None:
    """The thread that has the turn wishes for all of its group, and may not know yet that one is gone."""
    store = MemoryStore()
    log = log_of(store)
    view = begin(log)
    interrupted = Interrupted()
    with (
        pytest.raises(KeyboardInterrupt),
        patch("lakelog.log.rounds.sharing.ThreadRound.commit", interrupted),
    ):
        log.commit(view, say("gone"), shared=True)
    interrupted.wishes()
    ended()
    assert not list(store.list_after(KEYS.inbox))


class Interrupted:
    wishes: Callable[[], None]

    def __get__(self, group: Any, kind: object = None) -> Callable[[], None]:
        def commit() -> None:
            self.wishes = group._wish
            raise KeyboardInterrupt

        return commit


def test_a_look_that_fails_is_as_if_none_had_been_made() -> None:
    log = log_of(MemoryStore())
    view = begin(log)
    with (
        patch.object(watch, "QUICK_COMMITS", 1),
        patch.object(ProposalInbox, "calls", side_effect=StorageError("down", location="here")),
    ):
        for number in range(6):
            view = log.commit(view, say(f"{number}"), shared=True).view
            ended()
    assert view.version == 7


@pytest.mark.parametrize(
    ("url", "given", "expected"),
    [
        ("s3://bucket/x", None, True),
        ("/x", None, False),
        ("memory://x", None, False),
        ("s3://bucket/x", False, False),
        ("/x", True, True),
    ],
)
def test_object_stores_propose_and_folders_do_not_by_default(
    url: str, given: bool | None, expected: bool
) -> None:
    assert LogOptions(proposals=given).proposes(in_bucket=open_store(url).is_bucket) is expected


def test_the_keys_of_wishes_are_in_the_folder_of_their_version() -> None:
    keys = LogKeys("t")
    assert keys.wish(513, "x") == f"t/_log/inbox/{2:020d}/{513:020d}-x.wish"
    assert keys.inbox_until(keys.wish(513, "x")) == 1023
    assert not keys.is_wish(keys.proposal(513, "x"))
