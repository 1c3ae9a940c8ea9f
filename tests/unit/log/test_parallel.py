"""What runs side by side really does, all of it ends, and nothing that fails goes unnoticed."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.patience import barrier, wait_until
from tests.unit.log.projections import WordsProjection, say

from lakelog.log import Draft, LocalStore, Log, LogPart, WarehouseDecisions, commit_together, parallel
from lakelog.log.parallel import in_threads, run_in_parallel


def _wait(meeting: threading.Barrier) -> None:
    meeting.wait()


def test_all_of_them_run_at_the_same_time() -> None:
    meeting_barrier = barrier(3)
    run_in_parallel([lambda: _wait(meeting_barrier)] * 3)
    run_in_parallel([])


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_all_of_them_end_before_a_failure_is_raised(failing: int) -> None:
    ended = []

    def work(i: int) -> None:
        if i == failing:
            raise OSError("no")
        ended.append(i)

    with pytest.raises(OSError, match="no"):
        run_in_parallel([lambda i=i: work(i) for i in range(3)])  # type: ignore[misc]
    assert sorted(ended) == [i for i in range(3) if i != failing]


def test_works_within_works_end_though_no_thread_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    ended_numbers: list[int] = []

    def inner() -> None:
        run_in_parallel([lambda: ended_numbers.append(1)] * 3)

    with ThreadPoolExecutor(1) as few:
        monkeypatch.setattr(parallel._pool, "threads", few)
        run_in_parallel([lambda: run_in_parallel([inner] * 3)] * 3)
    assert len(ended_numbers) == 27
    # As the interpreter ends, threads take nothing any more.
    run_in_parallel([inner] * 3)
    assert len(ended_numbers) == 36


def test_threads_stay_for_what_comes_next_and_a_forked_child_has_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def names() -> set[str]:
        meeting_barrier, found = barrier(3), set()

        def work() -> None:
            found.add(threading.current_thread().name)
            meeting_barrier.wait()

        run_in_parallel([work] * 3)
        return found

    with ThreadPoolExecutor(256, "own") as own:
        monkeypatch.setattr(parallel._pool, "threads", own)
        used_texts = set[str]()
        for _ in range(50):
            used_texts |= names()
            # A thread is free a moment after its work has ended.
            wait_until(lambda: own._idle_semaphore._value >= len(own._threads))
        assert len([name for name in used_texts if name.startswith("own")]) < 20
    child = os.fork()
    if child == 0:
        os._exit(0 if len(names()) == 3 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_many_threads_move_words_between_logs_and_each_transaction_is_in_all_of_them_once(
    tmp_path: Path,
) -> None:
    store = LocalStore(str(tmp_path), fsync=False)
    logs = [Log(store, name, WordsProjection()) for name in ("a", "b", "c")]
    for log in logs:
        log.create(Draft(events=({"word": "one"},)), log_id=log.keys.folder)
    views = [log.load() for log in logs]

    def work(name: str) -> None:
        for i in range(5):
            parts = [
                LogPart(log.keys.folder, log, view, say(f"{name}{i}"))
                for log, view in zip(logs, views, strict=True)
            ]
            commit_together(parts[:2] if i % 2 else parts[1:], decisions=WarehouseDecisions(store))

    run_in_parallel([lambda name=name: work(name) for name in "wxyz"])  # type: ignore[misc]
    states = [sorted(log.load().state[1:]) for log in logs]
    assert states[1] == sorted(f"{name}{i}" for name in "wxyz" for i in range(5))
    assert states[0] == [word for word in states[1] if int(word[1]) % 2]
    assert states[2] == [word for word in states[1] if not int(word[1]) % 2]


@pytest.mark.parametrize("count", [0, 1, 3, 17, 5_000])
def test_results_come_in_the_order_of_the_items(count: int) -> None:
    assert list(in_threads(lambda item: item * 2, range(count), "test")) == [i * 2 for i in range(count)]


def test_a_few_items_do_not_wait_for_each_other() -> None:
    meeting_barrier = barrier(3)
    assert list(in_threads(lambda item: meeting_barrier.wait() >= 0 and item, range(3), "test")) == [0, 1, 2]


def test_an_error_ends_the_work() -> None:
    results: list[int] = []

    def work(item: int) -> None:
        if item == 3:
            raise ValueError(item)
        time.sleep(0.001)
        results.append(item)

    with pytest.raises(ValueError, match="3"):
        list(in_threads(work, range(10_000), "test"))
    assert len(results) < 5_000
