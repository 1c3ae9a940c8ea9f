"""Scenarios of one log: appending, asking again, snapshots, expiry."""

from __future__ import annotations

from functools import partial

from tests.model import reading, writing
from tests.model.machine import Program
from tests.model.search import Actor, Scenario
from tests.model.world import Commit, Request, View, applied


def first(place: str, *events: tuple[object, ...], parent: str = "") -> Commit:
    """The commit that a place's log begins with."""
    about = (("moved", parent),) if parent else ()
    return Commit(place, 1, "c0", ("c0", 0, place, 1), None, 1, (*about, *events))


def make(commit: Commit, place: str) -> Program:
    yield ("create", ("log", place, commit.version), commit)


def begun(place: str, *events: tuple[object, ...], parent: str = "") -> partial[Program]:
    return partial(make, first(place, *events, parent=parent), place)


def opened(place: str, *events: tuple[object, ...], parent: str = "") -> View:
    """The view after a log's first commit."""
    view = applied(View(place), first(place, *events, parent=parent), "committed", 1)
    assert view is not None
    return view._replace(tail=())


def append(cid: str, place: str = "A", **more: object) -> Request:
    return Request(cid, place, place, (("applied", cid),), **more)  # type: ignore[arg-type]


def writer(name: str, cid: str, place: str = "A", **more: object) -> partial[Program]:
    return partial(writing.commit, name, opened(place), append(cid, place), **more)


APPEND = Scenario(
    "append",
    (
        Actor("writer 1", writer("w1", "one")),
        Actor("writer 2", writer("w2", "two"), like="writer 1"),
        Actor("writer 3", writer("w3", "three"), like="writer 2"),
        Actor("reader", partial(reading.reader, "A")),
    ),
    (begun("A"),),
    faults=2,
)

ASK_AGAIN = Scenario(
    "ask again",
    (
        Actor("writer 1", writer("w1", "one", tries=2)),
        Actor("writer 1 again", partial(writing.ask_again, "w1b", append("one"), 1), after="writer 1"),
        Actor("writer 2", writer("w2", "two")),
    ),
    (begun("A"),),
    faults=2,
)
