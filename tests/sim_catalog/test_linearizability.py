"""Tests of the checker of histories: histories that fit into an order of requests, and histories that do not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sim_catalog.linearizability import FOREVER, Request, first_misfit
from tests.sim_catalog.model import ABSENT, EXISTS, MISSING, OK, Asked, Space, State

FOUND = State(spaces=(Space("", ""), Space("x", "1")))
T, U = ("x", "t"), ("x", "u")


def done_request(begun_at: int, ended_at: int, answer: Any, kind: str, *arguments: Any) -> Request:
    return Request(Asked(kind, arguments), "a client", begun_at, ended_at, answer)


def unanswered_request(begun_at: int, kind: str, *arguments: Any) -> Request:
    return Request(Asked(kind, arguments), "a client", begun_at)


CREATED = done_request(1, 2, OK, "link", "1", "t", "a", "first")


@pytest.mark.parametrize(
    ("history", "fits"),
    [
        ([], True),
        ([CREATED, done_request(3, 4, "a", "resolve", T)], True),
        ([CREATED, done_request(3, 4, MISSING, "resolve", T)], False),
        (
            [
                done_request(1, 4, OK, "link", "1", "t", "a", "first"),
                done_request(2, 3, MISSING, "resolve", T),
            ],
            True,
        ),
        ([CREATED, unanswered_request(3, "drop", T, None), done_request(4, 5, MISSING, "resolve", T)], True),
        ([CREATED, unanswered_request(3, "drop", T, None), done_request(4, 5, "a", "resolve", T)], True),
        (
            [
                CREATED,
                unanswered_request(3, "drop", T, None),
                done_request(4, 5, MISSING, "resolve", T),
                done_request(6, 7, "a", "resolve", T),
            ],
            False,
        ),
        ([CREATED, done_request(3, 4, OK, "drop", T, None), done_request(5, 6, OK, "drop", T, None)], False),
        (
            [CREATED, done_request(3, 4, OK, "drop", T, None), done_request(5, 6, ABSENT, "drop", T, None)],
            True,
        ),
        (
            [
                CREATED,
                done_request(3, 4, OK, "drop", T, None),
                done_request(5, 6, MISSING, "undrop", T, T, None),
            ],
            False,
        ),
        ([CREATED, done_request(3, 4, EXISTS, "rename", T, U, None)], False),
        (
            [CREATED, done_request(3, 4, OK, "rename", T, U, None), done_request(5, 6, ("u",), "list", "x")],
            True,
        ),
        (
            [
                CREATED,
                done_request(3, 4, OK, "rename", T, U, "another"),
                done_request(5, 6, ("u",), "list", "x"),
            ],
            False,
        ),
        (
            [
                CREATED,
                done_request(3, 4, OK, "alter", "a", "second"),
                done_request(5, 6, "first", "look", "a"),
            ],
            False,
        ),
        (
            [
                CREATED,
                done_request(3, 4, OK, "drop space", "x", True),
                done_request(5, 6, OK, "undrop space", "x", "y"),
                done_request(7, 8, "a", "resolve", ("y", "t")),
            ],
            True,
        ),
        (
            [
                CREATED,
                done_request(
                    3, 6, OK, "transaction", (Asked("rename", (T, U, "a")), Asked("drop", (U, "a")))
                ),
                done_request(4, 5, "a", "resolve", U),
            ],
            False,
        ),
    ],
)
def test_a_history_fits_into_one_order_or_not(history: list[Request], fits: bool) -> None:
    assert (not first_misfit(history, FOUND)) == fits


def test_the_shortest_beginning_that_does_not_fit_is_reported() -> None:
    lost_request = done_request(5, 6, MISSING, "resolve", T)
    later = done_request(9, 10, "a", "resolve", T)
    assert (
        first_misfit([CREATED, done_request(3, 4, "a", "resolve", T), lost_request, later], FOUND)[-1]
        == lost_request
    )
    assert all(
        request.begun_at <= lost_request.ended_at < FOREVER
        for request in first_misfit([CREATED, lost_request], FOUND)
    )
