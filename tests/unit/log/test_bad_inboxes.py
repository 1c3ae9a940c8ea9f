"""Inboxes full of anything, and the fate of proposals if their author sleeps or the combiner fails."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast
from unittest.mock import patch

import msgspec
import pytest
from tests.patience import PATIENCE_S, wait_until
from tests.sim.proposing import sizes
from tests.unit.log.projections import WordsProjection, say
from tests.unit.log.test_proposals import KEYS, WordsByData, ended, log_of, marked, proposal

from lakelog.log import CommitUnknown, Log, LogView, MemoryStore, ObjectStore, StorageError
from lakelog.log.checks.findings import Findings
from lakelog.log.checks.verify_inbox import check_inbox
from lakelog.log.format import WINDOW, encode
from lakelog.log.leftovers import unreferenced
from lakelog.log.options import LogOptions
from lakelog.log.proposals.inbox import LISTED_MAX, READ_MAX

LEFT, PART = 1_000_000, 20_000
DAY_S = 86_400.0
AT_ONCE = patch("lakelog.log.placing.RACES_BEFORE_PROPOSING", 0)


class Flooded(MemoryStore):
    """A store whose inbox lists a million keys that no object is at, before all others."""

    asked_at_once = 0

    def __init__(self) -> None:
        super().__init__()
        self.lists: list[list[int]] = []
        """How many keys were taken of each list: threads list beside each other."""

    @property
    def taken(self) -> int:
        return sum(count for [count] in self.lists)

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        if prefix.startswith(KEYS.inbox):
            own = [0]
            self.lists.append(own)
            for number in range(LEFT):
                own[0] += 1
                yield KEYS.proposal(1, f"left{number:07d}")
        yield from super().list_after(prefix, after)

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        if prefix.startswith(KEYS.inbox):
            return ((key, 9) for key in self.list_after(prefix))
        return super().list_sizes(prefix, after)

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        self.asked_at_once = max(self.asked_at_once, len(keys))
        return super().get_many(keys)


def test_a_million_leftovers_hold_up_no_commit_and_cost_what_is_bounded() -> None:
    store = Flooded()
    log, view = marked(store)
    theirs = msgspec.structs.replace(proposal(1, ids=["theirs"], base=1), log_id=view.log_id)
    store.put(KEYS.proposal(1, "theirs"), encode(theirs))
    with AT_ONCE:
        for number in range(3):
            view = log.commit(view, say(f"{number}"), shared=True).view
    assert log.load().state == ("one", "0", "1", "2")
    assert store.asked_at_once <= READ_MAX
    ended()
    wait_until(lambda: not log.sharing.has_courier, "the end of the courier, which may be in a list")
    assert {count for [count] in store.lists} == {LISTED_MAX}
    assert len(store.lists) < 60
    # What is hidden behind them is its author's to put, under the same id.
    other_log = log_of(store)
    assert (
        other_log.commit(other_log.load(), say("theirs"), commit_id="theirs", base=1, shared=True).version
        == 5
    )
    assert log.load().state == ("one", "0", "1", "2", "theirs")


def test_logs_do_not_draw_from_the_generator_of_their_users() -> None:
    log, view = marked(MemoryStore())
    seeded = random.getstate()
    with AT_ONCE:
        log.commit(view, say("x"), shared=True)
    ended()
    assert LogOptions().random() != LogOptions().random()
    assert random.getstate() == seeded


def test_vacuum_takes_a_million_leftovers_away_part_by_part_and_fsck_names_them() -> None:
    store = Flooded()
    log, view = marked(store)
    later = LogView(
        view.log_id, 2 * WINDOW, view.hash, view.time_us, view.state, writer_features=view.writer_features
    )
    with patch("lakelog.log.leftovers.PROPOSALS_MAX", PART):
        assert len(unreferenced(log, later, None)) == PART == store.taken
    findings = Findings()
    check_inbox(log, findings, [KEYS.proposal(1, f"left{n}") for n in range(PART)], later.version)
    assert [finding.what for finding in findings.found] == [
        f"{PART:,} objects are left here from windows that are over"
    ]


class Full(MemoryStore):
    """A disk that takes no version for a while."""

    refuses = 0

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if self.refuses and key.startswith("t/_log/0"):
            self.refuses -= 1
            raise StorageError("no space left on device", location=key, without_effect=True)
        return super().put_if_absent(key, data)


@pytest.mark.parametrize("refused", [1, 2, 1_000])
def test_what_is_proposed_to_a_combiner_whose_disk_is_full_is_applied_once(refused: int) -> None:
    store = Full()
    log, view = marked(store)
    theirs = msgspec.structs.replace(proposal(1, ids=["theirs"], base=1), log_id=view.log_id)
    store.put(KEYS.proposal(1, "theirs"), encode(theirs))
    store.refuses = refused
    with AT_ONCE:
        try:
            log.commit(view, say("mine"), commit_id="mine", shared=True)
        except (StorageError, CommitUnknown):
            store.refuses = 0
            log = log_of(store)
            log.commit(view, say("mine"), commit_id="mine", base=view.version, shared=True)
        other_log = log_of(store)
        other_log.commit(other_log.load(), say("other"), shared=True)
    assert sorted(log.load().state) == ["mine", "one", "other", "theirs"]


class Sleepy:
    """A client's way to a store, where its first look for a version takes as long as a test wants."""

    def __init__(self, truth: MemoryStore, version: int) -> None:
        self._truth, self._key = truth, KEYS.commit(version)
        self.sleeps, self.wakes = threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._truth, name)

    def get(self, key: str) -> bytes | None:
        if key == self._key and not self.sleeps.is_set():
            self.sleeps.set()
            self.wakes.wait(PATIENCE_S)
        return self._truth.get(key)


