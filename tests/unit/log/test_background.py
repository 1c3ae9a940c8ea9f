"""Work in the background may be lost, but never raises, never piles up, and is not cut off at exit."""

from __future__ import annotations

import logging
import threading

import pytest
from tests.patience import PATIENCE_S

from lakelog.log import new_id, wait_for_background
from lakelog.log.background import run_in_background
from lakelog.log.ids import ID_LENGTH


def test_work_of_a_name_that_is_under_way_is_not_begun_again() -> None:
    go = threading.Event()
    results: list[str] = []

    def first() -> None:
        go.wait(PATIENCE_S)
        results.append("first")

    run_in_background("a", first)
    run_in_background("a", lambda: results.append("second"))
    run_in_background("b", lambda: results.append("other"))
    go.set()
    wait_for_background()
    assert results == ["first", "other"]
    run_in_background("a", lambda: results.append("third"))
    wait_for_background()
    assert results[-1] == "third"


def test_work_that_fails_is_logged_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise OSError("disk on fire")

    with caplog.at_level(logging.WARNING, "lakelog.log"):
        run_in_background("failing", fail)
        wait_for_background()
    assert "could not write a snapshot of failing" in caplog.text


def test_ids_are_26_characters_of_base32_and_never_the_same() -> None:
    ids = {new_id() for _ in range(10_000)}
    assert len(ids) == 10_000
    assert {len(id) for id in ids} == {ID_LENGTH}
    assert set("".join(ids)) == set("abcdefghijklmnopqrstuvwxyz234567")
