"""When a client that proposes looks for the next version: soon after it is there, whatever its clock says."""

from __future__ import annotations

import pytest

from lakelog.log.format import Commit
from lakelog.log.proposals.pace import FIRST_PUT_S, LogPace

INTERVAL_S = 0.13
VISIBLE_S = 0.07


def commit(put_s: float) -> Commit:
    return Commit(
        format=1,
        log_id="log",
        version=1,
        commit_id="c",
        attempt_id="a",
        base=0,
        prev="",
        time_us=int(put_s * 1e6),
        writer={"by": "one"},
        events=(),
    )


def looks(
    clock_s: float, late_s: float, versions: int, *, stands_still: bool = False
) -> tuple[list[float], list[int]]:
    """Return how late each version was found, and after how many looks in vain. The first is found `late_s` late, by a
    client whose clock is ahead by `clock_s`. If the log's time `stands_still`, it is ahead of all clocks."""
    now_s = 0.0
    pace = LogPace(lambda: now_s + clock_s, lambda: 0.5)
    lates, misses = [], []
    for number in range(versions):
        there_s = 10 + number * INTERVAL_S + VISIBLE_S
        missed_number = 0
        if not number:
            now_s = there_s + late_s
        while now_s < there_s:
            pace.missed(now_s + clock_s)
            missed_number += 1
            now_s += pace.next_look_s(missed_number)
        lates.append(now_s - there_s)
        misses.append(missed_number)
        put_s = 40 + number / 1e6 if stands_still else there_s - VISIBLE_S
        pace.seen(commit(put_s), looked_s=now_s + clock_s)
        now_s += pace.next_look_s(0)
    return lates, misses


@pytest.mark.parametrize("clock_s", [0.0, 3600.0, -1e9])
@pytest.mark.parametrize("late_s", [0.0, 0.12])
def test_looks_come_soon_after_a_version_and_seldom_before_it(clock_s: float, late_s: float) -> None:
    lates, misses = looks(clock_s, late_s, 100)  # of 13 seconds
    assert max(lates[20:]) < FIRST_PUT_S
    assert sum(lates[20:]) / 80 < FIRST_PUT_S / 3
    assert sum(misses[20:]) < 80 / 3


def test_looks_are_few_while_the_time_of_a_log_waits_for_a_clock_that_was_ahead() -> None:
    lates, misses = looks(0.0, 0.0, 100, stands_still=True)
    assert max(lates[20:]) < FIRST_PUT_S
    assert sum(misses[20:]) < 3 * 80


def test_a_process_that_was_stopped_for_a_day_in_a_put_is_patient_for_no_longer() -> None:
    now_s = 0.0
    pace = LogPace(lambda: now_s, lambda: 0.5)
    pace.measured_put(24 * 3600.0)
    pace.start_waiting()
    assert pace.linger_s < 20 * FIRST_PUT_S
    now_s += 20 * FIRST_PUT_S
    assert pace.is_impatient


def test_a_store_whose_puts_take_long_is_known_after_some() -> None:
    pace = LogPace(lambda: 0.0, lambda: 0.5)
    for _ in range(20):
        pace.measured_put(2.0)
    assert pace.put_s == pytest.approx(2.0, rel=0.05)


def test_a_look_in_vain_from_before_it_combined_says_nothing_of_later_versions() -> None:
    now_s = 1.0
    pace = LogPace(lambda: now_s, lambda: 0.5)
    pace.missed(now_s)
    now_s = 60.0
    pace.seen(commit(now_s - VISIBLE_S), looked_s=now_s)
    assert pace.next_look_s(0) > FIRST_PUT_S


def test_who_saw_no_combiner_waits_for_none() -> None:
    now_s = 0.0
    pace = LogPace(lambda: now_s, lambda: 0.5)
    pace.start_waiting()
    now_s += 2 * FIRST_PUT_S
    assert pace.is_impatient
    pace.combined()
    now_s += 2 * FIRST_PUT_S
    assert not pace.is_impatient