@pytest.mark.parametrize("years", [-10, 0, 10])
@pytest.mark.parametrize("combined", [False, True])
def test_a_proposer_with_a_wrong_clock_that_sleeps_a_day_is_applied_once(years: int, combined: bool) -> None:
    """It comes back after its window: with others who had applied its proposal, or had not."""
    truth = MemoryStore()
    log, view = marked(truth)
    store, now_s = Sleepy(truth, view.version + 1), [0.0]
    options = LogOptions(
        proposals=True,
        snapshot_every_versions=0,
        monotonic_s=lambda: now_s[0],
        clock_us=lambda: 1_750_000_000_000_000 + years * 365 * int(DAY_S) * 1_000_000,
    )
    sleeper = Log(cast(ObjectStore, store), "t", WordsProjection(), options=options, by_data=WordsByData())
    with sizes(5, 0), ThreadPoolExecutor(1) as threads:
        future = threads.submit(sleeper.commit, view, say("sleepy"), commit_id="sleepy", shared=True)
        assert store.sleeps.wait(PATIENCE_S)
        assert len(list(truth.list_after(KEYS.inbox))) == 1
        other_log = log_of(truth, proposals=combined)
        for number in range(9):
            view = other_log.commit(view, say(f"{number}"), shared=True).view
        assert view.version > 1 + 5
        assert ("sleepy" in view.state) == combined
        now_s[0] += DAY_S
        store.wakes.set()
        version = future.result(60).version
    state = log.load().state
    assert state.count("sleepy") == 1
    assert sorted(state) == sorted(["one", "sleepy", *(f"{number}" for number in range(9))])
    assert (version <= 1 + 5) == combined


@pytest.mark.parametrize("window", [1, 2])
def test_a_window_that_is_too_small_costs_time_and_nothing_else(window: int) -> None:
    store = MemoryStore()
    marked(store)

    def work(process: int) -> None:
        log = log_of(store, by=f"{process}")
        view = log.load()
        for number in range(6):
            view = log.commit(view, say(f"{process}.{number}"), shared=True).view

    with sizes(window, 0), ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    texts = sorted(f"{process}.{number}" for process in range(4) for number in range(6))
    assert sorted(log_of(store).load().state) == [*texts, "one"]


def test_a_proposal_of_another_log_is_left_alone() -> None:
    log, view = marked(MemoryStore())
    for at, log_id in ((1, "another"), (1, "../../another")):
        theirs = msgspec.structs.replace(
            proposal(at, ids=[log_id[:3]] if "." not in log_id else ["b"], base=1)
        )
        log.store.put(KEYS.proposal(at, theirs.changes[0].commit_id), encode(theirs))
    with AT_ONCE:
        for number in range(2):
            view = log.commit(view, say(f"{number}"), shared=True).view
    assert log.load().state == ("one", "0", "1")
